//! Which configuration a command reads.

use crate::config::{Loaded, load};
use crate::say::{eprint_message, is_verbose};
use clap::Args as ClapArgs;
use std::path::PathBuf;

/// Which file the configuration is in.
#[derive(ClapArgs, Clone, Default)]
pub(crate) struct ConfigFile {
    /// Read this file instead of those in `/etc/tailor` and `$XDG_CONFIG_HOME/tailor`.
    #[arg(long, value_name = "FILE", help_heading = None::<&str>, hide_short_help = true)]
    pub(super) config: Option<PathBuf>,
}

impl ConfigFile {
    /// Reads the configuration, and warns about variables that look mistyped.
    pub(crate) fn load(&self) -> Result<Loaded, String> {
        let loaded = load(self.config.as_deref(), &[], None).map_err(|wrong| wrong.join("; "))?;
        let mistyped = loaded.strays.iter().filter(|stray| stray.meant.is_some());
        mistyped.for_each(|stray| eprint_message(&stray.to_string()));
        if is_verbose() {
            eprint_message(&format!("configuration: {}", loaded.files_in_words()));
        }
        Ok(loaded)
    }
}
