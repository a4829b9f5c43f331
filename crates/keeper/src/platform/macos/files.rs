//! Clones of files. There are no files without a name, and only the last part of a folder's path is protected
//! against links.

use rustix::fs::{AtFlags, CloneFlags, Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::io;

pub(crate) use crate::platform::other::files::{
    LOOK, copy_flags, create_unnamed, give_back_memory, name_it, open_folder, temporary, temporary_folder,
};

/// Makes a private file that shares the blocks of another one, where the file system can (APFS). The system copies the mode and
/// the extended attributes as well, but not the access list.
pub(super) fn clone(from: &File, folder: &File, name: &OsStr) -> io::Result<File> {
    rustix::fs::fclonefileat(from, folder, name, CloneFlags::NOFOLLOW | CloneFlags::NOOWNERCOPY)?;
    let open = || {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        // The old mode may not let its owner write.
        rustix::fs::chmodat(folder, name, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
        Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?.into())
    };
    open().inspect_err(|_: &io::Error| {
        let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
    })
}
