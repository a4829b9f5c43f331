//! How a transcript is replaced while other programs append to it.

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::gate::Pass;
use crate::ask::outcome::Guarantee;
use crate::ask::stop::Stop;
use crate::ask::writers;
use crate::base::refusal::Refusal;
use crate::base::step::{Step, before};
use crate::disk::appends::{Appended, DrainState, KnownEnd, end_hash, ends_line_at};
use crate::disk::beside;
use crate::disk::folder::{Folder, Place, folder_of, has_no_links};
use crate::disk::lease::{Lease, Refused};
use crate::disk::new_text::{NewText, hash_of, same_bytes, shrank};
use crate::platform::attributes::{self, Attributes};
use crate::platform::files::give_back_memory;
use crate::platform::identity::FileId;
use crate::platform::metadata::{self, MetadataExt};
use crate::platform::writing::{NEW_TEXT, sync_data, sync_others, to_its_end};
use crate::platform::{OFlags, System, This, lock};
use crate::swap::content::FileContent;
use crate::swap::snapshot::Snapshot;
use crate::vault::{Ledger, Pending, Run, Swap, Vault};
use blake3::Hash;
use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant, SystemTime};
use transcript::Span;
use transcript::plan::Plan;

/// Timeouts of a replacement. They are short in tests, so that there can be many tests.
struct Timeouts {
    /// How long programs that open the new file may be kept waiting while another program has the old one open and is
    /// drained.
    drain: Duration,
    /// How long a program may take between resolving the path and opening the old file, if the file was used lately.
    grace: Duration,
    /// How long such a program may take if the file was not used lately.
    grace_quiet: Duration,
    /// How long to wait for late lines where there are no leases, which would show when the last writer has closed the file.
    grace_without_lease: Duration,
    /// How long to wait, beyond the grace period, for a program that has the old file open. It may never close it; then
    /// the old file keeps its second name, and a later run goes on from there.
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

/// Flags that create the new file where it must have a name from the start.
const NEW_FILE: OFlags = NEW_TEXT.union(OFlags::CREATE).union(OFlags::EXCL);

/// What failed, in an error: writing the new text.
const WRITE: &str = "write the new text beside it";

/// What failed, in an error: putting the new text in place.
const REPLACE: &str = "replace the file";

/// What failed, in an error: copying lines that other programs appended.
const COPY: &str = "copy what was appended meanwhile";

/// What failed, in an error: comparing the file with what was read.
const LOOK_AGAIN: &str = "look again at";

/// How long ago "lately" is. With the default settle time, files have been quiet for longer than this.
const LATELY: Duration = Duration::from_secs(2);

/// Time between two looks at the old file during the grace period.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// Time between two such looks without leases, where each has to examine every process.
const LOOK_EVERY_WITHOUT_LEASE: Duration = Duration::from_millis(10);

/// How many bytes may be left to copy when we ask for the lease. Anything beyond is copied and synced before that.
const CATCH_UP_BYTES: u64 = 64 * 1024;

/// How many times we try to get below [`CATCH_UP_BYTES`].
const CATCH_UP_ROUNDS: usize = 8;

/// How many times the comparison of a file that has grown is attempted; a writer that arrives meanwhile interrupts it.
/// After that, it is postponed until the new text is in place, where nobody has to wait for it.
const COMPARE_TRIES: usize = 3;

/// Pause after an interrupted comparison, so that the writer can go first.
const COMPARE_PAUSE: Duration = Duration::from_millis(2);

/// A file that was replaced.
pub(crate) struct Replaced {
    pub(crate) guarantee: Guarantee,
    /// The name of the run.
    pub(crate) run: String,
    /// Inode of the new file.
    pub(crate) inode: u64,
    /// Whether the old file has lines that must still be inserted before those that other programs appended to the new
    /// file. `leftover` does that.
    pub(crate) late: bool,
}

/// Replaces the text of a file whose lock we hold, and records in the vault whether the run landed. `keep` stores in the
/// vault what the new text leaves out, and `enter` asks the gates. [`Replacement`] describes the procedure.
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
    // After a failure, the file at the path shows it. If we cannot look, the next `undo` finds out from the text.
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

/// Replaces the text of a file whose lock we hold, without losing lines that other programs append meanwhile:
///
/// 1. (Done by the caller: the file was opened, locked, read and examined.)
/// 2. [`stage`](Replacement::stage): create a temporary file in the same folder, still without a name.
///    [`write`](Replacement::write): write the new text to it, and at the same time store the originals in the vault. Sync
///    both, and the old file too, because agents do not. Copy the owner, mode, access list and attributes.
///    [`catch_up`](Replacement::catch_up): copy verbatim what was appended to the old file since it was read.
/// 3. [`land`](Replacement::land): ask the gates again, and hold the agents' locks from here on.
///    [`shut_out_writers`](Replacement::shut_out_writers): take a read lease on the old file. From here on, a program that
///    opens it for writing waits. If a program already has it open for writing, give up for now. Where there are no leases,
///    go on without one: compare the bytes after step 6 (`drained`), or, where a program that we cannot see may have the
///    file open, go on only if nothing at all has changed (`quiet`).
/// 4. Check that it is still the file at the path, and that it still begins with the bytes that were read. If not, give up.
///    If writers arrive so often that the comparison would keep them waiting, compare after step 6, and revert step 5 if
///    the bytes differ. [`catch_up_last`](Replacement::catch_up_last): copy the rest, and sync both files.
/// 5. [`lease_new`](Replacement::lease_new): take a write lease on the new file, so that a program that finds it at the
///    path waits until step 6 is done; this keeps all lines in order. Copy the times. Give the new file a second name that no
///    agent looks for, and [`exchange`](Replacement::exchange) the two names. The old file now has the second name, and
///    keeps it until its last line is copied.
/// 6. Give back the lease on the old file. [`drain`](Replacement::drain): a program that resolved the path before step 5
///    opens the old file now and appends to it. Copy its lines to the end of the new file. Once we get a read lease again, no
///    program has the old file open for writing. Give back the new lease and the locks. Sync the file and the folder.
/// 7. [`linger`](Replacement::linger): keep the old file open for a grace period and drain it again, because a program may
///    have been interrupted between resolving the path and opening the file. Then unlink it (after an exchange in steps, the
///    vault keeps it), and sync the folder. If lines
///    arrive after others were appended to the new file, `leftover` inserts them before those, by this same procedure.
///
/// A crash at any step leaves the old text or the new one at the path. The run's file in the vault holds the inodes of both
/// files, and its [`Ledger`] says how much of the old file is accounted for in the new one. The ledger is written before
/// anything is copied, so that `leftover` can finish steps 6 and 7.
struct Replacement<'a> {
    old: &'a Snapshot,
    new: File,
    /// Inode of the new file.
    inode: u64,
    /// Length of the new text, without the lines that are appended to it.
    after: u64,
    /// The second name: of the new file just before the exchange, and of the old file after it.
    second: RefCell<String>,
    /// Whether the new file has a name yet. Until then, a crash leaves nothing of it.
    named: Cell<bool>,
    /// How many bytes of the old file are accounted for in the new one.
    known: KnownEnd,
    /// Hash of the bytes that the new text leaves out, taken before anything was written.
    removed: Cell<Option<Hash>>,
    /// Whether the old file has the second name now.
    exchanged: Cell<bool>,
    /// Length that the new file has if nobody but us has written to it.
    new_length: Cell<u64>,
    /// What the new file took over from the old one, and has from that.
    taken: RefCell<Option<(Attributes, Attributes)>>,
    start: Instant,
}

/// How writers are kept out of the old file from step 3 to the exchange of the names.
struct WritersShutOut<'f> {
    lease: Option<Lease<'f>>,
    guarantee: Guarantee,
    /// Whether the old file is known to hold the bytes that were read; otherwise they are compared after the exchange.
    compared: bool,
}

/// How the names of the two files were exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swapped {
    /// Atomically.
    AtOnce,
    /// In two steps.
    InSteps,
    /// Not: another file than expected is at the path.
    No,
}

/// How many replacements are between the exchange of the names and their end.
static LANDING: AtomicUsize = AtomicUsize::new(0);

/// Whether a file is being replaced right now, so that to end this process would leave work for the next one.
pub fn is_replacing() -> bool {
    LANDING.load(Ordering::Relaxed) > 0
}

/// A replacement about to exchange the names.
struct Landing;

impl Landing {
    fn begin() -> Self {
        LANDING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        LANDING.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if self.named.get() && !self.exchanged.get() && before(Step::Clean).is_ok() {
            let _ = self.old.place.remove(self.second());
        }
    }
}

impl<'a> Replacement<'a> {
    /// Creates the file for the new text, which has `after` bytes, beside the old one.
    fn stage(old: &'a Snapshot, run: &str, after: u64) -> Result<Self, Error> {
        let fail = |cause| Error::new(&old.path, WRITE, cause);
        let second = beside::name(run);
        before(Step::CreateTemporary).map_err(fail)?;
        let (new, named) = match old.place.create_unnamed() {
            Ok(new) => (new, false),
            // Not every file system can create a file without a name.
            Err(_) => (old.place.open(&second, NEW_FILE).map_err(fail)?, true),
        };
        let inode = metadata::of_file(&new).map_err(fail)?.ino();
        let (known, new_length) = (old.known(), Cell::new(after));
        let (named, removed, exchanged) = (Cell::new(named), Cell::new(None), Cell::new(false));
        let (second, taken, start) = (RefCell::new(second), RefCell::default(), Instant::now());
        Ok(Self {
            old,
            new,
            inode,
            after,
            second,
            named,
            known,
            removed,
            exchanged,
            new_length,
            taken,
            start,
        })
    }

    fn second(&self) -> String {
        self.second.borrow().clone()
    }

    /// What the run's file in the vault says about this replacement.
    fn swap(&self) -> Swap {
        let old = FileId::from_metadata(&self.old.metadata);
        Swap {
            old,
            new: FileId { inode: self.inode, ..old },
            before: self.old.bytes(),
            end: end_hash(&self.old.known().end()),
            after: self.after,
        }
    }

    /// Writes the new text, and syncs it and the old file, while `keep` stores in the vault what is removed.
    fn write<T>(
        &self,
        text: &(dyn NewText + Sync),
        keep: impl FnOnce() -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let fail = |cause| self.fail(WRITE, cause);
        before(Step::WriteText).map_err(fail)?;
        let (old, new, after) = (&self.old.file, &self.new, self.after);
        // Hashed before these bytes are copied to the vault and the new file, so that an edit in between is noticed.
        self.removed.set(hash_of(old, &text.removed(self.old.bytes()), &|| false).map_err(fail)?);
        let (kept, written) = std::thread::scope(|scope| {
            let write = || {
                sync_others(old)?;
                text.write(old, new)?;
                if new.metadata()?.len() != after {
                    return Err(io::Error::other("the new text is not as long as planned"));
                }
                sync_data(new)
            };
            match Builder::new().spawn_scoped(scope, write) {
                Ok(writing) => {
                    (keep(), writing.join().unwrap_or_else(|_| Err(io::Error::other("a thread ended early"))))
                }
                // The system gives us no more threads.
                Err(_) => (keep(), write()),
            }
        });
        let kept = kept?;
        written.and_then(|()| self.sync_text()).map_err(fail)?;
        Ok(kept)
    }

    fn sync_text(&self) -> io::Result<()> {
        before(Step::CopyAttributes)?;
        let taken = attributes::take_over(&self.old.file, &self.new)?;
        self.taken.replace(Some((taken, Attributes::of(&self.new)?)));
        before(Step::SyncText)?;
        This::sync(&self.new)?;
        to_its_end(&self.new)?;
        // A program that locks transcripts and finds the new file at the path must wait until we are done. Where this
        // cannot be locked, the old file is not locked either.
        let _ = lock::take(&self.new);
        Ok(())
    }

    /// Takes over once more what somebody has changed in the old file since: its mode, owner, access list or attributes. What was
    /// changed in the new one is newer, and stays.
    fn take_over_changes(&self) -> io::Result<()> {
        let mut taken = self.taken.borrow_mut();
        let Some((old, new)) = taken.as_mut() else { return Ok(()) };
        let now = Attributes::of(&self.old.file)?;
        if now != *old && Attributes::of(&self.new)? == *new {
            now.give(&self.new)?;
            (*old, *new) = (now, Attributes::of(&self.new)?);
        }
        Ok(())
    }

    fn fail(&self, verb: &'static str, cause: io::Error) -> Error {
        Error::new(&self.old.path, verb, cause)
    }

    /// Steps 3 to 7. `enter` asks the gates and takes the locks of the agents, which are held until step 6 is done. If a
    /// lock was taken and the file has changed since it was examined, the agent may have begun something that only the new
    /// lines show, so the file has to be examined again. Returns what kept the lines of others safe, and whether there are
    /// late lines.
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
        if let Some(why) = pass.keeps_length().filter(|_| text.length() != self.old.bytes()) {
            return Err(Refusal::CountedElsewhere(why).into());
        }
        let WritersShutOut { lease, guarantee, compared } = self.shut_out_writers(run, text)?;
        self.catch_up_last(run)?;
        let _landing = Landing::begin();
        let new_lease = self.lease_new()?;
        let current = self.prepare_exchange()?;
        let told = match self.exchange(current).map_err(|cause| self.not_exchanged(cause))? {
            Swapped::AtOnce => guarantee,
            // Leases or not, a program may have put a file of its own there between two of our steps.
            Swapped::InSteps => Guarantee::Quiet,
            Swapped::No => return Err(self.hand_over_appended(run, new_lease)?.into()),
        };
        self.exchanged.set(true);
        self.take_over_changes().map_err(|cause| self.fail_after_exchange(cause))?;
        // A name that it was given since its last look would lead to the old text.
        let names =
            metadata::of_file(&self.old.file).map_err(|cause| self.fail_after_exchange(cause))?.nlink();
        drop(lease);
        // Our own lease would keep us out as well.
        let is_there = guarantee != Guarantee::Quiet
            || new_lease.is_some()
            || self.reads_back().map_err(|cause| self.fail_after_exchange(cause))?;
        if names > 1 || !is_there {
            return Err(self.revert_exchange(run, new_lease)?.into());
        }
        if self.drain(run, new_lease.as_ref(), guarantee)? == DrainState::Rewritten {
            return Err(self.revert_exchange(run, new_lease)?.into());
        }
        drop(new_lease);
        drop(pass);
        if !compared
            && self.has_kept(text, &|| false).map_err(|cause| self.fail_after_exchange(cause))? == Some(false)
        {
            return Err(self.revert_exchange(run, None)?.into());
        }
        let lingered = std::thread::scope(|scope| {
            // If no thread can be started, the kernel does it when the file is closed.
            let _ = Builder::new().spawn_scoped(scope, || give_back_memory(&self.old.file));
            self.sync()?;
            self.linger(run, guarantee)
        });
        match lingered? {
            DrainState::Rewritten => Err(self.revert_exchange(run, None)?.into()),
            state => Ok((told, state != DrainState::Empty)),
        }
    }

    /// Copies what was appended to the old file until at most [`CATCH_UP_BYTES`] are left.
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
            self.copy_up_to(run, end).map_err(fail)?;
        }
        Ok(())
    }

    /// Copies the old file up to `end` to the end of the new one. The ledger records the copy first, so that after a crash
    /// these bytes can be told from what others have appended.
    fn copy_up_to(&self, run: &Run, end: u64) -> io::Result<()> {
        let (known, at) = (self.known.at(), self.new_length.get());
        if end <= known {
            return Ok(());
        }
        before(Step::Note)?;
        run.note(&Ledger { known, upto: end, at, current: self.inode })?;
        run.sync()?;
        let at = self.copy(end)?;
        sync_data(&self.new)?;
        run.note(&Ledger { known: end, upto: end, at, current: self.inode })
    }

    /// Copies what was appended to the old file up to `end`, and returns how long the new one is now: by just that.
    fn copy(&self, end: u64) -> io::Result<u64> {
        let length = self.new_length.get() + (end - self.known.at());
        self.known.copy(&self.old.file, &self.new, end)?;
        if self.new.metadata()?.len() != length {
            return Err(io::Error::other("the new text is not as long as what was copied to it"));
        }
        self.new_length.set(length);
        Ok(length)
    }

    /// Keeps writers out of the old file, provided that it still begins with what was read. If it has changed at all, that
    /// takes a comparison of all bytes; a writer that arrives meanwhile goes first, up to [`COMPARE_TRIES`] times.
    ///
    /// With a lease, no writer can open the file. Without one, writers may come until the names are exchanged: the
    /// comparison is then postponed until after the exchange if all writers can be seen; if not, nothing at all may have
    /// changed.
    fn shut_out_writers(&self, run: &Run, text: &dyn NewText) -> Result<WritersShutOut<'_>, Stop> {
        for attempt in 1..=COMPARE_TRIES {
            let Snapshot { file, .. } = self.old;
            let FileContent { path, metadata, .. } = &**self.old;
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
                Some(true) if guarantee == Guarantee::Quiet => {
                    Some(self.is_as_planned(text).map_err(|cause| self.fail(LOOK_AGAIN, cause))?)
                }
                known => known,
            };
            match compared {
                Some(true) => return Ok(WritersShutOut { lease, guarantee, compared: true }),
                Some(false) => break,
                None if attempt == COMPARE_TRIES || guarantee == Guarantee::Drained => {
                    return Ok(WritersShutOut { lease, guarantee, compared: false });
                }
                None => {}
            }
            drop(lease);
            sleep(COMPARE_PAUSE);
            self.catch_up(run)?;
        }
        Err(Deferral::Changed.into())
    }

    /// Whether the file at the path is the one that was read, and still holds what was read. `None` if it may have been
    /// appended to, so that only a comparison of all bytes can tell.
    fn is_as_read(&self, guarantee: Guarantee) -> Result<Option<bool>, Error> {
        if self.old.is_current()? {
            return Ok(match guarantee {
                Guarantee::Lease => (!self.old.is_fresh()).then_some(true),
                Guarantee::Drained => None,
                Guarantee::Quiet | Guarantee::Transaction => Some(true),
            });
        }
        // If the text that was read ended inside a line, an append has changed that line.
        let may_have_grown =
            guarantee != Guarantee::Quiet && self.old.ends_line() && self.old.is_at_path()?;
        let holds = || self.known.holds(&self.old.file).map_err(|cause| self.fail(LOOK_AGAIN, cause));
        Ok(if may_have_grown && holds()? { None } else { Some(false) })
    }

    /// Whether the old file still has every byte that was read; `None` if `stop` interrupted the comparison.
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

    /// Whether the old file and the new one, read again, are as the plan says.
    fn is_as_planned(&self, text: &dyn NewText) -> io::Result<bool> {
        Ok(self.has_kept(text, &|| false)? == Some(true) && text.has_added(&self.new)?)
    }

    /// Whether the path leads to the new text, byte by byte.
    fn reads_back(&self) -> io::Result<bool> {
        before(Step::ReadBack)?;
        let Some(there) = self.old.place.open_file(self.old.place.name(), OFlags::RDONLY)? else {
            return Ok(false);
        };
        let whole = Span::new(0, self.new_length.get());
        Ok(same_bytes(&there, whole, &self.new, 0, &|| false)? == Some(whole.len()))
    }

    /// Copies the rest, and syncs both files: after a power cut, bytes that the disk has lost must not be mistaken for
    /// bytes that a program wrote.
    fn catch_up_last(&self, run: &Run) -> Result<(), Stop> {
        let fail = |cause| self.fail(COPY, cause);
        before(Step::CatchUpLast).map_err(fail)?;
        let end = self.old.file.metadata().map_err(fail)?.len();
        let (known, at) = (self.known.at(), self.new_length.get());
        if end < known {
            return Err(Deferral::Changed.into());
        }
        if end == known {
            return Ok(());
        }
        run.note(&Ledger { known, upto: end, at, current: self.inode }).map_err(fail)?;
        let at = self.copy(end).map_err(fail)?;
        run.note(&Ledger { known: end, upto: end, at, current: self.inode }).map_err(fail)?;
        before(Step::SyncTail).map_err(fail)?;
        // In parallel, because writers are waiting.
        std::thread::scope(|scope| {
            let others = [
                Builder::new().spawn_scoped(scope, || sync_others(&self.old.file)),
                Builder::new().spawn_scoped(scope, || run.sync()),
            ];
            let spawned = others.iter().all(Result::is_ok);
            let mut done = vec![sync_data(&self.new)];
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

    /// Takes a write lease on the new file. `None` if there are no leases, or if a program has the file open, such as a
    /// search index that reads every new file. Then late lines are not appended here but left to `leftover`.
    fn lease_new(&self) -> Result<Option<Lease<'_>>, Error> {
        let fail = |cause| self.fail("ask for a lease on the new text of", cause);
        before(Step::LeaseNew).map_err(fail)?;
        match Lease::write(&self.new) {
            Ok(lease) => Ok(Some(lease)),
            Err(Refused::Failed(cause)) => Err(fail(cause)),
            Err(Refused::Busy | Refused::Unavailable) => Ok(None),
        }
    }

    /// Gives the new file its times and a name. Returns the inode of the file that must be at the path.
    fn prepare_exchange(&self) -> Result<u64, Stop> {
        let fail = |cause| self.fail(REPLACE, cause);
        before(Step::SetTimes).map_err(fail)?;
        let now = metadata::of_file(&self.old.file).map_err(fail)?;
        if now.nlink() > 1 {
            return Err(Refusal::HardLinks(now.nlink()).into());
        }
        self.take_over_changes().map_err(fail)?;
        attributes::set_times(&self.new, &now).map_err(fail)?;
        if !self.named.get() {
            before(Step::Name).map_err(fail)?;
            self.old.place.name_it(&self.new, self.second()).map_err(fail)?;
            self.named.set(true);
        }
        Ok(now.ino())
    }

    fn not_exchanged(&self, cause: io::Error) -> Stop {
        if cause.kind() == io::ErrorKind::NotFound {
            Deferral::Changed.into()
        } else {
            self.fail(REPLACE, cause).into()
        }
    }

    /// Puts the new file at the path and the old one at the second name, or the other way round, unless a program has put
    /// another file than the `current` one at the path.
    fn exchange(&self, current: u64) -> io::Result<Swapped> {
        before(Step::Exchange)?;
        let (place, second) = (&self.old.place, self.second());
        if !place.exchange(&second, place.name())? {
            return self.exchange_in_steps(current, &second);
        }
        if self.has(&second, current)? {
            return Ok(Swapped::AtOnce);
        }
        // A program put another file there after our last look. That file belongs there, and is back after an instant.
        place.exchange(&second, place.name())?;
        Ok(Swapped::No)
    }

    /// Exchanges the files where the file system cannot do it atomically: the file at the path gets another second name, and the other
    /// file is renamed over it. So there is a file at the path at all times, but one that a program puts there between our
    /// last look and the rename, a few microseconds later, is lost.
    fn exchange_in_steps(&self, current: u64, second: &str) -> io::Result<Swapped> {
        let (place, other) = (&self.old.place, beside::other(second));
        before(Step::Link)?;
        match place.link(place.name(), &other) {
            Err(cause) if has_no_links(&cause) => return self.step_aside(current, second),
            linked => linked?,
        }
        let rename = || {
            before(Step::Rename)?;
            let same = self.has(&other, current)? && self.has(place.name(), current)?;
            if same { place.rename(second, place.name()).map(|()| true) } else { Ok(false) }
        };
        let renamed = rename();
        if let Ok(true) = renamed {
            self.second.replace(other);
            return Ok(Swapped::InSteps);
        }
        if before(Step::Clean).is_ok() {
            let _ = place.remove(&other);
        }
        renamed.map(|_| Swapped::No)
    }

    /// Exchanges the files where a file has one name only, or an open one cannot be replaced: the file at the path is renamed,
    /// and the other one takes the name. For an instant nothing is there; if we die in it, the next command puts the old file
    /// back.
    fn step_aside(&self, current: u64, second: &str) -> io::Result<Swapped> {
        let (place, other) = (&self.old.place, beside::aside(second));
        before(Step::Aside)?;
        if !self.has(place.name(), current)? {
            return Ok(Swapped::No);
        }
        place.rename(place.name(), &other)?;
        let take = || {
            before(Step::Rename)?;
            let is_free = self.has(&other, current)? && place.metadata_of(place.name())?.is_none();
            if is_free { place.rename(second, place.name()).map(|()| true) } else { Ok(false) }
        };
        let taken = take();
        if let Ok(true) = taken {
            self.second.replace(other);
            return Ok(Swapped::InSteps);
        }
        before(Step::Clean)?;
        put_back(place, &other)?;
        taken.map(|_| Swapped::No)
    }

    /// Whether a name is that of the file with this inode.
    fn has(&self, name: impl AsRef<OsStr>, inode: u64) -> io::Result<bool> {
        let found = self.old.place.metadata_of(name)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(found.ino() == inode)
    }

    /// Copies what was appended by programs that resolved the path before the exchange.
    fn drain(
        &self,
        run: &Run,
        new_lease: Option<&Lease<'_>>,
        guarantee: Guarantee,
    ) -> Result<DrainState, Error> {
        before(Step::Drain).map_err(|cause| self.fail_after_exchange(cause))?;
        let until = Instant::now() + TIMEOUTS.drain;
        loop {
            let state = self.drain_once(run, new_lease)?;
            if state != DrainState::Busy || guarantee != Guarantee::Lease || Instant::now() > until {
                return Ok(state);
            }
            sleep(Duration::from_micros(20));
        }
    }

    /// Copies what was appended to the old file to the end of the new one, while nobody else can append there, and only if
    /// nobody has: otherwise these lines belong before the others', which is `leftover`'s work. So the lines that are copied
    /// here always follow the new text directly.
    fn drain_once(&self, run: &Run, new_lease: Option<&Lease<'_>>) -> Result<DrainState, Error> {
        let fail = |cause| self.fail_after_exchange(cause);
        let (end, state, _closed) = match self.known.came(&self.old.file).map_err(fail)? {
            Appended::Rewritten => return Ok(DrainState::Rewritten),
            Appended::All(end, lease) => (end, DrainState::Empty, Some(lease)),
            Appended::Lines(end) => (end, DrainState::Busy, None),
        };
        if end == self.known.at() {
            return Ok(state);
        }
        // Held until this function returns.
        let own = new_lease.is_none().then(|| Lease::write(&self.new));
        let length = self.new.metadata().map_err(fail)?.len();
        if matches!(own, Some(Err(_))) || length != self.new_length.get() {
            return Ok(DrainState::Late);
        }
        self.copy_up_to(run, end).map(|()| state).map_err(fail)
    }

    /// A program that had opened the old file has rewritten it from the beginning. It expects to find its own text at the
    /// path, so the old file goes back there.
    fn revert_exchange(&self, run: &Run, new_lease: Option<Lease<'_>>) -> Result<Deferral, Error> {
        let swapped = self.exchange(self.inode).map_err(|cause| self.fail_after_exchange(cause))?;
        if swapped == Swapped::No {
            // Yet another file is there. The old one stays beside it, for the next run to look after.
            return Ok(Deferral::Changed);
        }
        self.exchanged.set(false);
        self.hand_over_appended(run, new_lease)
    }

    /// Another file is at the path again. Copies to its end what was appended to ours while that was at the path.
    fn hand_over_appended(&self, run: &Run, new_lease: Option<Lease<'_>>) -> Result<Deferral, Error> {
        let fail = |cause| self.fail_after_exchange(cause);
        drop(new_lease);
        let place = &self.old.place;
        if !place.metadata_of(place.name()).map_err(fail)?.is_some_and(|there| there.is_file()) {
            // There is nothing to hand anything over to. What came nevertheless waits for the next run.
            self.exchanged.set(self.new.metadata().map_err(fail)?.len() != self.new_length.get());
            return Ok(Deferral::Changed);
        }
        let path =
            place.open(place.name(), OFlags::RDWR | OFlags::APPEND | OFlags::NONBLOCK).map_err(fail)?;
        let reader = place.open(self.second(), OFlags::RDONLY).map_err(fail)?;
        let current = metadata::of_file(&path).map_err(fail)?.ino();
        let ours = KnownEnd::read(&reader, self.new_length.get()).map_err(fail)?;
        let until = Instant::now() + TIMEOUTS.grace;
        while Instant::now() < until {
            let at = path.metadata().map_err(fail)?.len();
            if ends_line_at(&path, at).map_err(fail)?
                && let Appended::All(upto, _) | Appended::Lines(upto) = ours.came(&reader).map_err(fail)?
                && upto > ours.at()
            {
                run.note(&Ledger { known: ours.at(), upto, at, current }).map_err(fail)?;
                ours.copy(&reader, &path, upto).map_err(fail)?;
                let at = path.metadata().map_err(fail)?.len();
                run.note(&Ledger { known: upto, upto, at, current }).map_err(fail)?;
            }
            sleep(LOOK_EVERY);
        }
        This::sync(&path).map_err(fail)?;
        Ok(Deferral::Changed)
    }

    fn sync(&self) -> Result<(), Error> {
        before(Step::SyncNew).map_err(|cause| self.fail_after_exchange(cause))?;
        This::sync(&self.new).map_err(|cause| self.fail_after_exchange(cause))?;
        before(Step::SyncFolder).map_err(|cause| self.fail_after_exchange(cause))?;
        self.old.place.sync().map_err(|cause| self.fail_after_exchange(cause))
    }

    /// Step 7: drains the old file through the grace period, and unlinks it once no program can append to it any more.
    fn linger(&self, run: &Run, guarantee: Guarantee) -> Result<DrainState, Error> {
        let fail = |cause| self.fail_after_exchange(cause);
        let until = Instant::now() + self.grace(guarantee);
        before(Step::Drain).map_err(fail)?;
        loop {
            // There is always one look after the grace period has ended.
            let over = Instant::now() >= until;
            // Asked before draining: a program that has closed the file by now has written everything.
            let may_be_open = over && self.is_open(guarantee);
            let state = self.drain_once(run, None)?;
            let open = state == DrainState::Busy && may_be_open;
            let held = open && Instant::now() >= until + TIMEOUTS.holder;
            if state == DrainState::Rewritten || (over && state == DrainState::Late) || held {
                return Ok(state);
            }
            if over && !open {
                if state == DrainState::Busy && !self.is_all_copied().map_err(fail)? {
                    return Ok(DrainState::Late);
                }
                break;
            }
            sleep(if guarantee == Guarantee::Lease { LOOK_EVERY } else { LOOK_EVERY_WITHOUT_LEASE });
        }
        self.take_over_changes().map_err(fail)?;
        self.let_go(run).map_err(fail)?;
        Ok(DrainState::Empty)
    }

    /// Takes the second name from the old file. Where the names were exchanged in steps, the file goes into the vault as it is:
    /// what a program that we do not see still appends to it is found there.
    fn let_go(&self, run: &Run) -> io::Result<()> {
        let second = self.second();
        if beside::is_old(&second) {
            return run.keep_whole(&self.old.place, &second, &self.old.file);
        }
        before(Step::Unlink)?;
        self.old.place.remove(second)?;
        // A power cut must not bring the name back after the record says that the old file is gone.
        before(Step::SyncUnlink)?;
        self.old.place.sync()?;
        // From here on, a file that appears under this name is not ours.
        run.note(&Ledger::CLOSED)
    }

    /// Whether all bytes of the old file are copied. If not, a program has died in the middle of a line.
    fn is_all_copied(&self) -> io::Result<bool> {
        Ok(self.old.file.metadata()?.len() <= self.known.at())
    }

    /// Whether a program may have the old file open after a look that could not rule it out. Without leases no look can, so
    /// then only processes that we see count.
    fn is_open(&self, guarantee: Guarantee) -> bool {
        match guarantee {
            Guarantee::Lease => true,
            Guarantee::Drained => writers::holds(&Err(Refused::Unavailable), &self.old.file),
            Guarantee::Quiet | Guarantee::Transaction => false,
        }
    }

    /// How long the grace period is.
    fn grace(&self, guarantee: Guarantee) -> Duration {
        // What comes later is found in the vault.
        if beside::is_old(&self.second()) {
            return TIMEOUTS.grace;
        }
        if guarantee != Guarantee::Lease {
            return TIMEOUTS.grace_without_lease;
        }
        let quiet = self.old.metadata.modified().ok();
        let quiet = quiet.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        let grew = self.known.at() > self.old.bytes();
        let lately = quiet.is_none_or(|quiet| quiet < LATELY + self.start.elapsed());
        if grew || lately { TIMEOUTS.grace } else { TIMEOUTS.grace_quiet }
    }

    /// An error after the exchange: the new text is in place, but late lines may not be.
    fn fail_after_exchange(&self, cause: io::Error) -> Error {
        let verb = "finish after the new text was put in place";
        self.fail(verb, cause)
            .with_way_out("lines appended meanwhile are queued beside it, and the next run merges them")
    }
}

/// Gives a file that stepped aside its name back. What a program wrote to a file of its own there meanwhile goes to the end.
pub(crate) fn put_back(place: &Place, other: &str) -> io::Result<()> {
    if let Some(mut came) = place.open_file(place.name(), OFlags::RDONLY)? {
        let mut old = place.open(other, OFlags::RDWR | OFlags::APPEND)?;
        io::copy(&mut came, &mut old)?;
        This::sync(&old)?;
    }
    place.rename(other, place.name())?;
    place.sync()
}

/// Writes the repaired text to a new file, which must not exist.
pub(crate) fn copy_to(snapshot: &Snapshot, plan: &Plan, path: &Path) -> Result<(), Error> {
    let fail = |cause| Error::new(path, "write the mended copy", cause);
    let name = path.file_name().ok_or_else(|| fail(io::ErrorKind::IsADirectory.into()))?;
    let folder = Folder::make(folder_of(path)).map_err(fail)?;
    // A copy that changes nothing may share the blocks.
    let cloned = if plan.is_empty() { folder.clone_of(&snapshot.file, name).ok() } else { None };
    let is_clone = cloned.is_some();
    let file = cloned.map_or_else(|| folder.create(name), Ok).map_err(fail)?;
    let write = || match file.metadata()?.len().checked_sub(snapshot.bytes()) {
        None if is_clone => Err(shrank()),
        // What came after it was read.
        Some(_) if is_clone => file.set_len(snapshot.bytes()),
        _ => plan.write(&snapshot.file, &file),
    };
    let written = write().and_then(|()| This::sync(&file));
    written.map_err(|cause| {
        let _ = folder.remove(name);
        fail(cause)
    })
}

#[cfg(test)]
mod tests;
