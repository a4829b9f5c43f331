//! Parses a configuration file: the keys of the [settings](SETTINGS).

use crate::settings::{SETTINGS, Scope, Setting, SettingEdit, SettingKind, Settings};
use crate::value::nearest;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use transcript::format::FORMATS;

/// The values in a file. An agent's table is parsed into another one, [`AgentSettings`].
#[derive(Default)]
pub(super) struct FileSettings {
    /// By row of the table of settings, because they take effect in its order.
    edits: BTreeMap<usize, SettingEdit>,
    pub(super) agents: BTreeMap<AgentName, AgentSettings>,
}

impl FileSettings {
    /// `base` with the values of this file applied.
    pub(super) fn over(&self, base: &Settings) -> Settings {
        let mut settings = base.clone();
        self.edits.values().for_each(|edit| edit.apply(&mut settings));
        settings
    }

    /// The first key, for all agents or for one, that is such a setting; of a table its name.
    pub(super) fn first_key(&self, is_one: &dyn Fn(&Setting) -> bool) -> Option<&'static str> {
        self.first_key_for_all(is_one)
            .or_else(|| self.agents.values().find_map(|own| own.0.first_key(is_one)))
    }

    pub(super) fn first_key_for_all(&self, is_one: &dyn Fn(&Setting) -> bool) -> Option<&'static str> {
        let mut keys = self.edits.keys().map(|row| &SETTINGS[*row]).filter(|setting| is_one(setting));
        keys.next().map(|setting| setting.key.split('.').next().unwrap_or(setting.key))
    }
}

impl<'de> Deserialize<'de> for FileSettings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut file = Self::default();
        Keys { file: &mut file, above: String::new() }.deserialize(from)?;
        Ok(file)
    }
}

/// Reads the keys of a table.
struct Keys<'f> {
    file: &'f mut FileSettings,
    /// The path of the table, with a dot at the end.
    above: String,
}

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<(), A::Error> {
        while let Some(key) = table.next_key_seed(ConfigKey { above: &self.above })? {
            match key {
                KnownKey::Table(above) => table.next_value_seed(Keys { file: self.file, above })?,
                KnownKey::Setting(row) if matches!(SETTINGS[row].kind, SettingKind::Agents) => {
                    self.file.agents = table.next_value()?;
                }
                KnownKey::Setting(row) => {
                    let edit = table.next_value_seed(SETTINGS[row].kind)?;
                    self.file.edits.insert(row, edit);
                }
            }
        }
        Ok(())
    }
}

/// What a key is.
enum KnownKey {
    /// A row of the table of settings.
    Setting(usize),
    /// A table, by its path.
    Table(String),
}

/// Parses a key. Unknown keys are refused here, where their line is known.
struct ConfigKey<'k> {
    above: &'k str,
}

impl<'de> DeserializeSeed<'de> for ConfigKey<'_> {
    type Value = KnownKey;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<KnownKey, D::Error> {
        let key = String::deserialize(from)?;
        let path = format!("{}{key}", self.above);
        let settings = SETTINGS.iter().filter(|setting| setting.scope != Scope::Flag);
        let below = settings.clone().filter_map(|setting| setting.key.strip_prefix(self.above));
        let mut names: Vec<&str> = below.filter_map(|key| key.split('.').next()).collect();
        names.dedup();
        if !names.contains(&key.as_str()) {
            let names = names.join("`, `");
            return Err(D::Error::custom(format!("unknown field `{key}`, expected one of `{names}`")));
        }
        let row = SETTINGS.iter().position(|setting| setting.key == path);
        Ok(row.map_or(KnownKey::Table(path + "."), KnownKey::Setting))
    }
}

/// The name of an agent's format.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct AgentName(pub(super) String);

impl TryFrom<String> for AgentName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let names = || FORMATS.iter().map(|format| format.name);
        if names().any(|known| known == name) {
            return Ok(Self(name));
        }
        let hint = nearest(&name, names()).map_or("", |(name, _)| name);
        Err(format!("there is no agent `{name}` (did you mean `{hint}`?)"))
    }
}

/// The settings of one agent.
#[derive(Deserialize)]
#[serde(try_from = "FileSettings")]
pub(super) struct AgentSettings(pub(super) FileSettings);

impl TryFrom<FileSettings> for AgentSettings {
    type Error = String;

    fn try_from(own: FileSettings) -> Result<Self, String> {
        let nested = (!own.agents.is_empty()).then_some("agents");
        let is_for_all = |setting: &Setting| matches!(setting.scope, Scope::All | Scope::Repository);
        match own.first_key_for_all(&is_for_all).or(nested) {
            None => Ok(Self(own)),
            Some(key) => Err(format!(
                "`{key}` in the table of an agent applies to all agents; move it before the first table"
            )),
        }
    }
}
