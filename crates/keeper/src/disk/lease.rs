//! File leases: while we hold one, other programs that open the file wait.

use crate::platform::{LeaseKind, System, This};
use std::fs::File;
use std::io;

/// A lease on an open file, given back on drop.
///
/// While a read lease is held, opening the file for writing blocks. The kernel grants it only while no process has the file
/// open for writing. While a write lease is held, opening the file at all blocks. The kernel grants it only if no other process
/// has the file open. A blocked program waits until the lease is given back, for `/proc/sys/fs/lease-break-time` seconds at
/// most.
pub(crate) struct Lease<'f>(&'f File);

/// Why there is no lease.
#[derive(Debug)]
pub(crate) enum Refused {
    /// A process has the file open.
    Busy,
    /// There are no leases here: the file is another user's or on a network file system, or the system is not Linux.
    Unavailable,
    /// Something else failed.
    Failed(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock => Self::Busy,
            io::ErrorKind::Unsupported => Self::Unavailable,
            _ if error.raw_os_error().is_some() => Self::Unavailable,
            _ => Self::Failed(error),
        }
    }
}

impl<'f> Lease<'f> {
    /// Keeps writers out of a file that was opened for reading only.
    pub(crate) fn read(file: &'f File) -> Result<Self, Refused> {
        Self::take(file, LeaseKind::Read)
    }

    /// Keeps all other programs out of a file.
    pub(crate) fn write(file: &'f File) -> Result<Self, Refused> {
        Self::take(file, LeaseKind::Write)
    }

    fn take(file: &'f File, kind: LeaseKind) -> Result<Self, Refused> {
        #[cfg(test)]
        if crate::base::step::fault::system().leases != crate::base::step::fault::Leases::Given {
            return Err(Refused::Unavailable);
        }
        Ok(This::lease(file, kind).map(|()| Self(file))?)
    }
}

impl Lease<'_> {
    /// Whether a program is waiting for it, or has waited for so long that the kernel took it away.
    pub(crate) fn is_wanted(&self) -> bool {
        !This::has_lease(self.0)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // This fails if a program waited longer than the kernel's limit, and the lease is gone already.
        let _ = This::lease(self.0, LeaseKind::None);
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
        // A process that another test starts may hold a copy of the descriptor that wrote, for an instant.
        let tries = (0..100).find_map(|_| {
            let lease = Lease::read(&file).ok();
            lease.is_none().then(|| std::thread::sleep(Duration::from_millis(10)));
            lease
        });
        let lease = tries.unwrap_or_else(|| panic!("no leases in {}", folder.path().display()));
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
