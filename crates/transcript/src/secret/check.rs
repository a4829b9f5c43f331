//! Which characters a secret has, and whether they look as if nobody had thought of them.

/// The characters of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Capital letters and digits.
    Upper,
    /// Hexadecimal digits.
    Hex,
    /// Letters and digits.
    Alnum,
    /// And the underscore.
    Word,
    /// And the hyphen: base64 for addresses.
    UrlSafe,
    /// And the dot.
    Dotted,
    /// Base64 of either kind, with its padding.
    Base64,
    /// Base64 for addresses, in parts of a path.
    Path,
}

impl Alphabet {
    pub(crate) fn has(self, byte: u8) -> bool {
        match self {
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::UrlSafe => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'='),
            Self::Path => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/'),
        }
    }

    /// How many bytes from the beginning on are of it.
    pub(crate) fn run(self, bytes: &[u8]) -> usize {
        bytes.iter().take_while(|byte| self.has(**byte)).count()
    }
}

/// What people write where a secret would be.
const PLACEHOLDERS: &[&[u8]] = &[
    b"example",
    b"xxxx",
    b"placeholder",
    b"changeme",
    b"change-me",
    b"change_me",
    b"your",
    b"redacted",
    b"****",
    b"0000000",
    b"dummy",
    b"insert",
    b"replace",
    b"....",
    b"aaaaaaa",
    b"fake",
    b"sample",
    b"todo",
];

/// Whether a text is one that people write where a secret would be.
pub(super) fn is_placeholder(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    PLACEHOLDERS.iter().any(|word| memchr::memmem::find(&lower, word).is_some())
}

/// Shannon's entropy of the bytes of a text, in bits for each, times 100.
pub(super) fn centibits(text: &[u8]) -> u32 {
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let length = text.len().max(1) as u32;
    // Of counts, logarithms by halves: exact enough, and without floating point.
    let sum: u64 =
        counts.iter().filter(|count| **count > 0).map(|count| u64::from(*count) * log2(length, *count)).sum();
    (sum / u64::from(length)) as u32
}

/// The binary logarithm of `of / by`, times 100.
fn log2(of: u32, by: u32) -> u64 {
    // Squared seven times, its whole part is 128 times the logarithm.
    let (mut mantissa, mut whole) = ((u64::from(of) << 32) / u64::from(by), 0_u64);
    let mut bits = 0;
    while mantissa >= 2 << 32 {
        mantissa >>= 1;
        whole += 1;
    }
    for _ in 0..7 {
        mantissa = ((u128::from(mantissa) * u128::from(mantissa)) >> 32) as u64;
        bits <<= 1;
        if mantissa >= 2 << 32 {
            mantissa >>= 1;
            bits |= 1;
        }
    }
    whole * 100 + bits * 100 / 128
}

/// Whether a text has digits and letters, and is so varied that it stands nowhere by chance.
pub(super) fn looks_random(text: &[u8]) -> bool {
    text.len() >= 8
        && text.iter().any(u8::is_ascii_digit)
        && text.iter().any(u8::is_ascii_alphabetic)
        && centibits(text) >= 250
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_is_what_it_is() {
        for (text, expected) in
            [("aaaa", 0), ("abab", 100), ("abcd", 200), ("abcdefgh", 300), ("aaab", 81), ("abc", 158)]
        {
            let found = centibits(text.as_bytes());
            assert!(found.abs_diff(expected) <= 2, "{text}: {found}, {expected}");
        }
    }

    #[test]
    fn what_nobody_would_repeat_by_chance_looks_random() {
        assert!(looks_random(b"hunter2!x") && looks_random(b"a8Fk2LmQ"));
        assert!(
            !looks_random(b"postgres")
                && !looks_random(b"12345678")
                && !looks_random(b"a1")
                && !looks_random(b"aaaaaaa1")
        );
    }
}
