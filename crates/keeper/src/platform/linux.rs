//! Linux: file leases, `/proc`, names that are exchanged at once, files without a name.

pub(crate) mod exits;
pub(crate) mod files;
#[allow(unsafe_code, reason = "three system calls on descriptors and numbers, no pointers")]
pub(crate) mod lease;
pub(crate) mod mounts;
pub(crate) mod network;
pub(crate) mod process;
