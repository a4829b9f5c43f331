//! What stands for an open folder.

use std::fs::File;
use std::path::PathBuf;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(super) file: File,
    /// Without links, and in the form without a length limit.
    pub(super) path: PathBuf,
}
