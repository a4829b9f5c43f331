//! What is done with sessions beside mending them: each file is one task, and knows few others.

pub mod chunk;
pub mod compact;
pub mod judge;
pub mod recover;
pub mod request;
pub mod shorten;
