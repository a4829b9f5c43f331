//! M4: thinking whose signature covers everything before it.
//!
//! Not a fault of the transcript, but what every other fix that the model would see must respect: newer models
//! of Anthropic bind the signature of a thinking block to all earlier messages, and the API refuses the session
//! after an edit before it (docs/repair.md, "Signed thinking").

use super::base::{Cover, Found, Group, Help, Rule, RuleInfo, about};
use crate::format::{Format, Results};
use crate::model::entry::{Kind, QuirkKind, Role};
use crate::model::finding::{Finding, Fix, Held, Op, Safety, Severity};
use crate::model::overflow::Cause;
use crate::model::policy::SignedThinking;
use crate::model::transcript::Transcript;
use crate::session::Session;
use crate::session::failure::failure_of;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::ops::Range;
use spans::cut::measure;
use spans::literal::Unit;
use spans::source::{Fault, Source, Span};

pub(crate) const CODE: &str = "M4";

/// Parts of model names that are known not to bind their thinking to what comes before. Everything else counts
/// as binding: a session that stays large is better than one that is refused.
const NOT_BINDING: &[&str] = &[
    "claude-2",
    "claude-3",
    "claude-opus-4",
    "claude-sonnet-4",
    "claude-haiku-4",
    "claude-4",
    "<synthetic>",
    "gpt-",
    "codex",
    "gemini",
    "grok",
    "kimi",
    "minimax",
    "qwen",
    "deepseek",
    "glm-",
    "mistral",
    "llama",
];

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: CODE,
        name: "bound-thinking",
        help: Help {
            what: "A fix that the model would see comes before thinking blocks that are signed over everything before \
                   them, or such blocks were signed over a text that Tailor cut while the agent still had the whole \
                   text in memory.",
            why: "\"Invalid `signature` in `thinking` block. The block is bound to a different conversation.\" Newer \
                  Anthropic models bind their thinking; unknown models are taken to do so.",
            fix: "--thinking keep (the default) holds the fix back; strip removes the later thinking blocks of the \
                  branch whole, which the API accepts; ignore makes the fix all the same. Whatever the setting, \
                  thinking is removed where its signature is broken already: after a line that was lost, before an \
                  error for which the API refuses the session anyway, and where the last turn failed because of it.",
            source: "Anthropic documentation, preserved thinking; pydantic-ai #7984",
        },
        groups: &[Group::Content],
        recovers: true,
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    let strips = format.content.thinking && format.results.of_messages();
    if strips { Cover::Fixed } else { Cover::Never }
}

fn check(session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
    if session.format.results != Results::InConversation {
        out.extend(signed_over_other_text(session)?);
    }
    Ok(())
}

/// Thinking that was signed over something else than the file says now: the API has refused it, or it comes after one
/// of our markers, and the agent may still have had the whole text in memory.
fn signed_over_other_text(session: &Session<'_>) -> Result<Option<Finding>, Fault> {
    let mut bound = bound(session);
    if bound.is_empty() {
        return Ok(None);
    }
    let failure = failure_of(session)?;
    let refused = failure.is_some_and(|failure| failure.cause == Cause::InvalidThinking);
    if !refused && session.policy.thinking == SignedThinking::Ignore {
        return Ok(None);
    }
    let marker = first_marker(session)?;
    if marker.is_none() && !refused {
        return Ok(None);
    }
    // What came before all that was cut has kept its signature.
    bound.retain(|&entry| session.sequence(entry) > marker);
    let Some(&first) = bound.first() else { return Ok(None) };
    let ops = bound.iter().flat_map(|&entry| removal(session, entry).fix.ops).collect();
    let (thinking, asked) = (session.policy.thinking_in_force(), session.policy.thinking);
    let fix = if !refused && thinking != SignedThinking::Strip {
        Fix::held(if asked == SignedThinking::Strip { Held::RecentlyUsed } else { Held::Remembered })
    } else if bound.iter().all(|&entry| may_go(session, entry)) {
        Fix::safe(ops)
    } else {
        Fix::held(Held::Tangled)
    };
    let (severity, message) = if refused {
        (
            Severity::Error,
            "the API refuses this thinking: what comes before it is not what it was signed over",
        )
    } else {
        (Severity::Note, "this thinking comes after a text that Tailor cut")
    };
    Ok(Some(Finding { fix, ..about(&RULE, session, first, severity, message.to_string()) }))
}

/// Where the model first sees one of our markers.
fn first_marker(session: &Session<'_>) -> Result<Option<u32>, Fault> {
    if let Some(&known) = session.first_marker.get() {
        return Ok(known);
    }
    let mut first = None;
    for &entry in session.told().iter().filter(|&&entry| session.in_context(entry)) {
        if holds_marker(session.source, session.transcript, session.transcript.results_of(entry))? {
            first = session.sequence(entry);
            break;
        }
    }
    Ok(*session.first_marker.get_or_init(|| first))
}

/// Whether one of our markers stands in the texts of these results.
pub(crate) fn holds_marker(
    source: &dyn Source,
    transcript: &Transcript,
    results: Range<usize>,
) -> Result<bool, Fault> {
    for text in results.flat_map(|result| transcript.bodies_of(result)) {
        let known = text.length(Unit::Chars);
        if measure(source, text.inner, known, Unit::Chars, false)?.own.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether thinking that is appended cannot come after one of our markers, as far as is known.
pub(crate) fn is_uncut(session: &Session<'_>) -> bool {
    let asked = session.policy.selection.includes(CODE)
        && cover(session.format) != Cover::Never
        && session.format.results != Results::InConversation;
    !asked || session.first_marker.get() == Some(&None)
}

/// Holds fixes back that come before bound thinking, or adds the removal of that thinking.
pub(crate) enum Gate {
    /// Nothing is bound, or nobody minds.
    Open,
    /// Where a line is a whole conversation, what stands before its own thinking is bound, and nothing in other lines is.
    /// None of it is stripped: what would be left of the message is not noted.
    InConversations,
    Before(Bound),
}

/// The bound thinking of a conversation.
pub(crate) struct Bound {
    /// The entries that hold it and keep it for all that the rules say.
    entries: Vec<u32>,
    /// What this was told.
    known: Damage,
    /// What the findings have told so far.
    learnt: Damage,
    /// Nothing the model sees before this may change.
    fixed: Option<u32>,
    /// Thinking from there on is bound to something that is changed.
    unbound: Option<u32>,
}

/// What becomes of bound thinking whatever else is done. Places are in the order of the model.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    /// From where on no signature is valid any more: a line before was lost, or what comes before is refused as it is and
    /// cannot be mended without a change that the model sees.
    broken: Option<u32>,
    /// From where on the fix of a finding takes it out.
    gone: Option<u32>,
}

impl Damage {
    /// What was mended before has done.
    pub(crate) fn done(session: &Session<'_>, linked: &dyn Fn(u64) -> bool) -> Self {
        let mended = session.told().iter().filter(|&&entry| linked(session.entry(entry).span.start));
        let mended = mended.filter_map(|&entry| match session.entry(entry).kind {
            // What a compaction keeps comes first.
            Kind::Boundary => Some(0),
            _ => session.sequence(entry),
        });
        Self { broken: mended.min(), gone: None }
    }
}

impl Gate {
    /// `known` is the damage as far as it is known.
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

    /// What the findings say about the damage, if that was not known before them.
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
                if !is_of_links(finding) && bound.fixed.is_some_and(|fixed| at < fixed) {
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

    /// What takes the thinking out that is bound to what is changed.
    pub(crate) fn removals(&self, session: &Session<'_>) -> Vec<Finding> {
        let Self::Before(Bound { entries, known, unbound: Some(from), .. }) = self else { return Vec::new() };
        let later = |&&entry: &&u32| session.sequence(entry) >= Some(*from) && goes(session, *known, entry);
        entries.iter().filter(later).map(|&entry| removal(session, entry)).collect()
    }
}

impl Bound {
    /// Takes in what a fix that the model sees from `at` says about the damage.
    fn learn(&mut self, session: &Session<'_>, finding: &Finding, at: u32) {
        if finding.rule.code() == CODE {
            self.learnt.gone = self.learnt.gone.into_iter().chain([at]).min();
        }
        // A list is sent as it is; other agents may put calls and results right before they send them.
        let refused = finding.severity == Severity::Error && session.shape.sent_as_written;
        let broken = if is_of_links(finding) { Some(at) } else { refused.then_some(at + 1) };
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

/// Whether a finding is about a link to a line that was lost, or to a wrong one: the agent has not sent what is before
/// the link together with what is after it since.
fn is_of_links(finding: &Finding) -> bool {
    finding.rule.joins_unsent
}

/// Whether the model of a session binds its thinking; one without a name does if any of it is there.
pub(crate) fn binds(session: &Session<'_>) -> bool {
    let spoke = |&&entry: &&u32| session.entry(entry).kind == Kind::Message(Role::Assistant);
    let last = session.live.iter().rev().find(spoke);
    let model = last.map_or(&b""[..], |&last| session.transcript.id_text(session.entry(last).model));
    let binds = model_binds(model) && (!model.is_empty() || !bound(session).is_empty());
    binds && cover(session.format) != Cover::Never
}

/// Whether it matters what an agent remembers.
pub(crate) fn memory_matters(session: &Session<'_>) -> bool {
    session.policy.thinking != SignedThinking::Ignore && binds(session)
}

/// Whether the model sees what is fixed, and takes the session as it is.
pub(crate) fn is_remembered(session: &Session<'_>, finding: &Finding) -> bool {
    let is_taken = finding.severity < Severity::Error && !is_of_links(finding);
    is_taken && visible_from(session, finding).is_some()
}

/// The entries in context that hold bound thinking, in the order of the model.
pub(crate) fn bound(session: &Session<'_>) -> Vec<u32> {
    session.told().iter().copied().filter(|&entry| is_bound(session, entry)).collect()
}

fn hold_in_conversation(session: &Session<'_>, finding: &mut Finding) {
    let is_bound_at = |at: Span| {
        entry_at(session, at).is_some_and(|entry| {
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

/// Whether an entry in context holds thinking that is signed over all that comes before.
fn is_bound(session: &Session<'_>, entry: u32) -> bool {
    session.in_context(entry)
        && has_signed_thinking(session, entry)
        && model_binds(session.transcript.id_text(session.entry(entry).model))
}

/// Whether an entry holds thinking with a signature that could be valid. No provider takes any other, so that there is
/// nothing to lose.
fn has_signed_thinking(session: &Session<'_>, entry: u32) -> bool {
    let quirks = session.transcript.quirks_of(entry);
    let invalid = |block: Span| {
        let unsigned = |kind| matches!(kind, QuirkKind::Unsigned | QuirkKind::Altered);
        quirks.iter().any(|quirk| quirk.block == block && unsigned(quirk.kind))
    };
    session.transcript.thinking_of(entry).iter().any(|thinking| !invalid(thinking.block))
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

fn is_thinking_only(session: &Session<'_>, entry: u32) -> bool {
    session.transcript.calls_of(entry).is_empty() && session.entry(entry).text_chars == 0
}

/// Whether the thinking of an entry can be taken out.
fn may_go(session: &Session<'_>, entry: u32) -> bool {
    let thinking_only = is_thinking_only(session, entry);
    let stays = session.is_newest(entry) || session.shares_its_id(entry) || session.is_labelled(entry);
    let fixed = session.transcript.thinking_of(entry).iter().any(|thinking| thinking.fixed);
    !(fixed || session.is_pending(entry) || (thinking_only && stays))
}

fn removal(session: &Session<'_>, entry: u32) -> Finding {
    let blocks = session.transcript.thinking_of(entry);
    let ops = blocks.iter().map(|thinking| Op::DropBlock { entry, block: thinking.block }).collect();
    let message = format!("{} thinking blocks are bound to what is being changed", blocks.len());
    Finding { fix: Fix::safe(ops), ..about(&RULE, session, entry, Severity::Note, message) }
}

/// When the model would first see the fix; `None` if it would not.
fn visible_from(session: &Session<'_>, finding: &Finding) -> Option<u32> {
    if matches!(finding.fix.safety, Safety::None | Safety::Held(_)) {
        return None;
    }
    let keeps_more = |op: &Op| match *op {
        Op::Replace { at, .. } => {
            entry_at(session, at).is_some_and(|entry| session.entry(entry).kind == Kind::Boundary)
        }
        _ => false,
    };
    if finding.fix.ops.iter().any(keeps_more) {
        // The model would see more at the very beginning.
        return Some(0);
    }
    let touched = finding.fix.ops.iter().filter_map(|op| match *op {
        Op::Replace { .. } | Op::Cut { .. } if !finding.rule.model_sees => None,
        Op::Replace { at, .. } | Op::Cut { at, .. } => entry_at(session, at),
        Op::DropBlock { entry, .. } | Op::DropEntry(entry) => Some(entry),
        Op::Keep(_) | Op::Insert { .. } | Op::DropCopy(_) | Op::ToFront(_) => None,
        Op::Move { entry, after } => {
            session.place(entry).min(session.place(after)).map(|at| session.live[at])
        }
        Op::Answer(call) => Some(session.call(call).entry),
    });
    touched.filter(|&entry| session.in_context(entry)).filter_map(|entry| session.sequence(entry)).min()
}

/// The entry that holds these bytes inside, not merely at its edge.
pub(crate) fn entry_at(session: &Session<'_>, at: Span) -> Option<u32> {
    let entries = &session.transcript.entries;
    let after = entries.partition_point(|entry| entry.span.start < at.start);
    (after > 0 && at.end < entries[after - 1].span.end).then(|| after as u32 - 1)
}

/// Whether a model binds its thinking to what comes before.
pub(crate) fn model_binds(model: &[u8]) -> bool {
    let lower = model.to_ascii_lowercase();
    let openai = [&b"o1"[..], b"o3", b"o4"].iter().any(|name| lower.starts_with(name));
    !openai && !NOT_BINDING.iter().any(|part| memchr::memmem::find(&lower, part.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::model_binds;

    #[test]
    fn models_that_are_not_in_the_table_bind() {
        for model in ["claude-opus-5-5", "claude-fable-5", "", "something-new"] {
            assert!(model_binds(model.as_bytes()), "{model}");
        }
        for model in [
            "claude-opus-4-6",
            "us.anthropic.claude-3-7-sonnet",
            "anthropic/claude-sonnet-4.5",
            "gpt-5",
            "o3",
        ] {
            assert!(!model_binds(model.as_bytes()), "{model}");
        }
    }
}
