//! Time: when a transcript is looked at, and when again.
//!
//! Events only mark a path. `queue` says when a path is due: once it has been quiet for its settle time; time is an
//! argument there. A `root_watcher` for each root turns `changes` on disk into events, and walks the whole root now and
//! then, so that a lost event costs time and nothing else. Workers `look`; `daemon` is the one loop that everything
//! meets in. What is wrong with a transcript, and how a file is replaced, is not known here.

mod ask;
mod changes;
mod config;
mod daemon;
mod event;
mod exits;
mod instance;
mod look;
mod memory;
mod metrics;
mod queue;
mod root_discovery;
mod root_watcher;
mod status;
mod systemd;
mod textfile;

pub use ask::ask;
pub use config::{Config, Listen, Mode, Roots};
pub use daemon::{Error, run};
pub use status::{RootStatus, Status, Trouble};
