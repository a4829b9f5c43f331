//! What the daemon is asked to do: plain data. Where it was written down is not known here.

use keeper::{Keep, Policies, Vault, Worth};
use serde::Deserialize;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// All of it.
#[derive(Clone, Debug)]
pub struct Config {
    /// What to look after.
    pub roots: Roots,
    /// Whether anything may be written.
    pub mode: Mode,
    /// What is asked for, of all transcripts and of those of single agents.
    pub policy: Policies,
    /// How long a file must have been quiet before its newest part is trimmed and mended.
    pub settle: Duration,
    /// How long before anything rewrites older history, which prompt caches hold.
    pub settle_stale: Duration,
    /// How long before no agent that cannot be seen is taken to remember the conversation.
    pub memory_settle: Duration,
    /// Whether files are replaced on a system on which that has not been tried.
    pub untried_systems: bool,
    /// Whether a session of which its agent says that it is too long is recovered, when it is mended at all.
    pub recover: bool,
    /// What makes it worth while to write a file anew.
    pub worth: Worth,
    /// How long between two walks through a root that find what events have missed.
    pub rescan: Duration,
    /// Where what is taken out is kept.
    pub vault: Vault,
    /// For how long.
    pub keep: Keep,
    /// Where the index of verdicts is, if files that have not changed since the last start are not read again.
    pub cache: Option<PathBuf>,
    /// Where metrics are served.
    pub listen: Option<Listen>,
    /// A file into which they are written now and then.
    pub metrics_textfile: Option<PathBuf>,
    /// Where `tailor status` asks.
    pub socket: PathBuf,
    /// Where the daemon says which roots are its own.
    pub state: PathBuf,
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

/// What to look after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Where known agents keep their sessions, also those that come later.
    Known,
    /// These folders and files.
    These(Vec<PathBuf>),
}

/// Whether anything may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nothing: findings and metrics only.
    #[default]
    Observe,
    /// Repairs.
    Enforce,
}

impl Mode {
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
