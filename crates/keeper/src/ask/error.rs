//! What goes wrong between us and the disk.

use crate::platform::metadata::{is_withheld, will_pass};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Stands for the file in the commands of a way out.
const FILE: &str = "FILE";

/// A file could not be dealt with; it is as it was. Reads `<path>: could not <verb> …: <cause>`.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    verb: &'static str,
    cause: io::Error,
    way_out: Option<&'static str>,
}

impl Error {
    /// What could not be done where a file is to be read.
    pub(crate) const OPEN: &str = "open the file";

    pub(crate) fn new(path: &Path, verb: &'static str, cause: io::Error) -> Self {
        Self { path: path.to_path_buf(), verb, cause, way_out: None }
    }

    /// Ends with this instead of what its cause suggests.
    pub(crate) fn with_way_out(self, way_out: &'static str) -> Self {
        Self { way_out: Some(way_out), ..self }
    }

    /// The file it is about.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file was simply not there.
    pub fn is_missing(&self) -> bool {
        self.cause.kind() == io::ErrorKind::NotFound
    }

    /// Whether there was no file to read: not a folder of ours that is missing.
    pub fn is_of_no_file(&self) -> bool {
        self.is_missing() && self.verb == Self::OPEN
    }

    /// Whether another program is in the way, and nothing was changed: what fails after the exchange has a way out of its own.
    pub(crate) fn is_withheld(&self) -> bool {
        self.way_out.is_none() && is_withheld(&self.cause)
    }

    /// See [`is_hindrance`].
    pub fn is_hindrance(&self) -> bool {
        is_hindrance(&self.cause)
    }
}

/// Whether the surroundings are in the way, and not the file: it is worth trying again soon, however often that failed.
///
/// These are full disks, quotas, read-only file systems, a lack of memory or descriptors, and locks of others: they
/// end without any change to the file. Missing permissions count too, because they are usually those of a folder or of
/// the vault: a change of those does not show in the file, and until then each attempt ends early. Data that a disk
/// cannot read (`EIO`) does not count: reading it again and again may break the disk for good.
pub fn is_hindrance(cause: &io::Error) -> bool {
    let by_kind = matches!(
        cause.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::OutOfMemory
            | io::ErrorKind::ResourceBusy
    );
    // These have no kind of their own.
    by_kind || will_pass(cause)
}

impl Error {
    /// What could not be done, why, and what to do, without the path. Commands name the file by this word.
    pub fn reason(&self, file: &str) -> String {
        let way_out = match (self.way_out, self.cause.kind()) {
            (Some(way_out), _) => way_out.replace(FILE, file),
            (None, io::ErrorKind::PermissionDenied) => "run as the owner of the file, or as root".to_string(),
            (None, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                "the file is unchanged; free some space and run again".to_string()
            }
            (None, io::ErrorKind::ReadOnlyFilesystem) => {
                "pass --copy-to DIR to write the repaired text elsewhere".to_string()
            }
            (None, _) => return format!("could not {}: {}", self.verb, self.cause),
        };
        format!("could not {}: {} ({way_out})", self.verb, self.cause)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason(FILE))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn what_is_in_the_way_of_all_files_is_no_fault_of_one() {
        let is = |errno: Errno| is_hindrance(&io::Error::from_raw_os_error(errno.raw_os_error()));
        let around = [
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::ROFS,
            Errno::ACCESS,
            Errno::PERM,
            Errno::NOMEM,
            Errno::MFILE,
            Errno::NFILE,
        ];
        assert!(around.into_iter().all(is));
        assert!(![Errno::IO, Errno::INVAL, Errno::NOENT, Errno::FBIG].into_iter().any(is));
        assert!(!is_hindrance(&io::Error::other("it ends early")));
    }
}
