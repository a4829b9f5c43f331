//! Names of files: UTF-16 units, which need not be text.

use std::ffi::{OsStr, OsString};
use std::os::windows::ffi::{OsStrExt, OsStringExt};

/// The unit of a name.
pub(crate) type NameUnit = u16;

pub(crate) fn units(name: &OsStr) -> Vec<NameUnit> {
    name.encode_wide().collect()
}

#[expect(clippy::needless_pass_by_value, reason = "elsewhere it becomes the name")]
pub(crate) fn of_units(units: Vec<NameUnit>) -> OsString {
    OsString::from_wide(&units)
}

/// A name in the form for system calls.
#[cfg(feature = "stores")]
pub(super) fn for_call(name: &OsStr) -> Vec<NameUnit> {
    name.encode_wide().chain([0]).collect()
}

/// A text in a buffer that may be longer.
pub(super) fn of_buffer(buffer: &[NameUnit]) -> OsString {
    OsString::from_wide(buffer.split(|&unit| unit == 0).next().unwrap_or_default())
}
