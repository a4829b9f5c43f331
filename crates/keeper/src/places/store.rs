//! Where agents keep sessions in something else than lines of JSON: recognised by name. `stores` opens those that it can
//! read; for the others there is advice.

use crate::places::roots::{expand, known_roots, roots_above};
use crate::platform::identity::Stamp;
use crate::platform::metadata;
use std::io;
use std::path::{Path, PathBuf};
use transcript::format::Root;

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// The agent that owns it.
    pub agent: &'static str,
    /// What Tailor can do there, if it cannot read it.
    pub advice: &'static str,
    /// Its file name.
    file: &'static str,
    /// A folder above it; empty if the file name is sufficient.
    within: &'static str,
    /// Its place, if there is only one.
    root: Option<Root>,
}

/// What stands between the file of a store and the id of a session in it.
const MARK: char = '#';
/// How the log beside a database is called.
const LOG: &str = "-wal";
/// How files end that may be databases, whatever they are called.
const ENDINGS: &[&str] = &["sqlite", "sqlite3", "db"];

/// Why nothing is repaired in a store.
pub(crate) const IN_DATABASE: &str =
    "the session is in a database (tailor export prints a copy, which can be repaired)";
/// What to say of a database that `stores` reads, where it did not.
const READ: &str = if cfg!(feature = "stores") {
    "its tables are not those that this version of Tailor reads, so it leaves the database alone"
} else {
    "they are in a database, and this tailor was built without the feature `stores`; to build it complete: cargo install \
     --profile dist --features stores --path crates/tailor"
};
const EXPORTS: &str =
    "it is a database that Tailor does not read; it mends what is exported from it as JSONL";
const WHOLE: &str =
    "it is one JSON document that the program writes anew from memory; Tailor leaves it alone";

const fn at(home: &'static str, below: &'static str) -> Root {
    Root { env: None, home, below }
}

/// A folder in which programs keep their data, wherever that is.
const fn data(below: &'static str) -> Root {
    Root { env: Some("XDG_DATA_HOME"), home: ".local/share", below }
}

const fn database(
    agent: &'static str,
    file: &'static str,
    within: &'static str,
    root: Option<Root>,
) -> Store {
    Store { agent, advice: READ, file, within, root }
}

const OPENCLAW: Root = Root { env: Some("OPENCLAW_STATE_DIR"), home: ".openclaw", below: "agents/*/agent" };
const HERMES: Root = Root { env: Some("HERMES_HOME"), home: ".hermes", below: "." };

const STORES: &[Store] = &[
    database("OpenClaw 2026.8 or later", "openclaw-agent.sqlite", "", Some(OPENCLAW)),
    database("OpenCode", "opencode.db", "", Some(data("opencode"))),
    database("Kilo", "kilo.db", "", Some(data("kilo"))),
    database("Goose", "sessions.db", "goose", Some(data("goose/sessions"))),
    database("Crush", "crush.db", "", None),
    database("Hermes", "state.db", ".hermes", Some(HERMES)),
    database("Zed", "threads.db", "zed", Some(data("zed/threads"))),
    Store {
        advice: EXPORTS,
        ..database("Cursor", "state.vscdb", "Cursor", Some(at(".config/Cursor", "User/globalStorage")))
    },
    Store { advice: EXPORTS, ..database("Cursor", "store.db", ".cursor", Some(at(".cursor", "chats/*/*"))) },
    Store { advice: WHOLE, ..database("Cline or Roo Code", "api_conversation_history.json", "", None) },
];

impl Store {
    /// The store that a file is, judged by its path alone.
    pub(crate) fn for_path(path: &Path) -> Option<&'static Self> {
        let name = path.file_name()?;
        let lies_in = |folder: &str| path.iter().any(|part| part == folder);
        STORES.iter().find(|store| name == store.file && (store.within.is_empty() || lies_in(store.within)))
    }

    /// Whether it is a database whose sessions this build can read.
    fn is_read(&self) -> bool {
        cfg!(feature = "stores") && self.advice == READ
    }
}

/// The agent that owns a store, judged by its path alone.
pub fn owner_of(path: &Path) -> Option<&'static str> {
    Store::for_path(path).map(|store| store.agent)
}

/// The stores of known agents that exist here, but for those that a search of [`known_roots`] finds.
pub fn known_stores() -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let searched = known_roots();
    let folders = |store: &Store| store.root.map(|root| expand(&root, home.as_deref())).unwrap_or_default();
    let is_found = |path: &Path| is_read(path) && searched.iter().any(|root| path.starts_with(root));
    let all =
        STORES.iter().flat_map(|store| folders(store).into_iter().map(|folder| folder.join(store.file)));
    all.filter(|path| path.is_file() && Store::for_path(path).is_some() && !is_found(path)).collect()
}

/// Folders to watch for folders and databases of known agents to appear.
pub fn known_roots_above() -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let read = || STORES.iter().filter(|store| store.is_read());
    let mut above = roots_above(read().filter_map(|store| store.root.as_ref()), home.as_deref());
    for store in read() {
        let folders = store.root.map(|root| expand(&root, home.as_deref())).unwrap_or_default();
        above.extend(folders.into_iter().filter(|folder| !folder.join(store.file).exists()));
    }
    above.sort();
    above.dedup();
    above
}

/// Whether a file is called as a database whose sessions this build can read.
pub fn is_read(path: &Path) -> bool {
    Store::for_path(path).is_some_and(Store::is_read)
}

/// The file that is changed by a write to this path: SQLite writes to a log beside the database first.
pub fn written_to(path: PathBuf) -> PathBuf {
    let database = path.to_str().and_then(|text| text.strip_suffix(LOG)).map(PathBuf::from);
    database.filter(|file| may_be_read(file)).unwrap_or(path)
}

/// The stamp of a file. That of a store changes with each write to its log as well. No file is opened.
///
/// # Errors
///
/// When there is no such file.
pub fn stamp_of(file: &Path) -> io::Result<Stamp> {
    let stamp = Stamp::from_metadata(&metadata::of_link(file)?);
    let mut log = file.as_os_str().to_os_string();
    log.push(LOG);
    let log = if may_be_read(file) { metadata::of_link(Path::new(&log)).ok() } else { None };
    // An empty log is as good as none: who only reads makes one, too.
    let log = log.map(|log| Stamp::from_metadata(&log)).filter(|log| log.bytes > 0);
    Ok(log.map_or(stamp, |log| Stamp {
        file: stamp.file,
        bytes: stamp.bytes + log.bytes,
        modified: stamp.modified.max(log.modified),
        changed: stamp.changed.max(log.changed),
    }))
}

/// Whether a file that somebody names may be such a database: a copy may be called anything.
pub fn may_be_read(path: &Path) -> bool {
    let ends = |path: &Path| path.extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known));
    cfg!(feature = "stores") && Store::for_path(path).map_or_else(|| ends(path), Store::is_read)
}

/// Whether a path stands for a session in a store.
pub fn is_stored(path: &Path) -> bool {
    split(path).is_some()
}

/// The database that a path stands for, or in which the session is that it stands for.
pub fn store_file(path: &Path) -> Option<&Path> {
    let file = split(path).map_or(path, |(file, _)| file);
    may_be_read(file).then_some(file)
}

/// The path that stands for a session in a store: `FILE#SESSION`.
pub(crate) fn session_path(file: &Path, session: &str) -> PathBuf {
    let mut path = file.as_os_str().to_os_string();
    path.push(format!("{MARK}{session}"));
    path.into()
}

/// Whether a path stands for a session in this file. Nothing is asked of the disk.
pub(crate) fn is_in(path: &Path, file: &Path) -> bool {
    let (path, file) = (path.as_os_str().as_encoded_bytes(), file.as_os_str().as_encoded_bytes());
    path.strip_prefix(file).is_some_and(|rest| rest.first() == Some(&(MARK as u8)))
}

/// A file beside a database.
pub(crate) fn beside(file: &Path, end: &str) -> PathBuf {
    let mut beside = file.as_os_str().to_os_string();
    beside.push(end);
    beside.into()
}

/// The path of a file, or of a session in a store, without links.
///
/// # Errors
///
/// When there is no such file.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    match split(path) {
        Some((file, session)) => Ok(session_path(&metadata::real_path(file)?, session)),
        None => metadata::real_path(path),
    }
}

/// The file of a store and the id of a session in it, if that is what a path stands for.
pub(crate) fn split(path: &Path) -> Option<(&Path, &str)> {
    let text = path.to_str()?;
    let mut marks = text.match_indices(MARK).map(|(at, _)| (Path::new(&text[..at]), &text[at + 1..]));
    let (file, session) =
        marks.find(|(file, _)| (may_be_read(file) || Store::for_path(file).is_some()) && file.is_file())?;
    path.symlink_metadata().is_err().then_some((file, session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_and_folders_where_names_do_not() {
        let of = |path: &str| Store::for_path(Path::new(path)).map(|store| store.agent);
        assert_eq!(
            of("/h/.openclaw/agents/main/agent/openclaw-agent.sqlite"),
            Some("OpenClaw 2026.8 or later")
        );
        assert_eq!(of("/h/.hermes/state.db"), Some("Hermes"));
        assert_eq!(of("/h/.other/state.db"), None);
        assert_eq!(of("/h/p/.crush/crush.db"), Some("Crush"));
        assert_eq!(of("/h/s.jsonl"), None);
    }

    #[test]
    fn a_write_to_the_log_is_one_to_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let [file, log] = ["opencode.db", "opencode.db-wal"].map(|name| dir.path().join(name));
        assert!(stamp_of(&file).is_err());
        std::fs::write(&file, "1").unwrap();
        let alone = stamp_of(&file).unwrap();
        std::fs::write(&log, "").unwrap();
        assert_eq!(stamp_of(&file).unwrap(), alone);
        std::fs::write(&log, "12").unwrap();
        let is_seen = (stamp_of(&file).unwrap().bytes == 3, written_to(log) == file);
        assert_eq!(is_seen, (cfg!(feature = "stores"), cfg!(feature = "stores")));
        assert_eq!(written_to("s.jsonl-wal".into()), Path::new("s.jsonl-wal"));
    }

    #[test]
    fn a_session_in_a_store_has_a_path_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a#b").join("opencode.db");
        let path = session_path(&file, "ses_1#2");
        assert_eq!(split(&path), None, "there is no such file");
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "").unwrap();
        assert_eq!(split(&path), Some((file.as_path(), "ses_1#2")));
        assert_eq!(split(&file), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(split(&path), None, "there is a file called so");
    }
}
