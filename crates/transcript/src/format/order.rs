//! Who speaks when within a line that is a whole conversation: results that are not right behind their calls, the model
//! twice in a row, and nothing that it says at all.

use crate::model::draft::Draft;
use crate::model::entry::{ContentIssueKind, Kind, Role};
use core::ops::Range;
use spans::source::Span;

/// A message of the conversation.
pub(super) struct Turn {
    span: Span,
    of_model: bool,
    /// Results and nothing else.
    of_tools: bool,
    calls: Range<usize>,
    results: Range<usize>,
}

impl Turn {
    /// A message that was just read, behind so many calls and results.
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

/// Notes what is out of order. Where calls are not read, every message of the model may hold one.
pub(super) fn note(turns: &[Turn], calls_are_read: bool, trains: bool, draft: &mut Draft<'_>) {
    for (at, turn) in turns.iter().enumerate() {
        let asked = turns[..at].iter().rposition(|before| !before.of_tools);
        for result in turn.results.clone() {
            let answers = |at: usize| {
                let mut calls = turns[at].calls.clone();
                if calls_are_read {
                    calls.any(|call| draft.answers(result, call))
                } else {
                    turns[at].of_model
                }
            };
            if asked.is_some_and(answers) || answers(at) {
                continue;
            }
            if (0..at).any(answers) {
                draft.issue(ContentIssueKind::Displaced(result as u32), turn.span);
            } else if (at + 1..turns.len()).any(answers) {
                draft.issue(ContentIssueKind::Early(result as u32), turn.span);
            }
        }
    }
    if !trains {
        return;
    }
    for pair in turns.windows(2).filter(|pair| pair[0].of_model && pair[1].of_model) {
        draft.issue(ContentIssueKind::ModelAgain, pair[1].span);
    }
    if !turns.iter().any(|turn| turn.of_model) {
        draft.issue(ContentIssueKind::NothingToLearn, draft.entry.span);
    }
}
