//! Sessions on which an agent's own index and its files do not agree. Nothing is written, and no transcript is read.

use crate::platform::acting;
use crate::platform::writing::open_note;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, DirEntry};
use std::io::Read;
use std::path::{Path, PathBuf};
use transcript::format::{Agent, Index};

/// How long an id in a database is: a UUID.
const ID_BYTES: usize = 36;
/// Longer indexes are not read.
const INDEX_BYTES_MAX: u64 = 256 << 20;

/// A session that is in one place and not in the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// The agent whose session it is.
    pub agent: Agent,
    /// What is missing.
    pub lack: Lack,
    /// What to do, with the agent's own command if there is one.
    pub advice: &'static str,
    /// The session.
    pub id: String,
    /// Its transcript, also where that is gone.
    pub path: PathBuf,
}

/// What a session lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// The agent names it, and there is no such file.
    Transcript,
    /// The agent does not name the file.
    Entry,
    /// No message is left in the file.
    Messages,
}

/// The sessions that are missing somewhere, of these agents with their transcripts, in no order.
pub fn strays<'p>(transcripts: impl IntoIterator<Item = (Agent, &'p Path)>) -> Vec<Stray> {
    let mut places: BTreeMap<PathBuf, (Agent, Index, Vec<&Path>)> = BTreeMap::new();
    for (agent, path) in transcripts {
        if let Some(index) = agent.index
            && let Some(place) = place(agent, index, path)
        {
            places.entry(place).or_insert_with(|| (agent, index, Vec::new())).2.push(path);
        }
    }
    let mut found: Vec<Stray> = Vec::new();
    for (place, (agent, index, paths)) in places {
        // What an index says is read as the user whose transcripts it names.
        let Some(Ok(Ok(_acting))) = paths.first().map(|path| acting::as_owner(path, false)) else { continue };
        found.extend(match index {
            Index::List { name, lost, unknown } => of_list(agent, (&place, name), [lost, unknown], &paths),
            Index::Database { name, unknown } => of_database(agent, &place, name, unknown, &paths),
            Index::Folders { lost, .. } => of_folders(agent, &place, lost),
        });
    }
    found
}

/// Where the index of a transcript lies.
fn place(agent: Agent, index: Index, path: &Path) -> Option<PathBuf> {
    if matches!(index, Index::List { .. }) {
        return path.parent().map(Path::to_path_buf);
    }
    // A copy elsewhere has no id.
    agent.session_id(path.to_str()?)?;
    let below = agent.resume?.below;
    let root = path.ancestors().find(|above| above.file_name().is_some_and(|name| name == below))?;
    let is_beside = matches!(index, Index::Database { .. });
    if is_beside { root.parent() } else { Some(root) }.map(Path::to_path_buf)
}

fn of_list(
    agent: Agent,
    (place, name): (&Path, &str),
    [lost, unknown]: [&'static str; 2],
    paths: &[&Path],
) -> Vec<Stray> {
    let Some(listed) = listed(place, name) else { return Vec::new() };
    let named: HashSet<_> = listed.iter().filter_map(|(_, path)| path.file_name()).collect();
    let is_unknown = |path: &&&Path| path.file_name().is_some_and(|own| !named.contains(own));
    let unnamed = paths.iter().filter(is_unknown).map(|path| Stray {
        agent,
        lack: Lack::Entry,
        advice: unknown,
        id: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        path: path.to_path_buf(),
    });
    let gone = listed.iter().filter(|(_, path)| !path.exists()).map(|(id, path)| Stray {
        agent,
        lack: Lack::Transcript,
        advice: lost,
        id: id.clone(),
        path: path.clone(),
    });
    gone.chain(unnamed).collect()
}

fn of_database(
    agent: Agent,
    place: &Path,
    name: [&str; 2],
    advice: &'static str,
    paths: &[&Path],
) -> Vec<Stray> {
    let Some(ids) = ids_in(place, name) else { return Vec::new() };
    let ids_of = paths.iter().filter_map(|path| Some((agent.session_id(path.to_str()?)?, path)));
    let unknown = ids_of.filter(|(id, _)| id.as_bytes().first_chunk().is_some_and(|id| !ids.contains(id)));
    let stray = |(id, path): (&str, &&Path)| Stray {
        agent,
        lack: Lack::Entry,
        advice,
        id: id.to_string(),
        path: path.to_path_buf(),
    };
    unknown.map(stray).collect()
}

/// A transcript may move from one project to another, without its folder.
fn of_folders(agent: Agent, place: &Path, advice: &'static str) -> Vec<Stray> {
    let (mut folders, mut files) = (Vec::new(), HashSet::new());
    for entry in inside(place).flat_map(|project| inside(&project.path())) {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let Some(id) = path.with_extension("").file_name().and_then(|name| name.to_str()).map(str::to_string)
        else {
            continue;
        };
        if !is_folder {
            files.insert(id);
        } else if agent.session_id(path.to_str().unwrap_or_default()).is_some() {
            folders.push((id, path.with_extension("jsonl")));
        }
    }
    let gone = folders.into_iter().filter(|(id, _)| !files.contains(id));
    gone.map(|(id, path)| Stray { agent, lack: Lack::Transcript, advice, id, path }).collect()
}

fn inside(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let file = open_note(path).ok()?;
    let is_short = file.metadata().is_ok_and(|there| there.is_file() && there.len() <= INDEX_BYTES_MAX);
    let mut bytes = Vec::new();
    is_short.then(|| file.take(INDEX_BYTES_MAX).read_to_end(&mut bytes).ok()).flatten()?;
    Some(bytes)
}

/// The sessions in a list, each with its file.
fn listed(place: &Path, name: &str) -> Option<Vec<(String, PathBuf)>> {
    let entries: Value = serde_json::from_slice(&read(&place.join(name))?).ok()?;
    let session = |entry: &Value| {
        let id = entry.get("sessionId")?.as_str()?;
        let file = entry.get("sessionFile").and_then(Value::as_str).map(PathBuf::from);
        Some((id.to_string(), place.join(file.unwrap_or_else(|| PathBuf::from(format!("{id}.jsonl"))))))
    };
    Some(entries.as_object()?.values().filter_map(session).collect())
}

/// All that looks like an id in the databases called so; `None` if there are none. What was written last is in a log
/// beside each.
fn ids_in(place: &Path, [begins, ends]: [&str; 2]) -> Option<HashSet<[u8; ID_BYTES]>> {
    let is_one = |name: &str| {
        let number = name
            .strip_prefix(begins)
            .and_then(|rest| rest.strip_suffix("-wal").unwrap_or(rest).strip_suffix(ends));
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let databases = inside(place)
        .map(|entry| entry.path())
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_one));
    let databases: Vec<Vec<u8>> = databases.map(|path| read(&path)).collect::<Option<_>>()?;
    let is_id = |bytes: &&[u8; ID_BYTES]| {
        let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
        bytes
            .iter()
            .enumerate()
            .all(|(at, byte)| if is_hyphen(at) { *byte == b'-' } else { byte.is_ascii_hexdigit() })
    };
    let mut ids = HashSet::new();
    for bytes in &databases {
        // A hyphen is where the ninth character of an id may be.
        let starts = memchr::memchr_iter(b'-', bytes).filter_map(|hyphen| hyphen.checked_sub(8));
        ids.extend(starts.filter_map(|start| bytes.get(start..)?.first_chunk().filter(is_id)));
    }
    (!databases.is_empty()).then_some(ids)
}
