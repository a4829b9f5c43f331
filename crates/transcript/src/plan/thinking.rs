//! Signed thinking: the pass that holds back fixes that would break it, or removes it where the policy lets them.
//!
//! In newer models of Anthropic the signature of a thinking block covers all earlier messages: the thinking is *bound* to
//! them. This pass sees each finding before the survey takes it. It holds a fix back if the model would see the change
//! before bound thinking that stays, and at the end it adds findings that remove the thinking that is bound to a change.
//! [`crate::rule::bound_thinking`] says which thinking is bound.

use crate::format::Results;
use crate::model::entry::Kind;
use crate::model::finding::{Finding, Fix, Held, Op, Safety, Severity};
use crate::model::policy::SignedThinking;
use crate::rule::bound_thinking::{
    CODE, binds, bound, is_bound, is_thinking_only, may_go, may_go_broken, removal,
};
use crate::session::Session;
use alloc::vec::Vec;
use spans::source::Span;

/// What the pass does in a session. It sees the findings in the order of the rules.
pub(crate) enum ThinkingPass {
    /// Holds nothing back: no thinking is bound, or the policy ignores it.
    Open,
    /// Each line is a whole conversation: thinking is bound to what comes before it on its own line. It is never stripped,
    /// because a transcript does not say what would be left of such a message.
    InConversations,
    /// Holds back what comes before bound thinking.
    Before(Bound),
}

/// The bound thinking of a conversation.
pub(crate) struct Bound {
    /// The entries that hold it, except those from which a rule takes it out.
    entries: Vec<u32>,
    /// What was known to be broken before the rules ran.
    known: BrokenThinking,
    /// What is known to be broken, with what the findings so far have shown.
    learnt: BrokenThinking,
    /// The position of the last bound thinking that stays: nothing that the model sees before it may change.
    fixed: Option<u32>,
    /// The position from which on thinking is bound to something that a fix changes.
    unbound: Option<u32>,
}

/// The bound thinking that need not be kept, because it is invalid anyway or a rule takes it out. Positions are those of
/// [`Session::sequence`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BrokenThinking {
    /// From here on no signature is valid any more: a line before was lost, or what comes before is refused and cannot be
    /// repaired without a change that the model sees.
    invalid: Option<u32>,
    /// From here on the fix of a finding takes the thinking out.
    gone: Option<u32>,
}

impl BrokenThinking {
    /// What repairs of earlier stages have made invalid. `linked` says whether the link of the entry at an offset was
    /// repaired.
    pub(crate) fn done(session: &Session<'_>, linked: &dyn Fn(u64) -> bool) -> Self {
        let mended = session.model_order().iter().filter(|&&entry| linked(session.entry(entry).span.start));
        let mended = mended.filter_map(|&entry| match session.kind(entry) {
            // What a compaction keeps comes first.
            Kind::Boundary => Some(0),
            _ => session.sequence(entry),
        });
        Self { invalid: mended.min(), gone: None }
    }
}

impl ThinkingPass {
    /// Begins the pass with what is known to be broken.
    pub(crate) fn begin(session: &Session<'_>, known: BrokenThinking) -> Self {
        if session.case().thinking() == SignedThinking::Ignore {
            return Self::Open;
        }
        if session.format.results == Results::InConversation {
            return Self::InConversations;
        }
        let mut entries = bound(session).to_vec();
        entries.retain(|&entry| known.gone.is_none_or(|gone| session.sequence(entry) < Some(gone)));
        if entries.is_empty() {
            return Self::Open;
        }
        let fixed = entries.iter().rev().find(|&&entry| !goes(session, known, entry));
        let fixed = fixed.and_then(|&entry| session.sequence(entry));
        Self::Before(Bound { entries, known, learnt: known, fixed, unbound: known.invalid })
    }

    /// The thinking that all findings together show to be broken, if that is more than was known before.
    pub(crate) fn newly_broken(&self) -> Option<BrokenThinking> {
        match self {
            Self::Before(bound) if bound.learnt != bound.known => Some(bound.learnt),
            _ => None,
        }
    }

    /// Holds the fix of a finding back if the model sees it before thinking that stays. Otherwise returns the position from
    /// which on it changes what thinking is bound to.
    pub(crate) fn hold(&mut self, session: &Session<'_>, finding: &mut Finding) -> Option<u32> {
        match self {
            Self::Open => None,
            Self::InConversations => {
                hold_in_conversation(session, finding);
                None
            }
            Self::Before(bound) => {
                let at = visible_from(session, finding)?;
                bound.learn(session, finding, at);
                if !finding.rule.joins_unsent && bound.fixed.is_some_and(|fixed| at < fixed) {
                    finding.fix = Fix::held(why_held(session, finding));
                    return None;
                }
                Some(at + 1)
            }
        }
    }

    /// Notes that a fix is made that changes what thinking from there on is bound to.
    pub(crate) fn edits_from(&mut self, from: Option<u32>) {
        if let Self::Before(bound) = self {
            bound.unbound = bound.unbound.into_iter().chain(from).min();
        }
    }

    /// The findings that remove the thinking that is bound to what changes.
    pub(crate) fn removals(&self, session: &Session<'_>) -> Vec<Finding> {
        let Self::Before(Bound { entries, known, unbound: Some(from), .. }) = self else { return Vec::new() };
        let later = |&&entry: &&u32| session.sequence(entry) >= Some(*from) && goes(session, *known, entry);
        entries.iter().filter(later).map(|&entry| removal(session, entry)).collect()
    }
}

impl Bound {
    /// Notes what thinking a finding shows to be broken; the model sees its fix from `at` on.
    fn learn(&mut self, session: &Session<'_>, finding: &Finding, at: u32) {
        if finding.rule.code() == CODE {
            self.learnt.gone = self.learnt.gone.into_iter().chain([at]).min();
        }
        // A list is sent as it is; other agents may put calls and results right before they send them.
        let refused = finding.severity == Severity::Error && session.shape.sent_as_written;
        let invalid = if finding.rule.joins_unsent { Some(at) } else { refused.then_some(at + 1) };
        if session.policy.selection.applies(finding) {
            self.learnt.invalid = self.learnt.invalid.into_iter().chain(invalid).min();
        }
    }
}

/// Whether the bound thinking of an entry is taken out if something before it changes.
fn goes(session: &Session<'_>, known: BrokenThinking, entry: u32) -> bool {
    let is_invalid = known.invalid.is_some_and(|invalid| session.sequence(entry) >= Some(invalid));
    let strips = session.case().thinking() == SignedThinking::Strip;
    if is_invalid { may_go_broken(session, entry) } else { strips && may_go(session, entry) }
}

fn why_held(session: &Session<'_>, finding: &Finding) -> Held {
    if session.policy.thinking != session.case().thinking() {
        Held::RecentlyUsed
    } else if finding.severity == Severity::Error {
        Held::SignedAndBroken
    } else {
        Held::SignedThinking
    }
}

/// Whether it matters what an agent has in memory: it could sign its next thinking over the old text.
pub(crate) fn memory_matters(session: &Session<'_>) -> bool {
    session.policy.thinking != SignedThinking::Ignore && binds(session)
}

/// Whether the model sees what a fix changes, and accepts the session without it.
pub(crate) fn is_remembered(session: &Session<'_>, finding: &Finding) -> bool {
    let is_taken = finding.severity < Severity::Error && !finding.rule.joins_unsent;
    is_taken && visible_from(session, finding).is_some()
}

fn hold_in_conversation(session: &Session<'_>, finding: &mut Finding) {
    let is_bound_at = |at: Span| {
        session.entry_around(at).is_some_and(|entry| {
            let last = session.transcript.thinking_of(entry).last();
            is_bound(session, entry) && last.is_some_and(|thinking| thinking.block.start > at.start)
        })
    };
    let bound = finding.fix.ops.iter().any(|op| match *op {
        Op::Replace { at, .. } | Op::Cut { at, .. } => is_bound_at(at),
        Op::DropBlock { block, .. } => is_bound_at(block),
        _ => false,
    });
    if bound && visible_from(session, finding).is_some() {
        finding.fix = Fix::held(Held::SignedOnTheLine);
    }
}

/// The steps that take out the bound thinking of these entries, because something else will come before them; none if the
/// policy ignores it. `None` if it cannot stay and may not go.
pub(crate) fn unbind(session: &Session<'_>, entries: &[u32]) -> Option<Vec<Op>> {
    let mut ops = Vec::new();
    for &entry in entries.iter().filter(|&&entry| is_bound(session, entry)) {
        match session.case().thinking() {
            SignedThinking::Ignore => {}
            SignedThinking::Strip if may_go(session, entry) => ops.extend(removal(session, entry).fix.ops),
            SignedThinking::Strip | SignedThinking::Keep => return None,
        }
    }
    Some(ops)
}

/// Whether nothing would be left of an entry without its bound thinking, and that is to go.
pub(crate) fn vanishes(session: &Session<'_>, entry: u32) -> bool {
    session.case().thinking() == SignedThinking::Strip
        && is_bound(session, entry)
        && is_thinking_only(session, entry)
}

/// The first position at which the model would see the fix; `None` if it would not.
fn visible_from(session: &Session<'_>, finding: &Finding) -> Option<u32> {
    if matches!(finding.fix.safety, Safety::None | Safety::Held(_)) {
        return None;
    }
    let keeps_more = |op: &Op| match *op {
        Op::Replace { at, .. } => {
            session.entry_around(at).is_some_and(|entry| session.kind(entry) == Kind::Boundary)
        }
        _ => false,
    };
    if finding.fix.ops.iter().any(keeps_more) {
        // The model would see more at the very beginning.
        return Some(0);
    }
    let touched = finding.fix.ops.iter().filter_map(|op| match *op {
        Op::Replace { .. } | Op::Cut { .. } if !finding.rule.model_sees => None,
        Op::Replace { at, .. } | Op::Cut { at, .. } => session.entry_around(at),
        Op::DropBlock { entry, .. } | Op::DropEntry(entry) => Some(entry),
        Op::Keep(_) | Op::Insert { .. } | Op::DropCopy(_) | Op::ToFront(_) => None,
        Op::Move { entry, after } => {
            session.place(entry).min(session.place(after)).map(|at| session.live[at])
        }
        Op::Answer(call) => Some(session.call(call).entry),
    });
    touched.filter(|&entry| session.in_context(entry)).filter_map(|entry| session.sequence(entry)).min()
}
