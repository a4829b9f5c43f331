//! What is wrong with a transcript, and a repair that leaves it no worse.

pub(crate) mod context;
mod conversation;
pub(crate) mod digest;
pub(crate) mod headline;
pub(crate) mod holds;
pub(crate) mod look;
pub(crate) mod mend;
pub(crate) mod survey;
mod tally;
pub mod verdict;
