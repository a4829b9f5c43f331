//! Signed thinking: the pass that keeps fixes from breaking it, or removes it where they may.
//!
//! Newer models of Anthropic bind the signature of a thinking block to all earlier messages. This pass sees each finding
//! before it is taken: it holds a fix back that the model would see before thinking that stays, and at the end adds the
//! removal of the thinking that is bound to what changes. Which thinking is bound, [`crate::rule::bound_thinking`] says.

use crate::format::Results;
use crate::model::entry::Kind;
use crate::model::finding::{Finding, Fix, Held, Op, Safety, Severity};
use crate::model::policy::SignedThinking;
use crate::rule::bound_thinking::{CODE, binds, bound, is_bound, is_thinking_only, may_go, removal};
use crate::session::Session;
use alloc::vec::Vec;
use spans::source::Span;

/// Sees each finding of a look, in order.
pub(crate) enum ThinkingPass {
    /// Nothing is bound, or the policy ignores it.
    Open,
    /// Each line is a whole conversation: what stands before its own thinking is bound, and nothing in other lines is.
    /// None of it is stripped, because what would be left of the message is not noted.
    InConversations,
    Before(Bound),
}

/// The bound thinking of a conversation.
pub(crate) struct Bound {
    /// The entries that hold it, but for those from which a rule takes it out.
    entries: Vec<u32>,
    /// The damage known before the findings.
    known: Damage,
    /// The damage known after the findings so far.
    learnt: Damage,
    /// Nothing the model sees before this may change.
    fixed: Option<u32>,
    /// Thinking from there on is bound to something that is changed.
    unbound: Option<u32>,
}

/// Bound thinking that is broken or goes whatever else is done. Places are in the order of the model.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    /// From where on no signature is valid any more: a line before was lost, or what comes before is refused as it is and
    /// cannot be mended without a change that the model sees.
    broken: Option<u32>,
    /// From where on the fix of a finding takes it out.
    gone: Option<u32>,
}

impl Damage {
    /// The damage done by repairs of earlier stages.
    pub(crate) fn done(session: &Session<'_>, linked: &dyn Fn(u64) -> bool) -> Self {
        let mended = session.model_order().iter().filter(|&&entry| linked(session.entry(entry).span.start));
        let mended = mended.filter_map(|&entry| match session.entry(entry).kind {
            // What a compaction keeps comes first.
            Kind::Boundary => Some(0),
            _ => session.sequence(entry),
        });
        Self { broken: mended.min(), gone: None }
    }
}

impl ThinkingPass {
    /// Begins the pass; `known` is the damage as far as it is known.
    pub(crate) fn of(session: &Session<'_>, known: Damage) -> Self {
        if session.policy.thinking_in_force() == SignedThinking::Ignore {
            return Self::Open;
        }
        if session.format.results == Results::InConversation {
            return Self::InConversations;
        }
        let mut entries = bound(session);
        entries.retain(|&entry| known.gone.is_none_or(|gone| session.sequence(entry) < Some(gone)));
        if entries.is_empty() {
            return Self::Open;
        }
        let fixed = entries.iter().rev().find(|&&entry| !goes(session, known, entry));
        let fixed = fixed.and_then(|&entry| session.sequence(entry));
        Self::Before(Bound { entries, known, learnt: known, fixed, unbound: known.broken })
    }

    /// The damage that the findings show, if it was not known before them.
    pub(crate) fn news(&self) -> Option<Damage> {
        match self {
            Self::Before(bound) if bound.learnt != bound.known => Some(bound.learnt),
            _ => None,
        }
    }

    /// Holds the fix of a finding back if it comes before what is fixed; else says from where on it changes what thinking
    /// is bound to.
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

    /// A fix is made that changes what thinking from there on is bound to.
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
    /// Notes the damage that the fix of a finding shows; the model sees it from `at` on.
    fn learn(&mut self, session: &Session<'_>, finding: &Finding, at: u32) {
        if finding.rule.code() == CODE {
            self.learnt.gone = self.learnt.gone.into_iter().chain([at]).min();
        }
        // A list is sent as it is; other agents may put calls and results right before they send them.
        let refused = finding.severity == Severity::Error && session.shape.sent_as_written;
        let broken = if finding.rule.joins_unsent { Some(at) } else { refused.then_some(at + 1) };
        if session.policy.selection.applies(finding) {
            self.learnt.broken = self.learnt.broken.into_iter().chain(broken).min();
        }
    }
}

/// Whether the bound thinking of an entry is taken out where something before it changes.
fn goes(session: &Session<'_>, known: Damage, entry: u32) -> bool {
    let is_broken = known.broken.is_some_and(|broken| session.sequence(entry) >= Some(broken));
    (session.policy.thinking_in_force() == SignedThinking::Strip || is_broken) && may_go(session, entry)
}

fn why_held(session: &Session<'_>, finding: &Finding) -> Held {
    if session.policy.thinking != session.policy.thinking_in_force() {
        Held::RecentlyUsed
    } else if finding.severity == Severity::Error {
        Held::SignedAndBroken
    } else {
        Held::SignedThinking
    }
}

/// Whether it matters what an agent remembers.
pub(crate) fn memory_matters(session: &Session<'_>) -> bool {
    session.policy.thinking != SignedThinking::Ignore && binds(session)
}

/// Whether the model sees what is fixed, and takes the session as it is.
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

/// What to do about the bound thinking of these entries if something else is to come before them: the steps that take
/// it out, if the policy says so; `None` if it cannot stay and may not go.
pub(crate) fn unbind(session: &Session<'_>, entries: &[u32]) -> Option<Vec<Op>> {
    let mut ops = Vec::new();
    for &entry in entries.iter().filter(|&&entry| is_bound(session, entry)) {
        match session.policy.thinking_in_force() {
            SignedThinking::Ignore => {}
            SignedThinking::Strip if may_go(session, entry) => ops.extend(removal(session, entry).fix.ops),
            SignedThinking::Strip | SignedThinking::Keep => return None,
        }
    }
    Some(ops)
}

/// Whether nothing would be left of an entry without its bound thinking, and that is to go.
pub(crate) fn vanishes(session: &Session<'_>, entry: u32) -> bool {
    session.policy.thinking_in_force() == SignedThinking::Strip
        && is_bound(session, entry)
        && is_thinking_only(session, entry)
}

/// When the model would first see the fix; `None` if it would not.
fn visible_from(session: &Session<'_>, finding: &Finding) -> Option<u32> {
    if matches!(finding.fix.safety, Safety::None | Safety::Held(_)) {
        return None;
    }
    let keeps_more = |op: &Op| match *op {
        Op::Replace { at, .. } => {
            session.entry_around(at).is_some_and(|entry| session.entry(entry).kind == Kind::Boundary)
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
