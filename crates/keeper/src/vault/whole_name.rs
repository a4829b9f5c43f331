//! What whole old files are called in the vault.

use crate::disk::folder::Folder;
use std::io::{self, ErrorKind};

const ENDING: &str = ".whole";

/// The name of the old file of a run.
pub(super) fn name_of(run: &str) -> String {
    format!("{run}{ENDING}")
}

/// The run whose old file has this name.
pub(super) fn run_of(name: &str) -> Option<&str> {
    name.strip_suffix(ENDING).filter(|_| !Folder::is_unfinished(name))
}

/// Removes the old file of a run, if it is there.
pub(super) fn remove(folder: &Folder, run: &str) -> io::Result<()> {
    match folder.remove(name_of(run)) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
