//! T1: an entry of the live branch hangs on one that is not there.

use super::{Cover, Help, Rule, Stage, about};
use crate::entry::{Kind, Link};
use crate::finding::{Finding, Fix, Guard, Held, Op, Safety, Severity};
use crate::format::{Format, Shape};
use crate::literal::quote;
use crate::session::Session;
use crate::source::Fault;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

pub(super) struct DanglingParent;

impl Rule for DanglingParent {
    fn code(&self) -> &'static str {
        "T1"
    }

    fn name(&self) -> &'static str {
        "dangling-parent"
    }

    fn help(&self) -> Help {
        Help {
            what: "An entry of the live branch names a parent that is not in the file, although others stand before it.",
            why: "Agents end the walk there without a word: the session resumes with its last messages alone.",
            fix: "It is linked to the entry before it, if nothing else hangs there: that is where it hung when a line between them \
                  was lost. Otherwise only with --allow T1. Summaries stay cut off, and so does the first entry of a file: forks \
                  begin so.",
            source: "claude-code #24304, #58554, #46603; qwen-code #6501",
        }
    }

    fn stage(&self) -> Stage {
        Stage::Links
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.shape().is_tree() { Cover::Fixed } else { Cover::Never }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        let mut due: Vec<u32> = dangling(session).collect();
        let mut seen = vec![false; session.transcript.entries.len()];
        while let Some(entry) = due.pop() {
            let before = nearest_before(session, entry);
            let fix = match before {
                None => continue,
                // Claude Code cuts a summary off on purpose.
                Some(_)
                    if session.format.shape() == Shape::Graph && session.entry(entry).kind == Kind::Note =>
                {
                    Fix::NONE
                }
                Some(before) => link(session, entry, before),
            };
            if let (Safety::Safe, Some(before)) = (fix.safety, before) {
                due.extend(hidden_behind(session, before, &mut seen));
            }
            let message = "its parent is not in the file".to_string();
            out.push(Finding { fix, ..about(&DanglingParent, session, entry, Severity::Warning, message) });
        }
        Ok(())
    }
}

/// The entries of the live branch whose parents are missing.
fn dangling<'s>(session: &'s Session<'_>) -> impl Iterator<Item = u32> + 's {
    session.live.iter().copied().filter(|&entry| is_dangling(session, entry))
}

fn is_dangling(session: &Session<'_>, entry: u32) -> bool {
    matches!(session.entry(entry).parent, Link::To(id) if session.by_id(id).is_none())
}

/// The entry that ends the way up from here, if its parent is missing: it comes into sight with a link to here, and where
/// many lines are lost, one after the other would take a round each.
fn hidden_behind(session: &Session<'_>, from: u32, seen: &mut [bool]) -> Option<u32> {
    let mut next = Some(from);
    let mut last = None;
    while let Some(at) = next.filter(|&at| !core::mem::replace(&mut seen[at as usize], true)) {
        (last, next) = (Some(at), session.parent(at));
    }
    last.filter(|&last| next.is_none() && is_dangling(session, last) && !session.is_live(last))
}

/// Of so many entries one is looked for that is no descendant.
const CANDIDATES_MAX: usize = 64;

/// The entry that was written last before this one, of the same conversation.
pub(super) fn nearest_before(session: &Session<'_>, entry: u32) -> Option<u32> {
    let aside = session.entry(entry).aside;
    let fits = |&before: &u32| {
        let found = session.entry(before);
        let spoken = found.kind != Kind::Leaf && found.kind != Kind::Header;
        found.id.is_some() && found.id != session.entry(entry).id && found.aside == aside && spoken
    };
    (0..entry).rev().filter(fits).take(CANDIDATES_MAX).find(|&before| !session.is_above(entry, before))
}

/// Links an entry to one before it.
pub(super) fn link(session: &Session<'_>, entry: u32, before: u32) -> Fix {
    let at = session.entry(entry).parent_at;
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
    // What the agent wrote last before has no child but where the conversation went elsewhere.
    let taken = (0..entry).any(|other| session.entry(other).parent == Link::To(id));
    if taken { Fix::guarded(Guard::Guesses, ops) } else { Fix::safe(ops) }
}
