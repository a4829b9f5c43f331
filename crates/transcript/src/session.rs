//! Sessions: entries joined as the agent that owns the file would load them.

pub(crate) mod facts;
pub(crate) mod failure;
pub(crate) mod gauges;
mod join;
pub(crate) mod load;
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
