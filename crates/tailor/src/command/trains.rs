//! `tailor scan --for TRAINER`: which rows of a file a trainer would refuse or drop, and where in the row the reason is.

use crate::amount::{grouped, plural};
use crate::place::portable_text;
use crate::say::{out, print_json};
use crate::status::ExitStatus;
use crate::terminal::spelled_out;
use serde::Serialize;
use std::path::Path;
use transcript::contract::Reaction;
use transcript::contract::trainer::{RowObjection, RowsVerdict, Trainer};

/// How many rows with the same objection are named, to people.
const NAMED_MAX: usize = 8;

/// The groups of objections, as they are printed.
const GROUPS: &[(Reaction, &str)] =
    &[(Reaction::Refuses, "would be refused or dropped"), (Reaction::MayRefuse, "may be refused or dropped")];

/// Rows with the same objection.
struct SameObjection<'v> {
    objection: &'v RowObjection,
    rows: Vec<u64>,
}

/// Prints what a trainer makes of a file.
pub(super) fn tell(path: &Path, trainer: &Trainer, verdict: &RowsVerdict, json: bool) -> ExitStatus {
    let mut told: Vec<SameObjection<'_>> = Vec::new();
    for (row, objection) in &verdict.objections {
        match told.iter_mut().find(|own| own.objection == objection) {
            Some(own) => own.rows.push(*row),
            None => told.push(SameObjection { objection, rows: [*row].into() }),
        }
    }
    let status = if verdict.refused > 0 { ExitStatus::Findings } else { ExitStatus::Clean };
    if json {
        return status.max(print_json(&RowsLine::new(path, trainer, verdict, &told)));
    }
    let (path, title) = (spelled_out(&path.display().to_string()), trainer.title);
    let rows = plural(verdict.rows, "row");
    match (verdict.refused, told.is_empty()) {
        (0, true) => out(format_args!("{path}: {title} has no known objection to these {rows}\n")),
        (0, false) => out(format_args!("{path}: {title} may refuse or drop some of {rows}\n")),
        (refused, _) => {
            out(format_args!("{path}: {title} would refuse or drop {} of {rows}\n", grouped(refused)));
        }
    }
    for (reaction, title) in GROUPS {
        let mut of_group = told.iter().filter(|own| own.objection.reaction == *reaction).peekable();
        if of_group.peek().is_some() {
            out(format_args!("  {title}:\n"));
        }
        for SameObjection { objection, rows } in of_group {
            let RowObjection { place, what, source, .. } = objection;
            let place = if place.is_empty() { String::new() } else { format!("{}: ", spelled_out(place)) };
            let what = spelled_out(what);
            out(format_args!("    {}: {place}{what} [{source}]\n", named(rows)));
        }
    }
    status
}

/// Rows, as people read them.
fn named(rows: &[u64]) -> String {
    let (first, more) = (&rows[..rows.len().min(NAMED_MAX)], rows.len().saturating_sub(NAMED_MAX));
    let first = first.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    match more {
        0 if rows.len() == 1 => format!("row {first}"),
        0 => format!("rows {first}"),
        more => format!("rows {first} and {} more", grouped(more as u64)),
    }
}

/// A verdict as a line of JSON.
#[derive(Serialize)]
#[serde(tag = "type", rename = "rows")]
struct RowsLine<'v> {
    path: String,
    trainer: &'static str,
    verdict: &'static str,
    rows_total: u64,
    rows_refused: u64,
    row_objections: Vec<RowObjectionLine<'v>>,
}

#[derive(Serialize)]
struct RowObjectionLine<'v> {
    group: &'static str,
    about: &'static str,
    rows: &'v [u64],
    place: &'v str,
    what: &'v str,
    source: &'static str,
}

impl<'v> RowsLine<'v> {
    fn new(path: &Path, trainer: &Trainer, verdict: &RowsVerdict, told: &'v [SameObjection<'v>]) -> Self {
        let line = |SameObjection { objection, rows }: &'v SameObjection<'v>| RowObjectionLine {
            group: objection.reaction.word(),
            about: objection.about,
            rows,
            place: &objection.place,
            what: &objection.what,
            source: objection.source,
        };
        Self {
            path: portable_text(path),
            trainer: trainer.name,
            verdict: match (verdict.refused, told.is_empty()) {
                (0, true) => "no-objection",
                (0, false) => "may-be-refused",
                _ => "refused",
            },
            rows_total: verdict.rows,
            rows_refused: verdict.refused,
            row_objections: told.iter().map(line).collect(),
        }
    }
}
