//! Whether a process is alive, and who has a file open: `libproc` shows the user's own processes, and all of them to
//! root. If a question cannot be answered, a process counts as alive, because a mistake must never lead to a write.

use super::text;
use crate::platform::identity::FileId;
pub use crate::platform::nothing::process::lock_holder;
pub(crate) use crate::platform::nothing::process::{boot_id, pid_namespace, start};
use crate::platform::seen::{Holder, ProcessState, printable, with_mapped};
use libc::{c_char, c_int, c_void, proc_bsdinfo, proc_fdinfo, proc_vnodepathinfo, vnode_info};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::ffi::{CStr, CString};
use std::fs::{self, Metadata};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `PROC_PIDFDVNODEINFO` of `sys/proc_info.h`: a descriptor of a file, with the file's identity.
const DESCRIPTOR_OF_FILE: c_int = 1;
/// `FWRITE` of `sys/fcntl.h`: the descriptor may write.
const MAY_WRITE: u32 = 2;
/// `PROC_ALL_PIDS` of `sys/proc_info.h`.
const ALL_PROCESSES: u32 = 1;
/// `PROC_LISTPIDSPATH_EXCLUDE_EVTONLY` of `libproc.h`: not those that only wait for events of the file.
const NOT_FOR_EVENTS: u32 = 2;
/// Room for processes that start between two calls.
const SPARE: usize = 64;

/// `struct vnode_fdinfo` of `sys/proc_info.h`.
#[repr(C)]
struct OpenFile {
    flags: u32,
    status: u32,
    offset: i64,
    kind: i32,
    guard: u32,
    file: vnode_info,
}

unsafe extern "C" {
    /// Of `libproc.h`; `libc` has it not.
    fn proc_listpidspath(
        kind: u32,
        argument: u32,
        path: *const c_char,
        flags: u32,
        buffer: *mut c_void,
        bytes: c_int,
    ) -> c_int;
}

/// A process is alive unless a signal cannot be sent to it or it is a zombie. Agents record start times in Linux's
/// units only, so these are not compared.
pub(crate) fn life(pid: u32, _: Option<u64>) -> ProcessState {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if number.is_none_or(|number| test_kill_process(number) == Err(Errno::SRCH)) {
        return ProcessState::Dead;
    }
    let ended = about(pid).is_some_and(|about| about.pbi_status == libc::SZOMB);
    if ended { ProcessState::Dead } else { ProcessState::Alive }
}

/// All processes have an id here.
pub(crate) fn sees_all() -> bool {
    true
}

/// The ids of all processes.
pub(crate) fn all() -> impl Iterator<Item = u32> {
    // SAFETY: without a buffer the call answers how many processes there are.
    let there = unsafe { libc::proc_listallpids(std::ptr::null_mut(), 0) };
    let mut pids: Vec<c_int> = vec![0; usize::try_from(there).unwrap_or(0) + SPARE];
    let bytes = c_int::try_from(pids.len() * size_of::<c_int>()).unwrap_or(c_int::MAX);
    // SAFETY: the buffer has this many bytes.
    let there = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), bytes) };
    pids.truncate(usize::try_from(there).unwrap_or(0));
    pids.into_iter().filter_map(|pid| u32::try_from(pid).ok()).filter(|&pid| pid > 0)
}

/// The processes that have a file open or mapped, as far as they are visible, including ourselves.
pub(super) fn holders(id: FileId, path: impl FnOnce() -> Option<CString>) -> Vec<Holder> {
    let open = all().filter_map(|pid| holder(pid, id)).collect();
    with_mapped(open, path().map(|path| users(&path)).unwrap_or_default(), name)
}

/// The processes that use a file by the name that it has now: also those that have mapped it and closed it. Empty if the system
/// does not say. If another file has the name by then, some are named that do not matter, and are waited for.
fn users(path: &CStr) -> Vec<u32> {
    filled(|buffer, bytes| {
        // SAFETY: the path ends with 0, and the buffer has this many bytes.
        unsafe { proc_listpidspath(ALL_PROCESSES, 0, path.as_ptr(), NOT_FOR_EVENTS, buffer.cast(), bytes) }
    })
}

/// The ids that a call of `libproc` fills a buffer with, other than 0. It answers how many bytes it has filled; without a buffer,
/// how many it would need at most.
fn filled(call: impl Fn(*mut c_int, c_int) -> c_int) -> Vec<u32> {
    let room = usize::try_from(call(std::ptr::null_mut(), 0)).unwrap_or(0) / size_of::<c_int>() + SPARE;
    let mut pids: Vec<c_int> = vec![0; room];
    let bytes = c_int::try_from(room * size_of::<c_int>()).unwrap_or(c_int::MAX);
    let there = call(pids.as_mut_ptr(), bytes);
    pids.truncate(usize::try_from(there).unwrap_or(0) / size_of::<c_int>());
    pids.into_iter().filter_map(|pid| u32::try_from(pid).ok()).filter(|&pid| pid > 0).collect()
}

fn holder(pid: u32, file: FileId) -> Option<Holder> {
    let mut found: Option<Holder> = None;
    for descriptor in descriptors(pid).ok()? {
        let Some(open) = opened(pid, descriptor.proc_fd) else { continue };
        let stat = &open.file.vi_stat;
        // Converted as in the standard library.
        if stat.vst_ino == file.inode && i64::from(stat.vst_dev.cast_signed()).cast_unsigned() == file.device
        {
            let holder = found.get_or_insert_with(|| Holder { pid, name: name(pid), writes: false });
            holder.writes |= open.flags & MAY_WRITE != 0;
        }
    }
    found
}

/// The descriptors of a process that are files.
fn descriptors(pid: u32) -> io::Result<Vec<proc_fdinfo>> {
    let pid = c_int::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut found: Vec<proc_fdinfo> = Vec::new();
    loop {
        let room = found.capacity() * size_of::<proc_fdinfo>();
        let buffer = if room == 0 { std::ptr::null_mut() } else { found.as_mut_ptr().cast() };
        let bytes = c_int::try_from(room).unwrap_or(c_int::MAX);
        // SAFETY: the buffer has room for this many bytes; without one the call answers how many there would be.
        let filled = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDLISTFDS, 0, buffer, bytes) };
        let filled = usize::try_from(filled).unwrap_or(0);
        if filled == 0 {
            return Err(io::Error::last_os_error());
        }
        if filled < room {
            // SAFETY: so many bytes of the buffer were filled, with whole values.
            unsafe { found.set_len(filled / size_of::<proc_fdinfo>()) };
            found.retain(|descriptor| descriptor.proc_fdtype == libc::PROX_FDTYPE_VNODE as u32);
            return Ok(found);
        }
        found.reserve(filled.max(room) / size_of::<proc_fdinfo>() + SPARE);
    }
}

fn opened(pid: u32, descriptor: i32) -> Option<OpenFile> {
    let mut open = MaybeUninit::<OpenFile>::zeroed();
    let (pid, bytes) = (c_int::try_from(pid).ok()?, c_int::try_from(size_of::<OpenFile>()).ok()?);
    // SAFETY: the buffer has this many bytes.
    let filled =
        unsafe { libc::proc_pidfdinfo(pid, descriptor, DESCRIPTOR_OF_FILE, open.as_mut_ptr().cast(), bytes) };
    // SAFETY: it was zeroed, and is filled; any bytes are a value of it.
    (filled == bytes).then(|| unsafe { open.assume_init() })
}

/// Information about a process from `proc_pidinfo`.
///
/// # Safety
///
/// `T` must be the structure that belongs to `flavor`.
unsafe fn info<T>(pid: u32, flavor: c_int) -> Option<T> {
    let mut told = MaybeUninit::<T>::zeroed();
    let (pid, bytes) = (c_int::try_from(pid).ok()?, c_int::try_from(size_of::<T>()).ok()?);
    // SAFETY: the buffer has this many bytes.
    let filled = unsafe { libc::proc_pidinfo(pid, flavor, 0, told.as_mut_ptr().cast(), bytes) };
    // SAFETY: it was zeroed, and is filled with what the caller says it is.
    (filled == bytes).then(|| unsafe { told.assume_init() })
}

fn about(pid: u32) -> Option<proc_bsdinfo> {
    // SAFETY: this structure belongs to this flavor.
    unsafe { info(pid, libc::PROC_PIDTBSDINFO) }
}

pub(crate) fn name(pid: u32) -> String {
    printable(&about(pid).map(|about| text(&about.pbi_comm)).unwrap_or_default())
}

/// The current folder of a process.
pub(crate) fn working_folder(pid: u32) -> io::Result<Metadata> {
    // SAFETY: this structure belongs to this flavor.
    let told: Option<proc_vnodepathinfo> = unsafe { info(pid, libc::PROC_PIDVNODEPATHINFO) };
    let path = told.ok_or_else(io::Error::last_os_error)?.pvi_cdir.vip_path;
    let bytes = text(path.as_flattened());
    fs::metadata(Path::new(std::ffi::OsStr::from_bytes(&bytes)))
}

/// How many processes of this user hide which files they have open.
pub(crate) fn unseen(user: u32) -> usize {
    let hides = |pid: &u32| descriptors(*pid).is_err_and(|cause| cause.raw_os_error() == Some(libc::EPERM));
    let concerned = |pid: &u32| about(*pid).is_none_or(|about| about.pbi_status != libc::SZOMB);
    all().filter(|pid| is_of(*pid, user) && concerned(pid) && hides(pid)).count()
}

/// Whether a process runs as this user.
pub(crate) fn is_of(pid: u32, user: u32) -> bool {
    about(pid).is_some_and(|about| [about.pbi_uid, about.pbi_ruid, about.pbi_svuid].contains(&user))
}

/// A process and its ancestors.
pub(crate) fn ancestors(pid: u32) -> Vec<u32> {
    let parent = |&pid: &u32| about(pid).map(|about| about.pbi_ppid).filter(|&parent| parent > 0);
    std::iter::successors(Some(pid), parent).collect()
}
