//! Sessions: entries joined up by the rules of the agent that would load them.

pub(crate) mod facts;
pub(crate) mod failure;
mod join;
mod pair;
mod shape;
mod view;

pub use facts::Facts;
pub use view::{Answers, Awaits, Session};
