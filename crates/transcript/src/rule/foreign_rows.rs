//! T6: rows of another session.

use super::base::{Cover, Feature, Found, Group, Help, Repeats, Rule, RuleInfo, about};
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
            why: "`/resume` wrote on in the wrong file; each session is shown without what the other file holds of it.",
            fix: "None: which of them belong here is not known, and to take one out would lose it from its own session as well.",
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

fn check(session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
    let foreign = |issue: &&ContentIssue| issue.kind == ContentIssueKind::Foreign;
    // One finding for all: what follows mostly belongs there as well.
    if let Some(first) = session.transcript.issues().iter().find(foreign) {
        let message = "from here on, the rows belong to another session".to_string();
        out.push(about(&RULE, session, first.entry, Severity::Note, message));
    }
    Ok(())
}
