//! T6: rows of another session.

use super::base::{Cover, Feature, FindingSink, Group, Help, Repeats, Rule, RuleInfo, about};
use crate::model::entry::{ContentIssue, ContentIssueKind};
use crate::model::finding::Severity;
use crate::session::Session;
use alloc::string::ToString;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "T6",
        name: "foreign-rows",
        help: Help {
            what: "Some rows belong to another session than the first one.",
            why: "`/resume` continued in the wrong file; each session is shown without the rows that are in the other \
                  file.",
            fix: "None: it is not known which of them belong here, and removing one would lose it from its own session \
                  as well.",
            source: "claude-code #30802, #36583",
        },
        groups: &[Group::Tree],
        wakes: &[Feature::Foreign],
        repeats: Repeats::Once,
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.names_session { Cover::Reported } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let foreign = |issue: &&ContentIssue| issue.kind == ContentIssueKind::Foreign;
    // One finding for the whole file: later rows usually belong to the other session as well.
    if let Some(first) = session.transcript.issues().iter().find(foreign) {
        let message = "from here on, the rows belong to another session".to_string();
        out.push(about(&RULE, session, first.entry, Severity::Note, message));
    }
    Ok(())
}
