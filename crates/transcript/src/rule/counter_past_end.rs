//! T8: a file that claims to have summarised more messages than it holds.

use super::base::{Cover, FindingSink, Group, Heals, Help, Rule, RuleInfo, about};
use crate::model::entry::ContentIssueKind;
use crate::model::finding::Severity;
use crate::session::Session;
use alloc::format;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "T8",
        name: "counter-past-end",
        help: Help {
            what: "The first line says that more messages were summarised than there are (nanobot's `last_consolidated`): lines were \
                   removed, but the counter was not updated.",
            why: "nanobot sends the messages after that number, and there are none: the bot has forgotten the \
                  conversation.",
            fix: "None: it is not known how many of the remaining messages were summed up. Stop the bot and correct \
                  the number; with 0 it sends all of them. Tailor itself adds and removes no line where lines are \
                  counted.",
            source: "nanobot #2635, #1698; its session/manager.py",
        },
        groups: &[Group::Tree],
        heals: Heals::Always,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.counts_messages { Cover::Reported } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    // Unreadable lines may be messages.
    let records = session.transcript.entries.len() + session.transcript.damage.len();
    let messages = records.saturating_sub(1) as u64;
    for issue in session.transcript.issues() {
        if let ContentIssueKind::Counts(count) = issue.kind
            && count > messages
        {
            let message =
                format!("the file says that {count} messages were summarised, but it has only {messages}");
            out.push(about(&RULE, session, issue.entry, Severity::Warning, message));
        }
    }
    Ok(())
}
