//! The daemon's state, as `tailor status` receives it: one JSON object. Fields are added over time, never renamed.

use serde::{Deserialize, Serialize};

/// The state of a daemon.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// `observe` or `enforce`.
    pub mode: String,
    /// `observe` or `enforce` for sessions in databases.
    #[serde(default)]
    pub stores_mode: String,
    /// Time since it was started.
    pub uptime_seconds: u64,
    /// The roots that it watches.
    pub roots: Vec<RootStatus>,
    /// How many files it knows.
    pub files: u64,
    /// How many of them will be looked at, now or later.
    pub waiting: u64,
    /// How many are being looked at now.
    pub at_work: u64,
    /// How many rest for a while, because they keep failing or were repaired without lasting effect.
    pub tripped: u64,
    /// How many wait for something else, such as space on a disk or permissions, and are retried every few minutes.
    #[serde(default)]
    pub hindered: u64,
    /// The first sessions that are too long, as their agents say.
    #[serde(default)]
    pub too_long: Vec<String>,
    /// How many looks read a file.
    pub looks: u64,
    /// How many of them only had to read an append.
    #[serde(default)]
    pub same: u64,
    /// How many bytes they read in total.
    #[serde(default)]
    pub read_bytes: u64,
    /// How many of them repaired it.
    pub fixed: u64,
    /// How many bytes that saved.
    pub saved_bytes: u64,
    /// How many findings there are now.
    #[serde(rename = "findings_total")]
    pub findings: u64,
    /// How many bytes repairs of them would save.
    pub saves_bytes: u64,
    /// `on` or `off`: whether what sessions become is kept.
    #[serde(default)]
    pub keep_mode: String,
    /// How many bytes of it there are.
    #[serde(default)]
    pub archive_bytes: u64,
    /// Why something could not be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_error: Option<String>,
    /// The first files that are deferred, refused or resting, with the reason.
    pub troubles: Vec<FileTrouble>,
    /// Why the configuration in the files is not in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_error: Option<String>,
}

/// A watched folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RootStatus {
    /// Its path.
    pub path: String,
    /// `watched`, `polled`, `missing`, `unreadable`, `taken` or `new`.
    #[serde(rename = "watch_state")]
    pub state: String,
    /// Why it is not watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many folders the kernel watches.
    pub folders: u64,
    /// How many files are known in it.
    pub files: u64,
}

/// A file with a problem.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FileTrouble {
    /// The file.
    pub path: String,
    /// `deferred`, `refused`, `error` or `tripped`; `fixed` if lines appended during the swap are still queued.
    pub outcome: String,
    /// The reason.
    pub reason: String,
    /// Time since the file was looked at, which is when the reason held.
    #[serde(default)]
    pub looked_seconds_ago: u64,
}
