//! Turns bytes into entries ([`scan`]), and finds the records in damaged lines ([`salvage`]).

pub(crate) mod salvage;
pub mod scan;
