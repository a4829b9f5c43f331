//! The types that all other modules share. Nothing here knows a format, a rule, or how anything is read.

pub(crate) mod context_tokens;
pub(crate) mod damaged_name;
pub(crate) mod draft;
pub(crate) mod entry;
pub mod finding;
pub(crate) mod ids;
pub mod image;
pub(crate) mod overflow;
pub(crate) mod parts;
pub mod policy;
pub mod profile;
pub(crate) mod rule;
pub mod situation;
pub(crate) mod transcript;
