//! Looks out for folders of known agents that are not there yet; a thread of its own. Which folders those are is
//! `keeper`'s; what becomes of them is the loop's.

use crate::changes::{Change, Changes, Closed, Stop, Watch, is_limit, is_real_folder, no_watch};
use crate::event::Event;
use keeper::known_roots_above;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// How long folders may go on coming before we look again.
const AGAIN_PAUSE: Duration = Duration::from_millis(50);
/// Without anything to wait for.
const FOREVER: Duration = Duration::from_secs(24 * 60 * 60);

/// Looks out until it is dropped.
pub(crate) struct RootDiscovery {
    _stop: Stop,
}

impl RootDiscovery {
    pub(crate) fn spawn(out: SyncSender<Event>) -> io::Result<Self> {
        let (stop, changes) = Stop::new();
        std::thread::Builder::new().name("discovery".to_string()).spawn(move || {
            // Nobody listens any more: that is how it ends.
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
            // What came before the folders were watched would be missed.
            Ok(_) if known_roots_above() != above => {}
            Ok(_watch) => {
                send(Event::Roots)?;
                while !changes.wait(FOREVER)?.iter().any(|change| is_about_folders(change, &above)) {}
            }
            // The loop looks for them now and then in any case.
            Err(error) => {
                send(Event::Blind(no_watch(&error)))?;
                changes.pause(FOREVER)?;
            }
        }
        changes.pause(AGAIN_PAUSE)?;
    }
}

/// Watches some folders, and not what is below them.
fn watch(changes: &Changes, folders: &[PathBuf]) -> notify::Result<Watch> {
    let mut watch = Watch::new(changes)?;
    for folder in folders {
        // One that is gone, or not ours to see, has nothing for us.
        if let Err(error) = watch.add(folder, 0)
            && is_limit(&error)
        {
            return Err(error);
        }
    }
    Ok(watch)
}

/// Whether a folder came, or one that is watched went.
fn is_about_folders(change: &Change, watched: &[PathBuf]) -> bool {
    match change {
        Change::Entry(path) => watched.contains(path) || is_real_folder(path),
        Change::Lost => true,
        Change::File(_) | Change::Closed(_) => false,
    }
}
