//! Finds quotes, escapes, control characters and line ends in the bytes of a transcript, sixty-four bytes at a time.
//!
//! A transcript has a quote or a backslash in every dozen bytes, so a search that restarts at each of them spends its
//! time on starting. Here each byte is looked at once, with the widest comparisons that the processor has, and whoever
//! follows a string asks for the next mark. What the strings mean is the business of [`crate::json`].

use alloc::vec::Vec;
use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, i8x64, u8x64};

/// Bytes in a block.
pub const SIZE: usize = 64;

/// The marks of one block: one bit a byte, the first byte in the lowest bit.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Where a string cannot just go on: quotes that are not escaped, escapes other than the five commonest
    /// (`\n \" \\ \t \r`), control characters, and the end of the bytes.
    stops: u64,
    /// What is no character of its own: backslashes that begin an escape, and bytes that go on with a character.
    surplus: u64,
    /// How many of these there are before the block. It may wrap around.
    surplus_before: u32,
    /// How many blocks before it hold a character of four bytes.
    fours_before: u32,
}

/// The marks of bytes that grow at their end.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// The last but one in use has a stop at the end of the bytes, and the last one only counts. Blocks behind them were in
    /// use before: clearing room that is filled in again takes time.
    blocks: Vec<Block>,
    /// How many are in use.
    used: usize,
    /// The blocks with bytes beyond ASCII.
    beyond_ascii: Vec<u32>,
    /// Where lines end in the bytes that were added last.
    line_ends: Vec<u32>,
    /// An escape is open where the last block begins.
    split: bool,
}

/// How far a string was followed.
pub struct Reach {
    /// Where it cannot just go on: a quote, an escape other than the commonest, a control character, the end of the bytes.
    pub stop: usize,
    /// How many bytes before that are no characters of their own: they begin a common escape, or go on with a character.
    pub surplus: u32,
    /// There may be a character of four bytes.
    pub fours: bool,
}

impl Marks {
    /// Marks the bytes from `from` on; those before are marked already.
    pub fn update(&mut self, bytes: &[u8], from: usize) {
        self.update_with(Level::new(), bytes, from);
    }

    fn update_with(&mut self, level: Level, bytes: &[u8], from: usize) {
        self.used = bytes.len() / SIZE + 2;
        if self.blocks.len() < self.used {
            self.blocks.resize(self.used, Block::default());
        }
        self.beyond_ascii.truncate(self.beyond_ascii.partition_point(|&n| (n as usize) < from / SIZE));
        self.split &= from >= SIZE;
        self.line_ends.clear();
        dispatch!(level, simd => mark(simd, bytes, from, self));
    }

    /// Forgets so many blocks at the beginning, whose bytes are gone.
    pub fn forget(&mut self, blocks: usize) {
        self.blocks.copy_within(blocks..self.used, 0);
        self.used -= blocks;
        self.beyond_ascii.drain(..self.beyond_ascii.partition_point(|&n| (n as usize) < blocks));
        self.beyond_ascii.iter_mut().for_each(|n| *n -= blocks as u32);
    }

    /// Where lines end in the bytes that were added last.
    pub fn line_ends(&self) -> &[u32] {
        &self.line_ends
    }

    /// The stretches of a part of the bytes that hold bytes beyond ASCII, in order; between them is only ASCII.
    pub fn beyond_ascii(&self, from: usize, to: usize) -> impl Iterator<Item = (usize, usize)> {
        let before = |n: usize| self.beyond_ascii.partition_point(|&block| (block as usize) < n);
        let own = &self.beyond_ascii[before(from / SIZE)..];
        let own = own.iter().map(|&block| block as usize).take_while(move |block| block * SIZE < to);
        let mut own = own.peekable();
        core::iter::from_fn(move || {
            let first = own.next()?;
            let mut end = first + 1;
            while own.next_if_eq(&end).is_some() {
                end += 1;
            }
            Some(((first * SIZE).max(from), (end * SIZE).min(to)))
        })
    }

    /// Follows a string from a place inside it.
    #[expect(clippy::inline_always, reason = "most strings end in the block: a call would cost as much")]
    #[inline(always)]
    pub fn follow(&self, from: usize) -> Reach {
        let (skip, blocks) = (from % SIZE, &self.blocks[from / SIZE..]);
        let [block, after, ..] = blocks else { return self.follow_on(from) };
        let stops = block.stops >> skip;
        if stops == 0 {
            return self.follow_on(from);
        }
        // One bit for each byte before the first stop.
        let before = stops.wrapping_sub(1) & !stops;
        let surplus = block.surplus >> skip & before;
        Reach {
            stop: from + stops.trailing_zeros() as usize,
            // Mostly there is none, and counting takes a while.
            surplus: if surplus == 0 { 0 } else { surplus.count_ones() },
            fours: after.fours_before != block.fours_before,
        }
    }

    /// Goes on where the string continues after the block.
    #[inline(never)]
    fn follow_on(&self, from: usize) -> Reach {
        let first = from / SIZE;
        // There is a stop at the end of the bytes at the latest.
        let calm = self.blocks[first + 1..].iter().take_while(|block| block.stops == 0);
        let last = first + 1 + calm.count();
        let (begin, end, after) = (&self.blocks[first], &self.blocks[last], &self.blocks[last + 1]);
        let stop = end.stops.trailing_zeros() as usize;
        let outside =
            (begin.surplus & below(from % SIZE)).count_ones() + (end.surplus & !below(stop)).count_ones();
        Reach {
            stop: last * SIZE + stop,
            surplus: after.surplus_before.wrapping_sub(begin.surplus_before).wrapping_sub(outside),
            fours: after.fours_before != begin.fours_before,
        }
    }
}

/// Fills in the marks of the bytes from `from` on.
#[expect(clippy::inline_always, reason = "only what is inlined is built for the processor's widest vectors")]
#[inline(always)]
fn mark<S: Simd>(simd: S, bytes: &[u8], from: usize, marks: &mut Marks) {
    let (whole, rest) = bytes.as_chunks::<SIZE>();
    let mut last = [b' '; SIZE];
    last[..rest.len()].copy_from_slice(rest);
    let Marks { blocks, line_ends, beyond_ascii, .. } = marks;
    let (mut split, mut last_split) = (marks.split, false);
    let Block { mut surplus_before, mut fours_before, .. } = blocks[from / SIZE];
    for (n, block) in blocks[..=whole.len()].iter_mut().enumerate().skip(from / SIZE) {
        let sixty_four = whole.get(n).unwrap_or(&last);
        let wanted = Masks::new(simd, sixty_four);
        let mut found = Block { stops: wanted.quotes, surplus: 0, surplus_before, fours_before };
        last_split = split;
        if wanted.slashes != 0 || split {
            let behind = u64::from(split);
            found.surplus = escape_starts(wanted.slashes & !behind);
            // The next block waits for nothing where a branch tells that no escape is split, and nearly always none is.
            split = false;
            let mut common = common(simd, sixty_four, &wanted);
            if found.surplus >> (SIZE - 1) == 1 {
                split = true;
                common |= common_at_end(bytes.get((n + 1) * SIZE));
            }
            found.stops = wanted.quotes & !(found.surplus << 1 | behind) | found.surplus & !common;
        }
        if wanted.beyond_text != 0 {
            let beyond = BeyondText::new(simd, sixty_four);
            note_line_ends(sixty_four, beyond.controls, n * SIZE, from, line_ends);
            found.stops |= beyond.controls;
            found.surplus |= beyond.goes_on;
            if beyond.is_beyond_ascii {
                beyond_ascii.push(n as u32);
            }
            fours_before += u32::from(beyond.has_fours);
        }
        surplus_before = surplus_before.wrapping_add(found.surplus.count_ones());
        *block = found;
    }
    // The last block is looked at again when more bytes come.
    marks.split = last_split;
    blocks[whole.len()].stops |= 1 << rest.len();
    blocks[whole.len() + 1] = Block { surplus_before, fours_before, ..Block::default() };
}

/// The bytes that every block is searched for, as bit masks.
struct Masks {
    slashes: u64,
    quotes: u64,
    /// Control characters, and what is beyond ASCII.
    beyond_text: u64,
}

impl Masks {
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

/// Masks of the few blocks that have others than the letters and signs of ASCII.
struct BeyondText {
    controls: u64,
    /// Bytes that go on with a character.
    goes_on: u64,
    /// Some are above 0x7f.
    is_beyond_ascii: bool,
    /// Some begin a character of four.
    has_fours: bool,
}

impl BeyondText {
    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn new<S: Simd>(simd: S, bytes: &[u8; SIZE]) -> Self {
        let bytes = u8x64::load_array_ref(simd, bytes);
        Self {
            controls: bytes.simd_lt(0x20).to_bitmask(),
            goes_on: (bytes & 0xc0).simd_eq(0x80).to_bitmask(),
            is_beyond_ascii: bytes.max(0x80).simd_eq(bytes).to_bitmask() != 0,
            has_fours: bytes.max(0xf0).simd_eq(bytes).to_bitmask() != 0,
        }
    }
}

/// Which backslashes begin an escape: in a run of them, every other one.
#[inline]
fn escape_starts(slashes: u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let heads = slashes & !(slashes << 1);
    // Adding the head of a run to it clears the run and sets the bit after it. That separates runs that begin at an even
    // place from the others.
    let odd = slashes & slashes.wrapping_add(heads & EVEN);
    (slashes & !odd & EVEN) | (odd & !EVEN)
}

/// The bytes before those that make a common escape with a backslash, in the block.
#[expect(clippy::inline_always, reason = "as above")]
#[inline(always)]
fn common<S: Simd>(simd: S, bytes: &[u8; SIZE], wanted: &Masks) -> u64 {
    let bytes = u8x64::load_array_ref(simd, bytes);
    let letters = bytes.simd_eq(b'n') | bytes.simd_eq(b't') | bytes.simd_eq(b'r');
    (letters.to_bitmask() | wanted.quotes | wanted.slashes) >> 1
}

/// The last byte of the block, if the byte after it makes a common escape with a backslash.
#[cold]
#[inline(never)]
fn common_at_end(next: Option<&u8>) -> u64 {
    u64::from(next.is_some_and(|byte| b"nt\"\\r".contains(byte))) << (SIZE - 1)
}

/// Notes where lines end in a block that begins at `base`, from a place on.
#[inline(never)]
fn note_line_ends(bytes: &[u8; SIZE], controls: u64, base: usize, from: usize, line_ends: &mut Vec<u32>) {
    let ends = ones(controls).filter(|&n| bytes[n] == b'\n' && base + n >= from);
    line_ends.extend(ends.map(|n| (base + n) as u32));
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
    /// The escapes in a block; `next` is the byte after it, and `split` says whether its first one is escaped.
    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    pub fn find<S: Simd>(simd: S, bytes: &[u8; SIZE], next: Option<&u8>, split: bool) -> Self {
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

    /// What a plain walk says of the bytes: where a string stops, and which are no characters of their own.
    fn plainly(bytes: &[u8]) -> (Vec<usize>, Vec<usize>) {
        let (mut stops, mut surplus, mut behind) = (vec![], vec![], false);
        for (i, &byte) in bytes.iter().enumerate() {
            let begins = byte == b'\\' && !behind;
            let common = bytes.get(i + 1).is_some_and(|next| b"n\"\\tr".contains(next));
            if (byte == b'"' && !behind) || byte < 0x20 || (begins && !common) {
                stops.push(i);
            }
            if begins || (0x80..0xc0).contains(&byte) {
                surplus.push(i);
            }
            behind = begins;
        }
        (stops, surplus)
    }

    /// What the processor has, and less.
    fn levels() -> Vec<Level> {
        let levels = [Level::new(), Level::baseline()].into_iter();
        #[cfg(target_arch = "x86_64")]
        let levels = levels.chain(
            Level::new()
                .as_sse4_2()
                .map(Level::Sse4_2)
                .into_iter()
                .chain(Level::new().as_avx2().map(Level::Avx2)),
        );
        levels.collect()
    }

    proptest! {
        #[test]
        fn marks_say_what_a_plain_walk_says(text in r#"([nu"\\x]|é|😀|\n|[a-z]{20}|\\\\\\){0,90}"#, from in 0usize..400) {
            let bytes = text.as_bytes();
            let (stops, surplus) = plainly(bytes);
            let from = from.min(bytes.len());
            let stop = stops.into_iter().find(|&at| at >= from).unwrap_or(bytes.len());
            for level in levels() {
                let mut marks = Marks::default();
                marks.update_with(level, bytes, 0);
                let reach = marks.follow(from);
                prop_assert_eq!(reach.stop, stop);
                prop_assert_eq!(reach.surplus as usize, surplus.iter().filter(|at| (from..stop).contains(at)).count());
                prop_assert!(reach.fours || !bytes[from..stop].iter().any(|&byte| byte >= 0xf0));
                let places = bytes.iter().enumerate();
                let ends: Vec<_> = places.filter(|(_, byte)| **byte == b'\n').map(|(n, _)| n as u32).collect();
                prop_assert_eq!(marks.line_ends(), ends);
                let mut ascii = bytes.to_vec();
                marks.beyond_ascii(0, bytes.len()).for_each(|(start, end)| ascii[start..end].fill(b' '));
                prop_assert!(ascii.is_ascii());
            }
        }

        #[test]
        fn how_bytes_come_does_not_matter(text in r#"[nx"\\\n]{0,300}"#, sizes in proptest::collection::vec(1usize..200, 1..5)) {
            let bytes = text.as_bytes();
            let (mut marks, mut held, mut gone, mut line_ends) = (Marks::default(), 0, 0, vec![]);
            for size in sizes.iter().cycle() {
                let from = held;
                held = (held + size).min(bytes.len());
                marks.update(&bytes[gone..held], from - gone);
                line_ends.extend(marks.line_ends().iter().map(|&at| gone + at as usize));
                if held == bytes.len() {
                    break;
                }
                // All that a line before needs not be held.
                let line = line_ends.last().map_or(0, |at| (at + 1) / SIZE * SIZE);
                marks.forget((line - gone) / SIZE);
                gone = line;
            }
            prop_assert_eq!(&line_ends, &memchr::memchr_iter(b'\n', bytes).collect::<Vec<_>>());
            let mut at = line_ends.last().map_or(0, |at| at + 1);
            let (stops, _) = plainly(bytes);
            let quotes = |at: &usize| bytes[*at] == b'"';
            let wanted: Vec<_> = stops.into_iter().filter(|stop| *stop >= at).filter(quotes).collect();
            let mut found = vec![];
            while at < bytes.len() {
                at = gone + marks.follow(at - gone).stop + 1;
                found.push(at - 1);
            }
            found.retain(|at| *at < bytes.len() && quotes(at));
            prop_assert_eq!(found, wanted);
        }
    }
}
