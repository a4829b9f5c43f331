//! What a new file takes over from the old one besides its text: owner, mode, access list, attributes, times.

use rustix::fs::{Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Longest list of attributes or value of one, in bytes (the kernel's own limit is as large).
const ATTRIBUTE_BYTES_MAX: usize = 64 * 1024;

/// Gives `new` the owner, mode, access list and extended attributes of `old`. Rights are never widened on the way:
/// the mode comes last, and a new file is 0600 before.
pub(crate) fn take_over(old: &File, new: &File) -> io::Result<()> {
    let (from, to) = (old.metadata()?, new.metadata()?);
    if (from.uid(), from.gid()) != (to.uid(), to.gid()) {
        std::os::unix::fs::fchown(new, Some(from.uid()), Some(from.gid()))?;
    }
    copy_attributes(old, new)?;
    new.set_permissions(Permissions::from_mode(from.mode() & 0o7777))
}

/// Gives `new` these times: pickers sort by them, retention deletes by them.
pub(crate) fn set_times(new: &File, like: &Metadata) -> io::Result<()> {
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time(like.atime(), like.atime_nsec()),
        last_modification: time(like.mtime(), like.mtime_nsec()),
    };
    Ok(rustix::fs::futimens(new, &times)?)
}

fn copy_attributes(old: &File, new: &File) -> io::Result<()> {
    let mut names = vec![0; ATTRIBUTE_BYTES_MAX];
    let length = match rustix::fs::flistxattr(old, &mut names) {
        Ok(length) => length,
        Err(Errno::NOTSUP) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    for name in names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
        let copied = rustix::fs::fgetxattr(old, name, &mut value)
            .and_then(|length| rustix::fs::fsetxattr(new, name, &value[..length], XattrFlags::empty()));
        match copied {
            // The system gives these itself, and only it may.
            Err(_) if name.starts_with(b"security.") || name.starts_with(b"trusted.") => {}
            Err(Errno::NODATA) => {}
            other => other?,
        }
    }
    Ok(())
}
