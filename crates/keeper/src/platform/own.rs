//! Where our own files are.

use crate::platform::own_folder;
use std::path::PathBuf;

/// A kind of files of ours.
#[derive(Clone, Copy, Debug)]
pub enum Own {
    /// Originals, which are kept.
    State,
    /// What only saves work, and may be deleted.
    Cache,
    /// What people have set.
    Config,
}

impl Own {
    /// Their folder, in that of the user; `None` if no home folder is known.
    pub fn folder(self) -> Option<PathBuf> {
        own_folder::find(self)
    }
}
