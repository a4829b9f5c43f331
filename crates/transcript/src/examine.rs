//! What is wrong with a transcript, and the repair that leaves it no worse.
//!
//! [`look`] reads a text once: scan, session, all rules (`survey`), and the plan of the next stage. [`mend`] looks again at
//! what each plan gives until nothing is left to change, and asks `verdict` whether the result is no worse than the
//! original. What the verdict forbids is left out (`holds`).

pub(crate) mod context;
mod conversation;
pub(crate) mod digest;
pub(crate) mod headline;
pub(crate) mod holds;
pub(crate) mod look;
pub(crate) mod mend;
mod settled;
pub(crate) mod survey;
mod tally;
pub mod verdict;
