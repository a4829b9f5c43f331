//! The name of the second file of a replacement, which is beside the transcript.

use crate::disk::folder::Place;

const BEGIN: &str = ".tailor-";
const END: &str = ".tmp";
const OTHER_END: &str = ".old";
const ASIDE_END: &str = ".aside";

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

/// The second name of a file that steps aside for the other one of a run.
pub(crate) fn aside(second: &str) -> String {
    if is_old(second) {
        other(second)
    } else {
        format!("{BEGIN}{}{ASIDE_END}", run_of(second).unwrap_or_default())
    }
}

/// Whether this is the second name of the old file of a run whose names were exchanged in steps.
pub(crate) fn is_old(name: &str) -> bool {
    name.ends_with(OTHER_END) || is_aside(name)
}

/// Whether this is the second name of an old file that stepped aside.
pub(crate) fn is_aside(name: &str) -> bool {
    name.ends_with(ASIDE_END)
}

/// Whether a run has left a file beside a transcript. If so, its record must stay too.
pub(crate) fn is_left(place: &Place, run: &str) -> bool {
    let name = name(run);
    [&other(&name), &aside(&name), &name]
        .into_iter()
        .any(|name| place.metadata_of(name).is_ok_and(|left| left.is_some()))
}

/// The run whose file has this name.
pub(crate) fn run_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(BEGIN)?;
    [END, OTHER_END, ASIDE_END].into_iter().find_map(|end| rest.strip_suffix(end))
}
