//! The program on whose behalf we run: an agent that runs a hook may hold in memory what is to be changed.

use crate::platform::around::{SHELLS, parent_id};
use crate::platform::{ProcessState, process};

/// The process that started us, or that started the shell that did.
pub fn starter() -> u32 {
    let mut above = process::ancestors(std::process::id()).into_iter().skip(1);
    above.find(|pid| !SHELLS.contains(&process::name(*pid).as_str())).unwrap_or_else(parent_id)
}

/// Whether a process that could be seen from here is gone.
pub fn has_ended(pid: u32) -> bool {
    process::life(pid, None) != ProcessState::Alive
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawned::spawn;
    use std::process::Command;

    #[test]
    fn a_process_is_there_until_it_has_ended() {
        assert!(!has_ended(std::process::id()));
        assert!(!has_ended(starter()));
        let mut child = spawn(Command::new("sleep").arg("60"));
        assert!(!has_ended(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(has_ended(child.id()));
    }
}
