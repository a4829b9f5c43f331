//! ATIF, the Agent Trajectory Interchange Format of Harbor and Terminal-Bench: one JSON document whose `steps` are what the user and
//! the agent said, with the agent's calls and what they returned in one step.
//!
//! Steps are numbered from 1 without gaps, and a result names a call of its own step, so no step and no result comes or goes. No
//! agent resumes from it. Facts: harbor 0.26.0 (`harbor.models.trajectories`), its own validator called.

use super::base::{Arguments, EntryPart, Format, NO_AGENT, Results, Vote};
use super::common::{alone, content_parts, is_string, items, says_any};
use super::kinds::Kinds;
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role};
use spans::json::{Doc, Value, ValueKind as Json};

/// Fields of a step, up to version 1.8.
const KEYS: &[&str] = &[
    "step_id",
    "timestamp",
    "source",
    "model_name",
    "reasoning_effort",
    "message",
    "reasoning_content",
    "tool_calls",
    "observation",
    "metrics",
    "is_copied_context",
    "llm_call_count",
    "extra",
];

pub(super) const FORMAT: Format = Format {
    name: "atif",
    written_by: "ATIF trajectories, as of Harbor",
    remark: "no step comes or goes",
    results: Results::WithCall,
    arguments: Some(Arguments { at: &[&["arguments"]], none: "{}" }),
    takes_ids_again: true,
    kinds: &[
        Kinds::at(&["source"]).sent("user agent system"),
        Kinds::at(&["message", "*", "type"]).sent("text image"),
    ],
    fields: KEYS,
    vote,
    read,
    parts,
    ..NO_AGENT
};

fn vote(doc: &Doc) -> Vote {
    let [number, role, calls, observation] = doc
        .root()
        .map(|root| root.pick(["step_id", "role", "tool_calls", "observation"]))
        .unwrap_or_default();
    let are_calls = items(calls).all(|call| is_string(call.get("function_name")));
    let own = number.is_some_and(|number| number.kind() == Json::Number)
        && says_any(doc, "source", &["user", "agent", "system"])
        && doc.get("message").is_some()
        && role.is_none()
        && are_calls
        && observation.is_none_or(|seen| seen.is_null() || seen.get("results").is_some());
    if own { Vote::Own } else { Vote::Silent }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let message = doc.get("message");
    let texts = || alone(message).into_iter().chain(items(message).filter_map(|part| part.get("text")));
    draft.entry.kind = match doc.get("source").and_then(Value::text).as_deref() {
        Some(b"user") => {
            texts().for_each(|text| draft.user_text(text));
            Kind::Message(Role::User)
        }
        Some(b"agent") => {
            texts().for_each(|text| draft.text(text));
            for call in items(doc.get("tool_calls")) {
                let [id, name, arguments] = call.pick(["tool_call_id", "function_name", "arguments"]);
                draft.call(call, id, name, arguments.is_none_or(Value::is_null));
            }
            Kind::Message(Role::Assistant)
        }
        Some(b"system") => Kind::Message(Role::System),
        _ => Kind::Opaque,
    };
    if is_string(doc.get("reasoning_content")) {
        draft.shows();
    }
    for result in items(results(doc)) {
        let [id, content] = result.pick(["source_call_id", "content"]);
        draft.result(result, id, None, false);
        if !is_string(id) {
            draft.unpaired();
        }
        draft.content(content);
    }
}

fn results(doc: &Doc) -> Option<Value<'_>> {
    doc.get("observation")?.get("results")
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    content_parts(doc.get("message"), each);
    for call in items(doc.get("tool_calls")) {
        each(EntryPart::Call { name: call.get("function_name"), arguments: call.get("arguments") });
    }
    for result in items(results(doc)) {
        each(EntryPart::Result);
        content_parts(result.get("content"), each);
    }
}
