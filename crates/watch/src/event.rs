//! Everything that can make the loop do something.

use crate::look::Report;
use crate::queue::RootId;
use crate::status::Status;
use keeper::Stamp;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// The list is closed: nothing else reaches the loop but the passing of time.
#[derive(Debug)]
pub(crate) enum Event {
    /// Something happened to a file.
    Touched { root: RootId, path: PathBuf },
    /// Somebody who had a file open for writing has closed it.
    Closed { root: RootId, path: PathBuf },
    /// A process that a file waits for has ended.
    Exited(u32),
    /// A walk has come across a file.
    Found { root: RootId, path: PathBuf, stamp: Stamp, quiet: Duration, walk: u32 },
    /// A walk is over; `complete` if it has seen everything.
    Walked { root: RootId, walk: u32, complete: bool, why: Why },
    /// How it stands with a root.
    Root { root: RootId, state: RootState, folders: usize },
    /// A known agent's folder may have come.
    Roots,
    /// That cannot be seen at once, because of this.
    Blind(String),
    /// Something is wrong in a root; the rest of it goes on.
    Trouble { root: RootId, text: String },
    /// A worker has looked at a file.
    Looked(Box<Report>),
    /// A worker has cleared the vault.
    Cleared { removed_bytes: u64, kept_bytes: u64, errors: Vec<String> },
    /// Somebody asks how things are.
    Ask(SyncSender<Answer>),
    /// Read the configuration anew.
    Reload,
    /// Finish what is at hand, and end.
    Stop,
}

/// Why a root was walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It was time.
    Time,
    /// It appeared, or we have just begun.
    Begin,
    /// The kernel had to drop events.
    Overflow,
}

/// How a root is looked after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RootState {
    /// The kernel tells what happens.
    Watched,
    /// It is walked again and again, because of this.
    Polled(String),
    /// It is not there yet.
    Missing,
    /// It cannot be read.
    Unreadable(String),
}

/// How things are.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: Status,
    /// In the text format of Prometheus.
    pub(crate) metrics: String,
}
