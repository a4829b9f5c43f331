//! What stands for an open folder.

/// An open folder.
pub(crate) type Handle = std::fs::File;
