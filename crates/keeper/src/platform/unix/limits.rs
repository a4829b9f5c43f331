//! Limits of this process.

use rustix::process::{Resource, Rlimit, setrlimit};
use std::io;

/// From now on this process has no more memory and time of a processor than this, and leaves no image of itself behind.
///
/// # Errors
///
/// Those of the system.
pub fn confine(memory_bytes: u64, cpu_seconds: u64) -> io::Result<()> {
    for (what, limit) in [(Resource::As, memory_bytes), (Resource::Cpu, cpu_seconds), (Resource::Core, 0)] {
        setrlimit(what, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}
