//! A file that others write to, of no format: its folder, leases, what is appended, new texts without a name, paths in records.

pub(crate) mod appends;
pub(crate) mod beside;
pub(crate) mod folder;
#[cfg_attr(not(feature = "stores"), expect(dead_code, reason = "only texts of rows are held"))]
pub(crate) mod held;
pub(crate) mod lease;
pub(crate) mod new_text;
pub(crate) mod path;
