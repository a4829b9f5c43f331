//! Sessions that are on the disk no more, and kept: what `doctor` and `explain` say of them.

use super::keep::{GenerationLine, gone, local};
use crate::amount::plural;
use crate::args::DoctorArgs;
use crate::config::Loaded;
use crate::place::shown_word;
use crate::sessions::Candidate;
use crate::table::TableWriter;
use crate::terminal::{self, Screen};
use keeper::{Archive, Generation, Stray, is_missing, real_path};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::PathBuf;

/// What `doctor` says of kept sessions.
#[derive(Default)]
pub(super) struct GoneSessions {
    /// The last generation of each, newest first.
    all: Vec<Generation>,
    /// Whether nothing is kept, and agents have lost sessions.
    is_wanted: bool,
}

impl GoneSessions {
    /// Those that are not among the sessions that were found, not even under another path.
    pub(super) fn find(doctor: &DoctorArgs, config: &Loaded, found: &[Candidate], lost: &[Stray]) -> Self {
        let archive = config.archive().ok().map(Archive::new);
        let Some(archive) = archive.filter(|_| doctor.agent.is_none() && doctor.project.is_none()) else {
            return Self::default();
        };
        let is_wanted = !lost.is_empty() && !archive.root().exists();
        let names: HashSet<_> = found.iter().filter_map(|session| session.path().file_name()).collect();
        let asked = doctor.paths.iter().map(|asked| real_path(asked).unwrap_or_else(|_| asked.clone()));
        let asked: Vec<PathBuf> = asked.collect();
        let mut all = gone(&archive);
        all.retain(|session| {
            let is_asked = asked.is_empty() || asked.iter().any(|asked| session.path.starts_with(asked));
            is_asked && session.path.file_name().is_none_or(|name| !names.contains(name))
        });
        all.sort_by_key(|session| Reverse(session.ended.map(|(ended, _)| ended)));
        Self { all, is_wanted }
    }

    pub(super) fn json(&self, out: &mut impl Write) -> io::Result<()> {
        for session in &self.all {
            let line = serde_json::to_string(&GenerationLine::of(session, None))?;
            writeln!(out, "{}", terminal::json(&line))?;
        }
        Ok(())
    }

    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let canvas = TableWriter::of_stdout();
        if self.is_wanted {
            let advice =
                "tailor watch --keep keeps what sessions become from now on, so that a lost one comes back.";
            writeln!(out, "{}", canvas.wrap(advice))?;
        }
        let Some(newest) = self.all.first() else { return Ok(()) };
        let count = plural(self.all.len() as u64, "session");
        let said = format!("Gone from the disk, and kept: {count} (tailor keep list --gone). The newest:");
        writeln!(out, "{}", canvas.wrap(&said))?;
        writeln!(out, "      {}", Screen::of_stdout().whole(&terminal::plain(&restore(newest))))
    }
}

/// The command that puts a session back.
fn restore(session: &Generation) -> String {
    format!("tailor keep restore {}", shown_word(&session.path))
}

/// A kept session that is gone and has one of these ids: what became of it, and the command that puts it back.
pub(super) fn kept_by_id(config: &Loaded, ids: &[&str]) -> Option<(String, String)> {
    let archive = Archive::new(config.archive().ok()?);
    let is_it = |session: &Generation| {
        let name = session.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        ids.iter().any(|id| name.contains(id))
    };
    let session = gone(&archive).into_iter().find(is_it)?;
    let became = match session.ended {
        Some((ended, end)) => format!("It was {} ({}), and is kept.", end.name(), local(ended)),
        None if is_missing(&session.path) => "It is on the disk no more, and is kept.".to_string(),
        None => "It is empty, and what it was is kept.".to_string(),
    };
    Some((became, restore(&session)))
}
