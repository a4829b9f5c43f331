//! The name of the second file of a replacement, which is beside the transcript.

use crate::place::Place;

const BEGIN: &str = ".tailor-";
const END: &str = ".tmp";
/// Ending of the additional name of an old file, where names cannot be exchanged atomically.
const ASIDE_END: &str = ".old";

/// The name for the second file of a replacement.
pub(crate) fn name(run: &str) -> String {
    format!("{BEGIN}{run}{END}")
}

/// The additional name that the old file has while names are exchanged in two steps.
pub(crate) fn aside(temporary: &str) -> String {
    format!("{}{ASIDE_END}", temporary.strip_suffix(END).unwrap_or(temporary))
}

/// Whether a run has left a file beside a transcript. If so, its record must stay too.
pub(crate) fn is_left(place: &Place, run: &str) -> bool {
    place.metadata_of(name(run)).is_ok_and(|left| left.is_some())
}

/// The run whose file has this name.
pub(crate) fn run_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(BEGIN)?;
    rest.strip_suffix(END).or_else(|| rest.strip_suffix(ASIDE_END))
}
