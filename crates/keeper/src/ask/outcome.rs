//! How it ended: every file looked at ends in exactly one [`Ending`], and each but `Clean` says why.

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::places::store::Store;
use crate::platform::room::entries_max;
use std::fmt;
use std::time::Duration;
use transcript::finding::Held;
use transcript::format::SupportLevel;
use transcript::plan::Plan;
use transcript::{Examination, Facts, Repair};

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing is wrong with it.
    Clean,
    /// Something is, and nothing was changed: it was only looked at, or there is nothing that may be changed.
    Findings,
    /// A dry run: this is what would be changed.
    WouldFix,
    /// It was changed.
    Fixed,
    /// A dry run: a run over it would be taken back.
    WouldUndo,
    /// A run over it was taken back.
    Undone,
    /// Not now.
    Deferred(Deferral),
    /// Not at all.
    Refused(Refusal),
    /// Not a transcript that we know.
    Unsupported(Unsupported),
}

impl Ending {
    /// The word for it, as printed.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Findings => "findings",
            Self::WouldFix => "would-fix",
            Self::Fixed => "fixed",
            Self::WouldUndo => "would-undo",
            Self::Undone => "undone",
            Self::Deferred(_) => "deferred",
            Self::Refused(_) => "refused",
            Self::Unsupported(_) => "unsupported",
        }
    }

    /// Why nothing was done, in a sentence; `None` where there is nothing to be said.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Deferred(reason) => Some(reason.to_string()),
            Self::Refused(reason) => Some(reason.to_string()),
            Self::Unsupported(reason) => Some(reason.to_string()),
            _ => None,
        }
    }

    /// When to try again, if it was put off.
    pub fn retry_after(&self) -> Option<Duration> {
        let Self::Deferred(reason) = self else { return None };
        Some(reason.retry_after())
    }
}

/// What kept other programs' lines safe while a file was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// A file lease: no program could write in between.
    Lease,
    /// There are no leases here, but we could see every process that might have the old file open. The names were exchanged
    /// atomically, and what was appended to the old file was copied until no process had it open. Not covered is a process
    /// that resolved the path before the exchange and opens the file more than a second after it.
    Drained,
    /// There are no leases here, and a process that we cannot see may have the file open: nothing had been written for the
    /// settle time, nothing had changed up to the exchange, and the old file was watched for a second after it. Or the file
    /// system cannot exchange two names atomically: the rest is as above, but a file that a program renames over this one in
    /// the microseconds between our last look and our own rename is lost.
    Quiet,
    /// The session is in a database, and was changed in one transaction.
    Transaction,
}

impl Guarantee {
    /// As printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Drained => "drained",
            Self::Quiet => "quiet",
            Self::Transaction => "transaction",
        }
    }
}

/// Why a file is not a transcript to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// There is nothing in it.
    Empty,
    /// Its structure is that of no format in the list.
    UnknownFormat,
    /// It is one JSON value, on however many lines.
    Document,
    /// It is not a file of lines, but a store in which an agent keeps its sessions.
    Store(Store),
    /// A file of this format is never changed, for this reason.
    OnlyRead(&'static str, &'static str),
    /// It is a session in a database.
    Stored,
}

const STORED: &str = "a session in a database, in which Tailor does not change this (of a copy, tailor export 'FILE#SESSION' > \
                      session.jsonl, everything can be repaired)";

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty"),
            Self::Store(Store { agent, advice, .. }) => write!(f, "sessions of {agent}: {advice}"),
            Self::Stored => f.write_str(STORED),
            Self::OnlyRead(format, why) => write!(f, "recognised as {format} and never changed: {why}"),
            Self::Document => f.write_str(
                "one JSON document, and no list of messages of a known format; it is never changed (Tailor reads JSON \
                 Lines, one record a line; of an array, `jq -c '.[]'` makes them)",
            ),
            Self::UnknownFormat => write!(
                f,
                "not a transcript of a known format (Tailor reads {}); it is never changed",
                transcript::format::FORMATS.len()
            ),
        }
    }
}

/// What was found and done.
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// The file as it was; `None` if it was not read.
    pub before: Option<Examination>,
    /// The file as it is now, or would be; `None` if nothing changes.
    pub after: Option<Examination>,
    /// What was changed, or would be.
    pub plan: Plan,
    /// How many places an undo put back, or would.
    pub places_restored: usize,
    /// How many it left as they are, or would.
    pub places_left: usize,
    /// Length before.
    pub bytes: u64,
    /// Length now, or as it would be.
    pub bytes_after: u64,
    /// How many bytes fewer the changed rows of a database have, in which texts may be packed.
    pub rows_saved_bytes: Option<u64>,
    /// Name of the run, under which the original is kept.
    pub run: Option<String>,
    /// What kept others' lines safe; `None` if nothing was replaced.
    pub guarantee: Option<Guarantee>,
    /// Why lines appended during the swap are still queued beside the file; `None` if there are none.
    pub late: Option<Deferral>,
}

impl Ending {
    /// The ending for this reason; an error is not an ending.
    pub(crate) fn from_stop(stop: Stop) -> Result<Self, Error> {
        match stop {
            Stop::Deferred(reason) => Ok(Self::Deferred(reason)),
            Stop::Refused(reason) => Ok(Self::Refused(reason)),
            Stop::Failed(error) => Err(error),
        }
    }
}

impl Outcome {
    /// What came of work that may have stopped before anything was found.
    pub(crate) fn from_result(done: Result<Self, Stop>) -> Result<Self, Error> {
        done.or_else(|stop| Ending::from_stop(stop).map(Self::without_look))
    }

    pub(crate) fn without_look(ending: Ending) -> Self {
        Self {
            ending,
            before: None,
            after: None,
            plan: Plan::default(),
            places_restored: 0,
            places_left: 0,
            bytes: 0,
            bytes_after: 0,
            rows_saved_bytes: None,
            run: None,
            guarantee: None,
            late: None,
        }
    }

    /// The outcome of a file that was not looked at for this reason.
    pub fn deferred(reason: Deferral) -> Self {
        Self::without_look(Ending::Deferred(reason))
    }

    /// The outcome of a file without a byte, as a session is in many agents that has just begun.
    pub fn empty() -> Self {
        Self::without_look(Ending::Unsupported(Unsupported::Empty))
    }

    /// The outcome of having read a source of `bytes` bytes.
    pub fn looked(found: Examination, bytes: u64) -> Self {
        let ending = if found.facts.entries > entries_max() {
            Ending::Refused(Refusal::TooManyEntries(entries_max()))
        } else if let Some(format) = found.facts.format
            && let SupportLevel::ReadOnly(why) = format.level
        {
            Ending::Unsupported(Unsupported::OnlyRead(format.name, why))
        } else if found.facts.format.is_none() {
            let is_document = found.facts.is_document;
            Ending::Unsupported(if is_document { Unsupported::Document } else { Unsupported::UnknownFormat })
        } else if found.findings.is_empty() {
            Ending::Clean
        } else {
            Ending::Findings
        };
        Self { before: Some(found), bytes, bytes_after: bytes, ..Self::without_look(ending) }
    }

    /// The outcome of a repair.
    pub(crate) fn end(&mut self, ending: Ending, repair: Repair) {
        self.ending = ending;
        self.bytes_after = repair.plan.length_after();
        self.after = repair.after;
        self.plan = repair.plan;
    }

    /// What is in the file as it was, if it was read.
    pub(crate) fn facts(&self) -> Option<Facts> {
        Some(self.before.as_ref()?.facts)
    }

    /// Name of the agent's format; `None` if it was not read or is not known.
    pub fn agent(&self) -> Option<&'static str> {
        self.before.as_ref()?.facts.format.map(|format| format.name)
    }

    /// What there is to be said of how it ended, in a sentence; `None` where there is nothing.
    pub fn reason(&self) -> Option<String> {
        let changes = matches!(self.ending, Ending::Fixed | Ending::WouldFix);
        let waits = || self.before.as_ref().filter(|found| changes && found.waiting > 0);
        let waits = || waits().map(|_| Held::NextRun.to_string());
        let recognised = self.before.as_ref().map(|found| found.facts.recognised()).unwrap_or_default();
        if let Ending::Unsupported(what @ (Unsupported::UnknownFormat | Unsupported::Document)) = &self.ending
            && !recognised.is_empty()
        {
            return Some(format!("{what}; {recognised}"));
        }
        self.ending.reason().or_else(|| self.late.as_ref().map(Deferral::to_string)).or_else(waits)
    }

    /// When to try again; `None` where time changes nothing.
    pub fn retry_after(&self) -> Option<Duration> {
        self.ending.retry_after().or_else(|| self.late.as_ref().map(Deferral::retry_after))
    }

    /// The file as it is now.
    fn now(&self) -> Option<&Examination> {
        match self.ending {
            Ending::Fixed => self.after.as_ref().or(self.before.as_ref()),
            _ => self.before.as_ref(),
        }
    }

    /// What is still wrong.
    pub fn remaining(&self) -> &[transcript::Finding] {
        self.now().map_or(&[], |found| &found.findings)
    }

    /// How much is still wrong.
    pub fn remaining_count(&self) -> u64 {
        self.now().map_or(0, Examination::count)
    }
}
