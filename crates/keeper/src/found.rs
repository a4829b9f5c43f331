//! What there is to look at.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file to look at, or a session in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file, or `FILE#SESSION`.
    pub path: PathBuf,
    /// The folder that was asked for; `None` if the file itself was.
    pub root: Option<PathBuf>,
    /// When the session was last written, if a store says so.
    pub written: Option<SystemTime>,
}

impl Found {
    pub(crate) fn file(path: &Path, root: Option<&Path>) -> Self {
        Self { path: path.to_path_buf(), root: root.map(Path::to_path_buf), written: None }
    }
}
