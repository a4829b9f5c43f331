//! Turns changes below one root into events, on a thread of its own, so that a disk that hangs blocks nothing else.
//!
//! The system reports changes in watched folders. Each folder is watched before it is listed, so no change is missed.
//! Where the system cannot report (network file systems, no watches left), and regularly in any case, the root is
//! walked. Links are not followed, and files are not opened.

use crate::daemon::changes::{
    Changes, Closed, FolderChange, FolderWatch, StopChanges, is_real_folder, no_watch,
};
use crate::daemon::event::{Event, RootState, Why};
use crate::daemon::queue::RootId;
use keeper::{
    DEPTH_MAX, FileId, Vault, finish_all, is_candidate, is_read, may_be_read, network, quiet_for, stamp_of,
    written_to,
};
use std::collections::{BTreeSet, HashSet};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant, SystemTime};
use walkdir::WalkDir;

/// Time between checks whether a missing root has appeared.
const MISSING_PAUSE: Duration = Duration::from_secs(1);
/// Time between checks whether an unreadable root has become readable.
const UNREADABLE_PAUSE: Duration = Duration::from_secs(10);
/// How long to wait before a root is examined from the start.
const AGAIN_PAUSE: Duration = Duration::from_millis(200);
/// Shortest time between walks where nothing is reported; at most a hundredth of the time is spent walking.
const POLL_PAUSE: Duration = Duration::from_secs(2);
const POLL_SHARE: u32 = 100;
/// Time between checks whether a watched root is still the same folder: nothing reports that it was unmounted.
const ROOT_PAUSE: Duration = Duration::from_secs(60);
/// How many unreadable folders are remembered, so that each is reported once.
const TROUBLES_MAX: usize = 1_000;

/// The root to watch, and where to send events.
pub(crate) struct WatchTask {
    pub(crate) id: RootId,
    pub(crate) root: PathBuf,
    pub(crate) rescan: Duration,
    /// The vault of interrupted runs that are to be finished; `None` if nothing may be written.
    pub(crate) vault: Option<Vault>,
    pub(crate) out: SyncSender<Event>,
}

/// Watches a root until it is dropped.
pub(crate) struct RootWatch {
    _stop: StopChanges,
}

impl RootWatch {
    pub(crate) fn spawn(task: WatchTask) -> io::Result<Self> {
        let (stop, changes) = StopChanges::new();
        let name = format!("root-{}", task.id);
        std::thread::Builder::new().name(name).spawn(move || {
            // The receiver is gone, so watching ends.
            let Err(Closed) =
                RootWatcher { task, changes, reported: None, unfinished: BTreeSet::new() }.watch();
        })?;
        Ok(Self { _stop: stop })
    }
}

/// The root has to be examined from the start.
struct Again;

struct RootWatcher {
    task: WatchTask,
    changes: Changes,
    reported: Option<(RootState, usize)>,
    /// Which interrupted runs could not be finished, as reported.
    unfinished: BTreeSet<String>,
}

impl RootWatcher {
    /// Watches the root, whatever happens to it, until the receiver is gone.
    fn watch(mut self) -> Result<std::convert::Infallible, Closed> {
        let mut walk = 0;
        loop {
            match readable(&self.task.root) {
                Ok(metadata) => {
                    self.finish_runs()?;
                    let Again = self.watch_session(&metadata, &mut walk)?;
                    self.changes.pause(AGAIN_PAUSE)?;
                }
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                    self.report(RootState::Missing, 0)?;
                    self.changes.pause(MISSING_PAUSE)?;
                }
                Err(cause) => {
                    self.report(RootState::Unreadable(cause.to_string()), 0)?;
                    self.changes.pause(UNREADABLE_PAUSE)?;
                }
            }
        }
    }

    /// Finishes interrupted runs, if anything may be written.
    fn finish_runs(&mut self) -> Result<(), Closed> {
        if let Some(vault) = &self.task.vault {
            let left = finish_all(&self.task.root, vault).iter().map(ToString::to_string).collect();
            let before = std::mem::replace(&mut self.unfinished, left);
            self.unfinished.difference(&before).try_for_each(|text| self.trouble(text.clone()))?;
        }
        Ok(())
    }

    /// Watches as long as the same folder is at the path.
    fn watch_session(&mut self, metadata: &Metadata, walk: &mut u32) -> Result<Again, Closed> {
        let mut session = WatchSession {
            watcher: self,
            folder: None,
            watch: None,
            retry: None,
            troubles: HashSet::new(),
            walk: *walk,
        };
        session.begin(metadata);
        let mut next = session.walk(Why::Begin)?;
        loop {
            let pause = next.saturating_duration_since(Instant::now()).min(ROOT_PAUSE);
            let changes = session.watcher.changes.wait(pause)?;
            *walk = session.walk;
            let is_quiet = changes.is_empty();
            let is_same = || same(metadata, &session.watcher.task.root);
            if is_quiet && (session.retry.is_some_and(|retry| Instant::now() >= retry) || !is_same()) {
                return Ok(Again);
            }
            if is_quiet && Instant::now() >= next {
                // A file that another process had open may be free by now.
                if !session.watcher.unfinished.is_empty() {
                    session.watcher.finish_runs()?;
                }
                next = session.walk(Why::Time)?;
            }
            for change in changes {
                match change {
                    FolderChange::File(path) => session.touched(&path)?,
                    FolderChange::Closed(path) if session.subject(&path).is_some() => {
                        session.watcher.send(Event::Closed { root: session.watcher.task.id, path })?;
                    }
                    FolderChange::Closed(_) => {}
                    FolderChange::Entry(path) if path == session.watcher.task.root => {
                        session.touched(&path)?;
                        return Ok(Again);
                    }
                    FolderChange::Entry(path) => session.entry(&path)?,
                    FolderChange::Lost if !same(metadata, &session.watcher.task.root) => return Ok(Again),
                    FolderChange::Lost => next = session.walk(Why::Overflow)?,
                }
            }
            // A new folder needed more watches than there are, so from now on the root is walked.
            if session.watch.is_none() {
                next = next.min(Instant::now() + POLL_PAUSE);
            }
        }
    }

    fn send(&self, event: Event) -> Result<(), Closed> {
        self.task.out.send(event).map_err(|_| Closed)
    }

    /// Reports the state of the root, if it has changed.
    fn report(&mut self, state: RootState, folders: usize) -> Result<(), Closed> {
        if self.reported.as_ref().is_some_and(|reported| (&reported.0, reported.1) == (&state, folders)) {
            return Ok(());
        }
        self.reported = Some((state.clone(), folders));
        self.send(Event::Root { root: self.task.id, state, folders })
    }

    fn trouble(&self, text: String) -> Result<(), Closed> {
        self.send(Event::Trouble { root: self.task.id, text })
    }
}

/// The metadata of the root, if it can be listed.
fn readable(root: &Path) -> io::Result<Metadata> {
    let metadata = std::fs::metadata(root)?;
    if metadata.is_dir() {
        std::fs::read_dir(root)?;
    } else if !metadata.is_file() {
        return Err(io::Error::other("it is neither a folder nor a file"));
    }
    Ok(metadata)
}

fn same(before: &Metadata, root: &Path) -> bool {
    let now = std::fs::metadata(root);
    now.is_ok_and(|now| FileId::from_metadata(&now) == FileId::from_metadata(before) || !before.is_dir())
}

/// Watches one folder at the root's path, until another replaces it.
struct WatchSession<'a> {
    watcher: &'a mut RootWatcher,
    /// The folder to be watched: the root, or where it is if it is a store. Another file is walked.
    folder: Option<PathBuf>,
    /// `None` if the system cannot report changes.
    watch: Option<FolderWatch>,
    /// When to check whether it can.
    retry: Option<Instant>,
    troubles: HashSet<PathBuf>,
    walk: u32,
}

impl WatchSession<'_> {
    /// Asks the system to report changes, if it can.
    fn begin(&mut self, metadata: &Metadata) {
        let root = self.watcher.task.root.clone();
        self.folder = match root.parent() {
            _ if metadata.is_dir() => Some(root),
            Some(folder) if may_be_read(&root) => Some(folder.to_path_buf()),
            _ => None,
        };
        let why = match self.folder.clone() {
            None => "it is a single file".to_string(),
            Some(folder) => match network(&folder) {
                Some(kind) => {
                    format!("it is on {kind}, and the kernel does not report writes by other machines")
                }
                None => match self.watch_folder_of(&folder) {
                    Ok(()) => return,
                    Err(error) => no_watch(&error),
                },
            },
        };
        self.polled(why);
    }

    fn watch_folder_of(&mut self, folder: &Path) -> notify::Result<()> {
        let mut watch = FolderWatch::new(&self.watcher.changes)?;
        // The root itself may be a link, but nothing below it.
        watch.add(folder, self.walk)?;
        self.watch = Some(watch);
        Ok(())
    }

    /// From now on the root is walked again and again.
    fn polled(&mut self, why: String) {
        self.watch = None;
        self.retry = Some(Instant::now() + self.watcher.task.rescan.max(POLL_PAUSE));
        // If the receiver is gone, the next event will notice.
        let _ = self.watcher.report(RootState::Polled(why), 0);
    }

    /// Walks everything, and returns when to do so again.
    fn walk(&mut self, why: Why) -> Result<Instant, Closed> {
        let began = Instant::now();
        self.walk += 1;
        let root = self.watcher.task.root.clone();
        let mut complete = self.see(&root, 0)?;
        let folder = self.folder.as_ref().unwrap_or(&root);
        if complete && self.watch.as_mut().is_some_and(|watch| watch.remove_unseen(folder, self.walk)) {
            complete = self.see(&root, 0)?;
        }
        if let Some(folders) = self.watch.as_ref().map(FolderWatch::folders) {
            self.watcher.report(RootState::Watched, folders)?;
        }
        let walked = Event::Walked { root: self.watcher.task.id, walk: self.walk, complete, why };
        self.watcher.send(walked)?;
        let pause = if self.watch.is_some() {
            self.watcher.task.rescan
        } else {
            POLL_PAUSE.max(began.elapsed() * POLL_SHARE).min(self.watcher.task.rescan.max(POLL_PAUSE))
        };
        Ok(Instant::now() + pause)
    }

    /// Reports all files below a folder of this depth, and watches the folder first. Returns whether everything could
    /// be seen.
    fn see(&mut self, folder: &Path, depth: usize) -> Result<bool, Closed> {
        let mut complete = true;
        let now = SystemTime::now();
        let walk = WalkDir::new(folder).max_depth(DEPTH_MAX.saturating_sub(depth));
        for entry in walk.follow_root_links(folder == self.watcher.task.root) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) if error.io_error().is_some_and(is_gone) => continue,
                Err(error) => {
                    complete = false;
                    self.unreadable(error.path().unwrap_or(folder), &error)?;
                    continue;
                }
            };
            if entry.file_type().is_dir() {
                self.watch_folder(entry.path());
            } else if entry.file_type().is_file() && (entry.depth() == 0 || is_watched(entry.path())) {
                let (Ok(metadata), Ok(stamp)) = (entry.metadata(), stamp_of(entry.path())) else { continue };
                let (root, walk, quiet) = (self.watcher.task.id, self.walk, quiet_for(&metadata, now));
                self.watcher.send(Event::Found { root, path: entry.into_path(), stamp, quiet, walk })?;
            }
        }
        Ok(complete)
    }

    fn watch_folder(&mut self, path: &Path) {
        let watch = self.watch.as_mut().filter(|_| path != self.watcher.task.root);
        if let Some(Err(error)) = watch.map(|watch| watch.add_found(path, self.walk)) {
            self.polled(no_watch(&error));
        }
    }

    fn touched(&self, path: &Path) -> Result<(), Closed> {
        match self.subject(path) {
            Some(path) => self.watcher.send(Event::Touched { root: self.watcher.task.id, path }),
            None => Ok(()),
        }
    }

    /// The file that a change is about, if it is one to look at.
    fn subject(&self, path: &Path) -> Option<PathBuf> {
        let (root, file) = (&self.watcher.task.root, written_to(path.to_path_buf()));
        let is_alone = self.folder.as_ref() != Some(root);
        Some(file).filter(|file| if is_alone { file == root } else { is_watched(file) })
    }

    /// Something appeared or disappeared. A folder is looked through also if it was known: its watch may have gone with
    /// one that was at the path before.
    fn entry(&mut self, path: &Path) -> Result<(), Closed> {
        if self.folder.as_ref() != Some(&self.watcher.task.root) {
            return self.touched(path);
        }
        let was_folder = self.watch.as_mut().is_some_and(|watch| watch.remove(path));
        if !was_folder && !is_real_folder(path) {
            return self.touched(path);
        }
        let below = path.strip_prefix(&self.watcher.task.root).map_or(0, |below| below.components().count());
        self.see(path, below)?;
        let folders = self.watch.as_ref().map(FolderWatch::folders);
        folders.map_or(Ok(()), |folders| self.watcher.report(RootState::Watched, folders))
    }

    /// Says once that a folder cannot be read; the others go on.
    fn unreadable(&mut self, path: &Path, error: &walkdir::Error) -> Result<(), Closed> {
        if self.troubles.len() >= TROUBLES_MAX || !self.troubles.insert(path.to_path_buf()) {
            return Ok(());
        }
        let cause = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
        self.watcher.trouble(format!("{}: could not read the folder: {cause}", path.display()))
    }
}

/// Whether a file in a folder is one to look at.
fn is_watched(path: &Path) -> bool {
    is_candidate(path) || is_read(path)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::mpsc::{Receiver, sync_channel};

    const PATIENCE: Duration = Duration::from_secs(30);

    #[track_caller]
    fn trouble(events: &Receiver<Event>) -> String {
        loop {
            if let Event::Trouble { text, .. } = events.recv_timeout(PATIENCE).expect("trouble is reported") {
                return text;
            }
        }
    }

    /// A file that no run left is never touched; each is reported once, at the first walk that finds it.
    #[test]
    fn what_could_not_be_finished_is_told_once_and_tried_again_at_each_walk() {
        let dir = tempfile::tempdir().unwrap();
        let leave = |name: &str| fs::write(dir.path().join(name), "whose?").unwrap();
        leave(".tailor-one.tmp");
        let (out, events) = sync_channel(100_000);
        let (root, rescan) = (dir.path().to_path_buf(), Duration::from_millis(20));
        let vault = tempfile::tempdir().unwrap();
        let vault = Some(Vault::new(vault.path().to_path_buf()));
        let watch = RootWatch::spawn(WatchTask { id: 0, root, rescan, vault, out }).unwrap();
        let reported = trouble(&events);
        assert!(reported.contains(".tailor-one.tmp") && reported.contains("left alone"), "{reported}");
        leave(".tailor-two.tmp");
        let reported = trouble(&events);
        assert!(reported.contains(".tailor-two.tmp"), "{reported}");
        drop(watch);
        let again = events.iter().filter(|event| matches!(event, Event::Trouble { .. })).count();
        assert_eq!(again, 0);
        assert!(dir.path().join(".tailor-one.tmp").exists() && dir.path().join(".tailor-two.tmp").exists());
    }
}
