//! What is made from the definitions of the arguments: completions and manual pages.

use clap::Args as ClapArgs;
use clap::ValueHint::DirPath;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(ClapArgs)]
pub(crate) struct Completions {
    /// For this shell.
    pub(crate) shell: Shell,
}

#[derive(ClapArgs)]
pub(crate) struct Complete {
    /// How the id begins.
    #[arg(value_name = "TEXT", default_value = "")]
    pub(crate) begin: String,
}

#[derive(ClapArgs)]
pub(crate) struct Man {
    /// Where to; made if it is not there.
    #[arg(value_name = "DIR", value_hint = DirPath)]
    pub(crate) folder: PathBuf,
}
