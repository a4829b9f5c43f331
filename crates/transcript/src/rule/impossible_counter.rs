//! T11: a token count that no request can have had.

use super::base::{Cover, FindingSink, Group, Heals, Help, Rule, RuleInfo, about};
use super::removal::{only_if_asked, take_out};
use crate::model::entry::ContentIssueKind;
use crate::model::finding::{Finding, Guard, Severity};
use crate::session::Session;
use alloc::string::ToString;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "T11",
        name: "impossible-counter",
        help: Help {
            what: "Codex's newest count says that the last request had more than twice as many tokens as the model's window \
                   takes.",
            why: "Codex relies on that count when the session is resumed: it compacts at once, and again each time.",
            fix: "With --allow T11 the count is removed, and Codex uses the one before.",
            source: "codex #24089, #24544",
        },
        groups: &[Group::Tree],
        model_sees: false,
        heals: Heals::Always,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.counts_tokens { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let Some(newest) = session.transcript.token_counts else { return Ok(()) };
    let issues = session.transcript.issues_of(newest);
    if issues.iter().any(|issue| issue.kind == ContentIssueKind::Impossible) {
        let message = "more than twice as many tokens as the window takes".to_string();
        let fix = only_if_asked(take_out(session, newest), Guard::ChangesLineCount);
        out.push(Finding { fix, ..about(&RULE, session, newest, Severity::Warning, message) });
    }
    Ok(())
}
