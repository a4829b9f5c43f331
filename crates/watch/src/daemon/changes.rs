//! Changes in folders, as `notify` reports them, kept until the waiting thread takes them.
//!
//! `notify` reports on a thread of its own that also adds watches. That thread must never wait for ours, so changes are
//! stored under a lock, each once. If there are too many, only the fact that some were lost is stored.

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RenameMode};
use notify::{Config, ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many changes are kept: as many as the kernel keeps by default.
const KEPT_MAX: usize = 16_384;

/// A change in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FolderChange {
    /// A file was written to.
    File(PathBuf),
    /// A process that had a file open for writing closed it.
    Closed(PathBuf),
    /// A file or a folder appeared or disappeared.
    Entry(PathBuf),
    /// There were more changes than could be kept.
    Lost,
}

/// Ends the wait of the receiving side when dropped.
pub(crate) struct StopChanges(Arc<Shared>);

/// The receiving side.
pub(crate) struct Changes(Arc<Shared>);

/// The sending side has stopped.
pub(crate) struct Closed;

#[derive(Default)]
struct Shared {
    kept: Mutex<PendingChanges>,
    news: Condvar,
}

#[derive(Default)]
struct PendingChanges {
    changes: Vec<FolderChange>,
    known: HashSet<FolderChange>,
    stopped: bool,
}

impl PendingChanges {
    /// Nothing is stored after [`FolderChange::Lost`]: the walk that follows finds all changes.
    fn add(&mut self, change: FolderChange) {
        if self.known.contains(&FolderChange::Lost) || !self.known.insert(change.clone()) {
            return;
        }
        if change == FolderChange::Lost || self.known.len() > KEPT_MAX {
            self.known = HashSet::from([FolderChange::Lost]);
            self.changes = vec![FolderChange::Lost];
        } else {
            self.changes.push(change);
        }
    }

    fn take(&mut self) -> Result<Vec<FolderChange>, Closed> {
        if self.stopped { Err(Closed) } else { Ok(std::mem::take(self).changes) }
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, PendingChanges> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StopChanges {
    pub(crate) fn new() -> (Self, Changes) {
        let shared = Arc::<Shared>::default();
        (Self(shared.clone()), Changes(shared))
    }
}

impl Drop for StopChanges {
    fn drop(&mut self) {
        self.0.kept().stopped = true;
        self.0.news.notify_one();
    }
}

impl Changes {
    /// Waits for this time, whatever happens.
    pub(crate) fn pause(&self, time: Duration) -> Result<(), Closed> {
        let waited = self.0.news.wait_timeout_while(self.0.kept(), time, |kept| !kept.stopped);
        let (mut kept, _) = waited.unwrap_or_else(PoisonError::into_inner);
        kept.take().map(drop)
    }

    /// Waits until something changes and returns it; returns nothing if the time is over first.
    pub(crate) fn wait(&self, time: Duration) -> Result<Vec<FolderChange>, Closed> {
        let is_quiet = |kept: &mut PendingChanges| !kept.stopped && kept.changes.is_empty();
        let waited = self.0.news.wait_timeout_while(self.0.kept(), time, is_quiet);
        let (mut kept, _) = waited.unwrap_or_else(PoisonError::into_inner);
        kept.take()
    }
}

/// Watches folders.
pub(crate) struct FolderWatch {
    watcher: RecommendedWatcher,
    /// The walk in which each watched folder was last seen.
    folders: HashMap<PathBuf, u32>,
}

impl FolderWatch {
    pub(crate) fn new(changes: &Changes) -> notify::Result<Self> {
        let shared = Arc::new(changes.0.clone());
        let is_running = Arc::downgrade(&shared);
        let report = move |event| {
            if let Some(change) = change(event) {
                shared.kept().add(change);
                shared.news.notify_one();
            }
        };
        let watcher = RecommendedWatcher::new(report, Config::default().with_follow_symlinks(false))?;
        // If its thread could not be started, `notify` has dropped the handler and reports nothing. It would panic as
        // soon as it is used or dropped.
        if is_running.strong_count() == 0 {
            std::mem::forget(watcher);
            return Err(io::Error::other("could not start a thread").into());
        }
        Ok(Self { watcher, folders: HashMap::new() })
    }

    pub(crate) fn folders(&self) -> usize {
        self.folders.len()
    }

    /// Watches a folder, but nothing below it. The folder may be a link.
    pub(crate) fn add(&mut self, path: &Path, walk: u32) -> notify::Result<()> {
        self.watcher.watch(path, RecursiveMode::NonRecursive)?;
        self.folders.insert(path.to_path_buf(), walk);
        Ok(())
    }

    /// Watches a folder that a walk found. Fails only if no more watches are possible.
    pub(crate) fn add_found(&mut self, path: &Path, walk: u32) -> notify::Result<()> {
        match self.add(path, walk) {
            Err(error) if is_limit(&error) => return Err(error),
            // The folder is gone or cannot be read. The walk reports that.
            Err(_) => return Ok(()),
            Ok(()) => {}
        }
        // A link may have replaced the folder meanwhile, and `notify` follows links.
        if !is_real_folder(path) {
            self.remove(path);
        }
        Ok(())
    }

    /// Stops watching a folder and those below it. Returns whether it was watched.
    pub(crate) fn remove(&mut self, path: &Path) -> bool {
        self.folders.contains_key(path) && self.remove_if(|folder, _| folder.starts_with(path))
    }

    /// Stops watching folders below the root that a complete walk has not seen. Returns whether there were any: a
    /// folder that was moved may have lost its watch with its old name.
    pub(crate) fn remove_unseen(&mut self, root: &Path, walk: u32) -> bool {
        self.remove_if(|folder, seen| seen != walk && folder != root)
    }

    fn remove_if(&mut self, is_gone: impl Fn(&Path, u32) -> bool) -> bool {
        let gone: Vec<_> = self.folders.extract_if(|folder, seen| is_gone(folder, *seen)).collect();
        for (folder, _) in &gone {
            // The watch of a deleted folder is already gone.
            let _ = self.watcher.unwatch(folder);
        }
        !gone.is_empty()
    }
}

/// Whether there is a folder at the path, and not a link to one.
pub(crate) fn is_real_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// The change that an event reports, if it matters. Opening or reading a file, which we do ourselves, does not.
fn change(event: notify::Result<Event>) -> Option<FolderChange> {
    let Ok(mut event) = event else { return Some(FolderChange::Lost) };
    if event.need_rescan() {
        return Some(FolderChange::Lost);
    }
    let path = event.paths.pop()?;
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(FolderChange::Closed(path)),
        // Renames: both names are also reported separately.
        EventKind::Access(_)
        | EventKind::Modify(ModifyKind::Metadata(_) | ModifyKind::Name(RenameMode::Both)) => None,
        EventKind::Create(CreateKind::File) | EventKind::Modify(ModifyKind::Data(_)) => {
            Some(FolderChange::File(path))
        }
        _ => Some(FolderChange::Entry(path)),
    }
}

/// Whether no more folders can be watched.
pub(crate) fn is_limit(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(cause) => cause.kind() == io::ErrorKind::OutOfMemory,
        _ => false,
    }
}

/// Why a folder is not watched, and what to do about it.
pub(crate) fn no_watch(error: &notify::Error) -> String {
    let too_many_files = rustix::io::Errno::MFILE.raw_os_error();
    match &error.kind {
        ErrorKind::MaxFilesWatch => {
            "the kernel's limit of watches is reached (raise it with sysctl fs.inotify.max_user_watches)".to_string()
        }
        ErrorKind::Io(cause) if cause.raw_os_error() == Some(too_many_files) => {
            "the kernel's limit of inotify instances is reached (raise it with sysctl fs.inotify.max_user_instances)"
                .to_string()
        }
        ErrorKind::Io(cause) => format!("could not watch it: {cause}"),
        _ => format!("could not watch it: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Writes a file and returns all changes until it is closed.
    #[track_caller]
    fn reported_until_written(changes: &Changes, path: &Path) -> HashSet<FolderChange> {
        fs::write(path, "x").unwrap();
        let closed = FolderChange::Closed(path.to_path_buf());
        let mut all = HashSet::new();
        while !all.contains(&closed) {
            let news = changes.wait(PATIENCE).unwrap_or_default();
            assert!(!news.is_empty(), "nothing more is reported: {all:?}");
            all.extend(news);
        }
        all
    }

    #[test]
    fn what_is_in_the_way_is_said_with_a_way_out() {
        let limit = notify::Error::new(ErrorKind::MaxFilesWatch);
        assert!(is_limit(&limit) && no_watch(&limit).contains("max_user_watches"));
        let instances = notify::Error::io(io::Error::from_raw_os_error(24));
        assert!(no_watch(&instances).contains("max_user_instances"));
    }

    #[test]
    fn each_change_is_given_once_and_too_many_are_given_as_lost() {
        let (stop, changes) = StopChanges::new();
        let add = |name: usize| stop.0.kept().add(FolderChange::File(name.to_string().into()));
        (0..KEPT_MAX).chain(0..KEPT_MAX).for_each(add);
        assert_eq!(changes.wait(PATIENCE).unwrap_or_default().len(), KEPT_MAX);
        (0..=KEPT_MAX + 1).for_each(add);
        assert_eq!(changes.wait(PATIENCE).unwrap_or_default(), [FolderChange::Lost]);
        assert!(changes.wait(Duration::ZERO).is_ok_and(|changes| changes.is_empty()));
        drop(stop);
        assert!(changes.wait(PATIENCE).is_err());
    }

    #[test]
    fn events_that_the_kernel_dropped_are_lost() {
        let rescan = Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        assert_eq!(change(Ok(rescan)), Some(FolderChange::Lost));
    }

    #[test]
    fn what_is_read_is_not_reported_and_what_is_written_is() {
        let dir = tempfile::tempdir().unwrap();
        let (read, written) = (dir.path().join("read"), dir.path().join("written"));
        fs::write(&read, "x").unwrap();
        let (_stop, changes) = StopChanges::new();
        let mut watch = FolderWatch::new(&changes).unwrap();
        watch.add(dir.path(), 0).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        fs::read(&read).unwrap();
        let reported = reported_until_written(&changes, &written);
        assert_eq!(
            reported,
            HashSet::from([FolderChange::File(written.clone()), FolderChange::Closed(written)])
        );
    }

    /// The new name of a folder is watched before its old one is forgotten, as when a walk finds it first.
    #[test]
    fn a_folder_that_was_moved_takes_those_below_along() {
        let dir = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| dir.path().join(name));
        fs::create_dir_all(old.join("sub")).unwrap();
        let (_stop, changes) = StopChanges::new();
        let mut watch = FolderWatch::new(&changes).unwrap();
        for folder in [dir.path(), &old, &old.join("sub")] {
            watch.add_found(folder, 0).unwrap();
        }
        fs::rename(&old, &new).unwrap();
        watch.add_found(&new, 1).unwrap();
        watch.add_found(&new.join("sub"), 1).unwrap();
        assert!(watch.remove(&old) && !watch.remove_unseen(dir.path(), 1));
        watch.add_found(&new.join("sub"), 1).unwrap();
        assert_eq!(watch.folders(), 3);
        let last = new.join("sub/last");
        assert!(reported_until_written(&changes, &last).contains(&FolderChange::File(last)));
    }

    /// A walk finds a folder, and a link replaces it before it is watched.
    #[test]
    fn a_folder_that_became_a_link_is_not_watched() {
        let [inside, outside] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let link = inside.path().join("link");
        symlink(outside.path(), &link).unwrap();
        let (_stop, changes) = StopChanges::new();
        let mut watch = FolderWatch::new(&changes).unwrap();
        watch.add_found(inside.path(), 0).unwrap();
        watch.add_found(&link, 0).unwrap();
        assert_eq!(watch.folders(), 1);
        fs::write(link.join("s.jsonl"), "x").unwrap();
        let last = inside.path().join("last");
        let reported = reported_until_written(&changes, &last);
        assert_eq!(reported, HashSet::from([FolderChange::File(last.clone()), FolderChange::Closed(last)]));
    }
}
