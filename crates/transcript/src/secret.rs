//! Secrets in texts: which texts look like keys, tokens and passwords, and where they stand.
//!
//! [`detectors`] is a table; this file finds where a row may apply (`SecretFinder::candidates`, one pass over bytes as they are
//! written) and what is a secret in a decoded text (`SecretFinder::find`). Nothing here prints a secret.

use crate::model::finding::SecretMark;
use crate::model::policy::OwnSecret;
use aho_corasick::packed::{self, Searcher};
use aho_corasick::{AhoCorasick, Input, MatchKind};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use spans::literal::{decode, quote};

mod check;
pub mod detectors;
mod shape;
mod words;

use check::looks_random;
use detectors::{DETECTORS, Shape};

/// The longest text that a detector looks at after its anchor: a private key of 16,384 bits in PEM.
pub(crate) const BYTES_MAX: usize = 20_000;

/// How far a detector looks before its anchor.
pub(crate) const BYTES_BEFORE: usize = 128;

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundSecret {
    /// Where it stands.
    pub(crate) at: Range<usize>,
    /// The row that found it.
    row: usize,
    /// Whether the same text elsewhere is the same secret, whatever stands around it.
    pub(crate) spreads: bool,
}

/// One thing to look for.
struct Row {
    kind: String,
    anchor: String,
    shape: Shape,
}

/// Finds secrets: all rows of the table, and a person's own.
pub(crate) struct SecretFinder {
    rows: Vec<Row>,
    /// The beginnings of tokens, which are looked for only around long words.
    tokens: Anchors,
    /// The names of values, and what a person's own secrets begin with.
    names: Anchors,
}

/// Finds some of the anchors at once.
struct Anchors {
    /// Which row each of them is.
    rows: Vec<usize>,
    searcher: Searching,
}

enum Searching {
    /// With vectors.
    Packed(Searcher),
    Plain(AhoCorasick),
    /// They could not be built, which happens only with too many.
    Nothing,
}

impl Anchors {
    fn new(rows: &[Row], is_meant: fn(&Row) -> bool) -> Self {
        let places: Vec<usize> = (0..rows.len()).filter(|row| is_meant(&rows[*row])).collect();
        let texts = || places.iter().map(|row| rows[*row].anchor.as_str());
        let mut packed = packed::Config::new();
        packed.match_kind(packed::MatchKind::LeftmostLongest).heuristic_pattern_limits(false);
        let searcher = match packed.builder().extend(texts()).build() {
            Some(searcher) => Searching::Packed(searcher),
            None => AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(texts())
                .map_or(Searching::Nothing, Searching::Plain),
        };
        Self { rows: places, searcher }
    }

    /// The first of them within a range, and which row it is.
    fn next(&self, bytes: &[u8], within: Range<usize>) -> Option<(usize, Range<usize>)> {
        let (pattern, at) = match &self.searcher {
            Searching::Packed(packed) => packed
                .find_in(bytes, within.into())
                .map(|found| (found.pattern().as_usize(), found.start()..found.end())),
            Searching::Plain(plain) => plain
                .find(Input::new(bytes).range(within))
                .map(|found| (found.pattern().as_usize(), found.start()..found.end())),
            Searching::Nothing => None,
        }?;
        Some((self.rows[pattern], at))
    }

    /// Calls `each` with all of them within a range, also where one begins within another.
    fn all(&self, bytes: &[u8], within: Range<usize>, each: &mut dyn FnMut(usize, Range<usize>)) {
        let mut from = within.start;
        while let Some((row, at)) = self.next(bytes, from..within.end) {
            from = at.start + 1;
            each(row, at);
        }
    }
}

impl SecretFinder {
    /// With these patterns beside those of the table.
    pub(crate) fn new(own: &[OwnSecret]) -> Self {
        let table = DETECTORS.iter().map(|detector| Row {
            kind: detector.kind.into(),
            anchor: detector.anchor.into(),
            shape: detector.shape,
        });
        let own = own.iter().map(|own| Row {
            kind: own.name.clone(),
            anchor: own.begins.clone(),
            shape: Shape::OWN,
        });
        let rows: Vec<Row> = table.chain(own).collect();
        let tokens = Anchors::new(&rows, |row| row.shape != Shape::OWN && row.shape.has_long_word());
        let names = Anchors::new(&rows, |row| match row.shape {
            Shape::OWN | Shape::Value { .. } => true,
            shape => matches!(shape, Shape::Token { .. }) && !shape.has_long_word(),
        });
        Self { rows, tokens, names }
    }

    /// Calls `each` with the places in bytes, as they are written, at which a secret stands, but for escapes in it: of those anchors
    /// that begin within `owned`.
    pub(crate) fn candidates(&self, bytes: &[u8], owned: Range<usize>, each: &mut dyn FnMut(usize)) {
        self.anchors(bytes, owned, &mut |row, anchor| {
            if self.rows[row].shape.may_stand(bytes, &anchor) {
                each(anchor.start);
            }
        });
    }

    /// The secrets in a decoded text, sorted and disjoint.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<FoundSecret> {
        let mut found = Vec::new();
        self.anchors(text, 0..text.len(), &mut |row, anchor| {
            if let Some(at) = self.rows[row].shape.secret(text, &anchor) {
                let spreads = looks_random(&text[at.clone()]);
                found.push(FoundSecret { at, row, spreads });
            }
        });
        self.disjoint(found)
    }

    /// Calls `each` with the rows that may apply, and their anchors, of those that begin within `owned`; in no order.
    fn anchors(&self, bytes: &[u8], owned: Range<usize>, each: &mut dyn FnMut(usize, Range<usize>)) {
        let mut done = owned.start;
        words::for_each_long(bytes, owned.clone(), &mut |word| {
            let from = done.max(word.start.saturating_sub(words::BEFORE));
            let to = word.end.min(owned.end + words::BEFORE);
            if from < to {
                self.tokens.all(bytes, from..to, &mut |row, at| {
                    if owned.contains(&at.start) {
                        done = done.max(at.start + 1);
                        each(row, at);
                    }
                });
            }
        });
        let to = bytes.len().min(owned.end + words::BEFORE);
        self.names.all(bytes, owned.start..to, &mut |row, at| {
            if owned.contains(&at.start) {
                each(row, at);
            }
        });
        let row_of = |shape: Shape| self.rows.iter().position(|row| row.shape == shape);
        words::for_each_address(bytes, owned.clone(), &mut |at| {
            if let Some(row) = row_of(Shape::UrlPassword) {
                each(row, at);
            }
        });
        words::for_each_key(bytes, owned, &mut |at, is_end| {
            let shape = if is_end { Shape::PemEnd } else { Shape::PemBegin };
            if let Some(row) = row_of(shape) {
                each(row, at);
            }
        });
    }

    /// Of those that overlap, the one that says most: a token is named by itself, a value only by its name.
    fn disjoint(&self, mut found: Vec<FoundSecret>) -> Vec<FoundSecret> {
        found.sort_by_key(|found| (found.at.start, core::cmp::Reverse(found.at.end)));
        let mut kept: Vec<FoundSecret> = Vec::with_capacity(found.len());
        for next in found {
            let Some(last) = kept.last_mut().filter(|last| next.at.start < last.at.end) else {
                kept.push(next);
                continue;
            };
            let is_named_by_itself = |found: &FoundSecret| self.rows[found.row].shape.is_self_evident();
            let row = if is_named_by_itself(last) { last.row } else { next.row };
            *last = FoundSecret { at: last.at.start..last.at.end.max(next.at.end), row, ..*last };
        }
        kept
    }

    /// What may be said of a secret.
    pub(crate) fn mark(&self, secret: &FoundSecret, text: &[u8]) -> SecretMark {
        let row = &self.rows[secret.row];
        SecretMark::new(&row.kind, &text[secret.at.clone()], row.shape.is_block())
    }
}

/// Looks for one secret, by its hash, in bytes of any kind.
pub struct SecretByHash {
    finder: SecretFinder,
    digits: String,
}

impl SecretByHash {
    /// How many bytes must be looked at twice where a text comes in pieces: an escape in an escape takes four bytes for one.
    pub const OVERLAP_BYTES: usize = BYTES_MAX * 4;

    /// The secret whose hash begins with these hex digits, of the kinds of the table and these.
    pub fn new(digits: &str, own: &[OwnSecret]) -> Self {
        Self { finder: SecretFinder::new(own), digits: digits.to_ascii_lowercase() }
    }

    /// Whether the secret is in these bytes: as they are, or as JSON writes it, perhaps in another string.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        let text = decode(bytes);
        self.is_in_text(bytes) || self.is_in_text(&text) || self.is_in_text(&decode(&text))
    }

    fn is_in_text(&self, text: &[u8]) -> bool {
        !self.texts_of(text).is_empty()
    }

    fn texts_of(&self, text: &[u8]) -> Vec<Vec<u8>> {
        let found = self.finder.find(text);
        let own = found.iter().filter(|found| self.finder.mark(found, text).hash.starts_with(&self.digits));
        own.map(|found| text[found.at.clone()].to_vec()).collect()
    }

    /// The secret in these bytes, in each way in which it may stand there: as it is, or as JSON writes it, perhaps in another string.
    pub fn texts_in(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let text = decode(bytes);
        let mut plain = [self.texts_of(bytes), self.texts_of(&text), self.texts_of(&decode(&text))].concat();
        plain.sort_unstable();
        plain.dedup();
        let written: Vec<_> = plain.iter().map(|text| as_written(text)).collect();
        let twice: Vec<_> = written.iter().map(|text| as_written(text)).collect();
        [plain, written, twice].concat()
    }
}

/// A text as it stands between the quotes of a JSON string.
pub(crate) fn as_written(text: &[u8]) -> Vec<u8> {
    let mut literal = Vec::new();
    quote(text, &mut literal);
    literal[1..literal.len() - 1].to_vec()
}

/// What takes the place of a secret.
pub(crate) fn replacement(mark: &SecretMark) -> String {
    format!("[tailor: secret removed: {}, {} chars]", mark.kind, mark.chars)
}

#[cfg(test)]
pub(crate) mod tests;
