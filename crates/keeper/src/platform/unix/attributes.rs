//! What the new file takes over from the old one besides the text: owner, mode, access list, attributes, times.

use crate::platform::acting::Acting;
use crate::platform::files::copy_flags;
use rustix::fs::{Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Longest list of attributes or value of one, in bytes (the kernel's own limit is as large).
const ATTRIBUTE_BYTES_MAX: usize = 64 * 1024;

/// The owner, mode, access list and extended attributes of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attributes {
    owner: (u32, u32),
    mode: u32,
    /// Names and values. The access list is one of them. No record keeps them.
    #[serde(skip)]
    extended: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Attributes {
    /// Those of a file as they are now.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        let (owner, mode) = ((found.uid(), found.gid()), found.mode() & 0o7777);
        Ok(Self { owner, mode, extended: extended(file)? })
    }

    /// Whether a file belongs to the user to whom theirs did.
    pub(crate) fn are_of_the_owner_of(&self, file: &File) -> io::Result<bool> {
        Ok(file.metadata()?.uid() == self.owner.0)
    }

    /// Gives them to a file of ours. Rights are never widened on the way: the mode comes last, and a new file is 0600 before.
    pub(crate) fn give(&self, new: &File) -> io::Result<()> {
        let (user, group) = self.owner;
        let now = Self::of(new)?;
        if self.owner != now.owner {
            let give = || std::os::unix::fs::fchown(new, Some(user), Some(group));
            // A user may give a file to their own groups alone, and root to any. It is a file of ours.
            let given = give().or_else(|_| {
                let _own = Acting::ourselves();
                give()
            });
            given.map_err(|cause| unmapped(cause, self.owner))?;
        }
        for (name, value) in
            self.extended.iter().filter(|(name, value)| now.extended.get(*name) != Some(value))
        {
            unless_systems(name, rustix::fs::fsetxattr(new, name.as_slice(), value, XattrFlags::empty()))?;
        }
        for name in now.extended.keys().filter(|name| !self.extended.contains_key(*name)) {
            unless_systems(name, rustix::fs::fremovexattr(new, name.as_slice()))?;
        }
        new.set_permissions(Permissions::from_mode(self.mode))
    }
}

/// Gives `new` the owner, mode, access list, extended attributes and inode flags of `old`. Returns them.
pub(crate) fn take_over(old: &File, new: &File) -> io::Result<Attributes> {
    let attributes = Attributes::of(old)?;
    copy_flags(old, new)?;
    attributes.give(new)?;
    Ok(attributes)
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
fn unmapped(cause: io::Error, (user, group): (u32, u32)) -> io::Error {
    if Errno::from_io_error(&cause) != Some(Errno::INVAL) {
        return cause;
    }
    io::Error::other(format!(
        "its user {user} or group {group} does not exist in this container, so no new file can belong to it (run tailor outside \
         the container, or use --copy-to DIR)"
    ))
}

/// The extended attributes of a file; none where there are none.
fn extended(file: &File) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut names = vec![0; ATTRIBUTE_BYTES_MAX];
    let length = match rustix::fs::flistxattr(file, &mut names) {
        Ok(length) => length,
        Err(Errno::NOTSUP) => return Ok(BTreeMap::new()),
        Err(errno) => return Err(errno.into()),
    };
    let mut all = BTreeMap::new();
    for name in names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
        match rustix::fs::fgetxattr(file, name, &mut value) {
            Ok(length) => drop(all.insert(name.to_vec(), value[..length].to_vec())),
            Err(Errno::NODATA) => {}
            Err(errno) => unless_systems(name, Err(errno))?,
        }
    }
    Ok(all)
}

/// Only the system may set some attributes, and it does so itself.
fn unless_systems(name: &[u8], done: rustix::io::Result<()>) -> io::Result<()> {
    match done {
        Err(_) if name.starts_with(b"security.") || name.starts_with(b"trusted.") => Ok(()),
        done => Ok(done?),
    }
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
        let owner = (metadata.uid(), metadata.gid());
        let said = unmapped(Errno::INVAL.into(), owner).to_string();
        assert!(
            said.contains(&format!("group {}", metadata.gid())) && said.contains("--copy-to DIR"),
            "{said}"
        );
        assert_eq!(unmapped(Errno::PERM.into(), owner).kind(), io::ErrorKind::PermissionDenied);
    }
}
