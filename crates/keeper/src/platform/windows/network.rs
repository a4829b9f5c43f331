//! Recognises files on a network by their path without links, which begins with the name of a server.

use super::metadata;
use std::fs::File;
use std::path::{Component, Path, Prefix};

/// The kind of network file system of a file or folder; `None` if it is local, or does not exist.
pub fn network(path: &Path) -> Option<&'static str> {
    is_share(&path.canonicalize().ok()?).then_some("a network share")
}

pub(crate) fn holds(file: &File) -> bool {
    metadata::path_of(file).is_ok_and(|path| is_share(&path))
}

fn is_share(path: &Path) -> bool {
    let Some(Component::Prefix(prefix)) = path.components().next() else { return false };
    matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..))
}
