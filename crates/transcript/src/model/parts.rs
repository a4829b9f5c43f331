//! Puts a transcript together from parts of others: of one that was read in pieces, or of one that has changed in places.
//!
//! A part moves as a whole: its offsets, lines and indices by the same amounts. Its ids get the numbers that they have in
//! the whole.

use super::entry::{
    Call, ContentIssue, ContentIssueKind, Damage, DamageKind, Entry, Link, Target, ToolResult,
};
use super::ids::{Id, Ids};
use super::image::Image;
use super::transcript::{SideList, Start, Transcript};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use spans::json::JsonText;
use spans::source::Span;

/// The numbers that the ids of one transcript have in another.
pub(crate) struct Renumbered {
    known: Vec<Option<Id>>,
}

impl Renumbered {
    /// For the ids of this transcript.
    pub(crate) fn for_ids(ids: &Ids) -> Self {
        Self { known: vec![None; ids.len()] }
    }

    fn id(&mut self, id: Id, from: &Ids, to: &mut Ids) -> Option<Id> {
        let known = &mut self.known[id.index()];
        *known = known.or_else(|| to.intern(from.text(id)));
        *known
    }
}

/// How far what is taken over moves. A move to the front wraps around.
#[derive(Clone, Copy)]
struct Shift {
    bytes: u64,
    lines: u64,
    entries: u32,
    calls: u32,
    results: u32,
    bodies: u32,
    sides: u32,
    thinking: u32,
    targets: u32,
}

impl Shift {
    /// That of entries from this index on to the end of another transcript.
    fn between(from: &Transcript, entries: usize, to: &Transcript, bytes: u64, lines: u64) -> Self {
        let lists = from.lists_at(entries);
        let by = |to: usize, from: u32| (to as u32).wrapping_sub(from);
        Self {
            bytes,
            lines,
            entries: by(to.entries.len(), entries as u32),
            calls: by(to.calls.len(), lists.calls),
            results: by(to.results.len(), lists.results),
            bodies: by(to.bodies.len(), lists.bodies),
            sides: by(to.sides.len(), lists.sides),
            thinking: by(to.thinking.len(), lists.thinking),
            targets: by(to.targets.len(), lists.targets),
        }
    }

    fn at(&self, at: u64) -> u64 {
        at.wrapping_add(self.bytes)
    }

    /// An empty span at 0 means "none" and stays as it is.
    fn span(&self, span: Span) -> Span {
        if span == Span::default() { span } else { Span::new(self.at(span.start), self.at(span.end)) }
    }

    fn entry(&self, entry: u32) -> u32 {
        entry.wrapping_add(self.entries)
    }

    fn call(&self, call: u32) -> u32 {
        call.wrapping_add(self.calls)
    }

    fn result(&self, result: u32) -> u32 {
        result.wrapping_add(self.results)
    }

    fn text(&self, text: &JsonText) -> JsonText {
        text.moved_to(self.span(text.inner))
    }

    fn damage(&self, damage: &Damage) -> Damage {
        let kind = match damage.kind {
            DamageKind::NotJson(at) => DamageKind::NotJson(self.at(at)),
            DamageKind::Nul(at) => DamageKind::Nul(self.at(at)),
            DamageKind::NotUtf8(at) => DamageKind::NotUtf8(self.at(at)),
            DamageKind::Separators(at) => DamageKind::Separators(self.at(at)),
            kind @ (DamageKind::TooComplex
            | DamageKind::Torn
            | DamageKind::Unterminated
            | DamageKind::Bom) => kind,
        };
        Damage { line: damage.line.wrapping_add(self.lines), span: self.span(damage.span), kind }
    }

    fn image(&self, image: &Image) -> Image {
        Image {
            entry: self.entry(image.entry),
            block: self.span(image.block),
            data: self.span(image.data),
            media_at: self.span(image.media_at),
            ..*image
        }
    }
}

/// Where the parts of an entry begin in the lists.
struct Lists {
    calls: u32,
    results: u32,
    bodies: u32,
    sides: u32,
    thinking: u32,
    targets: u32,
}

/// A part of a transcript, of whole lines.
pub(crate) struct TranscriptPart {
    /// Its bytes.
    pub(crate) span: Span,
    /// By how much they move.
    pub(crate) bytes: u64,
    /// By how much the numbers of its lines move.
    pub(crate) lines: u64,
}

impl Transcript {
    /// The entries that begin in these bytes.
    pub(crate) fn entries_in(&self, span: Span) -> Range<usize> {
        let before = |at: u64| self.entries.partition_point(|entry| entry.span.start < at);
        before(span.start)..before(span.end)
    }

    /// The damage that begins in these bytes.
    pub(crate) fn damage_in(&self, span: Span) -> &[Damage] {
        let before = |at: u64| self.damage.partition_point(|damage| damage.span.start < at);
        &self.damage[before(span.start)..before(span.end)]
    }

    /// Adds another transcript, which was read after this one.
    pub(crate) fn append(&mut self, other: &Self) {
        self.append_lines(other, self.lines);
        self.lines += other.lines;
        self.add_user_texts(other.user_text, other.user_texts);
        self.reasons |= other.reasons;
        self.read_only = self.read_only.or(other.read_only);
        self.offsets = self.offsets.or(other.offsets);
        self.session = self.session.or(other.session);
        self.ordinals = match (self.ordinals, other.ordinals) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (own, others) => own.or(others),
        };
    }

    /// Adds the entries and the damage of another transcript, whose lines come after this many.
    pub(crate) fn append_lines(&mut self, other: &Self, lines: u64) {
        let mut ids = Renumbered::for_ids(&other.ids);
        // In the order in which they were read, so that they get the numbers of a reading in one piece.
        ids.known = other.ids.texts().map(|text| self.ids.intern(text)).collect();
        self.take(other, &TranscriptPart { span: Span::new(0, u64::MAX), bytes: 0, lines }, &mut ids);
    }

    /// Counts texts of users.
    pub(crate) fn add_user_texts(&mut self, hash: u64, texts: u64) {
        self.user_text = self.user_text.wrapping_add(hash);
        self.user_texts = self.user_texts.wrapping_add(texts);
    }

    /// The users' texts in these entries: their fingerprint, and how many they are.
    pub(crate) fn said_by(&self, entries: &Range<usize>) -> (u64, u64) {
        let said = items_of(&self.said, entries, |said| said.entry).iter();
        said.fold((0, 0), |(hash, texts), said| (said.hash.wrapping_add(hash), texts + said.texts))
    }

    /// Adds the entries and the damage of a part of another transcript.
    pub(crate) fn take(&mut self, other: &Self, part: &TranscriptPart, ids: &mut Renumbered) {
        let all = other.entries_in(part.span);
        let shift = Shift::between(other, all.start, self, part.bytes, part.lines);
        let (from, to) = (other.lists_at(all.start), other.lists_at(all.end));
        let slice = |from: u32, to: u32| from as usize..to as usize;
        let mut moved = Moved { shift, ids, from: &other.ids, to: &mut self.ids };
        self.entries.extend(other.entries[all.clone()].iter().map(|entry| moved.entry(entry)));
        self.calls.extend(other.calls[slice(from.calls, to.calls)].iter().map(|call| moved.call(call)));
        let results = &other.results[slice(from.results, to.results)];
        self.results.extend(results.iter().map(|result| moved.result(result)));
        self.targets
            .extend(other.targets[slice(from.targets, to.targets)].iter().map(|target| moved.target(target)));
        let own = &all;
        self.starts.extend(items_of(&other.starts, own, |start| start.entry).iter().filter_map(|start| {
            let call = moved.id(Some(start.call))?;
            Some(Start { call, entry: shift.entry(start.entry), at: shift.span(start.at) })
        }));
        let issues = items_of(&other.issues, own, |issue| issue.entry);
        self.issues.extend(issues.iter().map(|issue| moved.issue(issue)));
        let texts =
            |list: &[JsonText], from, to| list[slice(from, to)].iter().map(|text| shift.text(text)).collect();
        let (bodies, sides): (Vec<JsonText>, Vec<JsonText>) =
            (texts(&other.bodies, from.bodies, to.bodies), texts(&other.sides, from.sides, to.sides));
        self.bodies.extend(bodies);
        self.sides.extend(sides);
        let thinking = other.thinking[slice(from.thinking, to.thinking)].iter();
        self.thinking.extend(
            thinking.map(|block| super::entry::Thinking { block: shift.span(block.block), ..*block }),
        );
        self.images
            .extend(items_of(&other.images, own, |image| image.entry).iter().map(|image| shift.image(image)));
        let said = items_of(&other.said, own, |said| said.entry).iter();
        self.said
            .extend(said.map(|said| super::transcript::Said { entry: shift.entry(said.entry), ..*said }));
        let lists = items_of(&other.side_lists, own, |list| list.entry).iter();
        self.side_lists
            .extend(lists.map(|list| SideList { entry: shift.entry(list.entry), at: shift.span(list.at) }));
        let indices = |list: &[u32]| {
            items_of(list, own, |&entry| entry).iter().map(|&entry| shift.entry(entry)).collect()
        };
        let (unusual, unreasoned): (Vec<u32>, Vec<u32>) =
            (indices(&other.unusual), indices(&other.unreasoned));
        self.unusual.extend(unusual);
        self.unreasoned.extend(unreasoned);
        if let Some(newest) = other.token_counts.filter(|&entry| own.contains(&(entry as usize))) {
            self.token_counts = Some(shift.entry(newest));
        }
        self.damage.extend(other.damage_in(part.span).iter().map(|damage| shift.damage(damage)));
    }

    /// Where the parts of the entry with this index begin; the ends of the lists if it is not there.
    fn lists_at(&self, entry: usize) -> Lists {
        let Some(entry) = self.entries.get(entry) else {
            return Lists {
                calls: self.calls.len() as u32,
                results: self.results.len() as u32,
                bodies: self.bodies.len() as u32,
                sides: self.sides.len() as u32,
                thinking: self.thinking.len() as u32,
                targets: self.targets.len() as u32,
            };
        };
        let result = self.results.get(entry.results_from as usize);
        Lists {
            calls: entry.calls_from,
            results: entry.results_from,
            bodies: result.map_or(self.bodies.len() as u32, |result| result.bodies_from),
            sides: entry.sides_from,
            thinking: entry.thinking_from,
            targets: entry.targets_from,
        }
    }
}

/// The part of a list, sorted by entry, that is about these entries.
fn items_of<'l, T>(list: &'l [T], entries: &Range<usize>, of: impl Fn(&T) -> u32) -> &'l [T] {
    let before = |entry: usize| list.partition_point(|item| (of(item) as usize) < entry);
    &list[before(entries.start)..before(entries.end)]
}

/// Makes what is taken over fit its new place.
struct Moved<'m> {
    shift: Shift,
    ids: &'m mut Renumbered,
    from: &'m Ids,
    to: &'m mut Ids,
}

impl Moved<'_> {
    fn id(&mut self, id: Option<Id>) -> Option<Id> {
        self.ids.id(id?, self.from, self.to)
    }

    fn entry(&mut self, entry: &Entry) -> Entry {
        let shift = self.shift;
        Entry {
            line: entry.line.wrapping_add(shift.lines),
            span: shift.span(entry.span),
            id: self.id(entry.id),
            parent: match entry.parent {
                Link::To(id) => self.id(Some(id)).map_or(Link::Root, Link::To),
                link => link,
            },
            parent_at: shift.span(entry.parent_at),
            group: self.id(entry.group),
            model: self.id(entry.model),
            calls_from: shift.call(entry.calls_from),
            results_from: shift.result(entry.results_from),
            sides_from: entry.sides_from.wrapping_add(shift.sides),
            thinking_from: entry.thinking_from.wrapping_add(shift.thinking),
            targets_from: entry.targets_from.wrapping_add(shift.targets),
            ..*entry
        }
    }

    fn call(&mut self, call: &Call) -> Call {
        let shift = self.shift;
        Call {
            entry: shift.entry(call.entry),
            id: self.id(call.id),
            key: self.id(call.key),
            id_at: shift.span(call.id_at),
            name: self.id(call.name),
            name_at: shift.span(call.name_at),
            block: shift.span(call.block),
            ..*call
        }
    }

    fn result(&mut self, result: &ToolResult) -> ToolResult {
        let shift = self.shift;
        ToolResult {
            entry: shift.entry(result.entry),
            call: self.id(result.call),
            key: self.id(result.key),
            call_at: shift.span(result.call_at),
            name: self.id(result.name),
            name_at: shift.span(result.name_at),
            block: shift.span(result.block),
            bodies_from: result.bodies_from.wrapping_add(shift.bodies),
            ..*result
        }
    }

    fn target(&mut self, target: &Target) -> Target {
        Target { id: self.id(target.id), at: self.shift.span(target.at), end: self.id(target.end), ..*target }
    }

    fn issue(&mut self, issue: &ContentIssue) -> ContentIssue {
        let shift = self.shift;
        let kind = match issue.kind {
            ContentIssueKind::BlankResult(result, at) => {
                ContentIssueKind::BlankResult(shift.result(result), shift.span(at))
            }
            ContentIssueKind::Displaced(result) => ContentIssueKind::Displaced(shift.result(result)),
            ContentIssueKind::Early(result) => ContentIssueKind::Early(shift.result(result)),
            ContentIssueKind::Undeclared(call) => ContentIssueKind::Undeclared(shift.call(call)),
            ContentIssueKind::ServerCall(id) => ContentIssueKind::ServerCall(self.id(Some(id)).unwrap_or(id)),
            ContentIssueKind::ServerResult(id) => {
                ContentIssueKind::ServerResult(self.id(Some(id)).unwrap_or(id))
            }
            kind => kind,
        };
        ContentIssue { entry: shift.entry(issue.entry), kind, block: shift.span(issue.block) }
    }
}

#[cfg(test)]
impl Transcript {
    /// Everything in it, whatever the numbers of its ids.
    pub(crate) fn spelled(&self) -> alloc::string::String {
        let mut own = Self::default();
        own.take(
            self,
            &TranscriptPart { span: Span::new(0, u64::MAX), bytes: 0, lines: 0 },
            &mut Renumbered::for_ids(&self.ids),
        );
        let texts: Vec<_> = own.ids.texts().map(alloc::string::String::from_utf8_lossy).collect();
        let counts = (self.bytes, self.lines, self.user_text, self.user_texts, self.session, self.ordinals);
        alloc::format!(
            "{counts:?} {:?} {:?} {:?} {texts:?}\n{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}",
            self.reasons,
            (self.read_only, self.offsets),
            own.token_counts,
            own.entries,
            own.calls,
            own.results,
            own.bodies,
            own.sides,
            own.thinking,
            own.targets,
            own.starts,
            own.unusual,
            own.unreasoned,
            own.issues,
            own.images,
            own.said,
            own.side_lists,
            own.damage,
        )
    }
}
