//! Where results go: standard output, standard error beside a transcript, or a file that appears whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, StderrLock, StdoutLock, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where results go.
pub(crate) enum Output {
    /// Standard output.
    Stdout(BufWriter<StdoutLock<'static>>),
    /// Standard error, because standard output carries a transcript.
    Stderr(StderrLock<'static>),
    /// A file that is put in place at the end.
    File(BufWriter<NamedTempFile>, PathBuf),
    /// A pipe or a device, which cannot be replaced.
    Device(BufWriter<File>),
}

impl Output {
    /// Opens a file for results. Its folder must be there.
    pub(crate) fn to_file(path: &Path) -> io::Result<Self> {
        // What a link leads to is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let there = fs::metadata(&path).ok();
        if there.as_ref().is_some_and(|there| !there.is_file()) {
            return Ok(Self::Device(BufWriter::new(File::options().write(true).open(&path)?)));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = NamedTempFile::new_in(folder.unwrap_or_else(|| Path::new(".")))?;
        if let Some(there) = there {
            file.as_file().set_permissions(there.permissions())?;
        }
        Ok(Self::File(BufWriter::new(file), path))
    }

    /// Whether people read along.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File(..) | Self::Device(_))
    }

    /// Puts what was written in its place.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut out) => out.flush(),
            Self::Stderr(mut out) => out.flush(),
            Self::Device(mut out) => out.flush(),
            Self::File(out, path) => {
                let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.as_file().sync_all()?;
                file.persist(path)?;
                Ok(())
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Stderr(out) => out.write(bytes),
            Self::File(out, _) => out.write(bytes),
            Self::Device(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Stderr(out) => out.flush(),
            Self::File(out, _) => out.flush(),
            Self::Device(out) => out.flush(),
        }
    }
}
