//! Compares the writers' logs with the file.

use super::writers::{OPENING, Site};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::time::Duration;

/// How many errors of a kind are listed.
const NAMED_MAX: usize = 5;

/// The differences between the logs and the file.
#[derive(Default)]
pub(super) struct LedgerSums {
    /// How many entries each writer has logged.
    logged: BTreeMap<String, usize>,
    lost: Vec<String>,
    doubled: Vec<String>,
    out_of_order: Vec<String>,
    /// Lines with other bytes, although no fix should have changed them.
    altered: Vec<String>,
    /// Lines that are not JSON.
    torn: Vec<String>,
    /// Lines that no writer has logged.
    strange: Vec<String>,
    longest: Duration,
}

impl LedgerSums {
    fn all(&self) -> [(&str, &Vec<String>); 6] {
        [
            ("lost", &self.lost),
            ("doubled", &self.doubled),
            ("out of order", &self.out_of_order),
            ("altered", &self.altered),
            ("torn", &self.torn),
            ("of nobody", &self.strange),
        ]
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        let logged: usize = self.logged.values().sum();
        let lines = self.all().into_iter().filter(|(_, ids)| !ids.is_empty()).map(|(what, ids)| {
            let named = ids.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("{} of {logged} lines are {what}: {named}, …", ids.len())
        });
        let mut wrong: Vec<String> = lines.collect();
        if logged == 0 {
            wrong.push("nobody has written anything".to_string());
        }
        wrong
    }
}

impl fmt::Display for LedgerSums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (writer, logged) in &self.logged {
            let own = format!("{writer}-");
            let lost = self.lost.iter().filter(|id| id.starts_with(&own)).count();
            writeln!(f, "  {writer}: {lost} of {logged} lines lost")?;
        }
        write!(f, "  the longest append took {:.1} ms", self.longest.as_secs_f64() * 1e3)
    }
}

/// Reads the logs and the file.
pub(super) fn account(site: &Site) -> LedgerSums {
    let mut account = LedgerSums { longest: *site.longest.lock().unwrap(), ..LedgerSums::default() };
    let bytes = fs::read(&site.path).unwrap();
    let mut places = places(&bytes, &mut account);
    for entry in fs::read_dir(&site.logs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let writer = path.file_stem().unwrap().to_str().unwrap();
            compare(writer, &fs::read_to_string(&path).unwrap(), &mut places, &mut account);
        }
    }
    account.strange.extend(places.into_keys());
    account
}

/// Where in the file the lines with an id are, and their bytes.
type Places<'a> = HashMap<String, Vec<(usize, &'a [u8])>>;

fn places<'a>(bytes: &'a [u8], account: &mut LedgerSums) -> Places<'a> {
    let mut places = Places::new();
    let opening = OPENING.as_bytes();
    let Some(rest) = bytes.strip_prefix(opening) else {
        account.altered.push("the first lines".to_string());
        return places;
    };
    let mut lines: Vec<&[u8]> = rest.split(|byte| *byte == b'\n').collect();
    let last = lines.pop().unwrap();
    if !last.is_empty() {
        account.torn.push(format!("the last line, after byte {}", bytes.len() - last.len()));
    }
    for (number, line) in lines.into_iter().enumerate() {
        let value: Option<Value> = serde_json::from_slice(line).ok();
        match value.as_ref().and_then(|value| value["id"].as_str()) {
            Some(id) => places.entry(id.to_string()).or_default().push((number, line)),
            None if value.is_some() => account.strange.push(format!("line {}", number + 3)),
            None => account.torn.push(format!("line {}", number + 3)),
        }
    }
    places
}

/// Finds each entry of a log and removes it from `places`.
fn compare(writer: &str, log: &str, places: &mut Places<'_>, account: &mut LedgerSums) {
    let mut before = None;
    for line in log.lines() {
        let (id, kept) = line.split_once('\t').unwrap();
        *account.logged.entry(writer.to_string()).or_default() += 1;
        let Some(found) = places.remove(id) else {
            account.lost.push(id.to_string());
            continue;
        };
        if found.len() > 1 {
            account.doubled.push(id.to_string());
        }
        let (place, bytes) = found[0];
        if before > Some(place) {
            account.out_of_order.push(id.to_string());
        }
        before = Some(place);
        if !is_same(id, kept, bytes) {
            account.altered.push(id.to_string());
        }
    }
}

/// Whether a line is the logged one: the same bytes, or, if it may be cut, the same beginning.
fn is_same(id: &str, kept: &str, bytes: &[u8]) -> bool {
    if !kept.is_empty() {
        return bytes == kept.as_bytes();
    }
    let value: Value = serde_json::from_slice(bytes).unwrap();
    value["message"]["content"][0]["text"].as_str().is_some_and(|text| text.starts_with(id))
}
