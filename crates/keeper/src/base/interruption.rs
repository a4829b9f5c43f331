//! The end of this process, for which nothing that takes long waits.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// Has everything that reads a transcript, or copies one before it is replaced, end with an error, from now on.
pub fn stop_reading() {
    IS_TOLD.store(true, Ordering::Relaxed);
}

/// Fails once [`stop_reading`] was called.
pub(crate) fn stop_if_told() -> io::Result<()> {
    if IS_TOLD.load(Ordering::Relaxed) { Err(io::Error::other("told to stop")) } else { Ok(()) }
}
