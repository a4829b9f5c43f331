//! One transcript on disk: whether it may be touched, and how it is replaced.
//!
//! The only crate that writes transcripts. It does not know what is in them; [`transcript`] does.
//!
//! [`maintain`] scans and fixes, [`recover`] and [`compact`] shorten a conversation, and [`follow`] is [`maintain`] for a file
//! that is examined again and again. Each of them draws a plan, and `carry` does the rest:
//!
//! - `snapshot` opens the file, locks it, and later tells whether it is still the same; `folder` holds its folder.
//! - `leave` decides whether it may be replaced now: `gate` asks the agents, `writers` who has it open.
//! - `leftover` finishes what an earlier run was interrupted in.
//! - `vault` stores what the plan removes, and the record by which it can be put back.
//! - `replace` puts the new text in place; `appends` copies what other programs append meanwhile; `lease` makes them wait.
//!
//! [`undo`] uses the same modules: `restore` finds where the changes of a run are now, and makes a new text with the originals
//! put back.
//!
//! Work on a file can end early with a [`Stop`]: a [`Deferral`] (not now), a [`Refusal`] (not at all) or an [`Error`]. What
//! the user is told is an [`Outcome`] with its [`Ending`].

#[cfg(test)]
mod actions;
mod appends;
mod beside;
mod carry;
mod compact;
mod content;
mod deferral;
mod error;
mod find;
mod folder;
mod follow;
mod found;
mod gate;
#[cfg_attr(not(feature = "stores"), expect(dead_code, reason = "only texts of rows are held"))]
mod held;
mod identity;
mod interruption;
mod lease;
mod leave;
mod leftover;
mod maintain;
mod new_text;
mod options;
mod outcome;
mod own;
mod packed;
mod platform;
mod policies;
mod recover;
mod refusal;
mod replace;
mod restore;
mod room;
mod roots;
mod shown;
mod snapshot;
#[cfg(test)]
mod spawned;
mod starter;
mod step;
mod stop;
mod store;
mod stored;
#[cfg(feature = "stores")]
mod stores;
mod strays;
mod undo;
mod vault;
mod verdicts;
mod windows;
mod worth;
mod writers;

pub use compact::{Compacting, closed, compact};
pub use content::{bytes_read, spool};
pub use deferral::{Deferral, SetBy};
pub use error::{Error, is_hindrance};
pub use find::{DEPTH_MAX, find, is_candidate};
pub use folder::folder_of;
pub use follow::{Remembered, follow};
pub use found::{Fill, FoundFile, Pruned};
pub use gate::quiet_for;
pub use identity::{FileId, Stamp};
pub use interruption::stop_reading;
pub use leave::is_in_use;
pub use leftover::{finish_all, insert_late_lines};
pub use maintain::{Stream, maintain, maintain_shown, maintain_stream, read, read_to_examine};
pub use options::{Mode, Options};
pub use outcome::{Ending, Guarantee, Outcome, Unsupported};
pub use own::Own;
pub use platform::exits::{Process, Processes};
pub use platform::limits::confine;
pub use platform::memory::give_back;
pub use platform::metadata::Metadata;
pub use platform::metadata::own_program;
pub use platform::network::network;
pub use platform::process::lock_holder;
pub use platform::program;
pub use platform::writing::create_private;
pub use policies::Policies;
pub use recover::{Recovered, Recovery, Tokens, is_same, recover, recovered_from, recovered_since};
pub use refusal::Refusal;
pub use replace::is_replacing;
pub use restore::Extent;
pub use roots::known_roots;
pub use shown::{is_shown_escaped, plain};
pub use starter::{has_ended, starter};
pub use stop::{Halt, Stop};
pub use store::{
    Store, is_read, is_stored, known_roots_above, known_stores, may_be_read, real_path, stamp_of, store_file,
    written_to,
};
pub use stored::measure_store;
#[cfg(feature = "stores")]
pub use stores::{ExportedSession, export, prune, vacuum};
pub use strays::{Lack, Stray, strays};
pub use undo::{gone_sessions, undo};
pub use vault::{Forgotten, Freed, OriginalText, Purpose, Record, Run, RunState, RunsToKeep, Vault};
pub use verdicts::{Sight, Verdicts};
pub use windows::stated_windows;
pub use worth::Worth;
