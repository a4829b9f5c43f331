//! Claude Code's register of running sessions.
//!
//! Each running Claude Code keeps `sessions/<pid>.json` below its folder, with the session that it has open, its start time,
//! and what it is doing. It opens the transcript anew for each write and takes no lock, so this register is the only sign
//! of it. An entry is a reason to wait, but its absence proves nothing: after `/clear` or `--continue` it may name another
//! session.
//!
//! Claude Code also compacts its own file: it writes a copy without dead lines, `<file>.compact.tmp.<8 hex>`, and renames it
//! over the file. That takes seconds, and it gives up if the file was replaced meanwhile. `<session>/resume-head.jsonl`, where
//! it keeps offsets into the file, needs no care: if they are wrong, it reads the whole file.

use super::target::{
    GateAnswer, GateTarget, LockFile, default_root, first_line, is_plain_name, open_unless, pid_of,
    quiet_for, root_above, stem,
};
use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::platform::{ProcessState, metadata, process};
use serde::Deserialize;
use std::fs::{DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What a running session may be doing. Other words are not shown to the user.
const STATES: &[&str] = &["idle", "busy", "shell", "waiting"];

/// The part of a copy's name between the name of the file and the hex digits.
const COPY: &str = ".compact.tmp.";

/// Age from which a copy counts as left behind. Claude Code syncs a copy before it renames it, and leaves it there if it is
/// killed.
const COPY_MAX: Duration = Duration::from_secs(5 * 60);

/// How many bytes of the first line of a sidechain are searched for its session.
const LINE_BYTES_MAX: usize = 1 << 20;

pub(super) fn ask(target: &GateTarget<'_>) -> GateAnswer {
    if let Some(deferral) = compacting(target.path) {
        return Err(deferral.into());
    }
    let root = root_above(target.path, "projects", 2).map(Path::to_path_buf);
    let root = root.or_else(|| default_root("CLAUDE_CONFIG_DIR", ".claude"));
    let (Some(root), Some(session)) = (root, session(target)) else { return Ok(None) };
    open_unless(user_of(&session, &root.join("sessions"))?)
}

/// Why to wait for a compaction of the file by Claude Code itself, if one may be under way.
fn compacting(path: &Path) -> Option<Deferral> {
    let name = path.file_name()?.to_str()?;
    let is_copy = |entry: &DirEntry| {
        let own = entry.file_name();
        let digits = own.to_str().and_then(|own| own.strip_prefix(name)?.strip_prefix(COPY));
        digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    let copies = std::fs::read_dir(path.parent()?).ok()?.flatten().filter(is_copy);
    let ages =
        copies.filter_map(|copy| Some(quiet_for(&metadata::of_link(&copy.path()).ok()?, SystemTime::now())));
    let age = ages.min().filter(|age| *age < COPY_MAX)?;
    Some(Deferral::Compacting { age, grace: COPY_MAX })
}

/// The session that a transcript belongs to. A sidechain belongs to the session that started its agent.
fn session(target: &GateTarget<'_>) -> Option<String> {
    let own = stem(target.path)?;
    if !own.starts_with("agent-") {
        return Some(own.to_string());
    }
    let subagents = |folder: &&Path| folder.file_name().is_some_and(|name| name == "subagents");
    let above = target.path.ancestors().find(subagents).and_then(Path::parent);
    let above = above.and_then(Path::file_name).and_then(|name| name.to_str()).map(str::to_string);
    // Releases 2.0.x keep sidechains beside the sessions, so only their lines name the session.
    above.or_else(|| first_session(target.file)).filter(|name| is_plain_name(name))
}

#[derive(Deserialize)]
struct SessionLine {
    #[serde(rename = "sessionId")]
    session: String,
}

fn first_session(file: &File) -> Option<String> {
    let line = first_line(file, LINE_BYTES_MAX).ok()??;
    serde_json::from_slice::<SessionLine>(&line).ok().map(|line| line.session)
}

/// The running process that has the session open, by the register. Entries that are not valid JSON are ignored.
fn user_of(session: &str, register: &Path) -> Result<Option<Deferral>, Error> {
    let fail = |cause| Error::new(register, "look into Claude Code's register of sessions", cause);
    let inside = match std::fs::read_dir(register) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(fail)?,
    };
    for entry in inside {
        let name = PathBuf::from(entry.map_err(fail)?.file_name());
        let number = name.file_stem().and_then(|stem| stem.to_str()?.parse::<u32>().ok());
        let json = name.extension().is_some_and(|extension| extension == "json");
        if let Some(number) = number.filter(|_| json)
            && let Some(deferral) = running(&register.join(&name), number, session)?
        {
            return Ok(Some(deferral));
        }
    }
    Ok(None)
}

fn running(path: &Path, number: u32, session: &str) -> Result<Option<Deferral>, Error> {
    let Some(json) = LockFile::read(path)?.and_then(|note| note.json()) else { return Ok(None) };
    if json.get("sessionId").and_then(|id| id.as_str()) != Some(session) {
        return Ok(None);
    }
    let pid = pid_of(json.get("pid")).unwrap_or(number);
    let start = json.get("procStart");
    let start = start.and_then(|start| start.as_u64().or_else(|| start.as_str()?.parse().ok()));
    let status = json.get("status").and_then(|status| status.as_str());
    let status = STATES.iter().copied().find(|state| Some(*state) == status);
    let found = Deferral::InUse { agent: "Claude Code", pid, status };
    Ok((process::life(pid, start) == ProcessState::Alive).then_some(found))
}

#[cfg(test)]
mod tests {
    use super::super::target::tests::{GateCase, deferral, is_open};
    use super::*;
    use crate::spawned::dead;
    use serde_json::{Value, json};
    use std::fs;

    fn root() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sessions")).unwrap();
        dir
    }

    fn case(dir: &tempfile::TempDir, name: &str, text: &str) -> GateCase {
        GateCase::new(dir.path().join("projects").join(name), text)
    }

    fn register(dir: &tempfile::TempDir, name: &str, entry: &Value) {
        fs::write(dir.path().join("sessions").join(name), entry.to_string()).unwrap();
    }

    fn entry(session: &str, start: &Value) -> Value {
        json!({"pid": std::process::id(), "sessionId": session, "procStart": start, "status": "busy"})
    }

    fn own_start() -> u64 {
        process::start(std::process::id()).unwrap()
    }

    #[test]
    fn a_live_session_is_in_use() {
        let (dir, pid) = (root(), std::process::id());
        let case = case(&dir, "-w/5e.jsonl", "x");
        for start in [json!(own_start()), json!(own_start().to_string()), Value::Null] {
            register(&dir, "7.json", &entry("5e", &start));
            let found = deferral(ask(&case.target()));
            assert_eq!(found, Deferral::InUse { agent: "Claude Code", pid, status: Some("busy") });
        }
        register(&dir, "7.json", &json!({"pid": pid, "sessionId": "5e", "status": "\u{1b}[2J"}));
        assert!(matches!(deferral(ask(&case.target())), Deferral::InUse { status: None, .. }));
    }

    #[test]
    fn a_file_that_is_being_compacted_waits_until_the_copy_counts_as_left_behind() {
        let dir = root();
        let case = case(&dir, "-w/5e.jsonl", "x");
        let write = |name: &str| {
            let path = dir.path().join("projects/-w").join(name);
            fs::write(&path, "").unwrap();
            File::options().write(true).open(path).unwrap()
        };
        // Of another session, and not called as copies are.
        write("5f.jsonl.compact.tmp.0a1b2c3d");
        write("5e.jsonl.compact.tmp.mine");
        assert!(is_open(&ask(&case.target())));
        let copy = write("5e.jsonl.compact.tmp.0a1b2c3d");
        let found = deferral(ask(&case.target()));
        assert!(matches!(found, Deferral::Compacting { grace: COPY_MAX, .. }), "{found}");
        copy.set_modified(SystemTime::now() - COPY_MAX).unwrap();
        assert!(is_open(&ask(&case.target())), "nobody writes to it any more");
    }

    #[test]
    fn others_are_not() {
        let dir = root();
        let case = case(&dir, "-w/5e.jsonl", "x");
        register(&dir, "1.json", &entry("5f", &json!(own_start())));
        register(&dir, "2.json", &entry("5e", &json!(1)));
        register(&dir, "3.json", &json!({"pid": dead(), "sessionId": "5e"}));
        fs::write(dir.path().join("sessions/4.json"), "{\"sessionId\":\"5e\"").unwrap();
        register(&dir, "5.json", &json!([]));
        register(&dir, "6.txt", &entry("5e", &Value::Null));
        register(&dir, "x.json", &entry("5e", &Value::Null));
        assert!(is_open(&ask(&case.target())));
        fs::remove_dir_all(dir.path().join("sessions")).unwrap();
        assert!(is_open(&ask(&case.target())));
    }

    #[test]
    fn a_sidechain_is_used_by_its_parent() {
        let dir = root();
        let line = format!("{{\"sessionId\":\"5e\",\"odd\":\"{}\"}}\nx", "\\ud800");
        for name in [
            "-w/5e/subagents/agent-a.jsonl",
            "-w/5e/subagents/workflows/run/agent-a.jsonl",
            "-w/agent-a.jsonl",
        ] {
            let case = case(&dir, name, &line);
            register(&dir, "1.json", &entry("5f", &Value::Null));
            assert!(is_open(&ask(&case.target())), "{name}");
            register(&dir, "1.json", &entry("5e", &Value::Null));
            assert!(matches!(deferral(ask(&case.target())), Deferral::InUse { .. }), "{name}");
        }
        let unknown = case(&dir, "-w/agent-b.jsonl", "{}\n");
        assert!(is_open(&ask(&unknown.target())));
    }

    #[test]
    fn the_nearest_projects_folder_counts() {
        let dir = root();
        let case = case(&dir, "mine/.claude/projects/-w/5e.jsonl", "x");
        register(&dir, "1.json", &entry("5e", &Value::Null));
        assert!(is_open(&ask(&case.target())), "that register is another folder's");
    }
}
