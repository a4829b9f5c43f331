//! What is made from the definitions of the arguments: completions and manual pages.

use super::common::Json;
use clap::Args as ClapArgs;
use clap::ValueHint::DirPath;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(ClapArgs)]
pub(crate) struct Completions {
    /// For this shell.
    pub(crate) shell: Shell,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(ClapArgs)]
pub(crate) struct Complete {
    /// How the word begins.
    #[arg(value_name = "TEXT", default_value = "")]
    pub(crate) begin: String,
    /// The words before it, without `tailor`; with them, names that fit are printed as well, and ids only where they fit.
    #[arg(value_name = "WORD", last = true)]
    pub(crate) before: Vec<String>,
}

#[derive(ClapArgs)]
pub(crate) struct Man {
    /// Where to; made if it is not there.
    #[arg(value_name = "DIR", value_hint = DirPath)]
    pub(crate) folder: PathBuf,
}
