//! How much of a replaced file has been copied to the one that took its place, and where the file of a run records that:
//! two slots, which are overwritten in turn. [`super::file`] has the layout.

use crate::platform::FileExt;
use blake3::Hasher;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;

/// Length of the header, and of a ledger slot.
pub(super) const BLOCK_BYTES: usize = 64;

/// Offsets of the ledger slots. Each has a disk sector to itself, so that a torn write damages only one of them.
const SLOTS: [u64; 2] = [512, 1024];

/// How much of the old file is accounted for in the new one, and where the next late lines go:
///
/// ```text
/// old file: | the text that was read | copied lines | being copied | not copied yet: late lines
///                                                   ^ known        ^ upto
/// new file: | the repaired text            | copied lines | lines that others appended
///                                                         ^ at
/// ```
///
/// If the exchange of the names was reverted, the two files change roles: `known` and `upto` are offsets in the new file,
/// and `at` is one in the file that is at the path again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// How many bytes of the old file are accounted for in the new one.
    pub(crate) known: u64,
    /// Where the copy that is under way ends in the old file; equal to `known` if none is.
    pub(crate) upto: u64,
    /// Where in the file at the path the next late lines go.
    pub(crate) at: u64,
    /// Inode of the file that `at` is an offset in.
    pub(crate) current: u64,
}

impl Ledger {
    /// The old file is gone, and nothing is left to do. No file has the inode 0.
    pub(crate) const CLOSED: Self = Self { known: 0, upto: 0, at: 0, current: 0 };

    /// The bytes of a slot.
    fn encode(&self, sequence: u64, run: &str) -> [u8; BLOCK_BYTES] {
        block(run, &[sequence, self.known, self.upto, self.at, self.current].map(u64::to_le_bytes).concat())
    }

    /// The sequence number and the ledger in a slot; `None` if it is damaged or was never written.
    fn decode(slot: [u8; BLOCK_BYTES], run: &str) -> Option<(u64, Self)> {
        let (numbers, _) = slot.as_chunks::<8>();
        let [sequence, known, upto, at, current] = *numbers.first_chunk::<5>()?;
        let [sequence, known, upto, at, current] =
            [sequence, known, upto, at, current].map(u64::from_le_bytes);
        let ledger = Self { known, upto, at, current };
        (slot == ledger.encode(sequence, run)).then_some((sequence, ledger))
    }
}

/// Some bytes, followed by a checksum of them and of the name `of` that they belong to, padded with zeros.
pub(super) fn block(of: &str, bytes: &[u8]) -> [u8; BLOCK_BYTES] {
    let checksum = Hasher::new().update(of.as_bytes()).update(bytes).finalize();
    let mut block = [0; BLOCK_BYTES];
    let whole = bytes.iter().chain(&checksum.as_bytes()[..8]);
    block.iter_mut().zip(whole).for_each(|(to, byte)| *to = *byte);
    block
}

/// Overwrites the older of the two slots. Sequence numbers begin at 1.
pub(super) fn write(file: &File, run: &str, sequence: u64, ledger: &Ledger) -> io::Result<()> {
    file.write_all_at(&ledger.encode(sequence, run), SLOTS[(sequence % 2) as usize])
}

/// The newest undamaged ledger of a file, and its sequence number.
pub(super) fn newest(file: &File, run: &str) -> io::Result<Option<(u64, Ledger)>> {
    let [one, other] = SLOTS.map(|slot| read_block(file, slot));
    let whole = [one?, other?].into_iter().filter_map(|slot| Ledger::decode(slot, run));
    Ok(whole.max_by_key(|(sequence, _)| *sequence))
}

pub(super) fn read_block(file: &File, at: u64) -> io::Result<[u8; BLOCK_BYTES]> {
    let mut block = [0; BLOCK_BYTES];
    file.read_exact_at(&mut block, at)?;
    Ok(block)
}
