//! What the second file of a replacement is called, which lies beside the transcript.

use crate::place::Place;

const BEGIN: &str = ".tailor-";
const END: &str = ".tmp";
/// End of the name that an old file has for an instant where names cannot be exchanged.
const ASIDE_END: &str = ".old";

/// The name for the second file of a replacement.
pub(crate) fn name(run: &str) -> String {
    format!("{BEGIN}{run}{END}")
}

/// Another name for the same file, for an instant.
pub(crate) fn aside(temporary: &str) -> String {
    format!("{}{ASIDE_END}", temporary.strip_suffix(END).unwrap_or(temporary))
}

/// Whether a run has left a file beside a transcript. As long as it has, its record stays too.
pub(crate) fn is_left(place: &Place, run: &str) -> bool {
    place.look(name(run)).is_ok_and(|left| left.is_some())
}

/// The run whose file has this name.
pub(crate) fn run_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(BEGIN)?;
    rest.strip_suffix(END).or_else(|| rest.strip_suffix(ASIDE_END))
}
