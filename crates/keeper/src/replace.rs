//! How a transcript is replaced while other programs append to it.

use crate::beside;
use crate::content::Content;
use crate::deferral::Deferral;
use crate::error::Error;
use crate::gate::Pass;
use crate::identity::FileId;
use crate::lease::{Lease, Refused};
use crate::new_text::{NewText, hash_of, same_bytes};
use crate::outcome::Guarantee;
use crate::platform::facts::{self, MetadataExt};
use crate::platform::files::give_back_memory;
use crate::platform::writing::{NEW_TEXT, create_private, sync_others, to_its_end};
use crate::platform::{OFlags, attributes, lock};
use crate::snapshot::Snapshot;
use crate::step::{Step, before};
use crate::stop::Stop;
use crate::tail::{Came, Known, State, end_hash, ends_line};
use crate::vault::{Ledger, Pending, Run, Swap, Vault};
use crate::writers;
use blake3::Hash;
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant, SystemTime};
use transcript::Span;
use transcript::plan::Plan;

/// Timeouts of a replacement. Tests have less patience, so that there can be more of them.
struct Timeouts {
    /// How long those who open the new file may wait for the drain, if somebody has slipped into the old one and
    /// stays.
    drain: Duration,
    /// How long a program may take between finding the old file and opening it, if programs used it lately.
    grace: Duration,
    /// The same for a file that nobody used lately.
    grace_quiet: Duration,
    /// How long late lines are waited for where there are no leases that tell when the last program is out.
    grace_without_lease: Duration,
    /// How long to wait, beyond the grace, for a program that has the old file open. It may be a program that holds
    /// it for good; then the old file keeps its name, and the next start goes on.
    holder: Duration,
}

const TIMEOUTS: Timeouts = if cfg!(test) {
    Timeouts {
        drain: Duration::from_millis(2),
        grace: Duration::from_millis(2),
        grace_quiet: Duration::from_millis(1),
        grace_without_lease: Duration::from_millis(2),
        holder: Duration::from_millis(2),
    }
} else {
    Timeouts {
        drain: Duration::from_millis(20),
        grace: Duration::from_millis(100),
        grace_quiet: Duration::from_millis(5),
        grace_without_lease: Duration::from_secs(1),
        holder: Duration::from_secs(2),
    }
};

/// How the file of the new text is made where it has a name from the beginning.
const NEW_FILE: OFlags = NEW_TEXT.union(OFlags::CREATE).union(OFlags::EXCL);

/// What is done to the new text.
const WRITE: &str = "write the new text beside it";

/// What is done to lines that others append.
const COPY: &str = "copy what was appended meanwhile";

/// What is done to the bytes that were read.
const LOOK_AGAIN: &str = "look again at";

/// How long ago is "lately". Whoever keeps to the default settle time finds files quiet for longer.
const LATELY: Duration = Duration::from_secs(2);

/// How often the old file is looked at during the grace.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// The same where that takes a question to every process.
const LOOK_EVERY_WITHOUT_LEASE: Duration = Duration::from_millis(10);

/// How much may be left to copy when the lease is asked for, in bytes. More is copied and made to last before.
const CATCH_UP_BYTES: u64 = 64 * 1024;

/// How many times we try to get below that.
const CATCH_UP_ROUNDS: usize = 8;

/// How many times the comparison of a file that has grown gives way to a writer. After that it is put off until the new
/// text is in place, where nobody has to wait for it.
const COMPARE_TRIES: usize = 3;

/// For how long others go first after that.
const COMPARE_PAUSE: Duration = Duration::from_millis(2);

/// A file that was replaced.
pub(crate) struct Replaced {
    pub(crate) guarantee: Guarantee,
    /// The name of the run.
    pub(crate) run: String,
    /// Inode of the new file.
    pub(crate) inode: u64,
    /// Whether lines came to the old file that have yet to be put in before those that others appended to the new one:
    /// `leftover` does that.
    pub(crate) late: bool,
}

/// Puts a new text in the place of a file, of which we hold the lock, after `keep` has kept what it loses, and records in
/// the vault whether the run landed. `enter` says whether the file may be replaced. [`Replacement`] says how.
pub(crate) fn replace(
    old: &Snapshot,
    text: &(dyn NewText + Sync),
    vault: &Vault,
    keep: impl FnOnce(Pending, Swap) -> Result<Run, Stop>,
    enter: impl FnOnce() -> Result<Pass, Stop>,
) -> Result<Replaced, Stop> {
    let pending = vault.begin(&old.path)?;
    let run = pending.run().to_string();
    let work = Replacement::stage(old, &run, text.length())?;
    let (swap, inode) = (work.swap(), work.inode);
    let kept = work.write(text, || keep(pending, swap))?;
    let landed = work.land(&kept, text, enter);
    // After a failure the path tells. If not even that is to be found out, undo will ask the text.
    let is_new = match &landed {
        Err(Stop::Failed(_)) => !old.is_at_path().unwrap_or(false),
        other => other.is_ok(),
    };
    if is_new {
        kept.landed();
    } else if !beside::is_left(&old.place, &run) {
        kept.forget();
    }
    landed.map(|(guarantee, late)| Replaced { guarantee, run, inode, late })
}

/// Puts a new text in the place of a file, of which we hold the lock, without losing what others append meanwhile:
///
/// 1. (Done: the file was opened, locked, read and examined.)
/// 2. [`stage`](Replacement::stage): make a temporary file in the same folder, without a name yet.
///    [`write`](Replacement::write): the new text goes there, while the originals are put into the vault and made to
///    last, and the old file too, since agents do not see to that; then the owner, mode, access list and attributes of
///    the old one; fsync. [Catch up](Replacement::catch_up): what was appended since goes verbatim to its end.
/// 3. [`land`](Replacement::land): the locks of the programs that own it. [`shut`](Replacement::shut): read lease on the
///    old file. From here on a program that opens it for writing waits. Not to be had: somebody holds it open; wait for
///    another time. No leases here: go on without, and compare after 6 (`drained`), or, where not everybody is seen who may
///    have it open, only if nothing at all has changed (`quiet`).
/// 4. Is it still the file at the path, and does it still begin with what was read, byte for byte? If not, give up. Where
///    writers come so often that the comparison would make them wait, it is part of 7, and 5 is taken back then.
///    [Catch up](Replacement::catch_up_last) with the rest; make it last in both files.
/// 5. [`lease_new`](Replacement::lease_new): write lease on the new file, so that whoever finds it at the path waits
///    until 6 is done: this keeps the order. Times. A name that no agent looks for. [`exchange`](Replacement::exchange) the names of both files: the
///    old one keeps a name until its last line is out.
/// 6. Give back the old lease. [`drain`](Replacement::drain): who had found the old file before 5 opens it now and
///    appends; as soon as a read lease is to be had again, nobody is in. What came goes to the end of the new
///    file. Give back the new lease and the locks. fsync file and folder.
/// 7. [`linger`](Replacement::linger): keep the old file open for a grace period and drain again, for a program
///    may have been interrupted between finding and opening it. Unlink it, and make that last. If others had appended
///    to the new file by then, `leftover` puts the late lines in before theirs, with this same recipe.
///
/// The run's file in the vault names both files by their inodes, and a [`Ledger`] in it says how much of the old one is
/// accounted for in the new one. It is written before anything is copied, so that `leftover` can finish 6 and 7 after
/// a crash at any step, which leaves the old bytes or the new ones at the path.
struct Replacement<'a> {
    old: &'a Snapshot,
    new: File,
    /// Inode of the new file.
    inode: u64,
    /// Length of the new text, without what is appended to it.
    after: u64,
    /// The second name: of the new file right before the exchange, of the old one after it.
    temporary: String,
    /// Whether the new file has that name yet. Before that nothing is left of it if we die.
    named: Cell<bool>,
    /// How many bytes of the old file are accounted for in the new one.
    known: Known,
    /// Of what the new text leaves out: the bytes as they were before anything was written.
    removed: Cell<Option<Hash>>,
    /// Whether the second name is that of the old file.
    exchanged: Cell<bool>,
    /// Length of the new file, as far as it is of our making.
    landed: Cell<u64>,
    start: Instant,
}

/// What keeps others' lines safe from here to the exchange of names.
struct Shut<'f> {
    lease: Option<Lease<'f>>,
    guarantee: Guarantee,
    /// Whether all bytes are known to be those that were read.
    compared: bool,
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if self.named.get() && !self.exchanged.get() && before(Step::Clean).is_ok() {
            let _ = self.old.place.remove(&self.temporary);
        }
    }
}

impl<'a> Replacement<'a> {
    /// Makes the file beside the old one that is to hold the new text, of this many bytes, in this run.
    fn stage(old: &'a Snapshot, run: &str, after: u64) -> Result<Self, Error> {
        let fail = |cause| Error::new(&old.path, WRITE, cause);
        let temporary = beside::name(run);
        before(Step::CreateTemporary).map_err(fail)?;
        let (new, named) = match old.place.create_unnamed() {
            Ok(new) => (new, false),
            // Not every file system has files without a name.
            Err(_) => (old.place.open(&temporary, NEW_FILE).map_err(fail)?, true),
        };
        let inode = facts::of(&new).map_err(fail)?.ino();
        let (known, landed) = (old.known(), Cell::new(after));
        let (named, removed, exchanged) = (Cell::new(named), Cell::new(None), Cell::new(false));
        let start = Instant::now();
        Ok(Self { old, new, inode, after, temporary, named, known, removed, exchanged, landed, start })
    }

    /// What the run's file says of this replacement.
    fn swap(&self) -> Swap {
        let old = FileId::of(&self.old.metadata);
        Swap {
            old,
            new: FileId { inode: self.inode, ..old },
            before: self.old.bytes(),
            end: end_hash(&self.old.known().end()),
            after: self.after,
        }
    }

    /// Writes the new text and makes it last, and the old one as well, while `keep` keeps what goes.
    fn write<T>(
        &self,
        text: &(dyn NewText + Sync),
        keep: impl FnOnce() -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let fail = |cause| self.fail(WRITE, cause);
        before(Step::WriteText).map_err(fail)?;
        let (old, new) = (&self.old.file, &self.new);
        // Before the vault and the new file read these bytes: an edit in between must not go unseen.
        self.removed.set(hash_of(old, &text.removed(self.old.bytes()), &|| false).map_err(fail)?);
        let (kept, written) = std::thread::scope(|scope| {
            let write = || {
                sync_others(old)?;
                text.write(old, new)?;
                new.sync_data()
            };
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
        to_its_end(&self.new)?;
        // Who finds the new file at the path before we are done finds it locked. On systems without locks for
        // descriptors like these the old file has none either.
        let _ = lock::take(&self.new);
        Ok(())
    }

    fn fail(&self, verb: &'static str, cause: io::Error) -> Error {
        Error::new(&self.old.path, verb, cause)
    }

    /// Steps 3 to 7, in `run`. `enter` asks the programs that own the file, and takes their locks: these are held for no
    /// longer than others have to stay out. Since the file was examined such a program may have begun something that
    /// only the new lines tell of; then another look is needed. Gives what kept others' lines safe, and whether lines came
    /// late.
    fn land(
        self,
        run: &Run,
        text: &dyn NewText,
        enter: impl FnOnce() -> Result<Pass, Stop>,
    ) -> Result<(Guarantee, bool), Stop> {
        self.catch_up(run)?;
        let pass = enter()?;
        if pass.holds_lock() && !self.old.is_current()? {
            return Err(Deferral::Changed.into());
        }
        let Shut { lease, guarantee, compared } = self.shut(run, text)?;
        self.catch_up_last(run)?;
        let hold = self.lease_new()?;
        if !self.exchange()? {
            return Err(self.take_back(run, hold)?.into());
        }
        drop(lease);
        if self.drain(run, hold.as_ref(), guarantee)? == State::Rewritten {
            return Err(self.give_way(run, hold)?.into());
        }
        drop(hold);
        drop(pass);
        if !compared && self.has_kept(text, &|| false).map_err(|cause| self.late(cause))? == Some(false) {
            return Err(self.give_way(run, None)?.into());
        }
        let lingered = std::thread::scope(|scope| {
            // Without a thread it is done when the file is closed.
            let _ = Builder::new().spawn_scoped(scope, || give_back_memory(&self.old.file));
            self.sync()?;
            self.linger(run, guarantee)
        });
        match lingered? {
            State::Rewritten => Err(self.give_way(run, None)?.into()),
            state => Ok((guarantee, state != State::Empty)),
        }
    }

    /// Copies what was appended, until little is left.
    fn catch_up(&self, run: &Run) -> Result<(), Stop> {
        let fail = |cause| self.fail(COPY, cause);
        before(Step::CatchUp).map_err(fail)?;
        for _ in 0..CATCH_UP_ROUNDS {
            let end = self.old.file.metadata().map_err(fail)?.len();
            match end.checked_sub(self.known.at()) {
                None => return Err(Deferral::Changed.into()),
                Some(bytes) if bytes <= CATCH_UP_BYTES => break,
                Some(_) => {}
            }
            sync_others(&self.old.file).map_err(fail)?;
            self.carry(run, end).map_err(fail)?;
        }
        Ok(())
    }

    /// Brings over what the old file has up to `end`. The ledger tells of it first, so that after a crash what had come
    /// over is told from what others have appended.
    fn carry(&self, run: &Run, end: u64) -> io::Result<()> {
        let (known, at) = (self.known.at(), self.landed.get());
        if end <= known {
            return Ok(());
        }
        before(Step::Note)?;
        run.note(&Ledger { known, upto: end, at, current: self.inode })?;
        run.sync()?;
        self.known.copy(&self.old.file, &self.new, end)?;
        self.new.sync_data()?;
        let at = self.new.metadata()?.len();
        self.landed.set(at);
        run.note(&Ledger { known: end, upto: end, at, current: self.inode })
    }

    /// Keeps writers out of the old file, if it is still what was read but for what was appended. Whether it is takes a
    /// comparison of all bytes if it has changed at all; a writer who comes meanwhile goes first, a few times.
    ///
    /// Nobody comes in as long as the lease is held. Without one others may come as long as the names are not
    /// exchanged: the comparison comes after that if all of them are seen, and else nothing at all may have changed.
    fn shut(&self, run: &Run, text: &dyn NewText) -> Result<Shut<'_>, Stop> {
        for attempt in 1..=COMPARE_TRIES {
            let Content { path, file, metadata } = &**self.old;
            let lease = writers::keep_out(path, file, metadata, writers::PATIENCE)?;
            let guarantee = match lease {
                Some(_) => Guarantee::Lease,
                None if writers::are_seen(file, metadata) => Guarantee::Drained,
                None => Guarantee::Quiet,
            };
            let stop = || lease.as_ref().is_some_and(Lease::is_wanted);
            let compared = match self.is_as_read(guarantee)? {
                None if guarantee == Guarantee::Drained => None,
                None => self.has_kept(text, &stop).map_err(|cause| self.fail(LOOK_AGAIN, cause))?,
                known => known,
            };
            match compared {
                Some(true) => return Ok(Shut { lease, guarantee, compared: true }),
                Some(false) => break,
                None if attempt == COMPARE_TRIES || guarantee == Guarantee::Drained => {
                    return Ok(Shut { lease, guarantee, compared: false });
                }
                None => {}
            }
            drop(lease);
            sleep(COMPARE_PAUSE);
            self.catch_up(run)?;
        }
        Err(Deferral::Changed.into())
    }

    /// Whether the file at the path is the one that was read, and still has what was read. `None` if somebody may have
    /// appended to it, and only a comparison tells whether anything else was done.
    fn is_as_read(&self, guarantee: Guarantee) -> Result<Option<bool>, Error> {
        if self.old.is_current()? {
            return Ok(match guarantee {
                Guarantee::Lease => (!self.old.is_fresh()).then_some(true),
                Guarantee::Drained => None,
                Guarantee::Quiet => Some(true),
            });
        }
        // A line that was torn may be a whole one now.
        let may_have_grown =
            guarantee != Guarantee::Quiet && self.old.ends_line() && self.old.is_at_path()?;
        let holds = || self.known.holds(&self.old.file).map_err(|cause| self.fail(LOOK_AGAIN, cause));
        Ok(if may_have_grown && holds()? { None } else { Some(false) })
    }

    /// Whether the old file still has each byte that was read. `None` if `stop` said so.
    fn has_kept(&self, text: &dyn NewText, stop: &dyn Fn() -> bool) -> io::Result<Option<bool>> {
        before(Step::Compare)?;
        let caught_up = (Span::new(self.old.bytes(), self.known.at()), self.after);
        for (span, at) in text.kept().into_iter().chain([caught_up]) {
            match same_bytes(&self.old.file, span, &self.new, at, stop)? {
                Some(same) if same == span.len() => {}
                other => return Ok(other.map(|_| false)),
            }
        }
        let removed = hash_of(&self.old.file, &text.removed(self.old.bytes()), stop)?;
        Ok(removed.map(|removed| Some(removed) == self.removed.get()))
    }

    /// Copies the rest, and makes it last in both files: after a power cut nobody must be able to take what the disk lost
    /// for what a program wrote.
    fn catch_up_last(&self, run: &Run) -> Result<(), Stop> {
        let fail = |cause| self.fail(COPY, cause);
        before(Step::CatchUpLast).map_err(fail)?;
        let end = self.old.file.metadata().map_err(fail)?.len();
        let (known, at) = (self.known.at(), self.landed.get());
        if end < known {
            return Err(Deferral::Changed.into());
        }
        if end == known {
            return Ok(());
        }
        run.note(&Ledger { known, upto: end, at, current: self.inode }).map_err(fail)?;
        self.known.copy(&self.old.file, &self.new, end).map_err(fail)?;
        let at = self.new.metadata().map_err(fail)?.len();
        self.landed.set(at);
        run.note(&Ledger { known: end, upto: end, at, current: self.inode }).map_err(fail)?;
        before(Step::SyncTail).map_err(fail)?;
        // At once, for writers wait.
        std::thread::scope(|scope| {
            let others = [
                Builder::new().spawn_scoped(scope, || sync_others(&self.old.file)),
                Builder::new().spawn_scoped(scope, || run.sync()),
            ];
            let spawned = others.iter().all(Result::is_ok);
            let mut done = vec![self.new.sync_data()];
            for other in others.into_iter().flatten() {
                done.push(other.join().unwrap_or_else(|_| Err(io::Error::other("a thread ended early"))));
            }
            if !spawned {
                done.extend([sync_others(&self.old.file), run.sync()]);
            }
            done.into_iter().collect::<io::Result<()>>()
        })
        .map_err(|cause| fail(cause).into())
    }

    /// The lease on the new file, if there is one to be had: somebody who looks into every new file (a search index)
    /// may have it open; then nothing is appended to it, and lines that come late wait for `leftover`.
    fn lease_new(&self) -> Result<Option<Lease<'_>>, Error> {
        let fail = |cause| self.fail("ask for a lease on the new text of", cause);
        before(Step::LeaseNew).map_err(fail)?;
        match Lease::write(&self.new) {
            Ok(lease) => Ok(Some(lease)),
            Err(Refused::Failed(cause)) => Err(fail(cause)),
            Err(Refused::Busy | Refused::Unavailable) => Ok(None),
        }
    }

    /// Puts the new file at the path and the old one at the second name. `false` if there was another file at the path; it
    /// is there again, and for an instant ours was.
    fn exchange(&self) -> Result<bool, Stop> {
        let fail = |cause| self.fail("replace the file", cause);
        before(Step::SetTimes).map_err(fail)?;
        let now = facts::of(&self.old.file).map_err(fail)?;
        attributes::set_times(&self.new, &now).map_err(fail)?;
        if !self.named.get() {
            before(Step::Name).map_err(fail)?;
            self.old.place.name_it(&self.new, &self.temporary).map_err(fail)?;
            self.named.set(true);
        }
        before(Step::Exchange).map_err(fail)?;
        match self.swap_names() {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Err(Deferral::Changed.into()),
            other => other.map_err(fail)?,
        }
        let second = self.old.place.look(&self.temporary).map_err(fail)?;
        if second.is_some_and(|second| second.ino() == now.ino()) {
            self.exchanged.set(true);
            return Ok(true);
        }
        // Somebody put another file there after we had looked: it belongs there.
        self.swap_names().map_err(fail)?;
        Ok(false)
    }

    /// Exchanges the names of the two files. Where the file system cannot do that at once, the old file gets its second
    /// name first, which does no harm: it is the same name as after the exchange, but for its end.
    fn swap_names(&self) -> io::Result<()> {
        let (place, temporary) = (&self.old.place, &self.temporary);
        if place.exchange(temporary, place.name())? {
            return Ok(());
        }
        let aside = beside::aside(temporary);
        place.link(place.name(), &aside)?;
        place.rename(temporary, place.name()).inspect_err(|_| {
            let _ = place.remove(&aside);
        })?;
        place.rename(&aside, temporary)
    }

    /// Brings over what those appended who had found the old file in time.
    fn drain(&self, run: &Run, hold: Option<&Lease<'_>>, guarantee: Guarantee) -> Result<State, Error> {
        before(Step::Drain).map_err(|cause| self.late(cause))?;
        let until = Instant::now() + TIMEOUTS.drain;
        loop {
            let state = self.drain_once(run, hold)?;
            if state != State::Busy || guarantee != Guarantee::Lease || Instant::now() > until {
                return Ok(state);
            }
            sleep(Duration::from_micros(20));
        }
    }

    /// Brings over what came to the old file, while nobody else can append to the new one, and only if nobody has:
    /// otherwise these lines have to be put in before theirs. So what was brought over always follows the new text.
    fn drain_once(&self, run: &Run, hold: Option<&Lease<'_>>) -> Result<State, Error> {
        let fail = |cause| self.late(cause);
        let (end, state, _closed) = match self.known.came(&self.old.file).map_err(fail)? {
            Came::Rewritten => return Ok(State::Rewritten),
            Came::All(end, lease) => (end, State::Empty, Some(lease)),
            Came::Lines(end) => (end, State::Busy, None),
        };
        if end == self.known.at() {
            return Ok(state);
        }
        // Held until this look is over.
        let own = hold.is_none().then(|| Lease::write(&self.new));
        let length = self.new.metadata().map_err(fail)?.len();
        if matches!(own, Some(Err(_))) || length != self.landed.get() {
            return Ok(State::Late);
        }
        self.carry(run, end).map(|()| state).map_err(fail)
    }

    /// Somebody who had found the old file has written it anew from the beginning. That is what they want to see
    /// at the path, so it goes back there.
    fn give_way(&self, run: &Run, hold: Option<Lease<'_>>) -> Result<Deferral, Error> {
        before(Step::Exchange).map_err(|cause| self.late(cause))?;
        self.swap_names().map_err(|cause| self.late(cause))?;
        self.exchanged.set(false);
        self.take_back(run, hold)
    }

    /// Another file is at the path again. What others appended to ours while that was there goes to the end of it.
    fn take_back(&self, run: &Run, hold: Option<Lease<'_>>) -> Result<Deferral, Error> {
        let fail = |cause| self.late(cause);
        drop(hold);
        let place = &self.old.place;
        let path = place.open(place.name(), OFlags::RDWR | OFlags::APPEND).map_err(fail)?;
        let reader = place.open(&self.temporary, OFlags::RDONLY).map_err(fail)?;
        let current = facts::of(&path).map_err(fail)?.ino();
        let ours = Known::of(&reader, self.landed.get()).map_err(fail)?;
        let until = Instant::now() + TIMEOUTS.grace;
        while Instant::now() < until {
            let at = path.metadata().map_err(fail)?.len();
            if ends_line(&path, at).map_err(fail)?
                && let Came::All(upto, _) | Came::Lines(upto) = ours.came(&reader).map_err(fail)?
                && upto > ours.at()
            {
                run.note(&Ledger { known: ours.at(), upto, at, current }).map_err(fail)?;
                ours.copy(&reader, &path, upto).map_err(fail)?;
                let at = path.metadata().map_err(fail)?.len();
                run.note(&Ledger { known: upto, upto, at, current }).map_err(fail)?;
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
        self.old.place.sync().map_err(|cause| self.late(cause))
    }

    fn linger(&self, run: &Run, guarantee: Guarantee) -> Result<State, Error> {
        let fail = |cause| self.late(cause);
        let until = Instant::now() + self.grace(guarantee);
        before(Step::Drain).map_err(fail)?;
        loop {
            // The last look comes after the grace.
            let over = Instant::now() >= until;
            // Who is out before the look has written all of it.
            let may_be_open = over && self.is_open(guarantee);
            let state = self.drain_once(run, None)?;
            let open = state == State::Busy && may_be_open;
            let held = open && Instant::now() >= until + TIMEOUTS.holder;
            if state == State::Rewritten || (over && state == State::Late) || held {
                return Ok(state);
            }
            if over && !open {
                if state == State::Busy && !self.is_over().map_err(fail)? {
                    return Ok(State::Late);
                }
                break;
            }
            sleep(if guarantee == Guarantee::Lease { LOOK_EVERY } else { LOOK_EVERY_WITHOUT_LEASE });
        }
        before(Step::Unlink).map_err(fail)?;
        self.old.place.remove(&self.temporary).map_err(fail)?;
        // A power cut must not bring it back when its record says nothing of it any more.
        before(Step::SyncUnlink).map_err(fail)?;
        self.old.place.sync().map_err(fail)?;
        // What turns up under this name from now on is not ours.
        run.note(&Ledger::CLOSED).map_err(fail)?;
        Ok(State::Empty)
    }

    /// Whether all of the old file is accounted for: no program has died there in the middle of a line.
    fn is_over(&self) -> io::Result<bool> {
        Ok(self.old.file.metadata()?.len() <= self.known.at())
    }

    /// Whether somebody may have the old file open. Without leases every look says so; then those count that are seen.
    fn is_open(&self, guarantee: Guarantee) -> bool {
        match guarantee {
            Guarantee::Lease => true,
            Guarantee::Drained => writers::holds(&Err(Refused::Unavailable), &self.old.file),
            Guarantee::Quiet => false,
        }
    }

    fn grace(&self, guarantee: Guarantee) -> Duration {
        if guarantee != Guarantee::Lease {
            return TIMEOUTS.grace_without_lease;
        }
        let quiet = self.old.metadata.modified().ok();
        let quiet = quiet.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        let grew = self.known.at() > self.old.bytes();
        let lately = quiet.is_none_or(|quiet| quiet < LATELY + self.start.elapsed());
        if grew || lately { TIMEOUTS.grace } else { TIMEOUTS.grace_quiet }
    }

    /// The new text is in place, but what came late may not be.
    fn late(&self, cause: io::Error) -> Error {
        let verb = "finish after the new text was put in place";
        self.fail(verb, cause)
            .with_way_out("lines appended meanwhile are queued beside it, and the next run merges them")
    }
}

/// Writes what the plan makes of a file to a new one, which must not exist.
pub(crate) fn copy_to(snapshot: &Snapshot, plan: &Plan, path: &Path) -> Result<(), Error> {
    let fail = |cause| Error::new(path, "write the mended copy", cause);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    let file = create_private(path).map_err(fail)?;
    let written = plan.write(&snapshot.file, &file).and_then(|()| file.sync_all());
    written.map_err(|cause| {
        let _ = std::fs::remove_file(path);
        fail(cause)
    })
}
