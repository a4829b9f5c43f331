//! Turns bytes into entries ([`scan`]), in parts if there are several threads ([`parts`]) and only where a text has changed
//! ([`changed`]), and finds the records in damaged lines ([`salvage`]).

pub(crate) mod changed;
mod document;
pub mod parts;
pub(crate) mod salvage;
pub mod scan;
