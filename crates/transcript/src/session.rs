//! Sessions: entries joined up by the rules of the agent that would load them.

pub(crate) mod facts;
pub(crate) mod failure;
mod join;
pub(crate) mod own;
mod pair;
mod shape;
pub mod tokens;
mod traits;
mod view;

pub use facts::Facts;
pub(crate) use shape::traits;
pub(crate) use traits::{Compacts, Traits};
pub use view::{Answers, Awaits, Session};
