//! What `hook` may be asked.

use super::file::ConfigFile;
use clap::{Args as ClapArgs, ValueEnum};

#[derive(ClapArgs)]
pub(crate) struct HookArgs {
    /// What has happened to the session. The agent's JSON about it is read from standard input.
    #[arg(value_enum, value_name = "EVENT")]
    pub(crate) event: HookEvent,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookEvent {
    /// It begins: say what is wrong with it, and change nothing.
    Start,
    /// It ends: repair it once its process is gone.
    End,
}
