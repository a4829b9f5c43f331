//! Whether a session may be touched now: what its agent and other programs say, and what a run answers.

pub(crate) mod deferral;
pub(crate) mod error;
pub(crate) mod gate;
pub(crate) mod outcome;
pub(crate) mod running;
pub(crate) mod stop;
pub(crate) mod worth;
pub(crate) mod writers;
