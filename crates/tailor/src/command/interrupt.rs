//! Ctrl-C: finishes the current files, starts no other, and prints what was done. A second one ends the program at
//! once; no file is damaged by that either.

use crate::say::hint;
use keeper::program::on_interrupt;
use signal_hook::low_level::emulate_default_handler;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

/// No work is in progress that could end early: a signal ends the program at once.
const IDLE: i32 = -1;
/// Work is in progress, and no signal has arrived.
const AT_WORK: i32 = 0;

/// The signal that arrived during the work, or one of the values above.
static STATE: AtomicI32 = AtomicI32::new(IDLE);
static LISTENER: Once = Once::new();

/// Work that ends early after a signal; one at a time.
pub(super) struct Interrupt(&'static AtomicI32);

impl Interrupt {
    /// Catches signals from now on. If that is impossible, a signal ends the program as usual.
    pub(super) fn watch() -> Self {
        STATE.store(AT_WORK, Ordering::SeqCst);
        LISTENER.call_once(|| on_interrupt(take));
        Self(&STATE)
    }

    /// Whether a signal has arrived.
    pub(super) fn came(&self) -> bool {
        self.0.load(Ordering::SeqCst) != AT_WORK
    }

    /// Ends the program by the signal, so that a shell notices and ends its loops. Does nothing if none arrived.
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

/// Records a signal. A second one, or one while no work is in progress, ends the program.
fn take(signal: i32) {
    if STATE.compare_exchange(AT_WORK, signal, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        let _ = emulate_default_handler(signal);
    }
    hint("Finishing the current files; press Ctrl-C again to stop now");
}
