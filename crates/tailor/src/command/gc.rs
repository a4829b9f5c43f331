//! `tailor gc`: deletes old originals from the vault, and the oldest if there are too many.

use super::CommandResult;
use crate::amount::{plural, size};
use crate::args::GcArgs;
use crate::say::{eprint_message, is_quiet, print_json};
use crate::status::ExitStatus;
use keeper::RunsToKeep;
use serde::Serialize;

/// The line of `--json`.
#[derive(Serialize)]
struct GcLine {
    #[serde(rename = "type")]
    kind: &'static str,
    outcome: &'static str,
    runs: u64,
    leftovers: u64,
    bytes: u64,
    damaged: u64,
    runs_kept: u64,
    bytes_kept: u64,
}

pub(crate) fn run(gc: &GcArgs) -> CommandResult {
    let vault = gc.config.load().and_then(|config| gc.vault.open(&config))?;
    let freed = vault.gc(RunsToKeep { age: gc.older_than, bytes: gc.max_size }, gc.dry_run)?;
    for error in &freed.errors {
        eprint_message(&format!("{error}; kept"));
    }
    let status = if freed.errors.is_empty() { ExitStatus::Clean } else { ExitStatus::Error };
    if gc.json.is_json() {
        let outcome = if gc.dry_run { "would-remove" } else { "removed" };
        let keeper::Freed { runs, leftovers, bytes, damaged, runs_kept, bytes_kept, .. } = freed;
        let line = GcLine { kind: "gc", outcome, runs, leftovers, bytes, damaged, runs_kept, bytes_kept };
        return Ok(status.max(print_json(&line)));
    }
    if is_quiet() && !gc.dry_run {
        return Ok(status);
    }
    let leftovers =
        if freed.leftovers > 0 { plural(freed.leftovers, "leftover") + ", " } else { String::new() };
    let aside = if freed.damaged > 0 {
        format!("; {} moved aside (*.damaged)", plural(freed.damaged, "damaged run"))
    } else {
        String::new()
    };
    println!(
        "{} {}, {leftovers}{}; kept {}, {}{aside}",
        if gc.dry_run { "would remove" } else { "removed" },
        plural(freed.runs, "run"),
        size(freed.bytes),
        plural(freed.runs_kept, "run"),
        size(freed.bytes_kept)
    );
    Ok(status)
}
