//! Decides when to look at a transcript, and when to look again.
//!
//! Events only mark a path. `queue` says when a path is due, which is once it has been quiet for its settle time; time
//! is an argument there. A `root_watcher` for each root turns `changes` on disk into events, and regularly walks the
//! whole root, so that a lost event costs nothing but time. Workers `look`; `daemon` is the single loop that receives
//! everything. What is wrong with a transcript, and how a file is replaced, is decided in other crates.
//!
//! The daemon needs Unix: its sockets, signals and descriptors. Elsewhere it says that there is none.

#[cfg(not(unix))]
mod absent;
#[cfg(unix)]
mod ask;
#[cfg(unix)]
mod changes;
mod config;
#[cfg(unix)]
mod daemon;
#[cfg(unix)]
mod event;
#[cfg(unix)]
mod exits;
#[cfg(unix)]
mod instance;
#[cfg(unix)]
mod look;
#[cfg(unix)]
mod memory;
#[cfg(unix)]
mod metrics;
#[cfg(unix)]
mod options;
#[cfg(unix)]
mod queue;
#[cfg(unix)]
mod root_discovery;
#[cfg(unix)]
mod root_watcher;
mod status;
#[cfg(unix)]
mod systemd;
#[cfg(unix)]
mod textfile;

#[cfg(not(unix))]
pub use absent::{Error, ask, run};
#[cfg(unix)]
pub use ask::ask;
pub use config::{Build, Config, Listen, Roots, WatchMode};
#[cfg(unix)]
pub use daemon::{Error, run};
pub use status::{FileTrouble, RootStatus, Status};
