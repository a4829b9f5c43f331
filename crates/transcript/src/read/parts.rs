//! A long source that is read in parts, by as many threads as the caller has. The result is what a scan in one piece
//! gives.

use super::scan::{self, Scanned};
use crate::format::Format;
use memchr::memchr;
use spans::source::{Fault, Source, Span};

/// The length of a part: long enough that its boundaries do not matter, and short enough that several of them take
/// little memory.
pub const PART_BYTES: u64 = 8 << 20;

/// A source of which the first part was read.
pub struct Parts {
    read: Scanned,
    reader: PartReader,
    /// The length of the source, and that of a part.
    bytes: u64,
    part_bytes: u64,
    /// Most entries of all parts.
    entries_max: usize,
    /// Whether the result is still as if it had been read in one piece.
    fit: bool,
}

/// Reads a part. Threads may have one each.
#[derive(Clone, Copy)]
pub struct PartReader {
    format: &'static Format,
    /// The session that the first row names.
    session: Option<u64>,
    /// Most entries of a part.
    entries_max: usize,
}

impl Parts {
    /// Reads the first part. `None` if the source has only one, or its format is not known after that. As many parts as
    /// `at_once` are in memory besides those that were added.
    ///
    /// # Errors
    ///
    /// When the source cannot be read.
    pub fn begin(source: &dyn Source, part_bytes: u64, at_once: usize) -> Result<Option<Self>, Fault> {
        let bytes = source.len();
        if bytes <= part_bytes {
            return Ok(None);
        }
        let read = scan::beginning(source, part_bytes)?;
        let Some(format) = read.format.filter(|_| read.undecided.is_none()) else { return Ok(None) };
        let entries_max = scan::entries_max(source);
        let reader = PartReader {
            format,
            session: read.transcript.session,
            entries_max: entries_max / at_once.max(1),
        };
        Ok(Some(Self { read, reader, bytes, part_bytes, entries_max, fit: true }))
    }

    /// The other parts, in their order.
    pub fn rest(&self) -> impl Iterator<Item = Span> + use<> {
        let Self { bytes, part_bytes, .. } = *self;
        let starts = (part_bytes..bytes).step_by(part_bytes as usize);
        starts.map(move |start| Span::new(start, bytes.min(start + part_bytes)))
    }

    /// The reader.
    pub fn reader(&self) -> PartReader {
        self.reader
    }

    /// Adds the next part. Returns whether the result is still as if it had been read in one piece.
    pub fn add(&mut self, part: &Scanned) -> bool {
        let (own, other) = (&mut self.read.transcript, &part.transcript);
        let follows = match (own.ordinals, other.ordinals) {
            (Some((_, last)), Some((first, _))) => last.checked_add(1) == Some(first),
            _ => true,
        };
        let is_same = own.session.is_none() || other.session.is_none() || own.session == other.session;
        let has_room = other.entries.len() <= self.reader.entries_max
            && own.entries.len() + other.entries.len() <= self.entries_max;
        self.fit &= follows && is_same && has_room;
        if self.fit {
            own.append(other);
        }
        self.fit
    }

    /// The transcript of all parts; `None` if the source has to be read in one piece.
    pub fn finish(self) -> Option<Scanned> {
        let Self { mut read, bytes, fit, .. } = self;
        read.transcript.bytes = bytes;
        read.transcript.entries.shrink_to_fit();
        (fit && !scan::may_be_document(&read)).then_some(read)
    }
}

impl PartReader {
    /// Reads the lines that begin in a part.
    ///
    /// # Errors
    ///
    /// When the source cannot be read.
    pub fn read(self, source: &dyn Source, part: Span) -> Result<Scanned, Fault> {
        match line_end(source, Span::new(part.start - 1, part.end - 1))? {
            Some(start) => {
                let lines = Span::new(start, part.end);
                scan::lines(self.format, self.session, source, lines, source.len(), self.entries_max)
            }
            None => Ok(Scanned::default()),
        }
    }
}

/// The offset after the first line break in a span.
pub(super) fn line_end(source: &dyn Source, span: Span) -> Result<Option<u64>, Fault> {
    let (mut at, mut end) = (span.start, None);
    // Mostly it is asked where the entry ends, or a line is short.
    let (mut room, mut most) = ([0; 4096], 64);
    while at < span.end && end.is_none() {
        let wanted = (span.end - at).min(most) as usize;
        most = room.len() as u64;
        source.fill(at, &mut room[..wanted])?;
        end = memchr(b'\n', &room[..wanted]).map(|place| at + place as u64 + 1);
        at += wanted as u64;
    }
    Ok(end)
}
