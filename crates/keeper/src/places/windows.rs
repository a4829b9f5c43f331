//! Context windows that agents' own configuration states for models. A session mostly names the model alone.

use crate::platform::metadata;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use transcript::format::Root;
use transcript::policy::ModelWindow;

/// Longer files are not read.
const BYTES_MAX: u64 = 1 << 20;

/// Where agents have their configuration: the format of the sessions, the folder, and the file in it.
const FILES: &[(&str, Root)] = &[
    // `provider.NAME.models.ID.limit.context` (1.18.33).
    ("opencode", Root { env: Some("XDG_CONFIG_HOME"), home: ".config", below: "opencode/opencode.json" }),
    // `models.providers.NAME.models[]`, each with `id` and `contextWindow` (2026.9.6).
    ("pi", Root { env: Some("OPENCLAW_STATE_DIR"), home: ".openclaw", below: "openclaw.json" }),
    // `providers.NAME.models[]`, the same (pi 1.6.0).
    ("pi", Root { env: Some("PI_CODING_AGENT_DIR"), home: ".pi/agent", below: "models.json" }),
];

/// What the configuration of the user's agents says. A file that cannot be read or has comments says nothing.
pub fn stated_windows() -> Vec<ModelWindow> {
    let home = std::env::home_dir();
    let mut found = Vec::new();
    for (format, root) in FILES {
        let text = crate::places::roots::base(root, home.as_deref())
            .and_then(|folder| read(&folder.join(root.below)));
        if let Some(config) = text.and_then(|text| serde_json::from_slice(&text).ok()) {
            collect(&config, &mut |model, tokens| {
                found.push(ModelWindow { format, model: model.to_string(), tokens });
            });
        }
    }
    found
}

fn read(path: &Path) -> Option<Vec<u8>> {
    metadata::at(path).ok().filter(|there| there.is_file() && there.len() <= BYTES_MAX)?;
    let mut text = Vec::new();
    File::open(path).ok()?.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Finds what is under `models`, wherever that is: objects by the model's id, or a list of objects with ids.
fn collect(config: &Value, each: &mut dyn FnMut(&str, u64)) {
    let window = |model: &Value| {
        let stated = model.pointer("/limit/context").or_else(|| model.get("contextWindow"));
        stated.and_then(Value::as_u64).filter(|tokens| *tokens > 0)
    };
    match config.get("models") {
        Some(Value::Object(models)) => {
            for (id, model) in models {
                if let Some(tokens) = window(model) {
                    each(id, tokens);
                }
            }
        }
        Some(Value::Array(models)) => {
            for model in models {
                if let (Some(id), Some(tokens)) = (model["id"].as_str(), window(model)) {
                    each(id, tokens);
                }
            }
        }
        _ => {}
    }
    match config {
        Value::Object(inside) => inside.values().for_each(|value| collect(value, each)),
        Value::Array(inside) => inside.iter().for_each(|value| collect(value, each)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{collect, read};
    use serde_json::json;

    #[test]
    fn each_agent_states_windows_in_its_own_way() {
        let opencode = json!({"provider": {"a": {"models": {"m-1": {"limit": {"context": 64_000, "output": 8_192}}, "m-2": {}}}}});
        let openclaw = json!({"models": {"providers": {"a": {"models": [{"id": "m-3", "contextWindow": 200_000}, {"id": "m-4"}]}}}});
        let mut found = Vec::new();
        for config in [opencode, openclaw, json!({"models": [3], "x": null})] {
            collect(&config, &mut |model, tokens| found.push((model.to_string(), tokens)));
        }
        assert_eq!(found, [("m-1".to_string(), 64_000), ("m-3".to_string(), 200_000)]);
    }

    #[test]
    fn what_is_no_small_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()), None);
        assert_eq!(read(&dir.path().join("none")), None);
        let long = dir.path().join("long");
        std::fs::File::create(&long).unwrap().set_len(2 << 20).unwrap();
        assert_eq!(read(&long), None);
        std::fs::write(&long, "{}").unwrap();
        assert_eq!(read(&long).as_deref(), Some(&b"{}"[..]));
    }
}
