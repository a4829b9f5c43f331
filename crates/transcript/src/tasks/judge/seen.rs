//! Which ids a transcript has, without storing them. An id that is there is never called new.
//!
//! A Bloom filter, because what is remembered of a session of 1 GB must be small, and a wrong "maybe" only costs a
//! look. The cost of a look grows with the file, so larger files get filters that err less: twelve bits per id at 64
//! KiB, one more with each doubling, up to [`WORDS_MAX`].

use crate::format::Format;
use crate::model::ids::{Id, Ids};
use crate::model::transcript::Transcript;
use crate::rule::superseded_read;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use spans::fingerprint;
use spans::source::{Fault, Source};

/// Identifies a text: the beginning of its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TextKey(pub(super) [u8; 16]);

impl TextKey {
    pub(super) fn from_text(text: &[u8]) -> Self {
        let mut key = [0; 16];
        key.copy_from_slice(&blake3::hash(text).as_bytes()[..16]);
        Self(key)
    }
}

/// The key of an id in this transcript.
pub(super) fn key_in(transcript: &Transcript, id: Option<Id>) -> Option<TextKey> {
    id.map(|id| TextKey::from_text(transcript.ids.text(id)))
}

/// The file that each call reads.
pub(super) type Reads = HashMap<u32, TextKey>;

/// The files that calls read.
pub(super) fn reads(source: &dyn Source, format: &Format, transcript: &Transcript) -> Result<Reads, Fault> {
    let all = superseded_read::reads(source, format, transcript)?;
    Ok(all.into_iter().map(|read| (read.call, TextKey::from_text(&read.path))).collect())
}

/// 2 MiB.
const WORDS_MAX: usize = 1 << 18;

/// Bits per id in a short file.
const BITS_MIN: usize = 12;

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SeenIds {
    #[serde(with = "text")]
    bits: Vec<u64>,
    probes: u64,
}

impl SeenIds {
    /// The ids of a transcript of this size, with room for a quarter more.
    pub(super) fn from_ids(ids: &Ids, bytes: u64) -> Self {
        let room = ids.len() + ids.len() / 4 + 32;
        let wanted = BITS_MIN + (bytes >> 16).checked_ilog2().map_or(0, |doublings| doublings as usize + 1);
        let words = (room * wanted).div_ceil(64).min(WORDS_MAX);
        // The best number of probes is the number of bits per id times ln 2.
        let probes = (words * 64 * 7 / 10 / room).max(1) as u64;
        let mut seen = Self { bits: vec![0; words], probes };
        ids.texts().for_each(|text| seen.insert(text));
        seen
    }

    /// Whether an id may be there. `false` is certain.
    pub(super) fn may_hold(&self, text: &[u8]) -> bool {
        self.places(text).all(|at| self.bits[at / 64] >> (at % 64) & 1 == 1)
    }

    pub(super) fn insert(&mut self, text: &[u8]) {
        for at in self.places(text) {
            self.bits[at / 64] |= 1 << (at % 64);
        }
    }

    pub(super) fn weight(&self) -> usize {
        self.bits.len() * size_of::<u64>()
    }

    fn places(&self, text: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (fingerprint::hash(text), self.bits.len() as u128 * 64);
        let step = fingerprint::mix(first) | 1;
        let each = move |n| first.wrapping_add(step.wrapping_mul(n));
        (0..self.probes).map(move |n| ((u128::from(each(n)) * count) >> 64) as usize)
    }
}

/// Words as base64, which is shorter than decimal numbers.
mod text {
    use super::{String, Vec};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(words: &[u64], to: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        to.serialize_str(&STANDARD_NO_PAD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
        let bytes = STANDARD_NO_PAD.decode(String::deserialize(from)?).map_err(Error::custom)?;
        let (words, rest) = bytes.as_chunks();
        if words.is_empty() || !rest.is_empty() {
            return Err(Error::custom("no whole words"));
        }
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }
}
