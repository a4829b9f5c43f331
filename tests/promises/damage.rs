//! Damage to a file: by crashes, races, other tools, bad disks.

use super::spell::SpelledLine;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// One damage.
#[derive(Clone, Debug)]
pub(crate) enum LineDamage {
    Drop(Index),
    Duplicate(Index, Index),
    Swap(Index, Index),
    /// The last line loses this many bytes and its line break.
    TearEnd(u16),
    /// A line loses its line break, or has this white space in its place.
    Glue(Index, &'static str),
    /// NUL bytes before a line, after it, or in place of it.
    Nuls(Index, u8),
    /// An entry's parent becomes another entry, perhaps itself or one of its children.
    Reparent(Index, Index),
    /// An entry's parent becomes one that does not exist.
    Dangle(Index),
    /// An entry's parent is removed.
    Uproot(Index),
    /// All line ends become CRLF, or one of them.
    Crlf(Option<Index>),
    NoFinalNewline,
    /// A byte order mark before the first line, or on a line of its own.
    Bom(bool),
    Blank(Index),
    /// A line that is not a record.
    Litter(Index, &'static str),
    /// Another whole line was written into the middle of a line.
    Splice(Index, Index, Index),
    /// A line is cut in the middle, and the next one follows directly.
    Cut(Index, Index),
    /// A string of a line has these bytes in the middle.
    Inside(Index, &'static [u8]),
    /// A text becomes very long.
    Oversize(Index, u16),
    /// Bytes of a line are overwritten.
    Overwrite(Index, Index, Vec<u8>),
}

/// Damage whose effect on agents is known: no overwritten bytes.
pub(crate) fn plain() -> impl Strategy<Value = LineDamage> {
    let at = any::<Index>;
    let glue = prop::sample::select(vec!["", " ", "\t", "\r"]);
    let litter = prop::sample::select(vec!["null", "[1,2]", "warning: disk", "{", "{\"a\":1}x", "\u{feff}"]);
    prop_oneof![
        4 => at().prop_map(LineDamage::Drop),
        3 => (at(), at()).prop_map(|(a, b)| LineDamage::Duplicate(a, b)),
        4 => (at(), at()).prop_map(|(a, b)| LineDamage::Swap(a, b)),
        2 => (0u16..300).prop_map(LineDamage::TearEnd),
        2 => (at(), glue).prop_map(|(at, with)| LineDamage::Glue(at, with)),
        1 => (at(), 0u8..3).prop_map(|(at, how)| LineDamage::Nuls(at, how)),
        3 => (at(), at()).prop_map(|(a, b)| LineDamage::Reparent(a, b)),
        1 => at().prop_map(LineDamage::Dangle),
        1 => at().prop_map(LineDamage::Uproot),
        1 => prop::option::of(at()).prop_map(LineDamage::Crlf),
        1 => Just(LineDamage::NoFinalNewline),
        1 => any::<bool>().prop_map(LineDamage::Bom),
        1 => at().prop_map(LineDamage::Blank),
        1 => (at(), litter).prop_map(|(at, what)| LineDamage::Litter(at, what)),
    ]
}

/// The known kinds of damage to a healthy session.
pub(crate) fn known() -> impl Strategy<Value = LineDamage> {
    let at = any::<Index>;
    let inside = prop::sample::select(vec![
        &b"\n"[..],
        b"\r\n",
        b"\t",
        b"\x01",
        b"\0\0\0\0",
        b"\xff\xfe",
        b"\xe6\x87",
        b"\\ud83d",
        b"\xe2\x80\xa8",
    ]);
    let overwrite = (at(), at(), vec(any::<u8>(), 1..6));
    prop_oneof![
        12 => plain(),
        3 => (at(), at(), at()).prop_map(|(a, b, c)| LineDamage::Splice(a, b, c)),
        3 => (at(), at()).prop_map(|(a, b)| LineDamage::Cut(a, b)),
        4 => (at(), inside).prop_map(|(a, what)| LineDamage::Inside(a, what)),
        2 => (at(), 1000u16..9000).prop_map(|(a, chars)| LineDamage::Oversize(a, chars)),
        2 => overwrite.prop_map(|(line, at, bytes)| LineDamage::Overwrite(line, at, bytes)),
    ]
}

/// All kinds of damage.
pub(crate) fn any_kind() -> impl Strategy<Value = LineDamage> {
    let overwrite = (any::<Index>(), any::<Index>(), vec(any::<u8>(), 1..6));
    prop_oneof![
        9 => plain(),
        1 => overwrite.prop_map(|(line, at, bytes)| LineDamage::Overwrite(line, at, bytes)),
    ]
}

/// A line and its line end.
struct EndedLine {
    line: SpelledLine,
    end: &'static str,
}

/// The bytes of the damaged file.
pub(crate) fn befall(lines: Vec<SpelledLine>, damages: &[LineDamage]) -> Vec<u8> {
    let mut rows: Vec<EndedLine> = lines.into_iter().map(|line| EndedLine { line, end: "\n" }).collect();
    for damage in damages {
        if rows.is_empty() {
            break;
        }
        happen(&mut rows, damage);
    }
    let mut bytes = Vec::new();
    for row in rows {
        bytes.extend(row.line.bytes);
        bytes.extend(row.end.as_bytes());
    }
    bytes
}

fn happen(rows: &mut Vec<EndedLine>, damage: &LineDamage) {
    let count = rows.len();
    match damage {
        LineDamage::Drop(at) => _ = rows.remove(at.index(count)),
        LineDamage::Duplicate(from, to) => {
            let line = rows[from.index(count)].line.clone();
            rows.insert(to.index(count + 1), EndedLine { line, end: "\n" });
        }
        LineDamage::Swap(one, two) => {
            let (one, two) = (one.index(count), two.index(count));
            let line = rows[one].line.clone();
            rows[one].line = std::mem::replace(&mut rows[two].line, line);
        }
        LineDamage::TearEnd(bytes) => {
            let last = &mut rows[count - 1];
            let length = last.line.bytes.len();
            last.line.bytes.truncate(length.saturating_sub(usize::from(*bytes)));
            last.end = "";
        }
        LineDamage::Glue(at, with) => rows[at.index(count)].end = with,
        LineDamage::Nuls(at, how) => {
            let bytes = &mut rows[at.index(count)].line.bytes;
            match how {
                0 => drop(bytes.splice(0..0, [0; 5])),
                1 => bytes.extend([0; 5]),
                _ => bytes.fill(0),
            }
        }
        LineDamage::Reparent(of, to) => {
            let to = rows[to.index(count)].line.id.clone();
            relink(&mut rows[of.index(count)].line, to.as_deref().unwrap_or("nobody"));
        }
        LineDamage::Dangle(at) => relink(&mut rows[at.index(count)].line, "nobody"),
        LineDamage::Uproot(at) => relink(&mut rows[at.index(count)].line, ""),
        LineDamage::Crlf(None) => {
            rows.iter_mut().filter(|row| row.end == "\n").for_each(|row| row.end = "\r\n")
        }
        LineDamage::Crlf(Some(at)) => rows[at.index(count)].end = "\r\n",
        LineDamage::NoFinalNewline => rows[count - 1].end = "",
        LineDamage::Bom(true) => insert(rows, 0, "\u{feff}"),
        LineDamage::Bom(false) => drop(rows[0].line.bytes.splice(0..0, *b"\xef\xbb\xbf")),
        LineDamage::Blank(at) => insert(rows, at.index(count + 1), ""),
        LineDamage::Litter(at, what) => insert(rows, at.index(count + 1), what),
        LineDamage::Splice(line, other, at) => {
            let other = rows.remove(other.index(count)).line.bytes;
            if let Some(row) = (count > 1).then(|| line.index(count - 1)) {
                let bytes = &mut rows[row].line.bytes;
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, other);
            }
        }
        LineDamage::Cut(line, at) => {
            let row = &mut rows[line.index(count)];
            let length = at.index(row.line.bytes.len() + 1);
            row.line.bytes.truncate(length);
            row.end = "";
        }
        LineDamage::Inside(line, what) => insert_text(&mut rows[line.index(count)].line.bytes, what),
        LineDamage::Oversize(line, chars) => {
            insert_text(
                &mut rows[line.index(count)].line.bytes,
                "long ".repeat(usize::from(*chars)).as_bytes(),
            );
        }
        LineDamage::Overwrite(line, at, with) => {
            let bytes = &mut rows[line.index(count)].line.bytes;
            let at = at.index(bytes.len() + 1);
            let end = (at + with.len()).min(bytes.len());
            bytes.splice(at..end, with.iter().copied());
        }
    }
}

fn insert(rows: &mut Vec<EndedLine>, at: usize, what: &str) {
    rows.insert(at, EndedLine { line: SpelledLine { id: None, bytes: what.into() }, end: "\n" });
}

/// Inserts bytes into the first text of a line.
fn insert_text(line: &mut Vec<u8>, what: &[u8]) {
    let keys = [&b"\"text\":\""[..], b"\"content\":\""];
    let place =
        keys.iter().find_map(|key| Some(line.windows(key.len()).position(|own| own == *key)? + key.len()));
    if let Some(at) = place {
        line.splice(at..at, what.iter().copied());
    }
}

/// Replaces the parent in a line that has one; removes it if `to` is empty.
fn relink(line: &mut SpelledLine, to: &str) {
    let text = String::from_utf8_lossy(&line.bytes).into_owned();
    for key in ["\"parentId\":", "\"parentUuid\":"] {
        let Some(from) = text.find(key).map(|at| at + key.len()) else { continue };
        let Some(length) = text[from..].find(',') else { continue };
        let new = if to.is_empty() { "null".to_string() } else { format!("\"{to}\"") };
        line.bytes = [&text[..from], &new, &text[from + length..]].concat().into_bytes();
        return;
    }
}
