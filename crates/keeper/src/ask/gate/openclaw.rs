//! OpenClaw's write lock, honoured and taken (`session-write-lock.ts`).
//!
//! The lock is a file `<transcript>.lock` that names a process, its start time, and when the lock was taken. If the process
//! is alive, we wait. If it is dead, the lock is stale, and we remove it. A lock that names no process may be one that is
//! being written, so it becomes stale only after half a minute. Age alone proves nothing: a turn may take hours. Where the
//! process id was reused, or may belong to a process outside our container, the lock is left alone until the hold time that it
//! asks for is over.
//!
//! Where OpenClaw keeps sessions, we also take the lock, in OpenClaw's own format, and give it back when the file has been
//! replaced. That makes OpenClaw wait, and any other Tailor. Newer releases of OpenClaw treat a lock as stale immediately if
//! the arguments of its process do not name OpenClaw, and may then write beside us. So `replace` does not rely on this lock.
//! If we die, the process in our lock is dead, and so the lock is stale.

use super::target::{GateAnswer, GateTarget, HeldLock, LockFile, lock_beside, pid_of};
use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::platform::identity::FileId;
use crate::platform::metadata::{self, Metadata};
use crate::platform::{FileExt, ProcessState, process, writing};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long a lock without a process in it may still be being written (OpenClaw's own grace period).
const NAMELESS_GRACE: Duration = Duration::from_secs(30);

/// Hold time of a lock that does not name one (OpenClaw's default).
const HOLD_MAX: Duration = Duration::from_secs(5 * 60);

/// How many times to try when another process is quicker.
const ATTEMPTS: usize = 3;

/// OpenClaw's folder, under the names that the program has had.
const HOMES: &[&str] = &[".openclaw", ".clawdbot", ".moltbot"];

pub(super) fn ask(target: &GateTarget<'_>) -> GateAnswer {
    let path = lock_beside(target.path);
    let mut used_here = is_openclaws(target.path);
    for _ in 0..ATTEMPTS {
        if let Some(note) = LockFile::read(&path)? {
            if let Some(reason) = objection(&note, SystemTime::now()) {
                return Err(reason.into());
            }
            if !target.makes_locks {
                return Ok(None);
            }
            remove_stale(&path, &note)?;
            used_here = true;
        } else if !used_here || !target.makes_locks {
            return Ok(None);
        } else if let Some(lock) = OpenClawLock::take(&path)? {
            return Ok(Some(Box::new(lock)));
        }
    }
    Err(Deferral::Changed.into())
}

/// Whether a file is OpenClaw's; pi, which writes the same format, takes no lock and looks for none.
pub(super) fn is_openclaws(path: &Path) -> bool {
    let mut folders = path.ancestors().skip(1);
    let named =
        |folder: Option<&Path>, name: &str| folder.and_then(Path::file_name).is_some_and(|own| own == name);
    let folder = folders.next();
    let agents = named(folder, "sessions") && named(folders.nth(1), "agents");
    let indexed = || folder.is_some_and(|folder| folder.join("sessions.json").exists());
    let below_home =
        || HOMES.iter().any(|home| path.ancestors().skip(1).any(|above| named(Some(above), home)));
    agents || below_home() || indexed()
}

/// Why to wait for a lock; `None` if it is stale.
fn objection(note: &LockFile, now: SystemTime) -> Option<Deferral> {
    let since = |then: SystemTime| now.duration_since(then).unwrap_or_default();
    let written = since(note.metadata.modified().unwrap_or(now));
    let json = note.json();
    let field = |name: &str| json.as_ref().and_then(|json| json.get(name));
    let Some(pid) = pid_of(field("pid")) else {
        let young = written < NAMELESS_GRACE;
        return young.then_some(Deferral::Doubtful { age: written, grace: NAMELESS_GRACE });
    };
    let created = field("createdAt").and_then(|time| time.as_str()?.parse::<jiff::Timestamp>().ok());
    let age = created.map_or(written, |created| since(created.into()));
    let start = field("starttime").and_then(serde_json::Value::as_u64);
    // We always write a start time, so a lock with our process id and without one is not ours.
    let life = match process::life(pid, start) {
        ProcessState::Alive if pid == std::process::id() && start.is_none() => ProcessState::Recycled,
        life => life,
    };
    match life {
        ProcessState::Alive => Some(Deferral::Locked { pid, age }),
        ProcessState::Dead => None,
        // The process id may be that of a running OpenClaw that we cannot see. It gives up the lock within its hold time.
        ProcessState::Recycled | ProcessState::Unseen => {
            let hold = field("maxHoldMs")
                .and_then(serde_json::Value::as_u64)
                .map_or(HOLD_MAX, Duration::from_millis);
            (age < hold).then_some(Deferral::Doubtful { age, grace: hold })
        }
    }
}

/// Removes a stale lock, if it is still the same file. The file is locked meanwhile, so that only one Tailor removes it.
/// OpenClaw does not know that lock, but hardly any time passes between the last check and the removal.
fn remove_stale(path: &Path, note: &LockFile) -> Result<(), Error> {
    if note.file.try_lock().is_err() || !is_same(path, &note.metadata) {
        return Ok(());
    }
    let removed = std::fs::remove_file(path);
    let _ = note.file.unlock();
    match removed {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(Error::new(path, "remove the lock that was left behind", cause))
        }
        _ => Ok(()),
    }
}

fn is_same(path: &Path, metadata: &Metadata) -> bool {
    metadata::of_link(path).is_ok_and(|now| FileId::from_metadata(&now) == FileId::from_metadata(metadata))
}

/// The lock, held.
struct OpenClawLock {
    path: PathBuf,
    file: File,
    content: Vec<u8>,
}

impl HeldLock for OpenClawLock {}

impl OpenClawLock {
    /// `None` if another process was quicker.
    fn take(path: &Path) -> Result<Option<Self>, Error> {
        let fail = |cause| Error::new(path, "take OpenClaw's write lock", cause);
        let file = match writing::create_private(path) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            other => other.map_err(fail)?,
        };
        // Created before the content is written, so that dropping it removes the file if that fails.
        let mut lock = Self { path: path.to_path_buf(), file, content: Vec::new() };
        let content = content();
        lock.file.write_all(content.as_bytes()).map_err(|cause| {
            let _ = std::fs::remove_file(path);
            fail(cause)
        })?;
        lock.content = content.into_bytes();
        Ok(Some(lock))
    }

    fn is_ours(&self) -> bool {
        let mut now = vec![0; self.content.len() + 1];
        let unchanged = matches!(self.file.read_at(&mut now, 0), Ok(length) if now[..length] == self.content);
        unchanged && metadata::of_file(&self.file).is_ok_and(|metadata| is_same(&self.path, &metadata))
    }
}

impl Drop for OpenClawLock {
    /// Leaves a lock alone that another process has replaced. If ours cannot be removed, it is stale once we exit.
    fn drop(&mut self) {
        if self.is_ours() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// What OpenClaw writes into its lock.
fn content() -> String {
    let pid = std::process::id();
    let mut fields = vec![
        format!(r#""pid":{pid}"#),
        format!(r#""createdAt":"{:.3}""#, jiff::Timestamp::now()),
        format!(r#""maxHoldMs":{}"#, HOLD_MAX.as_millis()),
    ];
    fields.extend(process::start(pid).map(|start| format!(r#""starttime":{start}"#)));
    format!("{{{}}}", fields.join(","))
}

#[cfg(test)]
mod tests {
    use super::super::target::tests::{GateCase, deferral, is_open};
    use super::*;
    use crate::Mode;
    use crate::Options;
    use crate::Vault;
    use crate::ask::outcome::Ending;
    use crate::ask::stop::Stop;
    use crate::base::step::{Step, fault};
    use crate::maintain;
    use crate::spawned::dead;
    use crate::swap::snapshot::as_owner;
    use serde_json::{Value, json};
    use std::cell::RefCell;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::rc::Rc;

    /// A session in an agent's folder of OpenClaw's.
    fn case() -> (tempfile::TempDir, GateCase, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let case = GateCase::new(dir.path().join("agents/main/sessions/s.jsonl"), "x");
        let lock = PathBuf::from(format!("{}.lock", case.path.display()));
        (dir, case, lock)
    }

    fn ago(seconds: i64) -> String {
        let then = jiff::Timestamp::now().checked_sub(jiff::SignedDuration::from_secs(seconds)).unwrap();
        format!("{then:.3}")
    }

    fn make_old(path: &Path, seconds: u64) {
        let then = SystemTime::now() - Duration::from_secs(seconds);
        File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    }

    #[test]
    fn it_is_taken_in_openclaws_format_and_given_back() {
        let (_dir, case, lock) = case();
        let held = ask(&case.target()).unwrap();
        let written: Value = serde_json::from_slice(&fs::read(&lock).unwrap()).unwrap();
        let own = std::process::id();
        assert_eq!(
            (&written["pid"], &written["starttime"]),
            (&json!(own), &json!(process::start(own).unwrap()))
        );
        let created = written["createdAt"].as_str().unwrap();
        assert!(created.parse::<jiff::Timestamp>().is_ok() && created.ends_with('Z'), "{created}");
        assert_eq!(written["maxHoldMs"], 300_000);
        assert_eq!(fs::metadata(&lock).unwrap().mode() & 0o777, 0o600);
        // Not twice, not even by us.
        assert!(matches!(deferral(ask(&case.target())), Deferral::Locked { pid, .. } if pid == own));
        drop(held);
        assert!(!lock.exists());
    }

    /// A session in which a result is lost, and what mends it.
    fn broken() -> (tempfile::TempDir, GateCase, PathBuf, Options) {
        let dir = tempfile::tempdir().unwrap();
        let text = concat!(
            r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#,
            "\n",
            r#"{"type":"message","id":"a1","parentId":null,"message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{}}],"stopReason":"toolUse"}}"#,
            "\n",
            r#"{"type":"message","id":"a2","parentId":"a1","message":{"role":"user","content":"well?"}}"#,
            "\n",
        );
        let case = GateCase::new(dir.path().join("agents/main/sessions/s.jsonl"), text);
        let lock = PathBuf::from(format!("{}.lock", case.path.display()));
        let options = Options {
            mode: Mode::Fix,
            vault: Some(Vault::new(dir.path().join("vault"))),
            ..Options::default()
        };
        (dir, case, lock, options)
    }

    #[test]
    fn it_is_held_only_around_the_exchange() {
        let (_dir, case, lock, options) = broken();
        let held: Rc<RefCell<Vec<(Step, bool)>>> = Rc::default();
        let (seen, there) = (Rc::clone(&held), lock.clone());
        let note_it = move |_, step| seen.borrow_mut().push((step, there.exists()));
        let outcome = fault::meanwhile(None, note_it, || maintain(&case.path, None, &options)).0.unwrap();
        assert_eq!(outcome.ending, Ending::Fixed);
        let held = held.take();
        let with_lock =
            [Step::LeaseOld, Step::CatchUpLast, Step::LeaseNew, Step::SetTimes, Step::Name, Step::Exchange];
        assert!(with_lock.iter().all(|step| held.contains(&(*step, true))), "{held:?}");
        // These come once under it and once after it, or depend on how long ago the file was written.
        let both = [Step::Drain, Step::Compare];
        let mut rest = held.iter().filter(|(step, _)| !with_lock.contains(step) && !both.contains(step));
        assert!(rest.all(|(_, held)| !held), "{held:?}");
        assert!(!lock.exists());
    }

    /// OpenClaw took its lock, appended, and gave it back: it may be waiting for the model, and ends the turn if the
    /// file is another one then.
    #[test]
    fn a_file_that_grew_before_it_was_taken_is_looked_at_again() {
        let (_dir, case, lock, options) = broken();
        let path = case.path.clone();
        let append = move |_, step| {
            if step == Step::SyncText {
                let mut file = File::options().append(true).open(&path).unwrap();
                file.write_all(b"{\"type\":\"custom\",\"id\":\"a3\",\"parentId\":\"a2\"}\n").unwrap();
            }
        };
        let outcome = fault::meanwhile(None, append, || maintain(&case.path, None, &options)).0.unwrap();
        assert_eq!(outcome.ending, Ending::Deferred(Deferral::Changed));
        assert!(fs::read_to_string(&case.path).unwrap().contains("\"a3\"") && !lock.exists());
        assert_eq!(maintain(&case.path, None, &options).unwrap().ending, Ending::Fixed);
    }

    #[test]
    fn it_belongs_to_whoever_owns_the_transcript() {
        let (_dir, case, lock) = case();
        if case.metadata.uid() == 0 {
            for path in case
                .path
                .ancestors()
                .take_while(|path| path.parent().is_some_and(|above| above != std::env::temp_dir()))
            {
                std::os::unix::fs::chown(path, Some(1234), Some(4321)).unwrap();
            }
        }
        let _acting = as_owner(&case.path).unwrap();
        let _held = ask(&case.target()).unwrap();
        let (own, of) = (fs::metadata(&lock).unwrap(), fs::metadata(&case.path).unwrap());
        assert_eq!((own.uid(), own.gid()), (of.uid(), of.gid()));
    }

    #[test]
    fn the_lock_of_a_live_process_holds_however_old_it_is() {
        let (_dir, case, lock) = case();
        let mut child = crate::spawned::spawn(std::process::Command::new("sleep").arg("60"));
        let payload = json!({
            "pid": child.id(),
            "createdAt": ago(100_000),
            "maxHoldMs": 1,
            "starttime": process::start(child.id()),
        });
        fs::write(&lock, payload.to_string()).unwrap();
        make_old(&lock, 100_000);
        let found = deferral(ask(&case.target()));
        assert!(
            matches!(found, Deferral::Locked { pid, age } if pid == child.id() && age.as_secs() >= 100_000)
        );
        assert_eq!(fs::read_to_string(&lock).unwrap(), payload.to_string());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_open(&ask(&case.target())));
        assert!(!lock.exists());
    }

    #[test]
    fn the_lock_of_a_dead_process_is_taken_over() {
        let (_dir, case, lock) = case();
        let write = |age| {
            let payload = json!({"pid": dead(), "createdAt": ago(age), "starttime": 1});
            fs::write(&lock, payload.to_string()).unwrap();
        };
        write(1);
        if !process::sees_all() {
            // It may be outside of our container.
            assert!(matches!(deferral(ask(&case.target())), Deferral::Doubtful { grace: HOLD_MAX, .. }));
            write(301);
        }
        let held = ask(&case.target()).unwrap();
        assert!(fs::read_to_string(&lock).unwrap().contains(&format!("\"pid\":{}", std::process::id())));
        drop(held);
        assert!(!lock.exists());
    }

    #[test]
    fn a_number_that_came_around_frees_the_lock_when_its_hold_is_over() {
        let (_dir, case, lock) = case();
        let own = std::process::id();
        let write = |payload: Value| fs::write(&lock, payload.to_string()).unwrap();
        write(json!({"pid": own, "createdAt": ago(10), "maxHoldMs": 60_000, "starttime": 1}));
        assert!(matches!(deferral(ask(&case.target())), Deferral::Doubtful { .. }));
        assert!(lock.exists());
        write(json!({"pid": own, "createdAt": ago(61), "maxHoldMs": 60_000, "starttime": 1}));
        assert!(is_open(&ask(&case.target())));
        // Our own number without a start time: from before a restart of the container.
        write(json!({"pid": own, "createdAt": ago(10)}));
        assert!(matches!(deferral(ask(&case.target())), Deferral::Doubtful { .. }));
        write(json!({"pid": own, "createdAt": ago(301)}));
        assert!(is_open(&ask(&case.target())));
    }

    #[test]
    fn a_lock_that_names_nobody_has_half_a_minute() {
        let (_dir, case, lock) = case();
        for payload in ["", "{}", "{\"pid\":", "[1]", r#"{"pid":-4}"#, &" ".repeat(100_000)] {
            fs::write(&lock, payload).unwrap();
            let found = deferral(ask(&case.target()));
            assert!(matches!(found, Deferral::Doubtful { grace: NAMELESS_GRACE, .. }), "{payload:.20}");
            make_old(&lock, 29);
            assert!(!is_open(&ask(&case.target())), "{payload:.20}");
            make_old(&lock, 31);
            assert!(is_open(&ask(&case.target())), "{payload:.20}");
            assert!(!lock.exists(), "{payload:.20}");
        }
    }

    #[test]
    fn a_lock_that_somebody_replaced_is_theirs() {
        let (_dir, case, lock) = case();
        let held = ask(&case.target()).unwrap();
        fs::remove_file(&lock).unwrap();
        fs::write(&lock, "theirs").unwrap();
        drop(held);
        assert_eq!(fs::read_to_string(&lock).unwrap(), "theirs");
        fs::remove_file(&lock).unwrap();
        let held = ask(&case.target()).unwrap();
        fs::write(&lock, "changed in place").unwrap();
        drop(held);
        assert_eq!(fs::read_to_string(&lock).unwrap(), "changed in place");
    }

    #[test]
    fn what_is_no_file_is_no_lock() {
        let (dir, case, lock) = case();
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "").unwrap();
        make_old(&elsewhere, 1_000);
        std::os::unix::fs::symlink(&elsewhere, &lock).unwrap();
        assert!(ask(&case.target()).is_err());
        fs::remove_file(&lock).unwrap();
        fs::create_dir(&lock).unwrap();
        assert!(ask(&case.target()).is_err());
        assert!(elsewhere.exists());
    }

    #[test]
    fn pi_takes_no_lock_and_finds_none() {
        let dir = tempfile::tempdir().unwrap();
        let takes = |name: &str| {
            let case = GateCase::new(dir.path().join(name), "x");
            let took = ask(&case.target()).unwrap().is_some();
            assert!(!PathBuf::from(format!("{}.lock", case.path.display())).exists());
            took
        };
        assert!(!takes(".pi/agent/sessions/--w--/s.jsonl"));
        assert!(!takes("agents/sessions/s.jsonl"));
        assert!(!takes("s.jsonl"));
        assert!(takes("state/agents/main/sessions/s.jsonl"));
        assert!(takes(".openclaw/agent/sessions/--w--/s.jsonl"));
        fs::create_dir(dir.path().join("flat")).unwrap();
        fs::write(dir.path().join("flat/sessions.json"), "{}").unwrap();
        assert!(takes("flat/s.jsonl"));
        let beside = dir.path().join("s.jsonl.lock");
        fs::write(&beside, json!({"pid": dead(), "createdAt": ago(301)}).to_string()).unwrap();
        assert!(takes("s.jsonl"), "where a lock was, OpenClaw is");
    }

    #[test]
    fn of_many_one_takes_over_what_was_left_behind() {
        let (_dir, case, lock) = case();
        for _ in 0..20 {
            fs::write(&lock, json!({"pid": dead(), "createdAt": ago(301)}).to_string()).unwrap();
            let start = std::sync::Barrier::new(8);
            let done = std::sync::Barrier::new(8);
            let took: usize = std::thread::scope(|scope| {
                let one = || {
                    start.wait();
                    let held = ask(&case.target());
                    done.wait();
                    assert!(!matches!(held, Err(Stop::Failed(_))));
                    usize::from(held.is_ok())
                };
                let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
                all.into_iter().map(|one| one.join().unwrap()).sum()
            });
            assert!(took <= 1, "{took} hold the same lock");
            assert!(!lock.exists() || took == 0);
            let _ = fs::remove_file(&lock);
        }
    }
}
