//! The small language in which a family says what its texts look like.
//!
//! A pattern is a text in which `*` stands for up to [`GAP_BYTES_MAX`] bytes, `#` for a number, and `(a|b)` for one of
//! several texts, `(a)?` for one that may be missing. It begins where a word begins, unless it begins with `*`, and no number is cut in two. Two conditions
//! may come before it: `@id` wants that part of the path that the error names, `@message` any place in the session, and
//! `=429` that HTTP status.

use super::family::{Blame, Family};
use alloc::string::String;

/// How much `*` may stand for: two halves of a sentence, not two sentences far apart.
const GAP_BYTES_MAX: usize = 120;

/// What conditions are compared with, and what rules families out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub(super) part: &'static str,
    /// The blame that the root of the place lays.
    pub(super) root: Option<Blame>,
    pub(super) status: Option<u16>,
}

/// What a server says of itself does not stand beside a status that refuses the request.
const OF_SERVERS: &[&str] = &["overload", "network"];

/// Parts of a message that have no role.
const OF_PARTS: &[&str] = &["content", "arguments", "id", "name", "image", "document", "output", "type"];

impl Facts {
    fn are_in_session(self) -> bool {
        self.root == Some(Blame::Session)
    }

    /// Whether the place and the status leave a family possible: a path into the request's settings rules out what is
    /// wrong with messages, and the other way round; and who is not let in, or too often, was not read.
    pub(super) fn allow(self, family: &Family) -> bool {
        let by_root = match self.root {
            // Whose fault it is, is then told.
            Some(Blame::Elsewhere) => family.blame == Blame::Elsewhere,
            Some(root) => family.blame == root || family.blame == Blame::Untold,
            None => true,
        };
        let by_status = match self.status {
            _ if self.are_in_session() || family.blame != Blame::Session => true,
            Some(401 | 402 | 407 | 429) => false,
            Some(403) => family.name == "filter",
            _ => true,
        };
        let by_part =
            !(self.are_in_session() && family.name == "role-order" && OF_PARTS.contains(&self.part));
        (by_root || matches!(family.name, "rate" | "credit")) && by_status && by_part
    }

    /// Whether the status leaves a family possible that no phrase tells: a request that is wrong was received, and a
    /// server that failed did not look at the session.
    pub(super) fn allow_weak(self, family: &Family) -> bool {
        match self.status {
            Some(400 | 422) => !OF_SERVERS.contains(&family.name),
            Some(500..) => family.blame != Blame::Session || self.are_in_session(),
            _ => true,
        }
    }
}

/// The text in lower case, without quotes and backslashes, with spaces for underscores, and with single spaces.
pub(super) fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '`' | '\'' | '"' | '\\' | '*' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' => {}
            c if c.is_whitespace() || c == '_' => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// Whether a pattern fits somewhere in a folded text.
pub(super) fn fits(pattern: &str, text: &str, facts: Facts) -> bool {
    let mut rest = pattern;
    while let Some((condition, after)) = rest.strip_prefix(['@', '=']).map(split_word) {
        let holds = if rest.starts_with('@') {
            facts.part == condition || condition == "message" && facts.are_in_session()
        } else {
            facts.status.is_some_and(|status| condition.parse() == Ok(status))
        };
        if !holds {
            return false;
        }
        rest = after;
    }
    let free = rest.strip_prefix('*');
    let bytes = free.unwrap_or(rest).as_bytes();
    if bytes.is_empty() {
        return true;
    }
    // Most patterns fall here: the longest text that each of them needs is not there.
    let mut needed = literals(rest);
    if !needed.all(|piece| text.contains(piece)) {
        return false;
    }
    let text = text.as_bytes();
    let first = bytes.first().copied().filter(|first| !b"(#".contains(first));
    (0..text.len()).any(|at| {
        first.is_none_or(|first| text[at] == first)
            && (free.is_some() || is_start(text, at))
            && ends_at(bytes, text, at)
    })
}

/// The texts of a pattern that stand in every text that it fits: what is in no choice.
fn literals(pattern: &str) -> impl Iterator<Item = &str> {
    let outside = pattern.split('(').enumerate().map(|(at, piece)| match piece.split_once(')') {
        Some((_, after)) if at > 0 => after.strip_prefix('?').unwrap_or(after),
        _ => piece,
    });
    outside.flat_map(|piece| piece.split(['*', '#'])).map(str::trim).filter(|piece| !piece.is_empty())
}

fn split_word(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// Whether a word or number may begin here. Letters of scripts without spaces always begin one.
fn is_start(text: &[u8], at: usize) -> bool {
    let is_word = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
    at == 0 || !is_word(at) || !is_word(at - 1)
}

/// Whether a pattern fits exactly from here on.
fn ends_at(pattern: &[u8], text: &[u8], at: usize) -> bool {
    let Some((&first, rest)) = pattern.split_first() else {
        // A number does not end in its middle.
        let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
        let cut = at > 0 && is_digit(at - 1) && is_digit(at);
        return !cut;
    };
    match first {
        // What `*` stands for may begin with another character than a space.
        b' ' if rest.first() == Some(&b'*') => {
            !text.get(at).is_some_and(u8::is_ascii_alphanumeric) && ends_at(rest, text, at)
        }
        b'*' => {
            let rest = rest.strip_prefix(b" ").unwrap_or(rest);
            let last = text.len().min(at + GAP_BYTES_MAX);
            (at..=last).any(|start| (start == at || is_start(text, start)) && ends_at(rest, text, start))
        }
        b'#' => {
            let digits = text[at..].iter().take_while(|c| c.is_ascii_digit() || b",.".contains(c)).count();
            digits > 0 && ends_at(rest, text, at + digits)
        }
        b'(' => {
            let close = rest.iter().position(|c| *c == b')').unwrap_or(rest.len());
            let (choices, after) = (&rest[..close], rest.get(close + 1..).unwrap_or_default());
            let optional = after.strip_prefix(b"?");
            let after = optional.unwrap_or(after);
            if optional.is_some() && ends_at(after, text, at) {
                return true;
            }
            choices
                .split(|c| *c == b'|')
                .any(|choice| text[at..].starts_with(choice) && ends_at(after, text, at + choice.len()))
        }
        _ => text.get(at) == Some(&first) && ends_at(rest, text, at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::{Blame, Facts, fits, folded};

    #[test]
    fn patterns_fit_where_they_should() {
        let none = Facts::default();
        for (pattern, text, does) in [
            ("tool use ids", "`tool_use` ids", true),
            ("no * found", "No tool call found", true),
            ("rate limit", "corporate limits", false),
            ("*limit", "ratelimit", true),
            ("# tokens > #", "211,884 tokens > 200000 maximum", true),
            ("413", "messages.413: x", true),
            ("413", "84130", false),
            ("(no|missing) tool (result|output)", "Missing tool output", true),
            ("(no|missing) tool (result|output)", "any tool output", false),
            ("超长", "Prompt 超长", true),
            ("a (b )?c", "a c", true),
            ("a (b )?c", "a b c", true),
            ("a * b", "a and then b", true),
            ("a * b", "a", false),
            ("no * b", "not b", false),
            ("error* b", "error,b", true),
            ("", "", true),
        ] {
            assert_eq!(fits(pattern, &folded(text), none), does, "{pattern}: {text}");
        }
        let facts = Facts { part: "id", root: Some(Blame::Session), status: Some(429) };
        assert!(fits("@id too long", "too long", facts) && !fits("@name too long", "too long", facts));
        assert!(fits("@message too", "too long", facts) && !fits("@message too", "too long", none));
        assert!(fits("=429", "x", facts) && !fits("=429 y", "x", facts) && !fits("=413", "x", facts));
    }

    #[test]
    fn a_gap_is_bounded() {
        let far = alloc::format!("a {} b", "x".repeat(200));
        assert!(!fits("a * b", &far, Facts::default()));
    }
}
