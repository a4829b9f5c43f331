//! `tailor prune`: takes rows out of databases that newer rows supersede, and makes the files smaller.

use super::CommandResult;
use crate::args::PruneArgs;

#[cfg(not(feature = "stores"))]
pub(crate) fn run(_: &PruneArgs) -> CommandResult {
    Err(crate::value::not_built_in("stores").into())
}

#[cfg(feature = "stores")]
pub(crate) use built_in::run;

#[cfg(feature = "stores")]
mod built_in {
    use super::{CommandResult, PruneArgs};
    use crate::amount::{plural, size};
    use crate::place::{portable_text, shown, shown_word};
    use crate::say::{eprint_message, hint, print_json};
    use crate::sessions::describe_error;
    use crate::status::ExitStatus;
    use crate::terminal::plain;
    use keeper::{Pruned, Stop, Vault, prune, store_file, vacuum};
    use serde::Serialize;
    use std::path::Path;

    /// One line of `--json`.
    #[derive(Serialize, Default)]
    struct Line {
        #[serde(rename = "type")]
        kind: &'static str,
        path: String,
        outcome: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        done: Option<Done>,
    }

    #[derive(Serialize)]
    struct Done {
        sessions: u64,
        rows: u64,
        bytes: u64,
        runs: u64,
        free_bytes: u64,
        size_after: u64,
        vacuumed: bool,
    }

    pub(crate) fn run(asked: &PruneArgs) -> CommandResult {
        let vault = asked.config.load().and_then(|config| asked.vault.open(&config))?;
        Ok(asked.paths.iter().map(|path| one(asked, path, &vault)).max().unwrap_or_default())
    }

    fn one(asked: &PruneArgs, path: &Path, vault: &Vault) -> ExitStatus {
        let pruned = prune(path, Some(vault).filter(|_| !asked.dry_run));
        let mut vacuumed = false;
        let (mut done, mut stopped) = match pruned {
            Ok(done) => (Some(done), None),
            Err(stop) => (None, Some(stop)),
        };
        if let Some(done) = done.as_mut().filter(|done| asked.vacuum && !asked.dry_run && done.free > 0) {
            match vacuum(path) {
                Ok(smaller) => {
                    vacuumed = true;
                    (done.size, done.free) = (smaller.size, smaller.free);
                }
                Err(stop) => stopped = Some(stop),
            }
        }
        let (reason, status) = match &stopped {
            None => (None, ExitStatus::Clean),
            Some(Stop::Failed(error)) => (Some(describe_error(path, error)), ExitStatus::Error),
            Some(Stop::Deferred(reason)) => (Some(reason.to_string()), ExitStatus::Findings),
            Some(Stop::Refused(reason)) => (Some(reason.to_string()), ExitStatus::Error),
        };
        if asked.json.is_json() {
            let outcome = outcome(asked, done.as_ref(), stopped.as_ref());
            let done = done.map(|done| Done {
                sessions: done.sessions,
                rows: done.rows,
                bytes: done.bytes,
                runs: done.runs.len() as u64,
                free_bytes: done.free,
                size_after: done.size,
                vacuumed,
            });
            let line = Line { kind: "pruned", path: portable_text(path), outcome, reason, done };
            return status.max(print_json(&line));
        }
        if let Some(done) = &done {
            say(asked, path, done, vacuumed);
        }
        if let Some(reason) = reason {
            let is_named = matches!(stopped, Some(Stop::Failed(_)));
            let what = if done.is_some() { "not made smaller: " } else { "not pruned: " };
            eprint_message(&if is_named { reason } else { format!("{}: {what}{reason}", path.display()) });
        }
        status
    }

    fn outcome(asked: &PruneArgs, done: Option<&Pruned>, stopped: Option<&Stop>) -> &'static str {
        match (stopped, done) {
            (Some(Stop::Deferred(_)), _) => "deferred",
            (Some(Stop::Refused(_)), _) => "refused",
            (Some(Stop::Failed(_)), _) => "error",
            (None, Some(done)) if done.rows == 0 => "clean",
            (None, _) if asked.dry_run => "would-remove",
            (None, _) => "removed",
        }
    }

    fn say(asked: &PruneArgs, path: &Path, done: &Pruned, vacuumed: bool) {
        let name = plain(&shown(path));
        let what = || {
            format!(
                "{} of {}, {}",
                plural(done.rows, "superseded row"),
                plural(done.sessions, "session"),
                size(done.bytes)
            )
        };
        let (how, undo) = match (done.rows, asked.dry_run) {
            (0, _) => ("no superseded rows".to_string(), String::new()),
            (_, true) => (format!("would remove {}", what()), String::new()),
            (_, false) => {
                (format!("removed {}", what()), format!(". Undo: tailor undo {}", shown_word(path)))
            }
        };
        let room = match (vacuumed, done.free) {
            (true, _) => format!("; the file is {} long now", size(done.size)),
            (false, 0) => String::new(),
            (false, free) => format!("; {} of its {} are free", size(free), size(done.size)),
        };
        println!("{name}: {how}{room}{undo}");
        if !vacuumed && !asked.vacuum && !asked.dry_run && done.free > 0 {
            let file = store_file(path).unwrap_or(path);
            hint(&format!(
                "free pages are used for what comes next; to make the file {} smaller: tailor prune --vacuum {}",
                size(done.free),
                shown_word(file)
            ));
        }
    }
}
