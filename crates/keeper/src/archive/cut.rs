//! Where a text is cut into chunks: at places that the last few bytes before them choose, so that texts which share a part
//! share its chunks, wherever that part lies in them.

/// A chunk is at least this long, but for the last one of a text, …
const BYTES_MIN: usize = 64 << 10;
/// … and no longer than this.
pub(super) const BYTES_MAX: usize = 2 << 20;
/// Beyond the least, one place in so many is cut at.
const ONE_IN: u64 = 256 << 10;
/// The bits that decide, the upper ones: those depend on the last 64 bytes.
const MASK: u64 = !(u64::MAX / ONE_IN);

/// A number for each byte.
const GEAR: [u64; 256] = gear();

const fn gear() -> [u64; 256] {
    let (mut table, mut seed, mut n) = ([0; 256], 0x7461_696c_6f72_u64, 0);
    while n < 256 {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[n] = mixed ^ (mixed >> 31);
        n += 1;
    }
    table
}

/// Looks for the end of a chunk in what comes piece by piece.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cutter {
    hash: u64,
    /// How long the chunk is so far.
    length: usize,
}

impl Cutter {
    /// How many of these bytes belong to the chunk that has begun, if it ends in them.
    pub(super) fn cut(&mut self, bytes: &[u8]) -> Option<usize> {
        for (n, byte) in bytes.iter().enumerate() {
            self.length += 1;
            self.hash = (self.hash << 1).wrapping_add(GEAR[*byte as usize]);
            let is_end = self.length >= BYTES_MIN && self.hash & MASK == 0;
            if is_end || self.length == BYTES_MAX {
                *self = Self::default();
                return Some(n + 1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seed: u64, bytes: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    fn chunks(text: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let (mut cutter, mut all, mut last) = (Cutter::default(), Vec::new(), Vec::new());
        for mut bytes in text.chunks(piece) {
            while let Some(n) = cutter.cut(bytes) {
                last.extend_from_slice(&bytes[..n]);
                all.push(std::mem::take(&mut last));
                bytes = &bytes[n..];
            }
            last.extend_from_slice(bytes);
        }
        all.push(last);
        all
    }

    #[test]
    fn the_pieces_in_which_a_text_comes_do_not_matter() {
        let text = text(1, 3 << 20);
        let whole = chunks(&text, text.len());
        assert!(whole.len() > 4 && whole.concat() == text);
        assert_eq!(chunks(&text, 4_093), whole);
    }

    #[test]
    fn what_follows_a_change_is_cut_as_before() {
        let before = text(2, 4 << 20);
        let mut after = before.clone();
        after.splice(1_000_000..1_000_010, text(3, 5_000));
        let (before, after) = (chunks(&before, 1 << 20), chunks(&after, 1 << 20));
        let new = after.iter().filter(|chunk| !before.contains(chunk)).count();
        assert!(new <= 3 && after.len() > 8, "{new} of {}", after.len());
    }
}
