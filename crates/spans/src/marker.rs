//! The one line that stands where we cut something.
//!
//! `[tailor: 85432 of 120000 chars omitted; full text: tailor show 3f9a1c20d7e4]`: how much is gone, how much
//! was there, and how to get it back. It is plain ASCII without quotes or backslashes, so that it is written
//! the same inside a JSON string and outside. Where little or nothing of a text is left, a note in parentheses says
//! what it was: `[tailor: 9000 of 9000 chars omitted (300 lines, Go source); full text: tailor show 3f9a1c20d7e4]`.

use crate::source::Span;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::fmt::{self, Write as _};
use memchr::memmem;

/// Longest marker, with room to spare; how far readers look ahead so that none falls between two windows.
pub const BYTES_MAX: usize = 320;

const BEGIN: &str = "[tailor: ";
const OMITTED: &str = " chars omitted";
const PLACE: &str = "; full text: tailor show ";
/// Longest note.
const NOTE_BYTES_MAX: usize = 64;
/// Between the address and the path of a plain file.
const OR: &str = " or ";

/// What stands where a tool printed nothing.
pub const NO_OUTPUT: &str = "(no output)";

/// Content address of a text that was taken out: the first 12 hex digits of the BLAKE3 hash of the literal as
/// it was written, without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextId(Cow<'static, str>);

impl TextId {
    /// How many hex digits of the hash are shown.
    pub const DIGITS: usize = 12;

    /// As long as any address, so that the length of a marker is known without one.
    pub const UNKNOWN: Self = Self(Cow::Borrowed("000000000000"));

    /// The id of a text with this hash.
    pub fn new(hash: &blake3::Hash) -> Self {
        Self(Cow::Owned(hash.to_hex()[..Self::DIGITS].into()))
    }

    /// The address of a text with this hash, in hex.
    pub fn of_hex(hash: &str) -> Option<Self> {
        let digits = hash.get(..Self::DIGITS)?;
        digits
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            .then(|| Self(Cow::Owned(digits.into())))
    }
}

impl fmt::Display for TextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One of our markers in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMarker {
    /// Where it stands, brackets included.
    pub span: Span,
    /// How much of it is gone.
    pub omitted: u64,
    /// Length of the text before the first cut.
    pub total: u64,
    /// Under which address the whole text was kept.
    pub id: TextId,
}

impl FoundMarker {
    /// Whether this marker accounts for a text of so many units: what stands around it is what it says was left,
    /// but for the line breaks that were put around it. Markers in what a tool printed do not.
    pub fn explains(&self, units: u64) -> bool {
        let around = units.checked_sub(self.span.len());
        let breaks = around.and_then(|around| around.checked_sub(self.total - self.omitted));
        breaks.is_some_and(|breaks| breaks <= 2)
    }
}

/// The marker line, without line breaks. `folder` is where the text also lies as a plain file; a note that cannot
/// stand in a marker is left out.
pub fn text(omitted: u64, total: u64, id: &TextId, folder: Option<&TextFolder>, note: &str) -> String {
    let mut line = String::with_capacity(bytes_max(total.max(omitted), id, folder, note) as usize);
    // Writing to a string cannot fail.
    _ = write!(line, "{BEGIN}{omitted} of {total}{OMITTED}");
    if is_note(note) {
        line.extend([" (", note, ")"]);
    }
    line.extend([PLACE, &id.0]);
    if let Some(folder) = folder {
        line.extend([OR, &folder.file(id)]);
    }
    line.push(']');
    line
}

/// How many bytes [`text`] of a text of so many units, all of them omitted, has.
pub fn bytes_max(total: u64, id: &TextId, folder: Option<&TextFolder>, note: &str) -> u64 {
    let digits = 2 * total.checked_ilog10().map_or(1, |log| log as usize + 1);
    let note = if is_note(note) { note.len() + " ()".len() } else { 0 };
    let file = folder.map_or(0, |folder| OR.len() + folder.0.len() + "/.txt".len() + id.0.len());
    let fixed = BEGIN.len() + " of ".len() + OMITTED.len() + PLACE.len() + id.0.len() + "]".len();
    (fixed + digits + note + file) as u64
}

fn is_note(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b" ,.:@_-/".contains(&b);
    (1..=NOTE_BYTES_MAX).contains(&text.len()) && text.bytes().all(plain)
}

/// A folder in which the texts that were cut also lie as plain files, for agents that may read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFolder(String);

impl TextFolder {
    /// Longest path, so that a marker stays within [`BYTES_MAX`].
    pub const PATH_BYTES_MAX: usize = 100;

    /// `None` for a path that cannot stand in a marker: too long, or not of printable ASCII without quotes,
    /// backslashes and brackets.
    pub fn new(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        let plain = |b: u8| (b' '..=b'~').contains(&b) && !b"\"\\[]".contains(&b);
        let fits = (1..=Self::PATH_BYTES_MAX).contains(&path.len()) && path.bytes().all(plain);
        fits.then(|| Self(path.into()))
    }

    /// Path of the file that holds a text.
    pub fn file(&self, id: &TextId) -> String {
        format!("{}/{id}.txt", self.0)
    }
}

/// Whether a literal may begin with one of our markers, without decoding it.
pub fn may_begin(literal: &[u8]) -> bool {
    matches!(literal, [b'[', b't' | b'\\', ..] | [b'\\', ..])
}

/// Whether a literal may hold one of our markers.
pub fn may_hold(literal: &[u8]) -> bool {
    memmem::find(literal, BEGIN.as_bytes()).is_some()
}

/// Whether a text is one of our markers and nothing else.
pub fn is_alone(text: &[u8]) -> bool {
    text.starts_with(BEGIN.as_bytes())
        && find(text, 1, 0).next().is_some_and(|found| found.span == Span::new(0, text.len() as u64))
}

/// What looks like our markers among those that begin within the first `owned` bytes of a literal's window at
/// `base`. Whether one is ours only the whole text tells: [`FoundMarker::explains`].
pub fn find(bytes: &[u8], owned: usize, base: u64) -> impl Iterator<Item = FoundMarker> {
    memmem::find_iter(bytes, BEGIN).take_while(move |&at| at < owned).filter_map(move |at| {
        let line = &bytes[at..bytes.len().min(at + BYTES_MAX)];
        let line = &line[..=memchr::memchr(b']', line)?];
        let text = core::str::from_utf8(line).ok()?.strip_prefix(BEGIN)?.strip_suffix(']')?;
        let (said, place) = text.split_once(PLACE)?;
        let (counts, note) = said.split_once(OMITTED)?;
        let noted = note.is_empty()
            || note.strip_prefix(" (").and_then(|note| note.strip_suffix(')')).is_some_and(is_note);
        let id = place.split_once(OR).map_or(place, |(id, _path)| id);
        let (omitted, total) = counts.split_once(" of ")?;
        let (omitted, total): (u64, u64) = (omitted.parse().ok()?, total.parse().ok()?);
        let hex = (8..=64).contains(&id.len()) && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let start = base + at as u64;
        let span = Span::new(start, start + line.len() as u64);
        (hex && noted && omitted <= total).then(|| FoundMarker {
            span,
            omitted,
            total,
            id: TextId(Cow::Owned(id.into())),
        })
    })
}

/// Results that a program invented for a call whose real one was lost: OpenClaw's transcript repair,
/// ChatCLI, Claude Code, nanobot, Kimi Code, pydantic-ai, our own.
const SYNTHETIC: &[&str] = &[
    "[openclaw] missing tool result",
    "[Tool result missing",
    "[Tool result unavailable",
    "[tailor: tool result missing",
    "Tool execution was interrupted before its result was recorded",
    "The tool call was interrupted before a result was produced",
];

/// The text of the results that we insert. It claims nothing that we do not know.
pub const MISSING_RESULT: &str = "[tailor: tool result missing from this transcript; the call may or may not have run; check before retrying]";

/// Whether a result's text (its beginning, as written) says that it was invented.
pub fn synthetic(prefix: &[u8]) -> bool {
    SYNTHETIC.iter().any(|text| prefix.starts_with(text.as_bytes())) || prefix == b"aborted"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_found_again() {
        let id = TextId::new(&blake3::hash(b"x"));
        let line = format!("before\\n{}\\nafter [tailor: 1 of x]", text(10, 20, &id, None, ""));
        let found = find(line.as_bytes(), line.len(), 100).next().unwrap();
        assert_eq!((found.span.start, found.total, &found.id), (108, 20, &id));
        assert_eq!(&line[8..(found.span.end - 100) as usize], text(10, 20, &id, None, ""));
    }

    #[test]
    fn a_marker_that_a_tool_printed_is_not_ours() {
        let id = TextId::new(&blake3::hash(b"x"));
        let line = text(10, 20, &id, None, "");
        let found = find(line.as_bytes(), line.len(), 0).next().unwrap();
        let marker = line.len() as u64;
        assert!(found.explains(marker + 10) && found.explains(marker + 12));
        assert!(!found.explains(marker + 9) && !found.explains(marker + 13) && !found.explains(3));
    }

    #[test]
    fn a_note_is_part_of_it() {
        let id = TextId::new(&blake3::hash(b"x"));
        let noted = text(10, 20, &id, None, "300 lines, Go source");
        assert!(noted.starts_with("[tailor: 10 of 20 chars omitted (300 lines, Go source); full text: "));
        let found = find(noted.as_bytes(), noted.len(), 0).next().unwrap();
        assert_eq!((found.span.len(), found.omitted), (noted.len() as u64, 10));
        for note in ["a]b", "a\"b", "(x)", "", &"x".repeat(65)] {
            assert_eq!(text(10, 20, &id, None, note), text(10, 20, &id, None, ""), "{note}");
        }
        let folder = TextFolder::new(&"f".repeat(TextFolder::PATH_BYTES_MAX)).unwrap();
        let longest = text(u64::MAX, u64::MAX, &id, Some(&folder), &"x".repeat(NOTE_BYTES_MAX));
        assert!(longest.len() <= BYTES_MAX, "{}", longest.len());
        for (total, folder, note) in
            [(0, None, ""), (9, Some(&folder), "a"), (10, None, "(x)"), (123, None, "b")]
        {
            let written = text(total, total, &id, folder, note).len() as u64;
            assert_eq!(bytes_max(total, &id, folder, note), written, "{total} {note}");
        }
    }

    #[test]
    fn what_merely_looks_like_one_is_text() {
        for line in [
            "[tailor: 30 of 20 chars omitted; full text: tailor show 3f9a1c20]",
            "[tailor: 1 of 20 chars omitted; full text: tailor show XYZ]",
            "[tailor: 1 of 2",
        ] {
            assert_eq!(find(line.as_bytes(), line.len(), 0).next(), None, "{line}");
        }
    }
}
