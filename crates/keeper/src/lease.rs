//! Linux file leases (`fcntl(2)`, "Leases"): nobody comes in while we hold one.
//!
//! The only place with `unsafe`: no well-kept crate wraps `F_SETLEASE`.

use std::fs::File;
use std::io;

/// A lease on an open file, given back on drop.
///
/// While a read lease is held, opening the file for writing blocks; it is to be had only while nobody has the file
/// open for writing. While a write lease is held, opening it at all blocks; it is to be had only by the one who has
/// it open. Whoever blocks waits until the lease is given back, `/proc/sys/fs/lease-break-time` at most.
pub(crate) struct Lease<'f>(&'f File);

/// Why there is no lease.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Somebody has the file open.
    Busy,
    /// There are none here: another owner's file, a network file system, another system than Linux.
    Unavailable,
    /// Something else failed.
    Failed(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        let Some(errno) = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) else {
            return Self::Failed(error);
        };
        match errno {
            rustix::io::Errno::AGAIN => Self::Busy,
            _ => Self::Unavailable,
        }
    }
}

impl<'f> Lease<'f> {
    /// Keeps writers out of a file that was opened for reading only.
    pub(crate) fn read(file: &'f File) -> Result<Self, Refused> {
        Ok(system::set(file, system::READ).map(|()| Self(file))?)
    }

    /// Keeps everybody else out of a file.
    pub(crate) fn write(file: &'f File) -> Result<Self, Refused> {
        Ok(system::set(file, system::WRITE).map(|()| Self(file))?)
    }
}

impl Lease<'_> {
    /// Whether somebody waits for it, or has waited for so long that the kernel took it.
    pub(crate) fn is_wanted(&self) -> bool {
        !system::is_whole(self.0)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // It is gone already if somebody waited for longer than the kernel's limit.
        let _ = system::set(self.0, system::NONE);
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "three system calls on descriptors and numbers, no pointers")]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::sync::Once;

    pub(super) const READ: i32 = libc::F_RDLCK;
    pub(super) const WRITE: i32 = libc::F_WRLCK;
    pub(super) const NONE: i32 = libc::F_UNLCK;

    static SIGNAL: Once = Once::new();

    pub(super) fn set(file: &File, kind: i32) -> io::Result<()> {
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
        kind == READ || kind == WRITE
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;

    pub(super) const READ: i32 = 0;
    pub(super) const WRITE: i32 = 1;
    pub(super) const NONE: i32 = 2;

    pub(super) fn set(_: &File, _: i32) -> io::Result<()> {
        Err(rustix::io::Errno::OPNOTSUPP.into())
    }

    pub(super) fn is_whole(_: &File) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::time::{Duration, Instant};

    #[test]
    fn a_writer_waits_until_the_lease_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "a").unwrap();
        let file = File::open(&path).unwrap();
        let Ok(lease) = Lease::read(&file) else { panic!("no leases in {}", folder.path().display()) };
        assert!(!lease.is_wanted());
        let writer = std::thread::spawn(move || {
            let start = Instant::now();
            OpenOptions::new().append(true).open(&path).unwrap().write_all(b"b").unwrap();
            start.elapsed()
        });
        std::thread::sleep(Duration::from_millis(50));
        assert!(lease.is_wanted());
        assert_eq!(file.metadata().unwrap().len(), 1);
        drop(lease);
        assert!(writer.join().unwrap() >= Duration::from_millis(20));
        assert_eq!(file.metadata().unwrap().len(), 2);
    }

    #[test]
    fn nobody_gets_a_lease_while_a_writer_is_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let writer = File::create(&path).unwrap();
        let file = File::open(&path).unwrap();
        assert!(matches!(Lease::read(&file), Err(Refused::Busy)));
        drop(writer);
        assert!(Lease::read(&file).is_ok());
    }
}
