//! Whether a process is alive, and who has a file open. It is unknown whether all of these are visible, so it counts as
//! if some were hidden: a mistake must never lead to a write.

use super::metadata;
use super::name::{for_call, of_buffer};
use super::owner::User;
pub use crate::platform::nothing::process::lock_holder;
pub(crate) use crate::platform::nothing::process::{boot_id, pid_namespace, sees_all, start};
use crate::platform::seen::{Holder, ProcessState, printable};
use std::io::{self, ErrorKind};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr::{null, null_mut};
use windows_sys::Win32::Foundation::{
    ERROR_INVALID_PARAMETER, ERROR_MORE_DATA, ERROR_SUCCESS, INVALID_HANDLE_VALUE, WAIT_OBJECT_0,
};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::RestartManager::{
    CCH_RM_SESSION_KEY, RM_PROCESS_INFO, RmEndSession, RmGetList, RmRegisterResources, RmStartSession,
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

/// The ids of all processes.
pub(crate) fn all() -> impl Iterator<Item = u32> {
    entries().into_iter().map(|entry| entry.th32ProcessID)
}

/// The name of a process as users know it: that of its program, without the extension.
pub(crate) fn name(pid: u32) -> String {
    let entry = entries().into_iter().find(|entry| entry.th32ProcessID == pid);
    let name = entry.map(|entry| of_buffer(&entry.szExeFile).to_string_lossy().to_ascii_lowercase());
    let name = name.unwrap_or_default();
    printable(name.strip_suffix(".exe").unwrap_or(&name).as_bytes())
}

/// A process and its ancestors. The id of a parent that has ended may belong to another process by now.
pub(crate) fn ancestors(pid: u32) -> Vec<u32> {
    let entries = entries();
    let mut line = vec![pid];
    while let Some(parent) = entries
        .iter()
        .find(|entry| line.last() == Some(&entry.th32ProcessID))
        .map(|entry| entry.th32ParentProcessID)
        .filter(|parent| *parent != 0 && !line.contains(parent))
    {
        line.push(parent);
    }
    line
}

/// The other processes that have a file open, according to the Restart Manager. It does not say how they opened it, so
/// all may write.
pub(super) fn holders(path: &Path) -> Vec<Holder> {
    let holder = |found: &RM_PROCESS_INFO| {
        let name = of_buffer(&found.strAppName).to_string_lossy().into_owned();
        Holder { pid: found.Process.dwProcessId, name: printable(name.as_bytes()), writes: true }
    };
    let found = users(&for_call(path.as_os_str()));
    found.iter().map(holder).filter(|holder| holder.pid != std::process::id()).collect()
}

/// The Restart Manager's processes for a file; empty if it does not answer.
fn users(path: &[u16]) -> Vec<RM_PROCESS_INFO> {
    let (mut session, mut key) = (0, [0; CCH_RM_SESSION_KEY as usize + 1]);
    // SAFETY: the buffer is as long as a key and its end.
    if unsafe { RmStartSession(&raw mut session, 0, key.as_mut_ptr()) } != ERROR_SUCCESS {
        return Vec::new();
    }
    let paths = [path.as_ptr()];
    // SAFETY: it is one path, which ends with 0.
    let registered = unsafe { RmRegisterResources(session, 1, paths.as_ptr(), 0, null(), 0, null_mut()) };
    let mut found = Vec::new();
    let mut told = if registered == ERROR_SUCCESS { ERROR_MORE_DATA } else { registered };
    while told == ERROR_MORE_DATA {
        let (mut needed, mut count, mut why) = (0, found.len() as u32, 0);
        // SAFETY: the buffer has room for so many.
        told =
            unsafe { RmGetList(session, &raw mut needed, &raw mut count, found.as_mut_ptr(), &raw mut why) };
        let length = if told == ERROR_MORE_DATA { needed } else { count };
        found.resize(length as usize, RM_PROCESS_INFO::default());
    }
    // SAFETY: it was begun above.
    unsafe { RmEndSession(session) };
    if told == ERROR_SUCCESS { found } else { Vec::new() }
}

/// The current folder of a process is unknown.
pub(crate) fn working_folder(_: u32) -> io::Result<metadata::Metadata> {
    Err(ErrorKind::Unsupported.into())
}

pub(crate) fn unseen(_: User) -> usize {
    1
}

pub(crate) fn is_of(_: u32, _: User) -> bool {
    true
}
