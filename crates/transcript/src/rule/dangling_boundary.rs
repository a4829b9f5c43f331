//! T4: a compaction that keeps entries from one that does not exist.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about};
use crate::model::entry::{Kind, Link};
use crate::model::finding::{Finding, Fix, Guard, Held, Op, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use spans::literal::quote;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "T4",
        name: "dangling-boundary",
        help: Help {
            what: "The newest compaction keeps messages from an entry on that is not on the branch.",
            why: "pi then silently keeps nothing of what is before the compaction.",
            fix: "If the child of the lost entry exists, the compaction keeps entries from that one on. Otherwise, and \
                  only with --allow T4, from the first entry after the previous compaction. A pair that the boundary \
                  splits is P2.",
            source: "claude-code #49996; pi #4570, #8667",
        },
        stage: Stage::Links,
        groups: &[Group::Tree],
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.compactions_name_what_stays { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let boundary = session.live.iter().rposition(|&entry| session.kind(entry) == Kind::Boundary);
    let Some((place, boundary)) = boundary.map(|place| (place, session.live[place])) else {
        return Ok(());
    };
    let target = session.transcript.target_of(boundary);
    let Some(id) = target.id.filter(|id| Some(*id) != session.entry(boundary).id) else { return Ok(()) };
    if session.target(boundary).is_some_and(|target| session.is_live(target)) {
        return Ok(());
    }
    let before = &session.live[..place];
    let orphan = before.iter().find(|&&entry| session.entry(entry).parent == Link::To(id));
    let fix = match (orphan, session.is_cut_off()) {
        (Some(&orphan), _) if session.by_id(id).is_none() => keep_from(session, boundary, orphan),
        // The entry may reappear when the lines that hide it are repaired.
        (_, true) => Fix::held(Held::Tangled),
        _ => {
            let last = before.iter().rposition(|&entry| session.kind(entry) == Kind::Boundary);
            match before.get(last.map_or(0, |last| last + 1)) {
                Some(&first) => match keep_from(session, boundary, first) {
                    Fix { ops, .. } if !ops.is_empty() => Fix::guarded(Guard::Guesses, ops),
                    held => held,
                },
                None => Fix::NONE,
            }
        }
    };
    let message = "the first entry that the compaction keeps is not on the branch".to_string();
    out.push(Finding { fix, ..about(&RULE, session, boundary, Severity::Warning, message) });
    Ok(())
}

fn keep_from(session: &Session<'_>, boundary: u32, first: u32) -> Fix {
    let at = session.transcript.target_of(boundary).at;
    let text = session.entry(first).id.map(|id| session.transcript.ids.text(id));
    let Some(text) = text.filter(|text| !at.is_empty() && core::str::from_utf8(text).is_ok()) else {
        return Fix::held(Held::Tangled);
    };
    let mut with = Vec::new();
    quote(text, &mut with);
    Fix::safe(vec![Op::Replace { at, with }])
}
