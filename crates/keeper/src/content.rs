//! The content of a file as it was when it was opened, read in windows.

use crate::error::Error;
use crate::new_text::read_up_to;
use crate::platform::facts::{self, Metadata};
use crate::platform::files::temporary;
use crate::stop::{Halt, Stop};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use transcript::{Fault, Source};

/// An open file and how long it was. What is appended meanwhile is not seen.
pub(crate) struct Content {
    /// Links resolved; for messages and to tell it from others.
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
}

impl Content {
    /// All of standard input, or what stands for it, in a file without a name, so that it can be read at any place.
    pub(crate) fn spool(stream: impl io::Read) -> Result<Self, Error> {
        Self::spool_as(Path::new("standard input"), "read all of it", stream)
    }

    /// The same of any stream; `name` and `verb` are for errors.
    pub(crate) fn spool_as(
        name: &Path,
        verb: &'static str,
        mut stream: impl io::Read,
    ) -> Result<Self, Error> {
        let fail = |cause| Error::new(&std::env::temp_dir(), "make a temporary file", cause);
        let mut file = temporary().map_err(fail)?;
        io::copy(&mut stream, &mut file).map_err(|cause| Error::new(name, verb, cause))?;
        let metadata = facts::of(&file).map_err(fail)?;
        Ok(Self { path: name.to_path_buf(), file, metadata })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.metadata.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Lets `work` read the bytes and gives the cause if they could not be read.
    pub(crate) fn read<T, E: Into<Halt>>(
        &self,
        work: impl FnOnce(&dyn Source) -> Result<T, E>,
    ) -> Result<T, Stop> {
        self.read_first(self.bytes(), work)
    }

    /// The same with the first `bytes` only.
    pub(crate) fn read_first<T, E: Into<Halt>>(
        &self,
        bytes: u64,
        work: impl FnOnce(&dyn Source) -> Result<T, E>,
    ) -> Result<T, Stop> {
        let source = FileSource::new(&self.file, bytes.min(self.bytes()));
        let fail = |Fault { at }| {
            let gone = || io::Error::other(format!("the file ends before byte {at}: it shrank meanwhile"));
            Error::new(&self.path, "read the file", source.cause.take().unwrap_or_else(gone))
        };
        work(&source).map_err(|halt| halt.into().stop(fail))
    }
}

/// How many bytes of transcripts this thread has read, again and again included: what looking costs, whatever the
/// machine is busy with.
pub fn bytes_read() -> u64 {
    BYTES_READ.get()
}

thread_local! {
    static BYTES_READ: Cell<u64> = const { Cell::new(0) };
}

/// A file of known length, read by offset. What is appended meanwhile is not seen.
struct FileSource<'a> {
    file: &'a File,
    bytes: u64,
    cause: RefCell<Option<io::Error>>,
}

impl<'a> FileSource<'a> {
    fn new(file: &'a File, bytes: u64) -> Self {
        Self { file, bytes, cause: RefCell::new(None) }
    }
}

impl Source for FileSource<'_> {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let wanted = self.bytes.saturating_sub(at).min(buffer.len() as u64) as usize;
        let got = read_up_to(self.file, &mut buffer[..wanted], at).map_err(|cause| {
            *self.cause.borrow_mut() = Some(cause);
            Fault { at }
        })?;
        BYTES_READ.set(BYTES_READ.get() + got as u64);
        if got < wanted { Err(Fault { at: at + got as u64 }) } else { Ok(got) }
    }
}

/// Lets `work` read all of standard input, or what stands for it, at any place.
///
/// # Errors
///
/// When the stream cannot be read or the temporary folder cannot be written.
pub fn spool<T>(
    stream: impl io::Read,
    work: impl FnOnce(&dyn Source) -> Result<T, Fault>,
) -> Result<T, Stop> {
    Content::spool(stream)?.read(work)
}
