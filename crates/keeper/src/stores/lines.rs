//! The text of a session's rows: in memory if it is short and to be examined, or else in a file without a name.

use super::ahead::ReadAhead;
use super::kind::RowKey;
use crate::ask::error::Error;
use crate::ask::stop::Stop;
use crate::disk::held::HeldText;
use crate::platform::files::temporary;
use crate::platform::{System, This};
use crate::swap::content::{ContentText, FileContent, no_temporary};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, IntoInnerError, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;
use transcript::situation::{KnownRecord, KnownRecords};

/// How much is written at once.
const BUFFER_BYTES: usize = if cfg!(test) { 1 << 10 } else { 256 << 10 };

/// How much disk space is reserved at a time. Shorter texts reserve none.
const RESERVED_BYTES: u64 = 32 << 20;

/// What the text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// As `Records`, with the entries, which another thread reads meanwhile.
    Entries,
    /// To be examined: a row that its owner cannot read becomes the reason, and one that it cannot use has a space after it.
    Records,
    /// To be read: all that can be read of such a row, or else the reason.
    Text,
    /// To be exported: all that can be read of such a row.
    Copy,
}

impl Want {
    pub(super) fn is_examined(self) -> bool {
        matches!(self, Self::Entries | Self::Records)
    }
}

/// A number that changes when a row does.
pub(super) type RowStamp = u64;

/// Records, one a line.
pub(super) struct RecordLines {
    pub(super) want: Want,
    file: File,
    /// All of it, if it is short and to be examined.
    held: Option<HeldText>,
    /// What is not in the file yet.
    end: Vec<u8>,
    /// How many bytes there are, and for how many disk space is reserved.
    bytes: u64,
    reserved: u64,
    /// Where each row begins, in the order in which they were read.
    pub(super) rows: Vec<(RowKey, u64)>,
    /// The version of each row, if rows of its kind have one.
    pub(super) stamps: Vec<RowStamp>,
    /// A line break in a row has become a space.
    pub(super) is_folded: bool,
    /// Rows that could not be read.
    pub(super) lost: Vec<String>,
    /// Why the owner cannot read or use some of the records.
    pub(super) known: KnownRecords,
    /// What reads it into entries.
    ahead: Option<ReadAhead>,
}

impl RecordLines {
    pub(super) fn new(want: Want) -> Result<Self, Error> {
        Ok(Self {
            want,
            file: temporary().map_err(no_temporary)?,
            held: (want == Want::Entries).then(HeldText::new),
            end: Vec::new(),
            bytes: 0,
            reserved: RESERVED_BYTES,
            rows: Vec::new(),
            stamps: Vec::new(),
            is_folded: false,
            lost: Vec::new(),
            known: KnownRecords::default(),
            ahead: None,
        })
    }

    /// Begins a row.
    pub(super) fn begin(&mut self, key: RowKey) {
        self.rows.push((key, self.bytes));
    }

    /// Writes a record. A line break in it, which is legal between the tokens of JSON, becomes a space, so that no byte moves.
    pub(super) fn record(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        for part in parts {
            let mut rest = *part;
            while let Some(at) = memchr::memchr(b'\n', rest) {
                self.put(&rest[..at])?;
                self.put(b" ")?;
                self.is_folded = true;
                rest = &rest[at + 1..];
            }
            self.put(rest)?;
        }
        self.put(b"\n")
    }

    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        if let Some(held) = &mut self.held {
            if held.add(bytes) {
                return Ok(());
            }
            self.write_held()?;
        }
        while self.end.len() + bytes.len() >= BUFFER_BYTES {
            let (now, later) = bytes.split_at(BUFFER_BYTES - self.end.len());
            self.end.extend_from_slice(now);
            self.write_out()?;
            bytes = later;
        }
        self.end.extend_from_slice(bytes);
        Ok(())
    }

    /// From now on the text is in the file.
    fn write_held(&mut self) -> io::Result<()> {
        let Some(held) = self.held.take() else { return Ok(()) };
        self.reserved = 0;
        held.bytes().chunks(BUFFER_BYTES).try_for_each(|piece| {
            self.end.extend_from_slice(piece);
            self.write_out()
        })
    }

    fn write_out(&mut self) -> io::Result<()> {
        if self.bytes >= self.reserved {
            let from = std::mem::replace(&mut self.reserved, self.bytes + RESERVED_BYTES);
            This::reserve_space(&self.file, from, self.reserved - from);
        }
        self.file.write_all(&self.end)?;
        if self.want == Want::Entries && self.ahead.is_none() {
            self.ahead = ReadAhead::begin().ok();
            if self.ahead.is_none() {
                // Without another thread, entries are read later.
                self.want = Want::Records;
            }
        }
        if let Some(ahead) = &self.ahead {
            self.end = ahead.take(std::mem::take(&mut self.end));
        }
        self.end.clear();
        Ok(())
    }

    /// Puts the rows into this order. Other rows, and earlier versions of these, are dropped.
    pub(super) fn arrange(&mut self, order: &[RowKey]) -> io::Result<()> {
        if self.rows.iter().map(|(key, _)| key).eq(order) {
            return Ok(());
        }
        let ends = self.rows.iter().skip(1).map(|(_, start)| *start).chain([self.bytes]);
        // The last version counts.
        let spans: HashMap<RowKey, (usize, u64, u64)> = self
            .rows
            .iter()
            .zip(ends)
            .enumerate()
            .map(|(n, ((key, start), end))| (*key, (n, *start, end)))
            .collect();
        self.write_held()?;
        self.write_out()?;
        let mut old = &self.file;
        let mut new = BufWriter::with_capacity(BUFFER_BYTES, temporary()?);
        let (mut rows, mut stamps) = (Vec::with_capacity(order.len()), Vec::new());
        let (mut bytes, mut at) = (0, None);
        for key in order {
            let Some((n, start, end)) = spans.get(key) else { continue };
            stamps.extend(self.stamps.get(*n));
            if at != Some(*start) {
                old.seek(SeekFrom::Start(*start))?;
            }
            rows.push((*key, bytes));
            bytes += io::copy(&mut old.take(end - start), &mut new)?;
            at = Some(*end);
        }
        self.file = new.into_inner().map_err(IntoInnerError::into_error)?;
        (self.rows, self.stamps, self.bytes) = (rows, stamps, bytes);
        // The other thread reads the old order.
        self.ahead = None;
        if self.want == Want::Entries {
            self.want = Want::Records;
        }
        Ok(())
    }

    /// The rows as they are known now, to compare them with those of a later transaction.
    pub(super) fn read_so_far(&self) -> KnownRows {
        KnownRows { next: 0, count: self.rows.len(), found: 0, places: None }
    }

    /// Notes a row that cannot be read.
    pub(super) fn lose(&mut self, why: String) {
        self.lost.push(why);
    }

    /// Writes a row that its owner cannot read, and the reason; `there` is its readable part.
    pub(super) fn unreadable(&mut self, why: String, there: Option<&[u8]>) -> io::Result<()> {
        match (self.want, there) {
            (Want::Entries | Want::Records, _) | (Want::Text, None) => {
                self.record(&[why.as_bytes()])?;
                self.explain(why.clone().into_bytes(), why.clone());
            }
            (Want::Text | Want::Copy, Some(there)) => self.record(&[there])?,
            (Want::Copy, None) => {}
        }
        self.lose(why);
        Ok(())
    }

    /// Writes a record that its owner cannot use, and the reason.
    pub(super) fn useless(&mut self, record: &[u8], why: String) -> io::Result<()> {
        self.record(&[record, b" "])?;
        self.explain([record, b" "].concat(), why);
        Ok(())
    }

    fn explain(&mut self, record: Vec<u8>, why: String) {
        let known = KnownRecord { reason: Some(why), replacement: None };
        self.known.insert(record, known);
    }

    /// The text at a path, with the store's modification time. If it is to be examined, it is held or its entries are read.
    pub(super) fn finish(mut self, path: &Path, written: Option<SystemTime>) -> Result<FileContent, Stop> {
        match &self.held {
            // The file says how long it is.
            Some(_) => self.file.set_len(self.bytes).map_err(no_temporary)?,
            None => self.write_out().map_err(no_temporary)?,
        }
        if let Some(written) = written {
            self.file.set_modified(written).map_err(no_temporary)?;
        }
        let mut content = FileContent::of_temporary(path, self.file)?;
        if let Some(held) = self.held {
            content.text = ContentText::Held(held);
        }
        if let Some(scanner) = self.ahead.and_then(ReadAhead::finish) {
            content.scanned = Mutex::new(Some(content.read(|source| scanner.finish_whole(source))?));
        }
        Ok(content)
    }
}

/// Rows that were read, and are looked up in about the same order.
pub(super) struct KnownRows {
    next: usize,
    count: usize,
    found: usize,
    /// Built once a row is not where it was.
    places: Option<HashMap<RowKey, usize>>,
}

impl KnownRows {
    /// The stamp that a row had; `None` if it was not read.
    pub(super) fn stamp(&mut self, key: RowKey, lines: &RecordLines) -> Option<RowStamp> {
        let rows = &lines.rows[..self.count];
        if rows.get(self.next).is_none_or(|(next, _)| *next != key) && self.next < self.count {
            let all = || rows.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect();
            self.next = *self.places.get_or_insert_with(all).get(&key)?;
        } else if self.next == self.count {
            return None;
        }
        let at = self.next;
        (self.next, self.found) = (at + 1, self.found + 1);
        lines.stamps.get(at).copied()
    }

    /// Whether some rows were not looked up.
    pub(super) fn lacks_some(&self) -> bool {
        self.found < self.count
    }
}
