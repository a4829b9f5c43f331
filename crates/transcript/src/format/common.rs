//! Helpers that several formats share.

use super::base::{Broken, Compaction, EntryPart};
use super::fields;
use super::writing::Writing;
use crate::model::damaged_name::{Corrupted, most_like, was};
use crate::model::draft::Draft;
use crate::model::entry::ContentIssueKind;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use spans::json::{Doc, Value, ValueKind};

/// Whether a top-level field is this string.
pub(super) fn says(doc: &Doc, key: &str, text: &str) -> bool {
    doc.get(key).is_some_and(|value| value.is(text))
}

/// Whether a top-level field is one of these strings.
pub(super) fn says_any(doc: &Doc, key: &str, texts: &[&str]) -> bool {
    doc.get(key).is_some_and(|value| is_any(value, texts))
}

/// Whether a value is one of these strings.
pub(super) fn is_any(value: Value<'_>, texts: &[&str]) -> bool {
    texts.iter().any(|text| value.is(text))
}

/// The types of the blocks of a content.
pub(super) fn block_types(content: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    items(content).filter_map(|block| block.get("type"))
}

/// Whether a content holds a block of one of these types.
pub(super) fn has_block(content: Option<Value<'_>>, types: &[&str]) -> bool {
    block_types(content).any(|kind| is_any(kind, types))
}

/// Whether a content has a block that its only field tells, as in Converse, and not its type.
pub(super) fn has_untyped_block(content: Option<Value<'_>>) -> bool {
    items(content).any(|block| {
        let mut fields = block.fields();
        fields.next().is_some_and(|(key, _)| !key.is("type")) && fields.next().is_none()
    })
}

/// Whether a value is a string.
pub(super) fn is_string(value: Option<Value<'_>>) -> bool {
    value.is_some_and(|value| value.kind() == ValueKind::String)
}

/// The elements of an array; nothing for any other value.
pub(super) fn items(value: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    let mut inside = value.map(Value::items);
    core::iter::from_fn(move || inside.as_mut()?.next())
}

/// The text of a content that is a single text.
pub(super) fn alone(content: Option<Value<'_>>) -> Option<Value<'_>> {
    content.filter(|content| content.kind() == ValueKind::String)
}

/// The first text of a content: the only one, or that of the first block that has one.
pub(super) fn first_text(content: Option<Value<'_>>) -> Option<Value<'_>> {
    alone(content).or_else(|| items(content).find_map(|part| part.get("text")))
}

/// Whether a program wrote this user message: several agents wrap such text in these tags.
pub(super) fn is_reminder(content: Option<Value<'_>>) -> bool {
    first_text(content).is_some_and(|text| text.prefix().starts_with(b"<system-reminder>"))
}

/// Reads the content of a user message: one text, or blocks with texts and images.
pub(super) fn asked(content: Option<Value<'_>>, draft: &mut Draft<'_>) {
    if let Some(text) = alone(content) {
        draft.user_text(text);
    }
    for part in items(content) {
        match part.get("text") {
            Some(text) => {
                draft.user_text(text);
                draft.blank(part, text);
            }
            None => draft.image(part),
        }
    }
}

/// Reads the content of an assistant message in the same way.
pub(super) fn answered(content: Option<Value<'_>>, draft: &mut Draft<'_>) {
    if let Some(text) = alone(content) {
        draft.text(text);
    }
    for part in items(content) {
        match part.get("text") {
            Some(text) => draft.text_block(part, text),
            None => draft.other_block(part),
        }
    }
}

/// Names that agents use for blocks with calls.
pub(super) const CALLS: &[&str] =
    &["toolCall", "toolUse", "functionCall", "tool_use", "tool_call", "function_call"];

/// The parts of a content value: a string, one block, or several.
pub(super) fn content_parts<'d>(content: Option<Value<'d>>, each: &mut dyn FnMut(EntryPart<'d>)) {
    let Some(content) = content else { return };
    match content.kind() {
        ValueKind::String => each(EntryPart::Text(content)),
        ValueKind::Object => block_parts(content, each),
        _ => content.items().for_each(|block| block_parts(block, each)),
    }
}

pub(super) fn block_parts<'d>(block: Value<'d>, each: &mut dyn FnMut(EntryPart<'d>)) {
    let [kind, name, arguments, input, content, text] =
        block.pick(["type", "name", "arguments", "input", "content", "text"]);
    let is = |name: &&str| kind.is_some_and(|kind| kind.is(name));
    if CALLS.iter().any(is) {
        each(EntryPart::Call { name, arguments: arguments.or(input) });
    } else if is(&"tool_result") {
        each(EntryPart::Result);
        // A result holds no results.
        match content.filter(|content| content.kind() == ValueKind::String) {
            Some(text) => each(EntryPart::Text(text)),
            None => items(content).for_each(|part| plain_part(part, part.get("text"), each)),
        }
    } else if !["thinking", "redacted_thinking", "reasoning"].iter().any(is) {
        plain_part(block, text, each);
    }
}

pub(super) fn plain_part<'d>(block: Value<'d>, text: Option<Value<'d>>, each: &mut dyn FnMut(EntryPart<'d>)) {
    let image = || block.get("type").is_some_and(|kind| is_any(kind, &["image", "image_url", "input_image"]));
    match text.filter(|text| text.kind() == ValueKind::String) {
        Some(text) => each(EntryPart::Text(text)),
        None if image() => each(EntryPart::Image),
        None => {}
    }
}

/// The calls in a message's field beside its content, in OpenAI's dialect or without a `function` around the name.
pub(super) fn listed_calls<'d>(calls: Option<Value<'d>>, each: &mut dyn FnMut(EntryPart<'d>)) {
    for call in items(calls) {
        let function = call.get("function").unwrap_or(call);
        let [name, arguments, args] = function.pick(["name", "arguments", "args"]);
        each(EntryPart::Call { name, arguments: arguments.or(args) });
    }
}

/// Whether an assistant message in Anthropic's dialect was cut off, or did not fit the window.
pub(super) fn broken_by_stop_reason(message: Option<Value<'_>>) -> Option<Broken<'_>> {
    let stop = message?.get("stop_reason")?;
    if stop.is("max_tokens") {
        return Some(Broken::CutOff);
    }
    stop.is("model_context_window_exceeded").then_some(Broken::TooLong(Some(stop)))
}

/// Finds an overwritten name in a message, a key or the role, if there is exactly one, and everything else is as it
/// should be.
/// || Such a name holds characters that no program writes into a name, and at least a quarter of the original is left
/// around them. Otherwise what some other program writes could be taken for damage.
/// them: what some other program writes is not taken for damage.
pub(super) fn corrupted(
    message: Option<Value<'_>>,
    keys: &'static [&'static str],
    roles: &'static [&'static str],
) -> Option<Corrupted> {
    let all = || message.into_iter().flat_map(Value::fields);
    let known = |key: Value<'_>| fields::known(keys).any(|name| key.is(name));
    let wrong =
        |(key, value): &(Value<'_>, Value<'_>)| !known(*key) || (key.is("role") && !is_any(*value, roles));
    let mut all_wrong = all().filter(wrong);
    let (key, value) = all_wrong.next().filter(|_| all_wrong.next().is_none())?;
    if known(key) {
        return most_like(value, &mut roles.iter().copied());
    }
    // A name that is present elsewhere in the object is not the overwritten one.
    let there = |name: &&'static str| all().any(|(key, _)| key.is(name));
    most_like(key, &mut fields::known(keys).filter(|name| !there(name)))
}

/// Notes an overwritten name if a message lacks something it needs: one of these names, or a role.
pub(super) fn note_corrupted(name: &Corrupted, needed: &[&str], draft: &mut Draft<'_>) {
    let was = name.was.filter(|was| needed.contains(was));
    draft.issue(ContentIssueKind::Corrupted(was), name.at);
}

/// Notes that the key of the role was overwritten. Returns whether it was.
pub(super) fn corrupted_role(message: Value<'_>, draft: &mut Draft<'_>) -> bool {
    written_over(message, "role", draft).is_some()
}

/// Returns the value under a key that may have been this absent name, and notes that the key was overwritten.
pub(super) fn written_over<'d>(
    object: Value<'d>,
    name: &'static str,
    draft: &mut Draft<'_>,
) -> Option<Value<'d>> {
    let (key, value) = object.fields().find(|(key, _)| was(*key, name))?;
    draft.issue(ContentIssueKind::Corrupted(Some(name)), key.span());
    Some(value)
}

/// Whether every field has one of these names.
pub(super) fn only_keys(doc: &Doc, names: &[&str]) -> bool {
    let fields = doc.root().into_iter().flat_map(Value::fields);
    fields.map(|(key, _)| key).all(|key| is_any(key, names))
}

/// Whether a field has one of these names, or had one before some bytes of it were overwritten.
pub(super) fn has_key_like(doc: &Doc, names: &'static [&'static str]) -> bool {
    let mut keys = doc.root().into_iter().flat_map(Value::fields).map(|(key, _)| key);
    keys.any(|key| is_any(key, names) || most_like(key, &mut names.iter().copied()).is_some())
}

/// An RFC 3339 timestamp one millisecond later; the same text if it is not a timestamp.
pub(super) fn later(timestamp: &[u8]) -> String {
    let text = String::from_utf8_lossy(timestamp);
    let moment = text.parse::<jiff::Timestamp>().ok();
    let next = moment.and_then(|moment| moment.checked_add(jiff::SignedDuration::from_millis(1)).ok());
    next.map_or_else(|| text.to_string(), |next| format!("{next:.3}"))
}

/// One millisecond after an entry was written, in the spelling of its timestamp; empty if it has none.
pub(super) fn time_after(entry: &Doc) -> String {
    entry.get("timestamp").and_then(Value::text).map(|time| later(&time)).unwrap_or_default()
}

/// A moment, as a timestamp or a number, in milliseconds since 1970.
pub(super) fn moment_ms(value: Value<'_>) -> Option<u64> {
    let text = value.text();
    let moment = text.and_then(|text| core::str::from_utf8(&text).ok()?.parse::<jiff::Timestamp>().ok());
    let moment = moment.and_then(|moment| u64::try_from(moment.as_millisecond()).ok());
    moment.or_else(|| value.whole())
}

/// When an object was written, in milliseconds since 1970: its own time, or that of the message in it.
pub(crate) fn written_ms(doc: &Doc) -> Option<u64> {
    let inside = || doc.get("message").and_then(|message| message.get("timestamp")).and_then(Value::whole);
    doc.get("timestamp").and_then(moment_ms).or_else(inside)
}

/// A compaction as a user message in place of those that are left out. The API accepts several user messages in a row.
pub(super) fn summary_message(made: &Compaction<'_>) -> Vec<Vec<u8>> {
    [Writing::new().text("role", b"user").text("content", made.summary.as_bytes()).end()].into()
}

/// A user message that holds these results and nothing else.
pub(super) fn results_message(blocks: &[u8]) -> Vec<u8> {
    Writing::new().text("role", b"user").list("content", blocks).end()
}
