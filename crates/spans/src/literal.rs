//! Inside one JSON string literal: what it says, and what must not be taken apart.
//!
//! All work is done on the bytes as written. A *unit* is what must stay whole: a character, an escape, or the
//! two escapes of a surrogate pair. Lone surrogates and invalid UTF-8 are units of their own and survive
//! untouched.

use crate::block::{self, Escapes};
use alloc::vec::Vec;
use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};

/// How text is counted. Each system that a profile reproduces has its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Unicode scalar values; a lone surrogate counts as one. The default.
    #[default]
    Chars,
    /// UTF-16 code units, as `String.length` counts in JavaScript.
    Utf16,
    /// Bytes of the decoded text in UTF-8, as `len` counts in Go and Rust; a lone surrogate counts as three.
    Bytes,
}

impl Unit {
    /// The most units that one character takes.
    pub fn per_char_max(self) -> u64 {
        match self {
            Self::Chars => 1,
            Self::Utf16 => 2,
            Self::Bytes => 4,
        }
    }
}

/// One unit of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiteralPiece {
    /// Bytes as written.
    pub raw: usize,
    /// The character, where the unit is a whole one.
    char: u32,
    /// Bytes of invalid or plain UTF-8 as written; 0 for an escape.
    plain: usize,
    /// Continuation bytes after an escape: they belong to no character, so they are not counted.
    stray: bool,
}

impl LiteralPiece {
    /// How much it counts.
    pub fn length(self, unit: Unit) -> u64 {
        match unit {
            Unit::Chars | Unit::Utf16 if self.stray => 0,
            Unit::Chars => 1,
            Unit::Utf16 => 1 + u64::from(self.char > 0xffff),
            Unit::Bytes if self.plain > 0 => self.plain as u64,
            Unit::Bytes => match self.char {
                0..0x80 => 1,
                0x80..0x800 => 2,
                0x800..0x1_0000 => 3,
                _ => 4,
            },
        }
    }

    /// Whether it is a line feed.
    pub fn is_newline(self) -> bool {
        self.char == 0x0a
    }
}

pub(crate) fn hex4(bytes: &[u8]) -> Option<u32> {
    bytes.get(..4)?.iter().try_fold(0, |value, &byte| Some(value << 4 | char::from(byte).to_digit(16)?))
}

/// The unit at the beginning of `bytes`, which hold at least [`UNIT_BYTES_MAX`] bytes or the literal's rest.
pub fn piece(bytes: &[u8]) -> LiteralPiece {
    let escape = |raw, char| LiteralPiece { raw, char, plain: 0, stray: false };
    match bytes {
        [b'\\', b'u', rest @ ..] => {
            let Some(high) = hex4(rest) else { return escape(2.min(bytes.len()), 0xfffd) };
            if (0xd800..0xdc00).contains(&high)
                && let Some([b'\\', b'u', low @ ..]) = rest.get(4..)
                && let Some(low @ 0xdc00..0xe000) = hex4(low)
            {
                return escape(12, 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00));
            }
            escape(6, high)
        }
        [b'\\', kind, ..] => escape(
            2,
            match kind {
                b'n' => 0x0a,
                b't' => 0x09,
                b'r' => 0x0d,
                b'b' => 0x08,
                b'f' => 0x0c,
                other => u32::from(*other),
            },
        ),
        [first, rest @ ..] => {
            // Stray continuation bytes go with the character before them, so that no count depends on
            // whether the text is valid.
            let more = rest.iter().take_while(|&&byte| byte & 0xc0 == 0x80).count();
            let char = match first {
                0xf0.. => 0x1_0000,
                0x80.. => 0x80,
                ascii => u32::from(*ascii),
            };
            LiteralPiece { raw: 1 + more, char, plain: 1 + more, stray: *first & 0xc0 == 0x80 }
        }
        [] => LiteralPiece { raw: 0, char: 0, plain: 0, stray: false },
    }
}

/// The longest unit as written is a surrogate pair of two escapes. (A run of stray continuation bytes may be
/// longer; splitting that hurts nothing.)
pub const UNIT_BYTES_MAX: usize = 12;

/// How far back a stretch without a backslash is looked for.
const CALM_BYTES: usize = 64;

/// Decodes a whole literal that is in memory, without its quotes. Lone surrogates become three bytes each, as
/// in WTF-8, so that two texts are equal only if they were equal.
pub fn decode(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while !rest.is_empty() {
        let piece = piece(rest);
        if piece.plain > 0 {
            out.extend_from_slice(&rest[..piece.raw]);
        } else if let Some(char) = char::from_u32(piece.char) {
            out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            let c = piece.char;
            out.extend([0xe0 | (c >> 12) as u8, 0x80 | (c >> 6 & 0x3f) as u8, 0x80 | (c & 0x3f) as u8]);
        }
        rest = &rest[piece.raw..];
    }
    out
}

/// Decodes a literal that comes in pieces of any size. Lone surrogates become U+FFFD, so that what was text is text.
#[derive(Default)]
pub struct Decoder {
    /// The beginning of an escape whose end has not come yet.
    rest: Vec<u8>,
}

impl Decoder {
    /// Takes the next bytes as they were written and appends what they say.
    pub fn feed(&mut self, raw: &[u8], out: &mut Vec<u8>) {
        self.rest.extend_from_slice(raw);
        let done = Self::step(&self.rest, false, out);
        self.rest.drain(..done);
    }

    /// Appends what the last bytes say.
    pub fn finish(self, out: &mut Vec<u8>) {
        Self::step(&self.rest, true, out);
    }

    /// Decodes as far as nothing that may follow can change it, and says how far that is.
    fn step(raw: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
        let mut at = 0;
        while let Some(calm) = memchr::memchr(b'\\', &raw[at..]) {
            out.extend_from_slice(&raw[at..at + calm]);
            at += calm;
            if raw.len() - at < UNIT_BYTES_MAX && !last {
                return at;
            }
            let unit = piece(&raw[at..]);
            let char = char::from_u32(unit.char).unwrap_or(char::REPLACEMENT_CHARACTER);
            out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            at += unit.raw.min(raw.len() - at);
        }
        out.extend_from_slice(&raw[at..]);
        raw.len()
    }
}

/// Appends a text as a JSON string literal, quotes included, spelled as `JSON.stringify` spells it. A lone
/// surrogate in the three bytes that [`decode`] makes of it becomes an escape again.
pub fn quote(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut i = 0;
    while i < text.len() {
        match text[i] {
            byte @ (b'"' | b'\\') => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0x08 => out.extend(b"\\b"),
            0x0c => out.extend(b"\\f"),
            byte @ 0..0x20 => {
                out.extend(b"\\u00");
                out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
            0xed if matches!(text.get(i + 1..i + 3), Some([0xa0..=0xbf, 0x80..=0xbf])) => {
                let code = 0xd000 | u32::from(text[i + 1] & 0x3f) << 6 | u32::from(text[i + 2] & 0x3f);
                out.extend(b"\\u");
                out.extend([12, 8, 4, 0].map(|shift| HEX[(code >> shift & 15) as usize]));
                i += 2;
            }
            byte => out.push(byte),
        }
        i += 1;
    }
    out.push(b'"');
}

/// Counts the units of bytes that begin and end between two units: bytes that begin a character, less what
/// escapes take up.
pub fn count(bytes: &[u8], unit: Unit) -> u64 {
    dispatch!(Level::new(), simd => count_with(simd, bytes, unit))
}

#[expect(clippy::inline_always, reason = "only what is inlined is built for the processor's widest vectors")]
#[inline(always)]
fn count_with<S: Simd>(simd: S, bytes: &[u8], unit: Unit) -> u64 {
    let (whole, rest) = bytes.as_chunks();
    let mut last = [b' '; block::SIZE];
    last[..rest.len()].copy_from_slice(rest);
    let (mut split, mut done) = (false, 0);
    // The second half of an escape may lie in the next block, so the sum may be below zero for a while.
    let mut total = (bytes.len() as u64).cast_signed();
    for (n, block) in whole.iter().chain([&last]).enumerate() {
        let at = n * block::SIZE;
        let Escapes { slashes, goes_on, pairs, odd } =
            Escapes::find(simd, block, bytes.get(at + block::SIZE), split);
        split = slashes >> (block::SIZE - 1) == 1;
        // Each escape has a backslash too many; no byte is both.
        let extra = if unit == Unit::Bytes { slashes } else { slashes | goes_on };
        total -= i64::from(extra.count_ones());
        if unit == Unit::Utf16 {
            total += i64::from(pairs.count_ones());
        }
        for from in block::ones(odd).map(|from| at + from) {
            // The second half of a pair was seen with the first.
            if from >= done {
                let unit_here = piece(&bytes[from..]);
                done = from + unit_here.raw;
                total -= surplus(&bytes[from..done], unit_here.length(unit), unit);
            }
        }
    }
    // A backslash at the very end begins no escape: it and the blank after it were taken for one.
    if bytes.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1 {
        total += if unit == Unit::Bytes { 1 } else { 2 };
    }
    total.max(0).cast_unsigned()
}

/// How many units too many are counted for an escape when its bytes count like any others, but for backslashes
/// that begin one.
fn surplus(raw: &[u8], length: u64, unit: Unit) -> i64 {
    let counted: u64 = raw.iter().map(|&byte| piece(&[byte]).length(unit)).sum();
    // A whole escape begins with a backslash; a pair has a second one in the middle. A lone one was cut off.
    let slashes = if raw.len() == UNIT_BYTES_MAX { 2 } else { 1 };
    counted.cast_signed() - slashes - length.cast_signed()
}

/// The last place in `bytes` at which a unit is sure to begin, told by a stretch without a backslash before it; the
/// last byte may begin one too. `begins` says whether the bytes begin with a unit.
pub fn boundary(bytes: &[u8], begins: bool) -> Option<usize> {
    let last = bytes.len().checked_sub(1)?;
    let calm = |at: usize| {
        let from = at.saturating_sub(UNIT_BYTES_MAX);
        (at >= UNIT_BYTES_MAX || begins) && bytes[at] & 0xc0 != 0x80 && !bytes[from..at].contains(&b'\\')
    };
    (last.saturating_sub(CALM_BYTES)..=last).rev().find(|&at| calm(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_gives_the_text_back() {
        let raw = br#"a\"\\\/\u0001\n\ud83d x\ud83d\ude00"#;
        let text = decode(raw);
        let mut quoted = Vec::new();
        quote(&text, &mut quoted);
        assert_eq!(decode(&quoted[1..quoted.len() - 1]), text);
        assert_eq!(quoted, "\"a\\\"\\\\/\\u0001\\n\\ud83d x😀\"".as_bytes());
    }

    #[test]
    fn decoding_in_pieces_is_decoding() {
        let raw = r#"a\"\\\/\u0001\n\ud83d x\ud83d\ude00 \udc00é\\u0041\u00"#.as_bytes();
        for size in 1..=raw.len() {
            let (mut decoder, mut out) = (Decoder::default(), Vec::new());
            raw.chunks(size).for_each(|bytes| decoder.feed(bytes, &mut out));
            decoder.finish(&mut out);
            let text = "a\"\\/\u{1}\n\u{fffd} x😀 \u{fffd}é\\u0041\u{fffd}00";
            assert_eq!(core::str::from_utf8(&out), Ok(text), "{size}");
        }
    }
}
