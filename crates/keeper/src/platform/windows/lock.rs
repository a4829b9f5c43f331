//! Locks on transcripts. Here locked bytes cannot be read or written by others, so the lock is on a range beyond the
//! end of any file, which only Tailor uses.

use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::os::windows::io::AsRawHandle;
use windows_sys::Win32::Foundation::ERROR_LOCK_VIOLATION;
use windows_sys::Win32::Storage::FileSystem::{
    LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

/// The range, beyond the longest file that NTFS supports (2^44 or 2^53 bytes).
const AT_HIGH: u32 = 0x7ffa_0000;
const BYTES: u32 = 1;

fn range() -> OVERLAPPED {
    // SAFETY: numbers and a null pointer.
    let mut range: OVERLAPPED = unsafe { zeroed() };
    range.Anonymous.Anonymous.OffsetHigh = AT_HIGH;
    range
}

fn lock(file: &File, flags: u32) -> io::Result<bool> {
    let mut range = range();
    // SAFETY: the handle is open as long as `file` lives; the call ends at once, and keeps no pointer.
    let locked = unsafe {
        LockFileEx(file.as_raw_handle(), flags | LOCKFILE_FAIL_IMMEDIATELY, 0, BYTES, 0, &raw mut range)
    };
    if locked != 0 {
        return Ok(true);
    }
    let cause = io::Error::last_os_error();
    if cause.raw_os_error() == Some(ERROR_LOCK_VIOLATION.cast_signed()) { Ok(false) } else { Err(cause) }
}

/// Locks a file; `false` if another process has locked it.
pub(crate) fn take(file: &File) -> io::Result<bool> {
    lock(file, LOCKFILE_EXCLUSIVE_LOCK)
}

/// Whether another process has locked a file, which we have not.
pub(crate) fn is_taken(file: &File) -> bool {
    let locked = lock(file, 0);
    if matches!(locked, Ok(true)) {
        let mut range = range();
        // SAFETY: as above.
        unsafe { UnlockFileEx(file.as_raw_handle(), 0, BYTES, 0, &raw mut range) };
    }
    matches!(locked, Ok(false))
}
