//! Metadata of files.

use super::{name, open};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::windows::io::AsRawHandle;
use std::path::{Component, Path, PathBuf, Prefix};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use windows_sys::Win32::Foundation::{
    ERROR_LOCK_VIOLATION, ERROR_SHARING_VIOLATION, ERROR_STOPPED_ON_SYMLINK, ERROR_TOO_MANY_OPEN_FILES,
    FILETIME,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_READONLY,
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_ATTRIBUTE_TAG_INFO, FILE_BASIC_INFO, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_INFO_BY_HANDLE_CLASS, FileAttributeTagInfo, FileBasicInfo, GetFileInformationByHandle,
    GetFileInformationByHandleEx, GetFinalPathNameByHandleW,
};

/// From 1601 to 1970, in the system's unit of 100 ns.
const TO_1970: i64 = 116_444_736_000_000_000;
const UNITS_PER_SECOND: i64 = 10_000_000;
/// The prefix of a path that the system takes literally.
const VERBATIM: &str = r"\\?\";
/// Longest path of a folder with which every program can use the files in it.
const PLAIN_BYTES_MAX: usize = 240;
/// In a reparse tag: the name is an alias of another one.
const NAME_SURROGATE: u32 = 0x2000_0000;

/// Metadata of a file.
#[derive(Clone, Debug)]
pub struct Metadata {
    volume: u32,
    index: u64,
    bytes: u64,
    links: u32,
    attributes: u32,
    is_link: bool,
    read: i64,
    written: i64,
    changed: i64,
}

impl Metadata {
    /// Its length.
    #[expect(clippy::len_without_is_empty, reason = "the standard library's has none either")]
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether it is a folder.
    pub fn is_dir(&self) -> bool {
        self.attributes & FILE_ATTRIBUTE_DIRECTORY != 0 && !self.is_link
    }

    /// Whether it is a file and not a link.
    pub fn is_file(&self) -> bool {
        self.attributes & FILE_ATTRIBUTE_DIRECTORY == 0 && !self.is_link
    }

    /// When it was last written to.
    ///
    /// # Errors
    ///
    /// None.
    pub fn modified(&self) -> io::Result<SystemTime> {
        Ok(time(self.written))
    }

    /// Whether it is marked as not to be written to.
    pub(super) fn is_read_only(&self) -> bool {
        self.attributes & FILE_ATTRIBUTE_READONLY != 0
    }

    /// When it was last read.
    pub(super) fn accessed(&self) -> SystemTime {
        time(self.read)
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
        self.volume.into()
    }

    fn ino(&self) -> u64 {
        self.index
    }

    fn nlink(&self) -> u64 {
        self.links.into()
    }

    fn mtime(&self) -> i64 {
        seconds(self.written)
    }

    fn mtime_nsec(&self) -> i64 {
        nanoseconds(self.written)
    }

    fn ctime(&self) -> i64 {
        seconds(self.changed)
    }

    fn ctime_nsec(&self) -> i64 {
        nanoseconds(self.changed)
    }
}

fn seconds(time: i64) -> i64 {
    (time - TO_1970).div_euclid(UNITS_PER_SECOND)
}

fn nanoseconds(time: i64) -> i64 {
    (time - TO_1970).rem_euclid(UNITS_PER_SECOND) * 100
}

fn time(time: i64) -> SystemTime {
    let since = Duration::new(
        u64::try_from(seconds(time)).unwrap_or(0),
        u32::try_from(nanoseconds(time)).unwrap_or(0),
    );
    UNIX_EPOCH + since
}

fn both(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn units(time: FILETIME) -> i64 {
    both(time.dwHighDateTime, time.dwLowDateTime).cast_signed()
}

/// Of an open file or folder.
pub(crate) fn of_file(file: &File) -> io::Result<Metadata> {
    // SAFETY: it consists of numbers, for which zeros are valid.
    let mut found: BY_HANDLE_FILE_INFORMATION = unsafe { zeroed() };
    // SAFETY: the handle is open as long as `file` lives, and the structure is ours.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: this structure belongs to this class.
    let basic: FILE_BASIC_INFO = unsafe { info(file, FileBasicInfo) }?;
    Ok(Metadata {
        volume: found.dwVolumeSerialNumber,
        index: both(found.nFileIndexHigh, found.nFileIndexLow),
        bytes: both(found.nFileSizeHigh, found.nFileSizeLow),
        links: found.nNumberOfLinks,
        attributes: found.dwFileAttributes,
        is_link: reparse(file)?.is_some_and(is_link_tag),
        read: units(found.ftLastAccessTime),
        written: units(found.ftLastWriteTime),
        // File systems without such a time report 0.
        changed: if basic.ChangeTime > 0 { basic.ChangeTime } else { units(found.ftLastWriteTime) },
    })
}

/// Information about a file, of one class.
///
/// # Safety
///
/// `T` must be the structure that belongs to the class, and hold numbers only.
unsafe fn info<T>(file: &File, class: FILE_INFO_BY_HANDLE_CLASS) -> io::Result<T> {
    // SAFETY: zeros are valid, as the caller guarantees.
    let mut found: T = unsafe { zeroed() };
    let bytes = size_of::<T>() as u32;
    // SAFETY: the handle is open as long as `file` lives, and the structure has this many bytes.
    let told =
        unsafe { GetFileInformationByHandleEx(file.as_raw_handle(), class, (&raw mut found).cast(), bytes) };
    if told == 0 { Err(io::Error::last_os_error()) } else { Ok(found) }
}

/// The tag of a file's reparse point, if it has one. The file was opened without following it.
pub(super) fn reparse(file: &File) -> io::Result<Option<u32>> {
    // SAFETY: this structure belongs to this class.
    let found: FILE_ATTRIBUTE_TAG_INFO = unsafe { info(file, FileAttributeTagInfo) }?;
    Ok((found.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT != 0).then_some(found.ReparseTag))
}

/// Whether a reparse point is an alias, such as a link or a junction.
pub(super) fn is_link_tag(tag: u32) -> bool {
    tag & NAME_SURROGATE != 0
}

/// Of the target of a path.
pub(crate) fn at(path: &Path) -> io::Result<Metadata> {
    open::metadata_at(path, 0)
}

/// How many bytes may still be written to the file system of a folder.
#[cfg(feature = "stores")]
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    use windows_sys::Win32::Storage::FileSystem;

    let (folder, mut free) = (name::for_call(folder.as_os_str()), 0);
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

/// The path of an open file, even if it was renamed.
pub(super) fn path_of(file: &File) -> io::Result<PathBuf> {
    let mut buffer = vec![0; 512];
    loop {
        let room = buffer.len() as u32;
        // SAFETY: the handle is open as long as `file` lives, and the buffer has this much room.
        let length = unsafe { GetFinalPathNameByHandleW(file.as_raw_handle(), buffer.as_mut_ptr(), room, 0) };
        match length {
            0 => return Err(io::Error::last_os_error()),
            length if length < room => return Ok(name::of_buffer(&buffer).into()),
            length => buffer.resize(length as usize + 1, 0),
        }
    }
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
