//! Writes rows of a session, each only if it is unchanged since it was read.
//!
//! 1. The plan for the text is divided among its rows. While the owner runs, the JSON of each row must stay the same except for
//!    texts of a settled result. For any other change, no other process may have the database open ([`Alone`]).
//! 2. The vault stores what the plan removes and the old rows, and syncs them.
//! 3. `BEGIN IMMEDIATE`: the schema is checked again, each row is compared and set, and `COMMIT`. All new bytes are ready before.
//!    While the owner runs, a transaction writes only as much as takes milliseconds, and the next one goes on.
//!
//! Whatever happens, SQLite leaves each row either old or new. The vault's record need not say which: an undo finds out from
//! the rows.

use super::Stored;
use super::alone::{Alone, nobody_seen};
use super::database::Database;
use super::kind::{Around, Mend, Query, RowKey, RowPlace, RowTrouble, Turned, Unlinked};
use super::kinds::KINDS;
use super::rows::{self, MadeEdit, RowEdit, RowLayout, RowMade};
use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::base::step::{Step, before};
use crate::options::Mode;
use crate::platform::files::temporary;
use crate::swap::content::no_temporary;
use crate::vault::{RowsKept, RowsMade, RowsWritten, Run};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Seek, Write};
use std::ops::Range;
use transcript::situation::KnownRecords;
use transcript::{Source, Span};

/// How many bytes of rows a transaction beside the owner writes.
pub(super) const BATCH_BYTES: usize = 2 << 20;

/// A row that changes.
#[derive(Debug, PartialEq, Eq)]
struct RowChange {
    key: RowKey,
    /// Its record, without the line break, in the text as it was read.
    old: Span,
    /// Its record in the new text; `None` if the row is deleted.
    new: Option<Span>,
}

/// A replacement of a text.
pub(crate) struct Replacing<'r> {
    /// The text as it was read.
    pub(crate) old: &'r dyn Source,
    pub(crate) new: &'r dyn Source,
    /// The parts of the new text: the length of each, and the span of the old one that it is a copy of, if it is one.
    pub(crate) parts: Vec<(u64, Option<Span>)>,
    /// Whether to stop if anything was added to the session in the meantime.
    pub(crate) only_if_still: bool,
    /// The edits of a run that are undone.
    pub(crate) made: Option<RowsMade>,
}

/// A set of rows to write.
struct RowsWork<'w> {
    stored: &'w Stored,
    mend: &'static Mend,
    database: &'w Database,
    texts: &'w Replacing<'w>,
    is_alone: bool,
    /// Whether undo must be able to take this back: it is no undo.
    must_go_back: bool,
    /// Whether each row stands by itself, so that there may be several transactions with the owner stopped as well.
    is_bulk: bool,
}

impl Stored {
    /// Writes the rows that differ between two texts; `keep` stores the originals before.
    pub(crate) fn replace(
        &self,
        mut texts: Replacing<'_>,
        keep: impl FnOnce(RowsKept) -> Result<Run, Stop>,
    ) -> Result<RowsWritten, Stop> {
        let mend = self.mend()?;
        let made = texts.made.take();
        let (whole, must_go_back) = (made.as_ref().is_some_and(|made| made.is_alone), made.is_none());
        let changes = if whole { Vec::new() } else { self.divide(mend, &texts)? };
        let is_alone = whole || !changes.iter().all(|change| self.only_shortens(mend, change, &texts));
        Database::refuse_damaged(&self.file, self.id)?;
        let _alone = is_alone.then(|| Alone::enter(&self.file, mend)).transpose()?;
        let database = Database::open_to_write(&self.file, self.id, is_alone)?;
        let is_bulk = made.as_ref().is_some_and(|made| made.is_pruned);
        let work = RowsWork {
            stored: self,
            mend,
            database: &database,
            texts: &texts,
            is_alone,
            must_go_back,
            is_bulk,
        };
        if whole {
            let made = made.into_iter().flat_map(|made| made.lines);
            return work.write(|each| work.take_back(made, each), || keep(RowsKept::default()));
        }
        let around = if is_alone { work.around(&changes)? } else { Around::default() };
        let kept = work.kept(&changes, &around)?;
        work.write(|each| work.edits(&changes, &around, made, each), || keep(kept))
    }

    /// Why to wait for the owner, if rows are to be added, removed or linked. Leaves no trace.
    pub(crate) fn waits_for_owner(&self, mode: &Mode) -> Result<(), Stop> {
        let mend = self.mend()?;
        if *mode != Mode::Fix {
            return nobody_seen(&self.file);
        }
        let _alone = Alone::enter(&self.file, mend)?;
        let database = Database::open_to_write(&self.file, self.id, true)?;
        database.begin_alone()
    }

    /// What is known of records, and what some lines, counted from 1, held.
    pub(crate) fn known(&self, content: &dyn Source, lines: &[u64]) -> Result<KnownRecords, Stop> {
        let mend = self.mend()?;
        let database = Database::open(&self.file)?;
        let mut replaced: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
        for line in lines {
            let row = usize::try_from(line.saturating_sub(1)).ok().filter(|row| *row < self.rows.len());
            let Some(row) = row else { continue };
            let (key, at) = (self.rows[row].0, self.line(row, content));
            let old = self.bytes(content, at)?;
            let place = RowPlace { connection: &database.connection, session: &self.session, key };
            let new = (mend.known)(&place).map_err(|error| database.stop("read the session", error))?;
            if let (Some(json), Some(new)) = ((mend.json)(&old), new) {
                let new = [&old[..json.start], new.as_bytes(), &old[json.end..]].concat();
                replaced.entry(old).or_default().push(new);
            }
        }
        let mut known = self.known_records.clone();
        for (old, mut new) in replaced {
            // If two rows have the same text, it could belong to either.
            if new.len() == 1 && new[0] != old {
                known.entry(old).or_default().replacement = new.pop();
            }
        }
        Ok(known)
    }

    /// A record in the text, without the line break.
    fn line(&self, row: usize, text: &dyn Source) -> Span {
        let end = self.rows.get(row + 1).map_or(text.len(), |(_, start)| *start);
        Span::new(self.rows[row].1, end.saturating_sub(1))
    }

    /// The rows that change.
    fn divide(&self, mend: &Mend, texts: &Replacing<'_>) -> Result<Vec<RowChange>, Stop> {
        let mut regions: Vec<(Range<usize>, Span)> = Vec::new();
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
                self.widen(&mut regions, Span::new(from, to), Span::new(at, at + written), texts)?;
            }
            let length = kept.map_or(0, Span::len);
            (from, at) = (to + length, at + written + length);
        }
        let mut changes = Vec::new();
        for (rows, new) in regions {
            changes.extend(self.place(mend, rows, new, texts.old)?);
        }
        Ok(changes)
    }

    /// Notes that a span of the old text becomes one of the new text, as whole rows with their line breaks.
    fn widen(
        &self,
        regions: &mut Vec<(Range<usize>, Span)>,
        old: Span,
        new: Span,
        texts: &Replacing<'_>,
    ) -> Result<(), Stop> {
        let row = |at: u64| self.rows.partition_point(|(_, start)| *start <= at).checked_sub(1);
        let first = row(old.start).ok_or_else(beyond)?;
        let last = row(old.end.max(old.start + 1) - 1).ok_or_else(beyond)?;
        let (start, end) = (self.line(first, texts.old).start, self.line(last, texts.old).end + 1);
        let to = new.end + (end - old.end);
        match regions.last_mut().filter(|(rows, _)| rows.end > first) {
            Some((rows, new)) => (rows.end, new.end) = (last + 1, to),
            None => regions.push((first..last + 1, Span::new(new.start - (old.start - start), to))),
        }
        Ok(())
    }

    /// Notes what becomes of rows: one gets the new text, and several can only go. No plan for rows brings a line, or moves one.
    fn place(
        &self,
        mend: &Mend,
        rows: Range<usize>,
        new: Span,
        old: &dyn Source,
    ) -> Result<Vec<RowChange>, Stop> {
        let fits = if new.is_empty() { mend.links.is_some() } else { rows.len() == 1 };
        if !fits {
            return Err(beyond());
        }
        let new = Some(new).filter(|new| !new.is_empty()).map(|new| Span::new(new.start, new.end - 1));
        Ok(rows.map(|row| RowChange { key: self.rows[row].0, old: self.line(row, old), new }).collect())
    }

    /// Whether a row is a settled result and only its texts differ.
    fn only_shortens(&self, mend: &Mend, change: &RowChange, texts: &Replacing<'_>) -> bool {
        let same = || {
            let (old, new) =
                (self.bytes(texts.old, change.old).ok()?, self.bytes(texts.new, change.new?).ok()?);
            let (at, now) = halves(mend, &old, &new).filter(|(at, now)| old[at.end..] == new[now.end..])?;
            let blank = |json: &[u8]| -> Option<Value> {
                let mut value = serde_json::from_slice(json).ok()?;
                (mend.blank)(&mut value)?;
                Some(value)
            };
            Some(blank(&old[at])? == blank(&new[now])?)
        };
        same().unwrap_or(false)
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

/// A function that takes each edit.
type Each<'e> = &'e mut dyn FnMut(RowEdit) -> Result<(), Stop>;

impl RowsWork<'_> {
    fn fail(&self, error: rusqlite::Error) -> Stop {
        self.database.stop(Database::WRITE, error)
    }

    fn layout(&self, number: u8) -> Result<&'static RowLayout, Stop> {
        self.mend.layout(number).ok_or_else(beyond)
    }

    /// The edit of a row.
    fn edit(&self, change: &RowChange, made: Option<MadeEdit>) -> Result<RowEdit, Stop> {
        let (stored, (number, row)) = (self.stored, change.key);
        let (layout, connection) = (self.layout(number)?, &self.database.connection);
        let found = rows::at(layout, connection, &stored.session, row).map_err(|error| self.fail(error))?;
        let record = stored.bytes(self.texts.old, change.old)?;
        let at = (self.mend.json)(&record).ok_or_else(beyond)?;
        let is_read = |cells: &rows::RowCells| (self.mend.read)(cells).as_deref() == record.get(at.clone());
        let old = found.filter(is_read).ok_or_else(|| Stop::from(Deferral::Changed))?;
        let Some(span) = change.new else { return Ok(RowEdit { layout: number, old: Some(old), new: None }) };
        let new = stored.bytes(self.texts.new, span)?;
        let (_, now) = halves(self.mend, &record, &new).ok_or_else(beyond)?;
        let text = std::str::from_utf8(&new[now]).map_err(|_| beyond())?;
        let is_wanted = |cells: &rows::RowCells| (self.mend.read)(cells).as_deref() == Some(text.as_bytes());
        let back =
            made.map(|made| made.back(layout, connection)).transpose().map_err(|error| self.fail(error))?;
        let exact = back.flatten().and_then(|edit| edit.new).filter(is_wanted);
        let is_json = exact.is_some() || serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        if !is_json || text.contains('\n') {
            return Err(beyond());
        }
        let new = if let Some(exact) = exact {
            exact
        } else {
            let mut cells = old.clone();
            if !is_wanted(&old) {
                (self.mend.put)(connection, &mut cells, text).map_err(|error| self.fail(error))?;
            }
            cells
        };
        Ok(RowEdit { layout: number, old: Some(old), new: Some(new) })
    }

    /// The edits of other tables that belong to these rows.
    fn around(&self, changes: &[RowChange]) -> Result<Around, Stop> {
        let Some(links) = self.mend.links else { return Ok(Around::default()) };
        let database = self.database;
        for (_, layout) in self.mend.layouts {
            if layout.lacks_some(&database.connection).map_err(|error| self.fail(error))? {
                return Err(stays(format!("{} has columns that were not tried", layout.table)));
            }
        }
        let mut turned = Vec::new();
        for change in changes {
            let RowEdit { old, new, .. } = self.edit(change, None)?;
            let json = |cells: rows::RowCells| serde_json::from_slice(&(self.mend.read)(&cells)?).ok();
            // Long texts are left out.
            let row = old.into_iter().flatten().take(self.layout(change.key.0)?.keys).collect();
            turned.push(Turned { row, new: new.and_then(json) });
        }
        links(&database.connection, &self.stored.session, &turned).map_err(|unlinked| match unlinked {
            Unlinked::Stays(why) => stays(why.to_string()),
            Unlinked::Sql(error) => self.fail(error),
        })
    }

    /// The old rows, in the order in which an undo writes them.
    fn kept(&self, changes: &[RowChange], around: &Around) -> Result<RowsKept, Stop> {
        let mut file = temporary().map_err(no_temporary)?;
        let mut out = BufWriter::new(&mut file);
        let mut line = |edit: &RowEdit| -> Result<(), Stop> {
            let line = edit.line(self.layout(edit.layout)?);
            Ok(writeln!(out, "{line}").map_err(no_temporary)?)
        };
        around.after.iter().rev().try_for_each(&mut line)?;
        for change in changes {
            line(&self.edit(change, None)?)?;
        }
        around.before.iter().rev().try_for_each(&mut line)?;
        out.flush().map_err(no_temporary)?;
        drop(out);
        file.rewind().map_err(no_temporary)?;
        Ok(RowsKept { file: Some(file), is_alone: self.is_alone })
    }

    /// All edits. The edits that a run `made` are undone exactly where the rows are unchanged.
    fn edits(
        &self,
        changes: &[RowChange],
        around: &Around,
        made: Option<RowsMade>,
        each: Each<'_>,
    ) -> Result<(), Stop> {
        around.before.iter().cloned().try_for_each(&mut *each)?;
        let mut made = made.map(|made| made.lines.map(|line| MadeEdit::of_line(&line.ok()?).ok()));
        for change in changes {
            let (layout, connection) = (self.layout(change.key.0)?, &self.database.connection);
            let own = rows::at(layout, connection, &self.stored.session, change.key.1)
                .map_err(|error| self.fail(error))?;
            let is_own = |made: &MadeEdit| {
                made.layout == change.key.0 && own.as_ref().is_some_and(|own| own.starts_with(&made.key))
            };
            // The vault has them in the order of the text.
            let same = made.as_mut().and_then(|made| made.flatten().find(is_own));
            each(self.edit(change, same)?)?;
        }
        around.after.iter().cloned().try_for_each(each)
    }

    /// The edits that undo a whole run, if no row has changed since.
    fn take_back(&self, made: impl Iterator<Item = io::Result<String>>, each: Each<'_>) -> Result<(), Stop> {
        let broken = |cause| Stop::from(Error::new(&self.stored.file, "read the rows in the vault", cause));
        for line in made {
            let made = line.and_then(|line| MadeEdit::of_line(&line)).map_err(broken)?;
            let layout = self.layout(made.layout)?;
            let back = made.back(layout, &self.database.connection).map_err(|error| self.fail(error))?;
            each(back.ok_or_else(|| went_on(self.mend))?)?;
        }
        Ok(())
    }

    /// Makes all edits, in as many transactions as needed; calls `keep` before the first.
    fn write(
        &self,
        edits: impl FnOnce(Each<'_>) -> Result<(), Stop>,
        keep: impl FnOnce() -> Result<Run, Stop>,
    ) -> Result<RowsWritten, Stop> {
        let database = self.database;
        if self.is_alone {
            self.step(Step::LockRows)?;
            database.begin_alone()?;
            self.ask()?;
        }
        let run = keep()?;
        let mut batch = EditBatch {
            work: self,
            run: &run,
            edits: Vec::new(),
            bytes: 0,
            saved: 0,
            tables: BTreeSet::new(),
            stays: false,
        };
        match edits(&mut |edit| batch.add(edit)).and_then(|()| batch.end()) {
            Ok(()) => {
                run.landed();
                let saved_bytes = u64::try_from(batch.saved).unwrap_or(0);
                Ok(RowsWritten { run, saved_bytes })
            }
            Err(stop) => {
                if !batch.stays {
                    run.forget();
                }
                Err(stop)
            }
        }
    }

    /// Checks again, in the transaction, whether the rows may be written.
    fn ask(&self) -> Result<(), Stop> {
        let (stored, database) = (self.stored, self.database);
        let fail = |error| self.fail(error);
        let kind = database.kind(KINDS).map_err(fail)?;
        if kind.is_none_or(|kind| kind.agent != stored.kind.agent) {
            return Err(Deferral::Changed.into());
        }
        if let Some(why) = database.hindrance(stored.kind, self.mend).map_err(fail)? {
            return Err(stays(why));
        }
        if self.texts.only_if_still || self.is_alone {
            let (connection, session) = (&database.connection, stored.session.as_str());
            let query = Query {
                connection,
                session,
                salvages: false,
                pause: &|_| Ok(()),
                statements: RefCell::default(),
            };
            let mut count = 0;
            let counted = (stored.kind.keys)(&query, &mut |_| {
                count += 1;
                Ok(())
            });
            if let Err(RowTrouble::Database(error)) = counted {
                return Err(fail(error));
            }
            if count != stored.rows.len() {
                return Err(Deferral::Changed.into());
            }
        }
        Ok(())
    }

    fn step(&self, step: Step) -> Result<(), Stop> {
        Ok(before(step).map_err(|cause| Error::new(&self.stored.file, Database::WRITE, cause))?)
    }
}

/// Edits that are made in one transaction.
struct EditBatch<'b> {
    work: &'b RowsWork<'b>,
    run: &'b Run,
    edits: Vec<RowEdit>,
    bytes: usize,
    /// How many bytes fewer the rows of all batches have.
    saved: isize,
    tables: BTreeSet<&'static str>,
    /// Whether some rows may have been written, so that the run must be kept.
    stays: bool,
}

impl EditBatch<'_> {
    fn add(&mut self, edit: RowEdit) -> Result<(), Stop> {
        self.bytes += edit.len();
        self.saved += edit.saved();
        self.edits.push(edit);
        if self.work.is_alone {
            // What comes next may ask for this row.
            self.make()?;
            if !self.work.is_bulk || self.bytes < BATCH_BYTES {
                return Ok(());
            }
            self.commit()?;
            return self.work.database.begin_alone();
        }
        if self.bytes < BATCH_BYTES {
            return Ok(());
        }
        // If the process dies between two transactions, some rows are new and others old, and the run can be undone.
        self.run.landed();
        self.commit()
    }

    fn end(&mut self) -> Result<(), Stop> {
        if self.work.is_alone {
            self.make()?;
            // Of gigabytes that nothing refers to, each row was compared instead.
            let tables: Vec<&str> = self.tables.iter().copied().filter(|_| !self.work.is_bulk).collect();
            let found = self.work.database.check(&tables).map_err(|error| self.work.fail(error))?;
            found.map_or(Ok(()), |why| Err(stays(why)))?;
        }
        if self.work.is_alone || !self.edits.is_empty() { self.commit() } else { Ok(()) }
    }

    /// Makes the edits, in the transaction.
    fn make(&mut self) -> Result<(), Stop> {
        let work = self.work;
        for edit in self.edits.drain(..) {
            work.step(Step::WriteRow)?;
            let layout = work.layout(edit.layout)?;
            self.tables.insert(layout.table);
            let made = edit.make(layout, &work.database.connection, work.must_go_back);
            match made.map_err(|error| work.fail(error))? {
                RowMade::Done => {}
                RowMade::Changed => return Err(Deferral::Changed.into()),
                RowMade::Stays(why) => return Err(stays(why)),
            }
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Stop> {
        let work = self.work;
        let connection = &work.database.connection;
        if !work.is_alone {
            work.step(Step::LockRows)?;
            connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| work.fail(error))?;
            // Before the commit, an early return rolls back when the connection is closed.
            work.ask()?;
            self.make()?;
        }
        let before = connection.total_changes();
        let sealed = (work.mend.seal)(connection, &work.stored.session).map_err(|error| work.fail(error))?;
        if connection.total_changes() - before != sealed as u64 {
            return Err(stays(
                "a trigger would change other rows, and undo could not put them back".to_string(),
            ));
        }
        work.step(Step::CommitRows)?;
        // A failed commit may still take effect after a power cut.
        self.stays = true;
        self.bytes = 0;
        connection.execute_batch("COMMIT").map_err(|error| work.fail(error))
    }
}

/// Where the JSON of a row is in its old and in its new record; `None` if anything else differs, but for blanks at the end.
fn halves(mend: &Mend, old: &[u8], new: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    let (at, now) = ((mend.json)(old)?, (mend.json)(new)?);
    let around = |record: &[u8], json: &Range<usize>| {
        Some([record.get(..json.start)?.to_vec(), record.get(json.end..)?.trim_ascii_end().to_vec()])
    };
    (around(old, &at)? == around(new, &now)?).then_some((at, now))
}

fn stays(why: String) -> Stop {
    Refusal::StoreStays(why).into()
}

/// The plan cannot be expressed as edits of rows.
fn beyond() -> Stop {
    stays("the repair would change more than what rows hold".to_string())
}

/// The edits of this run cannot be undone alone.
fn went_on(mend: &Mend) -> Stop {
    stays(format!("they have changed since, and {} goes on from what the run wrote", mend.owner))
}
