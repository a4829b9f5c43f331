//! What `tailor doctor` reports about sessions that their agents have lost: which index lacks them, and what to do.

use crate::amount::plural;
use crate::args::DoctorArgs;
use crate::place::portable_text;
use crate::sessions::{Candidate, ListedSession, is_called};
use crate::table::TableWriter;
use crate::terminal;
use keeper::{Lack, Stray, strays};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use transcript::format::Agent;

/// How many ids a sentence names.
const IDS_MAX: usize = 3;
/// An agent may not have entered a younger file in its index yet.
const AGE_MIN: Duration = Duration::from_secs(60);

/// The sessions that were seen.
#[derive(Default)]
pub(super) struct Strays {
    transcripts: Vec<(Agent, PathBuf)>,
    emptied: Vec<Stray>,
}

impl Strays {
    /// Records a file, and the session in it if it is one.
    pub(super) fn see(&mut self, candidate: &Candidate, session: Option<&ListedSession>) {
        if candidate.age() < AGE_MIN {
            return;
        }
        let unread = ListedSession::unknown(candidate);
        if session.is_none_or(|session| session.messages.all == 0 && !session.state.is_unread()) {
            self.emptied.extend(session.unwrap_or(&unread).emptied());
        }
        let agent = session.and_then(|session| session.agent).or(unread.agent);
        self.transcripts.extend(agent.map(|agent| (agent, unread.path)));
    }

    /// The sessions missing from an index or from disk, within the paths and the agent that the user named.
    pub(super) fn end(self, doctor: &DoctorArgs) -> Vec<Stray> {
        if doctor.project.is_some() {
            return Vec::new();
        }
        let mut found = strays(self.transcripts.iter().map(|(agent, path)| (*agent, path.as_path())));
        found.extend(self.emptied);
        let is_agent = |stray: &Stray, name: &str| is_called(Some(stray.agent), None, name);
        let is_below =
            |path: &Path| doctor.paths.is_empty() || doctor.paths.iter().any(|asked| path.starts_with(asked));
        found.retain(|stray| {
            is_below(&stray.path) && doctor.agent.as_deref().is_none_or(|name| is_agent(stray, name))
        });
        found.sort_by(|one, other| {
            (one.agent.name, one.lack, &one.id).cmp(&(other.agent.name, other.lack, &other.id))
        });
        found
    }
}

fn lack(lack: Lack) -> &'static str {
    match lack {
        Lack::Transcript => "no transcript",
        Lack::Entry => "not in index",
        Lack::Messages => "no messages",
    }
}

/// Prints a sentence about each agent and what is missing.
pub(super) fn print(found: &[Stray], out: &mut impl Write) -> io::Result<()> {
    let canvas = TableWriter::of_stdout();
    for alike in found.chunk_by(|one, other| (one.agent.name, one.lack) == (other.agent.name, other.lack)) {
        let (agent, count) = (alike[0].agent.name, plural(alike.len() as u64, "session"));
        let what = match alike[0].lack {
            Lack::Transcript => format!("{agent} has lost the transcript of {count}"),
            Lack::Entry => format!("{agent} does not list {count}"),
            Lack::Messages => format!("{agent} has left no message in {count}"),
        };
        let mut ids: Vec<&str> = alike.iter().take(IDS_MAX).map(|stray| stray.id.as_str()).collect();
        if alike.len() > IDS_MAX {
            ids.push("\u{2026}");
        }
        let sentence = format!("{what} ({}): {}.", ids.join(", "), alike[0].advice);
        writeln!(out, "{}", canvas.wrap(&sentence))?;
    }
    Ok(())
}

/// One line of `--json`.
#[derive(Serialize)]
struct StrayLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    agent: &'static str,
    id: &'a str,
    path: String,
    lacks: &'static str,
    remedy: &'static str,
}

pub(super) fn json(found: &[Stray], out: &mut impl Write) -> io::Result<()> {
    for Stray { agent, lack: lacks, advice, id, path } in found {
        let path = portable_text(path);
        let line =
            StrayLine { kind: "stray", agent: agent.name, id, path, lacks: lack(*lacks), remedy: advice };
        writeln!(out, "{}", terminal::json(&serde_json::to_string(&line)?))?;
    }
    Ok(())
}
