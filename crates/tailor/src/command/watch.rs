//! `tailor watch`: the daemon.

use super::failed;
use crate::args::Watch;
use crate::config::load;
use crate::log;
use crate::printer::talk;
use crate::status::Status;

pub(crate) fn run(watch: &Watch) -> Status {
    let loaded = match load(&watch.at) {
        Ok(loaded) => loaded,
        Err(error) => return failed(&error),
    };
    log::begin(watch.log_format);
    for warning in &loaded.warnings {
        talk(warning);
    }
    let mut reload = || load(&watch.at).map(|loaded| loaded.config);
    match watch::run(loaded.config, &mut reload) {
        Ok(()) => Status::Clean,
        Err(error) => failed(&error),
    }
}
