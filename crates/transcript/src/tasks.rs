//! What can be done with a session besides repairing it. Each file is one task, mostly independent of the others.

pub mod chunk;
pub mod compact;
pub mod judge;
pub mod recover;
pub mod request;
pub mod row;
pub mod shorten;
