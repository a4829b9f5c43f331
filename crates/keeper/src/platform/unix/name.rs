//! Names of files: bytes, which need not be text.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The unit of a name.
pub(crate) type NameUnit = u8;

pub(crate) fn units(name: &OsStr) -> Vec<NameUnit> {
    name.as_bytes().to_vec()
}

pub(crate) fn of_units(units: Vec<NameUnit>) -> OsString {
    OsString::from_vec(units)
}
