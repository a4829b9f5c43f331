//! M11, M12, M14: what the API refuses although the file alone does not show it: results that another key encrypted,
//! tools that are not offered any more, reasoning of another account. Only the error shows it, whether the user passed
//! it or the session recorded it; without one there are no findings.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about};
use super::removal::{only_if_asked, take_out, take_out_blocks};
use crate::format::{Format, Results};
use crate::model::entry::ContentIssueKind;
use crate::model::finding::{Finding, Fix, Guard, Op, Safety, Severity};
use crate::model::ids::Id;
use crate::refusal;
use crate::session::Session;
use crate::session::failure::last_words;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use hashbrown::HashMap;
use spans::json::{self, Value, ValueKind as Json};
use spans::source::Fault;

const BY_ERROR: &str = "Nothing in the file tells whether the API will refuse it. It is found where the session records that \
                        error as its last answer, and in any session when the error is passed: \
                        `tailor fix --error \"TEXT\" --allow CODE FILE`.";

pub(super) static EXPIRED: Rule = Rule {
    info: RuleInfo {
        code: "M11",
        name: "expired-server-result",
        help: Help {
            what: "A result of a tool that the provider ran is sealed, and the API cannot open it any more: it was made \
                   under another key.",
            why: "\"Advisor tool result content could not be processed\", on every request.",
            fix: BY_ERROR,
            source: "claude-code #49994",
        },
        ..INFO
    },
    cover: of_anthropic,
    check: expired,
};

pub(super) static DANGLING: Rule = Rule {
    info: RuleInfo {
        code: "M12",
        name: "dangling-tool-reference",
        help: Help {
            what: "A search for tools found one that the agent does not offer any more, such as one of an MCP server that \
                   was removed.",
            why: "\"Tool reference 'mcp__x__y' not found in available tools\", on every request.",
            fix: BY_ERROR,
            source: "claude-code #79970, #81863",
        },
        ..INFO
    },
    cover: of_anthropic,
    check: dangling,
};

pub(super) static UNVERIFIABLE: Rule = Rule {
    info: RuleInfo {
        code: "M14",
        name: "unverifiable-item",
        help: Help {
            what: "Encrypted reasoning, or an encrypted compaction, belongs to another account, machine or model.",
            why: "\"The encrypted content for item rs_… could not be verified\" (`invalid_encrypted_content`), on every \
                  request. Without an encrypted compaction the model does not know what it stood for.",
            fix: BY_ERROR,
            source: "codex #8119, #8145, #35334; sub2api #7506",
        },
        ..INFO
    },
    cover: |format| if format.content.seals_items { Cover::Fixed } else { Cover::Never },
    check: unverifiable,
};

/// Facts that these rules share.
const INFO: RuleInfo = RuleInfo { groups: &[Group::Content], wakes: &[], ..RuleInfo::BASE };

/// Formats whose conversations are sent to Anthropic's API; data sets are not.
fn of_anthropic(format: &Format) -> Cover {
    let is_session = format.results != Results::InConversation;
    if format.content.server_tools && is_session { Cover::Fixed } else { Cover::Never }
}

/// The API's error for such a rule: the one that the user passed, or else the last answer in the session.
pub(super) fn blamed(session: &Session<'_>, rule: &'static Rule) -> Result<Option<String>, Fault> {
    let said = match &session.situation.error {
        Some(said) => Some(said.clone()),
        None => last_words(session)?,
    };
    Ok(said.filter(|said| refusal::find(said).is_some_and(|known| known.codes.contains(&rule.code()))))
}

pub(super) fn finding(
    rule: &'static Rule,
    session: &Session<'_>,
    entry: u32,
    message: &str,
    fix: Fix,
) -> Finding {
    let fix = only_if_asked(fix, Guard::Blamed);
    Finding { fix, ..about(rule, session, entry, Severity::Error, message.to_string()) }
}

/// Both fixes as one, if both exist.
fn together(one: Fix, other: Fix) -> Fix {
    match (one.safety, other.safety) {
        (Safety::Held(_) | Safety::None, _) => one,
        (_, Safety::Held(_) | Safety::None) => other,
        _ => Fix::guarded(Guard::Blamed, [one.ops, other.ops].concat()),
    }
}

/// Removes encrypted results, and their calls.
fn expired(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let Some(said) = blamed(session, &EXPIRED)? else { return Ok(()) };
    let issues = || session.transcript.issues().iter().filter(|issue| session.in_context(issue.entry));
    let calls: HashMap<Id, _> = issues()
        .filter_map(|issue| match issue.kind {
            ContentIssueKind::ServerCall(id) => Some((id, issue)),
            _ => None,
        })
        .collect();
    for result in issues() {
        let ContentIssueKind::ServerResult(id) = result.kind else { continue };
        let Some(doc) = json::parse(session.source, result.block)? else { continue };
        if !is_sealed(&doc, &said) {
            continue;
        }
        let mut fix = take_out_blocks(session, result.entry, &[result.block])?;
        match calls.get(&id) {
            Some(call) if call.entry == result.entry => {
                fix = take_out_blocks(session, call.entry, &[call.block, result.block])?;
            }
            Some(call) => fix = together(fix, take_out_blocks(session, call.entry, &[call.block])?),
            None => {}
        }
        let message = "sealed result of a server tool, which the API could not process";
        out.push(Finding { call: Some(id), ..finding(&EXPIRED, session, result.entry, message, fix) });
    }
    Ok(())
}

/// Whether a result is not plain text, and the error names its tool.
fn is_sealed(block: &json::Doc, said: &str) -> bool {
    let kind = block.get("type").and_then(Value::text).unwrap_or_default();
    let tool = String::from_utf8_lossy(&kind).replace("_tool_result", "").replace('_', " ");
    let plain = block.get("content").and_then(|content| content.get("text"));
    said.to_lowercase().replace('_', " ").contains(&tool) && plain.is_none()
}

/// Removes references to the tools that the error names. A search without other results then has an empty result.
fn dangling(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let Some(said) = blamed(session, &DANGLING)? else { return Ok(()) };
    for entry in session.sent() {
        let Some(doc) = json::parse(session.source, session.entry(entry).span)? else { continue };
        let mut ops = Vec::new();
        let message = doc.get("message").or(doc.root());
        for list in message.into_iter().flat_map(Value::descendants).filter(|list| list.kind() == Json::Array)
        {
            let named = list.items().filter(|item| is_reference_to(*item, &said)).map(Value::span);
            let named: Vec<_> = named.collect();
            if !named.is_empty() && named.len() == list.items().count() {
                ops.push(Op::Replace { at: list.span(), with: b"[]".to_vec() });
            } else {
                ops.extend(named.into_iter().map(|block| Op::DropBlock { entry, block }));
            }
        }
        if !ops.is_empty() {
            let message = "reference to a tool that is not offered any more";
            out.push(finding(&DANGLING, session, entry, message, Fix::safe(ops)));
        }
    }
    Ok(())
}

fn is_reference_to(item: Value<'_>, said: &str) -> bool {
    let [kind, name] = item.pick(["type", "tool_name"]);
    let name = name.and_then(Value::text).filter(|_| kind.is_some_and(|kind| kind.is("tool_reference")));
    let quoted =
        |name: &str| ["'", "\"", "`"].iter().any(|quote| said.contains(&format!("{quote}{name}{quote}")));
    name.is_some_and(|name| core::str::from_utf8(&name).is_ok_and(quoted))
}

/// Removes encrypted items, both on their own lines and among those that a compaction carries over.
fn unverifiable(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    if blamed(session, &UNVERIFIABLE)?.is_none() {
        return Ok(());
    }
    let is_sealed =
        |item: Value<'_>| item.get("encrypted_content").is_some_and(|seal| seal.kind() == Json::String);
    for entry in session.sent() {
        let doc = json::parse(session.source, session.entry(entry).span)?;
        let item = doc.as_ref().and_then(|doc| doc.get("payload").or(doc.root()));
        let Some(payload) = item else { continue };
        let carried = payload.get("replacement_history").into_iter().flat_map(Value::items);
        let carried: Vec<_> = carried.filter(|item| is_sealed(*item)).map(Value::span).collect();
        if is_sealed(payload) {
            let message = "encrypted item, which the API could not verify";
            out.push(finding(&UNVERIFIABLE, session, entry, message, take_out(session, entry)));
        } else if !carried.is_empty() {
            let ops = carried.into_iter().map(|block| Op::DropBlock { entry, block }).collect();
            let message = "a compaction carries encrypted items, which the API could not verify";
            out.push(finding(&UNVERIFIABLE, session, entry, message, Fix::safe(ops)));
        }
    }
    Ok(())
}
