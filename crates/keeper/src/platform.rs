//! What differs between systems. Each system has a file or folder, with modules of the same names and functions:
//!
//! - from the system itself: `This`, which implements [`System`]: what a replacement rests on; `process` (which are alive),
//!   `acting` (as whom root works), `exits` (waiting for the end of a process), `holes` (of files), `memory`, `mounts`,
//!   `network` (file systems), `files` (files without a name)
//! - from `unix` or `windows`: `folder`, `metadata` (of a file), `owner`, `attributes`, `lock`, `name`, `writing`, `copying`,
//!   `limits`, `own_folder`, `around` (our parent process and host)
//!
//! What a system cannot do or tell is answered so that nothing is written too early: there are no leases, a process counts as
//! alive, and programs that we cannot see have files open. `nothing` has these answers, and `other` is a Unix about which no
//! more is known.

pub(crate) mod identity;
#[cfg(target_os = "linux")]
mod linux;
pub(crate) mod own;
pub(crate) mod room;
pub(crate) mod starter;
// Also compiled in tests, so that it keeps compiling.
#[cfg(any(test, not(target_os = "linux")))]
#[allow(dead_code, unreachable_pub, reason = "each system takes of it what it does not have")]
mod nothing;
#[cfg(all(unix, any(test, not(target_os = "linux"))))]
#[cfg_attr(
    target_os = "linux",
    allow(dead_code, unreachable_pub, unused_imports, reason = "it is for another system")
)]
mod other;
// Also compiled in tests, which run it.
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", allow(dead_code, unreachable_pub, reason = "it is for other systems"))]
pub(crate) mod polled;
mod seen;
mod system;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::{This, acting, exits, files, holes, memory, mounts, network, process};
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use other::{This, acting, files, holes, memory, mounts, network, process};
#[cfg(not(target_os = "linux"))]
pub(crate) use polled as exits;
pub(crate) use seen::{ListedProcess, ProcessState};
pub(crate) use system::{LeaseKind, System};
#[cfg(unix)]
pub use unix::program;
#[cfg(unix)]
pub(crate) use unix::{
    FileExt, OFlags, around, attributes, copying, folder, handle, limits, lock, metadata, name, own_folder,
    owner, writing,
};
#[cfg(windows)]
pub use windows::program;
#[cfg(windows)]
pub(crate) use windows::{
    FileExt, OFlags, This, acting, around, attributes, copying, files, folder, handle, holes, limits, lock,
    memory, metadata, mounts, name, network, own_folder, owner, process, writing,
};
