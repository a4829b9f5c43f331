//! Copilot's mark of a session in use.
//!
//! Each Copilot CLI that has a session open creates `inuse.<pid>.lock` beside `events.jsonl`. The content of that file is
//! not documented, so only the process id counts: if the process is alive, we wait. Marks of dead processes are common, and
//! are left alone. A process id that was reused looks like its former owner, and that of a process in a container means
//! nothing here; for those there is only the quiet period.

use super::target::{GateAnswer, GateTarget};
use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::platform::{ProcessState, process};
use std::path::Path;

pub(super) fn ask(target: &GateTarget<'_>) -> GateAnswer {
    let folder = target.path.parent().unwrap_or(Path::new("/"));
    let fail = |cause| Error::new(folder, "look for Copilot's marks", cause);
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("inuse.")?.strip_suffix(".lock"));
        if let Some(pid) = number.and_then(|number| number.parse().ok())
            && process::life(pid, None) == ProcessState::Alive
        {
            return Err(Deferral::InUse { agent: "Copilot", pid, status: None }.into());
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::target::tests::{GateCase, deferral, is_open};
    use super::*;
    use crate::spawned::dead;
    use std::fs;

    #[test]
    fn a_mark_of_a_live_process_holds() {
        let dir = tempfile::tempdir().unwrap();
        let case = GateCase::new(dir.path().join("5b0c/events.jsonl"), "x");
        let mark = |pid: &str| fs::write(dir.path().join(format!("5b0c/inuse.{pid}.lock")), "").unwrap();
        assert!(is_open(&ask(&case.target())));
        for stale in [&dead().to_string(), "", "0", "-1", "x", "99999999999"] {
            mark(stale);
        }
        assert!(is_open(&ask(&case.target())));
        let own = std::process::id();
        mark(&own.to_string());
        assert!(matches!(deferral(ask(&case.target())), Deferral::InUse { pid, .. } if pid == own));
        assert_eq!(fs::read_dir(dir.path().join("5b0c")).unwrap().count(), 8, "marks are not ours to remove");
    }
}
