//! The daemon's configuration, as plain data. It does not say where the values came from.

use keeper::{KeepLimits, Policies, RunsToKeep, Vault, Worth};
use serde::Deserialize;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The roots to watch.
    pub roots: Roots,
    /// Whether files may be written.
    pub mode: WatchMode,
    /// Whether sessions in databases may be written.
    pub stores: WatchMode,
    /// The policy for all transcripts, and for those of single agents.
    pub policy: Policies,
    /// How long a file must have been quiet before its newest part is changed.
    pub settle: Duration,
    /// How long a file must have been quiet before older history, which prompt caches hold, is rewritten.
    pub settle_stale: Duration,
    /// How long a file must have been quiet before no invisible agent is assumed to remember the conversation.
    pub memory_settle: Duration,
    /// Whether to recover a session if its agent says that it is too long. Needs `WatchMode::Enforce`.
    pub recover: bool,
    /// How much a fix must save to be worth writing the file again.
    pub worth: Worth,
    /// Time between two walks through a root, which find changes that events missed.
    pub rescan: Duration,
    /// Where originals are kept.
    pub vault: Vault,
    /// How long and how much of them.
    pub keep: RunsToKeep,
    /// Where is kept what sessions become, and how much of it; `None` if it is not.
    pub keeping: Option<Keeping>,
    /// The index of verdicts, if files that have not changed since the last start are not read again.
    pub cache: Option<PathBuf>,
    /// Where metrics are served.
    pub listen: Option<Listen>,
    /// A file to which metrics are written regularly.
    pub metrics_textfile: Option<PathBuf>,
    /// The socket for `tailor status`.
    pub socket: PathBuf,
    /// The folder in which the daemon records its roots.
    pub state: PathBuf,
}

/// Where is kept what sessions become, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeping {
    /// The archive.
    pub folder: PathBuf,
    /// Which generations stay.
    pub limits: KeepLimits,
}

/// The commit and the target of the build.
#[derive(Clone, Debug, Default)]
pub struct Build {
    /// The system, such as `x86_64-linux-musl`.
    pub target: String,
    /// The commit; empty if the build was not told.
    pub commit: String,
}

/// Where metrics are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// On this machine only.
    Tcp(SocketAddr),
    /// On a socket in the file system.
    Unix(PathBuf),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        let wrong = || {
            format!("`{text}` is neither an address such as 127.0.0.1:9477 nor a path such as unix:/run/x")
        };
        let address: SocketAddr = text.parse().map_err(|_| wrong())?;
        if !address.ip().is_loopback() {
            return Err(format!("`{text}` can be reached from other machines; only loopback is served"));
        }
        Ok(Self::Tcp(address))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// What to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// The folders of known agents, including those that appear later.
    Known,
    /// These folders and files.
    These(Vec<PathBuf>),
}

/// Whether anything may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WatchMode {
    /// Only findings and metrics; no file changes.
    #[default]
    Observe,
    /// Repairs.
    Enforce,
}

impl WatchMode {
    /// As written in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Enforce => "enforce",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_served() {
        assert!("127.0.0.1:9477".parse::<Listen>().is_ok() && "[::1]:1".parse::<Listen>().is_ok());
        assert_eq!("unix:/run/x".parse(), Ok(Listen::Unix(PathBuf::from("/run/x"))));
        for wrong in ["0.0.0.0:9477", "192.168.0.1:80", "9477", "", "localhost"] {
            assert!(wrong.parse::<Listen>().is_err(), "{wrong}");
        }
    }
}
