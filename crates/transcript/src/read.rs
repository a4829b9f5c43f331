//! Bytes to entries.

pub(crate) mod salvage;
pub mod scan;
