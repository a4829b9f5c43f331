//! One transcript on disk: whether it may be touched, and how it is replaced.
//!
//! The only crate that writes files. It does not know what a transcript means; that is [`transcript`]'s.
//!
//! [`maintain`] scans and fixes, [`recover`] and [`compact`] shorten a conversation, and [`follow`] is [`maintain`] for a
//! file that is looked at again and again. All of them draw a plan, and `carry` does the rest: it reads the file
//! (`snapshot`), asks whether it may be written (`leave`, `gate`), keeps what goes (`vault`), puts the new text in place
//! (`replace`) and finishes what was interrupted (`leftover`). [`undo`] goes the same way back.

#[cfg(test)]
mod actions;
mod beside;
mod carry;
mod compact;
mod content;
mod deferral;
mod error;
mod find;
mod folder;
mod follow;
mod gate;
mod identity;
mod lease;
mod leave;
mod leftover;
mod maintain;
mod new_text;
mod options;
mod outcome;
mod own;
mod packed;
mod place;
mod platform;
mod policies;
mod recover;
mod refusal;
mod replace;
mod restore;
mod roots;
mod snapshot;
mod starter;
mod step;
mod stop;
mod store;
mod strays;
mod tail;
mod undo;
mod vault;
mod verdicts;
mod worth;
mod writers;

pub use compact::{Compacting, closed, compact};
pub use content::{bytes_read, spool};
pub use deferral::{Deferral, SetBy};
pub use error::{Error, is_hindrance};
pub use find::{DEPTH_MAX, Found, find, is_candidate};
pub use follow::{Remembered, follow};
pub use gate::quiet_for;
pub use identity::{FileId, Stamp};
pub use leave::is_in_use;
pub use leftover::{settle_all, settle_late};
pub use maintain::{Stream, maintain, maintain_shown, maintain_stream, read};
pub use options::{Mode, Options};
pub use outcome::{Ending, Guarantee, Outcome, Unsupported};
pub use own::Own;
pub use platform::exits::{Process, Processes};
pub use platform::facts::{Metadata, real_path};
pub use platform::limits::confine;
pub use platform::network::network;
#[cfg(windows)]
pub use platform::writing::create_private;
pub use policies::Policies;
pub use recover::{Recovered, Recovery, Tokens, is_same, recover, recovered_from, recovered_since};
pub use refusal::Refusal;
pub use restore::Extent;
pub use roots::{known_roots, known_roots_above};
pub use starter::{has_ended, starter};
pub use stop::Stop;
pub use store::{Store, known_stores};
pub use strays::{Lack, Stray, strays};
pub use undo::undo;
pub use vault::{Forgotten, Freed, Keep, Purpose, Record, Run, State, Text, Vault};
pub use verdicts::{Sight, Verdicts};
pub use worth::Worth;
