//! Time: when a transcript is looked at, and when again.
//!
//! Events only mark a path. `queue` says when a path is due: once it has been quiet for its settle time; time is an
//! argument there. A `root_watcher` for each root turns `changes` on disk into events, and walks the whole root now and
//! then, so that a lost event costs time and nothing else. Workers `look`; `daemon` is the one loop that everything
//! meets in. What is wrong with a transcript, and how a file is replaced, is not known here.
//!
//! The daemon needs Unix: its sockets, signals and descriptors. Elsewhere it says that there is none.

#[cfg(not(unix))]
mod absent;
#[cfg(unix)]
mod ask;
#[cfg(unix)]
mod asked;
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
pub use config::{Config, Listen, Mode, Roots};
#[cfg(unix)]
pub use daemon::{Error, run};
pub use status::{RootStatus, Status, Trouble};
