//! A name of which some bytes were written over, and what it was.

use alloc::string::String;
use spans::json::Value;
use spans::source::Span;

/// A name of which some bytes were written over.
pub(crate) struct Corrupted {
    /// Its literal.
    pub(crate) at: Span,
    /// What it was, if only one name will do.
    pub(crate) was: Option<&'static str>,
}

/// Which of these a name was before some bytes of it were written over; `None` if it is not like any of them.
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
        let behind = text.chars().rev().zip(other.chars().rev()).take_while(same).count();
        let left = before + behind;
        // No character is made of fewer bytes than one.
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

/// Whether a name was this one before some bytes of it were written over.
pub(crate) fn was(name: Value<'_>, what: &'static str) -> bool {
    most_like(name, &mut core::iter::once(what)).is_some()
}
