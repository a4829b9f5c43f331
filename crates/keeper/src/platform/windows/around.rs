//! What is around a process of ours: the shells between an agent and us, our parent, the machine.

use super::process;

/// What agents run hooks by.
pub(crate) const SHELLS: &[&str] = &["cmd", "powershell", "pwsh", "bash", "sh", "env"];

/// The process that started us, as far as that is known.
pub(crate) fn parent_id() -> u32 {
    let own = std::process::id();
    process::ancestors(own).get(1).copied().unwrap_or(own)
}

/// Only agents on Linux write it into their locks.
pub(crate) fn host_name() -> Option<Vec<u8>> {
    None
}
