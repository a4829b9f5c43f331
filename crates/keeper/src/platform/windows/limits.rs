//! Limits of this process: those of a job object that holds only this process.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null;
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_PROCESS_MEMORY,
    JOB_OBJECT_LIMIT_PROCESS_TIME, JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    SetInformationJobObject,
};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// The system's unit is 100 ns.
const UNITS_PER_SECOND: i64 = 10_000_000;

/// Limits this process's memory and processor time from now on.
///
/// # Errors
///
/// Those of the system.
pub fn confine(memory_bytes: u64, cpu_seconds: u64) -> io::Result<()> {
    // SAFETY: nothing is pointed to.
    let job = unsafe { CreateJobObjectW(null(), null()) };
    if job.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just created, and nothing else owns it. The job lives as long as the process in it.
    let job = unsafe { OwnedHandle::from_raw_handle(job) };
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY | JOB_OBJECT_LIMIT_PROCESS_TIME;
    limits.BasicLimitInformation.PerProcessUserTimeLimit =
        i64::try_from(cpu_seconds).unwrap_or(i64::MAX).saturating_mul(UNITS_PER_SECOND);
    limits.ProcessMemoryLimit = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    let bytes = size_of_val(&limits) as u32;
    // SAFETY: the structure belongs to this class and has this many bytes.
    let set = unsafe {
        let limits = (&raw const limits).cast();
        SetInformationJobObject(job.as_raw_handle(), JobObjectExtendedLimitInformation, limits, bytes)
    };
    // SAFETY: both handles are good.
    if set == 0 || unsafe { AssignProcessToJobObject(job.as_raw_handle(), GetCurrentProcess()) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
