//! Many sessions on one standard input.

use clap::Args as ClapArgs;
use std::path::PathBuf;

/// A data set that flows by.
#[derive(ClapArgs)]
#[command(next_help_heading = "Many sessions on standard input")]
pub(crate) struct DataSet {
    /// Take each line of standard input as a session of its own, without end.
    ///
    /// At most some megabytes of lines are held, and a line is passed on as soon as no other one waits. What is packed as zstd
    /// or gzip is unpacked, and the output packed the same way.
    #[arg(long, hide_short_help = true, conflicts_with_all = ["output", "baseline", "statistics", "min_severity", "show"])]
    pub(crate) lines: bool,
    /// Sessions end with a NUL byte, not with a line break, so that they can have several lines.
    #[arg(short = '0', long, requires = "lines", hide_short_help = true)]
    pub(crate) null: bool,
    /// Write lines that are no session, or in which problems remain, to this file as they were, not to standard output.
    #[arg(long, requires = "lines", value_name = "FILE", hide_short_help = true)]
    pub(crate) quarantine: Option<PathBuf>,
    /// Write the findings to this file, one JSON object a line; packed if its name ends in .zst or .gz [default: of `scan`,
    /// standard output]
    #[arg(long, requires = "lines", value_name = "FILE", hide_short_help = true)]
    pub(crate) findings: Option<PathBuf>,
}
