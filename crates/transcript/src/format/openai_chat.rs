//! Messages of OpenAI's Chat Completions API, one per line: `role`, `content`, `tool_calls`, `tool_call_id`.
//!
//! One constant for bare messages, and one for each agent that adds lines or fields of its own. Many agents keep
//! another file that counts the lines. Where none is known, lines are added or removed only when the user allows it. Messages
//! with fields that are not known count only beside calls or plain messages. Facts: docs/format-facts.md.

use super::agent::{Agent, Resume};
use super::base::{
    Arguments, BASE, Content, EntryPart, Estimate, Format, Lost, OutsideCount, ReadEnd, ReadTool,
    ResultPlace, Root, SupportLevel, Vote,
};
use super::common::{
    answered, asked, block_types, content_parts, corrupted, has_block, has_key_like, has_untyped_block,
    is_reminder, is_string, items, listed_calls, note_corrupted, only_keys, says, says_any, summary_message,
};
use super::fields;
use super::kinds::Kinds;
use super::names::{FieldNames, Form, has, needs, text};
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{ContentIssueKind, Kind, Role};
use alloc::vec::Vec;
use spans::json::{Doc, Value, ValueKind as Json};
use spans::marker::MISSING_RESULT;

/// What all writers of this dialect share.
const CHAT: Format = Format {
    answer: ResultPlace::LineIfAllowed,
    arguments: Some(ARGUMENTS),
    takes_ids_again: true,
    content: Content::OPENAI,
    names: NAMES,
    kinds: KINDS,
    read: |doc, draft| message(doc.root(), draft),
    parts,
    missing_result,
    compaction: summary_message,
    ..BASE
};

/// Bare messages.
pub(super) const BARE: Format = Format {
    name: "openai-chat",
    written_by: "bare OpenAI chat messages",
    level: SupportLevel::Truncate,
    gates: &[],
    content: Content { reasons_beside: true, ..Content::OPENAI },
    vote: |doc| match is_bare(doc) {
        true => Vote::Own,
        false if is_corrupted_bare(doc) => Vote::Corrupted,
        false if !is_dialect(doc) => Vote::Foreign,
        false if is_certain(doc) => Vote::Like,
        false => Vote::MayFit,
    },
    fields: KEYS,
    ..CHAT
};

/// Kimi CLI's `context.jsonl`: it has lines of its own, with roles that begin with `_`. It repairs nothing on loading.
pub(super) const KIMI_CLI: Format = Format {
    name: "kimi-cli",
    written_by: "Kimi CLI `context.jsonl`",
    agents: &[Agent::resumed(
        "Kimi CLI",
        Resume { command: &["kimi", "--session"], above: 1, ..Resume::BY_FILE },
    )],
    level: SupportLevel::Insert,
    gates: &[],
    leaves_calls_open: true,
    roots: &[Root { env: Some("KIMI_SHARE_DIR"), home: ".kimi", below: "sessions" }],
    answer: ResultPlace::Line,
    takes_ids_again: false,
    estimate: Estimate { added: &[("", 2_450)], ..Estimate::BASE },
    vote: |doc| vote(doc, says_any(doc, "role", &["_system_prompt", "_checkpoint", "_usage"])),
    ..CHAT
};

/// Mistral Vibe: messages have ids, and it appends from the message whose number is in `meta.json`.
pub(super) const VIBE: Format = Format {
    name: "vibe",
    written_by: "Mistral Vibe, tried with 2.10; from 2.26 on it writes another journal, which is not known",
    remark: "no record comes or goes",
    agents: &[Agent::resumed(
        "Mistral Vibe",
        Resume { command: &["vibe", "--resume"], below: "logs", above: 1, digits: 8, ..Resume::BY_FILE },
    )],
    // Vibe 2.10.1 (measured).
    agent_cuts_results: Some(16_200),
    // Vibe 2.10.1 (read_file.py).
    reads: &[ReadTool {
        name: "read_file",
        path: &["path"],
        from: "offset",
        first_line: 0,
        to: ReadEnd::Count("limit"),
        lines_max: 0,
    }],
    // Every line is a message and counted; Vibe keeps its system prompt elsewhere.
    counted: Some(OutsideCount::Number(
        "meta.json (total_messages; to do it by hand, quit Vibe, edit the lines, and store the new number there)",
    )),
    skips_unreadable_lines: false,
    roots: &[Root { env: Some("VIBE_HOME"), home: ".vibe", below: "logs/session" }],
    vote: |doc| {
        let injected = doc.get("injected").is_some_and(|value| value.kind() == Json::Bool);
        let own = is_string(doc.get("message_id")) || injected;
        vote(doc, own && is_message(doc) && doc.get("type").is_none())
    },
    fields: &[],
    ..BARE
};

/// `PicoClaw`: messages have times, and the file beside it says how many lines to skip.
pub(super) const PICOCLAW: Format = Format {
    name: "picoclaw",
    written_by: "PicoClaw",
    agents: &[Agent::named("PicoClaw")],
    remark: "no line comes or goes",
    counted: Some(OutsideCount::Lines("the .meta.json beside it (skip, count)")),
    roots: &[Root { env: None, home: ".picoclaw/workspace", below: "sessions" }],
    // Dumps of other chats have times too, and ids.
    vote: |doc| vote(doc, is_string(doc.get("created_at")) && has_message(doc) && !is_of_a_table(doc)),
    fields: &[],
    ..BARE
};

/// nanobot: a header line says how many messages are summarised. It rewrites the file from memory.
pub(super) const NANOBOT: Format = Format {
    name: "nanobot",
    written_by: "nanobot",
    agents: &[Agent::named("nanobot")],
    remark: "no record comes or goes; it writes the file anew",
    counted: Some(OutsideCount::UpToCount("its first line (last_consolidated)")),
    roots: &[Root { env: None, home: ".nanobot", below: "sessions" }],
    answer: ResultPlace::Line,
    content: Content { counts_messages: true, reasons_beside: true, ..Content::OPENAI },
    vote: |doc| {
        // Older headers do not name their chat.
        let counts = doc.get("last_consolidated").is_some_and(|count| count.kind() == Json::Number);
        vote(doc, says(doc, "_type", "metadata") && (is_string(doc.get("key")) || counts))
    },
    // Its messages are bare ones with a time, which is not enough to identify a file.
    is_record: Some(|doc| {
        matches!((NANOBOT.vote)(doc), Vote::Own | Vote::Fits)
            || (is_string(doc.get("timestamp")) && has_message(doc))
    }),
    read: |doc, draft| {
        message(doc.root(), draft);
        let count = doc.get("last_consolidated").and_then(Value::whole);
        if let Some(count) = count.filter(|_| says(doc, "_type", "metadata")) {
            draft.issue(ContentIssueKind::Counts(count), draft.entry.span);
        }
    },
    ..CHAT
};

/// Hermes, before it moved to a database: these files are archives.
pub(super) const HERMES: Format = Format {
    name: "hermes",
    written_by: "Hermes archives",
    agents: &[Agent::named("Hermes")],
    roots: &[Root { env: Some("HERMES_HOME"), home: ".hermes", below: "sessions" }],
    answer: ResultPlace::Line,
    takes_ids_again: false,
    // The first line may be lost; only Hermes stores these of another API beside its messages.
    vote: |doc| {
        let sealed = is_message(doc) && doc.get("codex_reasoning_items").is_some();
        let named = items(doc.get("tool_calls")).any(|call| call.get("response_item_id").is_some());
        vote(doc, says(doc, "role", "session_meta") || sealed || is_message(doc) && named)
    },
    ..CHAT
};

/// Reasonix: calls without a `function` around their name.
pub(super) const REASONIX: Format = Format {
    name: "reasonix",
    written_by: "Reasonix",
    vote: |doc| {
        let is_own = |call: Value<'_>| call.get("function").is_none() && is_string(call.get("name"));
        let calls = items(doc.get("tool_calls")).any(is_own);
        vote(doc, calls && says(doc, "role", "assistant") && doc.get("type").is_none())
    },
    ..CHAT
};

/// Votes for an agent that marks some objects as its own; the others are bare messages.
fn vote(doc: &Doc, own: bool) -> Vote {
    match own {
        true => Vote::Own,
        false if is_bare(doc) => Vote::Fits,
        false if is_dialect(doc) => Vote::MayFit,
        false => Vote::Silent,
    }
}

const KEYS: &[&str] = &[
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "refusal",
    "annotations",
    "audio",
    "reasoning_content",
];
/// Fields of messages of `LangChain` and the AI SDK.
const OTHERS: &[&str] = &["_type", "toolInvocations", "experimental_attachments"];
/// Arguments are a text that holds JSON. Reasonix has no `function` around it.
pub(super) const ARGUMENTS: Arguments =
    Arguments { at: &[&["function", "arguments"], &["arguments"]], none: "\"{}\"" };
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function"];
/// Names of which a message needs at least one.
const NEEDED: &[&str] =
    &["role", "content", "tool_calls", "tool_call_id", "user", "assistant", "system", "developer", "tool"];
/// Blocks of other dialects whose messages also have a role and a content.
const NOT_PARTS: &[&str] =
    &["tool_use", "tool_result", "thinking", "redacted_thinking", "tool-call", "tool-result"];

fn is_message(doc: &Doc) -> bool {
    says_any(doc, "role", ROLES)
}

/// Whether a message is a row of somebody's database.
fn is_of_a_table(doc: &Doc) -> bool {
    ["type", "id", "updated_at", "conversation_id", "session_id"].iter().any(|key| doc.get(key).is_some())
}

/// The results of a turn in one message of AG2 (0.11.5). It sends them one by one, and not the `content` beside, which repeats them.
fn together(message: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    let results = message.and_then(|message| message.get("tool_responses"));
    items(results).filter(|result| is_string(result.get("tool_call_id")))
}

/// Whether there are calls without a `function` around their name, as Reasonix writes.
fn is_flat(calls: Option<Value<'_>>) -> bool {
    items(calls).any(|call| call.get("function").is_none() && call.get("custom").is_none())
}

/// Whether an object is a message of the bare dialect.
fn is_bare(doc: &Doc) -> bool {
    only_keys(doc, KEYS) && has_message(doc)
}

/// Whether it is one but for fields that gateways and other programs add.
fn is_dialect(doc: &Doc) -> bool {
    has_message(doc)
        && !has_key_like(doc, fields::OF_RECORDS)
        && !has_key_like(doc, OTHERS)
        && block_types(doc.get("content")).all(|kind| PARTS.has(kind))
        && corrupted(doc.root(), KEYS, ROLES).is_none()
}

/// Whether a message of the dialect cannot be a row of any other program: it calls a tool or holds a result as this API says it,
/// or all its fields are known.
fn is_certain(doc: &Doc) -> bool {
    let pairs = items(doc.get("tool_calls")).next().is_some() || says(doc, "role", "tool");
    pairs || doc.root().is_some_and(|message| fields::are_known(KEYS, message))
}

/// Whether it has the fields of a bare message, and nothing of another dialect.
fn has_message(doc: &Doc) -> bool {
    let is_hollow = || says(doc, "role", "assistant") && only_keys(doc, KEYS);
    is_message(doc)
        && (doc.get("content").is_some() || doc.get("tool_calls").is_some() || is_hollow())
        && (!says(doc, "role", "tool")
            || is_string(doc.get("tool_call_id"))
            || together(doc.root()).next().is_some())
        && !is_flat(doc.get("tool_calls"))
        && !has_block(doc.get("content"), NOT_PARTS)
        && !has_untyped_block(doc.get("content"))
}

/// Whether it would be one if not for an overwritten name. The value under that name must then be in order as well.
fn is_corrupted_bare(doc: &Doc) -> bool {
    let Some(name) = corrupted(doc.root(), KEYS, ROLES) else { return false };
    let mut fields = doc.root().into_iter().flat_map(Value::fields);
    fields.all(|(key, value)| {
        let is = |own: &str| key.is(own) || (key.span() == name.at && name.was.is_none_or(|was| was == own));
        let other = (is("tool_calls") && is_flat(Some(value)))
            || (is("content") && has_block(Some(value), NOT_PARTS));
        !other
    })
}

const PARTS: Kinds = Kinds::at(&["content", "*", "type"]).sent(
    "text image_url input_audio file refusal think image audio video audio_url video_url \
     input_text output_text input_image",
);

/// By the reference of the API, and the roles and parts of the agents that write it with lines of their own.
const KINDS: &[Kinds] = &[
    Kinds::at(&["role"])
        .sent("assistant tool user system developer function")
        .steers("_checkpoint")
        .silent("_usage _system_prompt session_meta"),
    PARTS,
    Kinds::at(&["tool_calls", "*", "type"]).sent("function custom"),
];

const NAMES: &[FieldNames] = &[
    FieldNames::all(&[
        text("role"),
        has("name"),
        has("injected"),
        has("message_id"),
        has("created_at"),
        has("timestamp"),
        has("refusal"),
        has("annotations"),
        has("reasoning_content"),
    ]),
    FieldNames::where_value(
        "role",
        &["system", "developer", "user", "tool"],
        &[needs("content", Form::TextOrList).with(PART)],
    ),
    FieldNames::where_value(
        "role",
        &["assistant"],
        &[
            needs("content", Form::TextOrList).with(PART),
            needs("tool_calls", Form::Objects).with(&[
                FieldNames::all(&[text("id"), has("type"), has("name"), has("arguments")]),
                FieldNames::typed(
                    &["function"],
                    &[needs("function", Form::Object)
                        .with(&[FieldNames::all(&[text("name"), text("arguments")])])],
                ),
            ]),
        ],
    ),
    FieldNames::where_value("role", &["tool"], &[text("tool_call_id")]),
    FieldNames::where_value("role", &["_usage"], &[needs("token_count", Form::Number)]),
    FieldNames::where_value("role", &["_system_prompt"], &[text("content")]),
    FieldNames::where_value("role", &["_checkpoint"], &[needs("id", Form::Number)]),
    FieldNames::where_value(
        "_type",
        &["metadata"],
        &[
            text("key"),
            text("created_at"),
            text("updated_at"),
            needs("metadata", Form::Object),
            needs("last_consolidated", Form::Number),
        ],
    ),
];

const PART: &[FieldNames] = &[
    FieldNames::all(&[text("type")]),
    FieldNames::typed(&["text"], &[text("text")]),
    FieldNames::typed(&["think"], &[text("think"), has("encrypted")]),
    FieldNames::typed(&["image_url"], &[needs("image_url", Form::Object)]),
];

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    Writing::new()
        .text("role", b"tool")
        .raw("tool_call_id", lost.call)
        .text("content", MISSING_RESULT.as_bytes())
        .end()
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    if says(doc, "role", "tool") || says(doc, "role", "function") {
        each(EntryPart::Result);
    }
    content_parts(doc.get("content"), each);
    listed_calls(doc.get("tool_calls"), each);
}

/// The name and the arguments of a call, of a tool that takes JSON or of one that takes any text.
fn called(call: Value<'_>) -> [Option<Value<'_>>; 2] {
    match call.get("custom") {
        Some(custom) => custom.pick(["name", "input"]),
        None => call.get("function").unwrap_or(call).pick(["name", "arguments"]),
    }
}

/// Reads a message of this dialect.
pub(super) fn message(message: Option<Value<'_>>, draft: &mut Draft<'_>) {
    let Some(message) = message else { return };
    let [role, content, calls, refusal, audio, call] =
        message.pick(["role", "content", "tool_calls", "refusal", "audio", "function_call"]);
    let there = |value: Option<Value<'_>>| value.is_some_and(|value| !value.is_null());
    let mut lacks = !there(content) && !there(calls);
    draft.entry.kind = match role.and_then(Value::text).as_deref() {
        Some(b"user") => {
            asked(content, draft);
            draft.entry.injected = is_reminder(content);
            Kind::Message(Role::User)
        }
        Some(b"assistant") => {
            answered(content, draft);
            if [refusal, audio, call].into_iter().flatten().any(|value| !value.is_null()) {
                draft.shows();
            }
            for call in items(calls) {
                let [name, arguments] = called(call);
                draft.call(call, call.get("id"), name, arguments.is_none_or(Value::is_null));
            }
            if items(calls).next().is_some() {
                draft.reasoned(message.get("reasoning_content"));
            }
            Kind::Message(Role::Assistant)
        }
        Some(b"tool") if together(Some(message)).next().is_some() => {
            for result in together(Some(message)) {
                draft.result(result, result.get("tool_call_id"), None, false);
                draft.content(result.get("content"));
            }
            Kind::Message(Role::Tool)
        }
        Some(b"tool") => {
            let [id, name] = message.pick(["tool_call_id", "name"]);
            draft.result(message, id, name, false);
            draft.content(content);
            lacks |= id.is_none();
            Kind::Message(Role::Tool)
        }
        Some(b"system" | b"developer") => Kind::Message(Role::System),
        Some(b"_system_prompt" | b"session_meta") => Kind::Header,
        Some(b"function") => Kind::Note,
        _ => Kind::Opaque,
    };
    if lacks || draft.entry.kind == Kind::Opaque {
        lacking(message, draft);
    }
}

/// Reads a message that lacks something, perhaps because a name was overwritten.
#[cold]
#[inline(never)]
fn lacking(message: Value<'_>, draft: &mut Draft<'_>) {
    if let Some(name) = corrupted(Some(message), KEYS, ROLES) {
        note_corrupted(&name, NEEDED, draft);
    }
}
