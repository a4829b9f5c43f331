//! The content of a file as it was when it was opened, read in windows.

use crate::ask::error::Error;
use crate::ask::stop::{Halt, Stop};
use crate::base::interruption::stop_if_told;
use crate::base::policies::Policies;
use crate::disk::held::HeldText;
use crate::disk::new_text::read_up_to;
use crate::platform::files::{temporary, temporary_folder};
use crate::platform::holes;
use crate::platform::metadata::{self, Metadata};
use crate::platform::room::entries_max;
use rayon::prelude::*;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use transcript::parts::{PART_BYTES, PartReader, Parts};
use transcript::scan::{Scanned, scan_as};
use transcript::{Fault, Policy, Reading, Source, Span};

/// An open file, or a text that stands for one, and how long it was. What is appended meanwhile is not seen.
pub(crate) struct FileContent {
    /// Links resolved; for messages and to tell it from others.
    pub(crate) path: PathBuf,
    pub(crate) text: ContentText,
    pub(crate) metadata: Metadata,
    /// The entries, if they were read while the text was written.
    pub(crate) scanned: Mutex<Option<Scanned>>,
}

/// Where the bytes are.
pub(crate) enum ContentText {
    File(Arc<File>),
    /// In memory: a short text that stands in no file.
    #[cfg_attr(not(feature = "stores"), expect(dead_code, reason = "only texts of rows are held"))]
    Held(HeldText),
}

impl FileContent {
    /// All of standard input, or of another stream in its place, in a file without a name, so that it can be read at
    /// any offset.
    pub(crate) fn spool(stream: impl io::Read) -> Result<Self, Error> {
        Self::spool_as(Path::new("standard input"), "read all of it", stream)
    }

    /// All of any stream, in a file without a name; `name` and `verb` are for errors.
    pub(crate) fn spool_as(
        name: &Path,
        verb: &'static str,
        mut stream: impl io::Read,
    ) -> Result<Self, Error> {
        let mut file = temporary().map_err(no_temporary)?;
        io::copy(&mut stream, &mut file).map_err(|cause| Error::new(name, verb, cause))?;
        Self::of_temporary(name, file)
    }

    /// A file without a name that has been written already; `name` is for errors.
    pub(crate) fn of_temporary(name: &Path, file: File) -> Result<Self, Error> {
        let metadata = metadata::of_file(&file).map_err(no_temporary)?;
        let text = ContentText::File(file.into());
        Ok(Self { path: name.to_path_buf(), text, metadata, scanned: Mutex::default() })
    }

    /// A file with these bytes: the file itself, or a temporary one.
    pub(crate) fn file(&self) -> io::Result<Arc<File>> {
        match &self.text {
            ContentText::File(file) => Ok(file.clone()),
            ContentText::Held(held) => {
                let file = temporary()?;
                (&file).write_all(held.bytes())?;
                Ok(file.into())
            }
        }
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

    /// Reads all of it into entries, a long file on all threads of the pool, and lets `work` go on with both and with the
    /// policy for its format.
    pub(crate) fn scan<T, E: Into<Halt>>(
        &self,
        policies: &Policies,
        work: impl FnOnce(Scanned, &dyn Source, &Arc<Policy>) -> Result<T, E>,
    ) -> Result<T, Stop> {
        let ahead = self.scanned.lock().ok().and_then(|mut scanned| scanned.take());
        if ahead.is_some() {
            // Another thread has read it.
            BYTES_READ.set(BYTES_READ.get() + self.bytes());
        }
        let told = policies.all().format;
        let read = match ahead {
            None if told.is_none() && rayon::current_num_threads() > 1 && !self.has_holes() => {
                self.scan_in_parts()?
            }
            ahead => ahead,
        };
        let read = match read {
            Some(read) => read,
            None => self.read(|source| scan_as(source, told))?,
        };
        let policy = policies.for_format(read.format);
        self.read(|source| work(read, source, policy))
    }

    /// Reads it once, for work that asks more than one thing of it.
    pub(crate) fn read_whole<T, E: Into<Halt>>(
        &self,
        policies: &Policies,
        work: impl FnOnce(&Reading<'_>, &Arc<Policy>) -> Result<T, E>,
    ) -> Result<T, Stop> {
        self.scan(policies, |scanned, source, policy| work(&Reading { source, scanned }, policy))
    }

    /// Whether there are holes in a long file. They are skipped one after the other: there may be terabytes of them.
    fn has_holes(&self) -> bool {
        match &self.text {
            ContentText::File(file) => {
                self.bytes() > PART_BYTES && holes::hole_from(file, 0).is_some_and(|hole| hole < self.bytes())
            }
            ContentText::Held(_) => false,
        }
    }

    /// `None` if that does not work for this file.
    fn scan_in_parts(&self) -> Result<Option<Scanned>, Stop> {
        let at_once = 2 * rayon::current_num_threads();
        let begin = |source: &dyn Source| Parts::begin(source, PART_BYTES, 2 * at_once);
        let Some(mut parts) = self.read(begin)? else { return Ok(None) };
        let (read_before, reader) = (BYTES_READ.get(), parts.reader());
        let spans: Vec<Span> = parts.rest().collect();
        let mut read = Vec::new();
        // While some are read, those before them are added.
        for next in spans.chunks(at_once).chain([&[][..]]) {
            let add = || read.drain(..).all(|part| parts.add(&part));
            let (fit, next) = rayon::join(add, || self.read_parts(reader, next));
            if !fit {
                return Ok(None);
            }
            read = next?;
        }
        // Other threads have read most of it.
        BYTES_READ.set(read_before + self.bytes());
        Ok(parts.finish())
    }

    fn read_parts(&self, reader: PartReader, parts: &[Span]) -> Result<Vec<Scanned>, Stop> {
        parts.par_iter().map(|part| self.read(|source| reader.read(source, *part))).collect()
    }

    /// Works on the first `bytes` only.
    pub(crate) fn read_first<T, E: Into<Halt>>(
        &self,
        bytes: u64,
        work: impl FnOnce(&dyn Source) -> Result<T, E>,
    ) -> Result<T, Stop> {
        let source = FileSource::new(&self.text, bytes.min(self.bytes()));
        let fail = |Fault { at }| {
            let gone = || io::Error::other(format!("the file ends before byte {at}: it shrank meanwhile"));
            Error::new(&self.path, "read the file", source.cause.take().unwrap_or_else(gone))
        };
        work(&source).map_err(|halt| halt.into().stop(fail))
    }
}

/// A file without a name could not be made or written.
pub(crate) fn no_temporary(cause: io::Error) -> Error {
    const ROOM: &str = "the whole transcript is copied there while it is read; free some space, or set TMPDIR to a folder with more";
    let is_full = matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let error = Error::new(&temporary_folder(), "write a temporary file", cause);
    if is_full { error.with_way_out(ROOM) } else { error }
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
    text: &'a ContentText,
    bytes: u64,
    cause: RefCell<Option<io::Error>>,
}

impl<'a> FileSource<'a> {
    fn new(text: &'a ContentText, bytes: u64) -> Self {
        Self { text, bytes, cause: RefCell::new(None) }
    }
}

impl Source for FileSource<'_> {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let wanted = self.bytes.saturating_sub(at).min(buffer.len() as u64) as usize;
        let fault = |cause| {
            *self.cause.borrow_mut() = Some(cause);
            Fault { at }
        };
        stop_if_told().map_err(fault)?;
        let got = match self.text {
            ContentText::File(file) => read_up_to(file, &mut buffer[..wanted], at).map_err(fault)?,
            ContentText::Held(held) => held.bytes().read(at, &mut buffer[..wanted])?,
        };
        BYTES_READ.set(BYTES_READ.get() + got as u64);
        if got < wanted { Err(Fault { at: at + got as u64 }) } else { Ok(got) }
    }

    fn records_max(&self) -> usize {
        entries_max()
    }

    fn data_from(&self, at: u64) -> u64 {
        match self.text {
            ContentText::File(file) => holes::data_from(file, at).unwrap_or(at).min(self.bytes),
            ContentText::Held(_) => at,
        }
    }

    fn lend(&self, span: Span) -> Option<&[u8]> {
        let ContentText::Held(held) = self.text else { return None };
        if span.end > self.bytes {
            return None;
        }
        let bytes = held.bytes().get(usize::try_from(span.start).ok()?..usize::try_from(span.end).ok()?)?;
        BYTES_READ.set(BYTES_READ.get() + span.len());
        Some(bytes)
    }
}

/// Lets `work` read all of standard input, or of another stream in its place, at any offset.
///
/// # Errors
///
/// When the stream cannot be read or the temporary folder cannot be written.
pub fn spool<T, E: Into<Halt>>(
    stream: impl io::Read,
    work: impl FnOnce(&dyn Source) -> Result<T, E>,
) -> Result<T, Stop> {
    FileContent::spool(stream)?.read(work)
}
