//! Measures a transcript during the scan: the bytes of each field, and the pieces of each entry.
//!
//! It gets each object right after the format has read it. The format has marked texts, calls, results and side copies;
//! the rest is recognised by names that all agents share. Memory for a value does not grow with its length.

use crate::model::entry::{Entry, Kind, Mark, PieceKind, Role};
use crate::model::transcript::Transcript;
use crate::read::scan::Visitor;
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use hashbrown::{DefaultHashBuilder, HashTable};
use spans::fingerprint;
use spans::json::{Value, ValueKind as Json};
use spans::source::Span;

/// Shorter values have no row of their own: their bytes count for the object that holds them.
const FIELD_BYTES_MIN: u64 = 100;
/// Fields have rows of their own to this depth.
const DEPTH_MAX: usize = 8;
/// How many fields and kinds of entries have rows of their own; the others share `*`.
const FIELDS_MAX: usize = 2_000;
/// How many fields of one object have rows of their own. If there are more, its keys are data.
const SIBLINGS_MAX: u32 = 64;
/// Longest key that counts as a name.
const NAME_BYTES_MAX: usize = 40;
/// Shorter texts are not compared.
const TWIN_BYTES_MIN: u64 = 1000;
/// How many texts are remembered for comparison.
const TWINS_MAX: usize = 1 << 20;

/// Stands for no index.
pub(super) const NOBODY: u32 = u32::MAX;

/// A long text, to be compared with others of the same length.
#[derive(Clone, Copy)]
pub(super) struct Twin {
    pub(super) inner: Span,
    /// Fingerprint of its beginning.
    pub(super) hash: u64,
}

/// The name of a field or a kind of entry, with its amount.
pub(super) struct NamedNode {
    parent: u32,
    key: Vec<u8>,
    children: u32,
    pub(super) count: u64,
    pub(super) bytes: u64,
}

/// A tree of names, each stored once.
pub(super) struct NameTree {
    pub(super) all: Vec<NamedNode>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl NameTree {
    fn new() -> Self {
        let root = NamedNode { parent: NOBODY, key: Vec::new(), children: 0, count: 0, bytes: 0 };
        Self { all: [root].into(), table: HashTable::new(), hasher: DefaultHashBuilder::default() }
    }

    /// A name below another one. `*` if the key is not a name, or there are too many.
    fn below(&mut self, parent: u32, key: &[u8]) -> u32 {
        if let Some(known) = self.find(parent, key) {
            return known;
        }
        let full = self.all.len() >= FIELDS_MAX || self.all[parent as usize].children >= SIBLINGS_MAX;
        let key = if full || !is_name(key) { b"*" } else { key };
        if let Some(known) = self.find(parent, key) {
            return known;
        }
        let new = self.all.len() as u32;
        self.all.push(NamedNode { parent, key: key.to_vec(), children: 0, count: 0, bytes: 0 });
        self.all[parent as usize].children += 1;
        let Self { all, table, hasher } = self;
        let hash = |named: &NamedNode| hasher.hash_one((named.parent, &named.key[..]));
        table.insert_unique(hash(&all[new as usize]), new, |&other| hash(&all[other as usize]));
        new
    }

    fn find(&self, parent: u32, key: &[u8]) -> Option<u32> {
        let same = |&other: &u32| {
            let named = &self.all[other as usize];
            named.parent == parent && named.key == key
        };
        self.table.find(self.hasher.hash_one((parent, key)), same).copied()
    }

    /// `message.content[].text`; empty for the object itself.
    pub(super) fn path(&self, name: u32, between: char) -> String {
        let mut keys = Vec::new();
        let mut at = name;
        while at != 0 && at != NOBODY {
            keys.push(&self.all[at as usize].key);
            at = self.all[at as usize].parent;
        }
        let mut path = String::new();
        for key in keys.into_iter().rev() {
            if !path.is_empty() && key != b"[]" {
                path.push(between);
            }
            path.push_str(core::str::from_utf8(key).unwrap_or("*"));
        }
        path
    }
}

/// Whether a key is a name and not data: paths, ids and sentences can be keys as well.
fn is_name(key: &[u8]) -> bool {
    let word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'$' | b'[' | b']');
    let digits = key.iter().filter(|b| b.is_ascii_digit()).count();
    (1..=NAME_BYTES_MAX).contains(&key.len()) && key.iter().all(word) && digits <= 2
}

/// Weighs objects as they are read.
pub(crate) struct Meter {
    pub(super) fields: NameTree,
    pub(super) kinds: NameTree,
    /// The kind of each entry.
    pub(super) kind_of: Vec<u16>,
    /// The pieces of all entries.
    pub(super) pieces: Vec<Mark>,
    /// Where the pieces of each entry begin.
    pub(super) pieces_from: Vec<u32>,
    /// All images.
    pub(super) images: Vec<(u32, Span)>,
    pub(super) twins: Vec<Twin>,
    /// Shorter texts are not remembered as twins.
    pub(super) twin_bytes_min: u64,
    /// Bytes of fields in the current line. They are added once the line has ended without damage.
    line: Vec<(u32, u64)>,
    line_twins: Vec<Twin>,
}

/// The object being walked.
struct Walk<'w> {
    marks: &'w [Mark],
    /// A list whose objects are entries of their own.
    list: Option<Span>,
    speaks: bool,
    images: Vec<Span>,
    thoughts: Vec<(Span, u64)>,
}

impl Walk<'_> {
    fn mark(&self, span: Span) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.span.contains(span))
    }
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self {
            fields: NameTree::new(),
            kinds: NameTree::new(),
            kind_of: Vec::new(),
            pieces: Vec::new(),
            pieces_from: Vec::new(),
            images: Vec::new(),
            twins: Vec::new(),
            twin_bytes_min: TWIN_BYTES_MIN,
            line: Vec::new(),
            line_twins: Vec::new(),
        }
    }

    fn forget_from(&mut self, entries: usize) {
        if let Some(&from) = self.pieces_from.get(entries) {
            self.pieces.truncate(from as usize);
        }
        self.pieces_from.truncate(entries);
        self.kind_of.truncate(entries);
        self.images.retain(|(entry, _)| (*entry as usize) < entries);
    }

    /// Bounds memory: if there are too many long texts, only the longest are compared.
    fn bound_twins(&mut self) {
        while self.twins.len() > TWINS_MAX {
            self.twin_bytes_min *= 2;
            let least = self.twin_bytes_min;
            self.twins.retain(|twin| twin.inner.len() >= least);
        }
    }

    /// The kind of an entry, named as in the file.
    fn kind(&mut self, entry: &Entry, root: Value<'_>) -> u16 {
        let [kind, role, subtype, message, payload] =
            root.pick(["type", "role", "subtype", "message", "payload"]);
        let text = |value: Option<Value<'_>>| value.and_then(Value::text).map(Cow::into_owned);
        let inner = || text(message.and_then(|m| m.get("role"))).or_else(|| text(payload?.get("type")));
        let first = text(kind).or_else(|| text(role)).unwrap_or_else(|| b"*".to_vec());
        let second = match entry.kind {
            Kind::Message(Role::Tool) => Some(b"results".to_vec()),
            _ => inner().or_else(|| text(subtype)),
        };
        let mut name = self.kinds.below(0, &first);
        if let Some(second) = second.filter(|second| *second != first) {
            name = self.kinds.below(name, &second);
        }
        name as u16
    }

    fn container(&mut self, value: Value<'_>, path: u32, depth: usize, walk: &mut Walk<'_>) {
        let mut rest = value.span().len();
        let list = value.kind() == Json::Array;
        let items = value.items().map(|item| (None, item));
        for (key, inside) in value.fields().map(|(key, inside)| (Some(key), inside)).chain(items) {
            let bytes = inside.span().len();
            if walk.list == Some(value.span()) && inside.kind() == Json::Object {
                rest -= bytes;
                continue;
            }
            if bytes < FIELD_BYTES_MIN && !walk.list.is_some_and(|list| inside.span().contains(list)) {
                continue;
            }
            rest -= bytes;
            let key = key.and_then(Value::text);
            let name = if list { &b"[]"[..] } else { key.as_deref().unwrap_or(b"*") };
            let child = self.fields.below(path, name);
            match inside.kind() {
                Json::Object | Json::Array if depth < DEPTH_MAX => {
                    self.container(inside, child, depth + 1, walk);
                }
                kind => {
                    if kind == Json::String {
                        self.string(value, name, inside, walk);
                    }
                    self.line.push((child, bytes));
                }
            }
        }
        self.line.push((path, rest));
    }

    /// Adds a string that is not short.
    fn string(&mut self, holder: Value<'_>, key: &[u8], value: Value<'_>, walk: &mut Walk<'_>) {
        if value.inner().len() >= self.twin_bytes_min {
            self.line_twins.push(Twin { inner: value.inner(), hash: fingerprint::hash(value.prefix()) });
        }
        if is_image(holder, key, value) {
            walk.images.push(value.span());
        } else if walk.speaks && THOUGHTS.contains(&key) && walk.mark(value.span()).is_none() {
            // Encrypted strings are not text.
            let chars = if key == b"thinking" || key == b"text" { value.chars() } else { 0 };
            walk.thoughts.push((value.span(), chars));
        }
    }
}

impl Visitor for Meter {
    fn entry(&mut self, transcript: &mut Transcript, root: Option<Value<'_>>, list: Option<Value<'_>>) {
        let mut marks = transcript.take_marks();
        // A format may mark both a block and what is in it.
        marks.sort_by_key(|mark| (mark.span.start, u64::MAX - mark.span.end));
        let mut end = 0;
        marks.retain(|mark| {
            let apart = mark.span.start >= end;
            end = end.max(mark.span.end);
            apart
        });
        let (Some(entry), Some(root)) = (transcript.entries.last(), root) else { return };
        let index = transcript.entries.len() as u32 - 1;
        let kind = self.kind(entry, root);
        self.kind_of.push(kind);
        self.pieces_from.push(self.pieces.len() as u32);
        let speaks = matches!(entry.kind, Kind::Message(Role::Assistant));
        let list = list.map(Value::span);
        let mut walk = Walk { marks: &marks, list, speaks, images: Vec::new(), thoughts: Vec::new() };
        self.container(root, 0, 0, &mut walk);
        let Walk { images, thoughts, .. } = walk;
        self.images.extend(images.iter().map(|&span| (index, span)));
        let free = |span: &Span| !marks.iter().any(|mark| mark.span.contains(*span));
        let owner = transcript.results_of(index).next().map_or(NOBODY, |result| result as u32);
        let piece = |kind, span, chars| Mark { kind, owner, span, chars };
        let shown = images.iter().filter(|span| free(span)).map(|&span| piece(PieceKind::Image, span, 0));
        let thought = thoughts.iter().filter(|(span, _)| free(span));
        let thought = thought.map(|&(span, chars)| piece(PieceKind::Thinking, span, chars));
        self.pieces.extend(shown.chain(thought));
        self.pieces.extend(&marks);
        transcript.give_marks(marks);
    }

    fn end_line(&mut self, entries: usize, kept: bool) {
        let (line, twins) = (core::mem::take(&mut self.line), core::mem::take(&mut self.line_twins));
        if kept {
            for &(field, bytes) in &line {
                let named = &mut self.fields.all[field as usize];
                named.count += 1;
                named.bytes += bytes;
            }
            self.twins.extend(&twins);
            self.bound_twins();
        } else {
            self.forget_from(entries);
        }
        (self.line, self.line_twins) = (line, twins);
        self.line.clear();
        self.line_twins.clear();
    }
}

/// Names of fields that hold thinking and its signatures.
const THOUGHTS: &[&[u8]] = &[
    b"thinking",
    b"thinkingSignature",
    b"signature",
    b"reasoning",
    b"reasoning_content",
    b"encrypted_content",
];

/// Whether a value is base64 in an object that calls itself an image, or a data URL of one.
fn is_image(holder: Value<'_>, key: &[u8], value: Value<'_>) -> bool {
    if value.prefix().starts_with(b"data:image/") {
        return true;
    }
    let says = |name| holder.get(name).is_some_and(|v| v.is("image") || v.prefix().starts_with(b"image/"));
    matches!(key, b"data" | b"base64")
        && ["mimeType", "media_type", "mediaType", "type"].into_iter().any(says)
}
