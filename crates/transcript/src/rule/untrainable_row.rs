//! D1 to D4: rows of data sets that a trainer refuses, drops or learns nonsense from. They are only reported: nobody
//! but the owner knows what a row should say.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about, about_call};
use crate::format::Format;
use crate::model::entry::ContentIssueKind;
use crate::model::finding::{Finding, Severity};
use crate::session::Session;
use alloc::string::ToString;
use spans::json::{self, ValueKind as Json};
use spans::literal;
use spans::source::{Fault, Span, read_span};

const REPORTED: &str =
    "None: nobody but its owner knows what the row should say. Take the line out, or make the row anew.";

pub(super) static ARGUMENTS: Rule = Rule {
    info: RuleInfo {
        code: "D1",
        name: "unreadable-arguments",
        help: Help {
            what: "The arguments of a call in a row of a data set are not a JSON object.",
            why: "The row is refused or dropped, or ends the run in the middle: \"contains invalid schema\", \
                  \"JSONDecodeError\". The model learns cut-off calls as the way to call the tool.",
            fix: REPORTED,
            source: "benchflow #848, trl #4881, fine-tuning #23",
        },
        ..INFO
    },
    cover: |format| {
        if in_rows(format) && format.arguments.is_some() { Cover::Reported } else { Cover::Never }
    },
    check: arguments,
};

pub(super) static UNDECLARED: Rule = Rule {
    info: RuleInfo {
        code: "D2",
        name: "undeclared-tool",
        help: Help {
            what: "A row of a data set calls a tool that is not in its list of tools.",
            why: "The row is refused, or the model learns to call tools that do not exist.",
            fix: REPORTED,
            source: "fine-tuning #23, SkyRL #1675",
        },
        ..INFO
    },
    cover: |format| {
        if in_rows(format) && format.results.have_calls() { Cover::Reported } else { Cover::Never }
    },
    check: |session, out| noted(&UNDECLARED, session, out),
};

pub(super) static AGAIN: Rule = Rule {
    info: RuleInfo {
        code: "D3",
        name: "model-again",
        help: Help {
            what: "A row of a data set has two assistant messages in a row.",
            why: "Templates that want the roles to alternate refuse or drop the row (\"roles must alternate\"), and others \
                  run the two turns together.",
            fix: REPORTED,
            source: "LlamaFactory #4249, #7777",
        },
        ..INFO
    },
    cover: |format| if in_rows(format) { Cover::Reported } else { Cover::Never },
    check: |session, out| noted(&AGAIN, session, out),
};

pub(super) static NOTHING: Rule = Rule {
    info: RuleInfo {
        code: "D4",
        name: "nothing-to-learn",
        help: Help {
            what: "A row of a data set has no assistant message.",
            why: "There is nothing to train on: \"Dropped invalid example\", or a loss of NaN.",
            fix: REPORTED,
            source: "LlamaFactory #9600, #9618; Simia #8",
        },
        ..INFO
    },
    cover: |format| if in_rows(format) { Cover::Reported } else { Cover::Never },
    check: |session, out| noted(&NOTHING, session, out),
};

const INFO: RuleInfo = RuleInfo { groups: &[Group::Content], wakes: &[], ..RuleInfo::BASE };

/// Whether each line is a conversation of its own.
fn in_rows(format: &Format) -> bool {
    format.results.of_conversations()
}

/// Reports what was noted when the line was read.
fn noted(rule: &'static Rule, session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for issue in session.transcript.issues() {
        let (own, message) = match issue.kind {
            ContentIssueKind::Undeclared(call) => {
                if rule.code() == UNDECLARED.code() {
                    let message = "the called tool is not in the row's list of tools";
                    out.push(about_call(rule, session, call as usize, Severity::Warning, message));
                }
                continue;
            }
            ContentIssueKind::ModelAgain => (&AGAIN, "two assistant messages in a row"),
            ContentIssueKind::NothingToLearn => (&NOTHING, "no assistant message in this row"),
            _ => continue,
        };
        if own.code() == rule.code() {
            let found = about(rule, session, issue.entry, Severity::Warning, message.to_string());
            out.push(Finding { spot: Some(issue.block), ..found });
        }
    }
    Ok(())
}

fn arguments(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let Some(place) = session.format.arguments else { return Ok(()) };
    // A call without arguments is P9.
    for (index, call) in session.transcript.calls.iter().enumerate().filter(|(_, call)| !call.partial) {
        let Some(block) = json::parse(session.source, call.block)? else { continue };
        let paths = place.at.iter();
        let mut found =
            paths.filter_map(|path| path.iter().try_fold(block.root()?, |value, key| value.get(key)));
        let Some(value) = found.next() else { continue };
        let is_object = match value.kind() {
            Json::Object => true,
            Json::String if place.none.starts_with('"') => {
                let text = literal::decode(&read_span(session.source, value.inner())?);
                let whole = Span::new(0, text.len() as u64);
                let inside = json::parse(&&text[..], whole)?;
                inside.and_then(|inside| inside.root().map(json::Value::kind)) == Some(Json::Object)
            }
            _ => false,
        };
        if !is_object {
            let message = "the call's arguments are not a JSON object";
            out.push(about_call(&ARGUMENTS, session, index, Severity::Warning, message));
        }
    }
    Ok(())
}
