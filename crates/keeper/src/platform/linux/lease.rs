//! The system calls of file leases (`fcntl(2)`, "Leases"). The only place with `unsafe`: no well-kept crate wraps
//! `F_SETLEASE`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Once;

pub(crate) const READ: i32 = libc::F_RDLCK;
pub(crate) const WRITE: i32 = libc::F_WRLCK;
pub(crate) const NONE: i32 = libc::F_UNLCK;

static SIGNAL: Once = Once::new();

pub(crate) fn set(file: &File, kind: i32) -> io::Result<()> {
    // Whoever waits for a lease makes the kernel send its holder this signal, which kills by default. Nothing
    // has to be done about it: a lease is given back within milliseconds anyway.
    // SAFETY: `SIG_IGN` is no function of ours that could run at a bad time.
    SIGNAL.call_once(|| unsafe {
        libc::signal(libc::SIGIO, libc::SIG_IGN);
    });
    // SAFETY: the descriptor is open as long as `file` lives, and the argument is a number.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The kernel answers with what the lease is about to become.
pub(crate) fn is_whole(file: &File) -> bool {
    // SAFETY: the descriptor is open as long as `file` lives, and the call takes no argument.
    let kind = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) };
    kind == READ || kind == WRITE
}
