//! M4: thinking whose signature covers everything before it.
//!
//! Not a fault of the transcript, but what every other fix that the model would see must respect: newer models
//! of Anthropic bind the signature of a thinking block to all earlier messages, and the API refuses the session
//! after an edit before it (`reference/formats-claude-codex.md` C2).

use super::{Cover, Help, Rule, about};
use crate::entry::{Kind, QuirkKind};
use crate::finding::{Finding, Fix, Held, Op, Safety, Severity};
use crate::format::{Format, Results};
use crate::found::Found;
use crate::policy::SignedThinking;
use crate::session::Session;
use crate::source::{Fault, Span};
use alloc::format;
use alloc::vec::Vec;

pub(super) struct BoundThinking;

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

impl Rule for BoundThinking {
    fn code(&self) -> &'static str {
        CODE
    }

    fn name(&self) -> &'static str {
        "bound-thinking"
    }

    fn help(&self) -> Help {
        Help {
            what: "A fix that the model would see comes before thinking blocks that are signed over everything before \
                   them.",
            why: "\"Invalid `signature` in `thinking` block. The block is bound to a different conversation.\" Newer \
                  Anthropic models bind their thinking; unknown models are taken to do so.",
            fix: "--thinking keep (the default) holds the fix back; strip removes the later thinking blocks of the \
                  branch whole, which the API accepts; ignore makes the fix all the same.",
            source: "Anthropic documentation, preserved thinking; pydantic-ai #7984",
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        let strips = format.content().thinking && format.results().of_messages();
        if strips { Cover::Fixed } else { Cover::Never }
    }

    fn check(&self, _: &Session<'_>, _: &mut Found<'_>) -> Result<(), Fault> {
        Ok(())
    }
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
    why: Held,
    entries: Vec<u32>,
    /// Nothing the model sees before this may change.
    fixed: Option<u32>,
    /// What is made that the model sees first.
    first_edit: Option<u32>,
}

impl Gate {
    pub(crate) fn of(session: &Session<'_>) -> Self {
        let thinking = session.policy.thinking_in_force();
        if thinking == SignedThinking::Ignore {
            return Self::Open;
        }
        if session.format.results() == Results::InConversation {
            return Self::InConversations;
        }
        let entries: Vec<u32> =
            session.told().iter().copied().filter(|&entry| is_bound(session, entry)).collect();
        let strip = thinking == SignedThinking::Strip;
        // Before what cannot be removed nothing may change; before the rest nothing may if it is to be kept.
        let fixed = entries.iter().rev().find(|&&entry| !strip || !may_go(session, entry));
        let Some(fixed) = entries.last().map(|_| fixed.and_then(|&entry| session.sequence(entry))) else {
            return Self::Open;
        };
        let why = if session.policy.thinking == thinking { Held::SignedThinking } else { Held::RecentlyUsed };
        Self::Before(Bound { why, entries, fixed, first_edit: None })
    }

    /// Holds the fix of a finding back if it comes before what is fixed; else says from where the model would see it.
    pub(crate) fn hold(&self, session: &Session<'_>, finding: &mut Finding) -> Option<u32> {
        match self {
            Self::Open => None,
            Self::InConversations => {
                hold_in_conversation(session, finding);
                None
            }
            Self::Before(bound) => {
                let at = visible_from(session, finding)?;
                // What was signed before a line was lost is signed over that line: the damage has broken it already.
                if finding.rule.code() != "T1" && bound.fixed.is_some_and(|fixed| at < fixed) {
                    finding.fix = Fix::held(bound.why);
                    return None;
                }
                Some(at)
            }
        }
    }

    /// A fix is made that the model sees from there.
    pub(crate) fn edits_from(&mut self, at: Option<u32>) {
        if let Self::Before(bound) = self {
            bound.first_edit = bound.first_edit.into_iter().chain(at).min();
        }
    }

    /// What takes the thinking out that is bound to what is changed.
    pub(crate) fn removals(&self, session: &Session<'_>) -> Vec<Finding> {
        let Self::Before(Bound { entries, first_edit: Some(first), .. }) = self else { return Vec::new() };
        let later = entries.iter().filter(|&&entry| session.sequence(entry) > Some(*first));
        later.map(|&entry| removal(session, entry)).collect()
    }
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
    Finding { fix: Fix::safe(ops), ..about(&BoundThinking, session, entry, Severity::Note, message) }
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
        Op::Cut { .. } if finding.rule.code() == "S5" => None,
        // The agent sends the same characters before and afterwards.
        Op::Replace { .. } if ["B4", "B6", "P12"].contains(&finding.rule.code()) => None,
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
