//! Locks on transcripts: `flock`, which is advisory.

use super::is_lacking;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;

/// Locks a file; `false` if another process has it locked. Where there are no such locks, this always succeeds.
pub(crate) fn take(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(Errno::BADF | Errno::NOLCK) | Ok(()) => Ok(true),
        Err(errno) if is_lacking(errno) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether another process has locked a file, which we have not.
pub(crate) fn is_taken(file: &File) -> bool {
    let locked = flock(file, FlockOperation::NonBlockingLockShared);
    let _ = flock(file, FlockOperation::Unlock);
    locked == Err(Errno::WOULDBLOCK)
}
