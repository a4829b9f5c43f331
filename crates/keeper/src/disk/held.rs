//! A text in memory. The next one of the same thread reuses its memory: getting new memory costs more than filling it.

use std::cell::Cell;

/// The longest text that is held in memory.
pub(crate) const HELD_BYTES_MAX: usize = if cfg!(test) { 4 << 10 } else { 8 << 20 };

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A text of at most [`HELD_BYTES_MAX`] bytes.
pub(crate) struct HeldText(Vec<u8>);

impl HeldText {
    pub(crate) fn new() -> Self {
        Self(SPARE.take())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds bytes; `false` if there are too many.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> bool {
        let fits = self.0.len() + bytes.len() <= HELD_BYTES_MAX;
        if fits {
            self.0.extend_from_slice(bytes);
        }
        fits
    }
}

impl Drop for HeldText {
    fn drop(&mut self) {
        let mut spare = std::mem::take(&mut self.0);
        spare.clear();
        // At the end of a thread there is no next one.
        let _ = SPARE.try_with(|next| next.set(spare));
    }
}
