//! Whether a process may still hold the conversation in memory.
//!
//! An agent that does will continue with the old text, whatever the file says. If the model signs its thinking over the
//! messages before it, the next resume from the changed file is refused by the API. So what such a model sees is not changed
//! as long as a process may remember it: any process whose working folder is the session's folder or the agent's own. Claude
//! Code is exempt, because its register says who uses a session, and OpenClaw, because it reads the file again for each turn.

use super::openclaw;
use super::target::{GateTarget, first_line, quiet_for};
use crate::ask::deferral::Deferral;
use crate::ask::running::AgentLife;
use crate::platform::identity::FileId;
use crate::platform::metadata::{self, Metadata};
use crate::platform::owner::{self, User};
use crate::platform::process;
use crate::platform::{System, This};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How many bytes of the first line are searched for the session's folder.
const HEADER_BYTES_MAX: usize = 1 << 20;

/// Programs that often run in a project's folder and are not agents.
const OTHERS: &[&str] = &[
    "bash",
    "dash",
    "emacs",
    "fish",
    "git",
    "less",
    "login",
    "man",
    "nano",
    "nvim",
    "screen",
    "sh",
    "ssh",
    "sshd",
    "sudo",
    "su",
    "systemd",
    "tailor",
    "tmux: client",
    "tmux: server",
    "vi",
    "vim",
    "zsh",
];

/// Why what the model sees must not change yet; `None` if no process can remember it. If some processes cannot be seen, they
/// are taken to have forgotten a file that was not written to for `wanted`.
pub(crate) fn waits(target: &GateTarget<'_>, wanted: Duration) -> Option<Deferral> {
    let format = target.facts.format?;
    if format.gates_know_memory || openclaw::is_openclaws(target.path) {
        return None;
    }
    if !This::shows_files() {
        return AgentLife::of_format(format).remembers(quiet_for(target.metadata, SystemTime::now()), wanted);
    }
    let works_here = session_folder(target).and_then(|folder| metadata::at(&folder).ok());
    let mut homes = format.roots.iter().map(|root| Path::new(root.home));
    let home = homes.find_map(|home| target.path.ancestors().find(|above| above.ends_with(home)));
    let folders: Vec<Metadata> =
        works_here.iter().cloned().chain(home.and_then(|home| metadata::at(home).ok())).collect();
    let seen = find_worker(&folders, owner::user(target.metadata));
    if let Some((pid, name)) = seen.worker {
        return Some(Deferral::Remembered { pid, name });
    }
    let all_seen = works_here.is_some() && !seen.hidden && process::sees_all();
    let quiet = quiet_for(target.metadata, SystemTime::now());
    (!all_seen && quiet < wanted).then_some(Deferral::MayRemember { quiet, wanted })
}

/// The folder in which the agent worked, from the first line of the transcript.
fn session_folder(target: &GateTarget<'_>) -> Option<PathBuf> {
    let line = first_line(target.file, HEADER_BYTES_MAX).ok()??;
    let header: serde_json::Value = serde_json::from_slice(&line).ok()?;
    Some(PathBuf::from(header.get("cwd")?.as_str()?))
}

/// What a look at all processes shows.
#[derive(Default)]
struct SeenProcesses {
    /// One whose working folder is among those asked for: its id and name.
    worker: Option<(u32, String)>,
    /// Whether a process of the same user hides its working folder.
    hidden: bool,
}

fn find_worker(folders: &[Metadata], user: User) -> SeenProcesses {
    let mut seen = SeenProcesses::default();
    // The program that started us is asking for the repair, so it is not at work on the session.
    let ours = process::ancestors(std::process::id());
    for pid in process::all().filter(|pid| !ours.contains(pid)) {
        match process::working_folder(pid) {
            Ok(at) => {
                let same = |folder: &Metadata| FileId::from_metadata(folder) == FileId::from_metadata(&at);
                let name = process::name(pid);
                if folders.iter().any(same) && !OTHERS.contains(&name.trim_start_matches('-')) {
                    seen.worker = Some((pid, name));
                    return seen;
                }
            }
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
                seen.hidden |= process::is_of(pid, user);
            }
            // It has exited, or is a kernel thread.
            Err(_) => {}
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::gate::target::tests::GateCase;
    use crate::spawned::spawn;
    use std::fs;
    use std::process::Command;

    fn session(folder: &Path) -> String {
        format!(
            "{{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"cwd\":{}}}\n",
            serde_json::Value::from(folder.to_str().unwrap())
        )
    }

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn a_process_in_the_folder_of_the_session_may_remember_it() {
        let dir = tempfile::tempdir().unwrap();
        let (work, home) = (dir.path().join("w"), dir.path().join(".pi/agent"));
        fs::create_dir_all(&work).unwrap();
        let case = GateCase::new(home.join("sessions/s.jsonl"), &session(&work));
        for folder in [&work, &home] {
            let mut agent = spawn(Command::new("sleep").arg("60").current_dir(folder));
            // Until it runs its own program it has our name.
            while process::name(agent.id()) != "sleep" {
                std::thread::yield_now();
            }
            let found = waits(&case.target(), Duration::ZERO);
            agent.kill().unwrap();
            agent.wait().unwrap();
            assert_eq!(found, Some(Deferral::Remembered { pid: agent.id(), name: "sleep".into() }));
        }
        assert_eq!(waits(&case.target(), Duration::ZERO), None);
    }

    #[test]
    fn a_shell_in_the_folder_remembers_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let case = GateCase::new(dir.path().join("s.jsonl"), &session(dir.path()));
        let mut shell = spawn(
            Command::new("sh")
                .args(["-c", "read line"])
                .current_dir(dir.path())
                .stdin(std::process::Stdio::piped()),
        );
        while !["sh", "dash", "bash"].contains(&process::name(shell.id()).as_str()) {
            std::thread::yield_now();
        }
        let found = waits(&case.target(), Duration::ZERO);
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(found, None);
    }

    #[test]
    fn who_is_not_seen_forgets_after_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = GateCase::new(dir.path().join("s.jsonl"), &session(&dir.path().join("not here")));
        assert!(matches!(waits(&elsewhere.target(), DAY), Some(Deferral::MayRemember { wanted: DAY, .. })));
        assert_eq!(waits(&elsewhere.target(), Duration::ZERO), None);
        // With the folder there, only processes that we cannot see are in doubt.
        let here = GateCase::new(dir.path().join("here.jsonl"), &session(dir.path()));
        let found = waits(&here.target(), DAY);
        assert_eq!(
            found.is_some(),
            !process::sees_all() || find_worker(&[], owner::user(&here.metadata)).hidden
        );
    }

    #[test]
    fn openclaw_reads_the_file_again() {
        let dir = tempfile::tempdir().unwrap();
        let case = GateCase::new(
            dir.path().join(".openclaw/agents/main/sessions/s.jsonl"),
            &session(Path::new("/nowhere")),
        );
        assert_eq!(waits(&case.target(), DAY), None);
    }
}
