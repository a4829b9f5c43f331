//! `tailor recover`: a session that is too long for the API, made shorter.

use super::{failed, one_session};
use crate::amount::{plural, size};
use crate::args::{Format, Recover};
use crate::report::{Changed, retry_seconds};
use crate::say::eprint_message;
use crate::status::Status;
use crate::terminal::{json, plain};
use keeper::{Ending, Recovered, Refusal};
use serde::Serialize;
use transcript::compact::Unable;
use transcript::overflow::{Cause, escalate, payload_bytes_next};

pub(crate) fn run(asked: &Recover) -> Status {
    if let Err(why) = one_session(&asked.path, "recover it") {
        return failed(&why);
    }
    let options = match asked.options() {
        Ok(options) => options,
        Err(error) => return failed(&error),
    };
    let done = match keeper::recover(&asked.path, None, &asked.recovery(), &options) {
        Ok(done) => done,
        Err(error) => return failed(&error),
    };
    let report = Report::new(asked, &done);
    match asked.format() {
        Format::Json => {
            if let Ok(line) = serde_json::to_string(&report) {
                println!("{}", json(&line));
            }
        }
        Format::Human => report.print(&done),
    }
    Status::of_change(&done.outcome.ending)
}

/// The line of `--json`.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    change: Changed,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<u8>,
    attempts_before: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<u64>,
    advice: Advice,
}

/// What to do next.
#[derive(Serialize)]
struct Advice {
    action: &'static str,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_bytes_max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_seconds: Option<u64>,
}

impl Advice {
    fn new(asked: &Recover, done: &Recovered) -> Self {
        let plain = |action, message| Self {
            action,
            message,
            max_tokens: None,
            payload_bytes_max: None,
            retry_seconds: None,
        };
        match (&done.outcome.ending, done.cause) {
            (Ending::Fixed, Some(Cause::PayloadTooLarge)) => Self {
                payload_bytes_max: Some(payload_bytes_next(None)),
                ..plain(
                    "retry",
                    "Load the session again and repeat the request; keep its body below payload_bytes_max.",
                )
            },
            (Ending::Fixed, _) => plain("retry", "Load the session again and repeat the request."),
            (Ending::WouldFix, _) => plain("recover", "Run it without --dry-run."),
            (ending @ Ending::Deferred(_), _) => Self {
                retry_seconds: retry_seconds(ending.retry_after()),
                ..plain("wait", "Retry after retry_seconds, or pass --settle 0 if no agent is running.")
            },
            (Ending::Clean, Some(Cause::OutputCutOff)) => {
                match escalate(asked.output_tokens, asked.output_tokens_max, 0) {
                    Some(next) => {
                        Self { max_tokens: Some(next.tokens_max), ..plain("continue", next.message) }
                    }
                    None => plain("continue", transcript::overflow::CONTINUE),
                }
            }
            (Ending::Refused(Refusal::NotTooLong(Cause::ProxyRejection)), _) => plain(
                "check-proxy",
                "A proxy or firewall refused the request, not the model; the request may be too large for it.",
            ),
            (Ending::Refused(Refusal::GivenUp(_) | Refusal::Unable(Unable::Nothing)), _) => {
                plain("give-up", "Nothing more can be removed; start a new session, or pass --level N.")
            }
            (Ending::Refused(Refusal::Unable(_)), _) => plain(
                "give-up",
                "Older messages cannot be left out of this session; start a new one, or shorten more with tailor fix \
                 --result-chars-max CHARS.",
            ),
            (Ending::Refused(Refusal::NotTooLong(_)), _) => {
                plain("none", "This error is not about length. Try: tailor fix FILE")
            }
            (Ending::Refused(_), _) => plain("none", "Nothing was changed."),
            _ => plain("none", "The session is not too long."),
        }
    }
}

impl Report {
    fn new(asked: &Recover, done: &Recovered) -> Self {
        let change = Changed::new("recovery", &asked.path, &done.outcome);
        let shares = done.shares.filter(|_| change.bytes_after.is_some());
        Self {
            change,
            cause: done.cause.map(Cause::name),
            level: done.level.map(transcript::recover::Level::number),
            attempts_before: done.attempts_before,
            kept: shares.map(|shares| shares.kept),
            left_out: shares.map(|shares| shares.left_out),
            advice: Advice::new(asked, done),
        }
    }

    fn print(&self, done: &Recovered) {
        let path = plain(&self.change.path);
        let sizes = self.change.bytes.zip(self.change.bytes_after);
        // What is no shorter was broken, and is whole now.
        let mended = self.left_out.is_none() && sizes.is_some_and(|(before, after)| after >= before);
        let word = match done.outcome.ending {
            Ending::Fixed if mended => "repaired",
            Ending::WouldFix if mended => "would repair",
            Ending::Fixed => "recovered",
            Ending::WouldFix => "would recover",
            Ending::Clean => "nothing to recover from",
            _ => self.change.outcome,
        };
        let level = self.level.zip(sizes).map(|(level, (before, after))| {
            let only = if mended { ", nothing shortened or left out" } else { "" };
            format!(" at level {level}: {} -> {}{only}", size(before), size(after))
        });
        let shares = self
            .kept
            .zip(self.left_out)
            .map(|(kept, left_out)| format!(", {} in context, {left_out} left out", plural(kept, "message")));
        let cause = self.cause.map(|cause| format!(" ({cause})"));
        let reason = self.change.reason.as_ref().map(|reason| format!(": {reason}"));
        let more: String = [level, shares, cause, reason].into_iter().flatten().collect();
        let said = word.to_string() + &more;
        println!("{path}: {said}");
        let mut advice = self.advice.message.to_string();
        if let Some(tokens) = self.advice.max_tokens {
            advice = format!("continue with a limit of {tokens} output tokens and this message: {advice}");
        }
        if done.outcome.ending == Ending::Clean && done.cause.is_none() {
            advice = "the session records no error; pass it with --error \"TEXT\", or pass --level N to shorten the \
                      session anyway"
                .to_string();
        }
        eprint_message(&advice);
    }
}
