//! Many sessions on one standard input.

use clap::Args as ClapArgs;
use std::path::PathBuf;

/// A data set that flows by.
#[derive(ClapArgs)]
#[command(next_help_heading = "Many sessions on standard input")]
pub(crate) struct DataSet {
    /// Take each line of standard input for a session of its own, and work on some megabytes of lines at a time, without
    /// end. What is packed as zstd or gzip is unpacked, and the output packed the same way.
    #[arg(long, hide_short_help = true)]
    pub(crate) lines: bool,
    /// Write lines that are no session, or in which problems remain, to this file as they were, not to standard output.
    #[arg(long, requires = "lines", value_name = "FILE", hide_short_help = true)]
    pub(crate) quarantine: Option<PathBuf>,
    /// Write the findings to this file, one JSON object a line; packed if its name ends in .zst or .gz [default: of `scan`,
    /// standard output]
    #[arg(long, requires = "lines", value_name = "FILE", hide_short_help = true)]
    pub(crate) findings: Option<PathBuf>,
}
