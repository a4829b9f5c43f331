//! Watches for folders and databases of known agents that do not exist yet, on a thread of its own. `keeper` knows these folders; the
//! loop decides what to do about them.

use crate::daemon::changes::{
    Changes, Closed, FolderChange, FolderWatch, StopChanges, is_limit, is_real_folder, no_watch,
};
use crate::daemon::event::Event;
use keeper::{is_read, known_roots_above};
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// How long to wait after a change, so that folders created together are found together.
const AGAIN_PAUSE: Duration = Duration::from_millis(50);
/// The wait if there is nothing to wait for.
const FOREVER: Duration = Duration::from_secs(24 * 60 * 60);

/// Watches until it is dropped.
pub(crate) struct RootDiscovery {
    _stop: StopChanges,
}

impl RootDiscovery {
    pub(crate) fn spawn(out: SyncSender<Event>) -> io::Result<Self> {
        let (stop, changes) = StopChanges::new();
        std::thread::Builder::new().name("discovery".to_string()).spawn(move || {
            // The receiver is gone, so discovery ends.
            let Err(Closed) = discover(&out, &changes);
        })?;
        Ok(Self { _stop: stop })
    }
}

fn discover(out: &SyncSender<Event>, changes: &Changes) -> Result<Infallible, Closed> {
    let send = |event| out.send(event).map_err(|_| Closed);
    loop {
        let above = known_roots_above();
        match watch(changes, &above) {
            // Folders that appeared before these were watched would be missed.
            Ok(_) if known_roots_above() != above => {}
            Ok(_watch) => {
                send(Event::Roots)?;
                while !changes.wait(FOREVER)?.iter().any(|change| is_about_folders(change, &above)) {}
            }
            // The loop looks for folders regularly anyway.
            Err(error) => {
                send(Event::Blind(no_watch(&error)))?;
                changes.pause(FOREVER)?;
            }
        }
        changes.pause(AGAIN_PAUSE)?;
    }
}

/// Watches folders, but nothing below them.
fn watch(changes: &Changes, folders: &[PathBuf]) -> notify::Result<FolderWatch> {
    let mut watch = FolderWatch::new(changes)?;
    for folder in folders {
        // A folder that does not exist or cannot be read has nothing to report.
        if let Err(error) = watch.add(folder, 0)
            && is_limit(&error)
        {
            return Err(error);
        }
    }
    Ok(watch)
}

/// Whether a folder or a database has appeared, or a watched folder has disappeared.
fn is_about_folders(change: &FolderChange, watched: &[PathBuf]) -> bool {
    match change {
        FolderChange::Entry(path) => watched.contains(path) || is_real_folder(path) || is_read(path),
        FolderChange::Lost => true,
        FolderChange::File(path) => is_read(path),
        FolderChange::Closed(_) => false,
    }
}
