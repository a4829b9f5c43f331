//! Looks out for folders of known agents that are not there yet; a thread of its own. Which folders those are is
//! `keeper`'s; what becomes of them is the loop's.

use crate::event::Event;
use crate::eye::no_watch;
use crate::pause::{Closed, Pause, Stop, Woken};
use keeper::known_roots_above;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;
use std::convert::Infallible;
use std::io;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// How long folders may go on coming before we look again.
const AGAIN_PAUSE: Duration = Duration::from_millis(50);
/// Without anything to wait for.
const FOREVER: Duration = Duration::from_secs(24 * 60 * 60);

/// Looks out until it is dropped.
pub(crate) struct Scout {
    _stop: Stop,
}

impl Scout {
    pub(crate) fn send_out(out: SyncSender<Event>) -> io::Result<Self> {
        let (stop, pause) = Stop::new()?;
        std::thread::Builder::new().name("scout".to_string()).spawn(move || {
            // Nobody listens any more: that is how it ends.
            let Err(Closed) = look_out(&out, &pause);
        })?;
        Ok(Self { _stop: stop })
    }
}

fn look_out(out: &SyncSender<Event>, pause: &Pause) -> Result<Infallible, Closed> {
    let send = |event| out.send(event).map_err(|_| Closed);
    loop {
        let above = known_roots_above();
        match Watch::on(&above) {
            // What came before the folders were watched would be missed.
            Ok(_) if known_roots_above() != above => {}
            Ok(mut watch) => {
                send(Event::Roots)?;
                while pause.wait(FOREVER, Some(watch.fd()))? == Woken::Time || !watch.has_folders() {}
            }
            // The loop looks for them now and then in any case.
            Err(errno) => {
                send(Event::Blind(no_watch(errno)))?;
                pause.wait(FOREVER, None)?;
            }
        }
        pause.wait(AGAIN_PAUSE, None)?;
    }
}

/// What the kernel tells about some folders, and not about what is below them.
struct Watch {
    inotify: OwnedFd,
    buffer: [MaybeUninit<u8>; 4096],
}

impl Watch {
    fn on(folders: &[PathBuf]) -> Result<Self, Errno> {
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        for folder in folders {
            // One that is gone, or not ours to see, has nothing for us.
            if let Err(errno @ (Errno::NOSPC | Errno::NOMEM)) = add_watch(&inotify, folder, flags) {
                return Err(errno);
            }
        }
        Ok(Self { inotify, buffer: [const { MaybeUninit::uninit() }; 4096] })
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Whether what happened was about folders, and not about files only.
    fn has_folders(&mut self) -> bool {
        let mut reader = Reader::new(&self.inotify, &mut self.buffer);
        let mut any = false;
        while let Ok(event) = reader.next() {
            let about = ReadFlags::ISDIR
                | ReadFlags::DELETE_SELF
                | ReadFlags::MOVE_SELF
                | ReadFlags::QUEUE_OVERFLOW
                | ReadFlags::IGNORED;
            any |= event.events().intersects(about);
        }
        any
    }
}
