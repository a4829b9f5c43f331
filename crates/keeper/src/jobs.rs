//! What a user asks for: maintain, recover, compact, undo.

mod carry;
pub(crate) mod compact;
pub(crate) mod find;
pub(crate) mod follow;
pub(crate) mod keep;
pub(crate) mod leave;
pub(crate) mod maintain;
mod packed;
pub(crate) mod recover;
pub(crate) mod stored;
pub(crate) mod undo;
