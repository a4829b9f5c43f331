//! Who owns a file, and who else may change it: user ids, group ids and the mode.

use crate::base::refusal::Refusal;
use crate::platform::acting;
use rustix::process::geteuid;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A user.
pub(crate) type User = u32;

/// With this bit, other users can write to a folder, but cannot rename files that are not theirs.
const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
/// The rights of others than the owner.
const OTHERS: u32 = 0o077;

/// Who owns a file.
pub(crate) fn user(metadata: &Metadata) -> User {
    metadata.uid()
}

/// The number of the user who owns a file.
#[cfg_attr(
    not(feature = "stores"),
    expect(dead_code, reason = "only an owner of stores puts it into a name")
)]
#[allow(clippy::unnecessary_wraps, reason = "users of other systems have none, or all have one")]
pub(crate) fn number(metadata: &Metadata) -> Option<u32> {
    Some(metadata.uid())
}

/// Whether we may do everything.
pub(crate) fn may_all() -> bool {
    geteuid().is_root() || acting::are_root()
}

/// Whether a file is ours.
pub(crate) fn is_ours(_: &File, metadata: &Metadata) -> bool {
    metadata.uid() == geteuid().as_raw()
}

/// Whether a file is ours, and other users cannot read or write it.
pub(crate) fn is_private(file: &File, metadata: &Metadata) -> bool {
    is_ours(file, metadata) && metadata.mode() & OTHERS == 0
}

/// Whether more users than the owner may write to a file. An access list shows as the group's.
pub(crate) fn others_may_write(metadata: &Metadata) -> bool {
    metadata.mode() & (OTHERS_WRITE | GROUP_WRITES) != 0
}

/// Whether a file is ours or of the owner of another one.
pub(crate) fn is_ours_or_of(file: &File, metadata: &Metadata, other: Option<&Metadata>) -> bool {
    is_ours(file, metadata) || other.is_some_and(|other| other.uid() == metadata.uid())
}

/// Why a file in this folder is not ours to replace.
pub(crate) fn refusal(_: &File, metadata: &Metadata, folder: &Path) -> Option<Refusal> {
    let owner = metadata.uid();
    if may_all() && (acting::IS_KNOWN || owner == 0) {
        // A folder that cannot be examined was removed by another user, which is as bad.
        let loose = loose_folder(folder, metadata);
        return loose.unwrap_or_else(|_| Some(folder.join(""))).map(Refusal::LooseFolder);
    }
    (owner != geteuid().as_raw()).then_some(Refusal::ForeignOwner(owner))
}

/// A folder on the path of a file that a third user may rename or replace: neither root, nor the owner of the file, nor
/// a member of the file's group.
fn loose_folder(folder: &Path, file: &Metadata) -> io::Result<Option<PathBuf>> {
    for folder in folder.ancestors() {
        let found = std::fs::symlink_metadata(folder)?;
        let (user, mode) = (found.uid(), found.mode());
        let group_may = mode & GROUP_WRITES != 0 && found.gid() != 0 && found.gid() != file.gid();
        let others_may = mode & STICKY == 0 && (mode & OTHERS_WRITE != 0 || group_may);
        if others_may || (user != 0 && user != file.uid()) {
            return Ok(Some(folder.to_path_buf()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_that_a_third_user_may_rename_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap().join("f");
        create_dir(&folder).unwrap();
        let path = folder.join("s.jsonl");
        std::fs::write(&path, "x").unwrap();
        let file = std::fs::metadata(&path).unwrap();
        let loose = |mode| {
            set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
            loose_folder(&folder, &file).unwrap()
        };
        assert_eq!(loose(0o755), None);
        assert_eq!(loose(0o1777), None);
        assert_eq!(loose(0o777), Some(folder.clone()));
    }
}
