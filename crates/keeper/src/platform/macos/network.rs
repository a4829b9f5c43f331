//! Recognises network file systems.

use super::text;
use rustix::fs::StatFs;
use std::fs::File;
use std::path::Path;

/// Apple's network file systems.
const KINDS: [&str; 6] = ["afpfs", "cifs", "ftp", "nfs", "smbfs", "webdav"];

/// The kind of network file system of a file or folder; `None` if it is local, or does not exist.
pub fn network(path: &Path) -> Option<&'static str> {
    kind(&rustix::fs::statfs(path).ok()?)
}

pub(crate) fn holds(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|found| kind(&found).is_some())
}

fn kind(found: &StatFs) -> Option<&'static str> {
    let name = text(&found.f_fstypename);
    let local = found.f_flags & libc::MNT_LOCAL as u32 != 0;
    let known = KINDS.into_iter().find(|kind| kind.as_bytes() == name);
    known.or((!local).then_some("remote"))
}
