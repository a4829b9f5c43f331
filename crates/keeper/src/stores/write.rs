//! Rows of a session are written: all in one transaction of milliseconds, each only if it still is what was read.
//!
//! 1. What is planned for the text is divided among its rows. Each new row must be the JSON that the old one was, but for texts
//!    of a settled result.
//! 2. The vault keeps what the plan removes, and makes it last.
//! 3. `BEGIN IMMEDIATE`: the schema is asked once more, each row is compared and set, and `COMMIT`.
//!
//! SQLite sees to it that the rows are the old ones or the new ones, whatever happens. Which they are, the record in the vault
//! does not have to say: an undo finds it in the rows.

use super::database::Database;
use super::kind::{Key, Mend, Place, Query};
use super::{KINDS, Stored};
use crate::deferral::Deferral;
use crate::error::Error;
use crate::refusal::Refusal;
use crate::step::{Step, before};
use crate::stop::Stop;
use crate::vault::Run;
use serde_json::Value;
use std::io;
use std::ops::Range;
use transcript::{Source, Span};

/// A row that changes.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    key: Key,
    /// Its record, without the line break, in the text as it was read.
    old: Span,
    /// The same in the new text.
    new: Span,
}

/// A text that takes the place of another one.
pub(crate) struct Replacing<'r> {
    /// The text as it was read.
    pub(crate) old: &'r dyn Source,
    pub(crate) new: &'r dyn Source,
    /// The parts of the new text: the length of each, and the span of the old one that it is a copy of, if it is one.
    pub(crate) parts: Vec<(u64, Option<Span>)>,
    /// Whether it must not be done if anything was added to the session meanwhile.
    pub(crate) only_if_still: bool,
}

impl Stored {
    /// Writes the rows that differ between two texts; `keep` stores the originals before.
    pub(crate) fn replace(
        &self,
        texts: &Replacing<'_>,
        keep: impl FnOnce() -> Result<Run, Stop>,
    ) -> Result<Run, Stop> {
        let mend = self.mend()?;
        let changes = self.divide(texts)?;
        for change in &changes {
            self.check(mend, change, texts)?;
        }
        let database = Database::open_to_write(&self.file)?;
        let run = keep()?;
        if let Err(stop) = self.write(&database, mend, &changes, texts) {
            run.forget();
            return Err(stop);
        }
        // A commit that failed may still be found after a power cut, so its run stays: an undo finds it in the rows.
        database.connection.execute_batch("COMMIT").map_err(|error| database.stop(Database::WRITE, error))?;
        run.landed();
        Ok(run)
    }

    /// The rows that change.
    fn divide(&self, texts: &Replacing<'_>) -> Result<Vec<Change>, Stop> {
        let mut changes: Vec<Change> = Vec::new();
        let (mut from, mut at) = (0, 0);
        let mut parts = texts.parts.iter().peekable();
        while parts.peek().is_some() || from < texts.old.len() {
            let mut written = 0;
            while let Some((length, _)) = parts.next_if(|(_, span)| span.is_none_or(|span| span.start < from))
            {
                written += length;
            }
            let kept = parts.next().and_then(|(_, span)| *span);
            let to = kept.map_or(texts.old.len(), |kept| kept.start);
            if from < to || written > 0 {
                self.place(&mut changes, Span::new(from, to), Span::new(at, at + written), texts)?;
            }
            let length = kept.map_or(0, Span::len);
            (from, at) = (to + length, at + written + length);
        }
        Ok(changes)
    }

    /// Notes that a span of the old text becomes one of the new text.
    fn place(
        &self,
        changes: &mut Vec<Change>,
        old: Span,
        new: Span,
        texts: &Replacing<'_>,
    ) -> Result<(), Stop> {
        let after = self.rows.partition_point(|(_, start)| *start <= old.start);
        let end = self.rows.get(after).map_or(texts.old.len(), |(_, start)| *start).saturating_sub(1);
        let (key, start) = *after.checked_sub(1).and_then(|row| self.rows.get(row)).ok_or_else(beyond)?;
        if old.end > end {
            return Err(beyond());
        }
        let (row, new_end) = (Span::new(start, end), new.end + (end - old.end));
        match changes.last_mut().filter(|last| last.old == row) {
            Some(last) => last.new = Span::new(last.new.start, new_end),
            None => changes.push(Change {
                key,
                old: row,
                new: Span::new(new.start - (old.start - start), new_end),
            }),
        }
        Ok(())
    }

    /// Makes sure that a row is a settled result, and that nothing but its texts differ.
    fn check(&self, mend: &Mend, change: &Change, texts: &Replacing<'_>) -> Result<(), Stop> {
        let (old, new) = (self.bytes(texts.old, change.old)?, self.bytes(texts.new, change.new)?);
        let (at, now) = halves(mend, &old, &new).ok_or_else(beyond)?;
        let blank = |json: &[u8]| -> Option<Value> {
            let mut value = serde_json::from_slice(json).ok()?;
            (mend.blank)(&mut value)?;
            Some(value)
        };
        let same = blank(&old[at]).zip(blank(&new[now])).is_some_and(|(old, new)| old == new);
        if same { Ok(()) } else { Err(beyond()) }
    }

    /// Writes all rows in a transaction, up to the commit.
    fn write(
        &self,
        database: &Database,
        mend: &Mend,
        changes: &[Change],
        texts: &Replacing<'_>,
    ) -> Result<(), Stop> {
        let (connection, session) = (&database.connection, self.session.as_str());
        let fail = |error| database.stop(Database::WRITE, error);
        let step = |step| before(step).map_err(|cause| Error::new(&self.file, Database::WRITE, cause));
        step(Step::LockRows)?;
        connection.execute_batch("BEGIN IMMEDIATE").map_err(fail)?;
        // Until the commit, whatever returns early rolls back when the connection is closed.
        let kind = database.kind(KINDS).map_err(fail)?;
        if !kind.is_some_and(|kind| std::ptr::eq(kind, self.kind)) {
            return Err(Deferral::Changed.into());
        }
        if let Some(why) = database.hindrance(self.kind, mend).map_err(fail)? {
            return Err(Refusal::StoreStays(why).into());
        }
        if texts.only_if_still {
            let query = Query { connection, session, salvages: false };
            if (self.kind.keys)(&query).map_err(fail)?.len() != self.rows.len() {
                return Err(Deferral::Changed.into());
            }
        }
        for change in changes {
            step(Step::WriteRow)?;
            let (old, new) = (self.bytes(texts.old, change.old)?, self.bytes(texts.new, change.new)?);
            let (at, now) = halves(mend, &old, &new).ok_or_else(beyond)?;
            let text = std::str::from_utf8(&new[now]).map_err(|_| beyond())?;
            let place = Place { connection, session, key: change.key };
            if !(mend.write)(&place, &old[at], text).map_err(fail)? {
                return Err(Deferral::Changed.into());
            }
        }
        (mend.seal)(connection, session).map_err(fail)?;
        Ok(step(Step::CommitRows)?)
    }

    fn bytes(&self, source: &dyn Source, span: Span) -> Result<Vec<u8>, Stop> {
        let mut bytes = Vec::new();
        let read = source.pieces(span, &mut |piece| {
            bytes.extend_from_slice(piece);
            true
        });
        match read {
            Ok(()) => Ok(bytes),
            Err(_) => {
                Err(Error::new(&self.file, "read the session", io::ErrorKind::UnexpectedEof.into()).into())
            }
        }
    }
}

/// Where the JSON of a row is in its old and in its new record; `None` if anything else differs.
fn halves(mend: &Mend, old: &[u8], new: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    let (at, now) = ((mend.json)(old)?, (mend.json)(new)?);
    let around = |record: &[u8], json: &Range<usize>| {
        Some([record.get(..json.start)?.to_vec(), record.get(json.end..)?.to_vec()])
    };
    (around(old, &at)? == around(new, &now)?).then_some((at, now))
}

/// What the plan asks for is no edit of a settled result.
fn beyond() -> Stop {
    Refusal::StoreStays("the repair would change more than texts of results".to_string()).into()
}
