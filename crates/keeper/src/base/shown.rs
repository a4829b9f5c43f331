//! How a text from outside is shown.

use std::fmt::Write;

/// Whether a character moves a cursor, ends a line, turns the direction of a text or hides in it, so that it is only shown escaped.
/// Noncharacters are among them, which XML cannot hold.
pub fn is_shown_escaped(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Escapes everything in an untrusted text that could move a cursor, change a colour or hide other text.
pub fn plain(text: &str) -> String {
    // Nearly all text needs no escapes.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_string();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_shown_escaped(c) {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}
