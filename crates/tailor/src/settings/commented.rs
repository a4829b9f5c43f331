//! Generates an initial configuration file, with every setting explained and commented out.

use super::kind::SettingKind;
use super::rows::SETTINGS;
use super::setting::{Scope, Setting};
use super::values::Settings;
use crate::terminal::wrap;
use toml::Value;

const COLUMNS: usize = 98;
const HEAD: &str = "\
# Configuration of Tailor. What is commented out shows the default, or an example where there is
# none; remove the `#` before a key to change it. A limit of 0 is off. `tailor config check` checks
# the file, and `systemctl reload` (or SIGHUP) makes a daemon read it.
";

/// The whole file. Top-level keys come first, as TOML requires.
pub(crate) fn commented() -> String {
    let mut text = HEAD.to_string();
    let mut tables: Vec<&str> = Vec::new();
    for setting in rows() {
        let table = table_of(setting);
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    tables.sort_by_key(|table| !table.is_empty());
    for table in tables {
        if !table.is_empty() {
            text.extend(["\n[", table, "]\n"]);
        }
        rows().filter(|setting| table_of(setting) == table).for_each(|setting| text += &lines(setting));
    }
    text
}

fn rows() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|setting| matches!(setting.scope, Scope::All | Scope::Each))
}

/// The table that a key belongs to.
fn table_of(setting: &Setting) -> &'static str {
    match setting.kind {
        SettingKind::Tools | SettingKind::Agents => setting.key,
        _ => setting.key.rsplit_once('.').map_or("", |(table, _)| table),
    }
}

fn lines(setting: &Setting) -> String {
    let help = wrap(setting.help, COLUMNS, "# ");
    let key = setting.key.rsplit_once('.').map_or(setting.key, |(_, key)| key);
    let example = match setting.kind {
        SettingKind::Tools => "bash = { result_chars_max = 10000 }".to_string(),
        SettingKind::Agents => "claude-code = { result_chars_max = 60000 }".to_string(),
        kind => format!("{key} = {}", value(kind)),
    };
    format!("\n# {help}\n#{example}\n")
}

/// The default, or an example if the default depends on the user or there is none.
fn value(kind: SettingKind) -> Value {
    let text = |text: &str| Value::String(text.to_string());
    match kind {
        SettingKind::Path(_) => text("/path"),
        SettingKind::Paths(_) => Value::Array(vec![text("~/sessions")]),
        SettingKind::Listen(_) => text("127.0.0.1:9477"),
        SettingKind::Asked(_) => Value::Integer(200_000),
        SettingKind::OtherMode(_) => text("observe"),
        kind => kind.print(&mut Settings::default()).unwrap_or_else(|| Value::Array(Vec::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removing the `#` before each key gives a valid configuration with all keys.
    #[test]
    fn each_setting_is_there_to_be_switched_on() {
        let text = commented();
        let bare: Vec<&str> =
            text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        assert!(bare.iter().all(|line| line.starts_with('[')), "{bare:?}");
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        let switched_on = |line: &str| match line.strip_prefix('#') {
            Some(key) if !key.starts_with(' ') => key.to_string() + "\n",
            _ => line.to_string() + "\n",
        };
        let on: String = text.lines().map(switched_on).collect();
        let table: toml::Table = toml::from_str(&on).unwrap();
        for setting in rows() {
            let mut names = setting.key.split('.');
            let first = table.get(names.next().unwrap_or_default());
            let found = names.try_fold(first, |above, name| Some(above?.get(name)));
            assert!(found.flatten().is_some(), "{} is not in\n{on}", setting.key);
            assert!(text.contains(setting.help.split(' ').next().unwrap_or_default()), "{}", setting.key);
        }
    }
}
