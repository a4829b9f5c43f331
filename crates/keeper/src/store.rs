//! Where agents keep sessions in something else than lines of JSON: recognised by name, so that it can be said what
//! Tailor can do there. None of them is ever opened.

use crate::roots::expand;
use std::path::{Path, PathBuf};
use transcript::format::Root;

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// Whose it is.
    pub agent: &'static str,
    /// What Tailor can do there.
    pub advice: &'static str,
    /// What the file is called.
    file: &'static str,
    /// A folder above it; empty where the name alone tells.
    within: &'static str,
    /// Where it lies, if that is one place.
    root: Option<Root>,
}

const EXPORTS: &str = "it is a database; Tailor mends only what is exported from it as JSONL";
const WHOLE: &str =
    "it is one JSON document that the program writes anew from memory; Tailor leaves it alone";

const fn at(home: &'static str, below: &'static str) -> Root {
    Root { env: None, home, below }
}

const STORES: &[Store] = &[
    Store {
        agent: "OpenClaw 2026.8 or later",
        advice: "sessions are in a database; Tailor mends the JSONL archives that the move left behind, and what an \
                 older OpenClaw writes",
        file: "openclaw-agent.sqlite",
        within: "",
        root: Some(Root { env: Some("OPENCLAW_STATE_DIR"), home: ".openclaw", below: "agents/*/agent" }),
    },
    Store {
        agent: "OpenCode",
        advice: EXPORTS,
        file: "opencode.db",
        within: "",
        root: Some(at(".local/share", "opencode")),
    },
    Store {
        agent: "Goose",
        advice: EXPORTS,
        file: "sessions.db",
        within: "goose",
        root: Some(at(".local/share/goose", "sessions")),
    },
    Store { agent: "Crush", advice: EXPORTS, file: "crush.db", within: "", root: None },
    Store {
        agent: "Hermes",
        advice: "sessions are in a database; Tailor mends the JSONL archives below sessions/",
        file: "state.db",
        within: ".hermes",
        root: Some(Root { env: Some("HERMES_HOME"), home: ".hermes", below: "." }),
    },
    Store {
        agent: "Cursor",
        advice: EXPORTS,
        file: "state.vscdb",
        within: "Cursor",
        root: Some(at(".config/Cursor", "User/globalStorage")),
    },
    Store {
        agent: "Cursor",
        advice: EXPORTS,
        file: "store.db",
        within: ".cursor",
        root: Some(at(".cursor", "chats/*/*")),
    },
    Store {
        agent: "Zed",
        advice: EXPORTS,
        file: "threads.db",
        within: "zed",
        root: Some(at(".local/share/zed", "threads")),
    },
    Store {
        agent: "Cline or Roo Code",
        advice: WHOLE,
        file: "api_conversation_history.json",
        within: "",
        root: None,
    },
];

impl Store {
    /// The store that a file is, told by its name alone.
    pub(crate) fn of(path: &Path) -> Option<&'static Self> {
        let name = path.file_name()?;
        let lies_in = |folder: &str| path.iter().any(|part| part == folder);
        STORES.iter().find(|store| name == store.file && (store.within.is_empty() || lies_in(store.within)))
    }
}

/// The stores of known agents that exist here.
pub fn known_stores() -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let folders = |store: &Store| store.root.map(|root| expand(&root, home.as_deref())).unwrap_or_default();
    let all =
        STORES.iter().flat_map(|store| folders(store).into_iter().map(|folder| folder.join(store.file)));
    all.filter(|path| path.is_file() && Store::of(path).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_and_folders_where_names_do_not() {
        let of = |path: &str| Store::of(Path::new(path)).map(|store| store.agent);
        assert_eq!(
            of("/h/.openclaw/agents/main/agent/openclaw-agent.sqlite"),
            Some("OpenClaw 2026.8 or later")
        );
        assert_eq!(of("/h/.hermes/state.db"), Some("Hermes"));
        assert_eq!(of("/h/.other/state.db"), None);
        assert_eq!(of("/h/p/.crush/crush.db"), Some("Crush"));
        assert_eq!(of("/h/s.jsonl"), None);
    }
}
