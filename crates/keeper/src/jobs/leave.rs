//! Permission to replace a file: everything that is checked before anything is written.

use crate::ask::deferral::Deferral;
use crate::ask::gate::{self, GateTarget, Pass};
use crate::ask::stop::Stop;
use crate::ask::writers;
use crate::options::{Mode, Options};
use crate::platform::{self, mounts};
use crate::swap::content::FileContent;
use crate::swap::snapshot::{Snapshot, as_owner};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};
use transcript::Facts;
use transcript::format::Gate;

/// Gates to ask first, in every format, if a run changes the conversation and does not only repair it.
pub(crate) const CONVERSATION_GATES: &[Gate] = &[Gate::RunInProgress];

/// How long after a write a file counts as in use.
const FRESH: Duration = Duration::from_secs(5);

/// Permission to replace the file, or why not. Asks the gates in `more` first.
pub(crate) fn may_write(
    snapshot: &Snapshot,
    facts: &Facts,
    options: &Options,
    more: &[Gate],
) -> Result<Pass, Stop> {
    snapshot.refusal().map_or(Ok(()), Err)?;
    let gates = [more, facts.format.map_or(&[][..], |format| format.gates)].concat();
    let pass = gate::pass(
        &gates,
        &target(snapshot, &snapshot.file, facts, options.mode == Mode::Fix),
        options.settle,
    )?;
    // Last, because it reads the mounts of all processes.
    mounts::refusal(&snapshot.path, &snapshot.file).map_or(Ok(pass), |refusal| Err(refusal.into()))
}

/// Whether the file could be replaced now, for a dry run. Writes nothing.
pub(crate) fn could_write(
    snapshot: &Snapshot,
    facts: &Facts,
    options: &Options,
    more: &[Gate],
) -> Result<(), Stop> {
    if snapshot.is_locked() {
        return Err(Deferral::OtherTailor.into());
    }
    let _pass = may_write(snapshot, facts, options, more)?;
    writers::keep_out(&snapshot.path, &snapshot.file, &snapshot.metadata, writers::PATIENCE).map(drop)
}

/// Whether an agent says that it is at work on a file, or the file has just been written to. Creates no lock.
pub fn is_in_use(path: &Path, facts: &Facts) -> bool {
    let (Ok(_acting), Ok(path)) = (as_owner(path), platform::metadata::real_path(path)) else { return false };
    let (Ok(snapshot), Some(format)) = (Snapshot::open(&path, None), facts.format) else { return false };
    let pass = gate::pass(format.gates, &target(&snapshot, &snapshot.file, facts, false), Duration::ZERO);
    gate::quiet_for(&snapshot.metadata, SystemTime::now()) < FRESH || matches!(pass, Err(Stop::Deferred(_)))
}

/// Why to wait because an agent may hold the conversation in memory; `None` if none can, or if it does not matter. A `settle`
/// of 0 means that no agent is running.
pub(crate) fn may_be_remembered(content: &FileContent, facts: &Facts, options: &Options) -> Option<Deferral> {
    if options.settle.is_zero() || options.policy.reloads(facts.format) {
        return None;
    }
    let file = content.file().ok()?;
    gate::memory::waits(&target(content, &file, facts, false), options.memory_settle)
}

/// Defers a session in a store only within a turn: its agent reads it again before the next one.
pub(crate) fn may_be_in_turn(content: &FileContent, facts: &Facts, options: &Options) -> Option<Deferral> {
    gate::run(facts, gate::quiet_for(&content.metadata, SystemTime::now()), options.settle)
}

fn target<'a>(
    content: &'a FileContent,
    file: &'a File,
    facts: &'a Facts,
    makes_locks: bool,
) -> GateTarget<'a> {
    let FileContent { path, metadata, .. } = content;
    GateTarget { path, file, metadata, facts, makes_locks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawned::spawn;
    use std::process::Command;

    #[test]
    fn what_an_agent_says_shows_that_a_file_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let line = "{\"type\":\"session.start\",\"data\":{\"sessionId\":\"s\",\"version\":1,\"producer\":\"copilot-agent\"},\"id\":\"e\",\"timestamp\":\"2026-08-01T10:00:00.010Z\",\"parentId\":null}\n";
        std::fs::write(&path, line).unwrap();
        let facts = transcript::examine(&line.as_bytes(), &transcript::Policy::default()).unwrap().facts;
        assert!(facts.format.is_some());
        assert!(is_in_use(&path, &facts), "it was written just now");
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(!is_in_use(&path, &facts));
        std::fs::write(dir.path().join(format!("inuse.{}.lock", std::process::id())), "").unwrap();
        assert!(is_in_use(&path, &facts));
    }

    /// What was a session may be something else by now.
    #[test]
    fn a_named_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        assert!(spawn(Command::new("mkfifo").arg(&path)).wait().unwrap().success());
        let facts = transcript::examine(&&b""[..], &transcript::Policy::default()).unwrap().facts;
        assert!(!is_in_use(&path, &facts));
    }
}
