//! A hash that is the same on every machine and in every run, to compare texts that are not kept. It is not cryptographic: a
//! forged collision costs an extra look or skips a check, never data.

/// The hash of a text.
pub fn hash(text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let hash = words.iter().fold(text.len() as u64, |hash, word| mix(hash ^ u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(hash ^ u64::from_le_bytes(last))
}

/// Spreads what a number says over all bits.
pub fn mix(value: u64) -> u64 {
    let wide = u128::from(value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    wide as u64 ^ (wide >> 64) as u64
}
