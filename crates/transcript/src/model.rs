//! The words that all parts share. Nothing here knows a format, a rule, or how anything is read.

pub mod entry;
pub mod finding;
pub mod image;
pub mod policy;
pub mod refusal;
pub(crate) mod rule;
