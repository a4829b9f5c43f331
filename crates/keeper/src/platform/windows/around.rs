//! Our surroundings: the shells between an agent and us, our parent process, the machine.

use super::process;

/// Programs through which agents run hooks.
pub(crate) const SHELLS: &[&str] = &["cmd", "powershell", "pwsh", "bash", "sh", "env"];

/// Our parent process, as far as that is known.
pub(crate) fn parent_id() -> u32 {
    let own = std::process::id();
    process::ancestors(own).get(1).copied().unwrap_or(own)
}

/// Only agents on Linux write it into their locks.
pub(crate) fn host_name() -> Option<Vec<u8>> {
    None
}
