//! `tailor hook`: agents run it when a session begins or ends.
//!
//! The process that runs it may hold the session in memory, so nothing is changed while that process lives. A hook at
//! the start only warns; one at the end starts a process that waits for the agent's end and then repairs. Errors are
//! only printed to standard error, so that an agent never stops because of a hook.

use crate::amount::grouped;
use crate::args::{HookArgs, HookEvent};
use crate::say::eprint_message;
use crate::sessions::{ListedSession, Looks, NEARLY_FULL_PERCENT_MIN, SessionState, candidates};
use crate::status::ExitStatus;
use keeper::program::set_apart;
use serde::Deserialize;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// More than any agent writes about an event.
const INPUT_BYTES_MAX: u64 = 1 << 20;
/// Reading a longer session takes noticeable time, while the agent waits.
const SESSION_BYTES_MAX: u64 = 64 << 20;
/// How long an agent may take to end.
const WAIT: &str = "10m";

/// The fields that we need of an agent's event.
#[derive(Deserialize)]
struct HookInput {
    /// Absent if the session is not stored.
    #[serde(default)]
    transcript_path: Option<PathBuf>,
}

pub(crate) fn run(hook: &HookArgs) -> ExitStatus {
    if let Err(error) = obey(hook) {
        eprint_message(&format!("hook: {error}"));
    }
    ExitStatus::Clean
}

fn obey(hook: &HookArgs) -> Result<(), String> {
    let mut text = Vec::new();
    io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut text).map_err(|error| error.to_string())?;
    let event: HookInput =
        serde_json::from_slice(&text).map_err(|error| format!("standard input: {error}"))?;
    // A new session has no file yet.
    let Some(path) = event.transcript_path.filter(|path| path.is_file()) else { return Ok(()) };
    match hook.event {
        HookEvent::Start => warn(hook, path),
        HookEvent::End => repair_later(&path),
    }
}

/// Prints what is wrong with the session, in the form that agents show to their users.
fn warn(hook: &HookArgs, path: PathBuf) -> Result<(), String> {
    let paths = [path];
    let looks = Looks::new(&hook.config.load()?, &paths);
    for candidate in candidates(&paths) {
        if candidate.path().metadata().is_ok_and(|there| there.len() > SESSION_BYTES_MAX) {
            continue;
        }
        let session = looks.session(&candidate, true).map_err(|error| error.to_string())?;
        if let Some(message) = session.as_ref().and_then(warning) {
            println!("{}", serde_json::json!({ "systemMessage": format!("Tailor: {message}") }));
        }
    }
    Ok(())
}

/// What is wrong with a session, and what to do about it; `None` if it can be resumed.
fn warning(session: &ListedSession) -> Option<String> {
    let agent = session.agent_name();
    let size = || format!("{} of {} tokens", grouped(session.tokens.unwrap_or(0)), grouped(session.window));
    let wrong = match &session.state {
        SessionState::Broken(codes) => format!("this session is broken ({})", codes.join(", ")),
        SessionState::Forgets(codes) => session.forgotten().map_or_else(
            || format!("{agent} forgets messages of this session ({})", codes.join(", ")),
            |text| format!("{agent} forgets messages of this session: {text}"),
        ),
        SessionState::Dead(codes) => {
            format!("{agent} does not load all of this session ({})", codes.join(", "))
        }
        SessionState::TooLong => format!("this session is too long for the model ({})", size()),
        _ if session.percent() >= NEARLY_FULL_PERCENT_MIN => {
            return Some(format!("this session is almost too long for the model ({}); compact it", size()));
        }
        _ => return None,
    };
    let command = session.command.as_deref()?;
    if command.starts_with("tailor explain") {
        return Some(format!("{wrong}. What can be done: {command}"));
    }
    let resume = session.resume().map(|(words, _)| format!("; {}", words.join(" ")));
    Some(format!("{wrong}. Quit {agent} and run: {command}{}", resume.unwrap_or_default()))
}

/// Starts a process that waits for the agent's end and then repairs the session.
fn repair_later(path: &Path) -> Result<(), String> {
    let agent = keeper::starter().to_string();
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["fix", "--wait", WAIT, "--after", &agent, "--"]).arg(path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    set_apart(&mut command);
    command.spawn().map(drop).map_err(|error| error.to_string())
}
