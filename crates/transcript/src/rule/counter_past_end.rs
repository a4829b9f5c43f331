//! T8: a file says of more messages than it holds that they were summed up.

use super::base::{Cover, Found, Group, Heals, Help, Rule, RuleInfo, about};
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
            what: "The first line counts more messages as summed up than there are (nanobot's `last_consolidated`): lines \
                   were taken out, and the counter was not.",
            why: "nanobot sends what stands behind that many messages, which is nothing: the bot has forgotten the talk.",
            fix: "None: how many of those that are left were summed up cannot be told. Stop the bot and set it by hand; 0 \
                  sends all of them. Tailor itself adds and removes no line where lines are counted.",
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

fn check(session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
    // What cannot be read may be a message.
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
