//! Recognises files on a network by their path without links, which begins with the name of a server.

use std::fs::File;
use std::path::{Component, Path, Prefix};

/// The kind of network file system of a file or folder; `None` if it is local, or does not exist.
pub fn network(path: &Path) -> Option<&'static str> {
    let real = path.canonicalize().ok()?;
    let Some(Component::Prefix(prefix)) = real.components().next() else { return None };
    matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..)).then_some("a network share")
}

/// This matters only where there are leases.
pub(crate) fn holds(_: &File) -> bool {
    false
}
