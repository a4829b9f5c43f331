//! Nothing that comes from a file reaches a terminal as it is: transcripts are full of escape sequences.

use std::fmt::Write;

/// A text from outside, with everything that could move a cursor, change a colour or hide other text spelled
/// out.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// JSON that cannot do so either: what JSON leaves as it is becomes an escape.
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| _ = write!(out, "\\u{unit:04x}"));
        } else {
            out.push(c);
        }
    }
    out
}

/// Marks of direction, of zero width, tags and line separators.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::{json, plain};

    #[test]
    fn no_clipboard_no_title_no_colour_no_bidi() {
        assert_eq!(plain("\x1b]52;c;ZXZpbA==\x07"), "\\u{1b}]52;c;ZXZpbA==\\u{7}");
        assert_eq!(plain("a\u{202e}b\u{9b}31m"), "a\\u{202e}b\\u{9b}31m");
        assert_eq!(plain("sitzung é 日本"), "sitzung é 日本");
        assert_eq!(json("{\"a\":\"\u{202e}\u{e0041}\u{9b}é\"}"), "{\"a\":\"\\u202e\\udb40\\udc41\\u009bé\"}");
    }
}
