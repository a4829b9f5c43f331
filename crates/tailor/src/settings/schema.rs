//! The JSON Schema of a configuration file, for editors and checks.

use super::kind::SettingKind;
use super::rows::SETTINGS;
use super::setting::{Scope, Setting};
use clap::ValueEnum;
use serde_json::{Value, json};
use transcript::format::FORMATS;
use transcript::profile::PROFILES;

/// The schema of a whole file.
pub(crate) fn schema() -> Value {
    let mut file = table(|setting| matches!(setting.scope, Scope::All | Scope::Each | Scope::Repository));
    file["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    file["title"] = json!("Configuration of Tailor");
    file["$defs"] = json!({ "agent": table(|setting| matches!(setting.scope, Scope::Each | Scope::Agent)) });
    file
}

/// The schema of a table with the selected settings.
fn table(is_wanted: impl Fn(&Setting) -> bool) -> Value {
    let mut table = object(&json!({}));
    for setting in SETTINGS.iter().filter(|setting| is_wanted(setting)) {
        let place = setting.key.split('.').fold(&mut table, |above, name| {
            if above["properties"].is_null() {
                *above = object(&json!({}));
            }
            &mut above["properties"][name]
        });
        *place = kind_schema(setting.kind);
        place["description"] = json!(setting.help);
    }
    table
}

fn object(properties: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// The schema of a kind of value.
fn kind_schema(kind: SettingKind) -> Value {
    let number = json!({ "type": "integer", "minimum": 0 });
    let names = json!({ "type": "array", "items": { "type": "string" } });
    match kind {
        SettingKind::Number(_) | SettingKind::Asked(_) | SettingKind::Size(_) => {
            json!({ "type": ["integer", "string"], "minimum": 0 })
        }
        SettingKind::Time(_) | SettingKind::Millis(_) => {
            json!({ "type": ["number", "string"], "minimum": 0 })
        }
        SettingKind::Days(_) => json!({ "type": "number", "minimum": 0 }),
        SettingKind::Truth(_) => json!({ "type": "boolean" }),
        SettingKind::Switch(_) => json!({ "enum": ["on", "off"] }),
        SettingKind::SecretMode => json!({ "enum": ["off", "mask"] }),
        SettingKind::OwnSecrets => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        SettingKind::Path(_) | SettingKind::Listen(_) => json!({ "type": "string" }),
        SettingKind::Paths(_) | SettingKind::Codes(_) | SettingKind::Names(_) | SettingKind::Globs(_) => {
            names
        }
        SettingKind::GlobCodes(_) => json!({ "type": "object", "additionalProperties": names }),
        SettingKind::Mode(_) | SettingKind::OtherMode(_) => {
            let modes = [watch::WatchMode::Observe, watch::WatchMode::Enforce].map(watch::WatchMode::name);
            json!({ "enum": modes })
        }
        SettingKind::Images => json!({ "enum": choices::<crate::value::Oversized>() }),
        SettingKind::Thinking => json!({ "enum": choices::<crate::value::ThinkingChoice>() }),
        SettingKind::Profile => {
            json!({ "enum": PROFILES.iter().map(|profile| profile.name).collect::<Vec<_>>() })
        }
        SettingKind::Tools | SettingKind::ToolLimit => json!({
            "type": "object",
            "properties": { "keep": names, "only": names },
            "additionalProperties": {
                "type": "object",
                "properties": { "result_chars_max": number },
                "required": ["result_chars_max"],
                "additionalProperties": false,
            },
        }),
        SettingKind::Agents => {
            let agents = FORMATS.iter().map(|format| format.name.to_string());
            object(&agents.map(|name| (name, json!({ "$ref": "#/$defs/agent" }))).collect())
        }
    }
}

fn choices<T: ValueEnum>() -> Vec<String> {
    let values = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    values.map(|value| value.get_name().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the schema has at the path of a key.
    fn at<'s>(schema: &'s Value, key: &str) -> &'s Value {
        key.split('.').fold(schema, |table, name| &table["properties"][name])
    }

    #[test]
    fn each_key_is_where_it_has_a_meaning() {
        let schema = schema();
        for setting in SETTINGS.iter().filter(|setting| setting.scope != Scope::Flag) {
            let is_there = |table| at(table, setting.key).is_object();
            let wanted = match setting.scope {
                Scope::All | Scope::Repository => (true, false),
                Scope::Each => (true, true),
                Scope::Agent | Scope::Flag => (false, true),
            };
            let found = (is_there(&schema), is_there(&schema["$defs"]["agent"]));
            assert_eq!(found, wanted, "{}", setting.key);
        }
    }

    #[test]
    fn values_have_the_types_that_are_read() {
        let schema = schema();
        for (key, wanted) in [
            ("result_chars_max", json!(["integer", "string"])),
            ("settle", json!(["number", "string"])),
            ("originals.keep.bytes", json!(["integer", "string"])),
            ("recover", json!("boolean")),
            ("roots", json!("array")),
        ] {
            assert_eq!(at(&schema, key)["type"], wanted, "{key}");
        }
        assert_eq!(at(&schema, "thinking")["enum"], json!(["keep", "strip", "ignore"]));
        assert_eq!(at(&schema, "agents.pi")["$ref"], json!("#/$defs/agent"));
        assert_eq!(at(&schema, "stale")["additionalProperties"], json!(false));
    }
}
