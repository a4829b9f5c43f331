//! The system calls of file leases (`fcntl(2)`, "Leases"). The only place with `unsafe`: no well-kept crate wraps
//! `F_SETLEASE`.

use crate::platform::system::LeaseKind;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Once;

static SIGNAL: Once = Once::new();

pub(super) fn set(file: &File, kind: LeaseKind) -> io::Result<()> {
    let kind = match kind {
        LeaseKind::Read => libc::F_RDLCK,
        LeaseKind::Write => libc::F_WRLCK,
        LeaseKind::None => libc::F_UNLCK,
    };
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
pub(super) fn is_whole(file: &File) -> bool {
    // SAFETY: the descriptor is open as long as `file` lives, and the call takes no argument.
    let kind = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) };
    kind == libc::F_RDLCK || kind == libc::F_WRLCK
}
