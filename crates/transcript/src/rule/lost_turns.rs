//! T12: finished turns that are on no branch, although nobody rewound.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about};
use super::dangling_parent::{link, surely};
use crate::model::entry::{Kind, Role, Service, StopReason};
use crate::model::finding::{Finding, Fix, Guard, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "T12",
        name: "lost-turns",
        help: Help {
            what: "Finished turns are on no branch although nobody rewound: a record that came late, of a failed request or of a \
                   hook, names an earlier parent, and the conversation went on from there (Claude Code).",
            why: "The agent walks up from the newest record, so it resumes without these turns and says nothing.",
            fix: "The late record is linked to the last record of these turns, which brings all of them back. Where the \
                  conversation went on from another kind of record, only with --allow T12. As long as this is not repaired, no \
                  history is taken out as abandoned.",
            source: "measured with Claude Code 2.1.332: 3 of 6 messages sent after a late api_error, 3 of 18 calls after hooks' progress",
        },
        stage: Stage::Links,
        groups: &[Group::Tree],
        joins_unsent: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.any_record_is_leaf { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for Fork { late, tip, is_sure } in forks(session) {
        let fix = surely(link(session, late, tip));
        let is_guess = !is_sure && !fix.ops.is_empty();
        let fix = if is_guess { Fix::guarded(Guard::Guesses, fix.ops) } else { fix };
        let message =
            "finished turns before this record are on no branch, although nobody rewound".to_string();
        out.push(Finding { fix, ..about(&RULE, session, late, Severity::Error, message) });
    }
    Ok(())
}

/// Whether there are turns that may be lost.
pub(super) fn are_possible(session: &Session<'_>) -> bool {
    !forks(session).is_empty()
}

/// A place at which the conversation left turns behind.
struct Fork {
    /// The record at which it went on.
    late: u32,
    /// The last record of the turns.
    tip: u32,
    /// Only one repair is possible.
    is_sure: bool,
}

fn forks(session: &Session<'_>) -> Vec<Fork> {
    if !session.format.any_record_is_leaf {
        return Vec::new();
    }
    let chain = session.path(session.ends.tip);
    let beside = Beside::from_chain(session, &chain);
    chain.windows(2).filter_map(|two| beside.fork(session, two[0], two[1])).collect()
}

/// What descends from the chain of the leaf without being part of it.
struct Beside {
    /// Each with the entry of the chain that it descends from, sorted.
    rows: Vec<(u32, u32)>,
    /// All records of the main conversation, in the order of the file.
    all: Vec<u32>,
}

impl Beside {
    fn from_chain(session: &Session<'_>, chain: &[u32]) -> Self {
        let count = session.transcript.entries.len();
        let (mut anchors, mut on_chain) = (vec![None; count], vec![false; count]);
        for &entry in chain {
            (anchors[entry as usize], on_chain[entry as usize]) = (Some(entry), true);
        }
        let is_row = |&entry: &u32| session.entry(entry).id.is_some() && !session.entry(entry).is_sidechain;
        let all: Vec<u32> = (0..count as u32).filter(is_row).collect();
        let mut rows = Vec::new();
        // A parent is nearly always on a line before; what descends from a later one is left out.
        for &entry in all.iter().filter(|&&entry| !on_chain[entry as usize]) {
            anchors[entry as usize] = session.parent(entry).and_then(|parent| anchors[parent as usize]);
            rows.extend(anchors[entry as usize].map(|anchor| (anchor, entry)));
        }
        rows.sort_unstable();
        Self { rows, all }
    }

    /// The fork between an entry of the chain and the next one, if turns were left there without rewinding.
    fn fork(&self, session: &Session<'_>, from: u32, late: u32) -> Option<Fork> {
        let before = |place: (u32, u32)| self.rows.partition_point(|&row| row < place);
        let left = self.rows.get(before((from, from))..before((from, late)))?;
        let &(_, tip) = left.last()?;
        // Somebody who rewinds says something else instead.
        let asks = session.kind(late) == Kind::Message(Role::User) && !session.entry(late).injected;
        let open = |entry: u32| {
            session.transcript.calls_of(entry).any(|call| session.result_of(call as u32).is_none())
        };
        if asks || left.iter().any(|&(_, entry)| open(entry)) {
            return None;
        }
        let ended = left.iter().filter(|&&(_, entry)| ends(session, entry));
        let up = core::iter::successors(Some(tip), |&entry| session.parent(entry));
        let up = up.take_while(|&entry| entry != from);
        let (count, above) = (ended.count(), up.filter(|&entry| ends(session, entry)).count());
        // The record that was written next is the late one, and all that ended is above the last one before it.
        let newest = self.all.partition_point(|&entry| entry < late).checked_sub(1).map(|at| self.all[at]);
        let is_late = matches!(session.entry(late).service, Service::Progress | Service::Retry);
        (count > 0).then_some(Fork { late, tip, is_sure: newest == Some(tip) && count == above && is_late })
    }
}

/// Whether a turn that is not sent ended with an entry. Versions before 2.1.97 do not say why the model stopped.
fn ends(session: &Session<'_>, entry: u32) -> bool {
    let found = session.entry(entry);
    let may_end = matches!(found.stop, StopReason::Done | StopReason::Unknown);
    let says = found.text_chars > 0 && session.transcript.calls_of(entry).is_empty();
    found.kind == Kind::Message(Role::Assistant) && may_end && says && !session.is_live(entry)
}
