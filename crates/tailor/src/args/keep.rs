//! What `keep` may be asked.

use super::common::Json;
use super::file::ConfigFile;
use crate::config::Loaded;
use crate::value::moment;
use clap::ValueHint::{AnyPath, DirPath};
use clap::{Args as ClapArgs, Subcommand};
use keeper::Archive;
use std::path::PathBuf;

#[derive(ClapArgs)]
pub(crate) struct KeepCommand {
    #[command(subcommand)]
    pub(crate) what: KeepWhat,
}

#[derive(Subcommand)]
pub(crate) enum KeepWhat {
    /// Keep what sessions have become since the last time.
    ///
    /// Once; a daemon with --keep does so all the time.
    #[command(after_help = "Examples:\n  tailor keep now\n  tailor keep now ~/.claude/projects\n\
        Exit codes: 0 all is kept, 2 a session could not be read, or an error")]
    Now(KeepNow),
    /// List what is kept.
    ///
    /// Each session with its generations: what it was, until something else than an append changed it.
    #[command(
        after_help = "Examples:\n  tailor keep list\n  tailor keep list --gone\n  tailor keep list my-project\n\
        Exit codes: 0 whatever is kept, 2 an error"
    )]
    List(KeepList),
    /// Put a session back as it was, byte for byte.
    ///
    /// The last generation with something in it, to its place if nothing is there.
    #[command(
        after_help = "Examples:\n  tailor keep restore 0d0f7b2c\n  tailor keep restore 0d0f7b2c --at 2026-11-20T18:00\n  \
        tailor keep restore 0d0f7b2c --to copy.jsonl\n  tailor keep restore --all --at 2026-11-20 --to ~/as-it-was\n\
        Exit codes: 0 restored, 2 an error"
    )]
    Restore(KeepRestore),
    /// Read all that is kept, to see whether it is as it was written.
    #[command(after_help = "Examples:\n  tailor keep check\n\
        Exit codes: 0 it is, 1 some of it is damaged, 2 an error")]
    Check(KeepCheck),
}

/// Where the archive is.
#[derive(ClapArgs)]
pub(crate) struct ArchiveAt {
    /// The folder of what is kept [default: the one in the configuration, or `tailor/kept` in `$XDG_STATE_HOME` or
    /// `~/.local/state`]
    #[arg(long, value_name = "DIR", hide_short_help = true, value_hint = DirPath)]
    archive: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFile,
}

impl ArchiveAt {
    /// The configuration, and the archive.
    pub(crate) fn open(&self) -> Result<(Loaded, Archive), String> {
        let config = self.config.load()?;
        let root = self.archive.clone().map_or_else(|| config.archive(), Ok)?;
        Ok((config, Archive::new(root)))
    }
}

#[derive(ClapArgs)]
pub(crate) struct KeepNow {
    /// Files or folders; by default the folders of known agents.
    #[arg(value_name = "PATH", value_hint = AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) at: ArchiveAt,
}

#[derive(ClapArgs)]
pub(crate) struct KeepList {
    /// Only sessions with this text in their path: a project, an id, or the folder of an agent.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Only sessions that are not on the disk any more, or are empty.
    #[arg(long)]
    pub(crate) gone: bool,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) at: ArchiveAt,
}

#[derive(ClapArgs)]
pub(crate) struct KeepRestore {
    /// The session: its path, its id, or a part of these.
    #[arg(value_name = "SESSION", required_unless_present = "all")]
    pub(crate) session: Option<String>,
    /// As it was at this time, such as `2026-11-20` or `2026-11-20T18:00`, of the clock here.
    ///
    /// To ten minutes.
    #[arg(long = "at", value_name = "TIME", value_parser = moment)]
    pub(crate) at_time: Option<i64>,
    /// Where to write it, instead of to its place. Nothing is replaced.
    #[arg(long, value_name = "PATH", value_hint = AnyPath)]
    pub(crate) to: Option<PathBuf>,
    /// All sessions of that time, below the folder --to.
    #[arg(long, conflicts_with = "session", requires = "to", requires = "at_time")]
    pub(crate) all: bool,
    /// Leave out what is damaged.
    #[arg(long)]
    pub(crate) partly: bool,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) at: ArchiveAt,
}

#[derive(ClapArgs)]
pub(crate) struct KeepCheck {
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) at: ArchiveAt,
}
