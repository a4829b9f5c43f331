//! What is made from the definitions of the arguments: completions and manual pages.

use clap::Args as ClapArgs;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(ClapArgs)]
pub(crate) struct Completions {
    /// For this shell.
    pub(crate) shell: Shell,
}

#[derive(ClapArgs)]
pub(crate) struct Man {
    /// Where to; made if it is not there.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
