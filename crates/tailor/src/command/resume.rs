//! `tailor resume`: repairs a session of an agent, and starts the agent on it.

use super::recover::{sentence, status};
use super::{CommandError, CommandResult};
use crate::amount::{age, plural};
use crate::args::{RecoverArgs, ResumeArgs};
use crate::place::{portable_text, shown, shown_word};
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
use std::time::{Duration, Instant};
use transcript::format::{Agent, FORMATS, Format};
use transcript::{Examination, Finding, Severity};

/// How long sessions are read in search of one that is about this folder.
const SEARCH_TIME: Duration = Duration::from_secs(2);

pub(crate) fn run(resume: &ResumeArgs) -> CommandResult {
    let session = find(resume)?;
    let options = resume.options()?;
    if let Some(vault) = &options.vault {
        for error in finish_all(&session.path, vault) {
            eprint_message(&error.to_string());
        }
    }
    if !is_quiet() {
        announce(&session);
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

/// The agent and the id that are asked for, of which one may be missing.
struct Wanted<'a> {
    agent: Option<&'a str>,
    id: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    /// The only word is an agent, or an id.
    fn new(resume: &'a ResumeArgs) -> Result<Self, String> {
        let (word, id) = (resume.agent.as_str(), resume.id.as_deref());
        let by_agent = Self { agent: Some(word), id };
        if resumable().any(|(agent, format)| by_agent.is_of(Some(agent), Some(format))) {
            return Ok(by_agent);
        }
        let by_id = Self { agent: None, id: Some(word) };
        if id.is_none() && candidates(&[]).iter().any(|candidate| by_id.is_candidate(candidate)) {
            return Ok(by_id);
        }
        let known: Vec<&str> = resumable().map(|(agent, _)| agent.name).collect();
        let known = known.join(", ");
        Err(format!("{word}: neither a session's id nor an agent that Tailor can resume; there are {known}"))
    }

    fn is_of(&self, agent: Option<Agent>, format: Option<&Format>) -> bool {
        self.agent.is_none_or(|name| is_called(agent, format, name))
    }

    /// Whether a file may be meant: its path has most of the id, and only then is it read.
    fn is_candidate(&self, candidate: &Candidate) -> bool {
        let path = candidate.path().to_string_lossy();
        let has_name = |(agent, format): (Agent, &'static Format)| {
            self.is_of(Some(agent), Some(format)) && agent.session_id(&path).is_some()
        };
        self.id.is_none_or(|id| candidate.has_id(id)) && resumable().any(has_name)
    }
}

/// The agents that have a command for it.
fn resumable() -> impl Iterator<Item = (Agent, &'static Format)> {
    let all = FORMATS.iter().flat_map(|format| format.agents.iter().map(move |agent| (*agent, *format)));
    all.filter(|(agent, _)| agent.resume.is_some())
}

/// The session with this id; without one the newest of the project around us, else the newest of all.
fn find(resume: &ResumeArgs) -> Result<ListedSession, String> {
    let wanted = Wanted::new(resume)?;
    let looks = Looks::new(&resume.change.load()?, &[]);
    let (mut found, begun): (Option<ListedSession>, _) = (None, Instant::now());
    for candidate in candidates(&[]).iter().filter(|candidate| wanted.is_candidate(candidate)) {
        let may_read = found.is_none() || wanted.id.is_some() || begun.elapsed() < SEARCH_TIME;
        let Some(session) = looks.session(candidate, may_read).map_err(|error| error.to_string())? else {
            continue;
        };
        if !wanted.is_of(session.agent, session.format) || session.id().is_none() {
            continue;
        }
        match (&found, wanted.id) {
            (Some(first), Some(id)) => return Err(ambiguous(id, &first.path, &session.path)),
            (_, None) if is_here(&session) => return Ok(session),
            (None, _) => found = Some(session),
            (Some(_), None) => {}
        }
    }
    let which = wanted.id.map(|id| format!(" with the id {id}")).unwrap_or_default();
    found.ok_or_else(|| {
        let agent = wanted.agent.unwrap_or("this machine");
        format!("{agent} has no session{which} here; tailor doctor lists all sessions")
    })
}

/// Whether a session is about the folder where we are, or one around it other than the home folder.
fn is_here(session: &ListedSession) -> bool {
    let (Some(folder), Ok(here)) = (&session.headline.folder, std::env::current_dir()) else { return false };
    let folder = Path::new(folder);
    let is_project = folder.parent().is_some() && Some(folder) != std::env::home_dir().as_deref();
    here == folder || (is_project && here.starts_with(folder))
}

/// Says which session it is, and where.
fn announce(session: &ListedSession) {
    let name = session.headline.title.as_deref().unwrap_or("(no title)");
    let folder = session.headline.folder.as_ref().map(|folder| format!(" in {}", shown(Path::new(folder))));
    let (agent, age, folder) = (session.agent_name(), age(session.age), folder.unwrap_or_default());
    eprintln!("{agent}{}, {age} ago: {}", plain(&folder), plain(name));
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
