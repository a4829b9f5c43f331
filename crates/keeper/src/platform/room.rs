//! How much of a transcript there is room for.

use crate::platform::memory;
use std::sync::OnceLock;
use transcript::scan::{ENTRIES_MAX, ENTRY_BYTES};

/// Most entries of one transcript: they may take a quarter of the memory that this process may use.
pub(crate) fn entries_max() -> usize {
    static MAX: OnceLock<usize> = OnceLock::new();
    let fits = |bytes: u64| usize::try_from(bytes / 4 / ENTRY_BYTES).unwrap_or(usize::MAX);
    *MAX.get_or_init(|| memory::limit().map_or(ENTRIES_MAX, fits).min(ENTRIES_MAX))
}
