//! Removes texts from the vault for good, such as a secret that a tool printed.

use super::file::is_wiped;
use super::gc::DAMAGED;
use super::record::StoredFrame;
use super::{LOCK, OriginalText, Purpose, Vault, all_names, open_run, whole_name};
use crate::ask::error::Error;
use crate::disk::folder::Folder;
use crate::platform::{FileExt, OFlags, System, This};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use transcript::policy::OwnSecret;
use transcript::secret::SecretByHash;

/// How many bytes are overwritten with one write.
const BLOCK_BYTES: usize = 8 << 10;

/// A text that was overwritten.
#[derive(Debug)]
pub struct Forgotten {
    /// The hash of the text, in hex; its marker names the first digits.
    pub id: String,
    /// How many runs had kept it.
    pub runs: u64,
}

impl Vault {
    /// Overwrites the text whose hash begins with these hex digits in every run that kept it. The records stay, so that
    /// everything else of these runs can still be put back. What runs that died left behind is removed. Rows of a store are
    /// kept whole: all rows of a run go if one holds the text, or a part of it if the session is the same, and those of a prune also if another run of the same session
    /// kept the text, because they may hold a part of it.
    ///
    /// # Errors
    ///
    /// When there is no such text or several, or a run cannot be read or written: the text may be in that one still, and
    /// is gone from all others.
    pub fn forget(&self, digits: &str) -> Result<Forgotten, Error> {
        const VERB: &str = "forget the text";
        let fail = |cause| Error::new(self.root(), VERB, cause);
        let id = self.only(digits).map_err(|error| self.damaged(VERB).unwrap_or(error))?;
        let mut forgotten = Forgotten { id, runs: 0 };
        let Some(root) = Folder::at(self.root()).map_err(fail)? else { return Ok(forgotten) };
        // No run and no `gc` may use the vault meanwhile.
        let lock = root.open(LOCK, OFlags::RDWR | OFlags::CREATE).map_err(fail)?;
        lock.lock().map_err(fail)?;
        let Some(runs) = self.all_runs().map_err(fail)? else { return Ok(forgotten) };
        remove_unfinished(&runs).map_err(fail)?;
        let mut failed = damaged(&runs, VERB).map_err(fail)?;
        let (mut sessions, mut wiped) = (HashSet::new(), HashSet::new());
        let mut each = |wipe: &mut dyn FnMut(&Folder, &str, &str) -> io::Result<bool>| -> Result<(), Error> {
            for (run, name) in all_names(&runs).map_err(fail)? {
                let folder = runs.child(&name);
                match folder.and_then(|folder| folder.map_or(Ok(false), |folder| wipe(&folder, &name, &run)))
                {
                    Ok(true) => drop(wiped.insert((name, run))),
                    Ok(false) => {}
                    Err(cause) => {
                        failed.get_or_insert(Error::new(&runs.path_of(&name).join(&run), VERB, cause));
                    }
                }
            }
            Ok(())
        };
        // The rows and old files first: once the text is gone, nothing says what to look for.
        let sought = Sought::text(self, &forgotten.id);
        each(&mut |folder, name, run| {
            sessions.extend(keeps(folder, run, &forgotten.id)?.then(|| name.to_string()));
            Ok(false)
        })?;
        each(&mut |folder, name, run| remove_whole(folder, run, sessions.contains(name)))?;
        each(&mut |folder, name, run| wipe_rows(folder, run, sessions.contains(name), &sought))?;
        each(&mut |folder, _, run| wipe(folder, run, &forgotten.id))?;
        forgotten.runs = wiped.len() as u64;
        failed.map_or(Ok(forgotten), Err)
    }
}

impl Vault {
    /// Overwrites all that runs kept of the secret whose hash begins with these hex digits: each text that holds it, and the other
    /// bytes or the rows of a run if it is among them. Returns how many runs held it; with `is_dry` nothing is overwritten.
    ///
    /// # Errors
    ///
    /// When a run cannot be read or written: the secret may be in that one still, and is gone from all others.
    pub fn forget_secret(&self, digits: &str, own: &[OwnSecret], is_dry: bool) -> Result<u64, Error> {
        const VERB: &str = "forget the secret";
        let fail = |cause| Error::new(self.root(), VERB, cause);
        if !((8..=16).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            return Err(fail(io::Error::other(format!(
                "`{digits}` is not the hash of a secret: 8 to 16 hex digits"
            ))));
        }
        let secret = SecretByHash::new(digits, own);
        let Some(root) = Folder::at(self.root()).map_err(fail)? else { return Ok(0) };
        // No run and no `gc` may use the vault meanwhile.
        let lock = root.open(LOCK, OFlags::RDWR | OFlags::CREATE).map_err(fail)?;
        lock.lock().map_err(fail)?;
        let Some(runs) = self.all_runs().map_err(fail)? else { return Ok(0) };
        let (mut count, mut failed) = (0, damaged(&runs, VERB).map_err(fail)?);
        if !is_dry {
            remove_unfinished(&runs).map_err(fail)?;
        }
        for (run, name) in all_names(&runs).map_err(fail)? {
            let folder = runs.child(&name);
            match folder.and_then(|folder| {
                folder.map_or(Ok(false), |folder| wipe_secret(&folder, &run, &secret, is_dry))
            }) {
                Ok(held) => count += u64::from(held),
                Err(cause) => {
                    failed.get_or_insert(Error::new(&runs.path_of(&name).join(&run), VERB, cause));
                }
            }
        }
        failed.map_or(Ok(count), Err)
    }

    /// Why a text may be in the vault that no run names.
    fn damaged(&self, verb: &'static str) -> Option<Error> {
        damaged(&self.all_runs().ok()??, verb).ok()?
    }
}

/// Overwrites the frames of a run that hold a secret, and removes its whole old file if that does. Returns whether one does.
fn wipe_secret(folder: &Folder, run: &str, secret: &SecretByHash, is_dry: bool) -> io::Result<bool> {
    let Some((file, _)) = open_run(folder, run, OFlags::RDWR)? else { return Ok(false) };
    let file = Arc::new(file);
    let record = super::file::read_index(&file, run)?;
    let rows = record.rows.map(|rows| rows.frame);
    let whole = folder.open_file(whole_name::name_of(run), OFlags::RDONLY)?;
    let mut held = whole.map_or(Ok(false), |whole| holds(&mut &whole, secret))?;
    if held && !is_dry {
        whole_name::remove(folder, run)?;
    }
    for stored in record.texts.iter().chain(&record.inline).chain(&rows) {
        let is_kept = stored.frame.0 < stored.frame.1 && !is_wiped(&file, stored)?;
        if is_kept && holds(&mut OriginalText::open(&file, stored)?, secret)? {
            held = true;
            if !is_dry {
                overwrite(&file, stored)?;
            }
        }
    }
    Ok(held)
}

/// How much of a text is looked at once.
const LOOKED_BYTES: usize = 1 << 20;

/// Whether a secret is in a text.
fn holds(text: &mut dyn Read, secret: &SecretByHash) -> io::Result<bool> {
    let mut window = Vec::new();
    loop {
        let kept = window.len().min(SecretByHash::OVERLAP_BYTES);
        window.drain(..window.len() - kept);
        let got = text.take(LOOKED_BYTES as u64).read_to_end(&mut window)?;
        if got == 0 {
            return Ok(false);
        }
        if secret.is_in(&window) {
            return Ok(true);
        }
    }
}

/// Removes unfinished files of runs that died, which may hold any text.
fn remove_unfinished(runs: &Folder) -> io::Result<()> {
    for folder in runs.names()? {
        let Some(folder) = runs.child(&folder)? else { continue };
        for name in folder.names()?.iter().filter(|name| Folder::is_unfinished(name)) {
            folder.remove(name)?;
        }
    }
    Ok(())
}

/// An error that names a damaged file that was moved aside, if there is one.
fn damaged(runs: &Folder, verb: &'static str) -> io::Result<Option<Error>> {
    for folder in runs.names()? {
        let Some(folder) = runs.child(&folder)? else { continue };
        if let Some(name) = folder.names()?.iter().find(|name| name.ends_with(DAMAGED)) {
            let cause =
                io::Error::other("gc moved it aside because it is damaged, and the text may be in it");
            let error = Error::new(&folder.path_of(name), verb, cause);
            return Ok(Some(error.with_way_out("delete that file, and the text is gone")));
        }
    }
    Ok(None)
}

/// Whether a run kept the text with this hash, even if it was overwritten since.
fn keeps(folder: &Folder, run: &str, id: &str) -> io::Result<bool> {
    let Some((file, _)) = open_run(folder, run, OFlags::RDONLY)? else { return Ok(false) };
    let record = super::file::read_index(&Arc::new(file), run)?;
    Ok(record.texts.iter().any(|stored| stored.hash.to_string() == id))
}

/// Removes the old file that a run kept whole, if one of its session had the text.
fn remove_whole(folder: &Folder, run: &str, had_it: bool) -> io::Result<bool> {
    if had_it {
        whole_name::remove(folder, run)?;
    }
    Ok(false)
}

/// Overwrites the rows that a run kept if one holds the text, or if they were pruned from a session that had it.
fn wipe_rows(folder: &Folder, run: &str, had_it: bool, sought: &Sought) -> io::Result<bool> {
    let Some((file, _)) = open_run(folder, run, OFlags::RDWR)? else { return Ok(false) };
    let file = Arc::new(file);
    let record = super::file::read_index(&file, run)?;
    let Some(rows) = record.rows else { return Ok(false) };
    if is_wiped(&file, &rows.frame)? {
        return Ok(false);
    }
    let mut goes = had_it && record.purpose == Some(Purpose::Prune);
    if !goes {
        // Rows of the same session may hold a part of it: OpenClaw notes what it sent of a result.
        let sought = if had_it { &sought.parts } else { &sought.whole };
        for line in BufReader::new(OriginalText::open(&file, &rows.frame)?).lines() {
            goes |= is_in(sought, &serde_json::from_str(&line?)?);
        }
    }
    if goes {
        overwrite_rows(&file, &rows.frame, record.inline.as_ref())?;
    }
    Ok(goes)
}

/// Overwrites rows, and what was taken out of them.
fn overwrite_rows(file: &File, rows: &StoredFrame, inline: Option<&StoredFrame>) -> io::Result<()> {
    overwrite(file, rows)?;
    inline.map_or(Ok(()), |inline| overwrite(file, inline))
}

/// Shorter texts are in too many rows by chance.
const SOUGHT_BYTES_MIN: usize = 8;

/// Of a longer text its beginning is looked for, for it may be longer than memory.
const SOUGHT_BYTES_MAX: u64 = 1 << 20;

/// The longest escape: a pair of surrogates.
const ESCAPE_BYTES_MAX: usize = 12;

/// How many parts of a text are looked for, and how long they are.
const PARTS: usize = 16;
const PART_BYTES: usize = 64;

/// The longest row that is decompressed.
const UNPACKED_BYTES_MAX: u64 = 16 << 20;

/// A text to look for in rows: as it was kept, and as it is in JSON.
#[derive(Default)]
struct Sought {
    whole: Vec<String>,
    /// Some parts of it, or all of it if it is short.
    parts: Vec<String>,
}

impl Sought {
    /// Nothing if the text is gone everywhere, or too short.
    fn text(vault: &Vault, id: &str) -> Self {
        let mut bytes = Vec::new();
        let read = vault.text(id).map(|kept| kept.take(SOUGHT_BYTES_MAX).read_to_end(&mut bytes));
        if matches!(read, Ok(Ok(_))) { Self::beginning(&bytes) } else { Self::default() }
    }

    /// The text that begins with these bytes, which may end within a character or an escape.
    fn beginning(bytes: &[u8]) -> Self {
        let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        if text.len() < SOUGHT_BYTES_MIN {
            return Self::default();
        }
        let mut shorter = (0..=ESCAPE_BYTES_MAX).filter_map(|less| text.get(..text.len().checked_sub(less)?));
        let inner: Option<String> =
            shorter.find_map(|text| serde_json::from_str(&format!("\"{text}\"")).ok());
        let inner = inner.filter(|text| text.len() >= SOUGHT_BYTES_MIN);
        let whole: Vec<String> = [text.to_string()].into_iter().chain(inner).collect();
        let parts = whole.iter().flat_map(|text| parts(text)).collect();
        Self { whole, parts }
    }
}

/// Parts from all over a text.
fn parts(text: &str) -> Vec<String> {
    let whole = |at: usize| (0..=at).rfind(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let part = |from: usize| text[whole(from)..whole(from + PART_BYTES)].to_string();
    match text.len().checked_sub(PARTS * PART_BYTES) {
        Some(_) => (0..PARTS).map(|n| part(text.len() / PARTS * n)).collect(),
        None => vec![text.to_string()],
    }
}

/// Whether a value of a row holds one of these texts.
fn is_in(sought: &[String], value: &Value) -> bool {
    match value {
        Value::String(held) => {
            let json = || serde_json::from_str::<Value>(held).ok();
            sought.iter().any(|text| held.contains(text.as_str()))
                || held.starts_with(['{', '[']) && json().is_some_and(|json| is_in(sought, &json))
        }
        Value::Array(values) => values.iter().any(|value| is_in(sought, value)),
        Value::Object(values) => {
            let packed = values.get("blob").and_then(Value::as_str).and_then(unpacked);
            packed.is_some_and(|json| is_in(sought, &json))
                || values.values().any(|value| is_in(sought, value))
        }
        _ => false,
    }
}

/// The JSON that is compressed in a row.
fn unpacked(hex: &str) -> Option<Value> {
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
    serde_json::from_reader(zstd::Decoder::new(&bytes?[..]).ok()?.take(UNPACKED_BYTES_MAX)).ok()
}

/// Overwrites the text with this hash in the file of a run, if it is there.
fn wipe(folder: &Folder, run: &str, id: &str) -> io::Result<bool> {
    let Some((file, _)) = open_run(folder, run, OFlags::RDWR)? else { return Ok(false) };
    let file = Arc::new(file);
    let record = super::file::read_index(&file, run)?;
    let Some(stored) = record.texts.iter().find(|stored| stored.hash.to_string() == id) else {
        return Ok(false);
    };
    if stored.frame.0 == stored.frame.1 || is_wiped(&file, stored)? {
        return Ok(false);
    }
    // Rows are kept whole, with the text in them.
    if let Some(rows) = record.rows {
        overwrite_rows(&file, &rows.frame, record.inline.as_ref())?;
    }
    overwrite(&file, stored)?;
    Ok(true)
}

fn overwrite(file: &File, stored: &StoredFrame) -> io::Result<()> {
    let (start, end) = stored.frame;
    let zeros = [0; BLOCK_BYTES];
    for at in (start + 1..end).step_by(BLOCK_BYTES) {
        let length = (end - at).min(BLOCK_BYTES as u64);
        file.write_all_at(&zeros[..length as usize], at)?;
    }
    This::sync(file)?;
    // A first byte of 0 marks the text as gone. It is written last, so that this is true even after a power cut.
    file.write_all_at(&[0], start)?;
    This::sync(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_by_its_beginning_wherever_that_was_cut() {
        let whole = r#"a line \"quoted\" \ud83d\ude00 and \u00e9 more é"#;
        let row = serde_json::json!({ "data": format!(r#"{{"text":"{whole}"}}"#) });
        let other = serde_json::json!({ "data": "a line of another text" });
        for end in SOUGHT_BYTES_MIN..=whole.len() {
            let sought = Sought::beginning(&whole.as_bytes()[..end]);
            assert!(is_in(&sought.whole, &row), "{end}");
            assert!(!is_in(&sought.whole, &other), "{end}");
        }
    }

    #[test]
    fn a_part_of_a_text_is_found_in_a_compressed_row() {
        let lines: Vec<String> =
            (0..200).map(|n| format!("line {n} of a text that a tool printed; ")).collect();
        let lines = lines.concat();
        let part = &lines[lines.len() / 3..];
        let row = serde_json::json!({ "data": { "frozenToolResults": [{ "texts": [part] }] } }).to_string();
        let packed = zstd::encode_all(row.as_bytes(), 1).unwrap();
        let hex: Vec<String> = packed.iter().map(|byte| format!("{byte:02x}")).collect();
        let hex = hex.concat();
        let edit = serde_json::json!({ "old": ["s", 1, null, { "blob": hex }] });
        let sought = Sought::beginning(lines.as_bytes());
        assert!(is_in(&sought.parts, &edit) && !is_in(&sought.whole, &edit));
        assert!(!is_in(&sought.parts, &serde_json::json!({ "old": ["s", 1, "another text"] })));
    }
}
