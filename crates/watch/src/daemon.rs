//! The daemon. It needs Unix: its sockets, signals and descriptors.

mod ask;
mod changes;
mod event;
mod exits;
mod instance;
mod keeping;
mod look;
mod main_loop;
mod memory;
mod metrics;
mod options;
mod queue;
mod reading;
mod root_discovery;
mod root_watcher;
mod systemd;
mod textfile;

pub use ask::ask;
pub use main_loop::{Error, run};
