//! M6: a thought signature of Gemini that was altered.

use super::base::{
    Cover, Feature, FindingSink, Group, Help, Repeats, Rule, RuleInfo, about, severity_in_context,
};
use crate::model::entry::{ContentIssue, ContentIssueKind};
use crate::model::finding::Severity;
use crate::session::Session;
use alloc::string::ToString;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "M6",
        name: "altered-thought",
        help: Help {
            what: "The thought signature of a call holds something that no signature can: a redaction or truncation mark.",
            why: "\"Corrupted thought signature.\", \"Function call is missing a thought_signature\".",
            fix: "None: nothing in the file can put a signature back, and without the call its result would be alone. Go on with another model.",
            source: "gemini-cli #13467, #26425",
        },
        groups: &[Group::Content],
        entry_decides: true,
        wakes: &[Feature::AlteredThought],
        repeats: Repeats::Once,
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.thoughts { Cover::Reported } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let altered = |issue: &&ContentIssue| {
        issue.kind == ContentIssueKind::AlteredThought && session.is_live(issue.entry)
    };
    // One finding for the whole file: whatever alters one signature alters all.
    if let Some(first) = session.transcript.issues().iter().find(altered) {
        let severity = severity_in_context(session, first.entry).min(Severity::Warning);
        let message = "from here on, thought signatures of calls were altered".to_string();
        out.push(about(&RULE, session, first.entry, severity, message));
    }
    Ok(())
}
