//! The order of messages within a line that is a whole conversation: results that are not directly after their calls,
//! two assistant messages in a row, and conversations without an assistant message.

use crate::model::draft::Draft;
use crate::model::entry::{ContentIssueKind, Kind, Role};
use core::ops::Range;
use spans::source::Span;

/// A message of the conversation.
pub(super) struct OrderedMessage {
    span: Span,
    of_model: bool,
    /// Only results.
    of_tools: bool,
    calls: Range<usize>,
    results: Range<usize>,
}

impl OrderedMessage {
    /// A message that was just read, given how many calls and results came before it.
    pub(super) fn read(span: Span, before: [usize; 2], draft: &Draft<'_>) -> Self {
        let [calls, results] = draft.pairs_so_far();
        let is = |role| draft.entry.kind == Kind::Message(role);
        Self {
            span,
            of_model: is(Role::Assistant),
            of_tools: is(Role::Tool),
            calls: before[0]..calls,
            results: before[1]..results,
        }
    }
}

/// Notes what is out of order. If calls are not recorded, every assistant message may hold one.
pub(super) fn note(messages: &[OrderedMessage], calls_are_read: bool, trains: bool, draft: &mut Draft<'_>) {
    for (at, message) in messages.iter().enumerate() {
        let asked = messages[..at].iter().rposition(|before| !before.of_tools);
        for result in message.results.clone() {
            let answers = |at: usize| {
                let mut calls = messages[at].calls.clone();
                if calls_are_read {
                    calls.any(|call| draft.answers(result, call))
                } else {
                    messages[at].of_model
                }
            };
            if asked.is_some_and(answers) || answers(at) {
                continue;
            }
            if (0..at).any(answers) {
                draft.issue(ContentIssueKind::Displaced(result as u32), message.span);
            } else if (at + 1..messages.len()).any(answers) {
                draft.issue(ContentIssueKind::Early(result as u32), message.span);
            }
        }
    }
    if !trains {
        return;
    }
    for pair in messages.windows(2).filter(|pair| pair[0].of_model && pair[1].of_model) {
        draft.issue(ContentIssueKind::ModelAgain, pair[1].span);
    }
    if !messages.iter().any(|message| message.of_model) {
        draft.issue(ContentIssueKind::NothingToLearn, draft.entry.span);
    }
}
