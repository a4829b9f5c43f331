//! `tailor scan --for PROVIDER`: whether a provider would accept a session as its history, and what it would not; of rows to train
//! on, `trains` says it.

use super::chunk::unread;
use super::{CommandResult, one_session, trains};
use crate::place::portable_text;
use crate::say::{out, print_json};
use crate::status::ExitStatus;
use crate::terminal::spelled_out;
use keeper::spool;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use transcript::contract::trainer::{self, RowsVerdict, Trainer};
use transcript::contract::{Objection, Reaction, Recorded, Target, Verdict, judge};
use transcript::{Fault, Reading, Source};

/// The groups of objections, as they are printed.
const GROUPS: &[(Reaction, &str)] = &[
    (Reaction::Refuses, "would be refused"),
    (Reaction::MayRefuse, "may be refused"),
    (Reaction::Loses, "would be lost"),
    (Reaction::Mended, "the agent itself repairs when it sends"),
];

pub(super) fn run(paths: &[PathBuf], target: &str, json: bool) -> CommandResult {
    let (door, trainer) = (Target::read(target), trainer::find(target));
    let mut status = ExitStatus::Clean;
    for path in paths {
        one_session(path, "read the conversation")?;
        let judge = |source: &dyn Source| judged(source, door.as_ref(), trainer);
        let judged = if path == Path::new("-") {
            spool(io::stdin().lock(), judge)
        } else {
            keeper::read(path, None, judge)
        };
        status = status.max(match judged.map_err(|stop| unread(path, &stop))? {
            Some(Judged::Session(target, verdict)) => tell(path, target, &verdict, json),
            Some(Judged::Rows(trainer, verdict)) => trains::tell(path, trainer, &verdict, json),
            None => return Err(not_judged(path, trainer.is_some()).into()),
        });
    }
    Ok(status)
}

/// What a provider makes of a session, or a trainer of what is none.
enum Judged<'t> {
    Session(&'t Target<'t>, Verdict),
    Rows(&'static Trainer, RowsVerdict),
}

fn judged<'t>(
    source: &dyn Source,
    door: Option<&'t Target<'t>>,
    trainer: Option<&'static Trainer>,
) -> Result<Option<Judged<'t>>, Fault> {
    if let Some(target) = door
        && let Some(verdict) = judge(&Reading::new(source)?, target)?
    {
        return Ok(Some(Judged::Session(target, verdict)));
    }
    let Some(trainer) = trainer else { return Ok(None) };
    Ok(trainer::judge(source, trainer)?.map(|verdict| Judged::Rows(trainer, verdict)))
}

fn not_judged(path: &Path, are_rows: bool) -> String {
    let path = path.display();
    if are_rows {
        format!(
            "{path}: could not read the rows: an array that is torn or too long; `jq -c '.[]'` makes lines of a whole one"
        )
    } else {
        format!("{path}: could not read the conversation: its lines are not those of one session")
    }
}

/// Prints what a provider makes of a session.
fn tell(path: &Path, target: &Target<'_>, verdict: &Verdict, json: bool) -> ExitStatus {
    let status = status(refusal_of(verdict));
    if json {
        return status.max(print_json(&VerdictLine::new(path, target, verdict)));
    }
    print(path, target, verdict);
    status
}

/// The worst of these reactions, if it is a refusal.
pub(super) fn refusal(reactions: impl Iterator<Item = Reaction>) -> Option<Reaction> {
    reactions.min().filter(|worst| matches!(worst, Reaction::Refuses | Reaction::MayRefuse))
}

/// The exit status of a refusal.
pub(super) fn status(refusal: Option<Reaction>) -> ExitStatus {
    if refusal == Some(Reaction::Refuses) { ExitStatus::Findings } else { ExitStatus::Clean }
}

/// A refusal, as programs read it.
pub(super) fn outcome(refusal: Option<Reaction>) -> &'static str {
    refusal.map_or("no-objection", Reaction::word)
}

fn refusal_of(verdict: &Verdict) -> Option<Reaction> {
    refusal(verdict.objections.iter().map(|objection| objection.reaction))
}

fn print(path: &Path, target: &Target<'_>, verdict: &Verdict) {
    let path = spelled_out(&path.display().to_string());
    let what = match refusal_of(verdict) {
        Some(Reaction::Refuses) => "would refuse this session",
        Some(_) => "may refuse this session",
        None => "has no known objection to this session",
    };
    out(format_args!("{path}: {} {what} ({} messages)\n", target.contract.title, verdict.messages));
    let own = |recorded: &Recorded| recorded.contract != Some(target.contract.name);
    for recorded in verdict.recorded.iter().filter(|recorded| own(recorded)) {
        let Recorded { provider, model, lines: [first, last], .. } = recorded;
        let who = spelled_out([provider.as_str(), model].join(" ").trim());
        out(format_args!("  lines {first} to {last} were answered by {who}\n"));
    }
    for (reaction, title) in GROUPS {
        let of_group: Vec<&Objection> =
            verdict.objections.iter().filter(|objection| objection.reaction == *reaction).collect();
        if of_group.is_empty() {
            continue;
        }
        let agent = verdict.agent.filter(|_| *reaction == Reaction::Mended);
        out(format_args!("  {title}{}:\n", agent.map_or_else(String::new, |agent| format!(" ({agent})"))));
        for objection in of_group {
            let Objection { line, count, what, source, .. } = objection;
            let times = if *count > 1 { format!(", {count} times") } else { String::new() };
            out(format_args!("    line {line}: {what}{times} [{source}]\n"));
        }
    }
}

/// A verdict as a line of JSON.
#[derive(Serialize)]
#[serde(tag = "type", rename = "contract")]
struct VerdictLine<'v> {
    path: String,
    contract: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    asked_model: &'v str,
    verdict: &'static str,
    request_messages_total: usize,
    answered_by: Vec<AnswererLine<'v>>,
    objections: Vec<ObjectionLine<'v>>,
}

#[derive(Serialize)]
struct AnswererLine<'v> {
    provider: &'v str,
    model: &'v str,
    #[serde(skip_serializing_if = "Option::is_none")]
    contract: Option<&'static str>,
    lines: [u64; 2],
}

#[derive(Serialize)]
struct ObjectionLine<'v> {
    group: &'static str,
    about: &'static str,
    line: u64,
    count: u64,
    what: &'v str,
    source: &'static str,
}

impl<'v> VerdictLine<'v> {
    fn new(path: &Path, target: &Target<'v>, verdict: &'v Verdict) -> Self {
        let answerer = |recorded: &'v Recorded| AnswererLine {
            provider: &recorded.provider,
            model: &recorded.model,
            contract: recorded.contract,
            lines: recorded.lines,
        };
        let line = |objection: &'v Objection| ObjectionLine {
            group: objection.reaction.word(),
            about: objection.about,
            line: objection.line,
            count: objection.count,
            what: &objection.what,
            source: objection.source,
        };
        Self {
            path: portable_text(path),
            contract: target.contract.name,
            asked_model: target.model,
            verdict: outcome(refusal_of(verdict)),
            request_messages_total: verdict.messages,
            answered_by: verdict.recorded.iter().map(answerer).collect(),
            objections: verdict.objections.iter().map(line).collect(),
        }
    }
}
