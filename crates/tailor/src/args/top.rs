//! What `top` and `report` may be asked.

use super::doctor::session;
use super::file::ConfigFile;
use super::{Json, LimitFlags};
use crate::value::count;
use clap::Args as ClapArgs;
use clap::ValueHint::AnyPath;
use std::path::PathBuf;
use transcript::policy::WINDOW_TOKENS;

#[derive(ClapArgs)]
pub(crate) struct TopArgs {
    /// Files or folders; `-` alone is standard input. By default the folders of known agents.
    #[arg(value_name = "PATH", value_parser = session(), value_hint = AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// How many rows of each table to print; the others become one row. By default 6, and 100 with --json.
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub(crate) rows: Option<usize>,
    #[command(flatten)]
    pub(crate) json: Json,
    /// Print tables on a terminal too. Without it, keys lead from the sessions to their turns and entries there, unless
    /// --rows or --json is given.
    #[arg(long)]
    pub(crate) plain: bool,
    /// The model's context window, to show how full it is; 0 if unknown. By default what the configuration or the file
    /// says, or 200,000.
    #[arg(long, value_name = "TOKENS", value_parser = count)]
    pub(crate) window_tokens: Option<u64>,
    /// Show how the largest entries begin.
    #[arg(long)]
    pub(crate) show_content: bool,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
}

impl TopArgs {
    /// The window to compare a context with; `told` is what its file says.
    pub(crate) fn window(&self, told: Option<u64>) -> u64 {
        self.window_tokens.or(told).unwrap_or(WINDOW_TOKENS)
    }

    /// How many rows each table has.
    pub(crate) fn rows(&self) -> usize {
        self.rows.unwrap_or(if self.json.is_json() { 100 } else { 6 }).max(1)
    }
}

#[derive(ClapArgs)]
pub(crate) struct ReportArgs {
    /// Files or folders. By default the folders of known agents.
    #[arg(value_name = "PATH", value_parser = session(), value_hint = AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// The page to write; `-` is standard output. An existing file must be a report.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Show how the largest entries begin. Share such a page only with people who may read the transcripts.
    #[arg(long)]
    pub(crate) show_content: bool,
    /// Leave out the titles and first words of sessions, for a page that others may read. Only a file has them, which nobody
    /// else can read.
    #[arg(long, conflicts_with = "show_content")]
    pub(crate) no_titles: bool,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
}
