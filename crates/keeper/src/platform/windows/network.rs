//! Which files are on a network: those whose path without links begins with the name of a server.

use super::facts;
use std::fs::File;
use std::path::{Component, Path, Prefix};

/// What kind of network file system a file or folder is on; `None` if it is on this machine, or there is nothing.
pub fn network(path: &Path) -> Option<&'static str> {
    is_share(&path.canonicalize().ok()?).then_some("a network share")
}

pub(crate) fn holds(file: &File) -> bool {
    facts::path_of(file).is_ok_and(|path| is_share(&path))
}

fn is_share(path: &Path) -> bool {
    let Some(Component::Prefix(prefix)) = path.components().next() else { return false };
    matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..))
}
