//! Replacing a file that others append to: opened and locked, read, put in place, brought back, finished.

pub(crate) mod content;
pub(crate) mod leftover;
pub(crate) mod replace;
pub(crate) mod restore;
pub(crate) mod snapshot;
