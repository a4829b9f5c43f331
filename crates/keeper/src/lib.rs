//! One transcript on disk: whether it may be touched, and how it is replaced.
//!
//! The only crate that writes transcripts. It does not know what is in them; [`transcript`] does.
//!
//! [`maintain`] scans and fixes, [`recover`] and [`compact`] shorten a conversation, and [`follow`] is [`maintain`] for a file
//! that is examined again and again. Each of these `jobs` draws a plan, and `jobs::carry` does the rest:
//!
//! - `swap::snapshot` opens the file, locks it, and later tells whether it is still the same; `disk::folder` holds its folder.
//! - `jobs::leave` decides whether it may be replaced now: `ask::gate` asks the agents, `ask::writers` who has it open.
//! - `swap::leftover` finishes what an earlier run was interrupted in.
//! - `vault` stores what the plan removes, and the record by which it can be put back.
//! - `swap::replace` puts the new text in place; `disk::appends` copies what other programs append meanwhile; `disk::lease` makes
//!   them wait.
//!
//! [`undo`] uses the same modules: `swap::restore` finds where the changes of a run are now, and makes a new text with the
//! originals put back. `ARCHITECTURE.md` says what each room may do.
//!
//! Work on a file can end early with a [`Stop`]: a [`Deferral`] (not now), a [`Refusal`] (not at all) or an [`Error`]. What
//! the user is told is an [`Outcome`] with its [`Ending`].

#[cfg(test)]
mod actions;
mod archive;
mod ask;
mod base;
mod disk;
mod jobs;
mod options;
mod places;
mod platform;
#[cfg(test)]
mod spawned;
#[cfg(feature = "stores")]
mod stores;
mod swap;
mod vault;
mod verdicts;

pub use archive::{Archive, Change, Damage, Dropped, End, Generation, KeepLimits, Kept, REST_EVERY, TextsIn};
pub use ask::deferral::{Deferral, SetBy};
pub use ask::error::{Error, is_hindrance};
pub use ask::gate::quiet_for;
pub use ask::outcome::{Ending, Guarantee, Outcome, Unsupported};
pub use ask::stop::{Halt, Stop};
pub use ask::worth::Worth;
pub use base::interruption::stop_reading;
pub use base::policies::Policies;
pub use base::refusal::Refusal;
pub use base::shown::{is_shown_escaped, plain};
pub use disk::folder::{Folder, as_owner_of, folder_of, is_missing};
pub use jobs::compact::{Compacting, closed, compact};
pub use jobs::find::{DEPTH_MAX, FolderGlobs, LeftOut, find, find_without, is_candidate};
pub use jobs::follow::{Remembered, follow};
pub use jobs::keep::{Keeper, put_back};
pub use jobs::leave::is_in_use;
pub use jobs::maintain::{Stream, maintain, maintain_shown, maintain_stream, read, read_to_examine};
pub use jobs::recover::{
    Recovered, Recovery, Tokens, changed_since, is_same, recover, recovered_from, recovered_since,
};
pub use jobs::stored::measure_store;
pub use jobs::undo::{gone_sessions, undo};
pub use options::{Mode, Options};
pub use places::found::{Fill, FoundFile, Pruned};
pub use places::roots::{known_roots, searched_roots};
pub use places::store::{
    Store, is_read, is_stored, known_roots_above, known_stores, may_be_read, owner_of, real_path, stamp_of,
    store_file, written_to,
};
pub use places::strays::{Lack, Stray, strays};
pub use places::windows::stated_windows;
pub use platform::exits::{Process, Processes};
pub use platform::identity::{FileId, Stamp};
pub use platform::limits::confine;
pub use platform::memory::give_back;
pub use platform::metadata::Metadata;
pub use platform::metadata::own_program;
pub use platform::network::network;
pub use platform::own::Own;
pub use platform::process::lock_holder;
pub use platform::program;
pub use platform::starter::{has_ended, starter};
pub use platform::writing::create_private;
#[cfg(feature = "stores")]
pub use stores::{ExportedSession, export, prune, vacuum};
pub use swap::content::{bytes_read, spool};
pub use swap::leftover::{finish_all, insert_late_lines};
pub use swap::replace::is_replacing;
pub use swap::restore::Extent;
pub use vault::{Forgotten, Freed, OriginalText, Purpose, Record, Run, RunState, RunsToKeep, Vault};
pub use verdicts::{Sight, Verdicts};
