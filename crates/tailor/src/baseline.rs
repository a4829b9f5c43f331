//! Which findings were there before, recognised by fingerprints that do not change when a file grows or moves.

use crate::place::portable;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use transcript::Finding;

/// How many hex digits of the hash form a fingerprint.
const DIGITS: usize = 32;

/// The findings of an earlier run; empty if there is no baseline.
#[derive(Default)]
pub(crate) struct Baseline {
    fingerprints: HashSet<String>,
    given: bool,
}

/// The fields that we need of a line of `--format json`.
#[derive(Deserialize)]
struct BaselineLine {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    findings: serde_json::Value,
}

impl Baseline {
    /// Reads the output of an earlier run with `--format json`.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self, String> {
        let Some(path) = path else { return Ok(Self::default()) };
        let shown = path.display();
        let way_out = "write one with `tailor scan --format json -o FILE`";
        let file = File::open(path)
            .map_err(|error| format!("{shown}: could not read the baseline: {error} ({way_out})"))?;
        let mut fingerprints = HashSet::new();
        for (n, line) in BufReader::new(file).lines().enumerate() {
            let wrong = |what: &str| {
                format!("{shown}: could not read the baseline: line {}: {what} ({way_out})", n + 1)
            };
            let line = line.map_err(|error| wrong(&error.to_string()))?;
            let line: BaselineLine =
                serde_json::from_str(&line).map_err(|_| wrong("not a result of tailor"))?;
            if !["file", "summary"].contains(&line.kind.as_str()) {
                return Err(wrong("not a result of tailor"));
            }
            for finding in line.findings.as_array().into_iter().flatten() {
                let print = finding["fingerprint"].as_str();
                fingerprints
                    .insert(print.ok_or_else(|| wrong("a finding without a fingerprint"))?.to_string());
            }
        }
        Ok(Self { fingerprints, given: true })
    }

    /// Whether the baseline has this finding.
    pub(crate) fn knows(&self, fingerprint: &str) -> bool {
        self.fingerprints.contains(fingerprint)
    }

    /// Whether there is a baseline.
    pub(crate) fn is_given(&self) -> bool {
        self.given
    }
}

/// A fingerprint for each finding in a file. It is made of the file, the code, and the ids of entry and call (the line
/// if there are no ids), and of a number if several would be the same. Sizes and severity are left out, because they
/// change as a session goes on.
/// goes on.
pub(crate) fn fingerprints<'f>(path: &Path, findings: &'f [Finding]) -> Vec<String> {
    let path = portable(path);
    let mut seen: HashMap<_, u64> = HashMap::new();
    let one = |finding: &'f Finding| {
        let Finding { rule, labels, .. } = finding;
        let (entry, call) = (labels.entry.as_deref(), labels.call.as_deref());
        let line = if entry.is_none() && call.is_none() { finding.line } else { 0 };
        let (entry, call) = (entry.unwrap_or_default(), call.unwrap_or_default());
        let alike = seen.entry((rule.code(), line, entry, call)).or_default();
        *alike += 1;
        let line = line.to_string();
        let texts = [rule.code(), &line, entry, call].into_iter().map(str::as_bytes);
        hash(texts.chain([&path[..]]), &alike.to_le_bytes())
    };
    findings.iter().map(one).collect()
}

/// The fingerprint of these texts.
pub(crate) fn fingerprint_of(texts: &[&str]) -> String {
    hash(texts.iter().map(|text| text.as_bytes()), &[])
}

fn hash<'t>(parts: impl Iterator<Item = &'t [u8]>, end: &[u8]) -> String {
    let mut told = Vec::new();
    for part in parts {
        told.extend_from_slice(&(part.len() as u64).to_le_bytes());
        told.extend_from_slice(part);
    }
    told.extend_from_slice(end);
    blake3::hash(&told).to_hex()[..DIGITS].to_string()
}
