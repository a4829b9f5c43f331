//! `tailor recover`: shortens a session that is too long for the API.

use super::{CommandResult, one_session};
use crate::amount::{grouped, percent, plural};
use crate::args::RecoverArgs;
use crate::place::{shown, shown_word};
use crate::remedy;
use crate::report::{Changed, retry_seconds};
use crate::say::{hint, print_json};
use crate::sessions::describe_error;
use crate::status::ExitStatus;
use crate::terminal::{Screen, plain, shell_word};
use keeper::{Ending, Recovered, Refusal, Tokens};
use serde::Serialize;
use std::path::Path;
use transcript::compact::Unable;
use transcript::overflow::{Cause, escalate, payload_bytes_next};
use transcript::recover::RecoverLevel;
use transcript::refusal;
use transcript::shorten::Length;

pub(crate) fn run(asked: &RecoverArgs) -> CommandResult {
    one_session(&asked.path, "recover it")?;
    let options = asked.options()?;
    let done = keeper::recover(&asked.path, None, &asked.recovery(), &options)
        .map_err(|error| describe_error(&asked.path, &error))?;
    let report = RecoverLine::new(asked, &done);
    if asked.change.json.is_json() {
        return Ok(status(&done).max(print_json(&report)));
    }
    println!("{}", Screen::of_stdout().fit(&report.sentence(&done)));
    report.go_on(&done);
    Ok(status(&done))
}

/// The exit status: a session that is still too long will be refused again.
pub(super) fn status(done: &Recovered) -> ExitStatus {
    let over = done.tokens.is_some_and(|tokens| tokens.is_over());
    ExitStatus::of_change(&done.outcome.ending).max(if over {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    })
}

/// What was done to a session, as a sentence.
pub(super) fn sentence(asked: &RecoverArgs, done: &Recovered) -> String {
    RecoverLine::new(asked, done).sentence(done)
}

/// The line of `--json`.
#[derive(Serialize)]
struct RecoverLine {
    #[serde(flatten)]
    change: Changed,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<u8>,
    attempts_before: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_removed: Option<u64>,
    advice: Advice,
}

/// What to do next.
#[derive(Serialize)]
struct Advice {
    action: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_bytes_max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_seconds: Option<u64>,
}

impl Advice {
    fn new(asked: &RecoverArgs, done: &Recovered) -> Self {
        let plain = |action, message: &str| Self {
            action,
            message: message.to_string(),
            max_tokens: None,
            payload_bytes_max: None,
            retry_seconds: None,
        };
        let file = shown_word(&asked.path);
        match (&done.outcome.ending, done.cause) {
            (Ending::Fixed, _) if done.tokens.is_some_and(|tokens| tokens.is_over()) => {
                plain("recover", &harder(done, &file))
            }
            (Ending::Fixed, cause) => {
                let body = cause == Some(Cause::PayloadTooLarge);
                let below = if body { "; keep its body below payload_bytes_max" } else { "" };
                Self {
                    payload_bytes_max: body.then(|| payload_bytes_next(None)),
                    ..plain(
                        "retry",
                        &format!(
                            "Quit the agent if it is running, resume the session and repeat the request{below}."
                        ),
                    )
                }
            }
            (Ending::WouldFix, _) => plain("recover", "Run it without --dry-run."),
            (ending @ Ending::Deferred(_), _) => Self {
                retry_seconds: retry_seconds(ending.retry_after()),
                ..plain("wait", "Retry after retry_seconds, or pass --settle 0 if no agent is running.")
            },
            (Ending::Clean, Some(Cause::OutputCutOff)) => {
                match escalate(asked.output_tokens, asked.max_output_tokens, 0) {
                    Some(next) => {
                        Self { max_tokens: Some(next.tokens_max), ..plain("continue", next.message) }
                    }
                    None => plain("continue", transcript::overflow::CONTINUE),
                }
            }
            (Ending::Clean, _) if done.is_over => plain("none", OVER),
            (Ending::Clean, _) => plain("none", ANYWAY),
            (Ending::Refused(refusal), _) => {
                let (action, message) = refused(refusal, asked, done);
                plain(action, &message)
            }
            _ => plain("none", "Nothing was changed."),
        }
    }
}

/// Advice for a session that is not too long.
const ANYWAY: &str = "If the API refuses the session, pass the error with --error \"TEXT\". To shorten the session anyway, \
                      pass --target-tokens N or --level N.";

/// Advice for an error from before a recovery.
const OVER: &str = "The error is older than the last recovery, so nothing was changed: resume the session. To shorten it \
                    further, pass --target-tokens N.";

/// Advice for a session that is still too long.
fn harder(done: &Recovered, file: &str) -> String {
    let next = done.level.and_then(|level| RecoverLevel::of_number(level.number() + 1));
    match next {
        Some(next) => format!("It is still too long. Run: tailor recover --level {next} {file}"),
        None => format!(
            "It is still over the target. If the API refuses it again, shorten results further: tailor fix \
             --cut-results 4000 {file}"
        ),
    }
}

/// The advice if nothing was changed.
fn refused(refusal: &Refusal, asked: &RecoverArgs, done: &Recovered) -> (&'static str, String) {
    let file = shown_word(&asked.path);
    match refusal {
        Refusal::NotTooLong(Cause::ProxyRejection) => (
            "check-proxy",
            "A proxy or firewall refused the request, not the model; the request may be too large for it."
                .into(),
        ),
        Refusal::NotTooLong(_) => ("none", another(done, &asked.path, &file)),
        Refusal::Short(length) => (
            "none",
            format!(
                "If the model's window is smaller, pass --window-tokens N. To shorten the session anyway, run: tailor \
                 recover --target-tokens {} {file}",
                length.tokens / 2
            ),
        ),
        Refusal::GivenUp(_) | Refusal::Unable(Unable::Nothing) => {
            ("give-up", "Nothing more can be removed; start a new session, or pass --level N.".into())
        }
        Refusal::Unable(_) | Refusal::StillTooLong { .. } => (
            "give-up",
            format!("Start a new session, or shorten results further: tailor fix --cut-results 4000 {file}"),
        ),
        _ => ("none", "Nothing was changed.".into()),
    }
}

/// The command for an error that is not about length.
fn another(done: &Recovered, path: &Path, file: &str) -> String {
    let error = done.error.as_deref().unwrap_or_default();
    let Some(known) = refusal::find(error) else {
        return format!("To look for other problems, run: tailor scan {file}");
    };
    let findings = done.outcome.before.iter().flat_map(|before| &before.findings);
    let what = known.what;
    match remedy::command(findings.filter(|finding| known.codes.contains(&finding.rule.code())), path, error)
    {
        None => format!("{what} To find out more, run: tailor explain {} {file}", shell_word(error)),
        Some(command) => format!("{what} To repair it, run: {command}"),
    }
}

impl RecoverLine {
    fn new(asked: &RecoverArgs, done: &Recovered) -> Self {
        let mut change = Changed::new("recovery", &asked.path, &done.outcome);
        let file = shown_word(&asked.path);
        change.reason = change.reason.map(|reason| reason.replace(" FILE", &format!(" {file}")));
        let shares = done.shares.filter(|_| change.bytes_after.is_some());
        let length = done.tokens.map(|tokens| tokens.before);
        Self {
            change,
            cause: done.cause.map(Cause::name),
            level: done.level.map(RecoverLevel::number),
            attempts_before: done.attempts_before,
            tokens: length.map(|length| length.tokens),
            tokens_after: done.tokens.and_then(|tokens| tokens_after(done, tokens)),
            window_tokens: length.map(|length| length.window),
            target_tokens: done.tokens.and_then(|tokens| tokens.target),
            kept: shares.map(|shares| shares.kept),
            left_out: shares.map(|shares| shares.left_out),
            thinking_removed: done.tokens.map(|tokens| tokens.thinking_removed).filter(|count| *count > 0),
            advice: Advice::new(asked, done),
        }
    }

    fn sentence(&self, done: &Recovered) -> String {
        let path = plain(&shown(Path::new(&self.change.path)));
        let said = match (&done.outcome.ending, done.tokens) {
            (Ending::Fixed | Ending::WouldFix, Some(tokens)) => self.changed(done, tokens),
            (Ending::Clean, Some(tokens)) if done.cause.is_none() => not_too_long(&tokens.before),
            (Ending::Refused(Refusal::Short(length)), _) if length.foreign.is_none() => not_too_long(length),
            (Ending::Clean, _) => "nothing to recover from".to_string(),
            _ => self.change.outcome.to_string(),
        };
        let reason = match (&done.outcome.ending, &self.change.reason) {
            (Ending::Refused(Refusal::Short(length)), _) if length.foreign.is_none() => String::new(),
            (_, reason) => reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}")),
        };
        format!("{path}: {said}{reason}")
    }

    /// Prints what to do next.
    fn go_on(&self, done: &Recovered) {
        if done.outcome.ending == Ending::Fixed {
            println!("  {}", remedy::undo(Path::new(&self.change.path)));
            if let Some(resume) = &self.change.resume {
                println!("  {}", remedy::resume(resume));
            }
        }
        let mut advice = self.advice.message.clone();
        if let Some(tokens) = self.advice.max_tokens {
            advice = format!("continue with a limit of {tokens} output tokens and this message: {advice}");
        }
        hint(&advice);
    }

    /// What was done, in tokens and messages.
    fn changed(&self, done: &Recovered, tokens: Tokens) -> String {
        let (before, window) = (tokens.before.tokens, grouped(tokens.before.window));
        let after = tokens_after(done, tokens).unwrap_or(before);
        let would = if done.outcome.ending == Ending::WouldFix { "would " } else { "" };
        let left_out = self.left_out.unwrap_or(0);
        let is_over = tokens.is_over();
        // A session that did not become shorter had other damage, which is repaired now.
        let mended = left_out == 0 && after >= before && !is_over;
        let word = match (mended, is_over) {
            (true, _) => "repair",
            (_, true) => "shorten",
            _ => "recover",
        };
        let past = if would.is_empty() { "ed" } else { "" };
        let level = self.level.map(|level| format!(" at level {level}")).unwrap_or_default();
        let said = format!("{would}{word}{past}{level}: ");
        if mended {
            return format!("{said}{} of {window} tokens, nothing shortened or left out", grouped(after));
        }
        let mut parts = vec![format!("{said}{} → {} of {window} tokens", grouped(before), grouped(after))];
        if left_out > 0 {
            parts.push(format!("{} left out", plural(left_out, "message")));
        }
        if tokens.thinking_removed > 0 {
            let messages = plural(tokens.thinking_removed, "message");
            parts.push(format!("signed thinking removed from {messages}"));
        }
        if is_over {
            parts.push(tokens.target.map_or("still too long".to_string(), |target| {
                let why = tokens.unable.map(|unable| format!(": {unable}")).unwrap_or_default();
                format!("still over the target of {}{why}", grouped(target))
            }));
        }
        // Other commands use this estimate until the model answers.
        if let Some(estimated) = counted(done).filter(|estimated| *estimated != after) {
            parts.push(format!("estimated at {} from the file alone", grouped(estimated)));
        }
        parts.join(", ")
    }
}

/// How many tokens other commands count in the new text; `None` if it was not examined.
fn counted(done: &Recovered) -> Option<u64> {
    done.outcome.after.as_ref().map(|after| after.context_tokens.tokens)
}

/// How many tokens the context has now, comparable with the number before: as other commands count them, unless the
/// number before is the API's and the number after cannot be.
fn tokens_after(done: &Recovered, tokens: Tokens) -> Option<u64> {
    let after = tokens.after?;
    let (Some(before), Some(now)) = (&done.outcome.before, &done.outcome.after) else { return Some(after) };
    let (before, now) = (before.context_tokens, now.context_tokens);
    let is_one_scale =
        before.tokens == tokens.before.tokens && before.counted.is_some() == now.counted.is_some();
    Some(if is_one_scale { now.tokens } else { after })
}

fn not_too_long(length: &Length) -> String {
    let Length { tokens, window, .. } = *length;
    format!("not too long: {} of {} tokens ({})", grouped(tokens), grouped(window), percent(tokens, window))
}
