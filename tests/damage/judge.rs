//! Judges what becomes of a damaged session by the agents' own rules.

use super::agents::each_line_is_read;
use super::harm::{Harm, befall};
use super::oracle::{ContentPart, RequestMessage};
use super::reader::rows;
use super::requests::{conversation, refusals_of};
use serde_json::Value;
use spans::source;
use std::collections::BTreeMap;
use transcript::plan::Rendered;
use transcript::{Policy, Severity, Source, Span, examine, mend};

/// A healthy session.
pub(crate) struct HealthySession {
    pub name: String,
    pub format: &'static str,
    pub lines: Vec<Vec<u8>>,
    /// What each line adds to the conversation.
    says: Vec<Vec<String>>,
}

/// How often each item occurs.
type Counts = BTreeMap<String, usize>;

impl HealthySession {
    pub(crate) fn new(name: &str, format: &'static str, bytes: &[u8]) -> Self {
        let lines: Vec<Vec<u8>> =
            bytes.split_inclusive(|&byte| byte == b'\n').map(|line| line.trim_ascii_end().to_vec()).collect();
        let mut open = counted(said(&conversation(format, bytes).unwrap()));
        let mut says = Vec::new();
        for line in &lines {
            let mut own = said(&conversation(format, line).unwrap());
            own.retain(|what| take(&mut open, what));
            says.push(own);
        }
        Self { name: name.to_string(), format, lines, says }
    }

    /// The items on undamaged lines. Results of lost calls are not needed: one line can have many calls, and no
    /// provider accepts a result without a call.
    fn needed(&self, harm: &Harm) -> Counts {
        let (gone, whole): (Vec<_>, Vec<_>) =
            self.says.iter().enumerate().partition(|(line, _)| harm.touches(*line));
        let said = |lines: Vec<(usize, &Vec<String>)>| {
            lines.into_iter().flat_map(|(_, says)| says.clone()).collect()
        };
        let (gone, mut whole) = (counted(said(gone)), counted(said(whole)));
        for call in gone.keys().filter_map(|what| what.strip_prefix("call ")) {
            if !whole.contains_key(&format!("call {call}")) {
                whole.remove(&format!("result {call}"));
            }
        }
        whole
    }
}

fn take(open: &mut Counts, what: &str) -> bool {
    open.get_mut(what).filter(|count| **count > 0).map(|count| *count -= 1).is_some()
}

fn counted(said: Vec<String>) -> Counts {
    let mut counts = Counts::new();
    said.into_iter().for_each(|what| *counts.entry(what).or_default() += 1);
    counts
}

/// The texts, calls and results of a conversation. Results may be cut, so only their call counts.
fn said(messages: &[RequestMessage]) -> Vec<String> {
    let each = messages.iter().flat_map(|message| message.parts.iter().map(move |part| (message, part)));
    let told = |(message, part): (&RequestMessage, &ContentPart)| match part {
        ContentPart::Text(text) if !text.trim().is_empty() => Some(format!("{}: {text}", message.assistant)),
        ContentPart::Call { id, .. } => Some(format!("call {id}")),
        ContentPart::Result { id, .. } => Some(format!("result {id}")),
        _ => None,
    };
    each.filter_map(told).collect()
}

/// Whether the agent would load the file at all.
fn loads(format: &str, bytes: &[u8]) -> bool {
    let values: Vec<Value> = rows(bytes).into_iter().filter(|row| row.alone).map(|row| row.value).collect();
    let first = values.first().unwrap_or(&Value::Null);
    let strict = || {
        let mut refusals = Vec::new();
        each_line_is_read(bytes, &mut refusals);
        refusals.is_empty()
    };
    match format {
        "pi" => first["type"] == "session" && first["id"].is_string(),
        "codex" => {
            let header = |row: &Value| row["type"] == "session_meta" && row["payload"]["id"].is_string();
            values.iter().any(header) && std::str::from_utf8(bytes).is_ok()
        }
        "copilot-cli" => strict() && first["type"] == "session.start",
        "gemini-cli" => {
            values.iter().any(|row| row["sessionId"].is_string() && row["projectHash"].is_string())
        }
        "kimi-code" => strict() && first["type"] == "metadata" && first["protocol_version"].is_string(),
        "vibe" => strict() && std::str::from_utf8(bytes).is_ok(),
        _ => true,
    }
}

/// How many of the needed items are in the context, and whether the provider accepts the request.
fn seen(format: &str, bytes: &[u8], needed: &Counts) -> (usize, bool) {
    if !loads(format, bytes) {
        return (0, false);
    }
    let there = counted(said(&conversation(format, bytes).unwrap()));
    let seen = needed.iter().map(|(what, count)| there.get(what).map_or(0, |there| *count.min(there))).sum();
    let mut refusals = refusals_of(format, bytes).unwrap();
    // Qwen Code's API accepts calls before a user message, and Gemini CLI inserts a user turn before them.
    let begins_anyhow = ["qwen-code", "gemini-cli"].contains(&format);
    refusals.retain(|refusal| !begins_anyhow || refusal.class != "M8");
    (seen, seen > 0 && refusals.is_empty())
}

/// How a session ended.
#[derive(Clone, Debug)]
pub(crate) struct DamagedEnd {
    /// How many items are on undamaged lines.
    pub needed: usize,
    /// How many of them are in context, before and after the fix.
    before: usize,
    after: usize,
    accepted_before: bool,
    pub accepted: bool,
    /// Whether an error remains and is reported.
    pub said: bool,
    /// The codes of the findings before and after the fix.
    #[expect(dead_code, reason = "shown when a case is printed")]
    found: [String; 2],
}

impl DamagedEnd {
    /// Requires nothing if every item was on the damaged line.
    pub(crate) fn is_whole(&self) -> bool {
        self.needed == 0 || (self.after + 2 >= self.needed && self.accepted)
    }

    /// Whether the provider no longer accepts the request, or less is in context. The other half of a damaged pair may
    /// go if the request is accepted in return.
    pub(crate) fn is_worse(&self) -> bool {
        let rescued = self.accepted && !self.accepted_before && self.is_whole();
        (self.accepted_before && !self.accepted) || (self.after < self.before && !rescued)
    }
}

/// Repairs a damaged session with the default policy.
pub(crate) fn end(session: &HealthySession, harm: &Harm) -> DamagedEnd {
    let (policy, bytes) = (Policy::default(), befall(&session.lines, harm));
    let source = bytes.as_slice();
    let mended = mend(&source, &policy).unwrap();
    let after = match &mended.repair {
        Ok(repair) => {
            let rendered = Rendered::new(&source, &repair.plan);
            source::read_span(&rendered, Span::new(0, rendered.len())).unwrap()
        }
        Err(_) => bytes.clone(),
    };
    let left = examine(&after.as_slice(), &policy).unwrap();
    let codes = |found: &transcript::Examination| {
        let codes =
            found.findings.iter().map(|finding| format!("{} {:?}", finding.rule.code(), finding.severity));
        codes.collect::<Vec<_>>().join(", ")
    };
    let needed = session.needed(harm);
    let before = seen(session.format, &bytes, &needed);
    let now = seen(session.format, &after, &needed);
    DamagedEnd {
        needed: needed.values().sum(),
        before: before.0,
        after: now.0,
        accepted_before: before.1,
        accepted: now.1,
        said: left.findings.iter().any(|finding| finding.severity == Severity::Error),
        found: [codes(&mended.before), codes(&left)],
    }
}
