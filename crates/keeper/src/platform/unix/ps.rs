//! The list of processes, from `ps`, whose options POSIX lays down.

use crate::platform::seen::ListedProcess;
use std::process::Command;

/// All processes, with their command lines; none if there is no `ps`.
pub(crate) fn listed() -> Vec<ListedProcess> {
    let ran = Command::new("ps").args(["-A", "-o", "pid=", "-o", "ppid=", "-o", "args="]).output();
    let text = ran.map(|ran| ran.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(listed_in).collect()
}

fn listed_in(line: &str) -> Option<ListedProcess> {
    let (pid, rest) = line.trim_start().split_once(' ')?;
    let (parent, command) = rest.trim_start().split_once(' ')?;
    Some(ListedProcess::new(pid.parse().ok()?, parent.parse().ok()?, command.trim()))
}
