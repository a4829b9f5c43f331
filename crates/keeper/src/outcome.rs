//! How it ended: every file looked at ends in exactly one [`Ending`], and each but `Clean` says why.

use crate::store::Store;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use transcript::compact::Unable;
use transcript::finding::Held;
use transcript::format::{Format, Level};
use transcript::overflow::Cause;
use transcript::plan::Plan;
use transcript::verdict::Worse;
use transcript::{Awaits, Examination, Repair};

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
    /// Its agent leaves no sign that it is running, and it was written to not long ago.
    MayRun {
        /// How long ago.
        quiet: Duration,
        /// How long it should be.
        wanted: Duration,
    },
    /// Nothing but older history would change, and it was written to so short a while ago that a prompt cache may
    /// hold that.
    RecentHistory {
        /// How long ago.
        quiet: Duration,
        /// How long it should be.
        wanted: Duration,
    },
    /// So little would be gained that the whole file is not written anew for it.
    NotWorth {
        /// How many bytes would be saved.
        saved: u64,
        /// How many would be written, about.
        bytes: u64,
    },
    /// It changed while we looked at it.
    Changed,
    /// Somebody has it open for writing who does not show himself.
    HeldOpen,
    /// A program has the file open that an earlier run replaced, and may still append to it.
    OldFileOpen,
    /// Another Tailor, or a program that locks its files in the same way, is at it.
    OtherTailor,
    /// Its conversation waits for somebody, and that was not long ago.
    Running {
        /// For whom.
        awaits: Awaits,
        /// How long ago it was written to.
        quiet: Duration,
        /// How long it should be.
        wanted: Duration,
    },
    /// A live process holds OpenClaw's write lock.
    Locked {
        /// The process.
        pid: u32,
        /// How long it has held it.
        age: Duration,
    },
    /// OpenClaw's write lock is there and names no live process, but is too young to count as left behind.
    Doubtful {
        /// How old it is.
        age: Duration,
        /// How old it must be.
        grace: Duration,
    },
    /// A live process of an agent says that it is using it.
    InUse {
        /// The agent.
        agent: &'static str,
        /// The process.
        pid: u32,
        /// What the process says that it is doing.
        status: Option<&'static str>,
    },
    /// A lock of an agent's is held, by a process that the lock does not name.
    Busy {
        /// The agent.
        agent: &'static str,
        /// What the lock is for.
        lock: &'static str,
    },
    /// A process has it open for writing.
    Open {
        /// The process.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Some processes do not show what they have open, and it is not old enough to do without.
    Unseen {
        /// How many processes.
        processes: usize,
        /// How long ago it was written to.
        quiet: Duration,
        /// How long it should be.
        wanted: Duration,
    },
    /// An agent's lock is there, and nothing here tells whether its owner lives.
    Unprovable {
        /// The agent.
        agent: &'static str,
    },
    /// A process works in the session's folder, or in its agent's, and may have the conversation in memory; the model
    /// binds its thinking to that.
    Remembered {
        /// The process.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// The same of a process that cannot be seen from here.
    MayRemember {
        /// How long ago it was written to.
        quiet: Duration,
        /// How long it should be.
        wanted: Duration,
    },
    /// What was to be done to it is done, but lines that other programs appended meanwhile to the old file still wait
    /// beside it for their place, or may still come to it; and why.
    LateLines(String),
}

/// After which time it is worth looking at a lock again whose holder says nothing about its end.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);

impl Deferral {
    /// When to try again. Where time alone is missing, that is what remains of it; a lock that OpenClaw holds
    /// only while it writes is waited for as long again as it has been held, within a second and a minute; what
    /// ends with a process or by a person's hand is looked at again after a minute; a mere change, after a second, and so
    /// are lines that wait for their place.
    pub fn retry_after(&self) -> Duration {
        match self {
            Self::Growing { quiet, settle: wanted }
            | Self::MayRun { quiet, wanted }
            | Self::RecentHistory { quiet, wanted }
            | Self::Running { quiet, wanted, .. }
            | Self::Doubtful { age: quiet, grace: wanted }
            | Self::MayRemember { quiet, wanted }
            | Self::Unseen { quiet, wanted, .. } => wanted.saturating_sub(*quiet).max(Duration::from_secs(1)),
            Self::Changed | Self::OtherTailor | Self::LateLines(_) => Duration::from_secs(1),
            Self::Locked { age, .. } => (*age).clamp(Duration::from_secs(1), LOCK_PATIENCE),
            Self::InUse { .. }
            | Self::Remembered { .. }
            | Self::NotWorth { .. }
            | Self::Busy { .. }
            | Self::Open { .. }
            | Self::HeldOpen
            | Self::OldFileOpen
            | Self::Unprovable { .. } => LOCK_PATIENCE,
        }
    }

    /// The reason alone.
    pub(crate) fn why(&self) -> String {
        Told { deferral: self, set_by: SetBy::Options, with_retry: false }.to_string()
    }

    /// The reason and when to try again, with the way out named as one has it there.
    pub fn told(&self, set_by: SetBy) -> impl fmt::Display {
        Told { deferral: self, set_by, with_retry: true }
    }

    fn reason(&self, set_by: SetBy, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = |option: &'static str, key: &'static str| match set_by {
            SetBy::Options => option,
            SetBy::Configuration => key,
        };
        match self {
            Self::Growing { quiet, settle } => write!(
                f,
                "still growing: last written {:.1} s ago, wanted are {:.1} s of quiet ({})",
                quiet.as_secs_f64(),
                settle.as_secs_f64(),
                set("--settle", "`settle` in the configuration")
            ),
            Self::MayRun { quiet, wanted } => write!(
                f,
                "its agent leaves no sign that it is running, so it is changed only after {} without writes (level \
                 archive); last written {} ago; {}",
                Span(*wanted),
                Span(*quiet),
                no_agent(set_by)
            ),
            Self::RecentHistory { quiet, wanted } => write!(
                f,
                "nothing but older history would change, and a prompt cache may hold that: last written {} ago, wanted \
                 are {} ({})",
                Span(*quiet),
                Span(*wanted),
                set("--settle-stale 0 changes it now", "`settle_stale` in the configuration")
            ),
            Self::NotWorth { saved, bytes } => write!(
                f,
                "no error, and too little to rewrite {bytes} bytes for: {saved} saved (`[watch]`; `tailor fix` does it now)"
            ),
            Self::HeldOpen => f.write_str("a program that does not show itself has it open for writing"),
            Self::OldFileOpen => f.write_str(
                "a program still has the file open that an earlier run replaced; its lines are brought over, and \
                 nothing else is changed until it closes that file",
            ),
            Self::OtherTailor => f.write_str("another tailor, or its own agent, has locked it"),
            Self::Changed => f.write_str("it changed while being looked at"),
            Self::Running { awaits, quiet, .. } => {
                let (who, quiet, says) = (unanswered(*awaits), Span(*quiet), no_agent(set_by));
                write!(f, "a run is in progress: {who}, last written {quiet} ago; {says}")
            }
            Self::Locked { pid, age } => {
                write!(f, "process {pid} has held OpenClaw's write lock for {}", Span(*age))
            }
            Self::Doubtful { age, grace } => {
                let what = "OpenClaw's write lock names no live process that can be seen, but is";
                write!(f, "{what} {} old; it counts as left behind after {}", Span(*age), Span(*grace))
            }
            Self::InUse { agent, pid, status: None } => write!(f, "{agent} is using it (process {pid})"),
            Self::InUse { agent, pid, status: Some(status) } => {
                write!(f, "{agent} is using it (process {pid}, {status})")
            }
            Self::Busy { agent, lock } => write!(f, "{agent} holds its {lock}"),
            Self::Open { pid, name } => write!(f, "process {pid} ({name}) has it open for writing"),
            Self::Unseen { processes, quiet, wanted } => {
                f.write_str(&unseen(*processes, *quiet, *wanted, rustix::process::geteuid().is_root()))
            }
            Self::Remembered { .. } | Self::MayRemember { .. } => self.memory(set_by, f),
            Self::Unprovable { agent } => {
                write!(f, "{agent} has a lock on it, and nothing here proves that its owner is gone")
            }
            Self::LateLines(why) => {
                write!(f, "lines appended during the swap are queued beside the file and merged by the next run: {why}")
            }
        }
    }

    /// Why what an agent may remember stays as it is, and the way out.
    fn memory(&self, set_by: SetBy, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WHY: &str = "may hold the conversation in memory, and the model signs its thinking over that";
        let (who, reloads) = match self {
            Self::Remembered { pid, name } => (
                format!("process {pid} ({name}) {WHY}, so what the model sees stays until the process ends"),
                "`reloads = true` in `[agents.NAME]` says that the agent reads the file again for each turn",
            ),
            Self::MayRemember { quiet, wanted } => (
                format!(
                    "an agent that cannot be seen from here {WHY}: last written {} ago, waiting for {}",
                    Span(*quiet),
                    Span(*wanted)
                ),
                "`memory_settle` in the configuration, or `reloads = true` in `[agents.NAME]`",
            ),
            _ => return Ok(()),
        };
        let way_out = match set_by {
            SetBy::Options => NO_AGENT,
            SetBy::Configuration => reloads,
        };
        write!(f, "{who} ({way_out})")
    }
}

/// What a person says where an agent may be at work.
const NO_AGENT: &str = "--settle 0 says that no agent is running";

/// That the model has signed over what a run left, and what can be done.
fn signed_since(run: &str) -> String {
    format!(
        "the model has signed its thinking over what this run left, and the API would refuse that thinking beside what \
         comes back (tailor fix --thinking strip removes it, then undo with --run {run}; --ignore-thinking undoes it all \
         the same)"
    )
}

fn unanswered(awaits: Awaits) -> &'static str {
    match awaits {
        Awaits::Tool => "a tool was called and has not answered",
        Awaits::Model => "the model has not answered yet",
    }
}

/// What to say if no agent is running.
fn no_agent(set_by: SetBy) -> &'static str {
    match set_by {
        SetBy::Options => NO_AGENT,
        SetBy::Configuration => "`settle = 0` in the configuration says that no agent ever runs",
    }
}

/// That processes do not show what they have open, and what can be done.
fn unseen(processes: usize, quiet: Duration, wanted: Duration, is_root: bool) -> String {
    let who = match processes {
        1 => "1 process does not show which files it has open".to_string(),
        _ => format!("{processes} processes do not show which files they have open"),
    };
    let (quiet, wanted) = (Span(quiet), Span(wanted));
    // In a container even root does not see all of them.
    let root = if is_root { "" } else { "root sees more of them; " };
    format!(
        "{who}, and the file was written {quiet} ago; wanted are {wanted} ({root}`tailor fix --out DIR FILE`, or \
         `tailor fix - < FILE`, writes a mended copy at once)"
    )
}

/// How a person sets what makes a file wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// By an option of the command, for this file.
    Options,
    /// By a key of the daemon's configuration, for all files.
    Configuration,
}

struct Told<'a> {
    deferral: &'a Deferral,
    set_by: SetBy,
    with_retry: bool,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deferral.reason(self.set_by, f)?;
        // No time makes it worth more.
        if !self.with_retry || matches!(self.deferral, Deferral::NotWorth { .. }) {
            return Ok(());
        }
        write!(f, "; try again in {}", Span(self.deferral.retry_after()))
    }
}

impl fmt::Display for Deferral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.told(SetBy::Options).fmt(f)
    }
}

/// A length of time for people: whole units, rounded up.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs() + u64::from(self.0.subsec_nanos() > 0);
        match seconds {
            0..120 => write!(f, "{seconds} s"),
            120..7_200 => write!(f, "{} min", seconds.div_ceil(60)),
            7_200..172_800 => write!(f, "{} h", seconds.div_ceil(3_600)),
            _ => write!(f, "{} days", seconds.div_ceil(86_400)),
        }
    }
}

/// What kept other programs' lines safe while a file was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// A file lease: nobody could come in between.
    Lease,
    /// Quiet: there are no leases here; nobody had written for the settle time, nothing had changed up to the
    /// exchange, and the old file was watched for a second after it.
    Quiet,
}

impl Guarantee {
    /// As printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Quiet => "quiet",
        }
    }
}

/// Why a file is left alone for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has other names, which a new file would not have.
    HardLinks(u64),
    /// It is a mount point by itself: who has it there would keep the old file.
    MountedAlone {
        /// Where, as that process sees it.
        at: PathBuf,
        /// The process, if its mounts are not ours.
        pid: Option<u32>,
    },
    /// It lies in the upper layer of an overlay, and this is the layer: who has the overlay would keep the old file.
    ContainerLayer(PathBuf),
    /// It is a link that leads out of the folder that was asked for.
    LinkOutOfRoot,
    /// It is not a file.
    NotAFile,
    /// It belongs to somebody else.
    ForeignOwner(u32),
    /// Root would work in a folder that another user than the file's owner may rename or replace.
    LooseFolder(PathBuf),
    /// It holds more entries than we keep in mind.
    TooManyEntries,
    /// The agent keeps offsets into it, or proofs of what it holds, in another place.
    CountedElsewhere(&'static str),
    /// Its first line does not say whether the agent keeps offsets into it.
    UnknownHistory,
    /// Its agent has compressed it.
    Compressed,
    /// The repair would do harm.
    Worse(Worse),
    /// Its conversation cannot be compacted.
    Unable(Unable),
    /// Its last request failed for another reason than its length.
    NotTooLong(Cause),
    /// It was recovered so often in a row, and the model has not answered since.
    GivenUp(u64),
    /// No run over it is left to be taken back.
    NothingToUndo,
    /// There is no run of that name.
    NoSuchRun(String),
    /// The run was taken back before, or is one that took another back.
    AlreadyUndone(String),
    /// A later run changed the same place.
    LaterRun(String),
    /// The conversation went on from the compaction that the run wrote.
    BuiltUpon {
        /// In which line, from 1.
        line: u64,
        /// The run did nothing else.
        alone: bool,
    },
    /// The model has signed its thinking over what this run left.
    SignedSince(String),
    /// What the run wrote is not there any more.
    ChangedSince {
        /// In which line, from 1.
        line: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HardLinks(names) => write!(
                f,
                "it has {names} hard links; replacing it would part them (use --out DIR, or unlink the others)"
            ),
            Self::MountedAlone { at, pid } => f.write_str(&mounted_alone(at, *pid)),
            Self::ContainerLayer(upper) => write!(
                f,
                "it lies in a container's layer, {}; programs in the container would keep writing to the old file \
                 (run tailor inside the container, or use --out DIR)",
                upper.display()
            ),
            Self::LinkOutOfRoot => {
                f.write_str("it is a link that leads out of its folder (name the file it leads to)")
            }
            Self::Compressed => f.write_str(
                "its agent has compressed it, and unpacks it before it goes on (mend a copy: zstd -d FILE)",
            ),
            Self::NotAFile => f.write_str("it is not a regular file"),
            Self::ForeignOwner(uid) => write!(f, "it belongs to user {uid} (run as that user, or as root)"),
            Self::LooseFolder(folder) => f.write_str(&loose_folder(folder)),
            Self::TooManyEntries => {
                write!(f, "it holds more than {} entries", transcript::scan::ENTRIES_MAX)
            }
            Self::CountedElsewhere(what) => {
                write!(f, "{what}; any change would make the agent reject it (use --out DIR)")
            }
            Self::UnknownHistory => {
                f.write_str("its first line does not say how Codex keeps its history (use --out DIR)")
            }
            Self::Worse(worse) | Self::Unable(Unable::Worse(worse)) => {
                write!(f, "{worse}; the original stays")
            }
            Self::Unable(unable) => write!(f, "{unable}"),
            Self::NotTooLong(cause) => write!(
                f,
                "the request did not fail for its length ({}); --level N shortens it all the same",
                cause.name()
            ),
            Self::GivenUp(attempts) => write!(
                f,
                "recovered {attempts} times in a row, and the model has not answered since (--level N tries again)"
            ),
            Self::BuiltUpon { line, alone } => {
                write!(
                    f,
                    "the conversation went on, in line {line}, from the compaction that this run wrote; without it the \
                     agent would lose sight of all that came before ("
                )?;
                f.write_str(if *alone {
                    "nothing was taken out: to go on from an older message, go back to it in the agent, in pi with /tree)"
                } else {
                    "--partly leaves the compaction and puts all else back)"
                })
            }
            Self::SignedSince(run) => f.write_str(&signed_since(run)),
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

fn loose_folder(folder: &Path) -> String {
    format!(
        "another user may rename or replace the folder {} (run as the owner of the file, or take write access to the \
         folder away from others)",
        folder.display()
    )
}

fn mounted_alone(at: &Path, pid: Option<u32>) -> String {
    let whom = pid.map_or(String::new(), |pid| format!(" for process {pid}"));
    format!(
        "it is mounted by itself, at {}{whom}; programs there would keep writing to the old file (mount its folder \
         instead, or use --out DIR)",
        at.display()
    )
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
    /// It is no file of lines, but where an agent keeps its sessions.
    Store(Store),
    /// A file of this format is never changed, for this reason.
    OnlyRead(&'static str, &'static str),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty"),
            Self::Store(Store { agent, advice, .. }) => write!(f, "sessions of {agent}: {advice}"),
            Self::OnlyRead(format, why) => write!(f, "recognised as {format} and never changed: {why}"),
            Self::Document => f.write_str(
                "one JSON document; Tailor reads JSON Lines, one record a line (of an array, `jq -c '.[]'` makes \
                 them), and never changes it",
            ),
            Self::UnknownFormat => write!(
                f,
                "not a transcript of a known format (docs/formats.md lists {}); it is never changed",
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
    /// Length before.
    pub bytes: u64,
    /// Length now, or as it would be.
    pub bytes_after: u64,
    /// Name of the run, under which the original is kept.
    pub run: Option<String>,
    /// What kept others' lines safe; `None` if nothing was replaced.
    pub guarantee: Option<Guarantee>,
    /// Why lines that came late still wait beside the file for their place; `None` if there are none.
    pub late: Option<Deferral>,
}

impl Outcome {
    pub(crate) fn without_look(ending: Ending) -> Self {
        Self {
            ending,
            before: None,
            after: None,
            plan: Plan::default(),
            bytes: 0,
            bytes_after: 0,
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
        let ending = if found.facts.entries > transcript::scan::ENTRIES_MAX {
            Ending::Refused(Refusal::TooManyEntries)
        } else if let Some(format) = found.facts.format
            && let Level::ReadOnly(why) = format.level()
        {
            Ending::Unsupported(Unsupported::OnlyRead(format.name(), why))
        } else if found.facts.is_document {
            Ending::Unsupported(Unsupported::Document)
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
            guarantee: None,
            late: None,
        }
    }

    /// The outcome of a repair.
    pub(crate) fn end(&mut self, ending: Ending, repair: Repair) {
        self.ending = ending;
        self.bytes_after = repair.plan.length_after();
        self.after = repair.after;
        self.plan = repair.plan;
    }

    /// Name of the agent's format; `None` if it was not read or is not known.
    pub fn agent(&self) -> Option<&'static str> {
        self.before.as_ref()?.facts.format.map(Format::name)
    }

    /// What there is to be said of how it ended, in a sentence; `None` where there is nothing.
    pub fn reason(&self) -> Option<String> {
        let changes = matches!(self.ending, Ending::Fixed | Ending::WouldFix);
        let waits = || self.before.as_ref().filter(|found| changes && found.waiting > 0);
        let waits = || waits().map(|_| Held::NextRun.to_string());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unseen_is_told_with_what_helps() {
        let told = |processes, is_root| {
            unseen(processes, Duration::from_secs(3), Duration::from_secs(7 * 86_400), is_root)
        };
        let one = told(1, true);
        assert!(
            one.starts_with("1 process does not show which files it has open, and the file was"),
            "{one}"
        );
        assert!(
            one.contains("wanted are 7 days") && one.contains("--out DIR") && one.contains("fix - "),
            "{one}"
        );
        assert!(!one.contains("root"), "root cannot become root: {one}");
        let some = told(2, false);
        assert!(some.starts_with("2 processes do not show which files they have open, "), "{some}");
        assert!(some.contains("root sees more"), "{some}");
    }
}
