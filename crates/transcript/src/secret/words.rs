//! Where a detector may apply: around long words, before an `@`, and where a key is named. None of it looks at every byte twice,
//! because nearly all bytes of a transcript are no secret.

use super::check::Alphabet;
use core::ops::Range;
use memchr::{memchr_iter, memmem};

/// Every token has a word of so many letters, digits, hyphens and underscores.
pub(super) const LONG_BYTES_MIN: usize = 20;

/// So far before such a word a token may begin, as an address does.
pub(super) const BEFORE: usize = 64;

/// How far before an `@` its address begins.
const ADDRESS_BYTES_MAX: usize = 256;

/// Which bytes are of words.
const IS_OF_WORD: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte == b'_' as usize || byte == b'-' as usize;
        byte += 1;
    }
    table
};

/// Calls `each` with the long words of bytes that end after the beginning of `owned`, and begin before its end or a little after.
pub(super) fn for_each_long(bytes: &[u8], owned: Range<usize>, each: &mut dyn FnMut(Range<usize>)) {
    let mut start = owned.start.saturating_sub(LONG_BYTES_MIN);
    let most = bytes.len().min(owned.end + BEFORE);
    while start < most && start + LONG_BYTES_MIN <= bytes.len() {
        // From its end: what is no letter there rules out all before it.
        let window = &bytes[start..start + LONG_BYTES_MIN];
        if let Some(other) = window.iter().rposition(|byte| !IS_OF_WORD[usize::from(*byte)]) {
            start += other + 1;
            continue;
        }
        let rest = &bytes[start + LONG_BYTES_MIN..];
        let end = start + LONG_BYTES_MIN + Alphabet::UrlSafe.run(rest);
        each(start..end);
        start = end + 1;
    }
}

/// Calls `each` with the `://` of addresses that have an `@` in their first part.
pub(super) fn for_each_address(bytes: &[u8], owned: Range<usize>, each: &mut dyn FnMut(Range<usize>)) {
    let most = bytes.len().min(owned.end + ADDRESS_BYTES_MAX);
    for at in memchr_iter(b'@', &bytes[owned.start..most]).map(|at| owned.start + at) {
        let before = &bytes[at.saturating_sub(ADDRESS_BYTES_MAX)..at];
        let stop = before.iter().rposition(|byte| b"/\"'<> @\\".contains(byte));
        let Some(stop) = stop.filter(|stop| before[..=*stop].ends_with(b"://")) else { continue };
        let end = at - before.len() + stop + 1;
        if owned.contains(&(end - 3)) {
            each(end - 3..end);
        }
    }
}

/// Calls `each` with the hyphens before the words that begin or end a private key, and whether they end it.
pub(super) fn for_each_key(bytes: &[u8], owned: Range<usize>, each: &mut dyn FnMut(Range<usize>, bool)) {
    let most = bytes.len().min(owned.end + BEFORE);
    for at in memmem::find_iter(&bytes[owned.start..most], b"PRIVATE KEY").map(|at| owned.start + at) {
        let from = at.saturating_sub(BEFORE);
        let before = &bytes[from..at];
        let last = |hyphens: &[u8]| {
            memmem::rfind(before, hyphens).map(|found| from + found..from + found + hyphens.len())
        };
        let (begin, end) = (last(b"-----BEGIN "), last(b"-----END "));
        let is_end = end.as_ref().map(|end| end.start) > begin.as_ref().map(|begin| begin.start);
        if let Some(anchor) = if is_end { end } else { begin }
            && owned.contains(&anchor.start)
        {
            each(anchor, is_end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec::Vec;

    #[test]
    fn long_words_are_found_wherever_they_stand() {
        for (before, length, after) in
            [(0, 20, 0), (1, 20, 1), (7, 33, 2), (19, 21, 40), (20, 20, 0), (64, 100, 3)]
        {
            let text = String::from(" ").repeat(before) + &"a".repeat(length) + &" bc d".repeat(after);
            let mut found = Vec::new();
            for_each_long(text.as_bytes(), 0..text.len(), &mut |word| found.push((word.start, word.end)));
            assert_eq!(found, [(before, before + length)]);
        }
        let mut none = true;
        for_each_long("ab cd efghijklmnopqrstu vw xyz".repeat(9).as_bytes(), 0..270, &mut |_| none = false);
        assert!(none);
    }
}
