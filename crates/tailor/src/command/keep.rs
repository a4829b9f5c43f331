//! `tailor keep`: keeps what sessions become, lists it, puts it back, and checks it.

use super::{CommandResult, failed, roots};
use crate::amount::{plural, size};
use crate::args::{KeepCheck, KeepList, KeepNow, KeepRestore, KeepWhat};
use crate::place::{portable_text, shown, shown_word};
use crate::say::{hint, is_quiet, print_json};
use crate::status::ExitStatus;
use crate::terminal::{Screen, plain};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use keeper::{Archive, Change, Generation, Keeper, Kept, Vault, find, is_missing, is_stored, put_back};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use transcript::{Policy, examine};

/// How much of a session is read for its title.
const TITLE_BYTES_MAX: u64 = 1 << 20;
/// A shorter part of an id may be part of others.
const ID_CHARS_MIN: usize = 4;
const NOTHING: &str = "nothing is kept yet; keep sessions once with `tailor keep now`, or all the time with `tailor watch --keep`";

pub(crate) fn run(what: &KeepWhat) -> CommandResult {
    match what {
        KeepWhat::Now(asked) => now(asked),
        KeepWhat::List(asked) => list(asked),
        KeepWhat::Restore(asked) => restore(asked),
        KeepWhat::Check(asked) => check(asked),
    }
}

/// The line of `keep now --json`.
#[derive(Default, Serialize)]
struct KeptLine {
    #[serde(rename = "type")]
    kind: &'static str,
    sessions: u64,
    grown: u64,
    generations_ended: u64,
    grown_bytes: u64,
    generations_dropped: u64,
    archive_bytes: u64,
}

fn now(asked: &KeepNow) -> CommandResult {
    let (config, archive) = asked.at.open()?;
    let mut keeper = Keeper::new(archive, config.vault().ok().map(Vault::new));
    let (mut line, mut status) = (KeptLine { kind: "kept", ..KeptLine::default() }, ExitStatus::Clean);
    let mut paths = Vec::new();
    for found in find(&roots(&asked.paths)) {
        match found {
            Ok(found) if is_stored(&found.path) => {}
            Ok(found) => paths.push(found.path),
            Err(error) => status = failed(&error),
        }
    }
    line.sessions = paths.len() as u64;
    keeper.look(&paths, &mut |_, seen| match seen {
        Ok(Change::None) => {}
        Ok(Change::Grown(bytes)) => {
            line.grown += 1;
            line.grown_bytes += bytes;
        }
        Ok(Change::Ended(_)) => line.generations_ended += 1,
        Err(error) => status = failed(&error),
    })?;
    line.generations_ended += keeper.rest()?;
    let dropped = keeper.bound(config.keep_limits())?;
    (line.generations_dropped, line.archive_bytes) = (dropped.generations.len() as u64, dropped.bytes_kept);
    if asked.json.is_json() {
        return Ok(status.max(print_json(&line)));
    }
    let dropped = if line.generations_dropped > 0 {
        format!("; {} dropped", plural(line.generations_dropped, "generation"))
    } else {
        String::new()
    };
    println!(
        "{}: {} new or grown by {}, {} changed or gone; {} kept{dropped}",
        plural(line.sessions, "session"),
        line.grown,
        size(line.grown_bytes),
        line.generations_ended,
        size(line.archive_bytes)
    );
    Ok(status)
}

/// What an archive holds, read anew.
fn open(archive: &Archive) -> Result<Option<Kept>, String> {
    let fail = |cause| format!("{}: could not read what is kept: {cause}", archive.root().display());
    archive.read().map_err(fail)
}

/// The generations of each session with something in them, oldest first; those of sessions of which one is asked for.
fn sessions<'k>(kept: &'k Kept, text: Option<&str>) -> BTreeMap<&'k Path, Vec<&'k Generation>> {
    let mut sessions: BTreeMap<&Path, Vec<&Generation>> = BTreeMap::new();
    for generation in kept.generations() {
        let path = generation.path.as_path();
        if text.is_none_or(|text| path.to_string_lossy().contains(text)) {
            sessions.entry(path).or_default().push(generation);
        }
    }
    sessions
}

/// Whether a session lies on the disk no more, or with nothing in it.
fn is_gone(generations: &[&Generation]) -> bool {
    let is_gone = |last: &&Generation| last.ended.is_some() || last.bytes == 0 || is_missing(&last.path);
    generations.last().is_some_and(is_gone)
}

/// The last generation with something in it of each session that is gone. What cannot be read is left out.
pub(super) fn gone(archive: &Archive) -> Vec<Generation> {
    let Ok(Some(kept)) = archive.read() else { return Vec::new() };
    let last = |generations: Vec<&Generation>| {
        let last = generations.iter().rev().find(|one| one.bytes > 0)?;
        is_gone(&generations).then(|| (*last).clone())
    };
    sessions(&kept, None).into_values().filter_map(last).collect()
}

/// One generation in `keep list --json`.
#[derive(Serialize)]
pub(super) struct GenerationLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    began: String,
    seen: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<&'static str>,
}

impl GenerationLine<'_> {
    pub(super) fn of<'a>(generation: &Generation, title: Option<&'a str>) -> GenerationLine<'a> {
        GenerationLine {
            kind: "generation",
            path: portable_text(&generation.path),
            title,
            began: stamp(generation.began),
            seen: stamp(generation.at),
            bytes: generation.bytes,
            ended: generation.ended.map(|(ended, _)| stamp(ended)),
            end: generation.ended.map(|(_, end)| end.name()),
        }
    }
}

fn list(asked: &KeepList) -> CommandResult {
    let (_, archive) = asked.at.open()?;
    let Some(mut kept) = open(&archive)? else {
        hint(NOTHING);
        return Ok(ExitStatus::Clean);
    };
    let listed: Vec<Vec<Generation>> = sessions(&kept, asked.text.as_deref())
        .into_values()
        .filter(|generations| !asked.gone || is_gone(generations))
        .map(|generations| generations.into_iter().filter(|one| one.bytes > 0).cloned().collect::<Vec<_>>())
        .filter(|generations| !generations.is_empty())
        .collect();
    let screen = Screen::of_stdout();
    let mut count = 0;
    for generations in &listed {
        let Some(last) = generations.last() else { continue };
        let title = title(&mut kept, last);
        count += generations.len() as u64;
        if !asked.json.is_json() {
            let named = title.as_ref().map(|title| format!("  {title}")).unwrap_or_default();
            println!("{}", screen.whole(&plain(&format!("{}{named}", shown(&last.path)))));
        }
        for generation in generations {
            if asked.json.is_json() {
                print_json(&GenerationLine::of(generation, title.as_deref()));
            } else {
                println!("  {}", row(generation));
            }
        }
    }
    if !asked.json.is_json() && !is_quiet() {
        let bytes = size(kept.bytes());
        println!("{}, {}, {bytes}", plural(listed.len() as u64, "session"), plural(count, "generation"));
    }
    Ok(ExitStatus::Clean)
}

fn row(generation: &Generation) -> String {
    let end = match generation.ended {
        Some((ended, end)) => format!("{} {}", end.name(), local(ended)),
        None if is_missing(&generation.path) => "gone since".to_string(),
        None => "there now".to_string(),
    };
    format!("{} to {}  {:>8}  {end}", local(generation.began), local(generation.at), size(generation.bytes))
}

/// The title of a session, or how it begins.
fn title(kept: &mut Kept, generation: &Generation) -> Option<String> {
    let mut text = Vec::new();
    kept.copy(generation, generation.bytes.min(TITLE_BYTES_MAX), &mut text).ok()?;
    examine(&text.as_slice(), &Policy::default()).ok()?.headline.title
}

fn stamp(millis: i64) -> String {
    Timestamp::from_millisecond(millis).map(|time| format!("{time:.3}")).unwrap_or_default()
}

/// A time as the clock here shows it.
pub(super) fn local(millis: i64) -> String {
    let time = Timestamp::from_millisecond(millis).unwrap_or_default().to_zoned(TimeZone::system());
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

/// One line of `keep restore --json`.
#[derive(Serialize)]
struct RestoredLine {
    #[serde(rename = "type")]
    kind: &'static str,
    path: String,
    to: String,
    bytes: u64,
    lost_bytes: u64,
}

fn restore(asked: &KeepRestore) -> CommandResult {
    let (_, archive) = asked.at.open()?;
    let Some(mut kept) = open(&archive)? else { return Err(NOTHING.into()) };
    if let (true, Some(folder)) = (asked.all, &asked.to) {
        return Ok(restore_all(asked, &mut kept, folder));
    }
    let text = asked.session.as_deref().unwrap_or_default();
    let found = named(&kept, text)?;
    let text = Text::chosen(&found, asked.at_time)
        .ok_or_else(|| format!("{}: nothing of it is kept from that time", shown(&found[0].path)))?;
    let to = asked.to.clone().unwrap_or_else(|| text.generation.path.clone());
    put(asked, &mut kept, &text, &to)?;
    Ok(ExitStatus::Clean)
}

/// The generations of the only session that a text names.
fn named(kept: &Kept, text: &str) -> Result<Vec<Generation>, String> {
    let path = keeper::real_path(Path::new(text)).unwrap_or_else(|_| PathBuf::from(text));
    let cloned = |generations: &Vec<&Generation>| generations.iter().map(|one| (*one).clone()).collect();
    let mut all = sessions(kept, None);
    let there = std::path::absolute(&path).ok().and_then(|path| all.get(path.as_path()).map(cloned));
    if let Some(generations) = there {
        return Ok(generations);
    }
    if text.len() < ID_CHARS_MIN {
        return Err(format!("{text}: too short for an id"));
    }
    all.retain(|path, _| path.to_string_lossy().contains(text));
    match (all.len(), all.first_key_value()) {
        (1, Some((_, generations))) => Ok(cloned(generations)),
        (0, _) | (_, None) => {
            Err(format!("{text}: no session of this name or id is kept (tailor keep list)"))
        }
        (count, Some((path, _))) => Err(format!(
            "{text}: {count} kept sessions have this in their path, such as {}",
            shown_word(path)
        )),
    }
}

/// What is to be restored.
struct Text {
    generation: Generation,
    /// How much of it.
    bytes: u64,
}

impl Text {
    /// The generation of a time, or the last one with something in it.
    fn chosen(generations: &[Generation], time: Option<i64>) -> Option<Self> {
        let bytes = |one: &Generation| time.map_or(Some(one.bytes), |time| one.bytes_at(time));
        let of = |one: &Generation| Some(Self { generation: one.clone(), bytes: bytes(one)? });
        generations.iter().rev().filter_map(of).find(|text| text.bytes > 0)
    }
}

fn restore_all(asked: &KeepRestore, kept: &mut Kept, folder: &Path) -> ExitStatus {
    let mut status = ExitStatus::Clean;
    let of_time = |generations: Vec<&Generation>| {
        let generations: Vec<Generation> = generations.into_iter().cloned().collect();
        Text::chosen(&generations, asked.at_time)
    };
    let all: Vec<Text> = sessions(kept, None).into_values().filter_map(of_time).collect();
    for text in all {
        let below: PathBuf = text.generation.path.components().filter(is_name).collect();
        if let Err(error) = put(asked, kept, &text, &folder.join(below)) {
            status = failed(&error);
        }
    }
    status
}

fn is_name(part: &std::path::Component<'_>) -> bool {
    matches!(part, std::path::Component::Normal(_))
}

fn put(asked: &KeepRestore, kept: &mut Kept, text: &Text, to: &Path) -> Result<(), keeper::Error> {
    let (generation, bytes) = (&text.generation, text.bytes);
    let lost_bytes = put_back(kept, generation, bytes, to, asked.partly)?;
    if asked.json.is_json() {
        let (path, to) = (portable_text(&generation.path), portable_text(to));
        print_json(&RestoredLine { kind: "restored", path, to, bytes, lost_bytes });
        return Ok(());
    }
    let lost = if lost_bytes > 0 { format!(", {} of it lost", size(lost_bytes)) } else { String::new() };
    println!("{}: restored, {}{lost}", Screen::of_stdout().whole(&plain(&shown(to))), size(bytes));
    Ok(())
}

/// The last line of `keep check --json`.
#[derive(Serialize)]
struct ArchiveLine {
    #[serde(rename = "type")]
    kind: &'static str,
    generations: u64,
    damaged_generations: u64,
    damaged_chunks: u64,
    damaged_bytes: u64,
    archive_bytes: u64,
}

fn check(asked: &KeepCheck) -> CommandResult {
    let (_, archive) = asked.at.open()?;
    let Some(mut kept) = open(&archive)? else {
        hint(NOTHING);
        return Ok(ExitStatus::Clean);
    };
    let damage = kept.check();
    for generation in &damage.generations {
        if asked.json.is_json() {
            print_json(&GenerationLine::of(generation, None));
        } else {
            println!("{}: damaged: {}", plain(&shown(&generation.path)), row(generation));
        }
    }
    let line = ArchiveLine {
        kind: "archive",
        generations: kept.generations().len() as u64,
        damaged_generations: damage.generations.len() as u64,
        damaged_chunks: damage.chunks,
        damaged_bytes: damage.bytes,
        archive_bytes: kept.bytes(),
    };
    let status = if damage.chunks > 0 { ExitStatus::Findings } else { ExitStatus::Clean };
    if asked.json.is_json() {
        return Ok(status.max(print_json(&line)));
    }
    println!(
        "{}: {}, {} of them damaged; {}",
        archive.root().display(),
        plural(line.generations, "generation"),
        line.damaged_generations,
        size(line.archive_bytes)
    );
    Ok(status)
}
