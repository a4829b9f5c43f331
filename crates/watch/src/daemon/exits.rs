//! Processes that files wait for. The kernel reports when one ends.

use crate::daemon::event::Event;
use keeper::{Process, Processes};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// How many processes to wait for at most. Files that wait for others are looked at again after a while anyway.
const PROCESSES_MAX: usize = 256;

/// The awaited processes, and the files that wait for each.
pub(crate) struct Exits {
    processes: Arc<Processes>,
    waiting: HashMap<u32, (Process, HashSet<Arc<Path>>)>,
}

impl Exits {
    /// Sends [`Event::Exited`] from a thread of its own.
    pub(crate) fn open(events: SyncSender<Event>) -> io::Result<Self> {
        let processes = Arc::new(Processes::open()?);
        let own = processes.clone();
        std::thread::Builder::new().name("exits".to_string()).spawn(move || {
            while let Ok(ended) = own.wait() {
                for pid in ended {
                    if events.send(Event::Exited(pid)).is_err() {
                        return;
                    }
                }
            }
        })?;
        Ok(Self { processes, waiting: HashMap::new() })
    }

    /// Makes a file wait for the end of a process. Does nothing if the process has ended or does not exist, as when the
    /// number is from inside a container: then the file waits for something else.
    pub(crate) fn wait_for(&mut self, pid: u32, path: &Arc<Path>) {
        if let Some((_, paths)) = self.waiting.get_mut(&pid) {
            paths.insert(path.clone());
        } else if self.waiting.len() < PROCESSES_MAX
            && let Some(process) = self.processes.add(pid)
        {
            self.waiting.insert(pid, (process, HashSet::from([path.clone()])));
        }
    }

    /// The files that waited for a process, which has ended.
    pub(crate) fn ended(&mut self, pid: u32) -> HashSet<Arc<Path>> {
        self.waiting.remove(&pid).map(|(_, paths)| paths).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    #[test]
    fn the_end_of_a_process_is_told_once_with_the_files_that_wait_for_it() {
        let (events, inbox) = sync_channel(10);
        let mut exits = Exits::open(events).unwrap();
        let paths = ["a", "b"].map(|name| Arc::from(Path::new(name)));
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        for path in &paths {
            exits.wait_for(pid, path);
        }
        assert!(inbox.recv_timeout(Duration::from_millis(50)).is_err(), "it lives");
        child.kill().unwrap();
        let told = inbox.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(matches!(told, Event::Exited(number) if number == pid));
        assert_eq!(exits.ended(pid), HashSet::from(paths.clone()));
        // It is a zombie now; after that it does not exist.
        exits.wait_for(pid, &paths[0]);
        child.wait().unwrap();
        exits.wait_for(pid, &paths[0]);
        assert!(exits.ended(pid).is_empty());
        assert!(inbox.recv_timeout(Duration::from_millis(50)).is_err());
    }
}
