//! E1: a field or a block that the provider does not know and that its error names. It is taken out everywhere it stands in
//! what is sent: what is refused at one place is refused at each.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo};
use super::named_by_error::{blamed, finding};
use super::removal::take_out;
use crate::format::Results;
use crate::model::finding::{Fix, Op};
use crate::refusal;
use crate::session::Session;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use spans::json::{self, Doc, Value, ValueKind};
use spans::source::{Fault, Span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "E1",
        name: "refused-part",
        help: Help {
            what: "The API's error names a field or block that it does not know.",
            why: "\"messages.3.content.0.x: Extra inputs are not permitted\", \"Input tag 'x' … does not match any of the \
                  expected tags\", on every request.",
            fix: "`tailor fix --error \"TEXT\" --allow E1` takes it out everywhere.",
            source: "anthropic-sdk-typescript #862; any-llm #1401; codex #6945",
        },
        groups: &[Group::Content],
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| match format.results {
        Results::Lines | Results::Blocks => Cover::Fixed,
        _ => Cover::Never,
    },
    check,
};

/// Fields without which a message is none, or says something else.
const FIELDS_KEPT: &[&str] = &[
    "id",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "toolCallId",
    "toolUseId",
    "name",
    "role",
    "type",
    "content",
    "parts",
    "text",
    "input",
    "arguments",
    "args",
    "function",
    "tool_calls",
    "output",
    "thinking",
    "data",
    "source",
];

/// Blocks that pair, or that somebody said.
const BLOCKS_KEPT: &[&str] = &[
    "text",
    "input_text",
    "output_text",
    "message",
    "tool_use",
    "tool_result",
    "function_call",
    "function_call_output",
    "functionCall",
    "functionResponse",
    "toolCall",
    "toolResult",
    "tool-call",
    "tool-result",
];

/// Lists of blocks in a message.
const LISTS: &[&str] = &["content", "parts", "blocks"];

/// What stands before the name of a kind, or of a field, that is not known.
const BEFORE_KINDS: &[&str] =
    &["Input tag ", "Invalid value: ", "unknown variant ", "item type ", "content type ", "part type "];
const BEFORE_FIELDS: &[&str] = &["property ", "Unknown parameter: ", "Unknown name "];

/// What an error names.
enum Refused {
    Field {
        name: String,
        /// The names on the way to it: among them is the kind of the block that has it.
        way: Vec<String>,
    },
    Block(String),
}

impl Refused {
    fn read(said: &str) -> Option<Self> {
        let told = refusal::read(said);
        let family = told.family.filter(|family| family.has(RULE.code()))?;
        if family.name == "block" {
            let kind = quoted_after(said, BEFORE_KINDS)?;
            return (!BLOCKS_KEPT.contains(&kind)).then(|| Self::Block(kind.to_string()));
        }
        let place = told.place?;
        let name = Some(place.field.as_str()).filter(|field| !field.is_empty() && !LISTS.contains(field));
        let name = name.or_else(|| quoted_after(said, BEFORE_FIELDS))?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let way = place.written.split(|c| !is_word(c)).filter(|word| *word != name).map(str::to_string);
        (!FIELDS_KEPT.contains(&name)).then(|| Self::Field { name: name.to_string(), way: way.collect() })
    }
}

/// The first word in quotes after one of these texts.
fn quoted_after<'t>(said: &'t str, before: &[&str]) -> Option<&'t str> {
    const QUOTES: [char; 4] = ['\'', '"', '`', '\\'];
    before.iter().find_map(|before| {
        let (_, rest) = said.split_once(before)?;
        let word = rest.strip_prefix(QUOTES)?.trim_start_matches(QUOTES);
        word.split(QUOTES).next().filter(|word| !word.is_empty())
    })
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let Some(said) = blamed(session, &RULE)? else { return Ok(()) };
    let Some(refused) = Refused::read(&said) else { return Ok(()) };
    for entry in session.sent() {
        let Some(doc) = json::parse(session.source, session.entry(entry).span)? else { continue };
        let Some(message) = message_of(&doc) else { continue };
        let (fix, what) = match &refused {
            Refused::Field { name, way } => (without_field(message, name, way), format!("the field {name}")),
            Refused::Block(kind) => {
                (without_blocks(session, entry, message, kind), format!("a block of kind {kind}"))
            }
        };
        if !fix.ops.is_empty() {
            let message = format!("{what}, which the API does not accept");
            out.push(finding(&RULE, session, entry, &message, fix));
        }
    }
    Ok(())
}

/// The message in a record.
fn message_of(doc: &Doc) -> Option<Value<'_>> {
    let mut inner = ["message", "payload", "data", "kwargs"].iter().filter_map(|key| doc.get(key));
    inner.find(|value| value.kind() == ValueKind::Object).or(doc.root())
}

/// The lists of blocks in a message, or in a block.
fn lists_of(object: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    LISTS.iter().filter_map(move |key| object.get(key))
}

/// Takes a field out of the blocks that the way to it names; or of the message, if the way leads into no list.
fn without_field(message: Value<'_>, name: &str, way: &[String]) -> Fix {
    let leads_into_blocks = way.iter().any(|word| LISTS.contains(&word.as_str()));
    if !leads_into_blocks {
        return Fix::safe(without(message, name).into_iter().collect());
    }
    // In `content.0.text.x` the word after the number is a kind; in `content[0].x` there is none.
    let is_word = |word: &&String| !word.is_empty() && word.parse::<u64>().is_err();
    let mut kinds = way.iter().skip(1).filter(is_word).filter(|word| !LISTS.contains(&word.as_str()));
    let names_kind = kinds.next().is_some();
    let is_named = |kind: Value<'_>| way.iter().any(|word| kind.is(word));
    let blocks = lists_of(message).flat_map(Value::items);
    let blocks = blocks.filter(|block| !names_kind || block.get("type").is_some_and(is_named));
    let holders = blocks
        .flat_map(|block| lists_of(block).flat_map(|list| list.items().chain(Some(list))).chain(Some(block)));
    Fix::safe(holders.filter_map(|holder| without(holder, name)).collect())
}

/// Takes a field out of an object, with one comma.
fn without(object: Value<'_>, name: &str) -> Option<Op> {
    let fields: Vec<_> = object.fields().collect();
    let at = fields.iter().position(|(key, _)| key.is(name))?;
    let (start, end) = (fields[at].0.span().start, fields[at].1.span().end);
    let (start, end) = match (fields.get(at + 1), at.checked_sub(1)) {
        (Some((next, _)), _) => (start, next.span().start),
        (None, Some(before)) => (fields[before].1.span().end, end),
        (None, None) => (start, end),
    };
    Some(Op::Replace { at: Span::new(start, end), with: Vec::new() })
}

/// Takes out the blocks of a kind, and the entry if its message has no others.
fn without_blocks(session: &Session<'_>, entry: u32, message: Value<'_>, kind: &str) -> Fix {
    let kinds = ["type", "part_kind", "block_type"];
    let is_kind = |block: &Value<'_>| match block.pick(kinds).into_iter().flatten().next() {
        Some(own) => own.is(kind),
        None => block.get(kind).is_some(),
    };
    let mut ops = Vec::new();
    let inner = lists_of(message).flat_map(Value::items).flat_map(lists_of).map(|list| (true, list));
    for (is_inner, list) in lists_of(message).map(|list| (false, list)).chain(inner) {
        let named: Vec<Span> = list.items().filter(is_kind).map(Value::span).collect();
        if named.is_empty() {
            continue;
        }
        match (named.len() == list.items().count(), is_inner) {
            (true, false) => return take_out(session, entry),
            (true, true) => ops.push(Op::Replace { at: list.span(), with: b"[]".to_vec() }),
            (false, _) => ops.extend(named.into_iter().map(|block| Op::DropBlock { entry, block })),
        }
    }
    Fix::safe(ops)
}

#[cfg(test)]
mod tests {
    use super::Refused;

    #[test]
    fn what_pairs_or_was_said_is_never_taken() {
        for text in [
            "messages.1.content.0.tool_use.id: Extra inputs are not permitted",
            "messages.1.content.0.text.text: Extra inputs are not permitted",
            "messages[1].content[0]: unknown variant `tool_use`, expected `text`",
            "messages.3: Extra inputs are not permitted",
            "tools.0.custom.x: Extra inputs are not permitted",
            "messages: Input tag 'text' does not match any of the expected tags",
        ] {
            assert!(Refused::read(text).is_none(), "{text}");
        }
        let block = Refused::read("messages[1].content[0]: unknown variant `hologram`, expected `text`");
        assert!(matches!(block, Some(Refused::Block(kind)) if kind == "hologram"));
        let field = Refused::read("400 Extra inputs are not permitted, field: 'messages[7].is_error'");
        assert!(matches!(field, Some(Refused::Field { name, .. }) if name == "is_error"));
    }
}
