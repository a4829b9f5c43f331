//! The shape of one JSON object: which value stands at which bytes.
//!
//! This is a tokeniser that can be stopped anywhere: it is fed the bytes of a line in whatever pieces they
//! arrive and keeps spans, never the text itself (but for the first [`CAPTURE_BYTES_MAX`] bytes of each
//! string, so that keys, ids and roles can be read without going back). A line of 8 GiB that is one long
//! string costs three nodes.
//!
//! It accepts what `JSON.parse` accepts, for objects, and on top of that any bytes above 0x7f inside strings:
//! lone surrogates, duplicate keys, big numbers, any depth and invalid UTF-8 are data here. It refuses to know
//! what a key means; that is the business of the crates above.

use crate::block::{Kinds, Marks, Reach};
use crate::literal::{self, Unit};
use crate::source::{Fault, Source, Span, WINDOW_BYTES, window};
use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;

/// How much of each string is kept, in raw (escaped) bytes. Names and roles are far shorter; ids of calls that
/// carry an encrypted item of the provider reach a thousand.
pub const CAPTURE_BYTES_MAX: usize = 4096;

/// How long the strings are that are copied without asking how long.
const SHORT_BYTES: usize = 32;

/// How many values and keys one object may hold before it is given up as too complex to look into. The bytes
/// stay as they are; it is memory that is bounded here (about 40 MB).
pub const NODES_MAX: usize = 1 << 20;

/// The first window of what is in memory.
const FIRST_WINDOW_BYTES: usize = 256;

/// What kind of value a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
    span: Span,
    /// Index of the node behind this one and all it holds.
    next: u32,
    text_at: u32,
    text_len: u16,
    kind: Kind,
    escaped: bool,
    /// Strings: how many more bytes there are inside than characters.
    excess: u64,
}

/// One object, tokenised. Reused from line to line, so that a scan does not allocate.
#[derive(Clone, Debug, Default)]
pub struct Doc {
    nodes: Vec<Node>,
    text: Vec<u8>,
    odd: Odd,
    /// First halves of surrogate pairs that wait for their second one.
    halves: u32,
    /// There are characters that UTF-16 writes as a pair. If not, it counts as many units as characters.
    pairs: bool,
}

/// What strings hold that JSON allows and others stumble over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Odd {
    /// Half a surrogate pair, `\ud83d` without its other half: no text in any encoding.
    pub half_pairs: bool,
    /// `\u0000`.
    pub nul: bool,
}

impl Doc {
    /// The object itself. `None` before a whole object was read.
    pub fn root(&self) -> Option<Value<'_>> {
        (!self.nodes.is_empty()).then_some(Value { doc: self, at: 0 })
    }

    /// The keys of the object, in order, as far as they are short enough to have been kept.
    pub fn keys(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        self.root().into_iter().flat_map(Value::fields).filter_map(|(key, _)| key.text())
    }

    /// A top-level value by key. Of duplicate keys the last counts, as in `JSON.parse`.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        self.root()?.get(key)
    }

    /// How many values and keys it holds.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// What its strings hold that others stumble over.
    pub fn odd(&self) -> Odd {
        Odd { half_pairs: self.odd.half_pairs || self.halves > 0, ..self.odd }
    }

    /// Gives the key at a place another name.
    pub fn rename(&mut self, at: u32, name: &'static str) {
        let node = &mut self.nodes[at as usize];
        (node.text_at, node.text_len) = (self.text.len() as u32, name.len() as u16);
        // What is as long as it is written is compared as it is written.
        node.escaped = node.span.len() != name.len() as u64 + 2;
        self.text.extend_from_slice(name.as_bytes());
    }

    fn clear(&mut self) {
        self.nodes.clear();
        self.text.clear();
        (self.odd, self.halves, self.pairs) = (Odd::default(), 0, false);
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
    pub fn kind(self) -> Kind {
        self.node().kind
    }

    /// Where it stands, quotes and brackets included.
    pub fn span(self) -> Span {
        self.node().span
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

    /// How many characters a string has; 0 for any other kind. A lone surrogate counts as one.
    pub fn chars(self) -> u64 {
        let node = self.node();
        if node.kind == Kind::String { node.span.len().saturating_sub(2 + node.excess) } else { 0 }
    }

    /// Whether UTF-16 may count more units than that.
    pub fn has_pairs(self) -> bool {
        self.doc.pairs
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// A field of an object. Of duplicate keys the last counts, as in `JSON.parse`.
    pub fn get(self, key: &str) -> Option<Value<'d>> {
        let nodes = &self.doc.nodes;
        let end = if self.kind() == Kind::Object { self.node().next } else { 0 };
        let (mut at, mut found) = (self.at + 1, None);
        // A plain loop: this is asked for every field of every line.
        while at < end {
            let value = Value { doc: self.doc, at: at + 1 };
            if (Value { doc: self.doc, at }).is(key) {
                found = Some(value);
            }
            at = nodes[value.at as usize].next;
        }
        found
    }

    /// Several fields of an object at once, in one walk over it.
    pub fn pick<const N: usize>(self, keys: [&str; N]) -> [Option<Value<'d>>; N] {
        let end = if self.kind() == Kind::Object { self.node().next } else { 0 };
        let (mut at, mut found) = (self.at + 1, [None; N]);
        while at < end {
            let (key, value) = (Value { doc: self.doc, at }, Value { doc: self.doc, at: at + 1 });
            let node = key.node();
            // Asked for every field of every line, so the key is looked up once and not for each name.
            let same = if node.escaped {
                keys.iter().position(|name| key.is(name))
            } else {
                let own = key.prefix();
                keys.iter().position(|name| same(name.as_bytes(), own))
            };
            if let Some(n) = same {
                found[n] = Some(value);
            }
            at = value.node().next;
        }
        found
    }

    /// Keys and values of an object; nothing for any other kind.
    pub fn fields(self) -> impl Iterator<Item = (Value<'d>, Value<'d>)> {
        let mut children = self.children(Kind::Object);
        core::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    /// Elements of an array; nothing for any other kind.
    pub fn items(self) -> impl Iterator<Item = Value<'d>> {
        self.children(Kind::Array)
    }

    /// This value and all that it holds, in the order of their bytes, keys included.
    pub fn descendants(self) -> impl Iterator<Item = Value<'d>> {
        (self.at..self.node().next).map(move |at| Value { doc: self.doc, at })
    }

    fn children(self, of: Kind) -> impl Iterator<Item = Value<'d>> + use<'d> {
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

    /// The first bytes of a string (without quotes) or number as written, at most [`CAPTURE_BYTES_MAX`].
    pub fn prefix(self) -> &'d [u8] {
        let node = self.node();
        &self.doc.text[node.text_at as usize..node.text_at as usize + usize::from(node.text_len)]
    }

    /// The decoded text of a string that is short enough to have been kept whole.
    pub fn text(self) -> Option<Cow<'d, [u8]>> {
        let node = self.node();
        if node.kind != Kind::String || node.span.len() - 2 > CAPTURE_BYTES_MAX as u64 {
            return None;
        }
        Some(if node.escaped {
            Cow::Owned(literal::decode(self.prefix()))
        } else {
            Cow::Borrowed(self.prefix())
        })
    }

    /// A number that is a whole one and not negative.
    pub fn whole(self) -> Option<u64> {
        if self.kind() != Kind::Number {
            return None;
        }
        core::str::from_utf8(self.prefix()).ok()?.parse().ok()
    }

    /// Whether it is `true`.
    pub fn is_true(self) -> bool {
        self.kind() == Kind::Bool && self.span().len() == 4
    }

    /// Whether it is a string and exactly this one.
    #[expect(
        clippy::inline_always,
        reason = "with a known text it is a comparison or two, asked for every field"
    )]
    #[inline(always)]
    pub fn is(self, text: &str) -> bool {
        let node = self.node();
        if node.escaped {
            return self.is_escaped(text);
        }
        node.span.len() == text.len() as u64 + 2
            && node.kind == Kind::String
            && same(self.prefix(), text.as_bytes())
    }

    #[cold]
    fn is_escaped(self, text: &str) -> bool {
        let bytes = self.span().len();
        // An escape makes a string longer, at most sixfold.
        (text.len() as u64 + 2..=text.len() as u64 * 6 + 2).contains(&bytes)
            && self.text().is_some_and(|own| *own == *text.as_bytes())
    }
}

/// Whether two short texts are the same: most that are not already differ in their length or where they begin.
#[inline]
fn same(one: &[u8], two: &[u8]) -> bool {
    one.len() == two.len() && one.first() == two.first() && one == two
}

/// A text that may be shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// The string's inside, without quotes.
    pub inner: Span,
    /// How many characters it has.
    pub chars: u64,
    /// UTF-16 may count more units than that.
    pairs: bool,
}

impl Text {
    /// The string's text.
    pub fn of(value: Value<'_>) -> Self {
        Self { inner: value.inner(), chars: value.chars(), pairs: value.has_pairs() }
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

/// What became of a piece of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// All of it was taken; the object is not complete.
    More,
    /// The object ended behind this many bytes of the piece.
    Done(usize),
    /// The byte at this place of the piece cannot stand there.
    Bad(usize),
    /// The object holds more than [`NODES_MAX`] values.
    TooComplex,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Start,
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Text,
    Escape,
    Hex(u8),
    Number(Number),
    Word(&'static [u8], u8),
    Done,
}

#[derive(Clone, Copy, Debug)]
enum Number {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

/// What the tokeniser is fed at once: a window up to where the piece ends, and where that ends a string stops.
#[derive(Clone, Copy)]
pub struct Piece<'b> {
    /// Some of the bytes of a window.
    pub bytes: &'b [u8],
    /// Where the window stands in the source.
    pub base: u64,
    /// The marks of the window.
    pub marks: &'b Marks,
    /// What kinds of bytes there may be in it.
    pub kinds: Kinds,
}

/// Reads one object from pieces of any size.
#[derive(Clone, Debug)]
pub struct Tokeniser {
    /// The value, as far as it was read.
    pub doc: Doc,
    /// Open containers: their node index.
    open: Vec<u32>,
    state: State,
    /// The string of which a part was read is a key.
    key: bool,
    /// The value of the `\u` escape being read.
    code: u32,
    /// Where the first half of a surrogate pair ended, if it was read last.
    half_at: u64,
    /// Which byte of the piece cannot be there, if it is not the one being looked at.
    bad_at: Option<usize>,
}

impl Default for Tokeniser {
    fn default() -> Self {
        Self {
            doc: Doc::default(),
            open: Vec::new(),
            state: State::Start,
            key: false,
            code: 0,
            half_at: u64::MAX,
            bad_at: None,
        }
    }
}

impl Tokeniser {
    /// Forgets the last object.
    pub fn reset(&mut self) {
        self.doc.clear();
        self.open.clear();
        self.state = State::Start;
    }

    /// Whether nothing but white space was fed since the last reset.
    pub fn untouched(&self) -> bool {
        matches!(self.state, State::Start)
    }

    /// Whether it stopped inside a string.
    pub fn in_text(&self) -> bool {
        matches!(self.state, State::Text | State::Escape | State::Hex(_))
    }

    /// Takes the bytes of a piece from a place on. The marks are of these bytes and of those that were taken before them.
    pub fn feed(&mut self, piece: Piece<'_>, from: usize) -> Fed {
        let bytes = piece.bytes;
        self.doc.pairs |= piece.kinds.pairs;
        let mut i = from;
        while i < bytes.len() {
            let taken = match self.state {
                State::Text => self.text(piece, i),
                State::Escape | State::Hex(_) => self.escape(bytes[i], piece.base + i as u64).map(|()| i + 1),
                State::Number(number) => self.number(number, piece, i),
                State::Word(word, at) => self.word(word, at, piece, i),
                State::Done => return Fed::Done(i),
                _ => self.structure(piece, i),
            };
            match taken {
                Some(next) => i = next,
                None if self.doc.nodes.len() >= NODES_MAX => return Fed::TooComplex,
                None => return Fed::Bad(self.bad_at.take().unwrap_or(i)),
            }
        }
        if matches!(self.state, State::Done) { Fed::Done(i) } else { Fed::More }
    }

    /// Takes what stands at offset `base`, window by window. The first windows are small: what ends early, or is no
    /// object, must not cost a look at all that follows.
    pub fn feed_all(&mut self, bytes: &[u8], base: u64, marks: &mut Marks) -> Fed {
        let mut at = 0;
        while at < bytes.len() {
            let window = at.max(FIRST_WINDOW_BYTES).min(bytes.len() - at);
            let taken = marks.look(&bytes[at..at + window]);
            let (window, kinds) = (&bytes[at..at + taken], marks.kinds(0, taken));
            match self.feed(Piece { bytes: window, base: base + at as u64, marks, kinds }, 0) {
                Fed::More => at += taken,
                Fed::Done(n) => return Fed::Done(at + n),
                Fed::Bad(n) => return Fed::Bad(at + n),
                Fed::TooComplex => return Fed::TooComplex,
            }
        }
        Fed::More
    }

    /// Takes the byte at `i`, and the strings behind it.
    fn structure(&mut self, piece: Piece<'_>, i: usize) -> Option<usize> {
        let (byte, at) = (piece.bytes[i], piece.base + i as u64);
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            return Some(i + 1);
        }
        match (self.state, byte) {
            (State::Key | State::KeyOrEnd, b'"') => return self.strings(piece, i + 1, true),
            (State::Value | State::ValueOrEnd, b'"') => return self.strings(piece, i + 1, false),
            (State::Start, b'{') | (State::Value | State::ValueOrEnd, _) => self.value(byte, at)?,
            (State::Colon, b':') => self.state = State::Value,
            (State::CommaOrEnd, b',') => {
                self.state = if self.container() == Kind::Object { State::Key } else { State::Value };
            }
            (State::KeyOrEnd | State::CommaOrEnd, b'}') => self.close(at, Kind::Object)?,
            (State::CommaOrEnd, b']') => self.close(at, Kind::Array)?,
            _ => return None,
        }
        Some(i + 1)
    }

    #[expect(clippy::unnecessary_wraps, reason = "the tail call of fallible steps")]
    fn go(&mut self, state: State) -> Option<()> {
        self.state = state;
        Some(())
    }

    fn value(&mut self, byte: u8, at: u64) -> Option<()> {
        match byte {
            b'{' => self.open_container(Kind::Object, at, State::KeyOrEnd),
            b'[' => self.open_container(Kind::Array, at, State::ValueOrEnd),
            b']' if matches!(self.state, State::ValueOrEnd) => self.close(at, Kind::Array),
            b't' => self.open_leaf(Kind::Bool, at, State::Word(b"true", 1)),
            b'f' => self.open_leaf(Kind::Bool, at, State::Word(b"false", 1)),
            b'n' => self.open_leaf(Kind::Null, at, State::Word(b"null", 1)),
            b'-' => self.open_number(byte, at, Number::Minus),
            b'0' => self.open_number(byte, at, Number::Zero),
            b'1'..=b'9' => self.open_number(byte, at, Number::Whole),
            _ => None,
        }
    }

    fn open_number(&mut self, byte: u8, at: u64, number: Number) -> Option<()> {
        self.open_leaf(Kind::Number, at, State::Number(number))?;
        self.capture(&[byte]);
        Some(())
    }

    fn container(&self) -> Kind {
        self.open.last().map_or(Kind::Null, |&at| self.doc.nodes[at as usize].kind)
    }

    #[inline]
    fn open_leaf(&mut self, kind: Kind, at: u64, state: State) -> Option<()> {
        if self.doc.nodes.len() >= NODES_MAX {
            return None;
        }
        let text_at = self.doc.text.len() as u32;
        let next = self.doc.nodes.len() as u32 + 1;
        self.doc.nodes.push(Node {
            span: Span::new(at, at + 1),
            next,
            text_at,
            text_len: 0,
            kind,
            escaped: false,
            excess: 0,
        });
        self.go(state)
    }

    fn open_container(&mut self, kind: Kind, at: u64, state: State) -> Option<()> {
        self.open_leaf(kind, at, state)?;
        self.open.push(self.doc.nodes.len() as u32 - 1);
        Some(())
    }

    fn close(&mut self, at: u64, kind: Kind) -> Option<()> {
        if self.container() != kind {
            return None;
        }
        let index = self.open.pop()?;
        let next = self.doc.nodes.len() as u32;
        let node = &mut self.doc.nodes[index as usize];
        node.span.end = at + 1;
        node.next = next;
        self.closed()
    }

    fn closed(&mut self) -> Option<()> {
        self.go(if self.open.is_empty() { State::Done } else { State::CommaOrEnd })
    }

    fn last(&mut self) -> Option<&mut Node> {
        self.doc.nodes.last_mut()
    }

    /// Reads the string whose inside begins at `from`, and the strings behind it as long as nothing stands between them
    /// but what nearly always does in compact JSON: a colon behind a key, and a comma behind a value of an object.
    fn strings(&mut self, piece: Piece<'_>, from: usize, key: bool) -> Option<usize> {
        let bytes = piece.bytes;
        let (mut from, mut key) = (from, key);
        loop {
            let reach = piece.marks.follow(from);
            let stop = reach.stop;
            if bytes.get(stop) != Some(&b'"') {
                // It wants a closer look, or its end is not here.
                self.key = key;
                self.open_leaf(Kind::String, piece.base + from as u64 - 1, State::Text)?;
                return self.text(piece, from);
            }
            self.whole(piece, from, &reach)?;
            let next = stop + 1;
            key = match (key, bytes.get(next), bytes.get(next + 1)) {
                (true, Some(b':'), Some(b'"')) => false,
                (true, Some(b':'), _) => {
                    self.state = State::Value;
                    return Some(next + 1);
                }
                (false, Some(b','), Some(b'"')) if self.container() == Kind::Object => true,
                _ => {
                    // A string is never the whole.
                    self.state = if key { State::Colon } else { State::CommaOrEnd };
                    return Some(next);
                }
            };
            from = next + 2;
        }
    }

    /// Adds a string that stands in one piece.
    #[inline]
    fn whole(&mut self, piece: Piece<'_>, from: usize, reach: &Reach) -> Option<()> {
        let Doc { nodes, text, .. } = &mut self.doc;
        if nodes.len() >= NODES_MAX {
            return None;
        }
        let to = reach.stop;
        let (text_at, taken) = (text.len(), (to - from).min(CAPTURE_BYTES_MAX));
        // Most strings are short: those are copied with some of what follows, which is then let go, because copying a
        // fixed number of bytes costs less than asking how many.
        match piece.bytes[from..].first_chunk::<SHORT_BYTES>() {
            Some(chunk) if taken <= SHORT_BYTES => {
                text.extend_from_slice(chunk);
                text.truncate(text_at + taken);
            }
            _ => text.extend_from_slice(&piece.bytes[from..from + taken]),
        }
        nodes.push(Node {
            span: Span::new(piece.base + from as u64 - 1, piece.base + to as u64 + 1),
            next: nodes.len() as u32 + 1,
            text_at: text_at as u32,
            text_len: taken as u16,
            kind: Kind::String,
            escaped: reach.escaped,
            excess: reach.excess,
        });
        Some(())
    }

    /// Reads on inside a string, up to its end, the end of the piece, or an escape that wants a closer look.
    fn text(&mut self, piece: Piece<'_>, from: usize) -> Option<usize> {
        let Reach { stop, escaped, excess } = piece.marks.follow(from);
        let stop = stop.min(piece.bytes.len());
        let stopped_by = piece.bytes.get(stop).copied();
        let rare = stopped_by == Some(b'\\');
        self.capture(&piece.bytes[from..stop + usize::from(rare)]);
        let node = self.doc.nodes.last_mut()?;
        node.escaped |= escaped || rare;
        node.excess += excess;
        match stopped_by {
            None => return Some(stop),
            Some(b'\\') => self.state = State::Escape,
            Some(b'"') => {
                node.span.end = piece.base + stop as u64 + 1;
                self.state = if self.key { State::Colon } else { State::CommaOrEnd };
            }
            Some(_) => {
                self.bad_at = Some(stop);
                return None;
            }
        }
        Some(stop + 1)
    }

    /// Goes on behind a value that has ended, to the next key if there is one.
    #[inline]
    fn on_to_next(&mut self, piece: Piece<'_>, next: usize) -> Option<usize> {
        let comma = matches!(piece.bytes.get(next..next + 2), Some(b",\""));
        if comma && matches!(self.state, State::CommaOrEnd) && self.container() == Kind::Object {
            return self.strings(piece, next + 2, true);
        }
        Some(next)
    }

    fn capture(&mut self, bytes: &[u8]) {
        let Some(node) = self.doc.nodes.last_mut() else { return };
        let room = CAPTURE_BYTES_MAX - usize::from(node.text_len);
        let taken = bytes.len().min(room);
        self.doc.text.extend_from_slice(&bytes[..taken]);
        node.text_len += taken as u16;
    }

    /// An escape that is not one of the common two-byte ones, or that two pieces share.
    fn escape(&mut self, byte: u8, at: u64) -> Option<()> {
        self.capture(&[byte]);
        match self.state {
            State::Escape if byte == b'u' => {
                self.code = 0;
                self.go(State::Hex(0))
            }
            State::Escape if b"\"\\/bfnrt".contains(&byte) => {
                self.last()?.excess += 1;
                self.go(State::Text)
            }
            State::Hex(n) => {
                self.code = self.code << 4 | char::from(byte).to_digit(16)?;
                if n < 3 {
                    return self.go(State::Hex(n + 1));
                }
                // Six bytes for one character; the second half of a pair is none of its own.
                let pair = (0xdc00..0xe000).contains(&self.code) && self.half_at == at - 5;
                self.last()?.excess += if pair { 6 } else { 5 };
                match self.code {
                    0 => self.doc.odd.nul = true,
                    0xd800..0xdc00 => self.doc.halves += 1,
                    0xdc00..0xe000 if pair => (self.doc.halves, self.doc.pairs) = (self.doc.halves - 1, true),
                    0xdc00..0xe000 => self.doc.odd.half_pairs = true,
                    _ => {}
                }
                self.half_at = if (0xd800..0xdc00).contains(&self.code) { at + 1 } else { u64::MAX };
                self.go(State::Text)
            }
            _ => None,
        }
    }

    /// Goes on with a word: all of it that the piece holds.
    fn word(&mut self, word: &'static [u8], at: u8, piece: Piece<'_>, i: usize) -> Option<usize> {
        let bytes = piece.bytes;
        let rest = &word[usize::from(at)..];
        let same = rest.iter().zip(&bytes[i..]).take_while(|(wanted, byte)| wanted == byte).count();
        self.last()?.span.end += same as u64;
        if same == rest.len() {
            self.closed()?;
            return self.on_to_next(piece, i + same);
        } else if i + same == bytes.len() {
            self.state = State::Word(word, at + same as u8);
        } else {
            self.bad_at = Some(i + same);
            return None;
        }
        Some(i + same)
    }

    /// One character of a number with the digits behind it, or its end: then the byte is not taken.
    fn number(&mut self, number: Number, piece: Piece<'_>, i: usize) -> Option<usize> {
        use Number::{Exponent, ExponentDigits, ExponentSign, Fraction, Minus, Point, Whole, Zero};
        let bytes = piece.bytes;
        let next = match (number, bytes[i]) {
            (Minus, b'0') => Zero,
            (Minus, b'1'..=b'9') | (Whole, b'0'..=b'9') => Whole,
            (Zero | Whole, b'.') => Point,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Zero | Whole | Fraction, b'e' | b'E') => Exponent,
            (Exponent, b'+' | b'-') => ExponentSign,
            (Exponent | ExponentSign | ExponentDigits, b'0'..=b'9') => ExponentDigits,
            (Zero | Whole | Fraction | ExponentDigits, _) => {
                self.last()?.span.end = piece.base + i as u64;
                self.closed()?;
                return self.on_to_next(piece, i);
            }
            _ => return None,
        };
        let digits = bytes[i + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = if matches!(next, Whole | Fraction | ExponentDigits) { i + 1 + digits } else { i + 1 };
        self.capture(&bytes[i..end]);
        self.state = State::Number(next);
        Some(end)
    }
}

/// Whether a whole file is one object or array, on however many lines; not told of one with too many values.
pub fn is_document(source: &dyn Source) -> Result<bool, Fault> {
    let (mut tokeniser, mut marks) = (Tokeniser::default(), Marks::default());
    // An array is read as the only value of an object.
    tokeniser.feed_all(b"{\"\":", 0, &mut marks);
    let mut buffer = vec![0; WINDOW_BYTES.min(source.len() as usize)];
    let mut at = 0;
    while at < source.len() {
        let window = window(source, Span::new(at, source.len()), &mut buffer)?;
        if !matches!(tokeniser.feed_all(window, at, &mut marks), Fed::More) {
            return Ok(false);
        }
        at += window.len() as u64;
    }
    if !matches!(tokeniser.feed_all(b"}", at, &mut marks), Fed::Done(_)) {
        return Ok(false);
    }
    let mut fields = tokeniser.doc.root().into_iter().flat_map(Value::fields).map(|(_, value)| value.kind());
    Ok(matches!(fields.next(), Some(Kind::Object | Kind::Array)) && fields.next().is_none())
}

/// Tokenises the object at `span` again, for what a scan does not keep.
pub fn parse(source: &dyn Source, span: Span) -> Result<Option<Doc>, Fault> {
    let (mut tokeniser, mut marks) = (Tokeniser::default(), Marks::default());
    let mut buffer = vec![0; WINDOW_BYTES.min(span.len() as usize)];
    let mut at = span.start;
    while at < span.end {
        let window = window(source, Span::new(at, span.end), &mut buffer)?;
        match tokeniser.feed_all(window, at, &mut marks) {
            Fed::More => at += window.len() as u64,
            Fed::Done(taken) if at + taken as u64 == span.end => return Ok(Some(tokeniser.doc)),
            _ => return Ok(None),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use proptest::prelude::*;

    fn feed_in_pieces(bytes: &[u8], size: usize) -> (Fed, Tokeniser) {
        let (mut tokeniser, mut marks) = (Tokeniser::default(), Marks::default());
        let mut fed = Fed::More;
        for (n, piece) in bytes.chunks(size.max(1)).enumerate() {
            fed = tokeniser.feed_all(piece, (n * size.max(1)) as u64, &mut marks);
            if fed != Fed::More {
                break;
            }
        }
        (fed, tokeniser)
    }

    fn accepted(bytes: &[u8], size: usize) -> bool {
        let (mut tokeniser, mut marks) = (Tokeniser::default(), Marks::default());
        for (n, piece) in bytes.chunks(size).enumerate() {
            match tokeniser.feed_all(piece, (n * size) as u64, &mut marks) {
                Fed::More => {}
                Fed::Done(taken) => {
                    return bytes[n * size + taken..].iter().all(|byte| b" \t\r\n".contains(byte));
                }
                _ => return false,
            }
        }
        false
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
            prop_assert_eq!(matches!(whole, Fed::Done(_)), matches!(parts, Fed::Done(_)));
            if matches!(whole, Fed::Done(_)) {
                let spans = |doc: &Doc| doc.nodes.iter().map(|n| (n.span, n.next)).collect::<Vec<_>>();
                prop_assert_eq!(spans(&one.doc), spans(&many.doc));
                prop_assert_eq!(one.doc.text, many.doc.text);
            }
        }
    }
}
