//! What stands where in a window of a transcript, told sixty-four bytes at a time: quotes, escapes, control characters,
//! ends of lines.
//!
//! A transcript has a quote or a backslash in every dozen bytes, so that a search that starts anew at each of them spends
//! its time on starting. Here each byte is looked at once, with the widest comparisons that the processor has, and who
//! follows a string asks for the next mark. What the strings mean is the business of [`crate::json`].

use crate::source::WINDOW_BYTES;
use alloc::vec::Vec;
use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, i8x64, u8x64};

/// Bytes in a block.
pub const SIZE: usize = 64;

/// Counts of marks in a window fit into a `u16`.
const _: () = assert!(WINDOW_BYTES < 1 << 16);

/// The marks of one block: one bit a byte, the first byte in the lowest bit.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Where a string cannot just go on: quotes that are not escaped, escapes other than the five commonest
    /// (`\n \" \\ \t \r`), control characters, and the end of the window.
    stops: u64,
    /// Backslashes that begin an escape.
    escapes: u64,
    /// Bytes that make no character of their own: those backslashes, and what goes on with a character of UTF-8.
    extra: u64,
    /// How many `escapes` there are in the blocks before.
    escapes_before: u16,
    /// How many `extra` bytes there are in the blocks before.
    extra_before: u16,
    kinds: Kinds,
}

/// What kinds of bytes there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Some are above 0x7f.
    pub beyond_ascii: bool,
    /// Some begin a character of four bytes, which UTF-16 writes as a pair.
    pub pairs: bool,
}

impl core::ops::BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self { beyond_ascii: self.beyond_ascii | other.beyond_ascii, pairs: self.pairs | other.pairs }
    }
}

/// The marks of a window. Reused from window to window.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// The last one that counts has a stop at the end of the window; what lies behind it is left from other windows.
    blocks: Vec<Block>,
    /// Where lines end.
    line_ends: Vec<u16>,
    kinds: Kinds,
    /// The last byte begins an escape: the first one of the next window is escaped.
    split: bool,
}

/// How far a string was followed.
pub struct Reach {
    /// Where it cannot just go on: a quote, an escape other than the commonest, a control character, the end of the window.
    pub stop: usize,
    /// There is an escape before that.
    pub escaped: bool,
    /// How many bytes more than characters there are before that.
    pub excess: u64,
}

impl Marks {
    /// Looks at the first bytes of a slice that follows upon those looked at last, and says at how many: what a window
    /// holds.
    pub fn look(&mut self, bytes: &[u8]) -> usize {
        self.look_with(Level::new(), bytes)
    }

    fn look_with(&mut self, level: Level, bytes: &[u8]) -> usize {
        let window = &bytes[..bytes.len().min(WINDOW_BYTES)];
        let blocks_min = window.len() / SIZE + 1;
        if self.blocks.len() < blocks_min {
            self.blocks.resize(blocks_min, Block::default());
        }
        self.line_ends.clear();
        self.kinds = Kinds::default();
        dispatch!(level, simd => look(simd, window, self));
        window.len()
    }

    /// Where lines end, in order.
    pub fn line_ends(&self) -> impl Iterator<Item = usize> {
        self.line_ends.iter().map(|&at| usize::from(at))
    }

    /// What kinds of bytes there may be in a part of the window; of the blocks at its ends all is told.
    pub fn kinds(&self, from: usize, to: usize) -> Kinds {
        if self.kinds == Kinds::default() {
            return self.kinds;
        }
        let blocks = &self.blocks[from / SIZE..to.div_ceil(SIZE)];
        blocks.iter().fold(Kinds::default(), |all, block| all | block.kinds)
    }

    /// The stretches of a part of the window that hold bytes beyond ASCII, in order; between them is only ASCII.
    pub fn beyond_ascii(&self, from: usize, to: usize) -> impl Iterator<Item = (usize, usize)> {
        let mut n = from / SIZE;
        let blocks = &self.blocks[..to.div_ceil(SIZE)];
        core::iter::from_fn(move || {
            let first = n + blocks[n..].iter().position(|block| block.kinds.beyond_ascii)?;
            n = first + blocks[first..].iter().take_while(|block| block.kinds.beyond_ascii).count();
            Some(((first * SIZE).max(from), (n * SIZE).min(to)))
        })
    }

    /// Follows a string from a place inside it.
    #[expect(clippy::inline_always, reason = "most strings end in the block: a call would cost as much")]
    #[inline(always)]
    pub fn follow(&self, from: usize) -> Reach {
        let (block, skip) = (&self.blocks[from / SIZE], from % SIZE);
        let stops = block.stops >> skip;
        // One bit for each byte before the first stop.
        let before = stops.wrapping_sub(1) & !stops;
        if stops == 0 || block.extra >> skip & before != 0 {
            return self.follow_on(from);
        }
        Reach { stop: from + stops.trailing_zeros() as usize, escaped: false, excess: 0 }
    }

    /// The same where the string goes on behind the block, or has bytes to be counted.
    #[inline(never)]
    fn follow_on(&self, from: usize) -> Reach {
        let (first, skip) = (from / SIZE, from % SIZE);
        let (mut last, mut stops) = (first, self.blocks[first].stops & !below(skip));
        if stops == 0 {
            // There is one at the end of the window at the latest.
            last += 1 + self.blocks[first + 1..].iter().take_while(|block| block.stops == 0).count();
            stops = self.blocks[last].stops;
        }
        let len = stops.trailing_zeros() as usize;
        let count = |mask: fn(&Block) -> u64, before: fn(&Block) -> u16| {
            let upto = |n: usize, bits| {
                let block = &self.blocks[n];
                u64::from(before(block)) + u64::from((mask(block) & below(bits)).count_ones())
            };
            upto(last, len) - upto(first, skip)
        };
        let excess = count(|block| block.extra, |block| block.extra_before);
        let escaped = excess > 0 && count(|block| block.escapes, |block| block.escapes_before) > 0;
        Reach { stop: last * SIZE + len, escaped, excess }
    }
}

/// Fills in the marks of a window.
#[expect(clippy::inline_always, reason = "only what is inlined is built for the processor's widest vectors")]
#[inline(always)]
fn look<S: Simd>(simd: S, window: &[u8], marks: &mut Marks) {
    let (whole, rest) = window.as_chunks::<SIZE>();
    let mut last = [b' '; SIZE];
    last[..rest.len()].copy_from_slice(rest);
    let Marks { blocks, line_ends, kinds, .. } = marks;
    let mut split = marks.split;
    let (mut escapes_before, mut extra_before) = (0_u32, 0_u32);
    for (n, block) in blocks[..=whole.len()].iter_mut().enumerate() {
        let bytes = whole.get(n).unwrap_or(&last);
        let seen = Seen::new(simd, bytes);
        let mut found = Block { stops: seen.quotes, ..Block::default() };
        if seen.slashes != 0 || split {
            let behind = u64::from(split);
            found.escapes = escape_starts(seen.slashes & !behind);
            // The next block waits for nothing where a branch tells that no escape is split, and nearly always none is.
            split = false;
            let mut common = common(simd, bytes, &seen);
            if found.escapes >> (SIZE - 1) == 1 {
                split = true;
                common |= common_at_end(window.get((n + 1) * SIZE));
            }
            found.stops = seen.quotes & !(found.escapes << 1 | behind) | found.escapes & !common;
        }
        found.extra = found.escapes;
        if seen.beyond_text != 0 {
            let beyond = BeyondText::new(simd, bytes);
            note_line_ends(bytes, beyond.controls, n * SIZE, line_ends);
            found.stops |= beyond.controls;
            found.extra |= beyond.goes_on;
            found.kinds = beyond.kinds;
            *kinds = *kinds | found.kinds;
        }
        (found.escapes_before, found.extra_before) = (escapes_before as u16, extra_before as u16);
        escapes_before += found.escapes.count_ones();
        extra_before += found.extra.count_ones();
        *block = found;
    }
    blocks[whole.len()].stops |= 1 << rest.len();
    if let Some(last) = window.len().checked_sub(1) {
        marks.split = blocks[last / SIZE].escapes >> (last % SIZE) & 1 == 1;
    }
}

/// Where the bytes stand that are asked for in every block.
struct Seen {
    slashes: u64,
    quotes: u64,
    /// Control characters, and what is beyond ASCII.
    beyond_text: u64,
}

impl Seen {
    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn new<S: Simd>(simd: S, bytes: &[u8; SIZE]) -> Self {
        let bytes = u8x64::load_array_ref(simd, bytes);
        // With a sign, what is beyond ASCII is below all others.
        let signed: i8x64<S> = bytes.bitcast();
        Self {
            slashes: bytes.simd_eq(b'\\').to_bitmask(),
            quotes: bytes.simd_eq(b'"').to_bitmask(),
            beyond_text: signed.simd_lt(0x20).to_bitmask(),
        }
    }
}

/// The same for the few blocks that have others than the letters and signs of ASCII.
struct BeyondText {
    controls: u64,
    /// What goes on with a character.
    goes_on: u64,
    kinds: Kinds,
}

impl BeyondText {
    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn new<S: Simd>(simd: S, bytes: &[u8; SIZE]) -> Self {
        let bytes = u8x64::load_array_ref(simd, bytes);
        let from = |least: u8| bytes.max(least).simd_eq(bytes).to_bitmask() != 0;
        Self {
            controls: bytes.simd_lt(0x20).to_bitmask(),
            goes_on: (bytes & 0xc0).simd_eq(0x80).to_bitmask(),
            kinds: Kinds { beyond_ascii: from(0x80), pairs: from(0xf0) },
        }
    }
}

/// Which backslashes begin an escape: in a run of them, every other one.
#[inline]
fn escape_starts(slashes: u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let heads = slashes & !(slashes << 1);
    // Added to a run, its head moves behind it, and nothing is left of the run: so those that begin at an even place are
    // told from the others.
    let odd = slashes & slashes.wrapping_add(heads & EVEN);
    (slashes & !odd & EVEN) | (odd & !EVEN)
}

/// The bytes before those that make a common escape with a backslash, in the block.
#[expect(clippy::inline_always, reason = "as above")]
#[inline(always)]
fn common<S: Simd>(simd: S, bytes: &[u8; SIZE], seen: &Seen) -> u64 {
    let bytes = u8x64::load_array_ref(simd, bytes);
    let letters = bytes.simd_eq(b'n') | bytes.simd_eq(b't') | bytes.simd_eq(b'r');
    (letters.to_bitmask() | seen.quotes | seen.slashes) >> 1
}

/// The same for the last byte, if the byte behind the block is such a one.
#[cold]
#[inline(never)]
fn common_at_end(next: Option<&u8>) -> u64 {
    u64::from(next.is_some_and(|byte| b"nt\"\\r".contains(byte))) << (SIZE - 1)
}

/// Notes where lines end in a block that begins at `base`.
#[inline(never)]
fn note_line_ends(bytes: &[u8; SIZE], controls: u64, base: usize, line_ends: &mut Vec<u16>) {
    let ends = ones(controls).filter(|&n| bytes[n] == b'\n');
    line_ends.extend(ends.map(|n| (base + n) as u16));
}

/// The escapes in a block of a literal, for those who count its characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Escapes {
    /// Backslashes that begin an escape.
    pub slashes: u64,
    /// Bytes that go on with a character.
    pub goes_on: u64,
    /// Bytes that begin a character of four.
    pub pairs: u64,
    /// Backslashes of escapes that are not one ASCII character with a backslash: before a `u`, before what is no ASCII,
    /// or at the very end.
    pub odd: u64,
}

impl Escapes {
    /// Looks at a block; `next` is the byte behind it, and `split` says whether its first one is escaped.
    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    pub fn look<S: Simd>(simd: S, bytes: &[u8; SIZE], next: Option<&u8>, split: bool) -> Self {
        let bytes = u8x64::load_array_ref(simd, bytes);
        let beyond_ascii = bytes.max(0x80).simd_eq(bytes).to_bitmask();
        let slashes = bytes.simd_eq(b'\\').to_bitmask();
        let mut found = Self::default();
        if slashes != 0 {
            found.slashes = escape_starts(slashes & !u64::from(split));
            found.odd = found.slashes & ((bytes.simd_eq(b'u').to_bitmask() | beyond_ascii) >> 1);
            if found.slashes >> (SIZE - 1) == 1 {
                found.odd |= odd_at_end(next);
            }
        }
        if beyond_ascii != 0 {
            found.goes_on = (bytes & 0xc0).simd_eq(0x80).to_bitmask();
            found.pairs = bytes.max(0xf0).simd_eq(bytes).to_bitmask();
        }
        found
    }
}

/// The last byte, if the escape that it begins is an odd one.
#[cold]
#[inline(never)]
fn odd_at_end(next: Option<&u8>) -> u64 {
    u64::from(next.is_none_or(|&byte| byte == b'u' || !byte.is_ascii())) << (SIZE - 1)
}

/// The places of the ones in a mask, in order.
pub fn ones(mask: u64) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    core::iter::from_fn(move || {
        let place = (rest != 0).then(|| rest.trailing_zeros() as usize);
        rest &= rest.wrapping_sub(1);
        place
    })
}

/// The lowest `n` bits.
#[inline]
pub fn below(n: usize) -> u64 {
    if n >= SIZE { u64::MAX } else { (1 << n) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    /// What a plain walk says of a window: where a string stops, the escapes, the bytes without a character of their own.
    fn plainly(bytes: &[u8]) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
        let (mut stops, mut escapes, mut extra, mut behind) = (vec![], vec![], vec![], false);
        for (i, &byte) in bytes.iter().enumerate() {
            let begins = byte == b'\\' && !behind;
            let common = bytes.get(i + 1).is_some_and(|next| b"n\"\\tr".contains(next));
            if (byte == b'"' && !behind) || byte < 0x20 || (begins && !common) {
                stops.push(i);
            }
            if begins {
                escapes.push(i);
            }
            if begins || byte & 0xc0 == 0x80 {
                extra.push(i);
            }
            behind = begins;
        }
        (stops, escapes, extra)
    }

    /// What the processor has, and less.
    fn levels() -> Vec<Level> {
        let mut levels = vec![Level::new(), Level::baseline()];
        #[cfg(target_arch = "x86_64")]
        levels.extend(
            Level::new()
                .as_sse4_2()
                .map(Level::Sse4_2)
                .into_iter()
                .chain(Level::new().as_avx2().map(Level::Avx2)),
        );
        levels
    }

    proptest! {
        #[test]
        fn marks_say_what_a_plain_walk_says(text in r#"([nu"\\x]|é|😀|\n|[a-z]{20}|\\\\\\){0,90}"#, from in 0usize..400) {
            let bytes = text.as_bytes();
            let (stops, escapes, extra) = plainly(bytes);
            let from = from.min(bytes.len());
            let stop = stops.into_iter().find(|&at| at >= from).unwrap_or(bytes.len());
            let within = |places: &[usize]| places.iter().filter(|at| (from..stop).contains(*at)).count();
            for level in levels() {
                let mut marks = Marks::default();
                prop_assert_eq!(marks.look_with(level, bytes), bytes.len());
                let reach = marks.follow(from);
                prop_assert_eq!(reach.stop, stop);
                prop_assert_eq!(reach.escaped, within(&escapes) > 0);
                prop_assert_eq!(reach.excess, within(&extra) as u64);
                let places = bytes.iter().enumerate();
                let ends: Vec<_> = places.filter(|(_, byte)| **byte == b'\n').map(|(n, _)| n).collect();
                prop_assert_eq!(marks.line_ends().collect::<Vec<_>>(), ends);
                let kinds = Kinds { beyond_ascii: !text.is_ascii(), pairs: text.contains('😀') };
                prop_assert_eq!(marks.kinds(0, bytes.len()), kinds);
                let mut ascii = bytes.to_vec();
                marks.beyond_ascii(0, bytes.len()).for_each(|(start, end)| ascii[start..end].fill(b' '));
                prop_assert!(ascii.is_ascii());
            }
        }

        #[test]
        fn windows_do_not_matter(text in r#"[n"\\x]{0,300}"#, size in 1usize..200) {
            let bytes = text.as_bytes();
            let (mut marks, mut found) = (Marks::default(), vec![]);
            for (n, window) in bytes.chunks(size).enumerate() {
                marks.look(window);
                let mut at = 0;
                while at < window.len() {
                    at = marks.follow(at).stop + 1;
                    found.extend(window.get(at - 1).filter(|byte| **byte == b'"').map(|_| n * size + at - 1));
                }
            }
            let (stops, ..) = plainly(bytes);
            prop_assert_eq!(found, stops.into_iter().filter(|&at| bytes[at] == b'"').collect::<Vec<_>>());
        }
    }
}
