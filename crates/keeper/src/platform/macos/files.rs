//! Clones of files. There are no files without a name, and only the last part of a folder's path is protected
//! against links.

use rustix::fs::{CWD, CloneFlags, Mode, OFlags};
use std::fs::File;
use std::io;
use std::path::Path;

pub(crate) use crate::platform::other::files::{
    LOOK, copy_flags, create_unnamed, give_back_memory, name_it, open_folder, temporary, temporary_folder,
};

/// Makes a private file that shares the blocks of another one, where the file system can (APFS). The system copies the mode and
/// the extended attributes as well, but not the access list.
pub(super) fn clone(from: &File, to: &Path) -> io::Result<File> {
    rustix::fs::fclonefileat(from, CWD, to, CloneFlags::NOFOLLOW | CloneFlags::NOOWNERCOPY)?;
    let open = || {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        // The old mode may not let its owner write.
        rustix::fs::chmod(to, Mode::RUSR | Mode::WUSR)?;
        Ok(rustix::fs::open(to, flags, Mode::empty())?.into())
    };
    open().inspect_err(|_: &io::Error| drop(std::fs::remove_file(to)))
}
