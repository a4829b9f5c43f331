//! Where bytes come from: read-only, random access, in windows. Knows nothing of files.
//!
//! A transcript may be larger than memory and a single line may be larger than a transcript should ever be,
//! so nothing in this crate asks for "the line": it asks for a window at an offset.

use alloc::vec;
use alloc::vec::Vec;

/// A place in a transcript: byte offsets, end exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
}

impl Span {
    /// The span of `start..end`.
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }

    /// Length in bytes.
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether the span holds no byte.
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether `other` lies wholly inside.
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// The bytes at an offset could not be read: the file shrank, vanished or the disk failed. The source
/// remembers the cause; this crate only stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Offset of the window that could not be read.
    pub at: u64,
}

/// How many bytes the readers of this crate ask for at a time: what the nearest cache holds.
pub const WINDOW_BYTES: usize = 48 * 1024;

/// Bytes that can be read again and again and that do not change in between.
///
/// They need not lie in one file. The rows of a store are a source that puts a line break after each row and a space in the
/// place of a line break between the tokens of one; as no record spans two rows, no edit of a record does.
pub trait Source {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// Whether there is no byte at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` with the bytes from `at` on, and says how many they are: fewer than asked for only at the
    /// end.
    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault>;

    /// Fills all of `buffer` with the bytes from `at` on.
    fn fill(&self, at: u64, buffer: &mut [u8]) -> Result<(), Fault> {
        let got = self.read(at, buffer)?;
        if got == buffer.len() { Ok(()) } else { Err(Fault { at: at + got as u64 }) }
    }

    /// Most records that may be read of it, because more would not fit into memory.
    fn records_max(&self) -> usize {
        usize::MAX
    }

    /// The first offset from `at` on where there is data, or the end: what lies before that is a hole in the file, and reads as
    /// NUL bytes.
    fn data_from(&self, at: u64) -> u64 {
        at
    }

    /// The bytes of a span, if they are in memory already.
    fn lend(&self, _span: Span) -> Option<&[u8]> {
        None
    }

    /// Calls `each` with the consecutive pieces of a span, of whatever size suits the source, until it says
    /// `false`. A source that has its bytes in memory lends them instead of copying.
    fn pieces(&self, span: Span, each: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Fault> {
        if let Some(bytes) = self.lend(span) {
            each(bytes);
            return Ok(());
        }
        let mut buffer = vec![0; WINDOW_BYTES.min(span.len() as usize)];
        let mut at = span.start;
        while at < span.end {
            let wanted = (span.end - at).min(buffer.len() as u64) as usize;
            self.fill(at, &mut buffer[..wanted])?;
            if !each(&buffer[..wanted]) {
                return Ok(());
            }
            at += wanted as u64;
        }
        Ok(())
    }
}

impl Source for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).ok_or(Fault { at })?;
        let taken = rest.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&rest[..taken]);
        Ok(taken)
    }

    fn pieces(&self, span: Span, each: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Fault> {
        let within = |at: u64| usize::try_from(at).ok().filter(|&at| at <= <[u8]>::len(self));
        let (Some(start), Some(end)) = (within(span.start), within(span.end)) else {
            return Err(Fault { at: span.end });
        };
        each(&self[start..end]);
        Ok(())
    }
}

/// A source with one stretch held in memory, for a reader that needs it several times.
pub struct HeldSource<'a> {
    source: &'a dyn Source,
    at: u64,
    bytes: &'a [u8],
}

impl<'a> HeldSource<'a> {
    /// Reads the stretch, if there is room for it; what is not held is read from the source whenever it is wanted.
    pub fn new(source: &'a dyn Source, stretch: Span, room: &'a mut [u8]) -> Result<Self, Fault> {
        let fits = stretch.len() <= room.len() as u64;
        let bytes = if fits { window(source, stretch, room)? } else { &[] };
        Ok(Self { source, at: stretch.start, bytes })
    }
}

impl Source for HeldSource<'_> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let Some(held) = self.lend(Span::new(at, at + buffer.len() as u64)) else {
            return self.source.read(at, buffer);
        };
        buffer.copy_from_slice(held);
        Ok(buffer.len())
    }

    fn records_max(&self) -> usize {
        self.source.records_max()
    }

    fn lend(&self, span: Span) -> Option<&[u8]> {
        let from = usize::try_from(span.start.checked_sub(self.at)?).ok()?;
        self.bytes.get(from..)?.get(..usize::try_from(span.len()).ok()?)
    }
}

/// Reads a span whole. For spans that are known to be short: ids, envelopes, one entry to be copied.
pub fn read_span(source: &dyn Source, span: Span) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::with_capacity(span.len() as usize);
    source.pieces(span, &mut |bytes| {
        out.extend_from_slice(bytes);
        true
    })?;
    Ok(out)
}

/// Whether a text that ends with these bytes ends with a whole line, as the empty one does.
pub fn ends_line(end: &[u8]) -> bool {
    end.is_empty() || end.ends_with(b"\n")
}

/// Whether the first `bytes` of a source end with a whole line.
pub fn ends_line_at(source: &dyn Source, bytes: u64) -> Result<bool, Fault> {
    Ok(ends_line(&read_span(source, Span::new(bytes.saturating_sub(1), bytes))?))
}

/// The first bytes of a span that is not empty: as many as fit into `buffer`.
pub fn window<'a>(source: &dyn Source, span: Span, buffer: &'a mut [u8]) -> Result<&'a [u8], Fault> {
    let wanted = span.len().min(buffer.len() as u64) as usize;
    source.fill(span.start, &mut buffer[..wanted])?;
    Ok(&buffer[..wanted])
}
