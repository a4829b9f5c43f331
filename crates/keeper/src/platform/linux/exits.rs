//! The ends of processes: a descriptor for each process (`pidfd_open`), and `epoll` on them.

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;

/// What keeps a process watched.
pub type Process = OwnedFd;

/// The processes that are watched.
pub struct Processes(OwnedFd);

impl Processes {
    /// Nothing is watched yet.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn open() -> io::Result<Self> {
        Ok(Self(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Watches a process until it ends. `None` if it cannot be watched or has ended.
    pub fn add(&self, pid: u32) -> Option<Process> {
        let process = open_living(pid)?;
        let flags = EventFlags::IN | EventFlags::ONESHOT;
        epoll::add(&self.0, &process, EventData::new_u64(pid.into()), flags).ok().map(|()| process)
    }

    /// Waits for watched processes to end.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn wait(&self) -> io::Result<Vec<u32>> {
        let mut ended = Vec::with_capacity(16);
        match epoll::wait(&self.0, spare_capacity(&mut ended), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(ended.iter().filter_map(|event| u32::try_from(event.data.u64()).ok()).collect())
    }
}

fn open_living(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    let ended = poll(&mut ended, Some(&Timespec::default())).ok()? > 0;
    (!ended).then_some(process)
}
