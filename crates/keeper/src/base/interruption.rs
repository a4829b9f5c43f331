//! The end of this process, for which nothing that takes long waits.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_TOLD: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
thread_local! {
    /// Whether the tests of one thread are to end in this way.
    pub(crate) static IS_TOLD_HERE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Has everything that reads a transcript, or copies one before it is replaced, end with an error, from now on.
pub fn stop_reading() {
    IS_TOLD.store(true, Ordering::Relaxed);
}

/// Fails once [`stop_reading`] was called.
pub(crate) fn stop_if_told() -> io::Result<()> {
    let is_told = IS_TOLD.load(Ordering::Relaxed);
    #[cfg(test)]
    let is_told = is_told || IS_TOLD_HERE.get();
    if is_told { Err(io::Error::new(io::ErrorKind::Interrupted, "told to stop")) } else { Ok(()) }
}
