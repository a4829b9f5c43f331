//! Which configuration a command reads.

use crate::config::repository::{self, Owner};
use crate::config::{Loaded, load, places};
use crate::say::{eprint_message, is_verbose};
use clap::Args as ClapArgs;
use std::path::PathBuf;

/// Which file the configuration is in.
#[derive(ClapArgs, Clone, Default)]
pub(crate) struct ConfigFile {
    /// Read this file instead of those in `/etc/tailor` and `$XDG_CONFIG_HOME/tailor`, and a repository's `tailor.toml`.
    #[arg(long, value_name = "FILE", help_heading = None::<&str>, hide_short_help = true)]
    config: Option<PathBuf>,
    /// Read no configuration file.
    #[arg(long, help_heading = None::<&str>, hide_short_help = true, conflicts_with = "config")]
    no_config: bool,
}

impl ConfigFile {
    /// The files to read.
    pub(super) fn places(&self) -> Vec<(PathBuf, Owner)> {
        if self.no_config { Vec::new() } else { places(self.config.as_deref()) }
    }

    /// Reads the configuration, and warns about variables that look mistyped.
    pub(crate) fn load(&self) -> Result<Loaded, String> {
        Self::read(self.places())
    }

    /// Reads it together with the `tailor.toml` of the repository that holds these paths.
    pub(super) fn load_below(&self, paths: &[PathBuf]) -> Result<Loaded, String> {
        let mut places = self.places();
        let is_named = self.no_config || places.iter().any(|(_, owner)| *owner == Owner::Named);
        let own = if is_named { None } else { repository::find(paths) };
        places.extend(own.map(|path| (path, Owner::Repository)));
        Self::read(places)
    }

    fn read(places: Vec<(PathBuf, Owner)>) -> Result<Loaded, String> {
        let loaded = load(places, &[], None).map_err(|wrong| wrong.join("; "))?;
        let mistyped = loaded.strays.iter().filter(|stray| stray.meant.is_some());
        mistyped.for_each(|stray| eprint_message(&stray.to_string()));
        if is_verbose() {
            eprint_message(&format!("configuration: {}", loaded.files_in_words()));
        }
        Ok(loaded)
    }
}
