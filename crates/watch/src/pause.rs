//! Waiting for a descriptor, for time, or for the end, whichever comes first.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Ends what waits at the other side when it is dropped.
pub(crate) struct Stop(Arc<OwnedFd>);

/// The side that waits.
pub(crate) struct Pause(Arc<OwnedFd>);

/// Nobody wants to know more.
pub(crate) struct Closed;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    Time,
    Ready,
}

impl Stop {
    pub(crate) fn new() -> io::Result<(Self, Pause)> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let end = Arc::new(rustix::event::eventfd(0, flags)?);
        Ok((Self(end.clone()), Pause(end)))
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        // It cannot fail but for being full, and then who waits is told already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl Pause {
    /// Waits until a descriptor can be read or the time is over.
    pub(crate) fn wait(&self, time: Duration, fd: Option<BorrowedFd<'_>>) -> Result<Woken, Closed> {
        let timeout = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        let mut wait = vec![PollFd::new(&*self.0, PollFlags::IN)];
        wait.extend(fd.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        // An interrupted wait is one that ends early.
        let _ = rustix::event::poll(&mut wait, Some(&timeout));
        if wait[0].revents().intersects(PollFlags::IN) {
            return Err(Closed);
        }
        let ready = wait.get(1).is_some_and(|fd| fd.revents().intersects(PollFlags::IN));
        Ok(if ready { Woken::Ready } else { Woken::Time })
    }
}
