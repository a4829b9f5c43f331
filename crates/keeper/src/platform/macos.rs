//! macOS: no leases, atomic exchange of names, processes through `libproc`.

#[allow(unsafe_code, reason = "`kevent` is told of no descriptor, and asked to keep no pointer")]
pub(crate) mod exits;
pub(crate) mod files;
pub(crate) mod network;
#[allow(
    unsafe_code,
    reason = "libproc fills buffers of ours; no well-kept crate wraps it without Apple's headers"
)]
pub(crate) mod process;

pub(crate) use super::nothing::{lease, memory, mounts};

/// A text in a buffer that is longer.
fn text(buffer: &[libc::c_char]) -> Vec<u8> {
    buffer.iter().map(|byte| byte.cast_unsigned()).take_while(|&byte| byte != 0).collect()
}
