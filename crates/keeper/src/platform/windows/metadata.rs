//! Metadata of files.

use super::open;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::windows::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf, Prefix};
use std::time::SystemTime;
use winapi_util::{HandleRef, file::information};
use windows_sys::Win32::Foundation::{
    ERROR_LOCK_VIOLATION, ERROR_SHARING_VIOLATION, ERROR_STOPPED_ON_SYMLINK, ERROR_TOO_MANY_OPEN_FILES,
};
use windows_sys::Win32::Storage::FileSystem::{FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_OPEN_REPARSE_POINT};

/// From 1601 to 1970, in the system's unit of 100 ns.
const TO_1970: i64 = 116_444_736_000_000_000;
const UNITS_PER_SECOND: i64 = 10_000_000;
/// The prefix of a path that the system takes literally.
const VERBATIM: &str = r"\\?\";
/// Longest path of a folder with which every program can use the files in it.
const PLAIN_BYTES_MAX: usize = 240;

/// Metadata of a file.
#[derive(Clone, Debug)]
pub struct Metadata {
    volume: u64,
    index: u64,
    links: u64,
    of: std::fs::Metadata,
}

impl Metadata {
    /// Its length.
    #[expect(clippy::len_without_is_empty, reason = "the standard library's has none either")]
    pub fn len(&self) -> u64 {
        self.of.len()
    }

    /// Whether it is a folder.
    pub fn is_dir(&self) -> bool {
        self.of.is_dir()
    }

    /// Whether it is a file and not a link.
    pub fn is_file(&self) -> bool {
        self.of.is_file()
    }

    /// When it was last written to.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn modified(&self) -> io::Result<SystemTime> {
        self.of.modified()
    }

    /// Whether it is marked as not to be written to.
    pub(super) fn is_read_only(&self) -> bool {
        self.of.permissions().readonly()
    }

    /// When it was last written to, as the system counts.
    fn written(&self) -> i64 {
        self.of.last_write_time().cast_signed()
    }
}

/// The names that Unix uses for these fields.
pub(crate) trait MetadataExt {
    fn dev(&self) -> u64;
    fn ino(&self) -> u64;
    fn nlink(&self) -> u64;
    fn mtime(&self) -> i64;
    fn mtime_nsec(&self) -> i64;
    fn ctime(&self) -> i64;
    fn ctime_nsec(&self) -> i64;
}

impl MetadataExt for Metadata {
    fn dev(&self) -> u64 {
        self.volume
    }

    fn ino(&self) -> u64 {
        self.index
    }

    fn nlink(&self) -> u64 {
        self.links
    }

    fn mtime(&self) -> i64 {
        (self.written() - TO_1970).div_euclid(UNITS_PER_SECOND)
    }

    fn mtime_nsec(&self) -> i64 {
        (self.written() - TO_1970).rem_euclid(UNITS_PER_SECOND) * 100
    }

    /// Nothing else than a write is told.
    fn ctime(&self) -> i64 {
        self.mtime()
    }

    fn ctime_nsec(&self) -> i64 {
        self.mtime_nsec()
    }
}

/// Of an open file or folder.
pub(crate) fn of_file(file: &File) -> io::Result<Metadata> {
    let found = information(HandleRef::from_file(file))?;
    Ok(Metadata {
        volume: found.volume_serial_number(),
        index: found.file_index(),
        links: found.number_of_links(),
        of: file.metadata()?,
    })
}

/// Whether a file was opened without following what it stands for: a link, or contents that are elsewhere or compressed.
pub(super) fn stands_for_another(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0)
}

/// Of the target of a path.
pub(crate) fn at(path: &Path) -> io::Result<Metadata> {
    open::metadata_at(path, 0)
}

/// How many bytes may still be written to the file system of a folder.
#[cfg(feature = "stores")]
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    use windows_sys::Win32::Storage::FileSystem;

    let (folder, mut free) = (super::name::for_call(folder.as_os_str()), 0);
    // SAFETY: the path ends with a zero, and the number outlives the call.
    let done = unsafe {
        FileSystem::GetDiskFreeSpaceExW(
            folder.as_ptr(),
            &raw mut free,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(free) }
}

/// Of what is at a path; a link is not followed.
pub(crate) fn of_link(path: &Path) -> io::Result<Metadata> {
    open::metadata_at(path, FILE_FLAG_OPEN_REPARSE_POINT)
}

/// The path without links, as people write it, if that means the same: not if it is too long, or has a name that other
/// programs cannot use.
///
/// # Errors
///
/// When there is no file, or it cannot be reached.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    let real = path.canonicalize()?;
    let plain = real.to_str().and_then(|real| real.strip_prefix(VERBATIM)).map(PathBuf::from);
    let is_same = |plain: &PathBuf| {
        plain.as_os_str().len() < PLAIN_BYTES_MAX
            && std::path::absolute(plain).is_ok_and(|same| same == *plain)
    };
    // A path to a share is not valid without its prefix.
    Ok(plain.filter(|plain| plain.is_absolute() && is_same(plain)).unwrap_or(real))
}

/// The path in the form that the system takes literally.
pub(super) fn verbatim(real: &Path) -> PathBuf {
    let is_plain = matches!(
        real.components().next(),
        Some(Component::Prefix(prefix)) if matches!(prefix.kind(), Prefix::Disk(_))
    );
    if !is_plain {
        return real.to_path_buf();
    }
    let mut verbatim = OsString::from(VERBATIM);
    verbatim.push(real);
    verbatim.into()
}

/// Whether a path is in a folder; neither has links. One of them may have the literal form because it is too long.
pub(crate) fn lies_in(real: &Path, folder: &Path) -> bool {
    verbatim(real).starts_with(verbatim(folder))
}

/// The path of the running program. Its file cannot be replaced meanwhile.
///
/// # Errors
///
/// When the system does not tell.
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Of the running program.
pub(crate) fn of_program() -> io::Result<Metadata> {
    at(&own_program()?)
}

/// Whether an error is due to files that other programs have open, and not to the file itself.
pub(crate) fn will_pass(cause: &io::Error) -> bool {
    let passing = [ERROR_TOO_MANY_OPEN_FILES, ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION];
    cause.raw_os_error().is_some_and(|number| passing.contains(&number.cast_unsigned()))
}

/// Whether another program keeps a file from being opened or replaced, until it closes it: it does not share the file, as virus
/// scanners do for a moment.
pub(crate) fn is_withheld(cause: &io::Error) -> bool {
    let withheld = [ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION];
    cause.raw_os_error().is_some_and(|number| withheld.contains(&number.cast_unsigned()))
}

/// Whether a file was not opened because its name is a link.
pub(crate) fn is_link(cause: &io::Error) -> bool {
    cause.raw_os_error() == Some(ERROR_STOPPED_ON_SYMLINK.cast_signed())
}
