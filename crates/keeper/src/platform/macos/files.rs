//! Atomic exchange of names. There are no files without a name, and only the last part of a folder's path is protected
//! against links.

use rustix::fs::RenameFlags;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;

pub(crate) use crate::platform::other::files::{
    LOOK, copy_flags, create_unnamed, give_back_memory, name_it, open_folder, temporary, temporary_folder,
};

/// Exchanges two names in a folder atomically (`renameatx_np` with `RENAME_SWAP`; APFS has it, HFS+ and most network file
/// systems do not).
pub(crate) fn exchange(folder: &File, one: &OsStr, other: &OsStr) -> Result<(), Errno> {
    rustix::fs::renameat_with(folder, one, folder, other, RenameFlags::EXCHANGE)
}
