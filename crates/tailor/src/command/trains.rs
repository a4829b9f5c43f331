//! `tailor scan --for TRAINER`: which rows of a file a trainer would refuse or drop, and where in the row the reason is.

use super::accepts::{outcome, refusal, status};
use crate::amount::{grouped, plural};
use crate::place::portable_text;
use crate::say::{out, print_json};
use crate::status::ExitStatus;
use crate::terminal::spelled_out;
use serde::Serialize;
use std::collections::HashMap;
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
    let told = by_objection(verdict);
    let refusal = refusal(told.iter().map(|own| own.objection.reaction));
    let status = status(refusal);
    if json {
        return status.max(print_json(&RowsLine::new(path, trainer, verdict, outcome(refusal), &told)));
    }
    let (path, title) = (spelled_out(&path.display().to_string()), trainer.title);
    let rows = plural(verdict.rows, "row");
    let what = match refusal {
        None => format!("has no known objection to these {rows}"),
        Some(Reaction::Refuses) => format!("would refuse or drop {} of {rows}", grouped(verdict.refused)),
        Some(_) => format!("may refuse or drop some of {rows}"),
    };
    out(format_args!("{path}: {title} {what}\n"));
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

/// What is objected to, in the order in which it was found.
fn by_objection(verdict: &RowsVerdict) -> Vec<SameObjection<'_>> {
    let (mut all, mut known) = (Vec::new(), HashMap::new());
    for (row, objection) in &verdict.objections {
        let at = *known.entry(objection).or_insert(all.len());
        if at == all.len() {
            all.push(SameObjection { objection, rows: Vec::new() });
        }
        all[at].rows.push(*row);
    }
    all
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
    fn new(
        path: &Path,
        trainer: &Trainer,
        verdict: &RowsVerdict,
        outcome: &'static str,
        told: &'v [SameObjection<'v>],
    ) -> Self {
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
            verdict: outcome,
            rows_total: verdict.rows,
            rows_refused: verdict.refused,
            row_objections: told.iter().map(line).collect(),
        }
    }
}
