//! Grok Build's lock: `flock` on a file beside the transcript, named after it.
//!
//! Grok Build takes it for each append, so we take it too, and give it back when the file has been replaced. If there is no
//! lock file, nothing was ever appended under it, and we create none.

use super::target::{GateAnswer, GateTarget, HeldLock, lock_beside, open_lock};
use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use std::fs::{File, TryLockError};

/// The lock, held.
struct GrokLock(File);

impl HeldLock for GrokLock {}

impl Drop for GrokLock {
    /// Unlocks explicitly: a child process that has not run `exec` yet may share the descriptor, so closing it is not enough.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

pub(super) fn ask(target: &GateTarget<'_>) -> GateAnswer {
    let path = lock_beside(target.path);
    let fail = |cause| Error::new(&path, "take the lock", cause);
    let Some(file) = open_lock(&path).map_err(fail)? else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(Box::new(GrokLock(file)))),
        Err(TryLockError::WouldBlock) => {
            Err(Deferral::Busy { agent: "Grok Build", lock: "lock beside the file" }.into())
        }
        Err(TryLockError::Error(cause)) => Err(fail(cause).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::target::tests::{GateCase, deferral, is_open};
    use super::*;

    #[test]
    fn a_lock_that_somebody_holds_holds() {
        let dir = tempfile::tempdir().unwrap();
        let case = GateCase::new(dir.path().join("s/chat_history.jsonl"), "x");
        assert!(is_open(&ask(&case.target())), "nobody has ever locked it");
        let lock = File::create(dir.path().join("s/chat_history.jsonl.lock")).unwrap();
        lock.lock().unwrap();
        assert!(matches!(deferral(ask(&case.target())), Deferral::Busy { agent: "Grok Build", .. }));
        lock.unlock().unwrap();
        let held = ask(&case.target()).unwrap().unwrap();
        assert!(File::open(dir.path().join("s/chat_history.jsonl.lock")).unwrap().try_lock().is_err());
        drop(held);
        assert!(lock.try_lock().is_ok(), "it was not given back");
    }
}
