//! T1: an entry of the live branch whose parent does not exist.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about};
use crate::format::Shape;
use crate::model::entry::{Kind, Link};
use crate::model::finding::{Finding, Fix, Guard, Held, Op, Safety, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use spans::literal::quote;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "T1",
        name: "dangling-parent",
        help: Help {
            what: "An entry of the live branch names a parent that is not in the file, although it is not the first entry.",
            why: "Agents end the walk there without a word: the session resumes with its last messages alone.",
            fix: "It is linked to the entry before it, if nothing else hangs there: that is where it hung when a line between them \
                  was lost. Otherwise only with --allow T1. Summaries stay cut off, and so does the first entry of a file: forks \
                  begin so. In the file of a subagent parents are in the main session's file, so nothing is linked there.",
            source: "claude-code #24304, #58554, #46603; qwen-code #6501",
        },
        stage: Stage::Links,
        groups: &[Group::Tree],
        joins_unsent: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.shape.has_parents() { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let mut due: Vec<u32> = dangling(session).collect();
    let mut seen = vec![false; session.transcript.entries.len()];
    while let Some(entry) = due.pop() {
        // Claude Code goes on there by itself, but older versions and other readers do not.
        let goes_on = session.parent(entry).filter(|_| session.format.shape == Shape::Graph);
        let before = goes_on.or_else(|| nearest_before(session, entry));
        let fix = match before {
            None => continue,
            Some(_) if is_summary(session, entry) => Fix::NONE,
            Some(before) if goes_on.is_some() => surely(link(session, entry, before)),
            Some(before) => link(session, entry, before),
        };
        if let (Safety::Safe, Some(before)) = (fix.safety, before) {
            due.extend(ancestor_without_parent(session, before, &mut seen));
        }
        let message = match session.entry(entry).parent {
            Link::Missing => "entry names no parent",
            _ => "parent is not in the file",
        };
        // What comes before is lost to the model, if the agent does not go on there by itself.
        let is_lost = fix.safety != Safety::Safe || session.transcript.in_database;
        let is_forgotten = goes_on.is_none() && before.is_some_and(|before| hides_a_message(session, before));
        let hides = (is_lost || is_forgotten) && !is_summary(session, entry);
        let severity = if hides { Severity::Error } else { Severity::Warning };
        out.push(Finding { fix, ..about(&RULE, session, entry, severity, message.to_string()) });
    }
    Ok(())
}

/// Whether an entry that is not loaded is a message, or comes after one.
fn hides_a_message(session: &Session<'_>, entry: u32) -> bool {
    if session.is_live(entry) {
        return false;
    }
    let mut up = core::iter::successors(Some(entry), |&entry| session.parent(entry)).take(CANDIDATES_MAX);
    up.any(|entry| matches!(session.kind(entry), Kind::Message(_)))
}

/// Whether Claude Code cut the branch off here on purpose, because the entry is a summary. Attachments are notes too,
/// but have no text.
fn is_summary(session: &Session<'_>, entry: u32) -> bool {
    let found = session.entry(entry);
    session.shape.notes_are_summaries && found.kind == Kind::Note && found.text_chars > 0
}

/// All entries of the main conversation whose parents are missing, live or not, but the first one: forks begin so.
pub(super) fn all_dangling<'s>(session: &'s Session<'_>) -> impl Iterator<Item = u32> + 's {
    let main =
        (0..).zip(&session.transcript.entries).filter(|(_, entry)| entry.id.is_some() && !entry.is_sidechain);
    let dangling = main.map(|(index, _)| index).filter(|&entry| is_dangling(session, entry));
    dangling.filter(|&entry| nearest_before(session, entry).is_some())
}

/// The entries of the live branch whose parents are missing.
fn dangling<'s>(session: &'s Session<'_>) -> impl Iterator<Item = u32> + 's {
    let live = session.live.iter().copied();
    live.filter(move |&entry| is_dangling(session, entry) && !is_subagents(session))
}

fn is_dangling(session: &Session<'_>, entry: u32) -> bool {
    match session.entry(entry).parent {
        Link::To(id) => session.by_id(id).is_none(),
        Link::Missing => lost_its_name(session, entry),
        Link::Root => false,
    }
}

/// Whether an entry of a graph names no parent, although each should, even if it is `null`, and the entry before it
/// does.
fn lost_its_name(session: &Session<'_>, entry: u32) -> bool {
    session.format.shape == Shape::Graph
        && nearest_before(session, entry).is_some_and(|before| session.entry(before).parent != Link::Missing)
}

/// Whether the file is a subagent's: the parents of its first entries are in the main session's file.
fn is_subagents(session: &Session<'_>) -> bool {
    session.transcript.entries.iter().all(|entry| entry.is_sidechain || entry.id.is_none())
}

/// The ancestor of `from` whose parent is missing. Linking `from` makes it visible, so it is repaired in the same
/// round; where many lines are lost, each would take a round of its own.
fn ancestor_without_parent(session: &Session<'_>, from: u32, seen: &mut [bool]) -> Option<u32> {
    let mut next = Some(from);
    let mut last = None;
    while let Some(at) = next.filter(|&at| !core::mem::replace(&mut seen[at as usize], true)) {
        (last, next) = (Some(at), session.parent(at));
    }
    last.filter(|&last| next.is_none() && is_dangling(session, last) && !session.is_live(last))
}

/// How many entries are tried to find one that is not a descendant.
const CANDIDATES_MAX: usize = 64;

/// The last entry before this one in the same conversation.
pub(super) fn nearest_before(session: &Session<'_>, entry: u32) -> Option<u32> {
    let is_sidechain = session.entry(entry).is_sidechain;
    let fits = |&before: &u32| {
        let found = session.entry(before);
        let spoken = found.kind != Kind::Leaf && found.kind != Kind::Header;
        found.id.is_some()
            && found.id != session.entry(entry).id
            && found.is_sidechain == is_sidechain
            && spoken
    };
    (0..entry).rev().filter(fits).take(CANDIDATES_MAX).find(|&before| !session.is_above(entry, before))
}

/// Makes a fix safe where it is no guess.
pub(super) fn surely(fix: Fix) -> Fix {
    if fix.ops.is_empty() { fix } else { Fix::safe(fix.ops) }
}

/// Links an entry to an earlier one.
pub(super) fn link(session: &Session<'_>, entry: u32, before: u32) -> Fix {
    let at = session.entry(entry).parent_at();
    let Some(id) = session.entry(before).id.filter(|_| !at.is_empty()) else {
        return Fix::held(Held::Tangled);
    };
    let text = session.transcript.ids.text(id);
    if core::str::from_utf8(text).is_err() || session.shares_its_id(before) || session.shares_its_id(entry) {
        return Fix::held(Held::Referenced);
    }
    let mut with = Vec::new();
    quote(text, &mut with);
    let ops = vec![Op::Replace { at, with }];
    // The entry that the agent wrote last has no children, unless the conversation took another branch there.
    let taken = (0..entry).any(|other| session.entry(other).parent == Link::To(id));
    if taken { Fix::guarded(Guard::Guesses, ops) } else { Fix::safe(ops) }
}
