//! What the new file takes over from the old one besides the text: owner, mode, access list, attributes, times.

use crate::platform::acting::Acting;
use crate::platform::files::copy_flags;
use rustix::fs::{Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Longest list of attributes or value of one, in bytes (the kernel's own limit is as large).
const ATTRIBUTE_BYTES_MAX: usize = 64 * 1024;

/// Gives `new` the owner, mode, access list, extended attributes and inode flags of `old`. Rights are never widened on the way:
/// the mode comes last, and a new file is 0600 before.
pub(crate) fn take_over(old: &File, new: &File) -> io::Result<()> {
    let (from, to) = (old.metadata()?, new.metadata()?);
    if (from.uid(), from.gid()) != (to.uid(), to.gid()) {
        let give = || std::os::unix::fs::fchown(new, Some(from.uid()), Some(from.gid()));
        // A user may give a file to their own groups alone, and root to any. It is a file of ours that has no name yet.
        let given = give().or_else(|_| {
            let _own = Acting::ourselves();
            give()
        });
        given.map_err(|cause| unmapped(cause, &from))?;
    }
    copy_attributes(old, new)?;
    copy_flags(old, new)?;
    new.set_permissions(Permissions::from_mode(from.mode() & 0o7777))
}

/// Gives `new` the times of the old file: session pickers sort by them, and retention deletes by them.
pub(crate) fn set_times(new: &File, like: &Metadata) -> io::Result<()> {
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time(like.atime(), like.atime_nsec()),
        last_modification: time(like.mtime(), like.mtime_nsec()),
    };
    Ok(rustix::fs::futimens(new, &times)?)
}

/// Says what `EINVAL` means here: in a user namespace (a rootless container) some users and groups have no number.
fn unmapped(cause: io::Error, from: &Metadata) -> io::Error {
    if Errno::from_io_error(&cause) != Some(Errno::INVAL) {
        return cause;
    }
    io::Error::other(format!(
        "its user {} or group {} does not exist in this container, so no new file can belong to it (run tailor outside \
         the container, or use --copy-to DIR)",
        from.uid(),
        from.gid()
    ))
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
            // Only the system may set these, and it does so itself.
            Err(_) if name.starts_with(b"security.") || name.starts_with(b"trusted.") => {}
            Err(Errno::NODATA) => {}
            other => other?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "linux")]
    use rustix::fs::IFlags;

    #[cfg(target_os = "linux")]
    #[test]
    fn inode_flags_are_taken_over() {
        let (old, new) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let set = |flags| {
            rustix::fs::ioctl_getflags(&old).and_then(|own| rustix::fs::ioctl_setflags(&old, own | flags))
        };
        if set(IFlags::NOATIME | IFlags::NODUMP).is_err() {
            // Bypasses the harness, which hides the output of tests that pass.
            let _ = io::Write::write_all(&mut io::stderr(), b"SKIPPED: there are no inode flags here\n");
            return;
        }
        take_over(&old, &new).unwrap();
        let flags = rustix::fs::ioctl_getflags(&new).unwrap();
        assert!(flags.contains(IFlags::NOATIME | IFlags::NODUMP), "{flags:?}");
    }

    #[test]
    fn a_group_that_is_not_mapped_is_named() {
        let metadata = std::env::temp_dir().metadata().unwrap();
        let said = unmapped(Errno::INVAL.into(), &metadata).to_string();
        assert!(
            said.contains(&format!("group {}", metadata.gid())) && said.contains("--copy-to DIR"),
            "{said}"
        );
        assert_eq!(unmapped(Errno::PERM.into(), &metadata).kind(), io::ErrorKind::PermissionDenied);
    }
}
