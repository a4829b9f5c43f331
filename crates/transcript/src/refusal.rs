//! Reads the error with which an API, an agent or a trainer refuses a session: by the grammar of such texts, not by a
//! list of them.
//!
//! A text has a wrapper (`unwrap`), a place (`place`), and a reason, which is one of the [`FAMILIES`]. The root of the
//! place says whose fault it is: `tools` and `system` are settings of the request and not in the session. A text that
//! no family knows stays unknown. Nothing here knows a rule, a format or a session; codes are names.
//!
//! ```
//! use transcript::refusal;
//! let known = refusal::find("messages.3.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_9");
//! assert_eq!(known.unwrap().codes, ["P2", "P3", "P8"]);
//! assert_eq!(refusal::find("429 Too Many Requests").unwrap().name, "rate");
//! ```

mod clause;
mod families;
mod family;
mod pattern;
mod place;
mod unwrap;

pub use families::FAMILIES;
pub use family::{Blame, Family};
pub use place::{Place, Unit};

use crate::model::overflow::{Cause, classify, is_over_minute};
use alloc::string::String;
use pattern::{Facts, fits, folded};

/// An error as it was read.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// What it is about; `None` if no family knows it.
    pub family: Option<&'static Family>,
    /// The place that it names.
    pub place: Option<Place>,
    /// The HTTP status that it tells.
    pub status: Option<u16>,
    /// The role that it says the message at that place has.
    pub role: Option<&'static str>,
}

/// Roles, and how errors say that a message has one.
const ROLES: &[(&str, &[&str])] = &[
    ("user", &["(with role |role:|for role )user", "user message(s)? must", "user message at"]),
    ("assistant", &["(with role |role:|for role )assistant", "*.assistant.", "assistant message at"]),
    ("tool", &["(with role |role:|for role )tool", "tool message(s)? must", "tool message at"]),
    ("system", &["(with role |role:|for role )system", "system message at"]),
];

/// Reads an error, which may have other text around it.
pub fn read(text: &str) -> Refusal {
    let (text, inner) = unwrap::unwrapped(text);
    let (status, place) = (unwrap::status(&text), Place::find(&text));
    let root = place.as_ref().and_then(Place::blame);
    let facts = Facts { part: place.as_ref().map_or("", Place::part), root, status };
    // The innermost message is the provider's own; what is around it may speak of something else.
    let inner = inner.as_deref().map(folded);
    let (inner, whole) = (inner.as_deref(), folded(&unwrap::without_keys(&text)));
    let says_whose = |family: &&Family| family.blame != Blame::Untold;
    let of_whole = phrase(&whole, facts);
    let family = inner
        .and_then(|inner| phrase(inner, facts))
        .filter(says_whose)
        .or(of_whole.filter(says_whose))
        .or_else(|| inner.and_then(|inner| clause::family(inner, facts)))
        .or(of_whole)
        .or_else(|| clause::family(&whole, facts))
        .or_else(|| inner.and_then(|inner| hint(inner, facts)))
        .or_else(|| hint(&whole, facts))
        .or_else(|| setting(root));
    let alone = family.is_some_and(|family| family.name == "rate") && is_over_minute(&text);
    let family = if alone { named(families::MINUTE) } else { family };
    let role = ROLES.iter().find(|(_, texts)| is_told(texts, &whole, facts)).map(|(role, _)| *role);
    Refusal { family, place, status, role }
}

/// The first family of which a phrase fits.
fn phrase(text: &str, facts: Facts) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| facts.allow(family) && is_told(family.says, text, facts))
}

/// The first family of which a hint fits, if the status does not rule it out.
fn hint(text: &str, facts: Facts) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| {
        // A breakpoint of the prompt cache stands in a message, and is a setting nevertheless.
        let hints = family.hints.iter().filter(|hint| facts.allow(family) || hint.starts_with("@cache"));
        let mut hints = hints.filter(|_| facts.allow_weak(family));
        hints.any(|hint| fits(hint, text, facts))
    })
}

fn is_told(patterns: &[&str], text: &str, facts: Facts) -> bool {
    patterns.iter().any(|pattern| fits(pattern, text, facts))
}

/// The family of a place in the request's settings.
fn setting(root: Option<Blame>) -> Option<&'static Family> {
    root.filter(|root| *root == Blame::Elsewhere)?;
    named("setting")
}

fn named(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}

/// The family of an error.
pub fn find(text: &str) -> Option<&'static Family> {
    read(text).family
}

/// Why a request failed: as [`classify`] says, and also where only the family shows that it was about length.
pub fn cause(text: &str) -> Cause {
    match (classify(text), find(text).map_or("", |family| family.name)) {
        (Cause::Other, "length") => Cause::ContextOverflow,
        (Cause::Other, "payload") => Cause::PayloadTooLarge,
        (Cause::ContextOverflow | Cause::PayloadTooLarge, "rate") => Cause::Other,
        (cause, _) => cause,
    }
}

/// HTTP statuses of a request that is wrong in itself.
const WRONG_REQUEST: &[u16] = &[400, 413, 422];

/// Whether a provider refuses a request for what is in it, so that it will refuse it again.
pub(crate) fn is_of_request(text: &str) -> bool {
    let read = read(text);
    match read.family.map(|family| family.blame) {
        Some(Blame::Elsewhere) => false,
        Some(Blame::Session) => read.status.is_none_or(|status| WRONG_REQUEST.contains(&status)),
        Some(Blame::Untold) | None => read.status.is_some_and(|status| WRONG_REQUEST.contains(&status)),
    }
}

/// Whether an error is from a content filter.
pub(crate) fn is_blocked(text: &[u8]) -> bool {
    find(&String::from_utf8_lossy(text)).is_some_and(|family| family.name == "filter")
}

#[cfg(test)]
mod tests;
