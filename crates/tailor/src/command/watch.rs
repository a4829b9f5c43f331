//! `tailor watch`: the daemon.

use super::CommandResult;
use crate::args::{WatchArgs, build};
use crate::log;
use crate::say::eprint_message;
use crate::status::ExitStatus;

pub(crate) fn run(watch: &WatchArgs) -> CommandResult {
    let read = || watch.at.load().and_then(|loaded| Ok((loaded.daemon()?, loaded.strays)));
    let (config, strays) = read()?;
    log::begin(watch.log_format());
    for stray in &strays {
        eprint_message(&stray.to_string());
    }
    watch::run(config, &build(), &mut || read().map(|(config, _)| config))?;
    Ok(ExitStatus::Clean)
}
