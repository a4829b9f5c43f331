//! The text of a session's rows, in a file without a name.

use super::kind::RowKey;
use crate::content::no_temporary;
use crate::error::Error;
use crate::platform::files::temporary;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::SystemTime;
use transcript::policy::{KnownRecord, KnownRecords};

/// How much is written at once.
const BUFFER_BYTES: usize = 256 << 10;

/// What the text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// To be examined: a row that its owner cannot read becomes the reason, and one that it cannot use has a space after it.
    Records,
    /// To be read: all that can be read of such a row, or else the reason.
    Text,
    /// To be exported: all that can be read of such a row.
    Copy,
}

/// A number that changes when a row does.
pub(super) type RowStamp = u64;

/// Records, one a line.
pub(super) struct RecordLines {
    pub(super) want: Want,
    out: BufWriter<File>,
    /// How many bytes there are.
    bytes: u64,
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
}

impl RecordLines {
    pub(super) fn new(want: Want) -> Result<Self, Error> {
        let file = temporary().map_err(no_temporary)?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self {
            want,
            out,
            bytes: 0,
            rows: Vec::new(),
            stamps: Vec::new(),
            is_folded: false,
            lost: Vec::new(),
            known: KnownRecords::default(),
        })
    }

    /// Begins a row.
    pub(super) fn begin(&mut self, key: RowKey) {
        self.rows.push((key, self.bytes));
    }

    /// Writes a record. A line break in it, which is legal between the tokens of JSON, becomes a space, so that no byte moves.
    pub(super) fn record(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.bytes += 1;
        for part in parts {
            self.bytes += part.len() as u64;
            let mut rest = *part;
            while let Some(at) = memchr::memchr(b'\n', rest) {
                self.out.write_all(&rest[..at])?;
                self.out.write_all(b" ")?;
                self.is_folded = true;
                rest = &rest[at + 1..];
            }
            self.out.write_all(rest)?;
        }
        self.out.write_all(b"\n")
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
        self.out.flush()?;
        let mut old = self.out.get_ref().try_clone()?;
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
            bytes += io::copy(&mut (&old).take(end - start), &mut new)?;
            at = Some(*end);
        }
        (self.out, self.rows, self.stamps, self.bytes) = (new, rows, stamps, bytes);
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
            (Want::Records, _) | (Want::Text, None) => {
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
        Arc::make_mut(&mut self.known).insert(record, known);
    }

    /// The file, with the store's modification time.
    pub(super) fn finish(self, written: Option<SystemTime>) -> Result<File, Error> {
        let file = self.out.into_inner().map_err(|error| no_temporary(error.into_error()))?;
        if let Some(written) = written {
            file.set_modified(written).map_err(no_temporary)?;
        }
        Ok(file)
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
