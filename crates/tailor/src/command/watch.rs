//! `tailor watch`: the daemon.

use super::failed;
use crate::args::{WatchArgs, build};
use crate::log;
use crate::say::eprint_message;
use crate::status::ExitStatus;

pub(crate) fn run(watch: &WatchArgs) -> ExitStatus {
    let read = || watch.at.load().and_then(|loaded| Ok((loaded.daemon()?, loaded.strays)));
    let (config, strays) = match read() {
        Ok(read) => read,
        Err(error) => return failed(&error),
    };
    log::begin(watch.log_format());
    for stray in &strays {
        eprint_message(&stray.to_string());
    }
    match watch::run(config, &build(), &mut || read().map(|(config, _)| config)) {
        Ok(()) => ExitStatus::Clean,
        Err(error) => failed(&error),
    }
}
