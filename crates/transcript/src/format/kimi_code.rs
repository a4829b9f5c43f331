//! Kimi Code's `wire.jsonl`: records that are replayed to make the context.
//!
//! `context.undo` and compactions count records, so records are never added or removed. On loading, the agent itself
//! answers open calls and drops results without a call. It does not load a file with an unreadable line before the last
//! one. Facts: docs/format-facts.md.

use super::agent::{Agent, Resume};
use super::base::{
    BASE, Broken, EntryPart, Format, Header, OutsideCount, ReadEnd, ReadTool, Root, Shape, SupportLevel, Vote,
};
use super::common::{alone, content_parts, is_reminder, is_string, items, listed_calls, says};
use super::kinds::Kinds;
use super::names::{FieldNames, Form, has, needs, text};
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role, Service};
use spans::json::{Doc, Value, ValueKind as Json};

const TYPES: &[&str] = &[
    "context.",
    "turn.",
    "config.",
    "tools.",
    "usage.",
    "llm.",
    "full_compaction.",
    "micro_compaction.",
    "permission.",
];

/// The events that 2.1.0 stores, and those of earlier versions.
const KINDS: &[Kinds] = &[
    Kinds::at(&["type"])
        .sent("context.append_loop_event context.append_message")
        .steers(
            "context.apply_compaction context.undo context.clear full_compaction.begin \
         full_compaction.cancel full_compaction.complete micro_compaction.apply forked",
        )
        .silent(
            "usage.record llm.request metadata turn.prompt turn.ended turn.steer turn.cancel \
         turn.step.interrupted turn.step.retrying config.update token_counting.measured \
         token_counting.rebased token_counting.truncated token_counting.turn_recorded \
         llm.tools_snapshot permission.record_approval_result permission.set_mode \
         tools.set_active_tools tools.reset_active_tools tools.register_user_tool \
         tools.unregister_user_tool tools.update_store plan.revision plan_mode.enter plan_mode.exit \
         plan_mode.cancel cron.add cron.cursor cron.delete file_history.checkpoint \
         file_history.tracked goal.create goal.update goal.clear goal.account_usage goal.continuation \
         interaction.request interaction.resolved interruptionReminder.recorded mcp.tools_discovered \
         plugin.session_start profile.bind prompt.aborted prompt.completed prompt.steered \
         runtime.set_binding swarm_mode.enter swarm_mode.exit tower_mode.enter tower_mode.exit \
         task.started task.terminated task.waitDelivered",
        ),
    Kinds::at(&["event", "type"])
        .within("context.append_loop_event")
        .sent("content.part tool.call tool.result")
        .silent("step.begin step.end"),
    Kinds::at(&["message", "role"]).within("context.append_message").sent("user assistant tool system"),
    Kinds::at(&["message", "content", "*", "type"])
        .within("context.append_message")
        .sent("text think image_url audio_url video_url"),
    Kinds::at(&["event", "part", "type"])
        .within("context.append_loop_event")
        .sent("text think image_url audio_url video_url"),
];

const NAMES: &[FieldNames] = &[
    FieldNames::all(&[text("type"), has("time")]),
    FieldNames::typed(&["metadata"], &[text("protocol_version"), needs("created_at", Form::Number)]),
    FieldNames::typed(
        &["context.append_message"],
        &[needs("message", Form::Object).with(&[FieldNames::all(&[
            text("role"),
            needs("content", Form::TextOrList).with(PART),
            has("toolCalls"),
            has("toolCallId"),
        ])])],
    ),
    FieldNames::typed(&["context.append_loop_event"], &[needs("event", Form::Object).with(EVENT)]),
    FieldNames::typed(&["context.apply_compaction"], &[text("summary")]),
];

const EVENT: &[FieldNames] = &[
    FieldNames::all(&[
        text("type"),
        has("uuid"),
        has("turnId"),
        has("step"),
        has("stepUuid"),
        has("parentUuid"),
    ]),
    FieldNames::typed(&["content.part"], &[needs("part", Form::Object).with(PART)]),
    FieldNames::typed(&["tool.call"], &[text("toolCallId"), text("name"), needs("args", Form::Any)]),
    FieldNames::typed(
        &["tool.result"],
        &[
            text("toolCallId"),
            needs("result", Form::Object)
                .with(&[FieldNames::all(&[needs("output", Form::TextOrList).with(PART), has("isError")])]),
        ],
    ),
];

const PART: &[FieldNames] = &[
    FieldNames::all(&[text("type")]),
    FieldNames::typed(&["text"], &[text("text")]),
    FieldNames::typed(&["think"], &[text("think")]),
];

pub(super) const FORMAT: Format = Format {
    name: "kimi-code",
    written_by: "Kimi Code `wire.jsonl`",
    remark: "no record comes or goes",
    agents: &[Agent::resumed(
        "Kimi Code",
        Resume { command: &["kimi", "--session"], above: 3, prefix: "session_", ..Resume::BY_FILE },
    )],
    // Kimi Code 2.1.0 writes up to 50,000 characters whole, and 5,900 of what is longer (measured).
    agent_cuts_results: Some(50_000),
    // The schema of `Read` in 2.1.0.
    reads: &[ReadTool {
        name: "Read",
        path: &["path"],
        from: "line_offset",
        first_line: 1,
        to: ReadEnd::Count("n_lines"),
        lines_max: 0,
    }],
    shape: Shape::Log,
    // Kimi Code 2.1.0 opens the file for each append, syncs and closes it (`FileStorage.append`). It writes it anew, by rename, only
    // when it loads a session that is torn or older, or forks one (`AppendLogStore.rewrite`). So no line of it can be lost.
    level: SupportLevel::Truncate,
    gates: &[],
    counted: Some(OutsideCount::Records("its own records (context.undo, compactions)")),
    header: Header::First,
    skips_unreadable_lines: false,
    roots: &[Root { env: Some("KIMI_CODE_HOME"), home: ".kimi-code", below: "sessions" }],
    names: NAMES,
    kinds: KINDS,
    version_at: &[&["app_version"]],
    vote,
    read,
    parts,
    broken: failed,
    ..BASE
};

/// How a turn failed (2.1.0, `TurnEnded`).
fn failed(doc: &Doc) -> Option<Broken<'_>> {
    let error = doc.get("error").filter(|error| !error.is_null() && says(doc, "type", "turn.ended"))?;
    let [said, code] = error.pick(["message", "code"]);
    let is_long = code.is_some_and(|code| code.is("context.overflow"));
    Some(if is_long { Broken::TooLong(said) } else { Broken::Error(said) })
}

fn vote(doc: &Doc) -> Vote {
    let number = |key: &str| doc.get(key).is_some_and(|value| value.kind() == Json::Number);
    let header =
        says(doc, "type", "metadata") && doc.get("protocol_version").is_some() && number("created_at");
    let kind = doc.get("type").and_then(Value::text).unwrap_or_default();
    let is = |family: &&str| kind.starts_with(family.as_bytes());
    let foreign = ["data", "payload", "uuid", "role"].iter().any(|key| doc.get(key).is_some());
    // Turns, tools and usage have such names in logs of others as well.
    match header || (!foreign && is(&"context.")) {
        true => Vote::Own,
        false if !foreign && TYPES.iter().any(is) => Vote::Fits,
        false => Vote::Silent,
    }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    match doc.get("type").and_then(Value::text).as_deref() {
        // The agent does not accept a header without a version.
        Some(b"metadata") if doc.get("protocol_version").is_some() => draft.entry.kind = Kind::Header,
        Some(b"context.append_message") => message(doc.get("message"), draft),
        Some(b"context.append_loop_event") => event(doc.get("event"), draft),
        Some(b"context.apply_compaction") => {
            draft.entry.kind = Kind::Boundary;
            doc.get("summary").into_iter().for_each(|text| draft.text(text));
        }
        Some(b"turn.ended") if failed(doc).is_some() => draft.entry.service = Service::Failure,
        // It takes out all that came before (2.1.0, `clearFloor`).
        Some(b"context.clear") => draft.entry.kind = Kind::Boundary,
        // Messages that a compaction had replaced may be in context again.
        Some(b"context.undo") => draft.entry.kind = Kind::Leaf,
        _ => {}
    }
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    if let Some([content, calls, call]) =
        doc.get("message").map(|message| message.pick(["content", "toolCalls", "toolCallId"]))
    {
        if is_string(call) {
            each(EntryPart::Result);
        }
        content_parts(content, each);
        listed_calls(calls, each);
    }
    if let Some(event) = doc.get("event") {
        let [kind, name, arguments, result] = event.pick(["type", "name", "args", "result"]);
        match kind.and_then(Value::text).as_deref() {
            Some(b"content.part") => content_parts(event.get("part"), each),
            Some(b"tool.call") => each(EntryPart::Call { name, arguments }),
            Some(b"tool.result") => {
                each(EntryPart::Result);
                content_parts(result.and_then(|result| result.get("output")), each);
            }
            _ => {}
        }
    }
    content_parts(doc.get("summary"), each);
}

fn texts(content: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    alone(content).into_iter().chain(items(content).filter_map(|part| part.get("text")))
}

fn message(message: Option<Value<'_>>, draft: &mut Draft<'_>) {
    let Some(message) = message else { return };
    let [role, content, calls, call, origin] =
        message.pick(["role", "content", "toolCalls", "toolCallId", "origin"]);
    draft.entry.kind = match role.and_then(Value::text).as_deref() {
        Some(b"user") => {
            texts(content).for_each(|text| draft.user_text(text));
            draft.entry.injected = is_reminder(content) || is_of_program(origin);
            Kind::Message(Role::User)
        }
        Some(b"assistant") => {
            texts(content).for_each(|text| draft.text(text));
            for each in items(calls) {
                let name = each.get("name").or_else(|| each.get("function")?.get("name"));
                draft.call(each, each.get("id"), name, false);
            }
            Kind::Message(Role::Assistant)
        }
        Some(b"tool") if is_string(call) => {
            result(message, call, false, content, draft);
            Kind::Message(Role::Tool)
        }
        _ => Kind::Note,
    };
}

/// Whether a program made this message. A skill counts as a person's if the person called it.
fn is_of_program(origin: Option<Value<'_>>) -> bool {
    let Some([kind, trigger]) = origin.map(|origin| origin.pick(["kind", "trigger"])) else { return false };
    kind.is_some_and(|kind| !kind.is("user")) && !trigger.is_some_and(|trigger| trigger.is("user-slash"))
}

fn event(event: Option<Value<'_>>, draft: &mut Draft<'_>) {
    let Some(event) = event else { return };
    let [kind, part, call, name, outcome] = event.pick(["type", "part", "toolCallId", "name", "result"]);
    draft.entry.kind = match kind.and_then(Value::text).as_deref() {
        Some(b"content.part") => {
            part.and_then(|part| part.get("text")).into_iter().for_each(|text| draft.text(text));
            Kind::Message(Role::Assistant)
        }
        Some(b"tool.call") => {
            draft.call(event, call, name, false);
            Kind::Message(Role::Assistant)
        }
        Some(b"tool.result") => {
            let outcome = outcome.map(|outcome| outcome.pick(["output", "isError"]));
            let [output, failed] = outcome.unwrap_or_default();
            result(event, call, failed.is_some_and(Value::is_true), output, draft);
            Kind::Message(Role::Tool)
        }
        _ => Kind::Opaque,
    };
}

fn result(
    block: Value<'_>,
    call: Option<Value<'_>>,
    failed: bool,
    output: Option<Value<'_>>,
    draft: &mut Draft<'_>,
) {
    let span = draft.entry.span;
    draft.result(block, call, None, failed);
    draft.whole_result(span);
    draft.content(output);
}
