//! M3: thinking that providers refuse.

use super::base::{Cover, Feature, FindingSink, Group, Help, Rule, RuleInfo, about, severity_in_context};
use super::removal::{only_if_asked, take_out_blocks};
use crate::format::Shape;
use crate::model::entry::{ContentIssueKind, Kind, Role, StopReason};
use crate::model::finding::{Finding, Guard, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec::Vec;
use spans::source::{Fault, Span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "M3",
        name: "invalid-thinking",
        help: Help {
            what: "A thinking block has no signature, or one that was altered, or it is the last block of its message.",
            why: "\"Invalid `signature` in `thinking` block\", \"The final block in an assistant message cannot be \
                  `thinking`\". Redaction of secrets and cut streams leave such blocks.",
            fix: "A block is removed whole or kept whole, never edited and never turned into text. Thinking that ends its \
                  message may be valid, so it goes only with --allow M3. An empty thinking text with a signature is normal.",
            source: "claude-code #63147, #10199; OpenClaw #43783, #39940; hermes-agent #24107",
        },
        groups: &[Group::Content],
        entry_decides: true,
        wakes: &[Feature::LoneThinking],
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.thinking { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for own in session.transcript.issues().chunk_by(|one, next| one.entry == next.entry) {
        let entry = own[0].entry;
        if !session.is_live(entry) {
            continue;
        }
        let of = |wanted: ContentIssueKind| -> Vec<Span> {
            own.iter().filter(|issue| issue.kind == wanted).map(|issue| issue.block).collect()
        };
        let (mut bad, altered) = (of(ContentIssueKind::Unsigned), of(ContentIssueKind::Altered));
        if !signs(session, entry) {
            bad.clear();
        }
        let severity = severity_in_context(session, entry);
        let severity = if altered.is_empty() { severity.min(Severity::Warning) } else { severity };
        bad.extend(altered);
        if !bad.is_empty() {
            let message = "thinking without a signature that could be valid".to_string();
            let fix = take_out_blocks(session, entry, &bad)?;
            out.push(Finding { fix, ..about(&RULE, session, entry, severity, message) });
        }
        let mut ends = of(ContentIssueKind::ThinkingLast);
        ends.retain(|block| !bad.contains(block));
        // A line that is a whole conversation may hold both kinds.
        let one = bad.is_empty() || session.is_whole_conversation(entry);
        if one && !ends.is_empty() && ends_its_turn(session, entry) {
            out.push(last(session, entry, &ends)?);
        }
    }
    Ok(())
}

/// Whether the model signs its thinking. If no model is named, it is assumed to.
fn signs(session: &Session<'_>, entry: u32) -> bool {
    let model = session.transcript.id_text(session.entry(entry).model);
    model.is_empty() || memchr::memmem::find(model, b"claude").is_some()
}

/// Whether an entry is the last of its message, and the message is complete.
pub(super) fn ends_its_turn(session: &Session<'_>, entry: u32) -> bool {
    session.is_last_of_turn(entry)
        && session.entry(entry).stop != StopReason::Aborted
        // The last line may still be followed by more of its message. Agents do not send failed turns.
        && (session.newest() != Some(entry) || is_over(session, entry, session.after(entry)))
}

/// Whether the message that ends the branch is complete: a tool has answered, unless each block is a line of its own,
/// or a user spoke after the message began.
fn is_over(session: &Session<'_>, entry: u32, after: &[u32]) -> bool {
    if session.format.shape != Shape::Graph {
        return after.iter().any(|&other| session.kind(other) == Kind::Message(Role::Tool));
    }
    let turn = session.turn(entry);
    let first = session.model_order().iter().copied().find(|&other| session.turn(other) == turn);
    first.is_some_and(|first| session.moved_on(first))
}

fn last(session: &Session<'_>, entry: u32, blocks: &[Span]) -> Result<Finding, Fault> {
    // Agents that use the file as a log leave such turns out, or have already continued after them.
    let is_sent = session.in_context(entry) && session.shape.sent_as_written;
    let severity = if is_sent { Severity::Error } else { Severity::Note };
    let message = "thinking that nothing follows".to_string();
    let fix = only_if_asked(take_out_blocks(session, entry, blocks)?, Guard::Thinking);
    Ok(Finding { fix, ..about(&RULE, session, entry, severity, message) })
}
