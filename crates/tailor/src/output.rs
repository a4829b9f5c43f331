//! Where results go: standard output, standard error if a transcript goes to standard output, or a file that appears
//! complete or not at all.

use keeper::program::{make_private, own_stream, share_like};
use keeper::{create_private, folder_of, real_path};
use std::fs::{self, File};
use std::io::{self, BufWriter, StderrLock, StdoutLock, Write};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Where results go.
pub(crate) enum Output {
    /// Standard output.
    Stdout(BufWriter<StdoutLock<'static>>),
    /// Standard error, because standard output carries a transcript.
    Stderr(StderrLock<'static>),
    /// A file that is put in place once it is complete.
    File(Whole, PathBuf),
    /// A pipe or a device, which cannot be replaced.
    Device(BufWriter<File>),
}

impl Output {
    /// Standard output.
    pub(crate) fn stdout() -> Self {
        Self::Stdout(BufWriter::new(io::stdout().lock()))
    }

    /// Opens a file for results. Its folder must exist.
    pub(crate) fn to_file(path: &Path) -> io::Result<Self> {
        let there = fs::metadata(path).ok();
        if let Some(own) = there.as_ref().and_then(own_stream) {
            return Ok(Self::Device(BufWriter::new(own)));
        }
        // A link stays; its target is replaced.
        let whole = match (&there, real_path(path)) {
            (Some(there), Ok(real)) if there.is_file() => (Whole::beside(&real)?, real),
            (Some(_), _) => {
                return Ok(Self::Device(BufWriter::new(File::options().write(true).open(path)?)));
            }
            (None, _) if path.is_symlink() => {
                return Err(io::Error::other("it is a link that leads nowhere"));
            }
            (None, _) => (Whole::beside(path)?, path.to_path_buf()),
        };
        let (whole, path) = whole;
        if let Some(there) = there {
            share_like(whole.file.get_ref(), &there)?;
        }
        Ok(Self::File(whole, path))
    }

    /// Makes the file readable only by its owner, whatever the mode of the file that it replaces.
    pub(crate) fn make_private(&self) -> io::Result<()> {
        match self {
            Self::File(whole, _) => make_private(whole.file.get_ref()),
            _ => Ok(()),
        }
    }

    /// The file that will be replaced, if there is one.
    pub(crate) fn replaces(&self) -> Option<&Path> {
        match self {
            Self::File(_, path) => Some(path),
            _ => None,
        }
    }

    /// Whether the output is a file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File(..) | Self::Device(_))
    }

    /// Finishes writing, and puts a file in place.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut out) => out.flush(),
            Self::Stderr(mut out) => out.flush(),
            Self::Device(mut out) => out.flush(),
            Self::File(out, path) => out.put_in_place(&path),
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

/// Whether a path means standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// A file that appears complete or not at all. It is first written beside its final place, readable only by its owner.
/// Errors do not mention the temporary name, which would confuse users.
pub(crate) struct Whole {
    file: BufWriter<File>,
    beside: TempPath,
}

impl Whole {
    /// Begins a file for this path.
    pub(crate) fn beside(path: &Path) -> io::Result<Self> {
        let folder = folder_of(path);
        let (file, beside) =
            tempfile::Builder::new().prefix(".tailor-").make_in(folder, create_private)?.into_parts();
        Ok(Self { file: BufWriter::new(file), beside })
    }

    /// Moves the file to its final place.
    pub(crate) fn put_in_place(self, path: &Path) -> io::Result<()> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(self.beside.persist(path)?)
    }
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
