//! What `doctor` and `resume` may be asked.

use super::file::ConfigFile;
use super::{ChangeArgs, Json};
use crate::names::agents;
use crate::sessions::path_or_id;
use clap::Args as ClapArgs;
use clap::ValueHint::AnyPath;
use clap::builder::{OsStringValueParser, TypedValueParser};
use keeper::Options;
use std::path::PathBuf;

#[derive(ClapArgs, Default)]
pub(crate) struct DoctorArgs {
    /// Files, folders or ids of sessions. By default the folders of known agents.
    #[arg(value_name = "PATH", value_parser = session(), value_hint = AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// List only sessions that are broken or too long.
    #[arg(long)]
    pub(crate) broken: bool,
    /// List only sessions of this agent, such as claude or codex.
    #[arg(long, value_name = "AGENT", value_parser = agents(), hide_possible_values = true)]
    pub(crate) agent: Option<String>,
    /// List only sessions whose project folder has this text in its path.
    #[arg(long, value_name = "TEXT")]
    pub(crate) project: Option<String>,
    #[command(flatten)]
    pub(crate) json: Json,
    /// Add the title of each session, or its first words, to --json.
    #[arg(long, requires = "json")]
    pub(crate) titles: bool,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
}

#[derive(ClapArgs)]
pub(crate) struct ResumeArgs {
    /// The agent, such as claude, codex or pi; or the id of a session, or how it begins.
    #[arg(value_name = "AGENT|ID", value_parser = agents(), hide_possible_values = true)]
    pub(crate) agent: String,
    /// The session's id, or how it begins; by default the newest session of this folder, else of all.
    #[arg(value_name = "ID", value_hint = AnyPath)]
    pub(crate) id: Option<String>,
    /// Repair and print the command, but do not start the agent.
    #[arg(long)]
    pub(crate) no_start: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

impl ResumeArgs {
    pub(crate) fn options(&self) -> Result<Options, String> {
        self.change.options(false, crate::config::Loaded::policies)
    }
}

/// Reads a path, or the id of a session.
pub(super) fn session() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(path_or_id)
}
