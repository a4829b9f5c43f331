//! May we touch it now?
//!
//! First comes a quiet period, for every file. Then come the gates that the file's format declares, one file
//! each below this one: what the owning program says about being at work. Locks that others are to take are
//! taken, and given back when the [`Pass`] is dropped. How a file is replaced, and what a transcript means, is
//! not known here; neither is whether anybody writes who follows no protocol.

mod claude;
mod codex;
mod copilot;
mod grok;
pub(crate) mod memory;
mod openclaw;
pub(crate) mod process;
mod qwen;

use crate::deferral::Deferral;
use crate::error::Error;
use crate::outcome::Ending;
use crate::refusal::Refusal;
use rustix::fs::OFlags;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use transcript::Facts;
use transcript::format::Gate;

/// How long a conversation that waits for a tool or the model must have been quiet to count as given up.
const RUN_SETTLE: Duration = Duration::from_secs(10 * 60);

/// Longest lock, lease or register entry that is read.
const LOCK_BYTES_MAX: u64 = 64 << 10;

/// The file that is to be replaced.
pub(crate) struct GateTarget<'a> {
    /// Where it lies, links resolved.
    pub(crate) path: &'a Path,
    /// The open file.
    pub(crate) file: &'a File,
    /// Who it is, and when it was written to.
    pub(crate) metadata: &'a Metadata,
    /// What is in it.
    pub(crate) facts: &'a Facts,
    /// Whether locks may be made where there are none: a dry run leaves no trace.
    pub(crate) makes_locks: bool,
}

/// Why the gates are closed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotNow {
    /// For the moment.
    Deferred(Deferral),
    /// For good.
    Refused(Refusal),
}

impl From<NotNow> for Ending {
    fn from(reason: NotNow) -> Self {
        match reason {
            NotNow::Deferred(deferral) => Self::Deferred(deferral),
            NotNow::Refused(refusal) => Self::Refused(refusal),
        }
    }
}

impl From<Deferral> for NotNow {
    fn from(deferral: Deferral) -> Self {
        Self::Deferred(deferral)
    }
}

/// A lock that was taken. Dropping it gives it back.
trait Held {}

/// What a gate says: open, with a lock if one had to be taken, or not now.
type Answer = Result<Result<Option<Box<dyn Held>>, NotNow>, Error>;

/// Leave to write, until it is dropped.
#[derive(Default)]
pub(crate) struct Pass {
    held: Vec<Box<dyn Held>>,
}

impl Pass {
    /// Whether a program is kept out by a lock of its own kind.
    pub(crate) fn holds_lock(&self) -> bool {
        !self.held.is_empty()
    }
}

/// Asks all gates. A `settle` of 0 says that no agent is running, so that ages do not matter; what a program
/// says itself is obeyed all the same.
pub(crate) fn pass(
    gates: &[Gate],
    target: &GateTarget<'_>,
    settle: Duration,
) -> Result<Result<Pass, NotNow>, Error> {
    let quiet = quiet_for(target.metadata, SystemTime::now());
    if quiet < settle {
        return Ok(Err(Deferral::Growing { quiet, settle }.into()));
    }
    let mut pass = Pass::default();
    for gate in gates {
        let answer = match gate {
            Gate::RunInProgress => {
                run(target.facts, quiet, settle).map_or(Ok(None), |found| Err(found.into()))
            }
            Gate::Idle if quiet < RUN_SETTLE && !settle.is_zero() => {
                Err(Deferral::MayRun { quiet, wanted: RUN_SETTLE }.into())
            }
            Gate::Idle => Ok(None),
            Gate::GrokLock => grok::ask(target)?,
            Gate::OpenClawLock => openclaw::ask(target)?,
            Gate::ClaudeRegistry => claude::ask(target)?,
            Gate::CodexWriter => codex::ask(target, (!settle.is_zero()).then_some(quiet))?,
            Gate::CopilotInUse => copilot::ask(target)?,
            Gate::QwenLease => qwen::ask(target)?,
        };
        match answer {
            Ok(held) => pass.held.extend(held),
            Err(reason) => return Ok(Err(reason)),
        }
    }
    Ok(Ok(pass))
}

/// Between the prompt and the answer OpenClaw holds no lock, and a file that was replaced meanwhile ends the
/// turn (`run/attempt.session-lock.ts`). Only the transcript itself tells.
fn run(facts: &Facts, quiet: Duration, settle: Duration) -> Option<Deferral> {
    let awaits = facts.awaits?;
    let young = quiet < RUN_SETTLE && !settle.is_zero();
    young.then_some(Deferral::Running { awaits, quiet, wanted: RUN_SETTLE })
}

/// How long nobody has written to a file, as far as its times tell.
pub fn quiet_for(metadata: &Metadata, now: SystemTime) -> Duration {
    let time = |secs: i64, nanos: i64| {
        let secs = u64::try_from(secs).unwrap_or(0);
        UNIX_EPOCH + Duration::new(secs, u32::try_from(nanos).unwrap_or(0))
    };
    let modified = time(metadata.mtime(), metadata.mtime_nsec());
    // A time in the future was set by hand; the kernel's own says when that was.
    let last = if modified > now { time(metadata.ctime(), metadata.ctime_nsec()) } else { modified };
    now.duration_since(last).unwrap_or_default()
}

/// A small file of another program, as it was when it was opened.
struct Note {
    file: File,
    metadata: Metadata,
    bytes: Vec<u8>,
}

impl Note {
    /// Reads it, unless there is none. What is longer than any lock is cut, and so is no JSON any more.
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let fail = |cause| Error::new(path, "read the lock", cause);
        // Never through a link, and without waiting for the other end of a pipe.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match File::options().read(true).custom_flags(flags).open(path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(fail)?,
        };
        let metadata = file.metadata().map_err(fail)?;
        if !metadata.is_file() {
            return Err(fail(io::Error::other("it is not a regular file")));
        }
        let mut bytes = Vec::new();
        (&file).take(LOCK_BYTES_MAX).read_to_end(&mut bytes).map_err(fail)?;
        Ok(Some(Self { file, metadata, bytes }))
    }

    fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.bytes).ok()
    }
}

/// The first line of a transcript, without its end; `None` if it is longer than `limit`.
fn first_line(file: &File, limit: usize) -> io::Result<Option<Vec<u8>>> {
    const STEP: usize = 64 << 10;
    let mut line = Vec::new();
    while line.len() < limit {
        let from = line.len();
        line.resize(from + STEP, 0);
        let got = match file.read_at(&mut line[from..], from as u64) {
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => 0,
            Ok(0) => {
                line.truncate(from);
                return Ok(Some(line));
            }
            other => other?,
        };
        line.truncate(from + got);
        if let Some(end) = line[from..].iter().position(|&byte| byte == b'\n') {
            line.truncate(from + end);
            return Ok(Some(line));
        }
    }
    Ok(None)
}

/// A positive whole number that fits a process.
fn pid_of(value: Option<&serde_json::Value>) -> Option<u32> {
    let pid = value?.as_u64().filter(|&pid| pid > 0)?;
    i32::try_from(pid).ok().map(i32::cast_unsigned)
}

/// Whether a name that was read from a file may become part of a path.
fn is_plain_name(name: &str) -> bool {
    const NAME_BYTES_MAX: usize = 200;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with('.')
        && !name.contains("..")
        && name.bytes().all(plain)
}

/// The id by which an agent finds a transcript: the name of the file without its ending.
fn stem(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str().filter(|stem| is_plain_name(stem))
}

/// The agent's own folder, if the file lies in it: what is above the nearest folder called `name`. The file does
/// not lie directly in that folder, but `depth` or more below.
fn root_above<'a>(path: &'a Path, name: &str, depth: usize) -> Option<&'a Path> {
    let folder =
        path.ancestors().skip(depth).find(|folder| folder.file_name().is_some_and(|own| own == name))?;
    folder.parent()
}

/// An agent's folder where it is by default, for files that were reached through a link.
fn default_root(env: &str, below_home: &str) -> Option<PathBuf> {
    let moved = std::env::var_os(env).filter(|value| !value.is_empty()).map(PathBuf::from);
    moved.or_else(|| Some(std::env::home_dir()?.join(below_home)))
}

/// Makes a lock the own one of whoever owns the transcript: what root leaves behind must not keep the agent out.
fn give_to_owner(lock: &File, transcript: &Metadata) -> io::Result<()> {
    let own = lock.metadata()?;
    if (own.uid(), own.gid()) != (transcript.uid(), transcript.gid()) && own.uid() == 0 {
        std::os::unix::fs::fchown(lock, Some(transcript.uid()), Some(transcript.gid()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use transcript::Awaits;

    /// A file with something in it, and what a gate is told about it.
    pub(super) struct Case {
        pub(super) path: PathBuf,
        file: File,
        pub(super) metadata: Metadata,
        facts: Facts,
    }

    impl Case {
        pub(super) fn new(path: impl AsRef<Path>, text: &str) -> Self {
            let path = path.as_ref();
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            let path = path.canonicalize().unwrap();
            let file = File::open(&path).unwrap();
            let metadata = file.metadata().unwrap();
            let found = transcript::examine(&text.as_bytes(), &transcript::Policy::default()).unwrap();
            Self { path, file, metadata, facts: found.facts }
        }

        pub(super) fn target(&self) -> GateTarget<'_> {
            let (path, file, metadata, facts) = (&self.path, &self.file, &self.metadata, &self.facts);
            GateTarget { path, file, metadata, facts, makes_locks: true }
        }
    }

    /// The deferral in an answer.
    #[track_caller]
    pub(super) fn deferral(answer: Answer) -> Deferral {
        match answer.unwrap() {
            Err(NotNow::Deferred(deferral)) => deferral,
            Err(NotNow::Refused(refusal)) => panic!("refused: {refusal}"),
            Ok(_) => panic!("the gate is open"),
        }
    }

    /// Whether an answer is to go on.
    #[track_caller]
    pub(super) fn is_open(answer: Answer) -> bool {
        answer.unwrap().is_ok()
    }

    #[test]
    fn quiet_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let case = Case::new(dir.path().join("s.jsonl"), "x");
        let hour = Duration::from_secs(60 * 60);
        let Err(NotNow::Deferred(Deferral::Growing { settle, .. })) =
            pass(&[], &case.target(), hour).unwrap()
        else {
            panic!("it was written just now");
        };
        assert_eq!(settle, hour);
        assert!(pass(&[], &case.target(), Duration::ZERO).unwrap().is_ok());
    }

    #[test]
    fn a_run_is_over_after_a_while_or_when_somebody_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut case = Case::new(dir.path().join("s.jsonl"), "x");
        let (short, long, settle) =
            (Duration::from_secs(9), RUN_SETTLE + Duration::from_secs(1), Duration::from_secs(5));
        assert_eq!(run(&case.facts, short, settle), None);
        case.facts.awaits = Some(Awaits::Tool);
        assert!(matches!(run(&case.facts, short, settle), Some(Deferral::Running { .. })));
        assert_eq!(run(&case.facts, long, settle), None);
        assert_eq!(run(&case.facts, short, Duration::ZERO), None);
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_names() {
        for name in ["a", "5e-aa", "x.y_z", &"a".repeat(200)] {
            assert!(is_plain_name(name), "{name}");
        }
        for name in
            ["", ".", "..", "a/b", "../a", ".coordination", "a..b", "a b", "ä", "a\0", &"a".repeat(201)]
        {
            assert!(!is_plain_name(name), "{name}");
        }
    }

    #[test]
    fn a_number_of_a_process_is_positive_and_small() {
        let pid = |text: &str| pid_of(serde_json::from_str(text).ok().as_ref());
        assert_eq!((pid("1"), pid("2147483647")), (Some(1), Some(2_147_483_647)));
        for none in ["0", "-1", "1.5", "2147483648", "99999999999999999999", "\"7\"", "null"] {
            assert_eq!(pid(none), None, "{none}");
        }
    }

    #[test]
    fn every_deferral_says_when_to_try_again() {
        let secs = Duration::from_secs;
        let said = [
            (Deferral::Growing { quiet: secs(1), settle: secs(5) }, "try again in 4 s"),
            (
                Deferral::MayRun { quiet: secs(3), wanted: RUN_SETTLE },
                "only after 10 min without writes (level archive); last written 3 s ago; --settle 0 says that no agent \
                 is running; try again in 10 min",
            ),
            (Deferral::Changed, "try again in 1 s"),
            (
                Deferral::RecentHistory { quiet: secs(60), wanted: secs(3_600) },
                "last written 60 s ago, wanted are 60 min (--settle-stale 0 changes it now); try again in 59 min",
            ),
            (
                Deferral::Running { awaits: Awaits::Model, quiet: secs(30), wanted: RUN_SETTLE },
                "last written 30 s ago; --settle 0 says that no agent is running; try again in 10 min",
            ),
            (Deferral::Locked { pid: 7, age: secs(20) }, "try again in 20 s"),
            (Deferral::Locked { pid: 7, age: secs(4_000) }, "for 67 min; try again in 60 s"),
            (Deferral::Locked { pid: 7, age: secs(0) }, "try again in 1 s"),
            (Deferral::Doubtful { age: secs(10), grace: secs(30) }, "after 30 s; try again in 20 s"),
            (Deferral::InUse { agent: "Copilot", pid: 7, status: None }, "(process 7); try again in 60 s"),
            (Deferral::Busy { agent: "Codex", lock: "maintenance lock" }, "try again in 60 s"),
            (Deferral::Open { pid: 7, name: "codex".into() }, "try again in 60 s"),
            (
                Deferral::Unseen { processes: 2, quiet: secs(86_400), wanted: secs(7 * 86_400) },
                "try again in 6 days",
            ),
            (Deferral::Unprovable { agent: "Qwen Code" }, "try again in 60 s"),
        ];
        for (deferral, end) in said {
            assert!(deferral.to_string().ends_with(end), "{deferral}");
        }
    }
}
