//! Our surroundings: the shells between an agent and us, our parent process, the host.

pub(crate) use std::os::unix::process::parent_id;

/// Programs through which agents run hooks.
pub(crate) const SHELLS: &[&str] =
    &["sh", "bash", "dash", "ash", "busybox", "ksh", "mksh", "zsh", "fish", "env", "nice"];

/// The name of this machine.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it is not known")]
pub(crate) fn host_name() -> Option<Vec<u8>> {
    Some(rustix::system::uname().nodename().to_bytes().to_vec())
}
