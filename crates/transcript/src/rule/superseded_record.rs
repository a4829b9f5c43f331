//! S17: records that a later one with the same id has replaced.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about};
use crate::format::Shape;
use crate::model::entry::{Kind, Role};
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::model::ids::Id;
use crate::session::Session;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S17",
        name: "superseded-record",
        help: Help {
            what: "A message of the assistant or with results was written again with the same id, and only the last one counts.",
            why: "Gemini CLI writes a message anew at each step of its tool calls, results included, and reads all of \
                  them on every start; files have reached 54 MB this way.",
            fix: "Superseded records are removed. If another message came in between, the first one stays, because it \
                  determines the place.",
            source: "gemini-cli #26935, #26487; its chatRecordingService.ts",
        },
        groups: &[Group::DeadWeight],
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.shape == Shape::Upserts { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let mut records: BTreeMap<Id, Records> = BTreeMap::new();
    let mut places = 0;
    for (index, entry) in (0..).zip(&session.transcript.entries) {
        match (entry.kind, entry.id) {
            (Kind::Boundary | Kind::Leaf, _) => flush(session, &mut records, out),
            (kind, Some(id)) => {
                let known = records.entry(id).or_insert_with(|| {
                    places += 1;
                    Records { place: places, ..Records::default() }
                });
                known.all.push(index);
                known.crossed |= places > known.place;
                known.spoken |= !matches!(kind, Kind::Message(Role::Assistant | Role::Tool));
            }
            _ => {}
        }
    }
    flush(session, &mut records, out);
    Ok(())
}

/// The records with one id, up to where a rewind removes any.
#[derive(Default)]
struct Records {
    all: Vec<u32>,
    /// The position of the first one among all first records.
    place: usize,
    /// Another message comes before the last of them.
    crossed: bool,
    /// One of them is neither the assistant's nor a tool's.
    spoken: bool,
}

fn flush(session: &Session<'_>, records: &mut BTreeMap<Id, Records>, out: &mut FindingSink<'_>) {
    for found in core::mem::take(records).into_values().filter(|found| !found.spoken) {
        let Some((last, before)) = found.all.split_last() else { continue };
        let line = session.entry(*last).line;
        for &entry in before.iter().skip(usize::from(found.crossed)) {
            let message = format!("line {line} replaces it");
            let fix = Fix::safe(vec![Op::DropEntry(entry)]);
            out.push(Finding { fix, ..about(&RULE, session, entry, Severity::Note, message) });
        }
    }
}
