//! T7: ordinals that are not consecutive.

use super::base::{Cover, Feature, FindingSink, Group, Help, Repeats, Rule, RuleInfo, about};
use crate::model::entry::{ContentIssue, ContentIssueKind};
use crate::model::finding::Severity;
use crate::session::Session;
use alloc::string::ToString;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "T7",
        name: "broken-ordinals",
        help: Help {
            what: "The ordinal of a record is not one more than that of the record before it.",
            why: "\"expected ordinal 24775, got 24774\": Codex before 0.154 does not resume the thread, or shows an old part of \
                  it. Later versions skip what is repeated, and note what is missing.",
            fix: "None: Codex's database counts these records too. Update Codex to 0.154 or later and resume the thread: 0.169 \
                  sends the whole conversation, whether an ordinal is repeated or missing. Do not renumber.",
            source: "codex #41079, #35746, #40630, #42369, #42378",
        },
        groups: &[Group::Tree],
        wakes: &[Feature::Ordinal],
        repeats: Repeats::Once,
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.ordinals.is_some() { Cover::Reported } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let breaks = |issue: &&ContentIssue| issue.kind == ContentIssueKind::Ordinal;
    // One finding for the whole file: after a wrong ordinal, most are wrong.
    if let Some(first) = session.transcript.issues().iter().find(breaks) {
        let message = "the ordinal does not continue from the record before".to_string();
        out.push(about(&RULE, session, first.entry, Severity::Warning, message));
    }
    Ok(())
}
