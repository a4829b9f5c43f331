//! Finds repeated texts by length and a few bytes, and confirms them by reading them again.

use super::meter::{Meter, Twin};
use super::{Amount, Duplicates};
use alloc::vec::Vec;
use spans::source::{Fault, Source, Span};

/// How much is read again to confirm, as a part of the file: it should cost little more than a scan.
const AGAIN_PART: u64 = 4;
/// How much may be read again in a file of any size.
const AGAIN_BYTES_MIN: u64 = 16 << 20;

/// Counts repeated texts.
pub(super) fn compare(source: &dyn Source, meter: &Meter) -> Result<Duplicates, Fault> {
    let mut twins: Vec<Twin> = meter.twins.clone();
    // Longest first: they matter most, and the time is bounded.
    twins.sort_unstable_by_key(|twin| (u64::MAX - twin.inner.len(), twin.hash, twin.inner.start));
    let same = |a: &Twin, b: &Twin| (a.inner.len(), a.hash) == (b.inner.len(), b.hash);
    let mut budget = AGAIN_BYTES_MIN.max(source.len() / AGAIN_PART);
    let mut found = Duplicates { bytes_min: meter.twin_bytes_min, ..Duplicates::default() };
    for group in twins.chunk_by(same).filter(|group| group.len() > 1) {
        let length = group[0].inner.len();
        let affordable = usize::try_from(budget / length).unwrap_or(usize::MAX).min(group.len());
        found.at_least |= affordable < group.len();
        if affordable < 2 {
            continue;
        }
        budget -= affordable as u64 * length;
        let mut hashes = Vec::with_capacity(affordable);
        for twin in &group[..affordable] {
            hashes.push(hash(source, twin.inner)?);
        }
        hashes.sort_unstable();
        let again = hashes.windows(2).filter(|two| two[0] == two[1]).count() as u64;
        found.again =
            Amount { count: found.again.count + again, bytes: found.again.bytes + again * length, tokens: 0 };
    }
    Ok(found)
}

fn hash(source: &dyn Source, span: Span) -> Result<[u8; 32], Fault> {
    let mut hasher = blake3::Hasher::new();
    source.pieces(span, &mut |bytes| {
        hasher.update(bytes);
        true
    })?;
    Ok(*hasher.finalize().as_bytes())
}
