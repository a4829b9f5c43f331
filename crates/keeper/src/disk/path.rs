//! A path in a record of ours; it need not be text.

use crate::platform::name::{NameUnit, of_units, units};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Units(Vec<NameUnit>),
}

pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(to),
        None => units(path.as_os_str()).serialize(to),
    }
}

pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<PathBuf, D::Error> {
    Ok(match Name::deserialize(from)? {
        Name::Text(text) => text.into(),
        Name::Units(units) => of_units(units).into(),
    })
}
