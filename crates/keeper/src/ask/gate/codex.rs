//! Codex's locks, and the descriptor that it holds open.
//!
//! A running Codex keeps one descriptor open and appends through it. If the file were replaced meanwhile, all later lines
//! would be lost with the old file. So it is replaced only while nothing writes to it: we take the locks that Codex itself
//! takes for maintenance (`rollout/src/maintenance.rs`) and for writing a thread (`thread-store/src/local/writer_lock.rs`).
//! Older releases take no locks, so a lease must also show that no program has the file open for writing. Where there are no
//! leases and processes of the file's owner hide what they have open, the file counts as closed only after the quiet time
//! that Codex itself requires before it compresses a file. A file outside Codex's folder is a copy that no Codex has open.
//!
//! A database and the threads that were forked from it hold byte offsets into a thread with a paginated history. Its lines have
//! to stay where they are, so a new text of another length is refused.

use super::target::{GateAnswer, GateTarget, HeldLock, first_line, is_plain_name, regular, root_above};
use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::stop::Stop;
use crate::ask::writers;
use crate::base::refusal::Refusal;
use crate::platform::metadata::Metadata;
use crate::platform::{System, This, owner, process, writing};
use serde::Deserialize;
use serde_json::Value;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

const AGENT: &str = "Codex";

/// How long a file must have been quiet if a process that we cannot see may have it open: what
/// `rollout/src/compression.rs` calls cold.
const COLD: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Pause and number of tries for the lock that Codex holds only while it opens or closes a thread's lock.
const COORDINATION: (Duration, usize) = (Duration::from_millis(25), 40);

/// How many bytes of the first line are read at most; it holds the instructions of the session.
const LINE_BYTES_MAX: usize = 4 << 20;

/// `quiet` is how long ago the file was written to; `None` if the user says that no agent is running.
pub(super) fn ask(target: &GateTarget<'_>, quiet: Option<Duration>) -> GateAnswer {
    let fail = |cause| Error::new(target.path, "read the first line", cause);
    let line = first_line(target.file, LINE_BYTES_MAX).map_err(fail)?;
    // A byte order mark is damage, but the line after it still describes the thread.
    let line = line.as_deref().map(|line| line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line));
    let (thread, keeps_length) = thread(line)?;
    let Some(home) = home(target.path) else { return Ok(None) };
    let mut locks = Locks::take(home, &thread, target)?;
    locks.keeps_length = keeps_length;
    // The locks come first, so that a Codex that opens the file after this check has to wait for them.
    // One that has it open keeps it open for as long as it runs, so there is no point in waiting here.
    let lease = writers::keep_out(target.path, target.file, target.metadata, Duration::ZERO)?;
    match quiet.filter(|_| lease.is_none()).and_then(|quiet| unseen(target.metadata, quiet)) {
        Some(unseen) => Err(unseen.into()),
        None => Ok(Some(Box::new(locks))),
    }
}

/// Codex's folder, if the file lies in it.
fn home(path: &Path) -> Option<&Path> {
    root_above(path, "sessions", 1).or_else(|| root_above(path, "archived_sessions", 1))
}

#[derive(Deserialize)]
struct RolloutLine {
    #[serde(rename = "type")]
    kind: Option<String>,
    ordinal: Option<u64>,
    /// In early releases lines had no types, and this whole line is the header.
    id: Option<String>,
    payload: Option<RolloutHeader>,
}

#[derive(Deserialize)]
struct RolloutHeader {
    id: Option<String>,
    history_mode: Option<String>,
    history_base: Option<Value>,
}

/// The id of the thread, if its history is of a kind that may be changed, and whether something holds byte offsets into it.
fn thread(line: Option<&[u8]>) -> Result<(String, bool), Refusal> {
    let line = line.and_then(|line| serde_json::from_slice::<RolloutLine>(line).ok());
    let RolloutLine { kind, ordinal, id, payload } = line.ok_or(Refusal::UnknownHistory)?;
    let (id, mode, base) = match (kind.as_deref(), payload) {
        (Some("session_meta"), Some(header)) => (header.id, header.history_mode, header.history_base),
        (None, None) => (id, None, None),
        _ => return Err(Refusal::UnknownHistory),
    };
    let keeps_length = match mode.as_deref() {
        None | Some("legacy") => ordinal.is_some() || base.is_some_and(|base| !base.is_null()),
        Some("paginated") => true,
        Some(_) => return Err(Refusal::UnknownHistory),
    };
    let id = id.filter(|id| is_plain_name(id)).ok_or(Refusal::UnknownHistory)?;
    Ok((id, keeps_length))
}

/// Why to wait because a process of the file's owner, one that hides its open files, may have it open.
fn unseen(metadata: &Metadata, quiet: Duration) -> Option<Deferral> {
    // Where none of them shows that, the list of programs was asked before.
    let processes =
        if quiet < COLD && This::shows_files() { process::unseen(owner::user(metadata)) } else { 0 };
    (processes > 0).then_some(Deferral::Unseen { processes, quiet, wanted: COLD })
}

/// Those of Codex's locks that exist in its folder, held.
struct Locks {
    maintenance: Option<File>,
    /// The lock of the thread, with its path if we created it and so have to remove it.
    thread: Option<(File, Option<PathBuf>)>,
    folder: PathBuf,
    keeps_length: bool,
}

impl HeldLock for Locks {
    fn keeps_length(&self) -> Option<&'static str> {
        self.keeps_length
            .then_some("Codex keeps byte offsets into it (paginated history), and its lines would move")
    }
}

impl Locks {
    fn take(home: &Path, thread: &str, target: &GateTarget<'_>) -> Result<Self, Stop> {
        let busy = |lock| Err(Deferral::Busy { agent: AGENT, lock }.into());
        if home.join("rollout-migrations").join(format!("{thread}.pending")).exists() {
            return busy("migration journal for this thread");
        }
        let mut locks = Self {
            maintenance: None,
            thread: None,
            folder: home.join("thread-writer-locks"),
            keeps_length: false,
        };
        if let Some((file, _)) = open(&home.join(".tmp/rollout-maintenance.lock"), target)? {
            if !try_lock(&file, &home.join(".tmp"))? {
                return busy("maintenance lock");
            }
            locks.maintenance = Some(file);
        }
        // Codex opens, locks and removes the locks of threads only while it holds this lock.
        let path = locks.folder.join(".coordination.lock");
        let Some((coordination, _)) = open(&path, target)? else { return Ok(locks) };
        if !wait_for(&coordination, &path)? {
            return busy("lock for opening threads");
        }
        let taken = locks.take_thread(thread, target);
        let _ = coordination.unlock();
        taken?.map_or(Ok(locks), |deferral| Err(deferral.into()))
    }

    /// Takes the lock of the thread. Returns why to wait if another process holds it: for the end of that process, if it can be
    /// seen.
    fn take_thread(&mut self, thread: &str, target: &GateTarget<'_>) -> Result<Option<Deferral>, Error> {
        let path = self.folder.join(format!("{thread}.lock"));
        let Some((file, made)) = open(&path, target)? else { return Ok(None) };
        if try_lock(&file, &path)? {
            self.thread = Some((file, made.then_some(path)));
            return Ok(None);
        }
        let holder = process::lock_holder(&file).and_then(|pid| pid.parse().ok());
        Ok(Some(match holder {
            Some(pid) => Deferral::InUse { agent: AGENT, pid, status: None },
            None => Deferral::Busy { agent: AGENT, lock: "writer lock for this thread" },
        }))
    }
}

impl Drop for Locks {
    /// Codex removes the lock file of a thread when it is done, while it holds the coordination lock. We do the same with
    /// one that we created. All are unlocked explicitly: a child process that has not run `exec` yet may share the
    /// descriptors, so closing them is not enough.
    fn drop(&mut self) {
        if let Some((thread, made)) = &self.thread {
            let coordination = writing::open_lock(&self.folder.join(".coordination.lock"), false);
            let coordination = coordination.and_then(regular).ok().filter(|file| file.try_lock().is_ok());
            if let (Some(_), Some(path)) = (&coordination, made) {
                let _ = std::fs::remove_file(path);
            }
            let _ = thread.unlock();
            coordination.map(|file| file.unlock());
        }
        self.maintenance.as_ref().map(File::unlock);
    }
}

/// Opens a lock file, created if need be; also returns whether it was. `None` if there is none and it must not be created:
/// its folder is Codex's to create. Folders and locks may be links, because accounts share them, but nothing is created
/// through a link.
fn open(path: &Path, target: &GateTarget<'_>) -> Result<Option<(File, bool)>, Error> {
    let fail = |cause| Error::new(path, "open the lock", cause);
    if path.parent().is_none_or(|folder| !folder.is_dir()) {
        return Ok(None);
    }
    match writing::open_lock(path, target.makes_locks).and_then(regular) {
        Ok(file) => return Ok(Some((file, false))),
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(fail(cause)),
        Err(_) if !target.makes_locks => return Ok(None),
        Err(_) => {}
    }
    let file = match writing::create_private(path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            return writing::open_lock(path, false)
                .and_then(regular)
                .map(|file| Some((file, false)))
                .map_err(fail);
        }
        other => other.map_err(fail)?,
    };
    Ok(Some((file, true)))
}

/// Takes a lock unless another process holds it.
fn try_lock(file: &File, path: &Path) -> Result<bool, Error> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(cause)) => Err(Error::new(path, "take the lock", cause)),
    }
}

/// Waits for a lock that is only ever held for a short time.
fn wait_for(file: &File, path: &Path) -> Result<bool, Error> {
    let (pause, attempts) = COORDINATION;
    for _ in 0..attempts {
        if try_lock(file, path)? {
            return Ok(true);
        }
        sleep(pause);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::super::target::tests::{GateCase, deferral};
    use super::*;
    use crate::ask::gate::Pass;
    use crate::base::step::fault::{self, StepFault};
    use crate::disk::new_text::{NewText, copy_span};
    use crate::spawned::NO_FORKS;
    use crate::swap::replace::replace;
    use crate::swap::snapshot::Snapshot;
    use crate::vault::{Pending, Swap, Vault};
    use std::{fs, io};
    use transcript::Span;

    const ID: &str = "0199-aa";

    fn header(rest: &str) -> String {
        format!(
            "{{\"timestamp\":\"t\",\"type\":\"session_meta\",\"payload\":{{\"id\":\"{ID}\",\"odd\":\"\\ud800\"{rest}}}}}\n{{}}\n"
        )
    }

    /// A rollout in a folder of Codex's with these folders beside.
    fn case(folders: &[&str], text: &str) -> (tempfile::TempDir, GateCase) {
        let dir = tempfile::tempdir().unwrap();
        let case = GateCase::new(dir.path().join("sessions/2026/08/01/rollout-x.jsonl"), text);
        for folder in folders {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        (dir, case)
    }

    const BOTH: &[&str] = &[".tmp", "thread-writer-locks"];

    fn hold(dir: &tempfile::TempDir, name: &str) -> File {
        let path = dir.path().join(name);
        let file = File::options().write(true).create(true).truncate(false).open(path).unwrap();
        file.try_lock().unwrap();
        file
    }

    fn names(dir: &tempfile::TempDir, folder: &str) -> Vec<String> {
        let inside = fs::read_dir(dir.path().join(folder)).unwrap();
        let mut names: Vec<String> =
            inside.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn locks_are_taken_and_given_back() {
        let _forks = NO_FORKS.read();
        let (dir, case) = case(BOTH, &header(""));
        let held = ask(&case.target(), Some(COLD)).unwrap().unwrap();
        let busy = |name: &str| {
            let file = File::open(dir.path().join(name)).unwrap();
            file.try_lock().map(|()| file.unlock().unwrap()).is_err()
        };
        assert!(busy(".tmp/rollout-maintenance.lock"));
        assert!(busy(&format!("thread-writer-locks/{ID}.lock")));
        assert!(!busy("thread-writer-locks/.coordination.lock"), "others may open their threads");
        drop(held);
        assert!(!busy(".tmp/rollout-maintenance.lock"));
        assert_eq!(names(&dir, "thread-writer-locks"), [".coordination.lock"]);
        // One that was there stays.
        fs::write(dir.path().join(format!("thread-writer-locks/{ID}.lock")), "").unwrap();
        drop(ask(&case.target(), Some(COLD)).unwrap());
        assert!(!busy(&format!("thread-writer-locks/{ID}.lock")));
    }

    #[test]
    fn folders_are_codexs_to_make() {
        let _forks = NO_FORKS.read();
        let (dir, case) = case(&[], &header(""));
        assert!(ask(&case.target(), Some(COLD)).is_ok());
        assert_eq!(names(&dir, ""), ["sessions"]);
        let elsewhere = GateCase::new(dir.path().join("copy/rollout-x.jsonl"), &header(""));
        assert!(ask(&elsewhere.target(), Some(COLD)).unwrap().is_none());
    }

    #[test]
    fn a_lock_that_is_held_holds() {
        let (dir, case) = case(BOTH, &header(""));
        let said = |lock: &str| match deferral(ask(&case.target(), Some(COLD))) {
            Deferral::Busy { agent: AGENT, lock: said } => assert_eq!(said, lock),
            other => panic!("{other}"),
        };
        let maintenance = hold(&dir, ".tmp/rollout-maintenance.lock");
        said("maintenance lock");
        maintenance.unlock().unwrap();
        let thread = hold(&dir, &format!("thread-writer-locks/{ID}.lock"));
        let (waits, own) = (deferral(ask(&case.target(), Some(COLD))), std::process::id());
        // Where the holder can be seen, its end is waited for.
        let is_seen = process::lock_holder(&thread).is_some();
        let waits_for_end = matches!(waits, Deferral::InUse { agent: AGENT, pid, .. } if pid == own);
        assert_eq!(waits_for_end, is_seen, "{waits}");
        thread.unlock().unwrap();
        let coordination = hold(&dir, "thread-writer-locks/.coordination.lock");
        said("lock for opening threads");
        coordination.unlock().unwrap();
        fs::create_dir(dir.path().join("rollout-migrations")).unwrap();
        fs::write(dir.path().join(format!("rollout-migrations/{ID}.pending")), "").unwrap();
        said("migration journal for this thread");
    }

    #[test]
    fn a_writer_without_a_lock_is_found() {
        let _forks = NO_FORKS.read();
        let (_dir, case) = case(BOTH, &header(""));
        let writer = File::options().append(true).open(&case.path).unwrap();
        let own = std::process::id();
        assert!(
            matches!(deferral(ask(&case.target(), Some(COLD))), Deferral::Open { pid, .. } if pid == own)
        );
        drop(writer);
        let _reader = File::open(&case.path).unwrap();
        assert!(ask(&case.target(), Some(COLD)).is_ok(), "a reader loses nothing");
    }

    /// Asked where no leases are to be had.
    fn ask_without_lease(case: &GateCase, quiet: Option<Duration>) -> GateAnswer {
        let fault = StepFault::Error { at: 0, errno: libc::EACCES };
        fault::with(Some(fault), || ask(&case.target(), quiet)).0
    }

    #[test]
    fn a_lease_tells_what_processes_hide() {
        let _forks = NO_FORKS.read();
        let (_dir, case) = case(BOTH, &header(""));
        assert!(ask(&case.target(), Some(Duration::ZERO)).is_ok());
        // Without one only the processes of the file's owner matter, until the file is cold or somebody says that no
        // agent is running. Root sees all of its own, as a rule.
        let hidden = process::unseen(owner::user(&case.metadata)) > 0;
        let found = ask_without_lease(&case, Some(Duration::ZERO)).err();
        let found_hidden = matches!(
            found,
            Some(Stop::Deferred(Deferral::Unseen { wanted: COLD, quiet: Duration::ZERO, .. }))
        );
        assert_eq!((found_hidden, found.is_some()), (hidden, hidden), "{found:?}");
        assert!(ask_without_lease(&case, Some(COLD)).is_ok());
        assert!(ask_without_lease(&case, None).is_ok());
    }

    #[test]
    fn without_leases_a_writer_that_is_seen_holds_whatever_somebody_says() {
        let (_dir, case) = case(BOTH, &header(""));
        let _writer = File::options().append(true).open(&case.path).unwrap();
        assert!(matches!(deferral(ask_without_lease(&case, None)), Deferral::Open { .. }));
    }

    #[test]
    fn a_dry_run_makes_no_locks() {
        let _forks = NO_FORKS.read();
        let (dir, case) = case(BOTH, &header(""));
        let dry = GateTarget { makes_locks: false, ..case.target() };
        assert!(ask(&dry, Some(COLD)).is_ok());
        assert!(names(&dir, ".tmp").is_empty() && names(&dir, "thread-writer-locks").is_empty());
        let held = hold(&dir, ".tmp/rollout-maintenance.lock");
        assert!(matches!(deferral(ask(&dry, Some(COLD))), Deferral::Busy { .. }));
        drop(held);
    }

    #[test]
    fn the_first_line_says_whether_lines_may_move() {
        let _forks = NO_FORKS.read();
        let refusal = |text: &str| match ask(&case(BOTH, text).1.target(), Some(COLD)) {
            Err(Stop::Refused(refusal)) => refusal,
            Err(stop) => panic!("{stop}"),
            Ok(_) => panic!("the gate is open: {text}"),
        };
        let held = |text: &str| {
            let case = case(BOTH, text);
            let held = ask(&case.1.target(), Some(COLD)).unwrap().unwrap();
            held.keeps_length()
        };
        assert_eq!(held(&header("")), None);
        for text in [
            header(r#","history_mode":"paginated""#),
            header(r#","history_base":{"end_byte_offset":7}"#),
            header("").replace("\"timestamp\"", "\"ordinal\":0,\"timestamp\""),
        ] {
            assert!(held(&text).is_some_and(|why| why.contains("byte offsets")), "{text}");
        }
        let unknown = |text: &str| assert_eq!(refusal(text), Refusal::UnknownHistory, "{text:.200}");
        unknown(&header(r#","history_mode":"quantum""#));
        unknown(&header(r#","history_mode":7"#));
        unknown(&header("").replace(ID, "../../etc/x"));
        unknown(&header("").replace(ID, ".coordination"));
        unknown("{\"type\":\"event_msg\",\"payload\":{}}\n");
        unknown("{\n");
        unknown("");
        unknown(&header(&format!(",\"x\":\"{}\"", "x".repeat(LINE_BYTES_MAX))));
    }

    /// A rollout whose second line is left out.
    struct FirstLine(u64);

    impl NewText for FirstLine {
        fn parts(&self) -> Vec<(u64, Option<Span>)> {
            vec![(self.0, Some(Span::new(0, self.0)))]
        }

        fn write(&self, original: &File, out: &File) -> io::Result<()> {
            copy_span(original, Span::new(0, self.0), out)
        }
    }

    #[test]
    fn where_codex_counts_bytes_a_text_keeps_its_length() {
        let _forks = NO_FORKS.read();
        for (mode, is_refused) in [("paginated", true), ("legacy", false)] {
            let text = header(&format!(r#","history_mode":"{mode}""#));
            let (dir, case) = case(BOTH, &text);
            let path = dir.path().join("sessions/2026/08/01/rollout-x.jsonl");
            let old = Snapshot::open(&path, None).unwrap();
            let vault = Vault::new(dir.path().join("vault"));
            let keep = |pending: Pending, swap: Swap| {
                old.read(|source| {
                    pending.keep_merge(source, source.len(), Vec::new(), Some(swap), Vec::new())
                })
            };
            let enter = || Ok(Pass { held: ask(&case.target(), Some(COLD))?.into_iter().collect() });
            let first = FirstLine(text.find('\n').unwrap() as u64 + 1);
            let done = replace(&old, &first, &vault, keep, enter);
            let why = done.err().map(|stop| stop.to_string());
            assert_eq!(why.is_some_and(|why| why.contains("byte offsets")), is_refused, "{mode}");
            assert_eq!(fs::read_to_string(&path).unwrap() == text, is_refused, "{mode}");
        }
    }

    #[test]
    fn histories_of_old_may_change() {
        let _forks = NO_FORKS.read();
        for text in [
            header(r#","history_mode":"legacy""#),
            header(r#","history_mode":null"#),
            header(&format!(",\"base_instructions\":\"{}\"", "x".repeat(300_000))),
            format!("{{\"id\":\"{ID}\",\"timestamp\":\"t\",\"instructions\":null}}\n"),
        ] {
            assert!(ask(&case(BOTH, &text).1.target(), Some(COLD)).is_ok(), "{text:.100}");
        }
    }
}
