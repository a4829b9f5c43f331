//! How things are, as `tailor status` gets it: one JSON object. Fields are added over time, never renamed.

use serde::{Deserialize, Serialize};

/// The state of a daemon.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// Of the program.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// `observe` or `enforce`.
    pub mode: String,
    /// How long it has been running.
    pub uptime_seconds: u64,
    /// What it looks after.
    pub roots: Vec<RootStatus>,
    /// How many files it knows.
    pub files: u64,
    /// How many of them are to be looked at, now or later.
    pub waiting: u64,
    /// How many are being looked at.
    pub at_work: u64,
    /// How many are left alone for a while, because they keep failing or were mended in vain.
    pub tripped: u64,
    /// How many wait for their surroundings (room on a disk, rights), and are tried again every few minutes.
    #[serde(default)]
    pub hindered: u64,
    /// Sessions of which their agents say that they are too long; the first of them.
    #[serde(default)]
    pub too_long: Vec<String>,
    /// How many looks read a file.
    pub looks: u64,
    /// How many of them had to read no more than what was appended.
    #[serde(default)]
    pub same: u64,
    /// How much they read together, in bytes.
    #[serde(default)]
    pub read_bytes: u64,
    /// How many of them mended it.
    pub fixed: u64,
    /// By how much that made files shorter.
    pub saved_bytes: u64,
    /// How many findings there are now.
    pub findings: u64,
    /// How much shorter files would be without them.
    pub saves_bytes: u64,
    /// Files that are put off, refused or left alone, and why; the first of them.
    pub troubles: Vec<Trouble>,
    /// Why the configuration that is in the files now is not in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_error: Option<String>,
}

/// A folder that is looked after.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RootStatus {
    /// Where it is.
    pub path: String,
    /// `watched`, `polled`, `missing`, `unreadable`, `taken` or `new`.
    pub state: String,
    /// Why it is not watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many folders the kernel watches.
    pub folders: u64,
    /// How many files are known in it.
    pub files: u64,
}

/// A file about which something is to be said.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Trouble {
    /// The file.
    pub path: String,
    /// `deferred`, `refused`, `error` or `tripped`; `fixed` if lines that came late still wait.
    pub outcome: String,
    /// Why.
    pub reason: String,
    /// How long ago the file was looked at, which is when that was so.
    #[serde(default)]
    pub looked_seconds_ago: u64,
}
