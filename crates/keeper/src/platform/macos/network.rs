//! Which files are on a network.

use super::text;
use rustix::fs::StatFs;
use std::fs::File;
use std::path::Path;

/// File systems that Apple's system knows and that are on a network.
const KINDS: [&str; 6] = ["afpfs", "cifs", "ftp", "nfs", "smbfs", "webdav"];

/// What kind of network file system a file or folder is on; `None` if it is on this machine, or there is nothing.
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
