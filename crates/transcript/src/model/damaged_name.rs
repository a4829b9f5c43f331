//! Finds the original of a name with overwritten bytes.

use alloc::string::String;
use spans::json::Value;
use spans::source::Span;

/// A name with overwritten bytes.
pub(crate) struct Corrupted {
    /// Its literal.
    pub(crate) at: Span,
    /// The original, if only one name fits.
    pub(crate) was: Option<&'static str>,
}

/// Which of these names an overwritten one was; `None` if it resembles none of them.
pub(crate) fn most_like(name: Value<'_>, names: &mut dyn Iterator<Item = &'static str>) -> Option<Corrupted> {
    let text = name.text()?;
    let text = String::from_utf8_lossy(&text);
    let usual = |c: char| c.is_alphanumeric() || "_-. $:/@".contains(c);
    if text.chars().all(usual) {
        return None;
    }
    let mut best: Option<(usize, Option<&'static str>)> = None;
    for other in names {
        let same = |(one, two): &(char, char)| one == two;
        let before = text.chars().zip(other.chars()).take_while(same).count();
        let after = text.chars().rev().zip(other.chars().rev()).take_while(same).count();
        let left = before + after;
        // Every character has at least one byte.
        if left * 4 < other.len() || text.chars().count() > other.len() {
            continue;
        }
        best = match best {
            Some((most, _)) if most > left => best,
            Some((most, _)) if most == left => Some((left, None)),
            _ => Some((left, Some(other))),
        };
    }
    best.map(|(_, was)| Corrupted { at: name.span(), was })
}

/// Whether this was the original of an overwritten name.
pub(crate) fn was(name: Value<'_>, what: &'static str) -> bool {
    most_like(name, &mut core::iter::once(what)).is_some()
}
