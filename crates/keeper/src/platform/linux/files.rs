//! Files without a name, names that are exchanged, folders that are reached through no link, and inode flags.

use rustix::fs::{AtFlags, CWD, IFlags, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Where our own open files have a name.
const OPEN_FILES: &str = "/proc/self/fd";

/// Mode of our own files.
const FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Inode flags that a person may have set and that can be given to a file with something in it (`chattr +Ads…`).
const FLAGS: IFlags = IFlags::NOATIME
    .union(IFlags::NODUMP)
    .union(IFlags::SYNC)
    .union(IFlags::SECURE_REMOVAL)
    .union(IFlags::UNRM)
    .union(IFlags::COMPRESSED);

/// How a file or folder is opened to find out what it is, also where it may not be read.
pub(crate) const LOOK: OFlags = OFlags::PATH;

/// Makes a file in a folder that has no name yet, so that nothing is left of it if we die. Without `/proc`, in which the
/// file is found when it gets its name, there is none.
pub(crate) fn create_unnamed(folder: &File) -> io::Result<File> {
    if !Path::new(OPEN_FILES).exists() {
        return Err(ErrorKind::Unsupported.into());
    }
    Ok(rustix::fs::openat(folder, ".", OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC, FILE)?.into())
}

/// Gives such a file a name.
pub(crate) fn name_it(file: &File, folder: &File, name: &OsStr) -> io::Result<()> {
    let from = format!("{OPEN_FILES}/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(CWD, from, folder, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// A temporary file that nobody else can open.
pub(crate) fn temporary() -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    Ok(rustix::fs::open(std::env::temp_dir(), flags, FILE)?.into())
}

/// Exchanges two names in a folder at once.
pub(crate) fn exchange(folder: &File, one: &OsStr, other: &OsStr) -> Result<(), Errno> {
    rustix::fs::renameat_with(folder, one, folder, other, RenameFlags::EXCHANGE)
}

/// Opens a folder by a path without links in it.
pub(crate) fn open_folder(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve) {
        // Kernels before 5.6, and sandboxes that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty()),
        other => other,
    }
}

/// Lets go of what the kernel keeps of a file in memory. For the old one that has to be done when it loses its last name,
/// where everybody would wait for it.
pub(crate) fn give_back_memory(old: &File) {
    let _ = rustix::fs::fadvise(old, 0, None, rustix::fs::Advice::DontNeed);
}

/// Many file systems have no inode flags.
pub(crate) fn copy_flags(old: &File, new: &File) -> io::Result<()> {
    let (Ok(from), Ok(to)) = (rustix::fs::ioctl_getflags(old), rustix::fs::ioctl_getflags(new)) else {
        return Ok(());
    };
    let wanted = (to - FLAGS) | (from & FLAGS);
    if wanted == to {
        return Ok(());
    }
    rustix::fs::ioctl_setflags(new, wanted).map_err(|errno| {
        let cause = io::Error::from(errno);
        io::Error::new(
            cause.kind(),
            format!("its inode flags (lsattr) cannot be given to a new file: {cause}"),
        )
    })
}
