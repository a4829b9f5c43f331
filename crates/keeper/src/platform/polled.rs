//! The ends of processes, where nothing reports them: each is asked about every second.

use crate::platform::process::life;
use crate::platform::seen::ProcessState;
use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What keeps a process watched: nothing, the list does.
pub struct Process;

/// The processes that are watched.
pub struct Processes(Mutex<HashSet<u32>>);

fn has_ended(pid: u32) -> bool {
    life(pid, None) != ProcessState::Alive
}

#[allow(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
impl Processes {
    /// Nothing is watched yet.
    ///
    /// # Errors
    ///
    /// None.
    pub fn open() -> io::Result<Self> {
        Ok(Self(Mutex::default()))
    }

    /// Watches a process until it ends. `None` if it has ended.
    pub fn add(&self, pid: u32) -> Option<Process> {
        let lives = !has_ended(pid);
        lives.then(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(pid)).map(|_| Process)
    }

    /// Waits for watched processes to end.
    ///
    /// # Errors
    ///
    /// None.
    pub fn wait(&self) -> io::Result<Vec<u32>> {
        sleep(LOOK_EVERY);
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(watched.extract_if(|pid| has_ended(*pid)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Processes;
    use crate::spawned::spawn;
    use std::process::Command;

    #[test]
    fn the_end_of_a_process_is_told_once() {
        let watched = Processes::open().unwrap();
        let mut child = spawn(Command::new("sleep").arg("60"));
        assert!(watched.add(child.id()).is_some());
        assert!(watched.wait().unwrap().is_empty(), "it lives");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(watched.wait().unwrap(), [child.id()]);
        assert!(watched.wait().unwrap().is_empty() && watched.add(child.id()).is_none());
    }
}
