//! `tailor resume`: repairs a session of an agent, and starts the agent on it.

use super::recover::{sentence, status};
use super::{CommandError, CommandResult};
use crate::amount::{age, plural};
use crate::args::{RecoverArgs, ResumeArgs};
use crate::place::{portable_text, shown_word};
use crate::remedy;
use crate::say::{eprint_message, hint, is_quiet, print_json};
use crate::sessions::{Candidate, ListedSession, Looks, ambiguous, candidates, is_called};
use crate::status::ExitStatus;
use crate::terminal::plain;
use keeper::program::give_way_to;
use keeper::{Ending, Options, Outcome, finish_all, maintain};
use serde::Serialize;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use transcript::format::FORMATS;
use transcript::{Examination, Finding, Severity};

pub(crate) fn run(resume: &ResumeArgs) -> CommandResult {
    let session = find(resume)?;
    let options = resume.options()?;
    if let Some(vault) = &options.vault {
        for error in finish_all(&session.path, vault) {
            eprint_message(&error.to_string());
        }
    }
    let name = session.headline.title.as_deref().unwrap_or("(no title)");
    if !is_quiet() {
        eprintln!("{}, {} ago: {}", session.agent_name(), age(session.age), plain(name));
    }
    repair(&session, &options)?;
    shorten(&session, resume)?;
    start(resume, &session)
}

/// What `--json` says.
#[derive(Serialize)]
struct ResumeLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    path: String,
    agent: &'static str,
    /// Starts the agent on the session.
    resume: &'a str,
}

/// The agent's session with this id, or its newest one.
fn find(resume: &ResumeArgs) -> Result<ListedSession, String> {
    let agents = || {
        let all = FORMATS.iter().flat_map(|format| format.agents.iter().map(move |agent| (*agent, *format)));
        all.filter(|(agent, _)| agent.resume.is_some())
    };
    let is_meant = |name: &str| agents().any(|(agent, format)| is_called(Some(agent), Some(format), name));
    if !is_meant(&resume.agent) {
        let known: Vec<&str> = agents().map(|(agent, _)| agent.name).collect();
        let known = known.join(", ");
        return Err(format!("{}: no agent that Tailor can resume; there are {known}", resume.agent));
    }
    let looks = Looks::new(&resume.change.load()?, &[]);
    let is_named = |candidate: &&Candidate| resume.id.as_ref().is_none_or(|id| candidate.has_id(id));
    let (mut found, all): (Option<ListedSession>, _) = (None, candidates(&[]));
    for candidate in all.iter().filter(is_named) {
        // The path has most of the id; only a matching file is read.
        let path = candidate.path().to_string_lossy();
        if !agents().any(|(agent, format)| {
            is_called(Some(agent), Some(format), &resume.agent) && agent.session_id(&path).is_some()
        }) {
            continue;
        }
        let Some(session) = looks.session(candidate, true).map_err(|error| error.to_string())? else {
            continue;
        };
        if !is_called(session.agent, session.format, &resume.agent) || session.id().is_none() {
            continue;
        }
        match (&found, &resume.id) {
            (None, None) => return Ok(session),
            (None, Some(_)) => found = Some(session),
            (Some(first), _) => {
                let id = resume.id.as_deref().unwrap_or_default();
                return Err(ambiguous(id, &first.path, &session.path));
            }
        }
    }
    let which = resume.id.as_ref().map(|id| format!(" with the id {id}")).unwrap_or_default();
    found.ok_or_else(|| {
        format!("{} has no session{which} here; tailor doctor lists all sessions", resume.agent)
    })
}

/// Makes the safe repairs. It is an error if the session cannot be resumed.
fn repair(session: &ListedSession, options: &Options) -> Result<(), CommandError> {
    let outcome = maintain(&session.path, None, options)?;
    let path = shown_word(&session.path);
    if let Ending::Deferred(_) | Ending::Refused(_) = outcome.ending {
        let reason = outcome.ending.reason().unwrap_or_default();
        eprint_message(&format!("{path}: not repaired: {reason}"));
        return Err(CommandError::Told(ExitStatus::of_change(&outcome.ending)));
    }
    if outcome.ending == Ending::Fixed {
        let rules = repaired_rules(&outcome);
        let repaired = plural(repaired(&outcome), "problem");
        let seen = |looked: &Option<Examination>| looked.as_ref().map_or(0, |looked| looked.messages.seen);
        let back = match seen(&outcome.after).saturating_sub(seen(&outcome.before)) {
            0 => String::new(),
            back => format!(", +{}", plural(back as u64, "message")),
        };
        hint(&format!("repaired {repaired}{rules}{back}. {}", remedy::undo(&session.path)));
    }
    let now = outcome.after.as_ref().or(outcome.before.as_ref());
    let errors = now.iter().flat_map(|now| &now.findings).filter(|f| f.severity == Severity::Error);
    for finding in errors {
        let (code, line) = (finding.rule.code(), finding.line);
        let next = remedy::next(finding, &session.path);
        let next = next.unwrap_or_else(|| format!("no command repairs it: tailor explain {code} {path}"));
        eprint_message(&format!("still broken: {code} on line {line}: {} ({next})", finding.message));
    }
    Ok(())
}

/// Recovers a session that is too long, because the API would refuse it.
fn shorten(session: &ListedSession, resume: &ResumeArgs) -> Result<(), CommandError> {
    if !session.is_long {
        return Ok(());
    }
    let asked = RecoverArgs::for_file(session.path.clone(), resume.change.clone());
    let options = asked.options()?;
    let done = keeper::recover(&session.path, None, &asked.recovery(), &options)?;
    eprint_message(&sentence(&asked, &done));
    // A context above the target may fit nevertheless.
    let fits =
        done.tokens.is_some_and(|tokens| tokens.after.is_some_and(|after| after <= tokens.before.window));
    match status(&done) {
        _ if fits && done.outcome.ending == Ending::Fixed => Ok(()),
        ExitStatus::Clean => Ok(()),
        other => {
            let path = shown_word(&session.path);
            eprint_message(&format!(
                "the session is too long, so it would be refused: tailor recover {path}"
            ));
            Err(CommandError::Told(other))
        }
    }
}

/// The rules with fewer findings than before, in parentheses.
fn repaired_rules(outcome: &Outcome) -> String {
    let count = |looked: &Option<Examination>, code: &str| -> u64 {
        let all = looked.iter().flat_map(|looked| &looked.findings);
        all.filter(|finding| finding.rule.code() == code).map(Finding::count).sum()
    };
    let mut rules: Vec<String> = Vec::new();
    for finding in outcome.before.iter().flat_map(|before| &before.findings) {
        let rule = finding.rule;
        let name = format!("{} {}", rule.code(), rule.name());
        let is_gone = count(&outcome.before, rule.code()) > count(&outcome.after, rule.code());
        if is_gone && !rules.contains(&name) {
            rules.push(name);
        }
    }
    if rules.is_empty() { String::new() } else { format!(" ({})", rules.join(", ")) }
}

/// How many findings are gone.
fn repaired(outcome: &Outcome) -> u64 {
    let count = |looked: &Option<Examination>| looked.as_ref().map_or(0, Examination::count);
    count(&outcome.before).saturating_sub(count(&outcome.after)).max(1)
}

/// Replaces this process by the agent.
fn start(resume: &ResumeArgs, session: &ListedSession) -> CommandResult {
    let Some((words, folder)) = session.resume() else { return Ok(ExitStatus::Error) };
    let folder = folder.filter(|folder| folder.is_dir());
    if resume.no_start {
        let command = in_folder(&words, folder);
        if resume.change.json.is_json() {
            let path = portable_text(&session.path);
            let (kind, agent) = ("resume", session.agent_name());
            return Ok(print_json(&ResumeLine { kind, path, agent, resume: &command }));
        }
        println!("{command}");
        return Ok(ExitStatus::Clean);
    }
    // A failed start may leave us in the other folder.
    let line = in_folder(&words, folder);
    hint(&format!("starting: {line}"));
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let error = give_way_to(command);
    if error.kind() == ErrorKind::NotFound {
        return Err(format!("{} is not in PATH; run it yourself: {line}", words[0]).into());
    }
    Err(format!("{}: could not start: {error}", words[0]).into())
}

/// The command to type. Agents look for sessions of the current folder, so it may begin with `cd`.
pub(crate) fn in_folder(words: &[&str], folder: Option<&Path>) -> String {
    let command = words.join(" ");
    let elsewhere = folder.filter(|folder| std::env::current_dir().is_ok_and(|here| here != *folder));
    match elsewhere {
        Some(folder) => format!("cd {} && {command}", shown_word(folder)),
        None => command,
    }
}
