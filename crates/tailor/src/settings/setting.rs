//! A row of the table of settings.

use super::kind::{Scalar, SettingKind};
use super::values::Settings;
use crate::amount::grouped;

/// One setting.
pub(crate) struct Setting {
    /// Its path in a configuration file: the names of the tables around it, then its own.
    pub(crate) key: &'static str,
    pub(crate) scope: Scope,
    pub(crate) kind: SettingKind,
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
    /// In the `tailor.toml` of a repository.
    Repository,
    /// Nowhere by itself: its table is parsed as a whole.
    Flag,
}

/// The flag of a setting.
pub(crate) struct Flag {
    /// Without its dashes.
    pub(crate) name: &'static str,
    /// The name of its value.
    pub(crate) unit: &'static str,
    /// The heading in the help; the daemon's flags have none.
    pub(crate) heading: Option<&'static str>,
}

impl Setting {
    /// How its variable is parsed, if it has one. The variable is the key in capitals.
    pub(crate) fn scalar(&self) -> Option<Scalar> {
        let may_be = matches!(self.scope, Scope::All | Scope::Each) && !self.key.contains('.');
        if may_be { self.kind.scalar() } else { None }
    }

    /// The help of its flag: what it means, and its default if that is a limit that is on. A meaning may
    /// say more of it by itself.
    pub(crate) fn flag_help(&self) -> String {
        let default =
            (self.scope == Scope::Each).then(|| self.kind.print(&mut Settings::default())).flatten();
        match default {
            Some(toml::Value::Integer(default @ 1..)) if !self.help.ends_with(']') => {
                format!("{} [default: {}]", self.help, grouped(default.unsigned_abs()))
            }
            _ => self.help.to_string(),
        }
    }

    /// Whether the `tailor.toml` of a repository may have it: which rules, limits and files count, and nothing that acts.
    pub(crate) fn is_for_repositories(&self) -> bool {
        // A profile may allow a rule.
        let acts = ["allow", "thinking", "profile"].contains(&self.key);
        matches!(self.scope, Scope::Each | Scope::Repository) && !acts
    }

    /// Whether `config print` prints it if it is absent. What happens to stale results is up to the profile.
    pub(crate) fn is_printed(&self) -> bool {
        self.scope == Scope::All || (self.scope == Scope::Each && !self.key.contains('.'))
    }
}
