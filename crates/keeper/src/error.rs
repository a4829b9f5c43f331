//! What goes wrong between us and the disk.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file could not be dealt with; it is as it was. Reads `<path>: could not <verb> …: <cause>`.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    verb: &'static str,
    cause: io::Error,
    way_out: Option<&'static str>,
}

impl Error {
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
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: could not {}: {}", self.path.display(), self.verb, self.cause)?;
        if let Some(way_out) = self.way_out {
            return write!(f, " ({way_out})");
        }
        match self.cause.kind() {
            io::ErrorKind::PermissionDenied => f.write_str(" (run as the owner of the file, or as root)"),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                f.write_str(" (the file is as it was; free some space and run again)")
            }
            io::ErrorKind::ReadOnlyFilesystem => f.write_str(" (--out DIR writes the mended text elsewhere)"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
