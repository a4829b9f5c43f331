//! Why a file is left alone for the moment, and when to try again.

use crate::platform::owner;
use std::fmt;
use std::time::Duration;
use transcript::Awaits;

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
    /// Only older history would change, and the file was written to so recently that a prompt cache may hold that history.
    RecentHistory {
        /// How long ago.
        quiet: Duration,
        /// How long it should be.
        wanted: Duration,
    },
    /// So little would be gained that rewriting the whole file is not worth it.
    NotWorth {
        /// How many bytes would be saved.
        saved: u64,
        /// How many would be written, about.
        bytes: u64,
    },
    /// It changed while we looked at it.
    Changed,
    /// A process that we cannot see has it open for writing.
    HeldOpen,
    /// A program does not let it be opened or replaced.
    Withheld,
    /// A program still has the old file of an earlier run open, and may append to it.
    OldFileOpen,
    /// Another Tailor is working on it, or a program that locks its files in the same way.
    OtherTailor,
    /// Its conversation waits for a tool or the model, and was written to not long ago.
    Running {
        /// For which of them.
        awaits: Awaits,
        /// How long ago it was written to.
        quiet: Duration,
        /// How long it should be.
        wanted: Duration,
    },
    /// A running process holds OpenClaw's write lock.
    Locked {
        /// The process.
        pid: u32,
        /// How long it has held it.
        age: Duration,
    },
    /// OpenClaw's write lock is there and names no running process, but is too young to count as left behind.
    Doubtful {
        /// How old it is.
        age: Duration,
        /// How old it must be.
        grace: Duration,
    },
    /// Claude Code may be writing a shorter copy of it, to put in its place.
    Compacting {
        /// How long ago it wrote to the copy.
        age: Duration,
        /// After how long the copy counts as left behind.
        grace: Duration,
    },
    /// A running process of an agent says that it is using it.
    InUse {
        /// The agent.
        agent: &'static str,
        /// The process.
        pid: u32,
        /// What the process says that it is doing.
        status: Option<&'static str>,
    },
    /// An agent's lock is held by a process that the lock does not name.
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
    /// Its agent runs, and the system does not say which files it has open.
    Runs {
        /// The process.
        pid: u32,
        /// The name of its program.
        name: String,
    },
    /// Some processes hide what they have open, and the file has not been quiet for long enough to ignore them.
    Unseen {
        /// How many processes.
        processes: usize,
        /// How long ago it was written to.
        quiet: Duration,
        /// How long it should be.
        wanted: Duration,
    },
    /// An agent's lock is there, and nothing here shows whether its owner is alive.
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
    /// A process that we cannot see may have the conversation in memory.
    MayRemember {
        /// How long ago it was written to.
        quiet: Duration,
        /// How long it should be.
        wanted: Duration,
    },
    /// The change is made, but lines that other programs appended to the old file still have to be inserted, or may still be
    /// appended there; and why.
    LateLines(String),
}

/// Time to the next try where nothing says when a lock will be released.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);
/// Time to the next try where a transaction holds a database.
const DATABASE_PATIENCE: Duration = Duration::from_secs(5);

impl Deferral {
    /// The lock that a program holds while it writes to a database.
    pub(crate) const DATABASE: &'static str = "database";

    /// When to try again. If only time is missing, when it is over. For OpenClaw's lock, after as long again as it has been
    /// held, but between a second and a minute. For what ends with a process or needs a person, after a minute. For a change
    /// of the file, or late lines, after a second.
    pub fn retry_after(&self) -> Duration {
        match self {
            Self::Growing { quiet, settle: wanted }
            | Self::MayRun { quiet, wanted }
            | Self::RecentHistory { quiet, wanted }
            | Self::Running { quiet, wanted, .. }
            | Self::Doubtful { age: quiet, grace: wanted }
            | Self::Compacting { age: quiet, grace: wanted }
            | Self::MayRemember { quiet, wanted }
            | Self::Unseen { quiet, wanted, .. } => wanted.saturating_sub(*quiet).max(Duration::from_secs(1)),
            Self::Changed | Self::OtherTailor | Self::Withheld | Self::LateLines(_) => Duration::from_secs(1),
            Self::Locked { age, .. } => (*age).clamp(Duration::from_secs(1), LOCK_PATIENCE),
            // Transactions are short.
            Self::Busy { lock: Self::DATABASE, .. } => DATABASE_PATIENCE,
            Self::InUse { .. }
            | Self::Remembered { .. }
            | Self::NotWorth { .. }
            | Self::Busy { .. }
            | Self::Open { .. }
            | Self::Runs { .. }
            | Self::HeldOpen
            | Self::OldFileOpen
            | Self::Unprovable { .. } => LOCK_PATIENCE,
        }
    }

    /// What the user can quit so that it can be done now.
    fn held_by(&self) -> Option<&str> {
        match self {
            Self::Busy { lock: Self::DATABASE, .. } | Self::HeldOpen => Some("that program"),
            Self::InUse { agent, .. } | Self::Busy { agent, .. } | Self::Unprovable { agent } => Some(agent),
            Self::Open { name, .. } | Self::Runs { name, .. } | Self::Remembered { name, .. } => Some(name),
            Self::OldFileOpen => Some("the agent"),
            Self::Growing { .. }
            | Self::MayRun { .. }
            | Self::RecentHistory { .. }
            | Self::NotWorth { .. }
            | Self::Changed
            | Self::Withheld
            | Self::OtherTailor
            | Self::Running { .. }
            | Self::Locked { .. }
            | Self::Doubtful { .. }
            | Self::Compacting { .. }
            | Self::Unseen { .. }
            | Self::MayRemember { .. }
            | Self::LateLines(_) => None,
        }
    }

    /// The reason alone.
    pub(crate) fn why(&self) -> String {
        Description { deferral: self, set_by: SetBy::Options, with_retry: false }.to_string()
    }

    /// The reason, the way out as an option or a key, and when to try again.
    pub fn describe(&self, set_by: SetBy) -> impl fmt::Display {
        Description { deferral: self, set_by, with_retry: true }
    }

    fn reason(&self, set_by: SetBy, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Growing { quiet, settle } => write!(
                f,
                "modified {} ago; waiting for {} without writes ({})",
                TimeSpan(*quiet),
                TimeSpan(*settle),
                settles(set_by)
            ),
            Self::MayRun { quiet, wanted } => write!(
                f,
                "modified {} ago; waiting for {} without writes, because this agent leaves no sign that it is running \
                 (level archive); {}",
                TimeSpan(*quiet),
                TimeSpan(*wanted),
                no_agent(set_by)
            ),
            Self::RecentHistory { quiet, wanted } => write!(
                f,
                "only older history would change, and a prompt cache may still hold it: modified {} ago, waiting for \
                 {} without writes ({})",
                TimeSpan(*quiet),
                TimeSpan(*wanted),
                settles_stale(set_by)
            ),
            Self::NotWorth { saved, bytes } => write!(
                f,
                "no errors, and saving {saved} bytes is not worth rewriting {bytes} bytes (limits in `[watch]`; `tailor fix` \
                 does it now)"
            ),
            Self::HeldOpen => f.write_str(&held_open(owner::may_all())),
            Self::OldFileOpen => f.write_str(OLD_FILE_OPEN),
            Self::OtherTailor => f.write_str("locked by another tailor or by its agent"),
            Self::Changed => f.write_str("modified during the run"),
            Self::Withheld => f.write_str(WITHHELD),
            Self::Running { awaits, quiet, .. } => {
                let (who, quiet, says) = (unanswered(*awaits), TimeSpan(*quiet), no_agent(set_by));
                write!(f, "a turn is in progress: {who} (modified {quiet} ago); {says}")
            }
            Self::Locked { pid, age } => {
                write!(f, "process {pid} has held OpenClaw's write lock for {}", TimeSpan(*age))
            }
            Self::Doubtful { age, grace } => left_behind(NAMELESS, *age, *grace, f),
            Self::Compacting { age, grace } => left_behind(COMPACTING, *age, *grace, f),
            Self::InUse { agent, pid, status } => {
                let status = status.map(|status| format!(", {status}")).unwrap_or_default();
                write!(f, "{agent} is using it (process {pid}{status})")
            }
            Self::Busy { lock: Self::DATABASE, .. } => f.write_str("another program has locked its database"),
            Self::Busy { agent, lock } => write!(f, "{agent} holds its {lock}"),
            Self::Open { pid, name } => write!(f, "process {pid} ({name}) has it open for writing"),
            Self::Runs { pid, name } => f.write_str(&runs(*pid, name, set_by)),
            Self::Unseen { processes, quiet, wanted } => {
                f.write_str(&unseen(*processes, *quiet, *wanted, owner::may_all()))
            }
            Self::Remembered { .. } | Self::MayRemember { .. } => self.memory(set_by, f),
            Self::Unprovable { agent } => {
                write!(f, "{agent} has a lock on it, and its owner may still be running")
            }
            Self::LateLines(why) => {
                write!(
                    f,
                    "lines appended during the swap are queued beside the file and merged by the next run: {why}"
                )
            }
        }
    }

    /// Why what an agent may remember stays as it is, and the way out.
    fn memory(&self, set_by: SetBy, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WHY: &str = "may hold the session in memory, and signed thinking must match it";
        let (who, reloads) = match self {
            Self::Remembered { pid, name } => (
                format!(
                    "process {pid} ({name}) {WHY}; what the model sees stays unchanged until that process ends"
                ),
                "set `reloads = true` in `[agents.NAME]` if the agent reloads the file for each turn",
            ),
            Self::MayRemember { quiet, wanted } => (
                format!(
                    "an agent that is not visible from here {WHY}: modified {} ago, waiting for {} without writes",
                    TimeSpan(*quiet),
                    TimeSpan(*wanted)
                ),
                "`memory_settle` in the configuration, or `reloads = true` in `[agents.NAME]`",
            ),
            _ => return Ok(()),
        };
        let way_out = match set_by {
            SetBy::Options => NO_AGENT,
            SetBy::Configuration | SetBy::Recovery => reloads,
        };
        write!(f, "{who} ({way_out})")
    }
}

const NAMELESS: &str = "OpenClaw's write lock names no visible running process; it";
const COMPACTING: &str = "Claude Code is compacting it; its copy of the file";

/// That what another program made counts as stale once it is old enough.
fn left_behind(what: &str, age: Duration, grace: Duration, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{what} counts as stale after {}, and is {} old", TimeSpan(grace), TimeSpan(age))
}

/// What a person says where an agent may be at work.
const NO_AGENT: &str = "pass --settle 0 if no agent is running";

fn unanswered(awaits: Awaits) -> &'static str {
    match awaits {
        Awaits::Tool => "a tool call has no result yet",
        Awaits::Model => "the model has not answered yet",
    }
}

/// Why there is such a time, or what sets it.
fn settles(set_by: SetBy) -> &'static str {
    match set_by {
        SetBy::Options => NO_AGENT,
        SetBy::Configuration => "`settle` in the configuration",
        SetBy::Recovery => {
            "so that the agent can shorten the session itself; `tailor recover FILE` does it now"
        }
    }
}

const WITHHELD: &str =
    "another program keeps it from being opened or replaced, as virus scanners do for a moment";

const OLD_FILE_OPEN: &str = "a program still has the replaced file open; its lines are merged, and nothing else is changed \
    until it closes that file";

/// That an agent may have the file open.
fn runs(pid: u32, name: &str, set_by: SetBy) -> String {
    let way_out = no_agent(set_by);
    format!(
        "{name} is running (process {pid}), and this system does not say which files it has open; {way_out}"
    )
}

/// What sets the time for older history.
fn settles_stale(set_by: SetBy) -> &'static str {
    match set_by {
        SetBy::Options => "pass --settle-stale 0 to change it now",
        SetBy::Configuration | SetBy::Recovery => "`settle_stale` in the configuration",
    }
}

/// What to say if no agent is running.
fn no_agent(set_by: SetBy) -> &'static str {
    match set_by {
        SetBy::Options => NO_AGENT,
        SetBy::Configuration | SetBy::Recovery => {
            "set `settle = 0` in the configuration if no agent ever runs"
        }
    }
}

/// That a process has the file open which does not show it.
fn held_open(is_root: bool) -> String {
    let hint = if is_root { "from here" } else { "to this user; try as root" };
    format!("another process has it open for writing (not visible {hint})")
}

/// That processes do not show what they have open, and what can be done.
fn unseen(processes: usize, quiet: Duration, wanted: Duration, is_root: bool) -> String {
    let who = match processes {
        1 => "1 process hides which files it has open".to_string(),
        _ => format!("{processes} processes hide which files they have open"),
    };
    let (quiet, wanted) = (TimeSpan(quiet), TimeSpan(wanted));
    // In a container even root does not see all of them.
    let root = if is_root { "" } else { "root sees more; " };
    format!(
        "{who}: modified {quiet} ago, waiting for {wanted} without writes ({root}to repair a copy now: tailor fix \
         --copy-to DIR FILE)"
    )
}

/// How a person sets what makes a file wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// By an option of the command, for this file.
    Options,
    /// By a key of the daemon's configuration, for all files.
    Configuration,
    /// By the daemon, which recovers a session later than it repairs one.
    Recovery,
}

struct Description<'a> {
    deferral: &'a Deferral,
    set_by: SetBy,
    with_retry: bool,
}

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deferral.reason(self.set_by, f)?;
        // The daemon waits by itself.
        if let (SetBy::Options, Some(who)) = (self.set_by, self.deferral.held_by()) {
            write!(f, "; quit {who} first")?;
        }
        // No time makes it worth more.
        if !self.with_retry || matches!(self.deferral, Deferral::NotWorth { .. }) {
            return Ok(());
        }
        write!(f, "; retry in {}", TimeSpan(self.deferral.retry_after()))
    }
}

impl fmt::Display for Deferral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(SetBy::Options).fmt(f)
    }
}

/// A length of time for people: whole units, rounded up.
struct TimeSpan(Duration);

impl fmt::Display for TimeSpan {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unseen_is_told_with_what_helps() {
        let told = |processes, is_root| {
            unseen(processes, Duration::from_secs(3), Duration::from_secs(7 * 86_400), is_root)
        };
        let one = told(1, true);
        assert!(one.starts_with("1 process hides which files it has open: modified 3 s ago"), "{one}");
        assert!(one.contains("waiting for 7 days") && one.contains("tailor fix --copy-to DIR"), "{one}");
        assert!(!one.contains("root"), "root cannot become root: {one}");
        let some = told(2, false);
        assert!(some.starts_with("2 processes hide which files they have open: "), "{some}");
        assert!(some.contains("root sees more"), "{some}");
    }
}
