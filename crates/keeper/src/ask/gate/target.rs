//! What a gate is given, what it answers, and how it reads the lock files of other programs.

use crate::ask::error::Error;
use crate::ask::stop::Stop;
use crate::disk::new_text::read_up_to;
use crate::platform::acting;
use crate::platform::metadata::{self, Metadata, MetadataExt};
use crate::platform::writing;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use transcript::Facts;

/// How many bytes of a lock, lease or register entry are read at most.
const LOCK_BYTES_MAX: u64 = 64 << 10;

/// The file that may be replaced.
pub(crate) struct GateTarget<'a> {
    /// Its path, with links resolved.
    pub(crate) path: &'a Path,
    /// The open file.
    pub(crate) file: &'a File,
    /// Its identity and times.
    pub(crate) metadata: &'a Metadata,
    /// What the transcript in it says.
    pub(crate) facts: &'a Facts,
    /// Whether lock files may be created and removed. A dry run must leave no trace.
    pub(crate) makes_locks: bool,
}

/// A lock that a gate has taken. Dropping it gives it back.
pub(super) trait HeldLock {
    /// Why a new text of another length is refused; `None` if it may have any.
    fn keeps_length(&self) -> Option<&'static str> {
        None
    }
}

/// What a gate answers: go ahead, with the lock if it took one, or a reason to stop.
pub(super) type GateAnswer = Result<Option<Box<dyn HeldLock>>, Stop>;

/// The answer of a gate that takes no lock.
pub(super) fn open_unless(reason: Option<impl Into<Stop>>) -> GateAnswer {
    reason.map_or(Ok(None), |reason| Err(reason.into()))
}

/// How long ago a file was last written to, going by its times.
pub fn quiet_for(metadata: &Metadata, now: SystemTime) -> Duration {
    let time = |secs: i64, nanos: i64| {
        let secs = u64::try_from(secs).unwrap_or(0);
        UNIX_EPOCH + Duration::new(secs, u32::try_from(nanos).unwrap_or(0))
    };
    let modified = time(metadata.mtime(), metadata.mtime_nsec());
    // A modification time in the future was set by a program. The change time, which only the kernel sets, says when.
    let last = if modified > now { time(metadata.ctime(), metadata.ctime_nsec()) } else { modified };
    now.duration_since(last).unwrap_or_default()
}

/// A lock, lease or register entry of another program, as it was when it was opened.
pub(super) struct LockFile {
    pub(super) file: File,
    pub(super) metadata: Metadata,
    pub(super) bytes: Vec<u8>,
}

/// Opens a lock file of another program; `None` if there is none.
pub(super) fn open_lock(path: &Path) -> io::Result<Option<File>> {
    match writing::open_note(path) {
        // A name that is too long for a file is that of none.
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename) => {
            Ok(None)
        }
        other => regular(other?).map(Some),
    }
}

/// A lock that was opened without waiting, unless something else than a file is in its place.
pub(super) fn regular(lock: File) -> io::Result<File> {
    let is_file = metadata::of_file(&lock)?.is_file();
    if is_file { Ok(lock) } else { Err(io::Error::other("it is not a regular file")) }
}

/// The lock file beside a transcript, as some agents name it: `<transcript>.lock`.
pub(super) fn lock_beside(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_os_string();
    lock.push(".lock");
    lock.into()
}

impl LockFile {
    /// Reads it; `None` if there is none. A file that is longer than any lock is cut off, so that it is no valid JSON.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, Error> {
        let fail = |cause| Error::new(path, "read the lock", cause);
        let Some(file) = open_lock(path).map_err(fail)? else { return Ok(None) };
        let metadata = metadata::of_file(&file).map_err(fail)?;
        let mut bytes = Vec::new();
        (&file).take(LOCK_BYTES_MAX).read_to_end(&mut bytes).map_err(fail)?;
        Ok(Some(Self { file, metadata, bytes }))
    }

    pub(super) fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.bytes).ok()
    }
}

/// The first line of a transcript, without its line break; `None` if it is longer than `limit`.
pub(super) fn first_line(file: &File, limit: usize) -> io::Result<Option<Vec<u8>>> {
    const STEP: usize = 64 << 10;
    let mut line = Vec::new();
    while line.len() < limit {
        let from = line.len();
        line.resize(from + STEP, 0);
        let got = read_up_to(file, &mut line[from..], from as u64)?;
        line.truncate(from + got);
        let end = line[from..].iter().position(|&byte| byte == b'\n');
        if end.is_some() || got == 0 {
            line.truncate(from + end.unwrap_or(0));
            return Ok(Some(line));
        }
    }
    Ok(None)
}

/// A JSON value as the id of a process; `None` if it cannot be one.
pub(super) fn pid_of(value: Option<&serde_json::Value>) -> Option<u32> {
    let pid = value?.as_u64().filter(|&pid| pid > 0)?;
    i32::try_from(pid).ok().map(i32::cast_unsigned)
}

/// Whether a name that was read from a file may become part of a path.
pub(super) fn is_plain_name(name: &str) -> bool {
    const NAME_BYTES_MAX: usize = 200;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with('.')
        && !name.contains("..")
        && name.bytes().all(plain)
}

/// The id by which an agent finds a transcript: the name of the file without its extension.
pub(super) fn stem(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str().filter(|stem| is_plain_name(stem))
}

/// The agent's own folder, if the file is in it: the parent of the nearest folder called `name`, which must be at least
/// `depth` levels above the file.
pub(super) fn root_above<'a>(path: &'a Path, name: &str, depth: usize) -> Option<&'a Path> {
    let folder =
        path.ancestors().skip(depth).find(|folder| folder.file_name().is_some_and(|own| own == name))?;
    folder.parent()
}

/// An agent's folder at its default place, for files whose path does not show it: the variable `env`, or a folder below home. Root's
/// is none for another user's files.
pub(super) fn default_root(env: &str, below_home: &str) -> Option<PathBuf> {
    if acting::is_another() {
        return None;
    }
    let moved = std::env::var_os(env).filter(|value| !value.is_empty()).map(PathBuf::from);
    moved.or_else(|| Some(std::env::home_dir()?.join(below_home)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ask::deferral::Deferral;

    /// A file with some text in it, and what a gate is given about it.
    pub(in crate::ask::gate) struct GateCase {
        pub(in crate::ask::gate) path: PathBuf,
        file: File,
        pub(in crate::ask::gate) metadata: Metadata,
        pub(in crate::ask::gate) facts: Facts,
    }

    impl GateCase {
        pub(in crate::ask::gate) fn new(path: impl AsRef<Path>, text: &str) -> Self {
            let path = path.as_ref();
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            let path = path.canonicalize().unwrap();
            let file = File::open(&path).unwrap();
            let metadata = file.metadata().unwrap();
            let found = transcript::examine(&text.as_bytes(), &transcript::Policy::default()).unwrap();
            Self { path, file, metadata, facts: found.facts }
        }

        pub(in crate::ask::gate) fn target(&self) -> GateTarget<'_> {
            let (path, file, metadata, facts) = (&self.path, &self.file, &self.metadata, &self.facts);
            GateTarget { path, file, metadata, facts, makes_locks: true }
        }
    }

    /// The deferral in an answer.
    #[track_caller]
    pub(in crate::ask::gate) fn deferral(answer: GateAnswer) -> Deferral {
        match answer {
            Err(Stop::Deferred(deferral)) => deferral,
            Err(stop) => panic!("{stop}"),
            Ok(_) => panic!("the gate is open"),
        }
    }

    /// Whether the answer is to go ahead.
    #[track_caller]
    pub(in crate::ask::gate) fn is_open(answer: &GateAnswer) -> bool {
        answer.is_ok()
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
}
