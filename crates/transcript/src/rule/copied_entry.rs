//! T5: the same entry twice.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about};
use crate::model::entry::Link;
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::read::salvage::LINE_BYTES_MAX;
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashMap;
use spans::source::{Fault, Span, read_span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "T5",
        name: "copied-entry",
        help: Help {
            what: "The file holds an entry twice under the same id, byte for byte or with another parent.",
            why: "It bloats the file; in pi a copy at the end moves the live branch back to where it was first written; in Claude \
                  Code chains can run in circles through it.",
            fix: "The later copy is removed. If the two differ only in their parents, the later one stays, because \
                  agents read that one, unless its parent does not exist. Entries with one id and different content \
                  are left alone.",
            source: "claude-code #5034, #48936, #40363; pi #3745",
        },
        stage: Stage::Lines,
        groups: &[Group::Tree],
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.shape.has_parents() { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    if !session.repeats_ids() {
        return Ok(());
    }
    let mut first: HashMap<crate::model::ids::Id, u32> = HashMap::new();
    let mut copies: Vec<u32> = Vec::new();
    for (index, entry) in (0..).zip(&session.transcript.entries) {
        let Some(id) = entry.id.filter(|_| session.shares_its_id(index)) else { continue };
        let Some(&known) = first.get(&id) else {
            first.insert(id, index);
            continue;
        };
        if !same(session, known, index)? {
            continue;
        }
        // An entry comes after its parent where it was first written.
        let lost = |entry: u32| match session.entry(entry).parent {
            Link::To(id) => first.get(&id).copied().or(session.by_id(id)).is_none_or(|parent| parent > entry),
            Link::Root | Link::Missing => false,
        };
        // Agents use the later copy, so its parent is the one they have.
        let moved = session.entry(known).parent != session.entry(index).parent;
        let gone = if !lost(index) && (moved || lost(known)) { known } else { index };
        first.insert(id, if gone == known { index } else { known });
        copies.push(gone);
    }
    let message = if is_appended_to_itself(session, &copies) {
        "duplicate entry: the file was appended to itself"
    } else {
        "duplicate entry"
    };
    for gone in copies {
        let fix = Fix::safe(vec![Op::DropCopy(gone)]);
        let about = about(&RULE, session, gone, Severity::Warning, message.to_string());
        out.push(Finding { fix, ..about });
    }
    Ok(())
}

/// Whether the copies are everything in the first half of the file that can be copied, and are in the second half.
fn is_appended_to_itself(session: &Session<'_>, copies: &[u32]) -> bool {
    let entries = &session.transcript.entries;
    let half = entries.len() / 2;
    let named = entries[..half].iter().filter(|entry| entry.id.is_some()).count();
    entries.len().is_multiple_of(2)
        && copies.len() == named
        && copies.len() > 1
        && copies.iter().all(|&copy| copy as usize >= half)
}

/// Whether two entries differ only in their parents.
fn same(session: &Session<'_>, one: u32, two: u32) -> Result<bool, Fault> {
    let short = |entry: u32| session.entry(entry).span.len() <= LINE_BYTES_MAX;
    Ok(short(one) && short(two) && around(session, one)? == around(session, two)?)
}

/// The bytes before and after the parent id of an entry.
fn around(session: &Session<'_>, entry: u32) -> Result<[Vec<u8>; 2], Fault> {
    let found = session.entry(entry);
    let parent = found.parent_at();
    let middle = if parent.is_empty() { Span::new(found.span.end, found.span.end) } else { parent };
    let read = |from, to| read_span(session.source, Span::new(from, to));
    Ok([read(found.span.start, middle.start)?, read(middle.end, found.span.end)?])
}
