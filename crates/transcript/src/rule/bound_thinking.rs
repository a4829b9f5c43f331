//! M4: thinking whose signature covers everything before it.
//!
//! Newer models of Anthropic bind the signature of a thinking block to all earlier messages, and the API refuses the
//! session after an edit before the block (docs/repair.md, "Signed thinking"). The rule finds thinking that is already
//! invalid for this reason; [`crate::plan::thinking`] keeps the fixes of other rules from invalidating more.

use super::base::{Cover, FindingSink, Group, Heals, Help, Rule, RuleInfo, about};
use crate::format::{Format, Results};
use crate::model::entry::{ContentIssueKind, Kind, Role};
use crate::model::finding::{Finding, Fix, Held, Op, Severity};
use crate::model::overflow::Cause;
use crate::model::policy::SignedThinking;
use crate::model::transcript::Transcript;
use crate::session::Session;
use crate::session::failure::failure_of;
use alloc::format;
use alloc::string::ToString;
use core::ops::Range;
use spans::cut::measure;
use spans::literal::Unit;
use spans::source::{Fault, Source, Span};

pub(crate) const CODE: &str = "M4";

/// Parts of the names of models that are known not to bind thinking. All others count as binding: a session that stays
/// large is better than one that is refused.
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
        heals: Heals::Refusals,
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    let strips = format.content.thinking && format.results.of_messages();
    if strips { Cover::Fixed } else { Cover::Never }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    if session.format.results != Results::InConversation {
        out.extend(signed_over_other_text(session)?);
    }
    Ok(())
}

/// Thinking whose signature covers another text than the file has now: the API has refused it, or it comes after one of
/// our markers, and the agent may still have had the whole text in memory.
fn signed_over_other_text(session: &Session<'_>) -> Result<Option<Finding>, Fault> {
    let mut bound = bound(session).to_vec();
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
    // Thinking before the first marker is still valid.
    bound.retain(|&entry| session.sequence(entry) > marker);
    let Some(&first) = bound.first() else { return Ok(None) };
    let ops = bound.iter().flat_map(|&entry| removal(session, entry).fix.ops).collect();
    let (thinking, asked) = (session.case().thinking(), session.policy.thinking);
    let may_leave = if refused { may_go_broken } else { may_go };
    let fix = if !refused && thinking != SignedThinking::Strip {
        Fix::held(if asked == SignedThinking::Strip { Held::RecentlyUsed } else { Held::Remembered })
    } else if bound.iter().all(|&entry| may_leave(session, entry)) {
        Fix::safe(ops)
    } else {
        Fix::held(Held::Tangled)
    };
    let (severity, message) = if refused {
        (
            Severity::Error,
            "the API refuses this thinking: the text before it is not the text it was signed over",
        )
    } else {
        (Severity::Note, "this thinking comes after a text that Tailor cut")
    };
    Ok(Some(Finding { fix, ..about(&RULE, session, first, severity, message.to_string()) }))
}

/// The place where the model first sees one of our markers.
fn first_marker(session: &Session<'_>) -> Result<Option<u32>, Fault> {
    if let Some(&known) = session.first_marker.get() {
        return Ok(known);
    }
    let mut first = None;
    for &entry in session.model_order().iter().filter(|&&entry| session.in_context(entry)) {
        if holds_marker(session.source, session.transcript, session.transcript.results_of(entry))? {
            first = session.sequence(entry);
            break;
        }
    }
    Ok(*session.first_marker.get_or_init(|| first))
}

/// Whether one of our markers is in the texts of these results.
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

/// Whether appended thinking cannot come after one of our markers, as far as is known.
pub(crate) fn is_uncut(session: &Session<'_>) -> bool {
    let asked = session.policy.selection.includes(CODE)
        && cover(session.format) != Cover::Never
        && session.format.results != Results::InConversation;
    !asked || session.first_marker.get() == Some(&None)
}

/// Whether the session's model binds its thinking. If no model is named, whether there is any such thinking.
pub(crate) fn binds(session: &Session<'_>) -> bool {
    let spoke = |&&entry: &&u32| session.kind(entry) == Kind::Message(Role::Assistant);
    let last = session.live.iter().rev().find(spoke);
    let model = last.map_or(&b""[..], |&last| session.transcript.id_text(session.entry(last).model));
    let binds = model_binds(model) && (!model.is_empty() || !bound(session).is_empty());
    binds && cover(session.format) != Cover::Never
}

/// The entries in context that hold bound thinking, in model order.
pub(crate) fn bound<'s>(session: &'s Session<'_>) -> &'s [u32] {
    session.bound_thinking.get_or_init(|| {
        let order = session.model_order().iter().copied();
        order.filter(|&entry| is_bound(session, entry)).collect()
    })
}

/// Whether an entry in context holds thinking whose signature covers all earlier messages.
pub(crate) fn is_bound(session: &Session<'_>, entry: u32) -> bool {
    session.in_context(entry)
        && has_signed_thinking(session, entry)
        && model_binds(session.transcript.id_text(session.entry(entry).model))
}

/// Whether an entry holds thinking with a signature that could be valid. Providers refuse all other signatures, so
/// those cannot become invalid.
fn has_signed_thinking(session: &Session<'_>, entry: u32) -> bool {
    let issues = session.transcript.issues_of(entry);
    let invalid = |block: Span| {
        let unsigned = |kind| matches!(kind, ContentIssueKind::Unsigned | ContentIssueKind::Altered);
        issues.iter().any(|issue| issue.block == block && unsigned(issue.kind))
    };
    session.transcript.thinking_of(entry).iter().any(|thinking| !invalid(thinking.block))
}

pub(crate) fn is_thinking_only(session: &Session<'_>, entry: u32) -> bool {
    session.transcript.calls_of(entry).is_empty() && session.entry(entry).text_chars == 0
}

/// Whether the thinking of an entry can be removed.
pub(crate) fn may_go(session: &Session<'_>, entry: u32) -> bool {
    !session.is_pending(entry) && is_removable(session, entry)
}

/// Whether thinking whose signature is broken can be removed: every request with it is refused. It goes from the newest turn too,
/// even if that waits for a result: models that bind their thinking think adaptively, and take a turn without it (Anthropic
/// documentation, adaptive thinking and `drop_block`; not tried with the API). An agent that has the whole turn in memory is
/// waited for.
pub(crate) fn may_go_broken(session: &Session<'_>, entry: u32) -> bool {
    let may_run = session.is_pending(entry) && session.situation.hold_remembered;
    !may_run && is_removable(session, entry)
}

fn is_removable(session: &Session<'_>, entry: u32) -> bool {
    let thinking_only = is_thinking_only(session, entry);
    let stays = session.is_newest(entry) || session.shares_its_id(entry) || session.is_labelled(entry);
    let fixed = session.transcript.thinking_of(entry).iter().any(|thinking| thinking.fixed);
    !(fixed || (thinking_only && stays))
}

pub(crate) fn removal(session: &Session<'_>, entry: u32) -> Finding {
    let blocks = session.transcript.thinking_of(entry);
    let ops = blocks.iter().map(|thinking| Op::DropBlock { entry, block: thinking.block }).collect();
    let message = format!("{} thinking blocks are bound to what is being changed", blocks.len());
    Finding { fix: Fix::safe(ops), ..about(&RULE, session, entry, Severity::Note, message) }
}

/// Whether a model binds its thinking to earlier messages.
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
