//! What every command may be asked: how much it says, in which colours, by how many threads, and whether to programs.

use clap::{Args as ClapArgs, ColorChoice};
use std::num::NonZeroUsize;

/// Options of all commands.
#[derive(ClapArgs, Clone, Copy)]
pub(crate) struct Common {
    /// Print results and errors only.
    ///
    /// No progress, no hints, no totals.
    #[arg(short, long, global = true, display_order = LAST)]
    pub(crate) quiet: bool,
    /// Print what is otherwise left out.
    ///
    /// Each finding, files without findings, and which configuration was read.
    #[arg(short, long, global = true, conflicts_with = "quiet", display_order = LAST)]
    pub(crate) verbose: bool,
    /// How many threads read files [default: as many as there are processors]
    #[arg(short, long, global = true, value_name = "COUNT", display_order = LAST, hide_short_help = true)]
    jobs: Option<NonZeroUsize>,
    /// When to use colours. `NO_COLOR` and `CLICOLOR_FORCE` are obeyed as well.
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto, display_order = LAST, hide_short_help = true)]
    pub(crate) color: ColorChoice,
}

/// After all that is about one command.
const LAST: usize = 1_000;

/// Whether the results of a command that has no other format are for programs.
#[derive(ClapArgs, Clone, Copy, Default)]
pub(crate) struct Json {
    /// Print JSON, one object a line.
    ///
    /// `tailor schema` describes it.
    #[arg(long)]
    json: bool,
}

impl Json {
    pub(crate) fn is_json(self) -> bool {
        self.json
    }
}
