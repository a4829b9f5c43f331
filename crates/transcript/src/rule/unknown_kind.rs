//! V2: kinds of records or blocks, and fields of messages, that are not known, so that nobody knows what the agent makes of them.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about};
use crate::model::entry::{ContentIssueKind, Kind, Role};
use crate::model::finding::{Finding, Guard, Op, Safety, Severity};
use crate::model::rule::Stage;
use crate::session::Session;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use spans::json;
use spans::source::{Fault, Span, read_span};

/// Longest name that is shown.
const NAME_BYTES_MAX: usize = 64;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: CODE,
        name: "unknown-kind",
        help: Help {
            what: "A record or a block is of a kind that Tailor does not know, or a bare message has a field that no known dialect has.",
            why: "The agent is newer than this Tailor, or another program wrote to its file. The record may be a message, \
                  or may change which messages the agent sends, so a repair of the conversation could be a guess. A field can say so \
                  of its own message.",
            fix: "None. Oversized results are shortened and damaged lines are repaired as ever, but repairs that add, remove or \
                  link messages are held, of a field only in its turn and up to the next user message; --allow V2 makes them. Update Tailor, or report the kind: it is a name in the agent's \
                  format, not content.",
            source: "the kinds are those of the newest releases: `KINDS` in each format's file",
        },
        groups: &[Group::Content],
        model_sees: false,
        // Any content issue has the file read again.
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.kinds.is_empty() { Cover::Never } else { Cover::Reported },
    check,
};

const CODE: &str = "V2";

/// The entries about which repairs could be wrong guesses.
pub(crate) struct Doubt {
    /// Sorted ranges of entries.
    entries: Vec<Range<u32>>,
}

impl Doubt {
    /// Nothing, if the user said that what is not known does not matter.
    pub(crate) fn of(session: &Session<'_>) -> Self {
        let mut entries: Vec<Range<u32>> = Vec::new();
        let issues = session.transcript.issues().iter();
        for issue in issues.filter(|_| !session.policy.selection.allows(CODE)) {
            match issue.kind {
                ContentIssueKind::Unknown => {
                    return Self { entries: core::iter::once(0..u32::MAX).collect() };
                }
                ContentIssueKind::UnknownField
                    if entries.last().is_none_or(|last| last.end <= issue.entry) =>
                {
                    entries.push(turn_of(session, issue.entry));
                }
                _ => {}
            }
        }
        Self { entries }
    }

    /// Whether a fix could be a wrong guess because of them.
    pub(crate) fn bears_on(&self, finding: &Finding) -> bool {
        let is_in = |entry| self.entries.iter().any(|range| range.contains(&entry));
        !self.entries.is_empty() && depends_on_all(finding) && finding.entry.is_none_or(is_in)
    }
}

/// The entries from the user message at or before one to the next user message, both included.
fn turn_of(session: &Session<'_>, entry: u32) -> Range<u32> {
    let asks = |entry: &u32| session.kind(*entry) == Kind::Message(Role::User);
    let start = (0..=entry).rev().find(asks).unwrap_or(0);
    let count = session.transcript.entries.len() as u32;
    let end = (entry + 1..count).find(asks).map_or(count, |next| next + 1);
    start..end
}

/// Whether a fix could be a wrong guess because of records of unknown kinds. Shortened texts and whole bytes never are.
fn depends_on_all(finding: &Finding) -> bool {
    let rule = finding.rule;
    let is_in = |group| rule.groups.contains(&group);
    // What the API's error names is no guess.
    let is_named = finding.fix.safety == Safety::Guarded(Guard::Blamed);
    let guesses = |op: &Op| match op {
        Op::Cut { .. } | Op::Keep(_) => false,
        Op::Replace { .. } => rule.model_sees && !is_in(Group::Images),
        _ => true,
    };
    !is_named && rule.stage != Stage::Bytes && !is_in(Group::Bytes) && finding.fix.ops.iter().any(guesses)
}

/// One finding for each kind, at its first record.
fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let mut unknown = BTreeMap::<(bool, String), (u32, u64)>::new();
    for issue in session.transcript.issues() {
        let is_field = issue.kind == ContentIssueKind::UnknownField;
        if is_field || issue.kind == ContentIssueKind::Unknown {
            let name = name_at(session, issue.block)?;
            unknown.entry((is_field, name)).or_insert((issue.entry, 0)).1 += 1;
        }
    }
    for ((is_field, name), (entry, count)) in unknown {
        let writer =
            writer_of(session, entry)?.map_or_else(String::new, |writer| format!(", written by {writer}"));
        let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
        let message = if is_field {
            format!("the field {name} is not known{times}; repairs of the conversation near it are held")
        } else {
            format!("the kind {name}{writer}, is not known{times}; repairs of the conversation are held")
        };
        out.push(about(&RULE, session, entry, Severity::Note, message));
    }
    Ok(())
}

/// The name of a kind, as it is in the file.
fn name_at(session: &Session<'_>, at: Span) -> Result<String, Fault> {
    let end = at.end.min(at.start + NAME_BYTES_MAX as u64);
    Ok(String::from_utf8_lossy(&read_span(session.source, Span::new(at.start, end))?).into_owned())
}

/// The program that wrote an entry, as far as the entry or the first one tells.
fn writer_of(session: &Session<'_>, entry: u32) -> Result<Option<String>, Fault> {
    for entry in [entry, 0] {
        let record = json::parse(session.source, session.entry(entry).span)?;
        let version = record.as_ref().and_then(|record| session.format.version(record));
        if let Some(version) = version {
            let program = session.format.agents.first().map_or(session.format.name, |agent| agent.name);
            return Ok(Some(format!("{program} {version}")));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use crate::model::finding::{Held, Safety};
    use crate::{Policy, mend};
    use alloc::format;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    /// A pi session with an oversized result, a lost one, and a record of this kind.
    fn session(kind: &str) -> String {
        let row = |id: &str, parent: &str, rest: &str| {
            format!(
                "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"message\":{rest}}}\n"
            )
        };
        let call = |id: &str| {
            format!(
                "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"toolCall\",\"id\":\"{id}\",\"name\":\"ls\",\"arguments\":{{}}}}],\"stopReason\":\"toolUse\"}}"
            )
        };
        let long = "a line\\n".repeat(9_000);
        let result = format!(
            "{{\"role\":\"toolResult\",\"toolCallId\":\"c1\",\"toolName\":\"ls\",\"content\":[{{\"type\":\"text\",\"text\":\"{long}\"}}],\"isError\":false}}"
        );
        let said = |role: &str| {
            format!("{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"go on\"}}]}}")
        };
        [
            "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"cwd\":\"/w\"}\n".to_string(),
            row("a", "null", &said("user")),
            row("b", "\"a\"", &call("c1")),
            row("c", "\"b\"", &result),
            row("d", "\"c\"", &call("c2")),
            row("e", "\"d\"", &said("user")),
            format!("{{\"type\":\"{kind}\",\"id\":\"f\",\"parentId\":\"e\",\"timestamp\":\"2026-07-01T10:00:00.000Z\"}}\n"),
            row("g", "\"f\"", &said("user")),
        ]
        .concat()
    }

    /// The findings about a call without a result and an oversized result, and whether their fixes are held.
    fn held(text: &str, policy: &Policy) -> Vec<(&'static str, bool)> {
        let findings = mend(&text.as_bytes(), policy).unwrap().before.findings;
        let own = findings.iter().filter(|finding| ["P1", "S1", "V2"].contains(&finding.rule.code()));
        own.map(|finding| (finding.rule.code(), finding.fix.safety == Safety::Held(Held::UnknownKind)))
            .collect()
    }

    #[test]
    fn an_unknown_kind_holds_repairs_of_the_conversation_and_no_cuts() {
        let mut policy = Policy::default();
        assert_eq!(held(&session("custom"), &policy), [("S1", false), ("P1", false)]);
        assert_eq!(held(&session("rewind"), &policy), [("S1", false), ("P1", true), ("V2", false)]);
        policy.selection.allow = ["V2".to_string()].into();
        assert_eq!(held(&session("rewind"), &policy), [("S1", false), ("P1", false), ("V2", false)]);
    }

    #[test]
    fn an_unknown_field_holds_repairs_in_its_turn() {
        let call = |id: &str| {
            format!(
                "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"ls\",\"input\":{{}}}}]}}\n"
            )
        };
        let user = "{\"role\":\"user\",\"content\":\"go on\"}\n";
        let odd = "{\"role\":\"assistant\",\"content\":\"well\",\"seq\":1}\n";
        let plain = [user, &call("a"), user, &call("b"), user].concat();
        assert_eq!(held(&plain, &Policy::default()), [("P1", false), ("P1", false)]);
        let far = [user, &call("a"), user, &call("b"), user, odd, user].concat();
        assert_eq!(held(&far, &Policy::default()), [("P1", false), ("P1", false), ("V2", false)]);
        let near = [user, &call("a"), user, &call("b"), odd, user].concat();
        assert_eq!(held(&near, &Policy::default()), [("P1", false), ("P1", true), ("V2", false)]);
        let mut policy = Policy::default();
        policy.selection.allow = ["V2".to_string()].into();
        assert_eq!(held(&near, &policy), [("P1", false), ("P1", false), ("V2", false)]);
    }

    #[test]
    fn a_damaged_name_of_a_kind_is_not_another_kind() {
        for kind in ["custo#", "cus\\u0001om", "custon", "cu%%om"] {
            assert_eq!(held(&session(kind), &Policy::default()), [("S1", false), ("P1", false)], "{kind}");
        }
        assert!(held(&session("customs"), &Policy::default()).contains(&("V2", false)));
    }

    #[test]
    fn a_kind_is_reported_once_with_the_program_that_wrote_it() {
        let row = |n: u32, kind: &str| {
            format!(
                "{{\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"type\":\"{kind}\",\"payload\":{{\"type\":\"x\",\"n\":{n}}}}}\n"
            )
        };
        let head = "{\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"i\",\"cwd\":\"/w\",\"cli_version\":\"0.999.0\"}}\n";
        let text = [head.to_string(), row(1, "event_msg"), row(2, "event_msg")].concat();
        let findings = mend(&text.as_bytes(), &Policy::default()).unwrap().before.findings;
        let said: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(
            said,
            [
                "the kind \"x\", written by Codex 0.999.0, is not known (2 times); repairs of the conversation are held"
            ]
        );
    }
}
