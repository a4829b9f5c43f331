//! The kinds of records and blocks that a format knows, and what each does to what its agent sends.
//!
//! A kind that is not listed may be anything: a message, or a record that takes messages out. So it is noted (V2), and repairs
//! of the conversation wait. A name that differs from a listed one by damage is not another kind.

use crate::model::draft::Draft;
use crate::model::entry::ContentIssueKind;
use spans::json::{Value, ValueKind};

/// Kinds that are named at one place of a record. The names are words in a text.
pub struct Kinds {
    /// The records that have them, by their `type`; empty if that does not matter.
    within: &'static str,
    /// Where the name is. `*` stands for each element of a list, `?` for the names of all fields, `$` for those that begin so.
    at: &'static [&'static str],
    /// What is sent.
    sent: &'static str,
    /// What is never sent, and changes nothing.
    silent: &'static str,
    /// What decides which others are sent, or how.
    steers: &'static str,
}

impl Kinds {
    pub(super) const fn at(at: &'static [&'static str]) -> Self {
        Self { within: "", at, sent: "", silent: "", steers: "" }
    }

    pub(super) const fn within(self, within: &'static str) -> Self {
        Self { within, ..self }
    }

    pub(super) const fn sent(self, sent: &'static str) -> Self {
        Self { sent, ..self }
    }

    pub(super) const fn silent(self, silent: &'static str) -> Self {
        Self { silent, ..self }
    }

    pub(super) const fn steers(self, steers: &'static str) -> Self {
        Self { steers, ..self }
    }

    fn all(&self) -> impl Iterator<Item = &'static str> {
        [self.sent, self.silent, self.steers].into_iter().flat_map(str::split_ascii_whitespace)
    }

    /// Whether a kind is known. `*` at the end of a name stands for a family.
    pub(super) fn has(&self, name: Value<'_>) -> bool {
        self.all().any(|known| match known.strip_suffix('*') {
            Some(family) => name.prefix().starts_with(family.as_bytes()),
            None => name.is(known),
        })
    }

    /// Whether a name was that of a known kind before some bytes of it were overwritten.
    fn was_overwritten(&self, name: &[u8]) -> bool {
        let usual = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.$:/@ ".contains(byte);
        let differ = |known: &str| known.bytes().zip(name).filter(|(one, two)| one != *two).count();
        !name.iter().all(usual) || self.all().any(|known| known.len() == name.len() && differ(known) == 1)
    }
}

/// Notes the names of kinds that a format does not know.
pub(crate) fn note_unknown(kinds: &[Kinds], record: Value<'_>, draft: &mut Draft<'_>) {
    for own in kinds {
        let applies = own.within.is_empty()
            || record
                .get("type")
                .is_some_and(|kind| own.within.split_ascii_whitespace().any(|known| kind.is(known)));
        if applies {
            visit(record, own.at, &mut |name| {
                let is_strange = name.kind() == ValueKind::String && !name.is("") && !own.has(name);
                if is_strange && name.text().is_some_and(|name| !own.was_overwritten(&name)) {
                    draft.issue(ContentIssueKind::Unknown, name.span());
                }
            });
        }
    }
}

fn visit<'d>(value: Value<'d>, at: &[&str], each: &mut dyn FnMut(Value<'d>)) {
    match at {
        [] => each(value),
        // The names of the fields themselves.
        ["?"] => value.fields().for_each(|(key, _)| each(key)),
        ["$"] => {
            let keys = value.fields().map(|(key, _)| key);
            keys.filter(|key| key.prefix().starts_with(b"$")).for_each(each);
        }
        ["*", rest @ ..] => value.items().for_each(|item| visit(item, rest, each)),
        [name, rest @ ..] => value.get(name).into_iter().for_each(|inside| visit(inside, rest, each)),
    }
}

/// The blocks of a message in Anthropic's API: see [`BLOCKS`].
pub(super) const fn blocks(within: &'static str, at: &'static [&'static str]) -> Kinds {
    Kinds::at(at).within(within).sent(BLOCKS)
}

/// By Anthropic's reference of the Messages API, and by what Claude Code 2.1.332 tells apart.
const BLOCKS: &str = "tool_use tool_result text thinking image redacted_thinking document server_tool_use \
     web_search_tool_result web_fetch_tool_result code_execution_tool_result bash_code_execution_tool_result \
     text_editor_code_execution_tool_result tool_search_tool_result advisor_tool_result mcp_tool_use mcp_tool_result \
     tool_reference search_result container_upload compaction fallback";
