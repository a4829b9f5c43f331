//! The five tasks over a batch: what each makes of rows, and the columns it answers with.

use crate::column::{Columns, SessionRows, is_too_long, too_much};
use crate::row::{check, each, fix_name, repair, text, unreadable};
use arrow_array::builder::{BooleanBuilder, StringBuilder, UInt64Builder};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use transcript::chunk::{ChunkBounds, chars4, chunks};
use transcript::compact::{NotDrawn, Unable};
use transcript::contract::Reaction;
use transcript::contract::trainer::{RowObjection, Trainer, judge_row};
use transcript::refusal;
use transcript::row::{RepairedRow, RowOutcome};
use transcript::weight::{Category, Standing, Weight, weigh};
use transcript::{Fault, Finding, Policy, Reading};

/// The columns that `mend` adds.
const OUTCOME: &str = "tailor_outcome";
const REASON: &str = "tailor_reason";

/// What is to be done.
pub(crate) enum Task {
    Check,
    /// Checks rows as those of a trainer.
    Train(&'static Trainer),
    Mend,
    Weigh,
    Chunk {
        tokens_max: u64,
        chars_max: u64,
        message_chars_max: u64,
        window_tokens: u64,
        budget_tokens: u64,
    },
    Explain,
}

/// A task, and how it is done.
pub(crate) struct TaskJob {
    pub(crate) task: Task,
    pub(crate) policy: Policy,
    pub(crate) threads: usize,
    pub(crate) columns: Columns,
}

type TaskColumns = Result<Vec<ArrayRef>, ArrowError>;

impl TaskJob {
    /// The columns of the answer, for batches with these.
    pub(crate) fn fields(&self, given: &Fields) -> Fields {
        let number = |name: &str| Field::new(name, DataType::UInt64, true);
        let word = |name: &str| Field::new(name, DataType::Utf8, true);
        let own = match self.task {
            Task::Check | Task::Train(_) => vec![
                number("row"),
                word("column"),
                number("line"),
                word("code"),
                word("severity"),
                word("message"),
                word("fix"),
                number("saves_bytes"),
                number("more"),
            ],
            Task::Mend => {
                let kept = given.iter().filter(|field| ![OUTCOME, REASON].contains(&field.name().as_str()));
                let added = [word(OUTCOME), word(REASON)].map(Arc::new);
                return kept.cloned().chain(added).collect();
            }
            Task::Weigh => {
                let mut fields = vec![number("row"), word("error"), word("format"), word("model")];
                fields.extend(WEIGHT_NUMBERS.map(|(name, _)| number(name)));
                fields.extend(Standing::ALL.map(|standing| number(&bytes_name(standing.name()))));
                fields.extend(Category::ALL.map(|part| number(&bytes_name(part.name()))));
                fields
            }
            Task::Chunk { .. } => vec![
                number("row"),
                number("chunk"),
                number("line"),
                number("messages"),
                number("chars"),
                number("tokens"),
                word("text"),
                word("error"),
            ],
            Task::Explain => vec![
                number("row"),
                Field::new("known", DataType::Boolean, false),
                word("what"),
                word("codes"),
                word("fix"),
                word("advice"),
            ],
        };
        own.into()
    }

    /// Does it for a batch, before which there were so many rows. What does not fit into one batch comes in several, and a row
    /// that Arrow cannot handle by itself says so.
    pub(crate) fn run(&self, batch: &StructArray, before: u64) -> Result<Vec<StructArray>, ArrowError> {
        let done = catch_unwind(AssertUnwindSafe(|| {
            let rows = match self.task {
                Task::Train(_) => self.columns.whole_rows(batch),
                _ => self.columns.rows(batch),
            }?;
            self.run_on(batch, &rows, before)
        }));
        let why = match done {
            Ok(Ok(done)) => return Ok(vec![done]),
            Ok(Err(why)) => why.to_string(),
            Err(_) => "Arrow gives up on it".to_string(),
        };
        if batch.len() < 2 {
            let rows = SessionRows::Lost(format!("the row cannot be handled: {why}"));
            return Ok(vec![self.run_on(batch, &rows, before)?]);
        }
        let half = batch.len() / 2;
        let mut done = self.run(&batch.slice(0, half), before)?;
        done.extend(self.run(&batch.slice(half, batch.len() - half), before + half as u64)?);
        Ok(done)
    }

    fn run_on(
        &self,
        batch: &StructArray,
        rows: &SessionRows,
        before: u64,
    ) -> Result<StructArray, ArrowError> {
        let fields = self.fields(batch.fields());
        let columns = match self.task {
            Task::Check => self.check(batch, rows, before),
            Task::Train(trainer) => self.train(batch, rows, before, trainer),
            Task::Mend => self.mend(batch, rows),
            Task::Weigh => self.weigh(batch, rows, before),
            Task::Chunk { .. } => self.chunk(batch, rows, before),
            Task::Explain => self.explain(batch, rows, before),
        }?;
        let nulls = batch.nulls().filter(|_| matches!(self.task, Task::Mend)).cloned();
        if columns.is_empty() {
            return Ok(StructArray::new_empty_fields(batch.len(), nulls));
        }
        StructArray::try_new(fields, columns, nulls)
    }

    fn each<T: Send>(
        &self,
        batch: &StructArray,
        rows: &SessionRows,
        work: &(dyn Fn(&SessionRows, usize) -> T + Sync),
        lost: fn(String) -> T,
    ) -> Vec<T> {
        each((rows, batch.len()), self.threads, work, lost)
    }

    fn check(&self, batch: &StructArray, rows: &SessionRows, before: u64) -> TaskColumns {
        let found = self.each(batch, rows, &|rows, row| check(rows, row, &self.policy), Err);
        let column = Some(self.columns.name(batch.fields())).filter(|name| !name.is_empty());
        let mut told = CheckColumns::default();
        for (row, found) in (before..).zip(found) {
            let (findings, why) = found.map_or_else(|why| (Vec::new(), Some(why)), |found| (found, None));
            for (finding, place) in &findings {
                let Finding { rule, severity, line, message, saves_bytes, more, .. } = finding;
                // Of a row of data, the place in it says what a line says in a session.
                let at = if place.is_empty() { column } else { Some(&**place) };
                let words =
                    [Some(rule.code()), Some(severity.name()), Some(message), Some(fix_name(finding))];
                told.add([Some(row), Some(*line), *saves_bytes, Some(*more)], at, words);
            }
            if let Some(why) = why {
                let words = [None, Some("error"), Some(&*why), Some("none")];
                told.add([Some(row), None, None, Some(0)], column, words);
            }
        }
        Ok(told.finish())
    }

    fn train(
        &self,
        batch: &StructArray,
        rows: &SessionRows,
        before: u64,
        trainer: &'static Trainer,
    ) -> TaskColumns {
        let one = |rows: &SessionRows, row| Ok(judge_row(&text(rows, row)?, trainer));
        let found = self.each(batch, rows, &one, Err);
        let mut told = CheckColumns::default();
        for (row, found) in (before..).zip(found) {
            match found {
                Ok(objections) => {
                    for RowObjection { reaction, about, place, what, .. } in &objections {
                        let severity = if *reaction == Reaction::Refuses { "error" } else { "warning" };
                        let words = [Some(*about), Some(severity), Some(what), Some("none")];
                        told.add([Some(row), None, None, Some(0)], Some(place), words);
                    }
                }
                Err(why) => {
                    let words = [None, Some("error"), Some(&*why), Some("none")];
                    told.add([Some(row), None, None, Some(0)], None, words);
                }
            }
        }
        Ok(told.finish())
    }

    fn mend(&self, batch: &StructArray, rows: &SessionRows) -> TaskColumns {
        let one = |some: &SessionRows, row| {
            repair(some, row, &self.policy, &|text| self.columns.refuses(batch, rows, row, text))
        };
        let mut mended = self.each(batch, rows, &one, unreadable);
        let mut texts = Vec::new();
        for (row, done) in mended.iter_mut().enumerate() {
            texts.extend(done.text.take().map(|text| (row, text)));
        }
        let mut columns = batch.columns().to_vec();
        if !texts.is_empty() {
            match self.columns.replace(batch, &texts) {
                Ok(replaced) => columns = replaced,
                // Half of the batch may fit.
                Err(error) if batch.len() > 1 => return Err(error),
                Err(error) => {
                    let why = format!("the mended row does not fit into its column: {error}");
                    (mended[0].outcome, mended[0].reason) = (RowOutcome::Refused, Some(why));
                }
            }
        }
        let (mut outcomes, mut reasons) = (StringBuilder::new(), StringBuilder::new());
        for RepairedRow { outcome, reason, .. } in &mended {
            outcomes.append_value(outcome.name());
            reasons.append_option(reason.as_deref());
        }
        let is_kept = |field: &FieldRef| ![OUTCOME, REASON].contains(&field.name().as_str());
        let kept =
            batch.fields().iter().zip(columns).filter(|(field, _)| is_kept(field)).map(|(_, column)| column);
        let added: [ArrayRef; 2] = [Arc::new(outcomes.finish()), Arc::new(reasons.finish())];
        Ok(kept.chain(added).collect())
    }

    fn weigh(&self, batch: &StructArray, rows: &SessionRows, before: u64) -> TaskColumns {
        let one = |rows: &SessionRows, row| {
            let weight = weigh(&&*text(rows, row)?, 0, &mut |_| None).map_err(lost)?;
            let known = weight.facts.format.is_some();
            if known { Ok(weight) } else { Err("not a session of a known format".to_string()) }
        };
        let weighed = self.each(batch, rows, &one, Err);
        let columns = WEIGHT_NUMBERS.len() + Standing::ALL.len() + Category::ALL.len();
        let mut numbers: Vec<_> = (0..=columns).map(|_| UInt64Builder::new()).collect();
        let mut texts = [(); 3].map(|()| StringBuilder::new());
        for (row, weighed) in (before..).zip(weighed) {
            let (weight, error) = weighed.map_or_else(|why| (None, Some(why)), |weight| (Some(weight), None));
            let format = weight.as_ref().and_then(|weight| weight.facts.format).map(|format| format.name);
            let model = weight.as_ref().map(|weight| weight.model.as_str()).filter(|model| !model.is_empty());
            for (column, text) in texts.iter_mut().zip([error.as_deref(), format, model]) {
                column.append_option(text);
            }
            let told = weight.as_ref().map(|weight| {
                let parts = weight.parts.iter().map(|(_, amount)| amount.bytes);
                let standings = weight.standings.iter().map(|(_, amount)| amount.bytes);
                let own = WEIGHT_NUMBERS.iter().map(|(_, number)| number(weight));
                own.chain(standings).chain(parts).collect::<Vec<_>>()
            });
            let mut told = told.into_iter().flatten();
            for (n, column) in numbers.iter_mut().enumerate() {
                column.append_option(if n == 0 { Some(row) } else { told.next() });
            }
        }
        let mut answer: Vec<ArrayRef> =
            numbers.into_iter().map(|mut column| Arc::new(column.finish()) as _).collect();
        drop(answer.splice(1..1, texts.map(|mut column| Arc::new(column.finish()) as ArrayRef)));
        Ok(answer)
    }

    fn chunk(&self, batch: &StructArray, rows: &SessionRows, before: u64) -> TaskColumns {
        let Task::Chunk { tokens_max, chars_max, message_chars_max, window_tokens, budget_tokens } =
            self.task
        else {
            return Ok(Vec::new());
        };
        let count = &chars4;
        let one = |rows: &SessionRows, row| {
            let limits =
                ChunkBounds { tokens_max, chars_max, message_chars_max, window_tokens, budget_tokens, count };
            let mut cut = Vec::new();
            let mut keep = |chunk: &transcript::chunk::Chunk| {
                let line = chunk.messages.first().map(|message| message.line);
                let messages: u64 = chunk.messages.iter().map(|message| message.stands_for).sum();
                cut.push(([line, Some(messages), Some(chunk.chars), Some(chunk.tokens)], chunk.text()));
                true
            };
            match chunks(&Reading::new(&&*text(rows, row)?).map_err(lost)?, &limits, None, &mut keep) {
                Ok(_) if cut.is_empty() => Err("no message is in context".to_string()),
                Ok(_) => Ok(cut),
                Err(NotDrawn::Unable(Unable::UnknownFormat)) => {
                    Err("not a session of a known format".to_string())
                }
                Err(NotDrawn::Unable(unable)) => Err(unable.to_string()),
                Err(NotDrawn::Fault(fault)) => Err(lost(fault)),
            }
        };
        let cut = self.each(batch, rows, &one, Err);
        if is_too_long(cut.iter().flatten().flatten().map(|(_, text)| text.as_bytes())) {
            return Err(too_much());
        }
        let mut numbers = [(); 6].map(|()| UInt64Builder::new());
        let (mut texts, mut errors) = (StringBuilder::new(), StringBuilder::new());
        let mut tell = |told: [Option<u64>; 6], text: Option<&str>, error: Option<&str>| {
            numbers.iter_mut().zip(told).for_each(|(column, number)| column.append_option(number));
            texts.append_option(text);
            errors.append_option(error);
        };
        for (row, cut) in (before..).zip(cut) {
            match cut {
                Ok(cut) => {
                    for (chunk, ([line, messages, chars, tokens], text)) in (1..).zip(cut) {
                        tell([Some(row), Some(chunk), line, messages, chars, tokens], Some(&text), None);
                    }
                }
                Err(why) => tell([Some(row), None, None, None, None, None], None, Some(&why)),
            }
        }
        let mut answer: Vec<ArrayRef> =
            numbers.map(|mut column| Arc::new(column.finish()) as ArrayRef).into();
        answer.extend([Arc::new(texts.finish()) as ArrayRef, Arc::new(errors.finish()) as ArrayRef]);
        Ok(answer)
    }

    fn explain(&self, batch: &StructArray, rows: &SessionRows, before: u64) -> TaskColumns {
        let one = |rows: &SessionRows, row| {
            let text = text(rows, row).ok()?;
            refusal::find(&String::from_utf8_lossy(&text))
        };
        let found = self.each(batch, rows, &one, |_| None);
        let mut numbers = UInt64Builder::new();
        let mut known = BooleanBuilder::new();
        let mut texts = [(); 4].map(|()| StringBuilder::new());
        for (row, refusal) in (before..).zip(found) {
            numbers.append_value(row);
            known.append_value(refusal.is_some());
            let codes = refusal.map(|refusal| refusal.codes.join(","));
            let told = [refusal.map(|known| known.what), codes.as_deref()];
            let told =
                told.into_iter().chain([refusal.map(|known| known.fix), refusal.map(|known| known.advice)]);
            texts.iter_mut().zip(told).for_each(|(column, text)| column.append_option(text));
        }
        let mut answer: Vec<ArrayRef> = vec![Arc::new(numbers.finish()), Arc::new(known.finish())];
        answer.extend(texts.map(|mut column| Arc::new(column.finish()) as ArrayRef));
        Ok(answer)
    }
}

/// The columns that `check` answers with.
#[derive(Default)]
struct CheckColumns {
    /// Row, line, bytes, how many more.
    numbers: [UInt64Builder; 4],
    column: StringBuilder,
    /// Code, severity, message, fix.
    words: [StringBuilder; 4],
}

impl CheckColumns {
    fn add(&mut self, numbers: [Option<u64>; 4], column: Option<&str>, words: [Option<&str>; 4]) {
        self.numbers.iter_mut().zip(numbers).for_each(|(own, number)| own.append_option(number));
        self.column.append_option(column);
        self.words.iter_mut().zip(words).for_each(|(own, word)| own.append_option(word));
    }

    fn finish(self) -> Vec<ArrayRef> {
        let [row, line, saves, more] = self.numbers.map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let [code, severity, message, fix] =
            self.words.map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let mut column = self.column;
        vec![row, Arc::new(column.finish()), line, code, severity, message, fix, saves, more]
    }
}

/// What `weigh` counts in a session.
type WeightNumber = (&'static str, fn(&Weight) -> u64);
const WEIGHT_NUMBERS: [WeightNumber; 7] = [
    ("bytes", |weight| weight.facts.bytes),
    ("lines", |weight| weight.facts.lines),
    ("entries", |weight| weight.facts.entries as u64),
    ("calls", |weight| weight.facts.calls as u64),
    ("results", |weight| weight.facts.results as u64),
    ("context_tokens", |weight| weight.context_tokens.tokens),
    ("image_count", |weight| weight.images.count),
];

fn lost(fault: Fault) -> String {
    format!("the row could not be read at byte {}", fault.at)
}

fn bytes_name(name: &str) -> String {
    format!("{}_bytes", name.replace('-', "_"))
}
