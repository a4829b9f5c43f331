//! A BLAKE3 hash in the index of a run, in hex.

use blake3::Hash;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(hash: &Hash, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&hash.to_hex())
}

pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Hash, D::Error> {
    Hash::from_hex(String::deserialize(from)?).map_err(D::Error::custom)
}
