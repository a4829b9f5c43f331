//! Files without a name, exchange of names, folders opened without following links, and inode flags.

use super::acting::Acting;
use rustix::fs::{AtFlags, CWD, IFlags, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Folder in which our own open files have a name.
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

/// Creates a file without a name in a folder, so that a crash leaves nothing of it. Fails without `/proc`, which is needed to
/// give the file a name later.
pub(crate) fn create_unnamed(folder: &File) -> io::Result<File> {
    if !Path::new(OPEN_FILES).exists() {
        return Err(ErrorKind::Unsupported.into());
    }
    Ok(rustix::fs::openat(folder, ".", OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC, FILE)?.into())
}

/// Exchanges two names in a folder atomically; `false` if the file system cannot.
pub(super) fn exchange(folder: &File, one: &OsStr, other: &OsStr) -> io::Result<bool> {
    match rustix::fs::renameat_with(folder, one, folder, other, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
        other => Ok(other.map(|()| true)?),
    }
}

/// Gives such a file a name.
pub(crate) fn name_it(file: &File, folder: &File, name: &OsStr) -> io::Result<()> {
    let from = format!("{OPEN_FILES}/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(CWD, from, folder, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Where temporary files are, which may be as long as a transcript: where the user says, and else not in memory.
pub(crate) fn temporary_folder() -> PathBuf {
    /// tmpfs and ramfs (`linux/magic.h`).
    const IN_MEMORY: [i128; 2] = [0x0102_1994, 0x8584_58f6];
    const ON_DISK: &str = "/var/tmp";
    let is_in_memory = |folder: &Path| {
        rustix::fs::statfs(folder)
            .is_ok_and(|found| IN_MEMORY.contains(&(i128::from(found.f_type) & i128::from(u32::MAX))))
    };
    let usual = std::env::temp_dir();
    let is_asked = std::env::var_os("TMPDIR").is_some();
    if is_asked || !is_in_memory(&usual) || !Path::new(ON_DISK).is_dir() { usual } else { ON_DISK.into() }
}

/// A temporary file that nobody else can open.
pub(crate) fn temporary() -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let (user, group) = (geteuid(), getegid());
    // The folder may be root's.
    let _own = Acting::ourselves();
    let open = |folder: PathBuf| rustix::fs::open(folder, flags, FILE);
    let file = open(temporary_folder()).or_else(|_| open(std::env::temp_dir()))?;
    if user != geteuid() {
        rustix::fs::fchown(&file, Some(user), Some(group))?;
    }
    Ok(file.into())
}

/// Makes a private file that shares the blocks of another one, where the file system can (btrfs, XFS).
pub(super) fn clone(from: &File, folder: &File, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(folder, name, flags, FILE)?.into();
    match rustix::fs::ioctl_ficlone(&file, from) {
        Ok(()) => Ok(file),
        Err(errno) => {
            rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
            Err(errno.into())
        }
    }
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

/// Drops the old file from the page cache. Otherwise the kernel does that when the file loses its last name, while
/// other programs wait.
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
