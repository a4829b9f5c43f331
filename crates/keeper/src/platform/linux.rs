//! Linux: file leases, `/proc`, atomic exchange of names, files without a name.

pub(crate) mod exits;
pub(crate) mod files;
#[allow(unsafe_code, reason = "three system calls on descriptors and numbers, no pointers")]
pub(crate) mod lease;
#[allow(unsafe_code, reason = "a call on two numbers, of a C library that only has this switch")]
pub(crate) mod memory;
pub(crate) mod mounts;
pub(crate) mod network;
pub(crate) mod process;
