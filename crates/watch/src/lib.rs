//! Decides when to look at a transcript, and when to look again.
//!
//! Events only mark a path. `queue` says when a path is due, which is once it has been quiet for its settle time; time
//! is an argument there. A `root_watcher` for each root turns `changes` on disk into events, and regularly walks the
//! whole root, so that a lost event costs nothing but time. Workers `look`; `main_loop` receives everything. What is wrong
//! with a transcript, and how a file is replaced, is decided in other crates.

mod config;
// The daemon needs Unix; elsewhere `absent` says that there is none.
#[cfg_attr(not(unix), path = "absent.rs")]
mod daemon;
mod status;

pub use config::{Build, Config, Keeping, Listen, Roots, WatchMode};
pub use daemon::{Error, ask, run};
pub use status::{FileTrouble, RootStatus, Status};
