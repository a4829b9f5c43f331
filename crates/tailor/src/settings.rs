//! The settings, a row each: flags, keys of the configuration, `TAILOR_*` variables and what `config print` shows are
//! made from these rows. Files and the order in which sources override each other are not known here.

mod kind;
mod rows;
mod written;

pub(crate) use kind::{Edit, Kind, Scalar};
pub(crate) use rows::SETTINGS;

use crate::config::default_socket;
use keeper::{Keep, Vault, Worth};
use std::path::PathBuf;
use std::time::Duration;
use transcript::Policy;

pub(crate) const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Everything that can be set, with its defaults.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    pub(crate) mode: watch::Mode,
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
    pub(crate) keep: Keep,
    pub(crate) reloads: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            mode: watch::Mode::default(),
            roots: None,
            vault: Vault::default_root(),
            listen: None,
            metrics_textfile: None,
            socket: Some(default_socket()),
            settle: Duration::from_secs(5),
            settle_stale: Duration::from_secs(60 * 60),
            memory_settle: Duration::from_secs(DAY_SECONDS),
            rescan: Duration::from_secs(5 * 60),
            recover: false,
            worth: Worth::default(),
            keep: Keep::default(),
            reloads: false,
        }
    }
}

/// One setting.
pub(crate) struct Setting {
    /// Where it is in a configuration file: its name, after those of the tables around it.
    pub(crate) key: &'static str,
    pub(crate) scope: Scope,
    pub(crate) kind: Kind,
    pub(crate) flag: Option<Flag>,
    /// What it means.
    pub(crate) help: &'static str,
}

/// Where a key may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Once, for all agents.
    All,
    /// For all agents, and in the table of one.
    Each,
    /// Only in the table of one agent.
    Agent,
    /// Nowhere by itself: its table is read as a whole.
    Flag,
}

/// The flag of a setting.
pub(crate) struct Flag {
    /// Without its dashes.
    pub(crate) name: &'static str,
    /// What its value is called.
    pub(crate) unit: &'static str,
    /// The heading in the help; only flags of the daemon have none.
    pub(crate) heading: Option<&'static str>,
}

impl Setting {
    /// How its variable is read, if it has one: the key in capitals.
    pub(crate) fn scalar(&self) -> Option<Scalar> {
        let may_be = matches!(self.scope, Scope::All | Scope::Each) && !self.key.contains('.');
        if may_be { self.kind.scalar() } else { None }
    }

    /// Whether `config print` fills it in. What becomes of old results is left to the profile.
    pub(crate) fn is_printed(&self) -> bool {
        self.scope == Scope::All || (self.scope == Scope::Each && !self.key.contains('.'))
    }
}
