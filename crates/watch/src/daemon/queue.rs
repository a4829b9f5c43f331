//! When a file is due. A pure state machine: time is an argument, and nothing here looks at a clock, a file or a thread.
//!
//! A file is due when it has been quiet for its settle time. Only one look at a file runs at a time; changes meanwhile
//! make it due again. A deferred file comes back after the time that the deferral asks for, less and less often. A file
//! that keeps failing, or is repaired again and again without lasting effect, rests for a long time. Failures with
//! another cause, such as a full disk, do not count against the file, and are retried every few minutes.
//!
//! A store is a file in which a look finds sessions, each of which is due on its own. It need not be quiet as a whole: others in
//! it may be written at any time.

use keeper::{Stamp, may_be_read};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A moment, in milliseconds since an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(i64);

impl Tick {
    const NEVER_YET: Self = Self(i64::MIN);

    pub(crate) const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// This much later, rounded up.
    pub(crate) fn after(self, time: Duration) -> Self {
        let millis = time.as_nanos().div_ceil(1_000_000);
        Self(self.0.saturating_add(i64::try_from(millis).unwrap_or(i64::MAX)))
    }

    /// This much earlier.
    pub(crate) fn before(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The time since an earlier moment; zero if that is in the future.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// How long a file must have been quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settle {
    /// Before its newest part may be changed.
    pub(crate) soon: Duration,
    /// Before older history may be rewritten; `None` if no selected rule does so.
    pub(crate) late: Option<Duration>,
}

/// What a look is allowed to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pace {
    /// Only the newest text of the agent; a prompt cache may still hold the rest.
    Soon,
    /// Everything.
    Late,
}

/// A number for a root, never used again.
pub(crate) type RootId = u32;

/// A file to look at now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) path: Arc<Path>,
    pub(crate) root: RootId,
    /// The store that it is a session of; `None` if it is a file.
    pub(crate) store: Option<Arc<Path>>,
    pub(crate) pace: Pace,
    /// The file's stamp at the last look of this pace. If it is still the same, there is nothing to do.
    pub(crate) known: Option<Stamp>,
    /// Since when it has been due.
    pub(crate) due: Tick,
}

/// How a look ended, as far as the queue is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// Nothing is left to do until the file changes.
    Settled(Stamp),
    /// The file was repaired; the new stamp, unless the file has changed since.
    Mended { now: Option<Stamp>, repaired: Repaired },
    /// Not now.
    Deferred { as_it_is: Option<Stamp>, after: Duration, cure: Cure },
    /// It is a store, and its sessions were listed. It is not listed again for some time.
    Listed { now: Stamp, rest: Duration },
    /// It could not be read or written.
    Failed,
    /// It could not be read or written, but not because of the file.
    Hindered,
    /// It does not exist any more.
    Gone,
}

/// What a repair was about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repaired {
    /// A number for each repaired place and what was wrong there: the same again if the text from before is there again.
    pub(crate) places: BTreeSet<u64>,
    /// Fewer findings are left than there were.
    pub(crate) gain: bool,
    /// An error was among them.
    pub(crate) errors: bool,
}

/// The event that ends a deferral.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cure {
    /// Time or a change: when the file changes, look again at once.
    Change,
    /// A process that has the file open for writing closes it.
    Close,
    /// This process ends.
    Exit(u32),
    /// Something that we cannot notice: looking earlier would be useless.
    Others,
}

/// What happens to a file after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterLook {
    /// It waits for a change.
    Rests,
    /// It is looked at again after this time.
    Retries(Duration),
    /// It has failed, or was repaired without lasting effect, too often, and rests for this time.
    Tripped(Duration),
}

/// How many files can be known. Others are ignored until known ones disappear.
pub(crate) const FILES_MAX: usize = 100_000;
/// How many times in a row a file may fail, or be repaired without lasting effect, before it rests.
pub(crate) const STRIKES_MAX: u8 = 5;
/// How many places of a repair are remembered, to notice that it was in vain.
const PLACES_MAX: usize = 16;
/// How long it rests the first time. The time doubles each time.
pub(crate) const REST_MIN: Duration = Duration::from_secs(60 * 60);
const REST_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest wait between retries after a failure with another cause.
pub(crate) const HINDERED_MAX: Duration = Duration::from_secs(5 * 60);
const RETRY_MIN: Duration = Duration::from_secs(1);
/// The longest wait that doubling leads to. If a deferral asks for a longer time, that counts.
pub(crate) const RETRY_MAX: Duration = Duration::from_secs(10 * 60);

/// Why a file is not looked at although it is quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stuck {
    /// It has failed, or was repaired without lasting effect, too often.
    Tripped,
    /// Something else, such as a full disk, prevents it.
    Hindered,
}

/// Why the last look at a file was deferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Nothing.
    None,
    /// This cure.
    For(Cure),
    /// A cure that has happened, as far as is known.
    Over,
}

impl Wait {
    /// The wait after this cure has happened.
    fn met_by(self, cure: Cure) -> Self {
        if self == Self::For(cure) { Self::Over } else { self }
    }
}

/// How many files are stuck, by reason.
#[derive(Debug, Default)]
struct Counts {
    tripped: usize,
    hindered: usize,
}

impl Counts {
    fn recount(&mut self, before: Option<Stuck>, now: Option<Stuck>) {
        let is = |stuck, one| usize::from(stuck == Some(one));
        self.tripped = self.tripped + is(now, Stuck::Tripped) - is(before, Stuck::Tripped);
        self.hindered = self.hindered + is(now, Stuck::Hindered) - is(before, Stuck::Hindered);
    }
}

/// A session that was found in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) path: PathBuf,
    /// Another one once it was written to.
    pub(crate) stamp: Stamp,
    /// How long ago it was written to.
    pub(crate) quiet: Duration,
}

/// The state of a known file, or of a session in a store.
#[derive(Debug)]
struct QueuedFile {
    root: RootId,
    /// The store that it is a session of.
    store: Option<Arc<Path>>,
    /// The walk in which it was last seen. In a store each look that lists its sessions is one.
    walk: u32,
    /// When it last changed.
    changed: Tick,
    due: Option<Tick>,
    not_before: Tick,
    /// Its stamp at the last walk or look.
    last: Option<Stamp>,
    /// The pace of the last look at this stamp.
    looked: Option<Pace>,
    at_work: bool,
    changed_meanwhile: bool,
    /// It was closed, or its process ended, during the look.
    freed_meanwhile: bool,
    wait: Wait,
    retries: u8,
    failures: u8,
    vain: u8,
    trips: u8,
    stuck: Option<Stuck>,
    /// The smallest numbers of what the last repair was about.
    repaired: Vec<u64>,
}

/// All known files, and when they are due.
pub(crate) struct Queue {
    settle: Settle,
    files: HashMap<Arc<Path>, QueuedFile>,
    due: BTreeSet<(Tick, Arc<Path>)>,
    /// How many times the sessions of a store were listed.
    listings: u32,
    stuck: Counts,
    limit: usize,
}

impl Queue {
    pub(crate) fn new(settle: Settle, limit: usize) -> Self {
        Self {
            settle,
            files: HashMap::new(),
            due: BTreeSet::new(),
            listings: 0,
            stuck: Counts::default(),
            limit,
        }
    }

    /// A file has just changed. Returns `false` if too many files are known.
    pub(crate) fn touch(&mut self, path: &Path, root: RootId, now: Tick) -> bool {
        let Some((path, file)) = self.know(path, root, now) else { return false };
        // A store that is written to all the time is listed all the same.
        if !(may_be_read(&path) && file.due.is_some()) {
            file.changed = now;
        }
        file.wait = file.wait.met_by(Cure::Change);
        if file.at_work {
            file.changed_meanwhile = true;
        } else {
            self.schedule(&path);
        }
        true
    }

    /// A walk has found a file with this stamp, last written to this long ago. Returns `false` if too many files are
    /// known.
    pub(crate) fn found(
        &mut self,
        path: &Path,
        root: RootId,
        seen: (Stamp, u32),
        quiet: Duration,
        now: Tick,
    ) -> bool {
        let (stamp, walk) = seen;
        let Some((path, file)) = self.know(path, root, now) else { return false };
        (file.root, file.walk) = (root, walk);
        if file.last == Some(stamp) {
            return true;
        }
        if file.at_work {
            // Only its store says that a session was written to.
            if file.store.is_some() {
                (file.changed, file.changed_meanwhile) = (now.before(quiet), true);
            }
            return true;
        }
        file.last = Some(stamp);
        file.looked = None;
        file.changed = now.before(quiet);
        file.wait = file.wait.met_by(Cure::Change);
        self.schedule(&path);
        true
    }

    /// A look at a store has found these sessions. Returns those that are gone, and `false` if too many files are known.
    pub(crate) fn listed(
        &mut self,
        store: &Arc<Path>,
        sessions: &[Listed],
        now: Tick,
    ) -> (Vec<Arc<Path>>, bool) {
        let Some(root) = self.files.get(store).map(|file| file.root) else { return (Vec::new(), true) };
        self.listings = self.listings.wrapping_add(1);
        let (walk, mut has_room) = (self.listings, true);
        for Listed { path, stamp, quiet } in sessions {
            has_room &= self.found(path, root, (*stamp, walk), *quiet, now);
            if let Some(session) = self.files.get_mut(&**path) {
                session.store = Some(store.clone());
            }
        }
        let is_of_it = |file: &QueuedFile| file.store.as_ref() == Some(store);
        (self.retain(|file| !is_of_it(file) || file.walk == walk || file.at_work), has_room)
    }

    /// Something that the file may wait for has happened. If it does, it is due once it is quiet.
    pub(crate) fn free(&mut self, path: &Path, cure: Cure) {
        let Some((path, _)) = self.files.get_key_value(path) else { return };
        let path = path.clone();
        let Some(file) = self.files.get_mut(&path) else { return };
        if file.at_work {
            file.freed_meanwhile = true;
        } else if file.wait == Wait::For(cure) {
            (file.wait, file.not_before, file.retries) = (Wait::Over, Tick::NEVER_YET, 0);
            self.schedule(&path);
        }
    }

    /// Whether the event that the file waits for is known to have happened.
    pub(crate) fn wait_is_over(&self, path: &Path) -> bool {
        self.files.get(path).is_some_and(|file| file.wait == Wait::Over)
    }

    /// A walk of a root is complete: files that it has not seen are gone.
    pub(crate) fn walked(&mut self, root: RootId, walk: u32) {
        let is_seen = |file: &QueuedFile| file.root != root || file.walk == walk || file.at_work;
        drop(self.retain(|file| file.store.is_some() || is_seen(file)));
        let known: HashSet<Arc<Path>> = self
            .files
            .iter()
            .filter(|(_, file)| file.store.is_none())
            .map(|(path, _)| path.clone())
            .collect();
        drop(
            self.retain(|file| file.at_work || file.store.as_ref().is_none_or(|store| known.contains(store))),
        );
    }

    /// A root has a new number.
    pub(crate) fn renumber(&mut self, root: RootId, to: RootId) {
        self.files.values_mut().filter(|file| file.root == root).for_each(|file| file.root = to);
    }

    /// A root is not watched any more.
    pub(crate) fn drop_root(&mut self, root: RootId) {
        drop(self.retain(|file| file.root != root || file.at_work));
    }

    /// Rules or times have changed: all files are looked at again.
    pub(crate) fn renew(&mut self, settle: Settle) {
        self.settle = settle;
        let paths: Vec<Arc<Path>> = self.files.keys().cloned().collect();
        for path in paths {
            let Some(file) = self.files.get_mut(&path) else { continue };
            (file.looked, file.not_before) = (None, Tick::NEVER_YET);
            (file.retries, file.failures, file.vain, file.trips) = (0, 0, 0, 0);
            self.stuck.recount(file.stuck.take(), None);
            if file.at_work {
                file.changed_meanwhile = true;
            } else {
                self.schedule(&path);
            }
        }
    }

    /// The file that has been due longest.
    pub(crate) fn next(&mut self, now: Tick) -> Option<Job> {
        if self.due.first().is_none_or(|(due, _)| *due > now) {
            return None;
        }
        let (due, path) = self.due.pop_first()?;
        let file = self.files.get_mut(&path)?;
        let late = self.settle.late.is_some_and(|late| now.since(file.changed) >= late);
        let pace = if late { Pace::Late } else { Pace::Soon };
        let known = file.last.filter(|_| file.looked.is_some_and(|looked| looked >= pace));
        file.due = None;
        (file.at_work, file.freed_meanwhile) = (true, false);
        Some(Job { path, root: file.root, store: file.store.clone(), pace, known, due })
    }

    /// When the next file is due.
    pub(crate) fn deadline(&self) -> Option<Tick> {
        self.due.first().map(|(due, _)| *due)
    }

    /// A look at a file has ended.
    pub(crate) fn done(&mut self, job: &Job, done: &Done, now: Tick) -> AfterLook {
        let Some(file) = self.files.get_mut(&job.path) else { return AfterLook::Rests };
        file.at_work = false;
        if *done == Done::Gone {
            self.forget(&job.path);
            return AfterLook::Rests;
        }
        let was = file.stuck;
        let again = file.end(job.pace, done);
        let after = match again {
            Again::OnChange => AfterLook::Rests,
            Again::At(wait) => AfterLook::Retries(wait),
            Again::Rest(wait) => AfterLook::Tripped(wait),
        };
        match again {
            Again::OnChange => {
                file.not_before = Tick::NEVER_YET;
                file.due = None;
            }
            Again::At(wait) | Again::Rest(wait) => {
                // Of what we cannot notice we ask less and less; for the rest a change is worth a look, which may find more
                // than what it waits for.
                let held = !matches!(done, Done::Deferred { cure, .. } if *cure != Cure::Others);
                file.not_before = if held { now.after(wait) } else { Tick::NEVER_YET };
            }
        }
        if let Done::Listed { rest, .. } = done {
            file.not_before = now.after(*rest);
        }
        self.stuck.recount(was, file.stuck);
        let changed = std::mem::take(&mut file.changed_meanwhile);
        let freed = std::mem::take(&mut file.freed_meanwhile);
        let waits_for_late = file.looked == Some(Pace::Soon) && self.settle.late.is_some();
        match again {
            // A change counts from when it happened. A file that waits for an event that we cannot see keeps waiting.
            _ if changed => self.schedule(&job.path),
            Again::At(wait) | Again::Rest(wait) => self.set_due(&job.path, now.after(wait)),
            Again::OnChange if file.looked.is_none() => self.schedule(&job.path),
            Again::OnChange if waits_for_late => {
                let due = file.changed.after(self.settle.late.unwrap_or_default());
                self.set_due(&job.path, due);
            }
            Again::OnChange => {}
        }
        if let Done::Deferred { cure: cure @ (Cure::Close | Cure::Exit(_)), .. } = done
            && freed
        {
            self.free(&job.path, *cure);
        }
        after
    }

    pub(crate) fn files(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.due.len()
    }

    pub(crate) fn tripped(&self) -> usize {
        self.stuck.tripped
    }

    /// How many files are stuck for reasons other than the file.
    pub(crate) fn hindered(&self) -> usize {
        self.stuck.hindered
    }

    pub(crate) fn knows(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    pub(crate) fn files_of(&self, root: RootId) -> usize {
        self.files.values().filter(|file| file.root == root).count()
    }

    fn know(&mut self, path: &Path, root: RootId, now: Tick) -> Option<(Arc<Path>, &mut QueuedFile)> {
        let key = match self.files.get_key_value(path) {
            Some((key, _)) => key.clone(),
            None if self.files.len() >= self.limit => return None,
            None => Arc::from(path),
        };
        let file = self.files.entry(key.clone()).or_insert_with(|| QueuedFile::new(root, now));
        Some((key, file))
    }

    /// Makes it due once it has been quiet for long enough.
    fn schedule(&mut self, path: &Arc<Path>) {
        let Some(file) = self.files.get(path) else { return };
        let due = file.changed.after(self.settle.soon).max(file.not_before);
        self.set_due(path, due);
    }

    fn set_due(&mut self, path: &Arc<Path>, due: Tick) {
        let Some(file) = self.files.get_mut(path) else { return };
        if let Some(before) = file.due.replace(due) {
            self.due.remove(&(before, path.clone()));
        }
        self.due.insert((due, path.clone()));
    }

    fn forget(&mut self, path: &Arc<Path>) {
        if let Some(file) = self.files.remove(path) {
            self.stuck.recount(file.stuck, None);
            if let Some(due) = file.due {
                self.due.remove(&(due, path.clone()));
            }
        }
    }

    /// Forgets the others, and returns them.
    fn retain(&mut self, keep: impl Fn(&QueuedFile) -> bool) -> Vec<Arc<Path>> {
        let gone: Vec<Arc<Path>> =
            self.files.iter().filter(|(_, file)| !keep(file)).map(|(path, _)| path.clone()).collect();
        for path in &gone {
            self.forget(path);
        }
        gone
    }
}

/// When a file is due again.
#[derive(Clone, Copy)]
enum Again {
    OnChange,
    At(Duration),
    Rest(Duration),
}

impl QueuedFile {
    fn new(root: RootId, now: Tick) -> Self {
        Self {
            root,
            store: None,
            walk: 0,
            changed: now,
            due: None,
            not_before: Tick::NEVER_YET,
            last: None,
            looked: None,
            at_work: false,
            changed_meanwhile: false,
            freed_meanwhile: false,
            wait: Wait::None,
            retries: 0,
            failures: 0,
            vain: 0,
            trips: 0,
            stuck: None,
            repaired: Vec::new(),
        }
    }

    /// Counts how looks end, and decides when to look again.
    fn end(&mut self, pace: Pace, done: &Done) -> Again {
        self.stuck = self.stuck.filter(|stuck| *stuck != Stuck::Hindered);
        self.wait = Wait::None;
        match done {
            Done::Settled(stamp) => {
                (self.last, self.looked) = (Some(*stamp), Some(pace));
                (self.retries, self.failures, self.stuck) = (0, 0, None);
                Again::OnChange
            }
            Done::Listed { now, .. } => {
                (self.last, self.looked) = (Some(*now), Some(Pace::Late));
                (self.retries, self.failures, self.stuck) = (0, 0, None);
                Again::OnChange
            }
            Done::Mended { now, repaired } => {
                (self.last, self.looked) = (now.or(self.last), now.map(|_| pace));
                (self.retries, self.failures) = (0, 0);
                // A program is writing the old text back. Whoever does that writes all of it, so a few places are enough.
                let came_back = self.repaired.iter().any(|place| repaired.places.contains(place));
                self.repaired = repaired.places.iter().copied().take(PLACES_MAX).collect();
                if repaired.errors || (repaired.gain && !came_back) {
                    (self.vain, self.trips, self.stuck) = (0, 0, None);
                    return Again::OnChange;
                }
                self.vain += 1;
                if self.vain < STRIKES_MAX { Again::OnChange } else { self.trip() }
            }
            Done::Deferred { as_it_is, after, cure } => {
                self.failures = 0;
                (self.last, self.looked, self.wait) = (as_it_is.or(self.last), None, Wait::For(*cure));
                if *cure == Cure::Change {
                    self.retries = 0;
                    return Again::At((*after).max(RETRY_MIN));
                }
                self.retries = self.retries.saturating_add(1);
                Again::At(back_off(*after, self.retries))
            }
            Done::Failed => {
                self.looked = None;
                self.failures += 1;
                if self.failures < STRIKES_MAX {
                    Again::At(back_off(RETRY_MIN, self.failures))
                } else {
                    self.trip()
                }
            }
            Done::Hindered => {
                (self.looked, self.failures, self.stuck) = (None, 0, Some(Stuck::Hindered));
                self.retries = self.retries.saturating_add(1);
                Again::At(back_off(RETRY_MIN, self.retries).min(HINDERED_MAX))
            }
            Done::Gone => Again::OnChange,
        }
    }

    fn trip(&mut self) -> Again {
        (self.failures, self.vain, self.stuck) = (STRIKES_MAX - 1, STRIKES_MAX - 1, Some(Stuck::Tripped));
        let rest = REST_MIN.saturating_mul(1 << self.trips.min(5)).min(REST_MAX);
        self.trips = self.trips.saturating_add(1);
        Again::Rest(rest)
    }
}

/// At least as long as asked for, and twice as long with each further time, up to a bound.
fn back_off(first: Duration, times: u8) -> Duration {
    let grown = first.max(RETRY_MIN).saturating_mul(1 << u32::from(times.saturating_sub(1)).min(16));
    grown.min(RETRY_MAX).max(first)
}

#[cfg(test)]
mod tests;
