//! Whether the findings of a look stay as they are when usual things are appended.

use super::reason::Reason;
use crate::format::Shape;
use crate::model::finding::{Finding, Guard, Held, Op, Safety, Severity};
use crate::model::policy::SignedThinking;
use crate::rule::bound_thinking;
use crate::session::Session;

#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub(super) struct Standing {
    /// There are findings.
    pub(super) any: bool,
    /// Some of their fixes that the model would see are made, or may be.
    pub(super) visible: bool,
    /// Some are about the newest turn.
    pub(super) in_turn: bool,
    /// Some fixes make ids up.
    pub(super) renames: bool,
    /// Thinking was found to come after a text that was cut: more of it changes nothing.
    pub(super) remembered: bool,
    /// No text was cut that thinking could come after.
    pub(super) uncut: bool,
}

impl Standing {
    /// What there is to be careful of. `floor` is the first entry that an append may have to do with; `open` says
    /// that calls wait for results.
    pub(super) fn of(
        session: &Session<'_>,
        findings: &[Finding],
        floor: u32,
        open: bool,
    ) -> Result<Self, Reason> {
        let uncut = bound_thinking::is_uncut(session);
        let mut standing = Self { any: !findings.is_empty(), uncut, ..Self::default() };
        for finding in findings {
            let safety = finding.fix.safety;
            let newest = [
                Safety::Held(Held::NewestTurn),
                Safety::Held(Held::SignedAndBroken),
                Safety::Guarded(Guard::NewestEntry),
            ];
            // What may go may depend on what is newest.
            let strip = session.policy.thinking_in_force() == SignedThinking::Strip && safety != Safety::None;
            let is_bound = finding.rule.code() == bound_thinking::CODE;
            standing.remembered |= is_bound;
            // Whether the API has refused thinking depends on how the last turn ended.
            let strip =
                strip || (is_bound && (safety == Safety::Safe || finding.severity == Severity::Error));
            let held = safety == Safety::Held(Held::RecentlyUsed) && finding.severity == Severity::Error;
            if newest.contains(&safety) || strip || held {
                return Err(Reason::Unsettled);
            }
            let in_turn = touched(session, finding).is_some_and(|entry| entry >= floor);
            if in_turn && (open || !is_told_by_itself(session, finding, floor)) {
                return Err(Reason::Unsettled);
            }
            standing.in_turn |= in_turn;
            let unseen = !finding.rule.model_sees;
            standing.visible |= !unseen && matches!(safety, Safety::Safe | Safety::Guarded(_));
            standing.renames |= finding.rule.makes_ids;
        }
        Ok(standing)
    }
}

/// The last entry that a finding has to do with.
fn touched(session: &Session<'_>, finding: &Finding) -> Option<u32> {
    let entries = &session.transcript.entries;
    let at = |at: u64| (entries.partition_point(|entry| entry.span.start <= at) as u32).checked_sub(1);
    let of_op = |op: &Op| match *op {
        Op::Replace { at: span, .. } | Op::Cut { at: span, .. } => at(span.end),
        Op::DropBlock { entry, .. } | Op::DropEntry(entry) | Op::DropCopy(entry) | Op::ToFront(entry) => {
            Some(entry)
        }
        Op::Move { entry, after } => Some(entry.max(after)),
        Op::Answer(call) => Some(session.call(call).entry),
        Op::Keep(_) | Op::Insert { .. } => None,
    };
    finding.fix.ops.iter().filter_map(of_op).chain(finding.entry).max()
}

/// Whether only the entry itself, and no later one of its turn, decides about the finding.
fn is_told_by_itself(session: &Session<'_>, finding: &Finding, floor: u32) -> bool {
    // In a graph the order of the turn's entries, and so what comes before signed thinking, may still change.
    let binds = |&entry: &u32| {
        entry >= floor
            && !session.transcript.thinking_of(entry).is_empty()
            && bound_thinking::model_binds(session.transcript.id_text(session.entry(entry).model))
    };
    let moves = session.format.shape() == Shape::Graph
        && session.policy.thinking_in_force() != SignedThinking::Ignore
        && session.live.iter().any(binds);
    finding.rule.entry_decides && (!finding.rule.model_sees || !moves)
}
