//! The kinds of records and blocks that a format knows, and what each does to what its agent sends.
//!
//! A kind that is not listed may be anything: a message, or a record that takes messages out. So it is noted (V2), and repairs
//! of the conversation wait. A name that differs from a listed one by damage is not another kind.

use crate::model::draft::Draft;
use crate::model::entry::ContentIssueKind;
use alloc::boxed::Box;
use hashbrown::HashMap;
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

    /// Whether records of a type have kinds at this place.
    fn belongs_to(&self, record_type: Option<Value<'_>>) -> bool {
        let is_own = |kind: Value<'_>| self.within.split_ascii_whitespace().any(|own| kind.is(own));
        self.within.is_empty() || record_type.is_some_and(is_own)
    }

    /// Whether a name was that of a known kind before some bytes of it were overwritten.
    fn was_overwritten(&self, name: &[u8]) -> bool {
        let usual = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.$:/@ ".contains(byte);
        let differ = |known: &str| known.bytes().zip(name).filter(|(one, two)| one != *two).count();
        !name.iter().all(usual) || self.all().any(|known| known.len() == name.len() && differ(known) == 1)
    }
}

/// What was found known before. Records are of the same kinds again and again, and to go through the lists takes as long as to
/// read a short record.
#[derive(Default)]
pub(crate) struct KnownKinds {
    /// For each type of records, the places of a format that belong to it: bits, by their order.
    places: HashMap<Box<[u8]>, u32>,
    /// The names that are known, with their places.
    names: HashMap<Box<[u8]>, u32>,
}

/// How many types and names are remembered.
const REMEMBERED_MAX: usize = 1 << 10;

impl KnownKinds {
    /// Notes the names of kinds that a format does not know.
    pub(crate) fn note_unknown(&mut self, kinds: &[Kinds], record: Value<'_>, draft: &mut Draft<'_>) {
        let places = self.places_of(kinds, record);
        for (place, own) in kinds.iter().enumerate().filter(|(place, _)| places & (1 << place) != 0) {
            visit(record, own.at, &mut |name| {
                if !self.is_known(own, place, name) {
                    draft.issue(ContentIssueKind::Unknown, name.span());
                }
            });
        }
    }

    fn places_of(&mut self, kinds: &[Kinds], record: Value<'_>) -> u32 {
        let record_type = record.get("type");
        let name = record_type.map_or(&[][..], Value::prefix);
        if let Some(&places) = self.places.get(name) {
            return places;
        }
        let belong = kinds.iter().enumerate().filter(|(_, own)| own.belongs_to(record_type));
        let places = belong.fold(0, |places, (place, _)| places | 1 << place);
        if self.places.len() < REMEMBERED_MAX {
            self.places.insert(name.into(), places);
        }
        places
    }

    fn is_known(&mut self, own: &Kinds, place: usize, name: Value<'_>) -> bool {
        let text = name.prefix();
        if name.kind() != ValueKind::String || self.names.get(text).is_some_and(|at| at & (1 << place) != 0) {
            return true;
        }
        let is_known = own.has(name);
        if is_known && self.names.len() < REMEMBERED_MAX {
            *self.names.entry_ref(text).or_default() |= 1 << place;
        }
        is_known || name.is("") || name.text().is_none_or(|name| own.was_overwritten(&name))
    }
}

fn visit<'d>(value: Value<'d>, at: &[&str], each: &mut dyn FnMut(Value<'d>)) {
    match at {
        [] => each(value),
        // The names of the fields themselves. What is `null` is not there.
        ["?"] => value.fields().filter(|(_, value)| !value.is_null()).for_each(|(key, _)| each(key)),
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
