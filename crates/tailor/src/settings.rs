//! The settings, a row each: flags, keys of the configuration, `TAILOR_*` variables and what `config print` shows are
//! made from these rows. Files and the order in which sources override each other are not known here.

mod kind;
mod rows;
mod schema;
mod written;

pub(crate) use kind::{Edit, Kind, Scalar};
pub(crate) use rows::SETTINGS;
pub(crate) use schema::schema;

use crate::amount::grouped;
use crate::config::default_socket;
use keeper::{Keep, Vault, Worth};
use std::path::PathBuf;
use std::time::Duration;
use transcript::Policy;

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
            memory_settle: Duration::from_secs(24 * 60 * 60),
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

    /// The help of its flag: what it means, and its default if that is a limit that is on. A meaning that ends with a
    /// remark in parentheses says more of it by itself.
    pub(crate) fn flag_help(&self) -> String {
        let default =
            (self.scope == Scope::Each).then(|| self.kind.print(&mut Settings::default())).flatten();
        match default {
            Some(toml::Value::Integer(default @ 1..)) if !self.help.ends_with(')') => {
                format!("{} ({})", self.help, grouped(default.unsigned_abs()))
            }
            _ => self.help.to_string(),
        }
    }

    /// Whether `config print` fills it in. What becomes of old results is left to the profile.
    pub(crate) fn is_printed(&self) -> bool {
        self.scope == Scope::All || (self.scope == Scope::Each && !self.key.contains('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");

    /// What the reference page says of a setting.
    fn row(setting: &Setting, defaults: &mut Settings) -> String {
        let flag = setting.flag.as_ref().map(|flag| format!("`--{} {}`", flag.name, flag.unit));
        let variable = setting.scalar().map(|_| format!("`TAILOR_{}`", setting.key.to_ascii_uppercase()));
        // Paths depend on who asks.
        let is_path = matches!(setting.kind, Kind::Path(_));
        let default = setting.kind.print(defaults).filter(|_| !is_path).map(|value| format!("`{value}`"));
        let [flag, variable, default] = [flag, variable, default].map(Option::unwrap_or_default);
        let row = [&format!("`{}`", setting.key), &flag, &variable, &default, setting.help];
        format!("| {} |\n", row.map(|cell| cell.replace('|', "\\|")).join(" | "))
    }

    #[test]
    fn the_reference_page_has_each_setting() {
        let mut defaults = Settings::default();
        let rows: String = SETTINGS.iter().map(|setting| row(setting, &mut defaults)).collect();
        let table = format!("| key | option | variable | default | meaning |\n|---|---|---|---|---|\n{rows}");
        let page = std::fs::read_to_string(PAGE).unwrap();
        let (above, there) = page.split_at(page.find("| key | ").unwrap());
        if std::env::var_os("UPDATE").is_some() {
            return std::fs::write(PAGE, above.to_string() + &table).unwrap();
        }
        assert!(there == table, "docs/settings.md should end with this table (UPDATE=1 writes it):\n{table}");
    }

    #[test]
    fn keys_and_flags_are_given_once() {
        for (row, setting) in SETTINGS.iter().enumerate() {
            let name = |setting: &Setting| setting.flag.as_ref().map(|flag| flag.name);
            for other in &SETTINGS[..row] {
                assert_ne!(setting.key, other.key);
                assert!(name(setting).is_none() || name(setting) != name(other), "{}", setting.key);
            }
        }
    }

    #[test]
    fn each_flag_of_a_limit_can_be_read() {
        for setting in SETTINGS {
            let is_limit = setting.flag.as_ref().is_some_and(|flag| flag.heading.is_some());
            assert!(!is_limit || setting.kind.parser().is_some(), "{}", setting.key);
        }
    }
}
