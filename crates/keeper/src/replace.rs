//! How a transcript is replaced while other programs append to it.

use crate::attributes;
use crate::error::Error;
use crate::gate::{Pass, process};
use crate::lease::{Lease, Refused};
use crate::leftover;
use crate::network;
use crate::new_text::NewText;
use crate::outcome::{Deferral, Guarantee};
use crate::snapshot::Snapshot;
use crate::step::{Step, before};
use crate::tail::{self, Known, State};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant, SystemTime};
use transcript::plan::Plan;

/// How long is waited for what. Tests have less patience, so that there can be more of them.
struct Patience {
    /// How long to try for the lease on the old file. Nobody waits for us meanwhile.
    lease: Duration,
    /// How long those who open the new file may wait for the drain, if somebody has slipped into the old one and
    /// stays.
    drain: Duration,
    /// How long a program may take between finding the old file and opening it, if programs were at it lately.
    grace: Duration,
    /// The same for a file that nobody was seen at.
    grace_quiet: Duration,
    /// How long late lines are waited for where there are no leases that tell when the last program is out.
    grace_without_lease: Duration,
    /// How long to wait, beyond the grace, for a program that has the old file open. It may be a program that holds
    /// it for good; then the old file keeps its name, and the next start goes on.
    holder: Duration,
}

const PATIENCE: Patience = if cfg!(test) {
    Patience {
        lease: Duration::from_millis(2),
        drain: Duration::from_millis(2),
        grace: Duration::from_millis(2),
        grace_quiet: Duration::from_millis(1),
        grace_without_lease: Duration::from_millis(2),
        holder: Duration::from_millis(2),
    }
} else {
    Patience {
        lease: Duration::from_millis(250),
        drain: Duration::from_millis(20),
        grace: Duration::from_millis(100),
        grace_quiet: Duration::from_millis(5),
        grace_without_lease: Duration::from_secs(1),
        holder: Duration::from_secs(2),
    }
};

/// What is done to the new text.
const WRITE: &str = "write the new text beside it";

/// How long ago is "lately". Whoever keeps to the default settle time finds files quiet for longer.
const LATELY: Duration = Duration::from_secs(2);

/// How often the old file is looked at during the grace.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// How much may be left to copy when the lease is asked for, in bytes. More is copied and made to last before.
const CATCH_UP_BYTES: u64 = 64 * 1024;

/// How often it is tried to get below that.
const CATCH_UP_ROUNDS: usize = 8;

/// How a replacement ended well.
pub(crate) struct Landed {
    pub(crate) guarantee: Guarantee,
    /// Whether lines came to the old file that have yet to be put in before those that others appended to the new one:
    /// [`leftover`] does that.
    pub(crate) late: bool,
}

/// What became of the exchange of names.
enum Exchanged {
    Done,
    /// There was nothing at the path.
    Gone,
    /// There was another file, and it is there again; for an instant ours was.
    Other,
}

/// Puts a new text in the place of a file, of which we hold the lock, without losing what others append meanwhile:
///
/// 1. (Done: the file was opened, locked, read and examined.)
/// 2. [`stage`](Replacement::stage): make a temporary file in the same folder, under a name that no agent looks for.
///    [`write`](Replacement::write): the new text goes there, while the originals are put into the vault and made to
///    last; then the owner, mode, access list and attributes of the old one; fsync.
///    [Catch up](Replacement::catch_up): what was appended since goes verbatim to its end.
/// 3. [`land`](Replacement::land): the locks of the programs that own it. [`lease_old`](Replacement::lease_old): read lease on the old file. From here on a program that opens it for
///    writing waits. Not to be had: somebody holds it open; wait for another time. No leases here: go on without,
///    if nothing at all has changed.
/// 4. [`is_unharmed`](Replacement::is_unharmed): is it still the file at the path, and does it still begin with what
///    was read? If not, give up. [Catch up](Replacement::catch_up_last) with the rest; fsync it.
/// 5. [`lease_new`](Replacement::lease_new): write lease on the new file, so that whoever finds it at the path waits
///    until 6 is done: this keeps the order. Times. [`exchange`](Replacement::exchange) the names of both files: the
///    old one keeps a name until its last line is out.
/// 6. Give back the old lease. [`drain`](Replacement::drain): who had found the old file before 5 opens it now and
///    appends; as soon as a read lease is to be had again, nobody is in. What came goes to the end of the new
///    file. Give back the new lease and the locks. fsync file and folder.
/// 7. [`linger`](Replacement::linger): keep the old file open for a grace period and drain again, for a program
///    may have been interrupted between finding and opening it. Unlink it. If others had appended to the new file by
///    then, [`leftover`] puts the late lines in before theirs, with this same recipe.
///
/// A crash at any step leaves the old bytes or the new ones at the path. A temporary file whose inode is not the one
/// in its name is unfinished; one whose inode is, is the old file and may hold late lines: [`leftover`] finishes 6
/// and 7.
pub(crate) struct Replacement<'a> {
    old: &'a Snapshot,
    new: File,
    /// The second name: of the new file before the exchange, of the old one after it.
    temporary: PathBuf,
    /// How many bytes of the old file are accounted for in the new one.
    known: Known,
    /// Whether the second name is that of the old file.
    exchanged: Cell<bool>,
    /// Length of the new file when others could first append to it.
    landed: Cell<u64>,
    start: Instant,
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if !self.exchanged.get() && before(Step::Clean).is_ok() {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

impl<'a> Replacement<'a> {
    /// Steps 3 to 7. `enter` asks the programs that own the file, and takes their locks: these are held for no longer
    /// than others have to stay out. Since the file was examined such a program may have begun something that only
    /// the new lines tell of; then another look is needed.
    pub(crate) fn land<E: From<Deferral>>(
        self,
        enter: impl FnOnce() -> Result<Result<Pass, E>, Error>,
    ) -> Result<Result<Landed, E>, Error> {
        let changed = || Ok(Err(Deferral::Changed.into()));
        if !self.catch_up()? {
            return changed();
        }
        let pass = match enter()? {
            Ok(pass) => pass,
            Err(reason) => return Ok(Err(reason)),
        };
        if pass.holds_lock() && !self.old.is_current()? {
            return changed();
        }
        let lease = match self.lease_old() {
            Ok(lease) => Some(lease),
            Err(Refused::Busy) => return Ok(Err(self.holder().unwrap_or(Deferral::HeldOpen).into())),
            Err(Refused::Unavailable) => match self.holder() {
                Some(held) => return Ok(Err(held.into())),
                None => None,
            },
            Err(Refused::Failed(cause)) => return Err(self.fail("ask for a lease on", cause)),
        };
        let guarantee = if lease.is_some() { Guarantee::Lease } else { Guarantee::Quiet };
        if !self.is_unharmed(guarantee)? || !self.catch_up_last()? {
            return changed();
        }
        let hold = self.lease_new()?;
        match self.exchange()? {
            Exchanged::Done => {}
            Exchanged::Gone => return changed(),
            Exchanged::Other => return Ok(Err(self.take_back(hold)?.into())),
        }
        drop(lease);
        if self.drain(guarantee)? == State::Rewritten {
            return Ok(Err(self.give_way(hold)?.into()));
        }
        drop(hold);
        drop(pass);
        let lingered = std::thread::scope(|scope| {
            // Without a thread it is done when the file is closed.
            let _ = Builder::new().spawn_scoped(scope, || give_back_memory(&self.old.file));
            self.sync()?;
            self.linger(guarantee)
        });
        match lingered? {
            State::Rewritten => Ok(Err(self.give_way(None)?.into())),
            state => Ok(Ok(Landed { guarantee, late: state != State::Empty })),
        }
    }

    /// Makes the file beside the old one that is to hold the new text, of this many bytes.
    pub(crate) fn stage(old: &'a Snapshot, bytes: u64) -> Result<Self, Error> {
        let fail = |cause| Error::new(&old.path, WRITE, cause);
        let temporary = leftover::name(old, bytes);
        before(Step::CreateTemporary).map_err(fail)?;
        let new = create(&temporary).map_err(fail)?;
        let (known, landed) = (old.known(), Cell::new(0));
        let exchanged = Cell::new(false);
        Ok(Self { old, new, temporary, known, exchanged, landed, start: Instant::now() })
    }

    /// Writes the new text and makes it last, and before that what `keep` keeps: the one while the other is done.
    pub(crate) fn write<T>(
        &self,
        text: &(dyn NewText + Sync),
        keep: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let fail = |cause| self.fail(WRITE, cause);
        before(Step::WriteText).map_err(fail)?;
        let (old, new) = (&self.old.file, &self.new);
        let (kept, written) = std::thread::scope(|scope| {
            let write = || text.write(old, new).and_then(|()| new.sync_data());
            match Builder::new().spawn_scoped(scope, write) {
                Ok(writing) => {
                    (keep(), writing.join().unwrap_or_else(|_| Err(io::Error::other("a thread ended early"))))
                }
                // No more threads are to be had.
                Err(_) => (keep(), write()),
            }
        });
        let kept = kept?;
        written.and_then(|()| self.sync_text()).map_err(fail)?;
        Ok(kept)
    }

    fn sync_text(&self) -> io::Result<()> {
        before(Step::CopyAttributes)?;
        attributes::take_over(&self.old.file, &self.new)?;
        before(Step::SyncText)?;
        self.new.sync_all()?;
        // From now on every write goes to its end, wherever that is then.
        let flags = rustix::fs::fcntl_getfl(&self.new)?;
        rustix::fs::fcntl_setfl(&self.new, flags | OFlags::APPEND)?;
        // Who finds the new file at the path before we are done finds it locked. On systems without locks for
        // descriptors like these the old file has none either.
        let _ = rustix::fs::flock(&self.new, FlockOperation::NonBlockingLockExclusive);
        Ok(())
    }

    fn fail(&self, verb: &'static str, cause: io::Error) -> Error {
        Error::new(&self.old.path, verb, cause)
    }

    /// Copies what was appended, until little is left. `false` if the old file shrank.
    fn catch_up(&self) -> Result<bool, Error> {
        let fail = |cause| self.fail("copy what was appended meanwhile", cause);
        before(Step::CatchUp).map_err(fail)?;
        for _ in 0..CATCH_UP_ROUNDS {
            match self.known.copy(&self.old.file, &self.new).map_err(fail)? {
                tail::Copied::Shrunk => return Ok(false),
                tail::Copied::Bytes(bytes) if bytes <= CATCH_UP_BYTES => break,
                tail::Copied::Bytes(_) => self.new.sync_data().map_err(fail)?,
            }
        }
        Ok(true)
    }

    fn lease_old(&self) -> Result<Lease<'_>, Refused> {
        before(Step::LeaseOld)?;
        // One that is given there keeps out nobody but the programs of this machine.
        if network::holds(&self.old.file) {
            return Err(Refused::Unavailable);
        }
        let until = Instant::now() + PATIENCE.lease;
        loop {
            match Lease::read(&self.old.file) {
                Err(Refused::Busy) if Instant::now() < until => sleep(Duration::from_micros(50)),
                other => return other,
            }
        }
    }

    /// A process that has the old file open for writing, as far as one can see.
    fn holder(&self) -> Option<Deferral> {
        let metadata = &self.old.metadata;
        let holders = process::holders(metadata.dev(), metadata.ino());
        let writes = holders.into_iter().find(|holder| holder.writes);
        writes.map(|holder| Deferral::Open { pid: holder.pid, name: holder.name })
    }

    fn is_unharmed(&self, guarantee: Guarantee) -> Result<bool, Error> {
        let held = self.known.holds(&self.old.file).map_err(|cause| self.fail("look again at", cause))?;
        let same = held && self.old.is_at_path()? && self.old.begins_as_read()?;
        // Without a lease only perfect quiet will do.
        Ok(same && (guarantee == Guarantee::Lease || self.old.is_current()?))
    }

    fn catch_up_last(&self) -> Result<bool, Error> {
        let fail = |cause| self.fail("copy what was appended meanwhile", cause);
        before(Step::CatchUpLast).map_err(fail)?;
        match self.known.copy(&self.old.file, &self.new).map_err(fail)? {
            tail::Copied::Bytes(0) if self.known.at() == self.old.bytes() => return Ok(true),
            tail::Copied::Shrunk => return Ok(false),
            tail::Copied::Bytes(_) => {}
        }
        before(Step::SyncTail).map_err(fail)?;
        self.new.sync_data().map_err(fail)?;
        Ok(true)
    }

    /// The lease on the new file, if there is one to be had: somebody who looks into every new file (a search index)
    /// may have it open; then lines may change places, but none is lost.
    fn lease_new(&self) -> Result<Option<Lease<'_>>, Error> {
        let fail = |cause| self.fail("ask for a lease on the new text of", cause);
        before(Step::LeaseNew).map_err(fail)?;
        match Lease::write(&self.new) {
            Ok(lease) => Ok(Some(lease)),
            Err(Refused::Failed(cause)) => Err(fail(cause)),
            Err(Refused::Busy | Refused::Unavailable) => Ok(None),
        }
    }

    /// Puts the new file at the path and the old one at the second name.
    fn exchange(&self) -> Result<Exchanged, Error> {
        let fail = |cause| self.fail("replace the file", cause);
        before(Step::SetTimes).map_err(fail)?;
        let now = self.old.file.metadata().map_err(fail)?;
        attributes::set_times(&self.new, &now).map_err(fail)?;
        self.landed.set(self.new.metadata().map_err(fail)?.len());
        before(Step::Exchange).map_err(fail)?;
        match swap(&self.temporary, &self.old.path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Exchanged::Gone),
            other => other.map_err(fail)?,
        }
        let aside = std::fs::symlink_metadata(&self.temporary).map_err(fail)?;
        if aside.ino() == now.ino() {
            self.exchanged.set(true);
            return Ok(Exchanged::Done);
        }
        // Somebody put another file there after we had looked: it belongs there.
        swap(&self.temporary, &self.old.path).map_err(fail)?;
        Ok(Exchanged::Other)
    }

    /// Brings over what those appended who had found the old file in time.
    fn drain(&self, guarantee: Guarantee) -> Result<State, Error> {
        let fail = |cause| self.late(cause);
        before(Step::Drain).map_err(fail)?;
        let until = Instant::now() + PATIENCE.drain;
        loop {
            let state = self.drain_once()?;
            if state != State::Busy || guarantee == Guarantee::Quiet || Instant::now() > until {
                self.landed.set(self.new.metadata().map_err(fail)?.len());
                return Ok(state);
            }
            sleep(Duration::from_micros(20));
        }
    }

    fn drain_once(&self) -> Result<State, Error> {
        self.known.drain(&self.old.file, &self.new).map_err(|cause| self.late(cause))
    }

    /// The same when others may have opened the new file: only if none of them has appended yet. Otherwise the lines
    /// have to be put in before theirs.
    fn drain_in_order(&self) -> Result<State, Error> {
        let fail = |cause| self.late(cause);
        if self.old.file.metadata().map_err(fail)?.len() == self.known.at() {
            return self.drain_once();
        }
        if !self.known.holds(&self.old.file).map_err(fail)? {
            return Ok(State::Rewritten);
        }
        // Given back when all is over.
        let alone = Lease::write(&self.new);
        let length = self.new.metadata().map_err(fail)?.len();
        if alone.is_err() || length != self.landed.get() {
            return Ok(State::Late);
        }
        let state = self.drain_once()?;
        self.landed.set(self.new.metadata().map_err(fail)?.len());
        Ok(state)
    }

    /// Somebody who had found the old file has written it anew from the beginning. That is what they want to see
    /// at the path, so it goes back there.
    fn give_way(&self, hold: Option<Lease<'_>>) -> Result<Deferral, Error> {
        before(Step::Exchange).map_err(|cause| self.late(cause))?;
        swap(&self.temporary, &self.old.path).map_err(|cause| self.late(cause))?;
        self.exchanged.set(false);
        self.take_back(hold)
    }

    /// Another file is at the path again. What others appended to ours while that was there goes behind it.
    fn take_back(&self, hold: Option<Lease<'_>>) -> Result<Deferral, Error> {
        let fail = |cause| self.late(cause);
        drop(hold);
        let path = tail::open_to_append(&self.old.path).map_err(fail)?;
        let reader = File::open(&self.temporary).map_err(fail)?;
        let landed = Known::of(&reader, self.landed.get()).map_err(fail)?;
        let until = Instant::now() + PATIENCE.grace;
        while Instant::now() < until {
            if tail::ends_line(&path).map_err(fail)? {
                landed.drain(&reader, &path).map_err(fail)?;
            }
            sleep(LOOK_EVERY);
        }
        path.sync_all().map_err(fail)?;
        Ok(Deferral::Changed)
    }

    fn sync(&self) -> Result<(), Error> {
        before(Step::SyncNew).map_err(|cause| self.late(cause))?;
        self.new.sync_all().map_err(|cause| self.late(cause))?;
        before(Step::SyncFolder).map_err(|cause| self.late(cause))?;
        sync_folder(&self.old.path).map_err(|cause| self.late(cause))
    }

    fn linger(&self, guarantee: Guarantee) -> Result<State, Error> {
        let fail = |cause| self.late(cause);
        let known = self.known.at();
        let until = Instant::now() + self.grace(guarantee);
        before(Step::Drain).map_err(fail)?;
        loop {
            // The last look comes after the grace.
            let over = Instant::now() >= until;
            let state = self.drain_in_order()?;
            // Without leases every look says that somebody may be in.
            let open = state == State::Busy && guarantee == Guarantee::Lease;
            let held = open && Instant::now() >= until + PATIENCE.holder;
            if state == State::Rewritten || (over && state == State::Late) || held {
                return Ok(state);
            }
            if over && !open {
                break;
            }
            sleep(LOOK_EVERY);
        }
        if self.known.at() > known {
            before(Step::SyncNew).map_err(fail)?;
            self.new.sync_all().map_err(fail)?;
        }
        before(Step::Unlink).map_err(fail)?;
        std::fs::remove_file(&self.temporary).map_err(fail)?;
        Ok(State::Empty)
    }

    fn grace(&self, guarantee: Guarantee) -> Duration {
        if guarantee == Guarantee::Quiet {
            return PATIENCE.grace_without_lease;
        }
        let quiet = self.old.metadata.modified().ok();
        let quiet = quiet.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        let grew = self.known.at() > self.old.bytes();
        let lately = quiet.is_none_or(|quiet| quiet < LATELY + self.start.elapsed());
        if grew || lately { PATIENCE.grace } else { PATIENCE.grace_quiet }
    }

    /// The new text is in place, but what came late may not be.
    fn late(&self, cause: io::Error) -> Error {
        let verb = "finish after the new text was put in place";
        self.fail(verb, cause)
            .with_way_out("late lines are kept beside it, and the next run brings them over")
    }
}

/// Lets go of what the kernel keeps of a file in memory. For the old one that has to be done when it loses its last name,
/// where everybody would wait for it.
fn give_back_memory(old: &File) {
    let _ = rustix::fs::fadvise(old, 0, None, rustix::fs::Advice::DontNeed);
}

fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?))
}

/// Exchanges the names of two files. Where the file system cannot do that at once, the old file gets its second name
/// first, which does no harm: it is the same name as after the exchange, but for its end.
fn swap(temporary: &Path, path: &Path) -> io::Result<()> {
    match exchange_names(temporary, path) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        other => return Ok(other?),
    }
    let aside = leftover::aside(temporary);
    std::fs::hard_link(path, &aside)?;
    std::fs::rename(temporary, path).inspect_err(|_| {
        let _ = std::fs::remove_file(&aside);
    })?;
    std::fs::rename(&aside, temporary)
}

#[cfg(target_os = "linux")]
fn exchange_names(one: &Path, other: &Path) -> Result<(), Errno> {
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
}

#[cfg(not(target_os = "linux"))]
fn exchange_names(_: &Path, _: &Path) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Makes the names in a file's folder last.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Writes what the plan makes of a file to a new one, which must not exist.
pub(crate) fn copy_to(snapshot: &Snapshot, plan: &Plan, path: &Path) -> Result<(), Error> {
    let fail = |cause| Error::new(path, "write the mended copy", cause);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    let file = create(path).map_err(fail)?;
    let written = plan.write(&snapshot.file, &file).and_then(|()| file.sync_all());
    written.map_err(|cause| {
        let _ = std::fs::remove_file(path);
        fail(cause)
    })
}
