//! What differs between systems, a folder or file for each, with the same names in all of them.
//!
//! What a system does not have or cannot tell is answered such that nothing is written too early: there are no leases, a
//! process counts as alive, and programs have files open that nobody sees.

/// Whether the tests with live writers have passed on this system. Where they have not, nothing is replaced unless that is
/// asked for.
pub(crate) const TRIED: bool = cfg!(target_os = "linux");

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
// In tests too, so that it stays whole.
#[cfg(any(test, not(target_os = "linux")))]
#[allow(dead_code, unreachable_pub, reason = "each system takes of it what it does not have")]
mod nothing;
#[cfg(all(unix, any(test, not(target_os = "linux"))))]
#[cfg_attr(
    any(target_os = "linux", target_os = "macos"),
    allow(dead_code, unreachable_pub, unused_imports, reason = "it is for another system")
)]
mod other;
mod seen;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::{exits, files, lease, mounts, network, process};
#[cfg(target_os = "macos")]
pub(crate) use macos::{exits, files, lease, mounts, network, process};
#[cfg(all(unix, not(any(target_os = "linux", target_os = "macos"))))]
pub(crate) use other::{exits, files, lease, mounts, network, process};
pub(crate) use seen::ProcessState;
#[cfg(unix)]
pub(crate) use unix::{
    FileExt, OFlags, around, attributes, facts, folder, limits, lock, name, own_folder, owner, writing,
};
#[cfg(windows)]
pub(crate) use windows::{
    FileExt, OFlags, around, attributes, exits, facts, files, folder, lease, limits, lock, mounts, name,
    network, own_folder, owner, process, writing,
};
