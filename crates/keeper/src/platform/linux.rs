//! Linux: file leases, `/proc`, atomic exchange of names, files without a name.

pub(crate) mod exits;
pub(crate) mod files;
#[allow(unsafe_code, reason = "three system calls on descriptors and numbers, no pointers")]
pub(crate) mod lease;
pub(crate) mod mounts;
pub(crate) mod network;
pub(crate) mod process;
