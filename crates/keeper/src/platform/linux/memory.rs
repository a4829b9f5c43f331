//! How memory is had from the system.

/// From how many bytes on a list has pages of its own.
#[cfg(target_env = "gnu")]
const OWN_PAGES_BYTES: i32 = 1 << 20;

/// Gives the memory of long lists back at once. The C library would raise its limit whenever such a list ends, and the next
/// ones would leave holes as they grow: a third of all memory for a long session. Up to twice
/// that much stays at the end of the heap: long rows of a database would otherwise grow and shrink it all the time.
pub fn give_back() {
    // SAFETY: the calls take two numbers each. If one fails, all stays as it was.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * OWN_PAGES_BYTES);
    }
}
