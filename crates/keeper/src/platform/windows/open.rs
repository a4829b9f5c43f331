//! How files are opened and read. They are opened as shared, so that other programs can go on using, renaming and
//! removing them.

use super::metadata::{self, Metadata};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::BitOr;
use std::os::windows::fs::{FileExt as _, OpenOptionsExt};
use std::path::Path;
use windows_sys::Win32::Foundation::{ERROR_STOPPED_ON_SYMLINK, GENERIC_READ, GENERIC_WRITE};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_APPEND_DATA, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_READ_ATTRIBUTES,
    FILE_WRITE_ATTRIBUTES, SYNCHRONIZE,
};

/// Flags to open a file with, under their Unix names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OFlags(u32);

impl OFlags {
    /// To find out what it is, even if it may not be read.
    pub(super) const LOOK: Self = Self(0);
    pub(crate) const RDONLY: Self = Self(1);
    pub(crate) const RDWR: Self = Self(3);
    /// Every write goes to the end of the file at that time.
    pub(crate) const APPEND: Self = Self(4);
    pub(super) const RDWR_AT_END: Self = Self::RDWR.union(Self::APPEND);
    pub(crate) const CREATE: Self = Self(8);
    pub(crate) const EXCL: Self = Self(16);
    /// Nothing here would block.
    pub(crate) const NONBLOCK: Self = Self(0);

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    fn access(self) -> u32 {
        match self {
            _ if self.has(Self::RDWR_AT_END) => {
                GENERIC_READ | FILE_APPEND_DATA | FILE_WRITE_ATTRIBUTES | SYNCHRONIZE
            }
            _ if self.has(Self::RDWR) => GENERIC_READ | GENERIC_WRITE,
            _ if self.has(Self::RDONLY) => GENERIC_READ,
            _ => FILE_READ_ATTRIBUTES,
        }
    }
}

impl BitOr for OFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// Opens a file; never a link, except to find out what it is.
pub(super) fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let open = |more| {
        let mut options = File::options();
        let makes = flags.has(OFlags::CREATE);
        // To make a file, the standard library wants to hear that it is for writing.
        options.write(makes).create(makes).create_new(makes && flags.has(OFlags::EXCL));
        options.access_mode(flags.access()).custom_flags(FILE_FLAG_BACKUP_SEMANTICS | more).open(path)
    };
    let file = open(FILE_FLAG_OPEN_REPARSE_POINT)?;
    if flags == OFlags::LOOK || !metadata::stands_for_another(&file)? {
        return Ok(file);
    }
    if file.metadata()?.is_symlink() {
        return Err(io::Error::from_raw_os_error(ERROR_STOPPED_ON_SYMLINK.cast_signed()));
    }
    // Cloud files and compressed files are read like any other.
    open(0)
}

/// Metadata of what is at a path.
pub(super) fn metadata_at(path: &Path, more: u32) -> io::Result<Metadata> {
    let how = FILE_FLAG_BACKUP_SEMANTICS | more;
    metadata::of_file(&File::options().access_mode(FILE_READ_ATTRIBUTES).custom_flags(how).open(path)?)
}

/// Reads and writes at an offset. Unlike on Unix, this moves the file's position.
pub(crate) trait FileExt {
    /// Reads what is at an offset, up to the length of the buffer.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// Fills the buffer.
    fn read_exact_at(&self, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, at) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(got) => {
                    buffer = &mut buffer[got..];
                    at += got as u64;
                }
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }

    /// Writes all of it.
    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
}

impl FileExt for File {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.seek_read(buffer, at)
    }

    fn write_all_at(&self, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.seek_write(bytes, at)? {
                0 => return Err(ErrorKind::WriteZero.into()),
                put => {
                    bytes = &bytes[put..];
                    at += put as u64;
                }
            }
        }
        Ok(())
    }
}
