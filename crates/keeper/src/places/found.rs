//! What there is to look at.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file to look at, or a session in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// The file, or `FILE#SESSION`.
    pub path: PathBuf,
    /// The folder that was asked for; `None` if the file itself was.
    pub root: Option<PathBuf>,
    /// When the session was last written, if a store says so.
    pub written: Option<SystemTime>,
}

impl FoundFile {
    pub(crate) fn file(path: &Path, root: Option<&Path>) -> Self {
        Self { path: path.to_path_buf(), root: root.map(Path::to_path_buf), written: None }
    }
}

/// What fills a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// The database.
    pub file: PathBuf,
    /// The agent that owns it.
    pub agent: &'static str,
    /// How long the file is.
    pub bytes: u64,
    /// How many of its bytes hold nothing.
    pub free: u64,
    /// How long its log (`-wal`) is.
    pub log: u64,
    /// The bytes of each table with its indexes, or about those of its rows; the largest first.
    pub tables: Vec<(String, u64)>,
    /// Whether the tables were counted, and not estimated.
    pub is_exact: bool,
    /// What is remarkable, and what helps.
    pub remarks: Vec<String>,
}

/// What was taken out of a database beside its sessions, and how long it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// In how many sessions there were superseded rows.
    pub sessions: u64,
    /// How many these were.
    pub rows: u64,
    /// How many bytes of data they held.
    pub bytes: u64,
    /// The runs that keep them, one for each session.
    pub runs: Vec<String>,
    /// How long the database is.
    pub size: u64,
    /// How many of its bytes hold nothing now.
    pub free: u64,
}
