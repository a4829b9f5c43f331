//! A file as it was when we opened it, and whether it is still the same.

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::disk::appends::{END_BYTES, KnownEnd};
use crate::disk::folder::{Place, folder_of};
use crate::places::store::store_file;
use crate::platform::acting::{self, Acting};
use crate::platform::identity::{FileId, Stamp};
use crate::platform::metadata::{self, Metadata, MetadataExt};
use crate::platform::{FileExt, OFlags, lock, owner};
use crate::swap::content::{ContentText, FileContent};
use spans::source::ends_line;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// An open file: its place, its identity and its end when it was opened.
pub(crate) struct Snapshot {
    content: FileContent,
    /// The file itself, which the content reads too.
    pub(crate) file: Arc<File>,
    /// Its folder and name, through which everything is done to it.
    pub(crate) place: Place,
    /// The last bytes of what was there when it was opened.
    end: Vec<u8>,
    opened: SystemTime,
}

impl Deref for Snapshot {
    type Target = FileContent;

    fn deref(&self) -> &FileContent {
        &self.content
    }
}

/// How far apart two changes must be to get different times, on kernels before 6.13.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// How long to wait for another process to give back its lease on a file that we want to open.
const LEASE_MAX: Duration = Duration::from_secs(5);
/// How long a lock is waited for. A process that was just started has all our files open, and so holds their locks, until it
/// executes its program.
const LOCK_MAX: Duration = Duration::from_millis(100);

impl Snapshot {
    /// Opens a file for reading. It may be refused because of what kind of file it is, whatever its content.
    pub(crate) fn open(path: &Path, root: Option<&Path>) -> Result<Self, Stop> {
        let fail = |cause| Error::new(path, Error::OPEN, cause);
        let path = real_path_in(path, root)?;
        // Without waiting: a named pipe would block here for ever.
        let place = Place::hold(&path).map_err(fail)?;
        let file = open_patiently(&place, OFlags::RDONLY | OFlags::NONBLOCK).map_err(fail)?;
        let opened = SystemTime::now();
        let metadata = metadata::of_file(&file).map_err(fail)?;
        if !metadata.is_file() {
            return Err(Refusal::NotAFile.into());
        }
        if !acting::may_open(&metadata) {
            return Err(Deferral::Changed.into());
        }
        let mut end = vec![0; metadata.len().min(END_BYTES) as usize];
        // A file that shrinks at this moment gives an error when it is read.
        let at = metadata.len() - end.len() as u64;
        let got = file.read_at(&mut end, at).map_err(fail)?;
        end.truncate(got);
        let file = Arc::new(file);
        let content =
            FileContent { path, text: ContentText::File(file.clone()), metadata, scanned: Mutex::default() };
        Ok(Self { content, file, place, end, opened })
    }

    /// Locks the file against other Tailors, until the snapshot is dropped: with `flock`, on the file itself, so that nothing
    /// has to be cleared away after a crash. Agents that lock their transcripts in the same way are waited for like a Tailor.
    /// `false` if another file is at the path by now.
    pub(crate) fn lock(&self) -> Result<bool, Stop> {
        // Without such locks, the exchange itself shows whether there is another file at the path.
        let locked = lock_patiently(&self.file);
        if !locked.map_err(|cause| Error::new(&self.path, "lock the file", cause))? {
            return Err(Deferral::OtherTailor.into());
        }
        Ok(self.is_at_path()?)
    }

    /// Whether another process has locked the file, which we have not: another Tailor, or an agent that locks its transcripts in
    /// the same way.
    pub(crate) fn is_locked(&self) -> bool {
        lock::is_taken(&self.file)
    }

    /// Whether it was written to right before it was opened: a change after that may carry the same time.
    pub(crate) fn is_fresh(&self) -> bool {
        let changed = Duration::new(
            u64::try_from(self.metadata.ctime()).unwrap_or(0),
            u32::try_from(self.metadata.ctime_nsec()).unwrap_or(0),
        );
        let opened = self.opened.duration_since(UNIX_EPOCH).unwrap_or_default();
        opened < changed + CLOCK_TICK
    }

    /// Whether what was there when it was opened ended with a whole line.
    pub(crate) fn ends_line(&self) -> bool {
        ends_line(&self.end)
    }

    /// Why the file must not be replaced, if there is a reason that time will not cure.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        if self.metadata.nlink() > 1 {
            return Some(Refusal::HardLinks(self.metadata.nlink()));
        }
        owner::refusal(&self.file, &self.metadata, self.place.path())
    }

    /// Whether the path still names this very file.
    pub(crate) fn is_at_path(&self) -> Result<bool, Error> {
        let now = self.at_path()?;
        Ok(now.is_some_and(|now| FileId::from_metadata(&now) == FileId::from_metadata(&self.metadata)))
    }

    /// Whether the file still begins with what was there when it was opened, as far as its length, its times and its
    /// last bytes tell. More may have been appended, if what was there ended with a whole line.
    pub(crate) fn begins_as_read(&self) -> Result<bool, Error> {
        let fail = |cause| Error::new(&self.path, "look at the file again", cause);
        let now = metadata::of_file(&self.file).map_err(fail)?;
        if now.len() == self.bytes() {
            return Ok(Stamp::from_metadata(&now) == Stamp::from_metadata(&self.metadata));
        }
        if !self.ends_line() {
            return Ok(false);
        }
        self.known().holds(&self.file).map_err(fail)
    }

    /// The result of work on the file. An error becomes a deferral if another program rewrote the file meanwhile.
    pub(crate) fn unless_changed<T>(&self, done: Result<T, Stop>) -> Result<T, Stop> {
        match done {
            Err(Stop::Failed(_)) if self.is_at_path()? && !self.begins_as_read()? => {
                Err(Deferral::Changed.into())
            }
            other => other,
        }
    }

    /// Everything up to the length that the file had when it was opened.
    pub(crate) fn known(&self) -> KnownEnd {
        KnownEnd::new(self.bytes(), &self.end)
    }

    /// Whether the path still names this very file with these very bytes.
    pub(crate) fn is_current(&self) -> Result<bool, Error> {
        Ok(self
            .at_path()?
            .is_some_and(|now| Stamp::from_metadata(&now) == Stamp::from_metadata(&self.metadata)))
    }

    /// The metadata of the file at the path now.
    fn at_path(&self) -> Result<Option<Metadata>, Error> {
        self.place
            .metadata_of(self.place.name())
            .map_err(|cause| Error::new(&self.path, "look at the file again", cause))
    }
}

/// Acts as the owner of a file, or of the database in which a session is, until that is dropped: what root does with it is done as
/// that user. Everybody else acts as what they are.
pub(crate) fn as_owner(path: &Path) -> Result<Acting, Stop> {
    let store = store_file(path);
    let acting = acting::as_owner(store.unwrap_or(path), store.is_some());
    Ok(acting.map_err(|cause| Error::new(path, Error::OPEN, cause))??)
}

/// The path of a file without links. Refuses one that a link leads to from outside its root, or else its folder.
pub(crate) fn real_path_in(path: &Path, root: Option<&Path>) -> Result<PathBuf, Stop> {
    let real = |of: &Path| metadata::real_path(of).map_err(|cause| Error::new(path, Error::OPEN, cause));
    let (path, root) = (real(path)?, real(root.unwrap_or(folder_of(path)))?);
    if metadata::lies_in(&path, &root) { Ok(path) } else { Err(Refusal::LinkOutOfRoot.into()) }
}

/// Locks a file; `false` if somebody else keeps it locked.
fn lock_patiently(file: &File) -> io::Result<bool> {
    let until = Instant::now() + LOCK_MAX;
    while !lock::take(file)? {
        if Instant::now() >= until {
            return Ok(false);
        }
        sleep(Duration::from_millis(1));
    }
    Ok(true)
}

/// Opens a file. Another Tailor that has just replaced it holds a lease on it for some milliseconds, during which opening it
/// without blocking fails.
fn open_patiently(place: &Place, flags: OFlags) -> io::Result<File> {
    let until = Instant::now() + LEASE_MAX;
    loop {
        match place.open(place.name(), flags) {
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                sleep(Duration::from_millis(1));
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{OpenOptions, write};

    type Act = fn(&Path, &str);

    fn append(path: &Path, text: &str) {
        io::Write::write_all(&mut OpenOptions::new().append(true).open(path).unwrap(), text.as_bytes())
            .unwrap();
    }

    /// More may come behind a whole line; nothing else may happen to a file that was read.
    #[test]
    fn a_file_begins_as_read_if_whole_lines_came_after_whole_lines() {
        let rewrite: Act = |path, text| write(path, text).unwrap();
        let cases: [(_, Act, _, _); 6] = [
            ("{}\n", append, "", true),
            ("{}\n", append, "{}\n", true),
            ("{}\n{", append, "}\n", false),
            ("{}\n", rewrite, "{\n", false),
            ("{}\n{}\n", rewrite, "{}\n", false),
            ("{}\n", rewrite, "[]\n{}\n", false),
        ];
        for (before, act, text, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s.jsonl");
            write(&path, before).unwrap();
            let snapshot = Snapshot::open(&path, None).unwrap();
            act(&path, text);
            assert_eq!(snapshot.begins_as_read().unwrap(), expected, "{before:?} {text:?}");
        }
    }

    #[test]
    fn a_file_that_another_tailor_has_locked_is_seen_and_not_locked_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        write(&path, "{}\n").unwrap();
        let [one, other] = [(); 2].map(|()| Snapshot::open(&path, None).unwrap());
        assert!(!other.is_locked() && one.lock().unwrap() && other.is_locked());
        assert!(matches!(other.lock(), Err(Stop::Deferred(Deferral::OtherTailor))));
        drop(one);
        assert!(!other.is_locked() && other.lock().unwrap());
    }

    #[test]
    fn a_lock_that_is_let_go_in_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        write(&path, "{}\n").unwrap();
        let [one, other] = [(); 2].map(|()| File::open(&path).unwrap());
        assert!(lock::take(&one).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                sleep(LOCK_MAX / 20);
                drop(one);
            });
            assert!(lock_patiently(&other).unwrap());
        });
    }
}
