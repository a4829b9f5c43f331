//! Compares error texts with patterns, and knows the texts of content filters.

use alloc::string::String;

/// What a provider's content filter says.
pub(crate) const BLOCKED: &[&str] =
    &["prompt injection patterns detected", "blocked by content filter", "Request blocked:"];

/// Whether an error is from a content filter.
pub(crate) fn is_blocked(text: &[u8]) -> bool {
    says_one_of(&String::from_utf8_lossy(text), BLOCKED)
}

/// Whether a text contains one of these; `*` matches anything. Case, quotes and white space do not matter.
pub(crate) fn says_one_of(text: &str, known: &[&str]) -> bool {
    let text = plain(text);
    known.iter().any(|says| fits(&plain(says), &text))
}

/// The text in lower case, without quotes, and with single spaces.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '`' | '\'' | '"' | '\\' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' => {}
            c if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// Whether the pieces between the stars of a pattern are in the text, in order, as whole words.
fn fits(pattern: &str, text: &str) -> bool {
    let mut rest = text;
    pattern.split('*').map(str::trim).all(|piece| {
        let end = place(piece, rest);
        rest = end.map_or(rest, |end| &rest[end..]);
        end.is_some()
    })
}

/// Where a piece ends in a text. It may not begin or end within a number: 413 is not in 84130.
fn place(piece: &str, text: &str) -> Option<usize> {
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    text.match_indices(piece).map(|(at, _)| (at, at + piece.len())).find_map(|(at, end)| {
        let before = digit(piece.chars().next()) && digit(text[..at].chars().next_back());
        let after = digit(piece.chars().next_back()) && digit(text[end..].chars().next());
        (!before && !after).then_some(end)
    })
}
