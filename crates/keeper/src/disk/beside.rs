//! The name of the second file of a replacement, which is beside the transcript.

use crate::disk::folder::Place;

const BEGIN: &str = ".tailor-";
const END: &str = ".tmp";
const OTHER_END: &str = ".old";

/// The name for the second file of a replacement.
pub(crate) fn name(run: &str) -> String {
    format!("{BEGIN}{run}{END}")
}

/// The other one of the two second names of a run: where names are exchanged in two steps, both are in use for a moment.
pub(crate) fn other(second: &str) -> String {
    let run = run_of(second).unwrap_or_default();
    let end = if second.ends_with(END) { OTHER_END } else { END };
    format!("{BEGIN}{run}{end}")
}

/// Whether a run has left a file beside a transcript. If so, its record must stay too.
pub(crate) fn is_left(place: &Place, run: &str) -> bool {
    let name = name(run);
    [&other(&name), &name].into_iter().any(|name| place.metadata_of(name).is_ok_and(|left| left.is_some()))
}

/// The run whose file has this name.
pub(crate) fn run_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(BEGIN)?;
    rest.strip_suffix(END).or_else(|| rest.strip_suffix(OTHER_END))
}
