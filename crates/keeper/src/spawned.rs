//! Processes that tests start.

use std::process::{Child, Command};
use std::sync::RwLock;

/// Held by tests that must not run while a new process has all our files open, which is until it executes its
/// program.
pub(crate) static NO_FORKS: RwLock<()> = RwLock::new(());

pub(crate) fn spawn(command: &mut Command) -> Child {
    let _alone = NO_FORKS.write();
    command.spawn().unwrap()
}

/// The id of a process that has ended.
pub(crate) fn dead() -> u32 {
    let mut child = spawn(&mut Command::new("true"));
    child.wait().unwrap();
    child.id()
}
