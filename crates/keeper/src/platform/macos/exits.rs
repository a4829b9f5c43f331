//! The ends of processes, reported by `kqueue`.

use rustix::buffer::spare_capacity;
use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent_timespec, kqueue};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::Pid;
use std::io;
use std::ptr::null_mut;

/// What keeps a process watched: nothing, the queue does.
pub struct Process;

/// The processes that are watched.
pub struct Processes(OwnedFd);

impl Processes {
    /// Nothing is watched yet.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn open() -> io::Result<Self> {
        Ok(Self(kqueue()?))
    }

    /// Watches a process until it ends. `None` if it cannot be watched or has ended.
    pub fn add(&self, pid: u32) -> Option<Process> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let filter = EventFilter::Proc { pid, flags: ProcessEvents::EXIT };
        let watch = Event::new(filter, EventFlags::ADD | EventFlags::ONESHOT, null_mut());
        let mut none: [Event; 0] = [];
        // SAFETY: the event names a process, not a descriptor that could be closed meanwhile.
        unsafe { kevent_timespec(&self.0, &[watch], &mut none[..], None) }.ok().map(|_| Process)
    }

    /// Waits for watched processes to end.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn wait(&self) -> io::Result<Vec<u32>> {
        let mut ended = Vec::with_capacity(16);
        // SAFETY: nothing is added to what is watched.
        match unsafe { kevent_timespec(&self.0, &[], spare_capacity(&mut ended), None) } {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let pid = |event: &Event| match event.filter() {
            EventFilter::Proc { pid, .. } => u32::try_from(pid.as_raw_nonzero().get()).ok(),
            _ => None,
        };
        Ok(ended.iter().filter_map(pid).collect())
    }
}
