//! Ctrl-C: the files at hand are finished, no other is begun, and what was done is said. A second one ends at once;
//! files are whole then too, as after any death.

use crate::say::eprint_message;
use crate::system::on_interrupt;
use signal_hook::low_level::emulate_default_handler;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

/// No work is under way that could end early: a signal ends the program at once.
const IDLE: i32 = -1;
/// Work is under way, and no signal has come.
const AT_WORK: i32 = 0;

/// The signal that came during the work, or one of the above.
static STATE: AtomicI32 = AtomicI32::new(IDLE);
static LISTENER: Once = Once::new();

/// Work that ends early if a signal comes; one at a time.
pub(super) struct Interrupt(&'static AtomicI32);

impl Interrupt {
    /// Listens from now on. Where that is impossible, a signal ends the program as ever.
    pub(super) fn watch() -> Self {
        STATE.store(AT_WORK, Ordering::SeqCst);
        LISTENER.call_once(|| on_interrupt(take));
        Self(&STATE)
    }

    /// Whether a signal came.
    pub(super) fn came(&self) -> bool {
        self.0.load(Ordering::SeqCst) != AT_WORK
    }

    /// Ends as the signal would have it, so that a shell sees it and ends its loops. Does nothing if none came.
    pub(super) fn obey(self) {
        let signal = self.0.load(Ordering::SeqCst);
        if signal != AT_WORK {
            let _ = emulate_default_handler(signal);
        }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.store(IDLE, Ordering::SeqCst);
    }
}

/// Takes note of a signal; a second one, or one while nothing is at work, ends the program.
fn take(signal: i32) {
    if STATE.compare_exchange(AT_WORK, signal, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        let _ = emulate_default_handler(signal);
    }
    eprint_message("Finishing the current files; press Ctrl-C again to stop now");
}
