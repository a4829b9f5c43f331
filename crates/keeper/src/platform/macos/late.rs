//! Writes to an old file that is drained, reported by `kqueue`.

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::kqueue::{Event, EventFilter, EventFlags, VnodeEvents, kevent_timespec, kqueue};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::thread::sleep;
use std::time::Duration;

/// The function that is returned waits for a write that came since its last call.
pub(super) fn watch(file: &File) -> Option<impl Fn(Duration)> {
    let queue = kqueue().ok()?;
    let flags = VnodeEvents::WRITE | VnodeEvents::EXTEND;
    let filter = EventFilter::Vnode { vnode: file.as_raw_fd(), flags };
    let watch = Event::new(filter, EventFlags::ADD | EventFlags::CLEAR, null_mut());
    let mut none: [Event; 0] = [];
    // SAFETY: the file is borrowed, and so open, as long as the queue lives.
    unsafe { kevent_timespec(&queue, &[watch], &mut none[..], None) }.ok()?;
    Some(move |at_most: Duration| {
        let mut came = Vec::with_capacity(1);
        let limit = Timespec::try_from(at_most).ok();
        // SAFETY: nothing is added to what is watched.
        match unsafe { kevent_timespec(&queue, &[], spare_capacity(&mut came), limit.as_ref()) } {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => sleep(at_most),
        }
    })
}
