//! Stands in for the daemon on systems without it.

use crate::config::{Build, Config};
use crate::status::Status;
use std::fmt;
use std::path::PathBuf;

/// There is no daemon on this system.
#[derive(Debug)]
pub struct Error;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the daemon does not run on Windows yet (run tailor fix now and then, or tailor watch in WSL)",
        )
    }
}

impl std::error::Error for Error {}

/// Always fails.
///
/// # Errors
///
/// Always.
pub fn run(_: Config, _: &Build, _: &mut dyn FnMut() -> Result<Config, String>) -> Result<(), Error> {
    Err(Error)
}

/// Always fails.
///
/// # Errors
///
/// Always.
pub fn ask(sockets: &[PathBuf]) -> Vec<Result<Status, String>> {
    sockets.iter().map(|_| Err(Error.to_string())).collect()
}
