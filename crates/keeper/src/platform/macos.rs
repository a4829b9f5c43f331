//! macOS: no leases, names that are exchanged at once, processes by `libproc`.

pub(crate) mod files;
pub(crate) mod network;
#[allow(
    unsafe_code,
    reason = "libproc fills buffers of ours; no well-kept crate wraps it without Apple's headers"
)]
pub(crate) mod process;

pub(crate) use super::other::{lease, mounts};
