//! Where our own files are, as the XDG Base Directory Specification says.

use crate::platform::own::Own;
use std::path::PathBuf;

pub(crate) fn find(own: Own) -> Option<PathBuf> {
    let (variable, below_home) = match own {
        Own::State => ("XDG_STATE_HOME", ".local/state"),
        Own::Cache => ("XDG_CACHE_HOME", ".cache"),
        Own::Config => ("XDG_CONFIG_HOME", ".config"),
    };
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::home_dir().filter(|home| home.is_absolute());
    Some(named.or_else(|| home().map(|home| home.join(below_home)))?.join("tailor"))
}
