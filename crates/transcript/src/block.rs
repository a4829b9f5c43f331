//! Sixty-four bytes at a time: which of them are quotes, backslashes, control characters, ends of lines.
//!
//! A transcript has a quote or a backslash in every dozen bytes, so that a search that starts anew at each of
//! them spends its time on starting. Here one look at a block answers for all bytes in it.

use wide::u8x16;

/// Bytes in a block.
pub(crate) const SIZE: usize = 64;

/// What stands in a block: one bit a byte, the first byte in the lowest bit. The bytes are taken to begin
/// between two escapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// How many bytes this speaks about: [`SIZE`], or one less where the last byte begins an escape, or what there is.
    pub(crate) len: usize,
    /// Quotes that are not escaped.
    pub(crate) quotes: u64,
    /// Backslashes that begin an escape.
    pub(crate) escapes: u64,
    /// Those among them that are not one of the five commonest: `\n \" \\ \t \r`.
    pub(crate) rare: u64,
}

impl Block {
    /// Looks at the first bytes of a slice.
    #[expect(clippy::inline_always, reason = "a call and a struct in memory would be a tenth of the cost")]
    #[inline(always)]
    pub(crate) fn look(bytes: &[u8]) -> Self {
        match bytes.first_chunk() {
            Some(block) => Self::of(block, SIZE),
            None => Self::of_few(bytes),
        }
    }

    /// The end of a piece: out of the way of the other case.
    #[cold]
    fn of_few(bytes: &[u8]) -> Self {
        Self::of(&padded(bytes), bytes.len())
    }

    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn of(block: &[u8; SIZE], len: usize) -> Self {
        let slashes = fold(block, |part| part.simd_eq(u8x16::splat(b'\\')));
        let quotes = fold(block, |part| part.simd_eq(u8x16::splat(b'"')));
        if slashes == 0 {
            return Self { len, quotes, escapes: 0, rare: 0 };
        }
        let (escapes, split) = escapes(slashes);
        let is = |part: u8x16, byte| part.simd_eq(u8x16::splat(byte));
        // Quotes and backslashes are known already.
        let letters = fold(block, |part| is(part, b'n') | is(part, b't'));
        // A carriage return is not as rare as the others, but rare enough to be asked for only if needed.
        let mut rare = escapes & !((letters | quotes | slashes) >> 1);
        if rare != 0 {
            rare &= !(fold(block, |part| is(part, b'r')) >> 1);
        }
        Self { len: len - split, quotes: quotes & !(escapes << 1), escapes, rare }
    }
}

/// The escapes in a block, for those who know where the literal ends: less to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Escapes {
    /// How many bytes this speaks about, as in [`Block`].
    pub(crate) len: usize,
    /// Backslashes that begin an escape.
    pub(crate) all: u64,
    /// Those among them that are not one ASCII character with a backslash: before a `u`, before what is no ASCII, or at
    /// the very end.
    pub(crate) odd: u64,
}

impl Escapes {
    /// Looks at the first bytes of a slice.
    #[inline]
    pub(crate) fn look(bytes: &[u8]) -> Self {
        let len = bytes.len().min(SIZE);
        match bytes.first_chunk() {
            Some(block) => Self::of(block, len),
            None => Self::of(&padded(bytes), len),
        }
    }

    #[inline]
    fn of(block: &[u8; SIZE], len: usize) -> Self {
        let slashes = fold(block, |part| part.simd_eq(u8x16::splat(b'\\')));
        if slashes == 0 {
            return Self { len, all: 0, odd: 0 };
        }
        let (all, split) = escapes(slashes);
        // A bit is the highest one of its byte, which ASCII has not.
        let odd = fold(block, |part| part.simd_eq(u8x16::splat(b'u')) | part) >> 1;
        let last = if len < SIZE { 1 << (len - 1) } else { 0 };
        Self { len: len - split, all, odd: all & (odd | last) }
    }
}

/// Which backslashes begin an escape that ends in the block, and how many bytes at its end are left to the next one: an
/// escape may begin with the last byte.
#[expect(clippy::inline_always, reason = "as above")]
#[inline(always)]
fn escapes(slashes: u64) -> (u64, usize) {
    let starts = escape_starts(slashes);
    (starts & (u64::MAX >> 1), (starts >> (SIZE - 1)) as usize)
}

/// Which backslashes begin an escape: in a run of them, every other one.
#[inline]
fn escape_starts(slashes: u64) -> u64 {
    if slashes & (slashes << 1) == 0 {
        return slashes;
    }
    let (mut starts, mut rest) = (0, slashes);
    while rest != 0 {
        let first = rest.trailing_zeros();
        starts |= 1 << first;
        // The byte behind it is escaped, backslash or not.
        rest &= !(3 << first);
    }
    starts
}

/// The lowest `n` bits.
#[inline]
pub(crate) fn below(n: usize) -> u64 {
    if n >= SIZE { u64::MAX } else { (1 << n) - 1 }
}

/// Bytes of a block that go on with a character of UTF-8, and those that begin one of four bytes.
pub(crate) fn utf8(bytes: &[u8]) -> (u64, u64) {
    let block = &padded(bytes);
    let beyond_ascii =
        block.as_chunks::<16>().0.iter().fold(u8x16::ZERO, |any, part| any | u8x16::new(*part));
    if beyond_ascii.to_bitmask() == 0 {
        return (0, 0);
    }
    (between(block, 0x80, 0xbf), between(block, 0xf0, 0xff))
}

/// A block of bytes; what lies behind their end counts as zeros.
#[inline]
fn padded(bytes: &[u8]) -> [u8; SIZE] {
    bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut block = [0; SIZE];
        block[..bytes.len()].copy_from_slice(bytes);
        block
    })
}

/// What kinds of bytes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Some are below 0x20.
    pub(crate) controls: bool,
    /// Some are above 0x7f.
    pub(crate) beyond_ascii: bool,
    /// Some begin a character of four bytes, which UTF-16 writes as a pair.
    pub(crate) pairs: bool,
}

/// Looks at all bytes for what is rare in a line.
pub(crate) fn survey(bytes: &[u8]) -> Survey {
    // Both questions in one pass.
    let (blocks, rest) = bytes.as_chunks::<SIZE>();
    let (mut low, mut high) = (u8x16::MAX, u8x16::ZERO);
    for block in blocks {
        for part in block.as_chunks::<16>().0 {
            (low, high) = (low.min(u8x16::new(*part)), high.max(u8x16::new(*part)));
        }
    }
    let least = low.to_array().iter().chain(rest).fold(0xff, |least, &byte| byte.min(least));
    let most = high.to_array().iter().chain(rest).fold(0, |most, &byte| byte.max(most));
    Survey { controls: least < 0x20, beyond_ascii: most > 0x7f, pairs: most >= 0xf0 }
}

/// How many bytes go on with a character of UTF-8.
pub(crate) fn continuations(bytes: &[u8]) -> u64 {
    let (parts, rest) = bytes.as_chunks::<16>();
    let goes_on = |byte: &&u8| **byte & 0xc0 == 0x80;
    let few = rest.iter().filter(goes_on).count() as u64;
    // In stretches of 255, so that a byte of the vector is enough to count in.
    parts.chunks(255).fold(few, |count, stretch| {
        let lanes = stretch.iter().fold(u8x16::ZERO, |lanes, part| {
            lanes - (u8x16::new(*part) & u8x16::splat(0xc0)).simd_eq(u8x16::splat(0x80))
        });
        count + lanes.to_array().into_iter().map(u64::from).sum::<u64>()
    })
}

/// One bit a byte for which `of` says yes.
#[inline]
fn fold(block: &[u8; SIZE], of: impl Fn(u8x16) -> u8x16) -> u64 {
    let parts = block.as_chunks::<16>().0.iter().enumerate();
    parts.fold(0, |mask, (n, part)| mask | u64::from(of(u8x16::new(*part)).to_bitmask()) << (n * 16))
}

#[inline]
fn between(block: &[u8; SIZE], low: u8, high: u8) -> u64 {
    let (low, high) = (u8x16::splat(low), u8x16::splat(high));
    fold(block, |part| part.simd_eq(part.max(low).min(high)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_block_says_what_a_plain_walk_says(text in r#"[nu"\\xé]{0,90}"#) {
            let bytes = text.as_bytes();
            let block = Block::look(bytes);
            let (mut i, mut plain) = (0, Block { len: block.len, ..Block::default() });
            while i < block.len {
                match bytes[i] {
                    b'\\' => {
                        plain.escapes |= 1 << i;
                        if !bytes.get(i + 1).is_some_and(|b| b"n\"\\tr".contains(b)) {
                            plain.rare |= 1 << i;
                        }
                        i += 1;
                    }
                    b'"' => plain.quotes |= 1 << i,
                    _ => {}
                }
                i += 1;
            }
            prop_assert_eq!(block, plain);
            let odd = |n: &usize| bytes.get(n + 1).is_none_or(|byte| *byte == b'u' || !byte.is_ascii());
            let odd = (0..64).filter(|n| plain.escapes >> n & 1 == 1).filter(odd).fold(0, |all, n| all | 1 << n);
            prop_assert_eq!(Escapes::look(bytes), Escapes { len: plain.len, all: plain.escapes, odd });
            prop_assert!(block.len == bytes.len() || block.len >= SIZE - 1);
        }

        #[test]
        fn surveys_and_characters(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let (more, four) = utf8(&bytes);
            for (n, &byte) in bytes.iter().take(SIZE).enumerate() {
                prop_assert_eq!(more >> n & 1 == 1, byte & 0xc0 == 0x80);
                prop_assert_eq!(four >> n & 1 == 1, byte >= 0xf0);
            }
            let survey = survey(&bytes);
            prop_assert_eq!(survey.controls, bytes.iter().any(|b| *b < 0x20));
            prop_assert_eq!(survey.beyond_ascii, bytes.iter().any(|b| *b > 0x7f));
            prop_assert_eq!(survey.pairs, bytes.iter().any(|b| *b >= 0xf0));
            prop_assert_eq!(continuations(&bytes), bytes.iter().filter(|b| **b & 0xc0 == 0x80).count() as u64);
        }
    }
}
