//! The secrets of all files: what may be said of each, how often it stands, and where. Never the secret.

use crate::amount::plural;
use crate::place::shown;
use crate::report::FileReport;
use crate::terminal::plain;
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;
use transcript::finding::SecretMark;

/// How many places are named for people.
const NAMED_MAX: usize = 3;

/// A secret, and where it stands.
#[derive(Serialize)]
pub(super) struct SecretPlaces {
    #[serde(flatten)]
    mark: SecretMark,
    #[serde(rename = "places")]
    sessions: Vec<SecretSession>,
}

/// How often it stands in a session, and where first.
#[derive(Serialize)]
struct SecretSession {
    path: String,
    line: u64,
    times: u64,
}

/// All secrets so far, in the order in which they were found.
#[derive(Default)]
pub(super) struct Secrets {
    pub(super) all: Vec<SecretPlaces>,
    known: HashMap<String, usize>,
}

impl Secrets {
    /// Adds those of a file.
    pub(super) fn add(&mut self, report: &FileReport) {
        for finding in report.findings() {
            let Some(mark) = &finding.secret else { continue };
            let next = self.all.len();
            let at = *self.known.entry(mark.hash.clone()).or_insert(next);
            if at == next {
                self.all.push(SecretPlaces {
                    mark: SecretMark { times: 0, ..mark.clone() },
                    sessions: Vec::new(),
                });
            }
            self.all[at].add(&report.path, finding.line, mark.times);
        }
    }
}

impl SecretPlaces {
    fn add(&mut self, path: &str, line: u64, times: u64) {
        self.mark.times += times;
        match self.sessions.last_mut().filter(|last| last.path == path) {
            Some(last) => last.times += times,
            None => self.sessions.push(SecretSession { path: path.into(), line, times }),
        }
    }

    /// One line: what it is, how often, and where.
    pub(super) fn line(&self) -> String {
        let place =
            |session: &SecretSession| format!("{}:{}", plain(&shown(Path::new(&session.path))), session.line);
        let named: Vec<String> = self.sessions.iter().take(NAMED_MAX).map(place).collect();
        let more = self.sessions.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let sessions = plural(self.sessions.len() as u64, "session");
        format!("{} in {sessions}: {}{more}", self.mark, named.join(", "))
    }
}
