//! What is known of a file without reading it.

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
    BY_HANDLE_FILE_INFORMATION, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT,
    FILE_ATTRIBUTE_TAG_INFO, FILE_BASIC_INFO, FILE_FLAG_OPEN_REPARSE_POINT, FILE_INFO_BY_HANDLE_CLASS,
    FileAttributeTagInfo, FileBasicInfo, GetFileInformationByHandle, GetFileInformationByHandleEx,
    GetFinalPathNameByHandleW,
};

/// From 1601 to 1970, in the units of the system: 100 ns.
const TO_1970: i64 = 116_444_736_000_000_000;
const UNITS_PER_SECOND: i64 = 10_000_000;
/// What the system puts before a path that it is to take as it is.
const VERBATIM: &str = r"\\?\";
/// How long a path may be that every program can use, with the name of a file in it.
const PLAIN_BYTES_MAX: usize = 240;
/// Of a reparse tag: another name stands for this one.
const NAME_SURROGATE: u32 = 0x2000_0000;

/// What is known of a file.
#[derive(Clone, Debug)]
pub struct Facts {
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

/// The same, as it is called elsewhere.
pub type Metadata = Facts;

impl Facts {
    /// How long it is.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether it is a folder.
    pub fn is_dir(&self) -> bool {
        self.attributes & FILE_ATTRIBUTE_DIRECTORY != 0 && !self.is_link
    }

    /// Whether it is a file, and no link.
    pub fn is_file(&self) -> bool {
        self.attributes & FILE_ATTRIBUTE_DIRECTORY == 0 && !self.is_link
    }

    /// When it was last written to.
    ///
    /// # Errors
    ///
    /// None.
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub fn modified(&self) -> io::Result<SystemTime> {
        Ok(time(self.written))
    }

    /// When it was last read.
    pub(super) fn accessed(&self) -> SystemTime {
        time(self.read)
    }
}

/// The names that Unix has for it.
pub(crate) trait MetadataExt {
    fn dev(&self) -> u64;
    fn ino(&self) -> u64;
    fn nlink(&self) -> u64;
    fn mtime(&self) -> i64;
    fn mtime_nsec(&self) -> i64;
    fn ctime(&self) -> i64;
    fn ctime_nsec(&self) -> i64;
}

impl MetadataExt for Facts {
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
pub(crate) fn of(file: &File) -> io::Result<Facts> {
    // SAFETY: numbers, for which zeros are values.
    let mut found: BY_HANDLE_FILE_INFORMATION = unsafe { zeroed() };
    // SAFETY: the handle is open as long as `file` lives, and the structure is ours.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: this structure belongs to this class.
    let basic: FILE_BASIC_INFO = unsafe { info(file, FileBasicInfo) }?;
    Ok(Facts {
        volume: found.dwVolumeSerialNumber,
        index: both(found.nFileIndexHigh, found.nFileIndexLow),
        bytes: both(found.nFileSizeHigh, found.nFileSizeLow),
        links: found.nNumberOfLinks,
        attributes: found.dwFileAttributes,
        is_link: reparse(file)?.is_some_and(is_link_tag),
        read: units(found.ftLastAccessTime),
        written: units(found.ftLastWriteTime),
        // File systems without such a time give 0.
        changed: if basic.ChangeTime > 0 { basic.ChangeTime } else { units(found.ftLastWriteTime) },
    })
}

/// What is told of a file in a class.
///
/// # Safety
///
/// `T` must be the structure that belongs to the class, and hold numbers only.
unsafe fn info<T>(file: &File, class: FILE_INFO_BY_HANDLE_CLASS) -> io::Result<T> {
    // SAFETY: zeros are a value of it, the caller says.
    let mut found: T = unsafe { zeroed() };
    let bytes = size_of::<T>() as u32;
    // SAFETY: the handle is open as long as `file` lives, and the structure has this many bytes.
    let told =
        unsafe { GetFileInformationByHandleEx(file.as_raw_handle(), class, (&raw mut found).cast(), bytes) };
    if told == 0 { Err(io::Error::last_os_error()) } else { Ok(found) }
}

/// What a file that was opened as it stands there leads to: the tag of its reparse point, if it is one.
pub(super) fn reparse(file: &File) -> io::Result<Option<u32>> {
    // SAFETY: this structure belongs to this class.
    let found: FILE_ATTRIBUTE_TAG_INFO = unsafe { info(file, FileAttributeTagInfo) }?;
    Ok((found.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT != 0).then_some(found.ReparseTag))
}

/// Whether a reparse point stands for another name, as a link or a junction does.
pub(super) fn is_link_tag(tag: u32) -> bool {
    tag & NAME_SURROGATE != 0
}

/// Of what a path leads to.
pub(crate) fn at(path: &Path) -> io::Result<Facts> {
    open::facts_at(path, 0)
}

/// Of what stands at a path; a link is not followed.
pub(crate) fn of_link(path: &Path) -> io::Result<Facts> {
    open::facts_at(path, FILE_FLAG_OPEN_REPARSE_POINT)
}

/// The path without links, in the form in which people write it where that stands for the same: not where it is too long,
/// or has a name that other programs cannot use.
///
/// # Errors
///
/// When there is nothing, or it cannot be reached.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let real = path.canonicalize()?;
    let plain = real.to_str().and_then(|real| real.strip_prefix(VERBATIM)).map(PathBuf::from);
    let is_same = |plain: &PathBuf| {
        plain.as_os_str().len() < PLAIN_BYTES_MAX
            && std::path::absolute(plain).is_ok_and(|same| same == *plain)
    };
    // What stands for a share is no path without its beginning.
    Ok(plain.filter(|plain| plain.is_absolute() && is_same(plain)).unwrap_or(real))
}

/// Such a path in the form in which the system takes it as it is.
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

/// Whether something lies in a folder, both without links. Only one of them may be too long for people.
pub(crate) fn lies_in(real: &Path, folder: &Path) -> bool {
    verbatim(real).starts_with(verbatim(folder))
}

/// Of the program that runs.
pub(crate) fn of_program() -> io::Result<Facts> {
    at(&std::env::current_exe()?)
}

/// The path of an open file, whatever it is called now.
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

/// Whether a cause has to do with what other programs have open, and not with the file.
pub(crate) fn will_pass(cause: &io::Error) -> bool {
    let passing = [ERROR_TOO_MANY_OPEN_FILES, ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION];
    cause.raw_os_error().is_some_and(|number| passing.contains(&number.cast_unsigned()))
}

/// Whether a file was not opened because its name is that of a link.
pub(crate) fn is_link(cause: &io::Error) -> bool {
    cause.raw_os_error() == Some(ERROR_STOPPED_ON_SYMLINK.cast_signed())
}
