//! Limits of this process.

use rustix::process::{Resource, Rlimit, setrlimit};
use std::io;

/// Limits this process's memory and processor time from now on, and disables core dumps.
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
