//! Ctrl-C: the files at hand are finished, no other is begun, and what was done is said. A second one ends at once;
//! files are whole then too, as after any death.

use crate::say::eprint_message;
use crate::system::on_interrupt;
use signal_hook::low_level::emulate_default_handler;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Whether the run is to end early.
pub(super) struct Interrupt {
    /// The signal that came; 0 if none did.
    signal: Arc<AtomicI32>,
}

impl Interrupt {
    /// Listens from now on. Where that is impossible, a signal ends the program as ever.
    pub(super) fn watch() -> Self {
        let signal = Arc::new(AtomicI32::new(0));
        let seen = signal.clone();
        on_interrupt(move |came| {
            if seen.swap(came, Ordering::SeqCst) != 0 {
                let _ = emulate_default_handler(came);
            }
            eprint_message("Finishing the current files; press Ctrl-C again to stop now");
        });
        Self { signal }
    }

    /// Whether a signal came.
    pub(super) fn came(&self) -> bool {
        self.signal.load(Ordering::SeqCst) != 0
    }

    /// Ends as the signal would have it, so that a shell sees it and ends its loops. Does nothing if none came.
    pub(super) fn obey(&self) {
        let signal = self.signal.load(Ordering::SeqCst);
        if signal != 0 {
            let _ = emulate_default_handler(signal);
        }
    }
}
