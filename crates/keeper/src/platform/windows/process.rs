//! Whether a process is alive, and which there are. Who has a file open is not asked: a mistake must never lead to a write.

use super::name::of_buffer;
pub use crate::platform::nothing::process::lock_holder;
pub(crate) use crate::platform::nothing::process::{
    boot_id, is_of, pid_namespace, sees_all, start, unseen, working_folder,
};
use crate::platform::seen::{ListedProcess, ProcessState};
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use windows_sys::Win32::Foundation::{ERROR_INVALID_PARAMETER, INVALID_HANDLE_VALUE, WAIT_OBJECT_0};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_SYNCHRONIZE, WaitForSingleObject};

/// A process is alive unless its id is unused, or the process has ended. Agents record start times in other systems'
/// units, so these are not compared.
pub(crate) fn life(pid: u32, _: Option<u64>) -> ProcessState {
    // SAFETY: numbers only.
    let handle = unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, pid) };
    if handle.is_null() {
        let number = io::Error::last_os_error().raw_os_error().map(i32::cast_unsigned);
        let is_nobody = number == Some(ERROR_INVALID_PARAMETER);
        return if is_nobody { ProcessState::Dead } else { ProcessState::Alive };
    }
    // SAFETY: it was just opened, and nobody else has it.
    let process = unsafe { OwnedHandle::from_raw_handle(handle) };
    // SAFETY: the handle is open as long as `process` lives.
    let ended = unsafe { WaitForSingleObject(process.as_raw_handle(), 0) } == WAIT_OBJECT_0;
    if ended { ProcessState::Dead } else { ProcessState::Alive }
}

/// All processes, as the system lists them.
fn entries() -> Vec<PROCESSENTRY32W> {
    // SAFETY: numbers only.
    let list = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if list == INVALID_HANDLE_VALUE {
        return Vec::new();
    }
    // SAFETY: it was just opened, and nobody else has it.
    let list = unsafe { OwnedHandle::from_raw_handle(list) };
    let mut entry = PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..Default::default() };
    let mut entries = Vec::new();
    // SAFETY: the handle is open as long as `list` lives, and the structure says how long it is.
    let mut more = unsafe { Process32FirstW(list.as_raw_handle(), &raw mut entry) };
    while more != 0 {
        entries.push(entry);
        // SAFETY: as above.
        more = unsafe { Process32NextW(list.as_raw_handle(), &raw mut entry) };
    }
    entries
}

/// All processes, each with the name of its program.
pub(crate) fn listed() -> Vec<ListedProcess> {
    let process = |entry: PROCESSENTRY32W| {
        let program = of_buffer(&entry.szExeFile).to_string_lossy().into_owned();
        ListedProcess::new(entry.th32ProcessID, entry.th32ParentProcessID, &format!("\\{program}"))
    };
    entries().into_iter().map(process).collect()
}

pub(crate) fn all() -> impl Iterator<Item = u32> {
    listed().into_iter().map(|process| process.pid)
}

/// The name of its program.
pub(crate) fn name(pid: u32) -> String {
    ListedProcess::name(&listed(), pid)
}

pub(crate) fn ancestors(pid: u32) -> Vec<u32> {
    ListedProcess::ancestors(&listed(), pid)
}
