//! Where sessions lie: folders of agents, databases, files that were left behind, and windows that a user states.

pub(crate) mod found;
pub(crate) mod roots;
pub(crate) mod store;
pub(crate) mod strays;
pub(crate) mod windows;
