//! The shape of one JSON object: which value stands at which bytes.
//!
//! The tokeniser holds the bytes of the line it reads and says of each value where it stands in them; no text is copied.
//! Only of a line that is longer than 1 MiB it lets the insides of long strings go, but for their first
//! [`PREFIX_BYTES_MAX`] bytes, so that a line of 8 GiB that is one long string takes no more memory than that.
//!
//! It accepts what `JSON.parse` accepts, for objects, and on top of that any bytes above 0x7f inside strings:
//! lone surrogates, duplicate keys, big numbers, any depth and invalid UTF-8 are data here. It refuses to know
//! what a key means; that is the business of the crates above.

use crate::block::{Marks, Reach, SIZE};
use crate::literal::{self, Unit, hex4};
use crate::marker;
use crate::source::{Fault, Source, Span, WINDOW_BYTES};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::convert::Infallible;
use memchr::memchr;

/// How much of the beginning of a string can be asked for, in raw (escaped) bytes. Names and roles are far shorter; ids
/// of calls that carry an encrypted item of the provider reach a thousand.
pub const PREFIX_BYTES_MAX: usize = 4096;

/// How many values and keys one object may hold before it is given up as too complex to look into. The bytes
/// stay as they are; it is memory that is bounded here (about 16 MB).
pub const NODES_MAX: usize = 1 << 20;

/// How long a line may be that is held whole.
const LONG_BYTES: usize = 1 << 20;

/// How much may be held of one line. More is too complex as well.
const HELD_BYTES_MAX: usize = 1 << 28;

/// A text of so many bytes is searched for our markers when it is read, because a rule may want to know.
const SEARCHED_BYTES_MIN: usize = 1 << 12;

/// The first window of what may end early or be no object at all.
const FIRST_WINDOW_BYTES: usize = 256;

/// What kind of value a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number, as written.
    Number,
    /// `true` or `false`.
    Bool,
    /// `null`
    Null,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Where it stands in the bytes that are held.
    start: u32,
    end: u32,
    /// Index of the node after this one and all it holds.
    next: u32,
    kind: ValueKind,
    flags: u8,
    /// The [`tag`] of a key's text. Of a string that is [`COUNTED`], how many bytes are no characters of their own.
    tag: u16,
}

/// The node is a key.
const KEY: u8 = 1;
/// It may not say what is written: there are escapes in it or characters beyond ASCII, or it was renamed.
const ESCAPED: u8 = 2;
/// The characters of the string are counted.
const COUNTED: u8 = 4;
/// There may be characters of four bytes.
const FOURS: u8 = 8;

/// Bytes that are not held any more.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// Where it would stand in the bytes that are held.
    at: u32,
    /// How many bytes were dropped up to here.
    total: u64,
    /// Characters in it.
    chars: u64,
    /// UTF-16 may write some of them as a pair.
    pairs: bool,
}

/// One object, tokenised. Reused from line to line, so that a scan does not allocate.
#[derive(Clone, Debug, Default)]
pub struct Doc {
    /// The bytes that are held: the object's, and others around it. Room behind them is there to be filled again.
    bytes: Vec<u8>,
    /// How many of them are held.
    held: usize,
    /// Where they begin in the source.
    base: u64,
    gaps: Vec<Gap>,
    nodes: Vec<Node>,
    /// Keys that were given another name.
    renamed: Vec<(u32, &'static str)>,
    odd: Odd,
    /// A string holds a surrogate pair as two escapes.
    pairs: bool,
}

/// Whether strings hold something that JSON allows and some readers refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Odd(u8);

impl Odd {
    const HALF_PAIRS: u8 = 1;
    const NUL: u8 = 2;

    /// Half a surrogate pair, `\ud83d` without its other half: no text in any encoding.
    pub fn half_pairs(self) -> bool {
        self.0 & Self::HALF_PAIRS != 0
    }

    /// `\u0000`.
    pub fn nul(self) -> bool {
        self.0 & Self::NUL != 0
    }
}

impl Doc {
    /// The object itself. `None` before a whole object was read.
    pub fn root(&self) -> Option<Value<'_>> {
        (!self.nodes.is_empty()).then_some(Value { doc: self, at: 0 })
    }

    /// A top-level value by key. Of duplicate keys the last counts, as in `JSON.parse`.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        self.root()?.get(key)
    }

    /// How many values and keys it holds.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// All keys of all objects in it, as written and without their quotes, with a number that equal ones share.
    pub fn keys(&self) -> impl Iterator<Item = (Value<'_>, &[u8], u16)> {
        let keys = (0..).zip(&self.nodes).filter(|(_, node)| node.flags & KEY != 0);
        keys.map(|(at, node)| {
            let raw = &self.bytes[node.start as usize + 1..node.end as usize - 1];
            (Value { doc: self, at }, raw, node.tag)
        })
    }

    /// Whether its strings hold something that some readers refuse.
    pub fn odd(&self) -> Odd {
        self.odd
    }

    /// Gives the key at a place another name.
    pub fn rename(&mut self, at: u32, name: &'static str) {
        let key = &mut self.nodes[at as usize];
        (key.flags, key.tag) = (key.flags | ESCAPED, tag(name.as_bytes()));
        self.renamed.push((at, name));
    }

    /// The bytes that are held: all of a line, but for what is left out of a long one.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.held]
    }

    /// The offset in the source of a place in the bytes that are held.
    pub fn offset(&self, at: usize) -> u64 {
        let gaps = self.gaps.partition_point(|gap| gap.at as usize <= at);
        self.base + at as u64 + self.gaps[..gaps].last().map_or(0, |gap| gap.total)
    }

    /// The object on its own.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let (from, to) = self.nodes.first().map_or((0, 0), |root| (root.start, root.end));
        let base = self.offset(from as usize);
        let total = base - self.base - u64::from(from);
        let after = self.gaps.iter().filter(|gap| gap.at > from);
        let gaps = after.map(|gap| Gap { at: gap.at - from, total: gap.total - total, ..*gap }).collect();
        let bytes = self.bytes[from as usize..to as usize].to_vec();
        let (nodes, renamed) = (core::mem::take(&mut self.nodes), core::mem::take(&mut self.renamed));
        let held = bytes.len();
        let mut own = Self { bytes, held, base, gaps, nodes, renamed, odd: self.odd, pairs: self.pairs };
        own.move_nodes(|at| at - from as usize);
        own
    }

    fn move_nodes(&mut self, to: impl Fn(usize) -> usize) {
        for node in &mut self.nodes {
            (node.start, node.end) = (to(node.start as usize) as u32, to(node.end as usize) as u32);
        }
    }

    fn clear(&mut self) {
        self.nodes.clear();
        self.renamed.clear();
        (self.odd, self.pairs) = (Odd::default(), false);
    }
}

/// One value inside a [`Doc`].
#[derive(Clone, Copy, Debug)]
pub struct Value<'d> {
    doc: &'d Doc,
    at: u32,
}

impl<'d> Value<'d> {
    fn node(self) -> &'d Node {
        &self.doc.nodes[self.at as usize]
    }

    /// What it is.
    pub fn kind(self) -> ValueKind {
        self.node().kind
    }

    /// Where it stands, quotes and brackets included.
    pub fn span(self) -> Span {
        let node = self.node();
        Span::new(self.doc.offset(node.start as usize), self.doc.offset(node.end as usize))
    }

    /// Its place in the object, for [`Doc::rename`].
    pub fn place(self) -> u32 {
        self.at
    }

    /// Where the inside of a string stands, without the quotes.
    pub fn inner(self) -> Span {
        let span = self.span();
        Span::new(span.start + 1, span.end - 1)
    }

    /// As much of it as is held, without the quotes of a string.
    fn raw(self) -> &'d [u8] {
        let node = self.node();
        let quotes = usize::from(node.kind == ValueKind::String);
        &self.doc.bytes[node.start as usize + quotes..node.end as usize - quotes]
    }

    fn gaps(self) -> impl Iterator<Item = &'d Gap> {
        let (node, gaps) = (self.node(), &self.doc.gaps);
        let first = gaps.partition_point(|gap| gap.at <= node.start);
        gaps[first..].iter().take_while(|gap| gap.at < node.end)
    }

    /// How many characters a string has; 0 for any other kind. A lone surrogate counts as one.
    pub fn chars(self) -> u64 {
        if self.kind() != ValueKind::String {
            return 0;
        }
        let (node, raw) = (self.node(), self.raw());
        if node.flags & COUNTED != 0 && self.gaps().next().is_none() {
            return raw.len() as u64 - u64::from(node.tag);
        }
        literal::count(raw, Unit::Chars) + self.gaps().map(|gap| gap.chars).sum::<u64>()
    }

    /// Whether UTF-16 may write a character of a string as a pair.
    fn may_have_pairs(self) -> bool {
        let maybe = self.node().flags & (COUNTED | FOURS) != COUNTED;
        self.doc.pairs || (maybe && begins_four(self.raw())) || self.gaps().any(|gap| gap.pairs)
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == ValueKind::Null
    }

    /// A field of an object. Of duplicate keys the last counts, as in `JSON.parse`.
    pub fn get(self, key: &str) -> Option<Value<'d>> {
        let [found] = self.pick([key]);
        found
    }

    /// Several fields of an object at once, in one walk over it.
    #[inline]
    pub fn pick<const N: usize>(self, keys: [&str; N]) -> [Option<Value<'d>>; N] {
        let Self { doc, at } = self;
        let end = if self.kind() == ValueKind::Object { self.node().next } else { 0 };
        let tags = keys.map(|key| tag(key.as_bytes()));
        let (mut at, mut found) = (at + 1, [None; N]);
        // A plain loop over tags: this is asked for every field of every line.
        while at < end {
            let own = doc.nodes[at as usize].tag;
            for n in 0..N {
                if own == tags[n] && (Value { doc, at }).is(keys[n]) {
                    found[n] = Some(Value { doc, at: at + 1 });
                }
            }
            at = doc.nodes[at as usize + 1].next;
        }
        found
    }

    /// Keys and values of an object; nothing for any other kind.
    pub fn fields(self) -> impl Iterator<Item = (Value<'d>, Value<'d>)> {
        let mut children = self.children(ValueKind::Object);
        core::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    /// Elements of an array; nothing for any other kind.
    pub fn items(self) -> impl Iterator<Item = Value<'d>> {
        self.children(ValueKind::Array)
    }

    /// This value and all that it holds, in the order of their bytes, keys included.
    pub fn descendants(self) -> impl Iterator<Item = Value<'d>> {
        (self.at..self.node().next).map(move |at| Value { doc: self.doc, at })
    }

    fn children(self, of: ValueKind) -> impl Iterator<Item = Value<'d>> + use<'d> {
        let node = self.node();
        let end = if node.kind == of { node.next } else { 0 };
        let (doc, mut at) = (self.doc, self.at + 1);
        core::iter::from_fn(move || {
            (at < end).then(|| {
                let child = Value { doc, at };
                at = child.node().next;
                child
            })
        })
    }

    /// The first bytes of a string (without quotes) or number as written, at most [`PREFIX_BYTES_MAX`].
    pub fn prefix(self) -> &'d [u8] {
        if let Some(name) = self.renamed() {
            return name.as_bytes();
        }
        let raw = if matches!(self.kind(), ValueKind::String | ValueKind::Number) { self.raw() } else { &[] };
        &raw[..raw.len().min(PREFIX_BYTES_MAX)]
    }

    /// The name that it was given.
    fn renamed(self) -> Option<&'static str> {
        let mut all = self.doc.renamed.iter();
        all.find(|(at, _)| *at == self.at).map(|(_, name)| *name)
    }

    /// The decoded text of a string that is no longer than [`PREFIX_BYTES_MAX`].
    pub fn text(self) -> Option<Cow<'d, [u8]>> {
        let raw = self.raw();
        if self.kind() != ValueKind::String || raw.len() > PREFIX_BYTES_MAX {
            return None;
        }
        Some(match self.renamed() {
            Some(name) => Cow::Borrowed(name.as_bytes()),
            None if self.node().flags & ESCAPED != 0 => Cow::Owned(literal::decode(raw)),
            None => Cow::Borrowed(raw),
        })
    }

    /// A number that is a whole one and not negative.
    pub fn whole(self) -> Option<u64> {
        if self.kind() != ValueKind::Number {
            return None;
        }
        core::str::from_utf8(self.prefix()).ok()?.parse().ok()
    }

    /// Whether it is `true`.
    pub fn is_true(self) -> bool {
        self.kind() == ValueKind::Bool && self.raw() == b"true"
    }

    /// Whether it is a string and exactly this one.
    #[expect(
        clippy::inline_always,
        reason = "with a known text it is a comparison or two, asked for every field"
    )]
    #[inline(always)]
    pub fn is(self, text: &str) -> bool {
        let node = self.node();
        if node.flags & ESCAPED != 0 {
            return self.is_escaped(text);
        }
        node.kind == ValueKind::String
            && (node.end - node.start) as usize == text.len() + 2
            && self.raw() == text.as_bytes()
    }

    #[cold]
    fn is_escaped(self, text: &str) -> bool {
        // An escape makes a string longer, at most sixfold.
        (text.len()..=text.len() * 6).contains(&self.raw().len())
            && self.text().is_some_and(|own| *own == *text.as_bytes())
    }
}

/// What nearly all names of one object differ in: their length, and three of their letters.
#[inline]
fn tag(name: &[u8]) -> u16 {
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return 0 };
    u16::from_le_bytes([first ^ name.len() as u8, last ^ name[name.len() / 2] << 1])
}

/// A text that may be shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonText {
    /// The string's inside, without quotes.
    pub inner: Span,
    /// How many characters it has.
    pub chars: u64,
    /// UTF-16 may count more units than that.
    pairs: bool,
    /// Our marker is not in it.
    unmarked: bool,
}

impl JsonText {
    /// The string's text.
    pub fn from_value(value: Value<'_>) -> Self {
        let raw = value.raw();
        // A shorter one is soon read again.
        let searched = raw.len() >= SEARCHED_BYTES_MIN && value.gaps().next().is_none();
        Self {
            inner: value.inner(),
            chars: value.chars(),
            pairs: value.may_have_pairs(),
            unmarked: searched && !marker::may_hold(raw),
        }
    }

    /// This text at another place.
    #[must_use]
    pub fn moved_to(self, inner: Span) -> Self {
        Self { inner, ..self }
    }

    /// Whether it is known that it holds no marker of ours.
    pub fn is_unmarked(&self) -> bool {
        self.unmarked
    }

    /// How long it is, where that is known without reading it again.
    pub fn length(&self, unit: Unit) -> Option<u64> {
        let known = match unit {
            Unit::Chars => true,
            Unit::Utf16 => !self.pairs,
            Unit::Bytes => false,
        };
        known.then_some(self.chars)
    }
}

/// Whether a character of four bytes may begin in these: what begins one is above all others.
fn begins_four(bytes: &[u8]) -> bool {
    // Where there may be one, there mostly is one soon.
    bytes.chunks(SIZE * 4).any(|bytes| bytes.iter().fold(0, |most, byte| most.max(*byte)) >= 0xf0)
}

/// What became of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// The object is not complete.
    More,
    /// The object ended before this place.
    Done(usize),
    /// The byte at this place is not allowed there.
    Bad(usize),
    /// The object holds more than [`NODES_MAX`] values, or more than may be held of one line.
    TooComplex,
}

/// Why the next token could not be read.
enum TokenStop {
    /// The end of the token is not there yet.
    Short,
    /// The byte at this place cannot stand there.
    Bad(usize),
    TooComplex,
}

type TokenStep<T = usize> = Result<T, TokenStop>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TokenState {
    #[default]
    Start,
    /// The beginning, where an array will do.
    Document,
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Done,
}

/// Bytes up to where a line or what is held of it ends, and their marks.
#[derive(Clone, Copy)]
struct MarkedBytes<'b> {
    bytes: &'b [u8],
    marks: &'b Marks,
}

/// Reads objects from bytes that come in windows. What is read stops between two tokens; a token whose end is not there
/// yet is read again when there is more.
#[derive(Clone, Debug, Default)]
pub struct Tokeniser {
    /// The object, as far as it was read.
    pub doc: Doc,
    marks: Marks,
    /// Open containers: their node index.
    open: Vec<u32>,
    state: TokenState,
    /// The next token.
    at: usize,
    /// How far the string that begins there was followed.
    followed: usize,
    /// Up to here [`Tokeniser::beyond_ascii`] has been called.
    checked_to: usize,
    /// How much is held before some of a long line is dropped.
    held_max: usize,
}

impl Tokeniser {
    /// A tokeniser of the bytes from an offset on.
    pub fn new(base: u64) -> Self {
        Self { doc: Doc { base, ..Doc::default() }, held_max: LONG_BYTES, ..Self::default() }
    }

    /// Forgets the last object.
    pub fn reset(&mut self) {
        self.doc.clear();
        self.open.clear();
        self.state = TokenState::Start;
    }

    /// Whether nothing but white space was read since the last reset.
    pub fn untouched(&self) -> bool {
        self.state == TokenState::Start
    }

    /// Whether it stopped inside a string.
    pub fn in_text(&self) -> bool {
        self.followed > self.at
    }

    /// The offset of the next token.
    pub fn next(&self) -> u64 {
        self.doc.offset(self.at)
    }

    /// The offset after all that was added.
    pub fn end(&self) -> u64 {
        self.doc.offset(self.doc.held)
    }

    /// Lets go of what is before the next token, and adds so many bytes, which are filled in.
    pub fn go_on<E>(&mut self, count: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<(), E> {
        if self.untouched() {
            // Whole blocks go, so that the marks of the others stay.
            let gone = self.at.min(self.checked_to) / SIZE * SIZE;
            self.doc.bytes.copy_within(gone..self.doc.held, 0);
            self.doc.held -= gone;
            self.marks.forget(gone / SIZE);
            self.doc.base += gone as u64 + self.doc.gaps.last().map_or(0, |gap| gap.total);
            self.doc.gaps.clear();
            self.move_to(|at| at.saturating_sub(gone));
        }
        self.add(count, fill)
    }

    /// Adds so many bytes, which are filled in.
    fn add<E>(&mut self, count: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<(), E> {
        let Doc { bytes, held, .. } = &mut self.doc;
        let (from, to) = (*held, *held + count);
        if bytes.len() < to {
            bytes.resize(to, 0);
        }
        fill(&mut bytes[from..to])?;
        *held = to;
        self.marks.update(&bytes[..to], from);
        Ok(())
    }

    /// Where lines end in the bytes that were added last.
    pub fn line_ends(&self) -> Vec<usize> {
        self.marks.line_ends().iter().map(|&at| at as usize).collect()
    }

    /// Goes on at an offset behind all that was added. Does nothing if there is more to read before.
    pub fn skip_to(&mut self, offset: u64) {
        if self.untouched() && self.at == self.doc.held && offset > self.end() {
            self.doc.clear();
            self.doc.gaps.clear();
            (self.doc.held, self.doc.base) = (0, offset);
            self.marks = Marks::default();
            self.followed = 0;
            self.go_to(0);
        }
    }

    /// Goes on at a place, whatever stands before it.
    pub fn go_to(&mut self, at: usize) {
        (self.at, self.checked_to) = (at, at);
    }

    /// The stretches with bytes beyond ASCII up to a place, with their offsets, but for those asked for before. No
    /// character is split.
    pub fn beyond_ascii(&mut self, to: usize) -> impl Iterator<Item = (u64, &[u8])> {
        let from = core::mem::replace(&mut self.checked_to, to);
        let Self { doc, marks, .. } = self;
        marks.beyond_ascii(from, to).map(|(from, to)| (doc.offset(from), &doc.bytes[from..to]))
    }

    /// Reads on, at most up to a place.
    pub fn read(&mut self, to: usize) -> Fed {
        let (bytes, marks) = (core::mem::take(&mut self.doc.bytes), core::mem::take(&mut self.marks));
        let fed = self.read_piece(MarkedBytes { bytes: &bytes[..to], marks: &marks });
        (self.doc.bytes, self.marks) = (bytes, marks);
        fed
    }

    fn read_piece(&mut self, piece: MarkedBytes<'_>) -> Fed {
        while self.at < piece.bytes.len() && self.state != TokenState::Done {
            match self.step(piece, self.at) {
                Ok(next) => self.at = next,
                Err(TokenStop::Short) => return Fed::More,
                Err(TokenStop::Bad(at)) => return Fed::Bad(at),
                Err(TokenStop::TooComplex) => return Fed::TooComplex,
            }
        }
        if self.state == TokenState::Done { Fed::Done(self.at) } else { Fed::More }
    }

    /// Reads one object of `total` bytes in all, or up to where it ends; `fill` gives the bytes at an offset.
    fn read_all<E>(
        &mut self,
        end: u64,
        mut fill: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Fed, E> {
        let mut window = FIRST_WINDOW_BYTES;
        loop {
            let (fed, at) = (self.read(self.doc.held), self.end());
            if fed != Fed::More || at == end {
                return Ok(fed);
            }
            if self.is_full() && !self.make_room() {
                return Ok(Fed::TooComplex);
            }
            // A token that is read again is then at least twice as long as it was.
            let open = self.doc.held - self.at;
            let count = (end - at).min(window.max(open) as u64) as usize;
            self.add(count, |room| fill(at, room))?;
            window = (window * 2).min(WINDOW_BYTES);
        }
    }

    /// Goes on with bytes of which the first are held already. What ends early, or is no object, does not cost a look at
    /// all that follows.
    pub fn feed(&mut self, bytes: &[u8]) -> Fed {
        let base = self.doc.base;
        // They are all in memory anyhow.
        self.held_max = usize::MAX;
        let Ok(fed) = self.read_all(base + bytes.len() as u64, copy_from(bytes, base));
        fed
    }

    /// Takes some of the bytes that are fed, which cannot stand in an object, for blanks.
    pub fn blank(&mut self, bytes: &[u8], from: usize, to: usize) {
        let held = self.doc.held;
        let mut copy = copy_from(bytes, 0);
        let Ok(()) = self.add(to.saturating_sub(held), |room| copy(held as u64, room));
        self.doc.bytes[from..to].fill(b' ');
    }

    /// Reads the token at `i`, and the strings after it.
    fn step(&mut self, piece: MarkedBytes<'_>, i: usize) -> TokenStep {
        let byte = piece.bytes[i];
        match (self.state, byte) {
            (_, b' ' | b'\t' | b'\r' | b'\n') => {}
            (TokenState::Key | TokenState::KeyOrEnd, b'"') => return self.strings(piece, i, true),
            (TokenState::Value | TokenState::ValueOrEnd, b'"') => return self.strings(piece, i, false),
            (TokenState::Start | TokenState::Document | TokenState::Value | TokenState::ValueOrEnd, b'{') => {
                self.open_container(ValueKind::Object, i, TokenState::KeyOrEnd)?;
                if piece.bytes.get(i + 1) == Some(&b'"') {
                    return self.strings(piece, i + 1, true);
                }
            }
            (TokenState::Document | TokenState::Value | TokenState::ValueOrEnd, b'[') => {
                self.open_container(ValueKind::Array, i, TokenState::ValueOrEnd)?;
            }
            (TokenState::ValueOrEnd | TokenState::CommaOrEnd, b']') => {
                self.close(i, ValueKind::Array)?;
                return self.after_value(piece, i + 1);
            }
            (TokenState::KeyOrEnd | TokenState::CommaOrEnd, b'}') => {
                self.close(i, ValueKind::Object)?;
                return self.after_value(piece, i + 1);
            }
            (TokenState::Value | TokenState::ValueOrEnd, _) => {
                let end = self.scalar(piece.bytes, i)?;
                return self.after_value(piece, end);
            }
            (TokenState::CommaOrEnd, b',') if self.container() == ValueKind::Object => {
                self.state = TokenState::Key;
            }
            (TokenState::Colon, b':') | (TokenState::CommaOrEnd, b',') => self.state = TokenState::Value,
            _ => return Err(TokenStop::Bad(i)),
        }
        Ok(i + 1)
    }

    /// Goes on after a value that is no string. In compact JSON mostly a comma and a key follow.
    #[inline]
    fn after_value(&mut self, piece: MarkedBytes<'_>, end: usize) -> TokenStep {
        let is_key = matches!(piece.bytes.get(end..end + 2), Some(b",\""))
            && self.state == TokenState::CommaOrEnd
            && self.container() == ValueKind::Object;
        if is_key { self.strings(piece, end + 1, true) } else { Ok(end) }
    }

    fn container(&self) -> ValueKind {
        self.open.last().map_or(ValueKind::Null, |&at| self.doc.nodes[at as usize].kind)
    }

    #[inline]
    fn push(&mut self, kind: ValueKind, start: usize, end: usize, (flags, tag): (u8, u16)) -> TokenStep<()> {
        let nodes = &mut self.doc.nodes;
        if nodes.len() >= NODES_MAX {
            return Err(TokenStop::TooComplex);
        }
        let next = nodes.len() as u32 + 1;
        nodes.push(Node { start: start as u32, end: end as u32, next, kind, flags, tag });
        Ok(())
    }

    fn open_container(&mut self, kind: ValueKind, at: usize, state: TokenState) -> TokenStep<()> {
        self.open.push(self.doc.nodes.len() as u32);
        self.state = state;
        self.push(kind, at, at + 1, (0, 0))
    }

    fn close(&mut self, at: usize, kind: ValueKind) -> TokenStep<()> {
        let Some(index) = self.open.pop_if(|open| self.doc.nodes[*open as usize].kind == kind) else {
            return Err(TokenStop::Bad(at));
        };
        let next = self.doc.nodes.len() as u32;
        let node = &mut self.doc.nodes[index as usize];
        (node.end, node.next) = (at as u32 + 1, next);
        self.state = if self.open.is_empty() { TokenState::Done } else { TokenState::CommaOrEnd };
        Ok(())
    }

    /// A value that is not a string and holds no other values.
    fn scalar(&mut self, bytes: &[u8], i: usize) -> TokenStep {
        let (kind, end) = match bytes[i] {
            b't' => (ValueKind::Bool, word(bytes, i, b"true")?),
            b'f' => (ValueKind::Bool, word(bytes, i, b"false")?),
            b'n' => (ValueKind::Null, word(bytes, i, b"null")?),
            b'-' | b'0'..=b'9' => (ValueKind::Number, number(bytes, i)?),
            _ => return Err(TokenStop::Bad(i)),
        };
        self.push(kind, i, end, (0, 0))?;
        self.state = TokenState::CommaOrEnd;
        Ok(end)
    }

    /// Reads the string that begins at `at`, and the strings after it as long as nothing stands between them but what
    /// nearly always does in compact JSON: a colon after a key, and a comma after a value of an object.
    #[inline(never)]
    fn strings(&mut self, piece: MarkedBytes<'_>, at: usize, key: bool) -> TokenStep {
        let bytes = piece.bytes;
        let (mut at, mut key) = (at, key);
        loop {
            let again = self.followed > at;
            let Reach { mut stop, surplus, fours } = piece.marks.follow(self.followed.max(at + 1));
            let mut escaped = surplus > 0;
            let mut counted = u16::try_from(surplus).ok();
            if again || bytes.get(stop) != Some(&b'"') {
                self.at = at;
                self.state = if key { TokenState::Key } else { TokenState::Value };
                stop = self.odd_string(piece, at + 1)?;
                (escaped, counted) = (memchr(b'\\', &bytes[at..stop]).is_some(), None);
            }
            let flags = if escaped { ESCAPED } else { 0 };
            let node = match counted {
                _ if key => {
                    let raw = &bytes[at + 1..stop];
                    (flags | KEY, if escaped { tag(&literal::decode(raw)) } else { tag(raw) })
                }
                Some(surplus) => (flags | COUNTED | if fours { FOURS } else { 0 }, surplus),
                None => (flags, 0),
            };
            self.push(ValueKind::String, at, stop + 1, node)?;
            let next = stop + 1;
            key = match (key, bytes.get(next), bytes.get(next + 1)) {
                (true, Some(b':'), Some(b'"')) => false,
                (true, Some(b':'), _) => {
                    self.state = TokenState::Value;
                    return Ok(next + 1);
                }
                (false, Some(b','), Some(b'"')) if self.container() == ValueKind::Object => true,
                _ => {
                    // A string is never the whole.
                    self.state = if key { TokenState::Colon } else { TokenState::CommaOrEnd };
                    return Ok(next);
                }
            };
            at = next + 1;
        }
    }

    /// Follows a string, from its beginning or from where it was followed to, over escapes that want a closer look. Gives
    /// the place of the quote at its end.
    fn odd_string(&mut self, MarkedBytes { bytes, marks }: MarkedBytes<'_>, from: usize) -> TokenStep {
        let mut at = from.max(self.followed);
        loop {
            let stop = marks.follow(at).stop.min(bytes.len());
            self.followed = stop;
            let rest = &bytes[stop..];
            match rest {
                [] => {
                    self.followed = whole_chars(bytes).max(at);
                    return Err(TokenStop::Short);
                }
                [b'"', ..] => return Ok(stop),
                _ if cut_off(rest) => return Err(TokenStop::Short),
                [b'\\', b'u', hex @ ..] => {
                    let Some(code) = hex4(hex) else {
                        let digits = hex.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
                        return Err(TokenStop::Bad(stop + 2 + digits));
                    };
                    at = stop + 6;
                    match code {
                        0 => self.doc.odd.0 |= Odd::NUL,
                        0xd800..0xdc00 if cut_off(&rest[6..]) => return Err(TokenStop::Short),
                        0xd800..0xdc00 if is_low(&rest[6..]) => (self.doc.pairs, at) = (true, stop + 12),
                        0xd800..0xe000 => self.doc.odd.0 |= Odd::HALF_PAIRS,
                        _ => {}
                    }
                }
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => at = stop + 2,
                [b'\\', ..] => return Err(TokenStop::Bad(stop + 1)),
                [0..b' ', ..] => return Err(TokenStop::Bad(stop)),
                // A control character that is taken for a blank.
                _ => at = stop + 1,
            }
        }
    }

    /// Whether so much is held that something is to be let go.
    pub fn is_full(&self) -> bool {
        self.doc.held >= self.held_max
    }

    /// Lets go of what is long in a line that is long, as far as it was read. Says whether there is room for more then.
    pub fn make_room(&mut self) -> bool {
        let Doc { bytes, held, gaps, nodes, .. } = &mut self.doc;
        let (mut kept, mut done, mut gone) = (0, 0, Vec::new());
        for (from, to) in spare(&bytes[..*held], gaps, nodes, (self.at, self.followed)) {
            let spare = &bytes[from..to];
            let (chars, pairs) = (literal::count(spare, Unit::Chars), begins_four(spare));
            bytes.copy_within(done..from, kept);
            (kept, done) = (kept + from - done, to);
            gone.push((to, done - kept));
            let last = gaps.last().map_or(0, |gap| gap.total);
            let gap = Gap { at: kept as u32, total: last + (to - from) as u64, chars, pairs };
            match gaps.last_mut().filter(|last| last.at == gap.at) {
                Some(last) => {
                    *last = Gap { chars: last.chars + chars, pairs: last.pairs || gap.pairs, ..gap };
                }
                None => gaps.push(gap),
            }
        }
        bytes.copy_within(done..*held, kept);
        *held -= done - kept;
        self.move_to(|at| {
            let before = gone.partition_point(|(to, _)| *to <= at);
            at - gone[..before].last().map_or(0, |(_, bytes)| *bytes)
        });
        self.marks.update(self.doc.bytes(), 0);
        // What is looked at again is no longer than what will be added.
        let held = self.doc.held;
        self.held_max = LONG_BYTES.max(2 * held);
        held <= HELD_BYTES_MAX
    }

    fn move_to(&mut self, to: impl Fn(usize) -> usize) {
        for at in [&mut self.at, &mut self.followed, &mut self.checked_to] {
            *at = to(*at);
        }
        self.doc.move_nodes(to);
    }
}

/// A function that copies bytes at an offset out of these, which begin at `base`.
fn copy_from(bytes: &[u8], base: u64) -> impl FnMut(u64, &mut [u8]) -> Result<(), Infallible> {
    move |at, room| {
        let at = (at - base) as usize;
        room.copy_from_slice(&bytes[at..at + room.len()]);
        Ok(())
    }
}

/// The parts of a line that need not be held, in order: long blanks, and the insides of long strings after their first
/// bytes. The last string may be open, and is known up to a place.
fn spare(bytes: &[u8], gaps: &[Gap], nodes: &[Node], open: (usize, usize)) -> Vec<(usize, usize)> {
    let whole = nodes.iter().filter(|node| node.kind == ValueKind::String);
    let whole = whole.map(|node| (node.start as usize, node.end as usize - 1));
    let insides = whole.chain([open]).filter(|(start, end)| *end > start + 1 + PREFIX_BYTES_MAX);
    let spare = insides.map(|(start, end)| {
        let gap = gaps.get(gaps.partition_point(|gap| gap.at as usize <= start));
        let mut from = gap.map_or(end, |gap| gap.at as usize);
        if from >= end {
            from = start + 1;
            while from <= start + 1 + PREFIX_BYTES_MAX {
                from += literal::piece(&bytes[from..]).raw;
            }
        }
        (from, end)
    });
    let blanks = bytes[..open.0].iter().rev().take_while(|byte| b" \t\r\n".contains(byte)).count();
    let mut spare: Vec<_> = spare.chain([(open.0 - blanks + 1, open.0)]).collect();
    spare.retain(|(from, to)| *to >= from + PREFIX_BYTES_MAX);
    spare.sort_unstable();
    spare
}

/// The end of the word that is to stand at `at`.
fn word(bytes: &[u8], at: usize, word: &[u8]) -> TokenStep {
    let same = word.iter().zip(&bytes[at..]).take_while(|(wanted, byte)| wanted == byte).count();
    if same == word.len() { Ok(at + same) } else { Err(stopped(bytes, at + same)) }
}

/// The end of the number that begins at `at`.
fn number(bytes: &[u8], at: usize) -> TokenStep {
    let digits = |at: usize| {
        let count = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 { Err(stopped(bytes, at)) } else { Ok(at + count) }
    };
    let is = |at: usize, of: &[u8]| bytes.get(at).is_some_and(|byte| of.contains(byte));
    let first = at + usize::from(bytes[at] == b'-');
    let mut end = if is(first, b"0") { first + 1 } else { digits(first)? };
    if is(end, b".") {
        end = digits(end + 1)?;
    }
    if is(end, b"eE") {
        end = digits(end + 1 + usize::from(is(end + 1, b"+-")))?;
    }
    // More of it may follow.
    if end == bytes.len() { Err(TokenStop::Short) } else { Ok(end) }
}

/// Why a token stops at a place where it cannot.
fn stopped(bytes: &[u8], at: usize) -> TokenStop {
    if at >= bytes.len() { TokenStop::Short } else { TokenStop::Bad(at) }
}

/// Whether these are the first bytes of a `\u` escape, or none, and more may follow.
fn cut_off(bytes: &[u8]) -> bool {
    let fits = |(n, byte): (usize, &u8)| match n {
        0 => *byte == b'\\',
        1 => *byte == b'u',
        _ => byte.is_ascii_hexdigit(),
    };
    bytes.len() < 6 && bytes.iter().enumerate().all(fits)
}

/// Whether the second half of a surrogate pair comes first.
fn is_low(bytes: &[u8]) -> bool {
    matches!(bytes, [b'\\', b'u', hex @ ..] if matches!(hex4(hex), Some(0xdc00..0xe000)))
}

/// How many bytes there are before a character that is not whole at the end.
pub fn whole_chars(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(3).position(|byte| *byte >= 0xc0);
    last.map(|n| bytes.len() - n - 1)
        .filter(|&at| core::str::from_utf8(&bytes[at..]).is_err_and(|error| error.error_len().is_none()))
        .unwrap_or(bytes.len())
}

/// A whole file that is one object or array, on however many lines; `None` if it is something else, or has too many values.
pub fn document(source: &dyn Source) -> Result<Option<Doc>, Fault> {
    let mut tokeniser = Tokeniser { state: TokenState::Document, ..Tokeniser::new(0) };
    let mut fill = |at, room: &mut [u8]| source.fill(at, room);
    if !matches!(tokeniser.read_all(source.len(), &mut fill)?, Fed::Done(_)) {
        return Ok(None);
    }
    let doc = tokeniser.doc.take();
    tokeniser.reset();
    let ends = tokeniser.read_all(source.len(), fill)? == Fed::More && tokeniser.untouched();
    Ok(ends.then_some(doc))
}

/// Tokenises the object at `span` again, for what a scan does not keep.
pub fn parse(source: &dyn Source, span: Span) -> Result<Option<Doc>, Fault> {
    let mut tokeniser = Tokeniser::new(span.start);
    let fed = tokeniser.read_all(span.end, |at, room| source.fill(at, room))?;
    let doc = tokeniser.doc;
    Ok(matches!(fed, Fed::Done(at) if doc.offset(at) == span.end).then_some(doc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use proptest::prelude::*;

    /// Reads an object that comes in pieces, and holds no more of them than it must.
    fn in_pieces(bytes: &[u8], size: usize, held_max: usize) -> (Fed, Tokeniser) {
        let mut tokeniser = Tokeniser { held_max, ..Tokeniser::new(0) };
        for piece in bytes.chunks(size.max(1)) {
            let Ok(()) = tokeniser.go_on(piece.len(), |room| -> Result<(), Infallible> {
                room.copy_from_slice(piece);
                Ok(())
            });
            let fed = tokeniser.read(tokeniser.doc.held);
            if fed != Fed::More {
                return (fed, tokeniser);
            }
            if tokeniser.is_full() {
                tokeniser.make_room();
                tokeniser.held_max = held_max;
            }
        }
        (Fed::More, tokeniser)
    }

    fn feed_in_pieces(bytes: &[u8], size: usize) -> (Fed, Tokeniser) {
        in_pieces(bytes, size, usize::MAX)
    }

    fn accepted(bytes: &[u8], size: usize) -> bool {
        let (fed, tokeniser) = feed_in_pieces(bytes, size);
        let Fed::Done(at) = fed else { return false };
        bytes[tokeniser.doc.offset(at) as usize..].iter().all(|byte| b" \t\r\n".contains(byte))
    }

    fn by_serde(bytes: &[u8]) -> bool {
        // `RawValue` and `IgnoredAny` look at the shape alone, as we do.
        bytes.iter().find(|byte| !b" \t\r\n".contains(byte)) == Some(&b'{')
            && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
    }

    #[test]
    fn finds_values_by_key_and_the_last_duplicate_counts() {
        let text = br#" {"a":{"b":[1,-2.5e3,"x\"y",true,null]},"a":{"c":"d"},"long":"q"}"#;
        let (fed, tokeniser) = feed_in_pieces(text, 1000);
        assert_eq!(fed, Fed::Done(text.len()));
        let doc = tokeniser.doc;
        assert!(doc.get("a").unwrap().get("c").unwrap().is("d"));
        let first = doc.root().unwrap().fields().next().unwrap().1;
        let items: Vec<_> = first.get("b").unwrap().items().collect();
        assert_eq!(items.len(), 5);
        assert_eq!(&*items[2].text().unwrap(), b"x\"y");
        assert_eq!(
            items.iter().map(|v| &text[v.span().start as usize..v.span().end as usize]).collect::<Vec<_>>(),
            [&b"1"[..], b"-2.5e3", br#""x\"y""#, b"true", b"null"]
        );
    }

    #[test]
    fn a_hundred_thousand_levels_are_no_problem() {
        let text = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(accepted(text.as_bytes(), 4096));
    }

    #[test]
    fn too_many_values_are_given_up_and_not_remembered() {
        let text = format!("{{\"a\":[{}1]}}", "1,".repeat(NODES_MAX));
        assert_eq!(feed_in_pieces(text.as_bytes(), 1 << 16).0, Fed::TooComplex);
    }

    proptest! {
        #[test]
        fn accepts_what_serde_json_accepts(
            text in r#"\{("[a\\"\\\\u0-9{}]{0,4}":?[-0-9.eE+tfnrualse\[\]{}", ]{0,8},?){0,3}\}?"#,
            size in 1usize..20,
        ) {
            prop_assert_eq!(accepted(text.as_bytes(), size), by_serde(text.as_bytes()), "{}", text);
        }

        #[test]
        fn accepts_mutated_objects_like_serde_json(at in 0usize..90, byte in 0x20u8..0x7f, size in 1usize..30) {
            let mut text = br#"{"a":[1,-0.5e+7,{"b":"c\n\u00e9\ud83d"},true,false,null],"k\\":{},"e":[],"s":"\/"}"#.to_vec();
            let at = at % text.len();
            text[at] = byte;
            prop_assert_eq!(accepted(&text, size), by_serde(&text), "{}", String::from_utf8_lossy(&text));
        }

        #[test]
        fn characters_are_counted_as_the_decoder_does(
            parts in proptest::collection::vec(proptest::sample::select(alloc::vec![
                "a", "é", "😀", r"\n", r"\\", r"\u00e9", r"\ud83d\ude00", r"\/", "\\\"", "plain text of some length"]), 0..40),
            size in 1usize..90,
        ) {
            let text = format!("{{\"a\":\"{}\"}}", parts.concat());
            let (_, tokeniser) = feed_in_pieces(text.as_bytes(), size);
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let chars = value["a"].as_str().unwrap().chars().count() as u64;
            prop_assert_eq!(tokeniser.doc.get("a").unwrap().chars(), chars);
        }

        #[test]
        fn pieces_do_not_matter(bytes in proptest::collection::vec(any::<u8>(), 0..60), size in 1usize..9) {
            let mut line = br#"{"a":"x"#.to_vec();
            line.extend(bytes);
            line.extend(br#"","b":12}"#);
            let (whole, one) = feed_in_pieces(&line, line.len());
            let (parts, many) = feed_in_pieces(&line, size);
            prop_assert_eq!(whole, parts);
            if matches!(whole, Fed::Done(_)) {
                prop_assert_eq!(summary(&one.doc), summary(&many.doc));
            }
        }

        #[test]
        fn what_is_let_go_of_is_not_missed(
            parts in proptest::collection::vec((proptest::sample::select(alloc::vec![
                "a", "é", "😀", r"\n", r"\\", r"\u00e9", r"\ud83d\ude00", r"\ud83d", "\\\"", "\",\"", "\":[1],\"", "\":   \""]),
                1usize..2000), 1..6),
            size in 300usize..3000,
        ) {
            let inside: String = parts.iter().map(|(part, times)| part.repeat(*times)).collect();
            let line = format!("{{\"a\":[\"{inside}\"],\"b\":{}[{{}}]}}", " ".repeat(size * 3));
            let (whole, one) = feed_in_pieces(line.as_bytes(), line.len());
            let (parts, many) = in_pieces(line.as_bytes(), size, 0);
            let offset = |fed, doc: &Doc| match fed {
                Fed::Done(at) => (true, doc.offset(at)),
                Fed::Bad(at) => (false, doc.offset(at)),
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(offset(whole, &one.doc), offset(parts, &many.doc));
            if matches!(whole, Fed::Done(_)) {
                prop_assert_eq!(summary(&one.doc), summary(&many.doc));
                let own = many.doc.clone().take();
                prop_assert_eq!(summary(&one.doc), summary(&own));
            }
        }
    }

    /// Wherever the end of what is held falls in an open string.
    #[test]
    fn a_string_may_be_cut_off_anywhere() {
        let line = format!("{{\"a\":\"{}\"}}", "a".repeat(3 * PREFIX_BYTES_MAX));
        for size in PREFIX_BYTES_MAX - 10..PREFIX_BYTES_MAX + 20 {
            let (fed, tokeniser) = in_pieces(line.as_bytes(), size, 0);
            assert!(matches!(fed, Fed::Done(at) if tokeniser.doc.offset(at) == line.len() as u64), "{size}");
        }
    }

    type Summary<'d> = (ValueKind, Span, &'d [u8], Option<Cow<'d, [u8]>>, u64, bool);

    /// All that can be asked for.
    fn summary(doc: &Doc) -> Vec<Summary<'_>> {
        let all = doc.root().unwrap().descendants();
        all.map(|value| {
            let utf16 = value.kind() == ValueKind::String
                && JsonText::from_value(value).length(Unit::Utf16).is_some();
            (value.kind(), value.span(), value.prefix(), value.text(), value.chars(), utf16)
        })
        .collect()
    }
}
