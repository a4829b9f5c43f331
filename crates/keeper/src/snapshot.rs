//! A file as it was when we opened it: its bytes, read in windows, and what tells it from another.

use crate::deferral::Deferral;
use crate::error::Error;
use crate::place::Place;
use crate::refusal::Refusal;
use crate::tail::{END_BYTES, Known};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use transcript::{Fault, Source};

/// An open file and who it is.
pub(crate) struct Snapshot {
    /// The file itself, links resolved; for messages and to tell it from others.
    pub(crate) path: PathBuf,
    /// Where it is, for everything that is done to it.
    pub(crate) place: Place,
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
    /// The last bytes of what was there when it was opened.
    end: Vec<u8>,
    opened: SystemTime,
}

/// How far apart two changes must be to have different times, on kernels before 6.13.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// How long somebody may hold a lease on a file that we want to read.
const LEASE_MAX: Duration = Duration::from_secs(5);

/// How often a path is opened again that another Tailor has put a new file at in between.
const OPEN_TRIES: usize = 5;

/// What stays the same as long as nobody writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    /// Unlike the time above, no program can set this one.
    changed: (i64, i64),
}

impl Identity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Snapshot {
    /// Opens a file for reading. A refusal is about what stands at the path, whatever is in it.
    pub(crate) fn open(path: &Path, root: Option<&Path>) -> Result<Result<Self, Refusal>, Error> {
        let fail = |cause| Error::new(path, "open the file", cause);
        let real = path.canonicalize().map_err(fail)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let root = root.unwrap_or(parent).canonicalize().map_err(fail)?;
        if !real.starts_with(&root) {
            return Ok(Err(Refusal::LinkOutOfRoot));
        }
        // Without waiting: a named pipe would block here for ever.
        let place = Place::hold(&real).map_err(fail)?;
        let file = open_patiently(&place, OFlags::RDONLY | OFlags::NONBLOCK).map_err(fail)?;
        let opened = SystemTime::now();
        let metadata = file.metadata().map_err(fail)?;
        if !metadata.is_file() {
            return Ok(Err(Refusal::NotAFile));
        }
        let mut end = vec![0; metadata.len().min(END_BYTES) as usize];
        // A file that shrinks at this moment gives an error when it is read.
        let at = metadata.len() - end.len() as u64;
        let got = file.read_at(&mut end, at).map_err(fail)?;
        end.truncate(got);
        Ok(Ok(Self { path: real, place, file, metadata, end, opened }))
    }

    /// Opens a file and locks it against other Tailors, until the snapshot is dropped: with `flock`, on the file
    /// itself, so that nothing has to be cleared away after a crash. Agents that lock their transcripts in the same
    /// way are waited for like a Tailor.
    pub(crate) fn open_locked(
        path: &Path,
        root: Option<&Path>,
    ) -> Result<Result<Result<Self, Deferral>, Refusal>, Error> {
        for _ in 0..OPEN_TRIES {
            let snapshot = match Self::open(path, root)? {
                Ok(snapshot) => snapshot,
                Err(refusal) => return Ok(Err(refusal)),
            };
            match rustix::fs::flock(&snapshot.file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => return Ok(Ok(Err(Deferral::OtherTailor))),
                // Without such locks the exchange itself tells whether another file has come to the path.
                Err(Errno::BADF | Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) | Ok(()) => {}
                Err(errno) => return Err(Error::new(path, "lock the file", errno.into())),
            }
            if snapshot.is_at_path()? {
                return Ok(Ok(Ok(snapshot)));
            }
        }
        Ok(Ok(Err(Deferral::Changed)))
    }

    /// Whether another Tailor, or an agent that locks its files in the same way, is at the file, which we have not locked.
    pub(crate) fn is_locked(&self) -> bool {
        let locked = rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockShared);
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        locked == Err(Errno::WOULDBLOCK)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.metadata.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
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
        self.end.is_empty() || self.end.ends_with(b"\n")
    }

    /// Why the file must not be replaced, if there is a reason that time will not cure.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let user = rustix::process::geteuid();
        if self.metadata.nlink() > 1 {
            return Some(Refusal::HardLinks(self.metadata.nlink()));
        }
        let owner = self.metadata.uid();
        if user.is_root() {
            // A folder on the way that cannot be looked at is one that somebody has taken away.
            let loose = self.place.loose_folder(&self.metadata);
            return loose.unwrap_or_else(|_| Some(self.place.path_of(""))).map(Refusal::LooseFolder);
        }
        (owner != user.as_raw()).then_some(Refusal::ForeignOwner(owner))
    }

    /// Whether the path still names this very file.
    pub(crate) fn is_at_path(&self) -> Result<bool, Error> {
        let now = self.at_path()?;
        let same = |now: Metadata| (now.dev(), now.ino()) == (self.metadata.dev(), self.metadata.ino());
        Ok(now.is_some_and(same))
    }

    /// Whether the file still begins with what was there when it was opened, as far as its length, its times and its
    /// last bytes tell. More may have been appended, if what was there ended with a whole line.
    pub(crate) fn begins_as_read(&self) -> Result<bool, Error> {
        let fail = |cause| Error::new(&self.path, "look at the file again", cause);
        let now = self.file.metadata().map_err(fail)?;
        if now.len() == self.bytes() {
            return Ok(Identity::of(&now) == Identity::of(&self.metadata));
        }
        if now.len() < self.bytes() || !self.ends_line() {
            return Ok(false);
        }
        self.known().holds(&self.file).map_err(fail)
    }

    /// What came of work on the file; a deferral in the place of an error that only says that somebody rewrote it in
    /// the middle.
    pub(crate) fn unless_changed<T>(&self, done: Result<T, Error>) -> Result<Result<T, Deferral>, Error> {
        match done {
            Err(_) if self.is_at_path()? && !self.begins_as_read()? => Ok(Err(Deferral::Changed)),
            other => other.map(Ok),
        }
    }

    /// What is known of it: all that was there when it was opened.
    pub(crate) fn known(&self) -> Known {
        Known::new(self.bytes(), &self.end)
    }

    /// Whether the path still names this very file with these very bytes.
    pub(crate) fn is_current(&self) -> Result<bool, Error> {
        Ok(self.at_path()?.is_some_and(|now| Identity::of(&now) == Identity::of(&self.metadata)))
    }

    /// What stands at the path now.
    fn at_path(&self) -> Result<Option<Metadata>, Error> {
        self.place
            .look(self.place.name())
            .map_err(|cause| Error::new(&self.path, "look at the file again", cause))
    }

    /// Lets `work` read the bytes and gives the cause if they could not be read.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&dyn Source) -> Result<T, Fault>) -> Result<T, Error> {
        self.read_first(self.bytes(), work)
    }

    /// The same with the first `bytes` only.
    pub(crate) fn read_first<T>(
        &self,
        bytes: u64,
        work: impl FnOnce(&dyn Source) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let source = FileSource::new(&self.file, bytes.min(self.bytes()));
        work(&source).map_err(|fault| {
            let gone =
                || io::Error::other(format!("the file ends before byte {}: it shrank meanwhile", fault.at));
            Error::new(&self.path, "read the file", source.cause.take().unwrap_or_else(gone))
        })
    }
}

/// Opens a file. Another Tailor that has just replaced it holds a lease on it for some milliseconds, for which those
/// who open it without waiting are turned away.
fn open_patiently(place: &Place, flags: OFlags) -> io::Result<File> {
    let until = Instant::now() + LEASE_MAX;
    loop {
        match place.open(place.name(), flags) {
            Err(Errno::AGAIN) if Instant::now() < until => sleep(Duration::from_millis(1)),
            other => return Ok(other?),
        }
    }
}

/// How many bytes of transcripts this thread has read, again and again included: what looking costs, whatever the
/// machine is busy with.
pub fn bytes_read() -> u64 {
    BYTES_READ.get()
}

thread_local! {
    static BYTES_READ: Cell<u64> = const { Cell::new(0) };
}

/// A file of known length, read by offset. What is appended meanwhile is not seen.
struct FileSource<'a> {
    file: &'a File,
    bytes: u64,
    cause: RefCell<Option<io::Error>>,
}

impl<'a> FileSource<'a> {
    fn new(file: &'a File, bytes: u64) -> Self {
        Self { file, bytes, cause: RefCell::new(None) }
    }
}

impl Source for FileSource<'_> {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let wanted = self.bytes.saturating_sub(at).min(buffer.len() as u64) as usize;
        let mut filled = 0;
        while filled < wanted {
            match self.file.read_at(&mut buffer[filled..wanted], at + filled as u64) {
                Ok(0) => return Err(Fault { at: at + filled as u64 }),
                Ok(got) => {
                    BYTES_READ.set(BYTES_READ.get() + got as u64);
                    filled += got;
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => {
                    *self.cause.borrow_mut() = Some(cause);
                    return Err(Fault { at });
                }
            }
        }
        Ok(filled)
    }
}

/// Takes all of standard input, or what stands for it, into a file without a name, so that it can be read at any place.
///
/// # Errors
///
/// When the stream cannot be read or the temporary folder cannot be written.
pub fn spool(
    stream: impl io::Read,
    work: impl FnOnce(&dyn Source) -> Result<(), Fault>,
) -> Result<(), Error> {
    spool_as(Path::new("standard input"), "read all of it", stream, work)
}

/// A temporary file that nobody else can open.
pub(crate) fn unnamed_file() -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    Ok(rustix::fs::open(std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// The same of any stream; `name` and `verb` are for errors.
pub(crate) fn spool_as(
    name: &Path,
    verb: &'static str,
    mut stream: impl io::Read,
    work: impl FnOnce(&dyn Source) -> Result<(), Fault>,
) -> Result<(), Error> {
    let fail = |cause| Error::new(name, verb, cause);
    let mut file =
        unnamed_file().map_err(|cause| Error::new(&std::env::temp_dir(), "make a temporary file", cause))?;
    let bytes = io::copy(&mut stream, &mut file).map_err(fail)?;
    let source = FileSource::new(&file, bytes);
    work(&source).map_err(|_| fail(source.cause.take().unwrap_or_else(|| io::Error::other("it ends early"))))
}
