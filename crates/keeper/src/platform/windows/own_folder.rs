//! Where our own files are: below `%LOCALAPPDATA%`, which does not roam.

use crate::platform::own::Own;
use std::path::PathBuf;

pub(crate) fn find(own: Own) -> Option<PathBuf> {
    let named = std::env::var_os("LOCALAPPDATA").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::home_dir().filter(|home| home.is_absolute());
    let local = named.or_else(|| home().map(|home| home.join("AppData").join("Local")))?;
    Some(local.join("tailor").join(match own {
        Own::State => "state",
        Own::Cache => "cache",
        Own::Config => "config",
    }))
}
