//! Atomic exchange of names. There are no files without a name, and only the last part of a folder's path is protected
//! against links.

use crate::platform::unix::unless_lacking;
use rustix::fs::RenameFlags;
use std::ffi::OsStr;
use std::fs::File;
use std::io;

pub(crate) use crate::platform::other::files::{
    LOOK, copy_flags, create_unnamed, give_back_memory, name_it, open_folder, temporary, temporary_folder,
};

/// Exchanges two names in a folder atomically (`renameatx_np` with `RENAME_SWAP`); `false` on file systems without that, as
/// HFS+ and most of a network are.
pub(crate) fn exchange(folder: &File, one: &OsStr, other: &OsStr) -> io::Result<bool> {
    unless_lacking(rustix::fs::renameat_with(folder, one, folder, other, RenameFlags::EXCHANGE))
}
