//! All settings with their defaults. How they are written is defined elsewhere.

use keeper::{Archive, KeepLimits, RunsToKeep, Vault, Worth};
use std::path::PathBuf;
use std::time::Duration;
use transcript::Policy;

/// All settings with their defaults.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    pub(crate) mode: watch::WatchMode,
    pub(crate) stores: Option<watch::WatchMode>,
    pub(crate) roots: Option<Vec<PathBuf>>,
    pub(crate) vault: Option<PathBuf>,
    pub(crate) listen: Option<watch::Listen>,
    pub(crate) metrics_textfile: Option<PathBuf>,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) settle: Duration,
    pub(crate) settle_stale: Duration,
    pub(crate) memory_settle: Duration,
    pub(crate) rescan: Duration,
    pub(crate) recover: bool,
    pub(crate) worth: Worth,
    pub(crate) keep: RunsToKeep,
    /// Whether the daemon keeps what sessions become.
    pub(crate) keeping: bool,
    pub(crate) archive: Option<PathBuf>,
    pub(crate) keep_limits: KeepLimits,
    pub(crate) cache: bool,
    pub(crate) reloads: bool,
    pub(crate) exclude: Vec<String>,
    /// Globs, and the codes of the rules that are skipped in files that match.
    pub(crate) file_ignores: Vec<(String, Vec<String>)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            mode: watch::WatchMode::default(),
            stores: None,
            roots: None,
            vault: Vault::default_root(),
            listen: None,
            metrics_textfile: None,
            socket: Some(default_socket()),
            settle: Duration::from_secs(5),
            settle_stale: Duration::from_secs(60 * 60),
            memory_settle: Duration::from_secs(24 * 60 * 60),
            rescan: Duration::from_secs(5 * 60),
            recover: false,
            worth: Worth::default(),
            keep: RunsToKeep::default(),
            keeping: false,
            archive: Archive::default_root(),
            keep_limits: KeepLimits::default(),
            cache: true,
            reloads: false,
            exclude: Vec::new(),
            file_ignores: Vec::new(),
        }
    }
}

impl Settings {
    /// Where the daemon listens for `tailor status`.
    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(default_socket)
    }
}

/// In the folder that the service manager created for the daemon, or in the user's own.
fn default_socket() -> PathBuf {
    let own = |name: &str, below: &str| {
        let folder = std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        folder.map(|folder| folder.join(below))
    };
    own("RUNTIME_DIRECTORY", "status.sock")
        .or_else(|| own("XDG_RUNTIME_DIR", "tailor/status.sock"))
        .unwrap_or_else(|| PathBuf::from("/run/tailor/status.sock"))
}
