//! An entry under construction: formats call its methods while they read a record.

use super::damaged_name::was;
use super::entry::{
    Call, ContentIssue, ContentIssueKind, Entry, Kind, Link, Mark, NearSpan, PieceKind, Role, Service,
    StopReason, Target, Thinking, ToolResult,
};
use super::ids::Id;
use super::image::{self, Image};
use super::transcript::{ContextEdit, Said, SideList, Start, Transcript, Written};
use alloc::borrow::Cow;
use spans::fingerprint;
use spans::json::{JsonText, Odd, Value, ValueKind as Json};
use spans::marker;
use spans::source::Span;

/// Side copies shorter than this many raw bytes are never cut, whatever the policy says.
pub const SIDE_BYTES_MIN: u64 = 1000;

/// Longest text of a result that a program made up for a lost one.
const INVENTED_CHARS_MAX: u64 = 1000;

/// An entry while a format reads it.
pub struct Draft<'t> {
    transcript: &'t mut Transcript,
    /// The entry so far.
    pub entry: Entry,
    /// Whether it holds something that would be sent.
    shown: bool,
    /// Fingerprint and number of the user texts in it.
    said: (u64, u64),
}

impl Draft<'_> {
    /// Begins an entry of a transcript.
    pub(crate) fn new(transcript: &mut Transcript, line: u64, span: Span, glued: bool) -> Draft<'_> {
        let entry = Entry {
            line,
            span,
            glued,
            listed: false,
            kind: Kind::Opaque,
            id: None,
            parent: Link::Missing,
            parent_at: NearSpan::default(),
            is_sidechain: false,
            injected: false,
            group: None,
            model: None,
            stop: StopReason::Unknown,
            odd: Odd::default(),
            service: Service::None,
            text_chars: 0,
            calls_from: transcript.calls.len() as u32,
            results_from: transcript.results.len() as u32,
            sides_from: transcript.sides.len() as u32,
            thinking_from: transcript.thinking.len() as u32,
            targets_from: transcript.targets.len() as u32,
        };
        Draft { transcript, entry, shown: false, said: (0, 0) }
    }

    /// Interns a short string; `None` for anything else, including the empty string, because empty ids never pair.
    pub fn intern(&mut self, value: Option<Value<'_>>) -> Option<Id> {
        self.intern_text(&value?.text()?)
    }

    fn intern_text(&mut self, text: &[u8]) -> Option<Id> {
        if text.is_empty() { None } else { self.transcript.ids.intern(text) }
    }

    /// The id of the entry before, if `value` is that. It saves a lookup, because that is usually the parent.
    fn newest(&self, value: Value<'_>) -> Option<Id> {
        let id = self.transcript.entries.last()?.id?;
        (*value.text()? == *self.transcript.ids.text(id)).then_some(id)
    }

    /// Reads the parent from a field's value.
    pub fn parent(&mut self, value: Option<Value<'_>>) {
        self.entry.parent = match value {
            None => Link::Missing,
            Some(value) => {
                self.newest(value).or_else(|| self.intern(Some(value))).map_or(Link::Root, Link::To)
            }
        };
        self.entry.parent_at = near(value, self.entry.span);
    }

    /// Records what the entry points at.
    pub fn target(&mut self, target: Target) {
        self.transcript.targets.push(target);
    }

    /// Counts a text that the model sees.
    pub fn text(&mut self, value: Value<'_>) {
        if value.kind() == Json::String {
            self.seen(PieceKind::Text, value, value.chars(), u32::MAX);
        }
    }

    fn seen(&mut self, kind: PieceKind, value: Value<'_>, chars: u64, owner: u32) {
        self.entry.text_chars += chars;
        self.shown |= !is_blank(value);
        self.mark(kind, owner, value.span(), chars);
    }

    fn mark(&mut self, kind: PieceKind, owner: u32, span: Span, chars: u64) {
        if let Some(marks) = &mut self.transcript.marks {
            marks.push(Mark { kind, owner, span, chars });
        }
    }

    /// Counts the text of a block, and notes it if there is nothing in it.
    pub fn text_block(&mut self, block: Value<'_>, text: Value<'_>) {
        self.text(text);
        self.blank(block, text);
    }

    /// Notes a text block that was counted already, if there is nothing in it.
    pub fn blank(&mut self, block: Value<'_>, text: Value<'_>) {
        if text.kind() == Json::String && is_blank(text) {
            self.issue(ContentIssueKind::Blank, block.span());
        }
    }

    /// Records which session the row belongs to.
    pub fn session(&mut self, name: Option<Value<'_>>) {
        let Some(name) = name.and_then(Value::text) else { return };
        let own = fingerprint::hash(&name);
        if *self.transcript.session.get_or_insert(own) != own {
            self.issue(ContentIssueKind::Foreign, self.entry.span);
        }
    }

    /// Says that the entry changes what another one says: hides it, or puts this content in its place.
    pub fn edits(&mut self, target: Option<Value<'_>>, content: Option<Value<'_>>) {
        let Some(target) = self.intern(target) else { return };
        let blocks = || content.into_iter().flat_map(Value::items);
        content
            .into_iter()
            .chain(blocks().filter_map(|block| block.get("text")))
            .for_each(|text| self.text(text));
        let calls = blocks().filter_map(|block| self.intern(block.get("id"))).collect();
        let entry = self.transcript.entries.len() as u32;
        self.transcript.edits.push(ContextEdit { entry, target, hides: content.is_none(), calls });
    }

    /// Records when the row was written, for agents that go by that.
    pub fn written(&mut self, at: Option<u64>) {
        if let Some(at) = at {
            let entry = self.transcript.entries.len() as u32;
            self.transcript.times.push(Written { entry, ms: at as u32 });
        }
    }

    /// Notes the number of the record.
    pub fn ordinal(&mut self, number: Value<'_>) {
        let Some(own) = number.whole() else { return };
        let before = self.transcript.ordinals;
        if before.is_some_and(|(_, last)| last.checked_add(1) != Some(own)) {
            self.issue(ContentIssueKind::Ordinal, self.entry.span);
        }
        self.transcript.ordinals = Some((before.map_or(own, |(first, _)| first), own));
    }

    /// Records a content issue.
    pub fn issue(&mut self, kind: ContentIssueKind, block: Span) {
        let entry = self.transcript.entries.len() as u32;
        self.transcript.issues.push(ContentIssue { entry, kind, block });
    }

    /// Records that a text is sent, without counting it.
    pub fn shows_text(&mut self, text: Value<'_>) {
        self.shown |= text.kind() == Json::String && !is_blank(text);
    }

    /// Records that the entry holds something else that is sent: no text, call, result or thinking.
    pub fn shows(&mut self) {
        self.shown = true;
    }

    /// Reads a block of an assistant message that is of no known kind.
    pub fn other_block(&mut self, block: Value<'_>) {
        if !self.lacks_text(block) {
            self.shows();
        }
    }

    /// Records a block if its type says that it is a call or result of a tool that the API ran itself.
    pub fn server_tool(&mut self, block: Value<'_>, kind: &[u8]) {
        let (key, noted): (_, fn(Id) -> ContentIssueKind) = match kind {
            b"server_tool_use" | b"mcp_tool_use" => ("id", ContentIssueKind::ServerCall),
            kind if kind.ends_with(b"_tool_result") => ("tool_use_id", ContentIssueKind::ServerResult),
            _ => return,
        };
        if let Some(id) = self.intern(block.get(key)) {
            self.issue(noted(id), block.span());
        }
    }

    /// Records a text block without a text, or whose name for it is damaged.
    fn lacks_text(&mut self, block: Value<'_>) -> bool {
        let text = block.get("type").is_some_and(|kind| kind.is("text")) && block.get("text").is_none();
        if text {
            let (kind, at) = match block.fields().map(|(key, _)| key).find(|key| was(*key, "text")) {
                Some(key) => (ContentIssueKind::Corrupted(Some("text")), key.span()),
                None => (ContentIssueKind::Blank, block.span()),
            };
            self.shown |= kind != ContentIssueKind::Blank;
            self.issue(kind, at);
        }
        text
    }

    /// Counts a user's text.
    pub fn user_text(&mut self, value: Value<'_>) {
        if value.kind() == Json::String {
            self.text(value);
            // A marker in place of an image is not a user's text.
            if is_blank(value)
                || marker::may_begin(value.prefix())
                    && value.text().is_some_and(|text| marker::is_alone(&text))
            {
                return;
            }
            // The beginning and the length will do. A sum does not depend on the order.
            let hash = fingerprint::mix(fingerprint::hash(value.prefix()) ^ value.inner().len());
            self.transcript.user_text = self.transcript.user_text.wrapping_add(hash);
            self.transcript.user_texts += 1;
            self.said = (self.said.0.wrapping_add(hash), self.said.1 + 1);
        }
    }

    /// Records a call.
    pub fn call(&mut self, block: Value<'_>, id: Option<Value<'_>>, name: Option<Value<'_>>, partial: bool) {
        let own = self.intern(id);
        let call = Call {
            entry: self.transcript.entries.len() as u32,
            id: own,
            key: own,
            id_at: near(id, block.span()),
            name: self.intern(name),
            name_at: near(name, block.span()),
            block: block.span(),
            sent_bytes: block.span().len(),
            partial,
            followed: false,
        };
        let (owner, span) = (self.transcript.calls.len() as u32, block.span());
        self.mark(PieceKind::Call, owner, span, span.len());
        self.transcript.calls.push(call);
    }

    /// Says that only this part of the last call is sent.
    pub fn call_weighs(&mut self, sent: Option<Value<'_>>) {
        if let Some(mark) = self.transcript.marks.as_mut().and_then(|marks| marks.last_mut()) {
            mark.span = sent.map_or_else(|| Span::new(mark.span.start, mark.span.start), Value::span);
            mark.chars = mark.span.len();
        }
    }

    /// Says that only this part of the last call is sent, and that all else in its block is its result, and copies of that.
    pub fn call_is_only(&mut self, sent: Option<Value<'_>>) {
        self.call_weighs(sent);
        if let Some(call) = self.transcript.calls.last_mut() {
            call.sent_bytes = sent.map_or(0, |sent| sent.span().len());
        }
    }

    /// Records a result. Its texts follow with [`Draft::body`].
    pub fn result(
        &mut self,
        block: Value<'_>,
        call: Option<Value<'_>>,
        name: Option<Value<'_>>,
        error: bool,
    ) {
        let own = self.intern(call);
        let result = ToolResult {
            entry: self.transcript.entries.len() as u32,
            call: own,
            key: own,
            call_at: near(call, block.span()),
            name: self.intern(name),
            name_at: near(name, block.span()),
            block: block.span(),
            whole: block.span() == self.entry.span,
            error,
            synthetic: false,
            images: 0,
            bodies_from: self.transcript.bodies.len() as u32,
        };
        self.transcript.results.push(result);
    }

    /// Names the tool of the last call, if the name is a part of a longer literal.
    pub fn call_name(&mut self, name: &[u8]) {
        let name = self.intern_text(name);
        if let Some(call) = self.transcript.calls.last_mut() {
            call.name = name;
        }
    }

    /// Says that the call last recorded is only answered by results of the same kind.
    pub fn call_kind(&mut self, kind: &[u8]) {
        let id = self.transcript.calls.last().and_then(|call| call.id);
        let key = self.key(kind, id);
        if let Some(call) = self.transcript.calls.last_mut() {
            call.key = key;
        }
    }

    /// Says that the result last recorded only answers calls of the same kind.
    pub fn result_kind(&mut self, kind: &[u8]) {
        let call = self.transcript.results.last().and_then(|result| result.call);
        let key = self.key(kind, call);
        if let Some(result) = self.transcript.results.last_mut() {
            result.key = key;
        }
    }

    /// Says that calls and results of this entry only pair with each other.
    pub fn scope(&mut self, name: &[u8]) {
        for call in self.entry.calls_from as usize..self.transcript.calls.len() {
            self.transcript.calls[call].key = self.key(name, self.transcript.calls[call].id);
        }
        for result in self.entry.results_from as usize..self.transcript.results.len() {
            self.transcript.results[result].key = self.key(name, self.transcript.results[result].call);
        }
    }

    /// Says which message of a whole conversation is the last one.
    pub fn ends_with(&mut self, last: Span) {
        for call in &mut self.transcript.calls[self.entry.calls_from as usize..] {
            call.followed = call.block.end <= last.start;
        }
    }

    /// A kind and an id as one key, with a NUL between, which no real id holds.
    fn key(&mut self, kind: &[u8], id: Option<Id>) -> Option<Id> {
        let ids = &mut self.transcript.ids;
        let text = [kind, b"\0", ids.text(id?)].concat();
        ids.intern(&text)
    }

    /// Notes whether a message with calls has its reasoning beside its content.
    pub fn reasoned(&mut self, reasoning: Option<Value<'_>>) {
        if reasoning.is_some_and(|reasoning| reasoning.kind() == Json::String) {
            self.transcript.reasons = true;
        } else {
            self.transcript.unreasoned.push(self.transcript.entries.len() as u32);
        }
    }

    /// Says that the entry counts tokens, and whether no request can have had so many.
    pub fn counts_tokens(&mut self, impossible: bool) {
        self.transcript.token_counts = Some(self.transcript.entries.len() as u32);
        if impossible {
            self.issue(ContentIssueKind::Impossible, self.entry.span);
        }
    }

    /// How many calls and results there are so far.
    pub fn pairs_so_far(&self) -> [usize; 2] {
        [self.transcript.calls.len(), self.transcript.results.len()]
    }

    /// Whether a result may be that of a call, by their indices. Where ids are left out, any may be.
    pub fn answers(&self, result: usize, call: usize) -> bool {
        let (call, result) = (self.transcript.calls[call].id, self.transcript.results[result].call);
        call.is_none() || result.is_none() || call == result
    }

    /// Notes the calls of this entry whose tool is none of these.
    pub fn offers(&mut self, names: &[Cow<'_, [u8]>]) {
        for call in self.entry.calls_from as usize..self.transcript.calls.len() {
            let Some(name) = self.transcript.calls[call].name else { continue };
            if !names.iter().any(|own| **own == *self.transcript.ids.text(name)) {
                let block = self.transcript.calls[call].block;
                self.issue(ContentIssueKind::Undeclared(call as u32), block);
            }
        }
    }

    /// Says that nothing of this file may be changed, whatever its format allows, and why.
    pub fn read_only(&mut self, why: &'static str) {
        self.transcript.read_only.get_or_insert(why);
    }

    /// Says that each line of this file has to stay where it is, and what holds byte offsets into it.
    pub fn offsets(&mut self, place: &'static str) {
        self.transcript.offsets.get_or_insert(place);
    }

    /// Says that the session is stored in a database.
    pub fn in_database(&mut self) {
        self.transcript.in_database = true;
    }

    /// Records a text of the result last recorded.
    pub fn body(&mut self, text: Value<'_>) {
        if text.kind() != Json::String {
            return;
        }
        let body = JsonText::from_value(text);
        if let Some(result) = self.transcript.results.last_mut()
            && result.bodies_from as usize == self.transcript.bodies.len()
            && body.chars <= INVENTED_CHARS_MAX
            && marker::synthetic(text.prefix())
        {
            // Its length is not counted: otherwise adding it could make a message too long.
            result.synthetic = true;
            return;
        }
        // Nor is that of the note that replaces an empty text.
        if text.is(marker::NO_OUTPUT) {
            return;
        }
        let owner = (self.transcript.results.len() as u32).wrapping_sub(1);
        self.seen(PieceKind::Result, text, body.chars, owner);
        self.transcript.bodies.push(body);
    }

    /// Says that the entry is the last result and nothing else.
    pub fn whole_result(&mut self, span: Span) {
        if let Some(result) = self.transcript.results.last_mut() {
            result.set_block(span);
            result.whole = true;
        }
    }

    /// Looks at the content of the result last recorded: a text, or a list of blocks.
    pub fn content(&mut self, content: Option<Value<'_>>) {
        match content {
            Some(text) if text.kind() == Json::String => self.body(text),
            blocks => blocks.into_iter().flat_map(Value::items).for_each(|block| self.block(block)),
        }
    }

    /// Looks at a block of the result last recorded.
    fn block(&mut self, block: Value<'_>) {
        let index = self.transcript.results.len().saturating_sub(1) as u32;
        if let Some(text) = block.get("text") {
            self.body(text);
            if text.kind() == Json::String && is_blank(text) {
                self.issue(ContentIssueKind::BlankResult(index, text.inner()), block.span());
            }
            return;
        }
        self.result_image(block);
    }

    /// Notes the content of the result last recorded, which says that its tool failed, if there is nothing in it. `inside` says
    /// whether a block has to go into the list, and not a text in its place.
    pub fn says_nothing(&mut self, content: Option<Value<'_>>, inside: bool) {
        let is_empty = |value: &Value<'_>| match value.kind() {
            Json::Array => value.items().next().is_none(),
            _ => value.is(""),
        };
        let Some(content) = content.filter(is_empty) else { return };
        let index = self.transcript.results.len().saturating_sub(1) as u32;
        let span = content.span();
        let at = if inside { Span::new(span.start + 1, span.start + 1) } else { span };
        self.issue(ContentIssueKind::BlankResult(index, at), span);
    }

    /// Looks at a block of the result last recorded that holds no text.
    pub fn result_image(&mut self, block: Value<'_>) {
        if image::may_be(block)
            && let Some(result) = self.transcript.results.last_mut()
        {
            result.images += 1;
        }
        self.image(block);
    }

    /// Looks at a block that holds no text: whether it is an image.
    pub fn image(&mut self, block: Value<'_>) {
        if self.lacks_text(block) {
            return;
        }
        self.shown = true;
        if block.get("type").is_some_and(|kind| kind.is("document")) {
            self.issue(ContentIssueKind::Document, block.span());
        }
        if let Some(image) = image::may_be(block).then(|| image::of_block(block)).flatten() {
            let entry = self.transcript.entries.len() as u32;
            self.transcript.images.push(Image { entry, ..image });
        }
    }

    /// Says that only an image may replace this block.
    pub fn no_words_for(&mut self, block: Value<'_>) {
        if let Some(image) = self.transcript.images.last_mut().filter(|image| image.block == block.span()) {
            image.stub = image::Stub::Nothing;
        }
    }

    /// Reads one of the messages in the entry, and records it if it is empty.
    pub fn message(&mut self, message: Value<'_>, read: impl FnOnce(Value<'_>, &mut Self)) {
        let before = self.held();
        self.shown = false;
        read(message, self);
        let said = matches!(self.entry.kind, Kind::Message(Role::Assistant | Role::User));
        if said && !self.shown && self.held() == before {
            self.issue(ContentIssueKind::Empty, message.span());
        }
    }

    /// The number of calls, results and thinking blocks so far.
    fn held(&self) -> [usize; 3] {
        [self.transcript.calls.len(), self.transcript.results.len(), self.transcript.thinking.len()]
    }

    /// Says that the last result was made up for a lost one.
    pub fn invented(&mut self) {
        if let Some(result) = self.transcript.results.last_mut() {
            result.synthetic = true;
        }
    }

    /// Records the long strings inside a value that the model never sees, except image data, paths and signatures.
    pub fn sides(&mut self, value: Option<Value<'_>>) {
        let Some(value) = value else { return };
        self.mark_side(value);
        let mut opaque = false;
        // In byte order a key comes right before its value.
        for inside in value.descendants() {
            let long = inside.kind() == Json::String && inside.span().len() - 2 >= SIDE_BYTES_MIN;
            if long && !opaque && !inside.prefix().starts_with(b"data:") {
                self.transcript.sides.push(JsonText::from_value(inside));
            }
            opaque =
                ["base64", "data", "signature", "filePath", "file_path"].iter().any(|key| inside.is(key));
        }
    }

    /// Records side copies in a value that may also be a list of lines, each a list of short texts. A string can replace it.
    pub fn sides_or_lines(&mut self, value: Option<Value<'_>>) {
        let are_lines = |list: &Value<'_>| list.items().all(|line| line.kind() == Json::Array);
        match value.filter(|list| list.kind() == Json::Array && are_lines(list)) {
            Some(lines) => {
                self.mark_side(lines);
                let entry = self.transcript.entries.len() as u32;
                self.transcript.side_lists.push(SideList { entry, at: lines.span() });
            }
            None => self.sides(value),
        }
    }

    /// Marks a copy for the screen. It is of the entry's result, if that has just one.
    fn mark_side(&mut self, value: Value<'_>) {
        let from = self.entry.results_from as usize;
        let owner = if self.transcript.results.len() == from + 1 { from as u32 } else { u32::MAX };
        self.mark(PieceKind::Side, owner, value.span(), 0);
    }

    /// Records a signed thinking block.
    pub fn thinking(&mut self, block: Value<'_>) {
        self.mark(PieceKind::Thinking, u32::MAX, block.span(), block.get("thinking").map_or(0, Value::chars));
        self.transcript.thinking.push(Thinking { block: block.span(), fixed: false });
    }

    /// Records signed thinking that is not an element of an array, and so cannot be removed.
    pub fn fixed_thinking(&mut self, value: Value<'_>) {
        self.transcript.thinking.push(Thinking { block: value.span(), fixed: true });
    }

    /// Says that the entry marks when a tool started: the result of its call has to follow it.
    pub fn started(&mut self, call: Option<Value<'_>>) {
        let entry = self.transcript.entries.len() as u32;
        if let (Some(id), Some(at)) = (self.intern(call), call.map(Value::span)) {
            self.transcript.starts.push(Start { call: id, entry, at });
        }
    }

    /// Says that the result last recorded names no call, but is known to have one.
    pub fn unpaired(&mut self) {
        if let Some(result) = self.transcript.results.last_mut() {
            (result.call, result.key) = (None, None);
        }
    }

    /// Looks at a thinking block with this signature, or this redacted content.
    pub fn signed(&mut self, block: Value<'_>, signature: Option<Value<'_>>) {
        let redacted = block.get("type").is_some_and(|kind| kind.is("redacted_thinking"));
        let signed = signature.is_some_and(|value| !value.is_null() && !value.is(""));
        if signed || redacted {
            self.thinking(block);
        }
        if !signed {
            self.issue(ContentIssueKind::Unsigned, block.span());
        } else if signature.is_some_and(is_altered) {
            self.issue(ContentIssueKind::Altered, block.span());
        }
    }

    /// Ends the entry.
    pub(crate) fn finish(mut self) {
        let Entry { calls_from, results_from, thinking_from, .. } = self.entry;
        let before = [calls_from, results_from, thinking_from].map(|from| from as usize);
        let hollow = !self.shown && self.held() == before;
        if hollow && matches!(self.entry.kind, Kind::Message(Role::Assistant | Role::User)) {
            self.issue(ContentIssueKind::Empty, self.entry.span);
        }
        let (hash, texts) = self.said;
        if texts > 0 {
            let entry = self.transcript.entries.len() as u32;
            self.transcript.said.push(Said { entry, hash, texts });
        }
        if self.entry.glued || self.entry.odd != Odd::default() || self.entry.service != Service::None {
            self.transcript.unusual.push(self.transcript.entries.len() as u32);
        }
        self.transcript.entries.push(self.entry);
    }
}

/// Where a value is, as seen from the block or the entry that holds it.
fn near(value: Option<Value<'_>>, base: Span) -> NearSpan {
    value.map_or_else(NearSpan::default, |value| NearSpan::new(value.span(), base.start))
}

/// Whether a signature holds what other programs put in place of secrets and long texts, and no real signature holds. Only
/// the part of it that is kept is searched.
pub(crate) fn is_altered(signature: Value<'_>) -> bool {
    let bytes = signature.prefix();
    let mark = |mark: &[u8]| memchr::memmem::find(bytes, mark).is_some();
    // These bytes are not in base64, so one search is enough for nearly every signature.
    let marked = || {
        memchr::memchr3(b'.', b'*', b'\\', bytes).or_else(|| memchr::memchr(0xe2, bytes)).is_some()
            && ["\u{2026}".as_bytes(), b"\\u2026", b"...", b"***"].into_iter().any(mark)
    };
    !bytes.starts_with(b"{") && (marked() || mark(b"REDACTED"))
}

/// Whether a text is only white space. One that is too long to be kept is taken for something else.
pub(crate) fn is_blank(text: Value<'_>) -> bool {
    text.kind() == Json::String
        && may_be_blank(text.prefix())
        && text
            .text()
            .is_some_and(|text| core::str::from_utf8(&text).is_ok_and(|text| text.trim().is_empty()))
}

/// Whether a literal may be only white space, without decoding it. Nearly every text is decided by its first byte.
fn may_be_blank(literal: &[u8]) -> bool {
    let mut bytes = literal.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next() {
                Some(b'n' | b't' | b'r' | b'f') => {}
                // All other white space of Unicode.
                Some(b'u') => {
                    return [b"00", b"16", b"20", b"30"]
                        .iter()
                        .any(|high| bytes.as_slice().starts_with(*high));
                }
                _ => return false,
            },
            byte if byte.is_ascii_whitespace() => {}
            byte => return matches!(byte, 0xc2 | 0xe1 | 0xe2 | 0xe3),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::is_blank;
    use alloc::format;
    use spans::json;
    use spans::source::Span;

    #[test]
    fn white_space_is_blank_however_it_is_spelt() {
        for (literal, blank) in [
            ("", true),
            (" \\n\\t\\r\\f ", true),
            ("\u{a0}\u{3000}\u{2003}\u{1680}\u{85}", true),
            ("\\u00a0\\u3000\\u2028\\u0009", true),
            ("\\n\\nx", false),
            (" \u{e9}", false),
            ("\u{3042}", false),
            ("\\u00e9", false),
            ("\\\\n", false),
            ("\\u4e00", false),
        ] {
            let text = format!("{{\"text\":\"{literal}\"}}");
            let span = Span::new(0, text.len() as u64);
            let doc = json::parse(&text.as_bytes(), span).unwrap().unwrap();
            assert_eq!(is_blank(doc.get("text").unwrap()), blank, "{literal:?}");
        }
    }
}
