//! Everything that makes the loop act.

use crate::daemon::keeping::KeepReport;
use crate::daemon::look::LookReport;
use crate::daemon::queue::RootId;
use crate::status::Status;
use keeper::Stamp;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// The loop acts on these events and on the passing of time, and on nothing else.
#[derive(Debug)]
pub(crate) enum Event {
    /// A file has changed.
    Touched { root: RootId, path: PathBuf },
    /// A process that had a file open for writing has closed it.
    Closed { root: RootId, path: PathBuf },
    /// A process that a file waits for has ended.
    Exited(u32),
    /// A walk has found a file.
    Found { root: RootId, path: PathBuf, stamp: Stamp, quiet: Duration, walk: u32 },
    /// A walk has ended; `complete` says whether it saw everything.
    Walked { root: RootId, walk: u32, complete: bool, why: Why },
    /// The state of a root.
    Root { root: RootId, state: RootState, folders: usize },
    /// A known agent's folder may have appeared.
    Roots,
    /// New folders of agents cannot be noticed at once, for this reason.
    Blind(String),
    /// A problem inside a root; the rest of it is still watched.
    Trouble { root: RootId, text: String },
    /// A worker has looked at a file.
    Looked(Box<LookReport>),
    /// A worker has cleared the vault.
    Cleared { removed_bytes: u64, kept_bytes: u64, errors: Vec<String> },
    /// What was kept of sessions.
    Kept(KeepReport),
    /// A client asks for the status.
    Ask(SyncSender<StatusAnswer>),
    /// Reload the configuration.
    Reload,
    /// End, within a moment.
    Stop,
}

/// Why a root was walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The time between walks is over.
    Time,
    /// The root has appeared, or we have just started.
    Begin,
    /// The kernel had to drop events.
    Overflow,
}

/// How a root is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RootState {
    /// The kernel reports changes.
    Watched,
    /// It is walked again and again, for this reason.
    Polled(String),
    /// It does not exist yet.
    Missing,
    /// It cannot be read.
    Unreadable(String),
}

/// The state of the daemon.
#[derive(Debug)]
pub(crate) struct StatusAnswer {
    pub(crate) status: Status,
    /// In the text format of Prometheus.
    pub(crate) metrics: String,
}
