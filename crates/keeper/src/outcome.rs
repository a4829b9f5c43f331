//! How it ended: every file looked at ends in exactly one [`Ending`], and each but `Clean` says why.

use std::fmt;
use std::time::Duration;
use transcript::Examination;
use transcript::plan::Plan;
use transcript::verdict::Worse;

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

/// Why a file is left alone for the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deferral {
    /// It was written to a moment ago.
    Growing {
        /// How long ago.
        quiet: Duration,
        /// How long it should be.
        settle: Duration,
    },
    /// It changed while we looked at it.
    Changed,
}

impl fmt::Display for Deferral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Growing { quiet, settle } => write!(
                f,
                "still growing: last written {:.1} s ago, wanted are {:.1} s of quiet (--settle)",
                quiet.as_secs_f64(),
                settle.as_secs_f64()
            ),
            Self::Changed => f.write_str("it changed while being looked at; run again"),
        }
    }
}

/// Why a file is left alone for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has other names, which a new file would not have.
    HardLinks(u64),
    /// It is a link that leads out of the folder that was asked for.
    LinkOutOfRoot,
    /// It is not a file.
    NotAFile,
    /// It belongs to somebody else.
    ForeignOwner(u32),
    /// It holds more entries than we keep in mind.
    TooManyEntries,
    /// The repair would do harm.
    Worse(Worse),
    /// No run over it is left to be taken back.
    NothingToUndo,
    /// There is no run of that name.
    NoSuchRun(String),
    /// The run was taken back before, or is one that took another back.
    AlreadyUndone(String),
    /// A later run changed the same place.
    LaterRun(String),
    /// What the run wrote is not there any more.
    ChangedSince {
        /// In which line, from 1.
        line: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HardLinks(names) => {
                write!(
                    f,
                    "it has {names} hard links; replacing it would part them (use --out DIR, or unlink the others)"
                )
            }
            Self::LinkOutOfRoot => {
                f.write_str("it is a link that leads out of its folder (name the file it leads to)")
            }
            Self::NotAFile => f.write_str("it is not a regular file"),
            Self::ForeignOwner(uid) => write!(f, "it belongs to user {uid} (run as that user, or as root)"),
            Self::TooManyEntries => {
                write!(f, "it holds more than {} entries", transcript::scan::ENTRIES_MAX)
            }
            Self::Worse(worse) => write!(f, "{worse}; the original stays"),
            Self::NothingToUndo => f.write_str("there is no run to undo (--vault DIR looks elsewhere)"),
            Self::NoSuchRun(run) => {
                write!(f, "there is no run {run} (--list shows those of a file, --vault DIR looks elsewhere)")
            }
            Self::AlreadyUndone(run) => write!(f, "run {run} is undone already (--list shows the others)"),
            Self::LaterRun(run) => write!(f, "run {run} changed the same place later (undo it first)"),
            Self::ChangedSince { line } => write!(
                f,
                "the bytes at line {line} are not those that this run wrote: changed since by another program \
                 (tailor show prints the texts that were cut)"
            ),
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
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty"),
            Self::UnknownFormat => {
                f.write_str("not a transcript of a known format (")?;
                for (n, format) in transcript::format::FORMATS.iter().enumerate() {
                    write!(f, "{}{}", if n > 0 { ", " } else { "" }, format.name())?;
                }
                f.write_str("); it is never changed")
            }
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
    /// Length before.
    pub bytes: u64,
    /// Length now, or as it would be.
    pub bytes_after: u64,
    /// Name of the run, under which the original is kept.
    pub run: Option<String>,
}

impl Outcome {
    pub(crate) fn without_look(ending: Ending) -> Self {
        Self { ending, before: None, after: None, plan: Plan::default(), bytes: 0, bytes_after: 0, run: None }
    }

    /// The outcome of having read a source of `bytes` bytes.
    pub fn looked(found: Examination, bytes: u64) -> Self {
        let ending = if found.facts.entries > transcript::scan::ENTRIES_MAX {
            Ending::Refused(Refusal::TooManyEntries)
        } else if found.facts.format.is_none() {
            Ending::Unsupported(Unsupported::UnknownFormat)
        } else if found.findings.is_empty() {
            Ending::Clean
        } else {
            Ending::Findings
        };
        Self {
            ending,
            before: Some(found),
            after: None,
            plan: Plan::default(),
            bytes,
            bytes_after: bytes,
            run: None,
        }
    }

    /// What is still wrong.
    pub fn remaining(&self) -> &[transcript::Finding] {
        let now = match self.ending {
            Ending::Fixed => self.after.as_ref().or(self.before.as_ref()),
            _ => self.before.as_ref(),
        };
        now.map_or(&[], |found| &found.findings)
    }
}
