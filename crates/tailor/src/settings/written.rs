//! The syntax of values in a configuration file.

use crate::value::{code, count, days, duration, glob, long_duration, profile, size};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use toml::Value;
use transcript::profile::Profile;

/// Deserialises a string and converts it.
pub(super) fn text<'de, D: Deserializer<'de>, T, E: fmt::Display>(
    from: D,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    read(&String::deserialize(from)?).map_err(D::Error::custom)
}

/// Deserialises a value of any type and converts it.
pub(super) fn value<'de, D: Deserializer<'de>, T>(
    from: D,
    read: impl FnOnce(&Value) -> Result<T, String>,
) -> Result<T, D::Error> {
    read(&Value::deserialize(from)?).map_err(D::Error::custom)
}

/// A profile, by name.
pub(super) fn profile_name(text: &str) -> Result<&'static Profile, String> {
    profile(text).map_err(|error| format!("`{text}`: {error}"))
}

/// Whether something is on.
pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{text}` is neither `on` nor `off`")),
    }
}

/// Whether secrets are masked.
pub(super) fn secret_mode(text: &str) -> Result<bool, String> {
    match text {
        "mask" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{text}` is neither `mask` nor `off`")),
    }
}

/// A beginning that is shorter is in too many words.
const BEGINS_BYTES_MIN: usize = 3;

/// What a person's own secrets begin with: printable, and nothing that JSON escapes. Names stand in masks.
pub(super) fn own_secrets(patterns: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"\\".contains(&byte);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    for (name, begins) in &patterns {
        if begins.len() < BEGINS_BYTES_MIN || !begins.bytes().all(is_plain) {
            return Err(format!(
                "`{begins}`: at least three letters, digits or signs, without quotes and backslashes"
            ));
        }
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(format!("`{name}`: a name has letters, digits, hyphens, dots and underscores"));
        }
    }
    Ok(patterns)
}

/// `keep` and `only` are lists of names; every other key is the name of a tool.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, ToolValue>")]
pub(super) struct Tools {
    pub(super) keep: Option<Vec<String>>,
    pub(super) only: Option<Vec<String>>,
    pub(super) limits: Vec<(String, u64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    result_chars_max: u64,
}

/// The value of a key in [`Tools`]. Deserialised by hand, because the derived code loses the line of an error.
enum ToolValue {
    Names(Vec<String>),
    Tool(Tool),
}

impl<'de> Deserialize<'de> for ToolValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TomlShape;
        impl<'de> Visitor<'de> for TomlShape {
            type Value = ToolValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of names, or a table with `result_chars_max`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<ToolValue, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(names)).map(ToolValue::Names)
            }

            fn visit_map<A: MapAccess<'de>>(self, tool: A) -> Result<ToolValue, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(tool)).map(ToolValue::Tool)
            }
        }
        deserializer.deserialize_any(TomlShape)
    }
}

impl TryFrom<BTreeMap<String, ToolValue>> for Tools {
    type Error = String;

    fn try_from(table: BTreeMap<String, ToolValue>) -> Result<Self, String> {
        let mut tools = Self::default();
        for (name, value) in table {
            match (name.as_str(), value) {
                ("keep", ToolValue::Names(names)) => tools.keep = Some(names),
                ("only", ToolValue::Names(names)) => tools.only = Some(names),
                (_, ToolValue::Tool(tool)) => tools.limits.push((name, tool.result_chars_max)),
                (_, ToolValue::Names(_)) => {
                    return Err(format!(
                        "tools.{name}: a list, where a table with `result_chars_max` is wanted"
                    ));
                }
            }
        }
        Ok(tools)
    }
}

/// The code of a rule, given as code or name.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Code(pub(super) String);

impl TryFrom<String> for Code {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        code(&text).map(Self).map_err(|error| format!("`{text}`: {error}"))
    }
}

/// A glob in the notation of `.gitignore`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Glob(pub(super) String);

impl TryFrom<String> for Glob {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        glob(&text).map(Self).map_err(|error| format!("`{text}`: {error}"))
    }
}

/// A number of seconds, or a number with a unit of time.
pub(super) fn span(value: &Value) -> Result<Duration, String> {
    let read = match value {
        Value::Integer(number) => duration(&number.to_string()),
        Value::Float(number) => duration(&number.to_string()),
        Value::String(text) => duration(text),
        _ => Err(String::new()),
    };
    read.map_err(|_| format!("{value} is not a length of time, such as 5, \"90s\" or \"1h\""))
}

/// A number of days, or a number with a unit of time.
pub(super) fn age(value: &Value) -> Result<Duration, String> {
    match value {
        Value::Integer(number) => days(f64::from(i32::try_from(*number).unwrap_or(i32::MAX))),
        Value::Float(number) => days(*number),
        Value::String(text) => long_duration(text),
        _ => Err("neither a number of days nor a length of time, such as \"4w\"".to_string()),
    }
}

/// A number of bytes, or a number with a unit.
pub(super) fn bytes(value: &Value) -> Result<u64, String> {
    number(value, size).ok_or_else(|| format!("{value} is not a size, such as 500000 or \"5GiB\""))
}

/// A whole number, or one with a unit.
pub(super) fn whole(value: &Value) -> Result<u64, String> {
    number(value, count).ok_or_else(|| format!("{value} is not a whole number, such as 200000 or \"200k\""))
}

fn number(value: &Value, read: impl FnOnce(&str) -> Result<u64, String>) -> Option<u64> {
    match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::String(text) => read(text).ok(),
        _ => None,
    }
}
