//! Whether calls and results on the live branch are as the APIs require, computed from the rows alone.

use super::reader::{FileObject, Speaker, Spoken, blocks, live};
use super::story::Dialect;
use std::collections::BTreeMap;

/// A call or a result that an API would refuse.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub line: u64,
    pub id: String,
    pub what: &'static str,
}

pub(crate) fn violations(dialect: Dialect, rows: &[FileObject]) -> Vec<Violation> {
    let live = live(dialect, rows);
    if dialect == Dialect::ClaudeCode { by_id(rows, &live) } else { in_order(&live) }
}

/// Whether the conversation continues after this place, so that no tool is running any more.
fn moved_on(live: &[Spoken], place: usize) -> bool {
    let group = &live[place].group;
    live[place + 1..].iter().any(|later| match later.kind {
        Speaker::User => true,
        Speaker::Assistant => later.group != *group,
        _ => false,
    })
}

/// The first item after a turn that is neither a result nor part of the turn.
fn closer(live: &[Spoken], place: usize) -> Option<Speaker> {
    let group = &live[place].group;
    let mut later = live[place + 1..].iter();
    let next = later.find(|later| match later.kind {
        Speaker::Quiet | Speaker::Tool => false,
        Speaker::Assistant => later.group != *group,
        Speaker::User | Speaker::Note | Speaker::Boundary => true,
    });
    next.map(|next| next.kind)
}

/// A call needs no result if its turn was interrupted, is the newest one, or is right before a compaction that leaves
/// it out.
fn excused(live: &[Spoken], place: usize) -> bool {
    let summed_up = closer(live, place) == Some(Speaker::Boundary) && !live[place].in_context;
    live[place].aborted || !moved_on(live, place) || summed_up
}

struct Open<'s> {
    id: &'s str,
    place: usize,
    partial: bool,
    answered: bool,
}

/// Results must come directly after the message with their calls.
fn in_order(live: &[Spoken]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut open: Vec<Open<'_>> = Vec::new();
    for (place, spoken) in live.iter().enumerate() {
        let violation = |id: &str, what| Violation { line: spoken.line, id: id.to_string(), what };
        for id in &spoken.results {
            match open.iter_mut().find(|call| call.id == id && !call.answered) {
                None => found.push(violation(id, "a result behind no call")),
                Some(call) => {
                    call.answered = true;
                    if call.partial && live[call.place].aborted {
                        found.push(violation(id, "a result of a call that was never finished"));
                    } else if spoken.in_context && !live[call.place].in_context {
                        found.push(violation(id, "a result whose call the compaction left out"));
                    }
                }
            }
        }
        if matches!(spoken.kind, Speaker::Quiet | Speaker::Tool) {
            continue;
        }
        close(live, &mut open, &mut found);
        let call = |id, partial| Open { id, place, partial, answered: false };
        open.extend(spoken.calls.iter().map(|id| call(id, false)));
        open.extend(spoken.partial.iter().map(|id| call(id, true)));
    }
    close(live, &mut open, &mut found);
    found
}

fn close(live: &[Spoken], open: &mut Vec<Open<'_>>, found: &mut Vec<Violation>) {
    for call in open.drain(..) {
        if !call.answered && !call.partial && !excused(live, call.place) {
            let line = live[call.place].line;
            found.push(Violation { line, id: call.id.to_string(), what: "a call without a result" });
        }
    }
}

/// Results find their calls wherever they are.
fn by_id(rows: &[FileObject], live: &[Spoken]) -> Vec<Violation> {
    let mut results: BTreeMap<&str, usize> = BTreeMap::new();
    for spoken in live {
        spoken.results.iter().for_each(|id| *results.entry(id).or_default() += 1);
    }
    let anywhere = |field: &str, id: &str| {
        let blocks = rows.iter().flat_map(|row| blocks(&row.value["message"]["content"]));
        blocks.filter(|block| block[field] == id).count()
    };
    let mut found = Vec::new();
    for (place, spoken) in live.iter().enumerate() {
        let mut note = |id: &String, what| found.push(Violation { line: spoken.line, id: id.clone(), what });
        for id in &spoken.calls {
            if anywhere("tool_use_id", id) == 0 && !excused(live, place) {
                note(id, "a call without a result");
            }
        }
        for id in &spoken.results {
            // A call off the branch also counts.
            match anywhere("id", id) {
                0 => note(id, "a result without a call"),
                calls if results[id.as_str()] > calls => note(id, "more results than calls"),
                _ => {}
            }
        }
    }
    found
}
