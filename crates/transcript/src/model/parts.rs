//! Puts a transcript together from parts of others: of one that was read in pieces, or of one that has changed in places.
//!
//! A part moves as a whole: its offsets, lines and indices by the same amounts. The whole is made list by list, each in the
//! place of the one that it is made from, because there is no memory for a long transcript twice.

use super::entry::{
    Call, ContentIssue, ContentIssueKind, Damage, DamageKind, Entry, Link, Target, Thinking, ToolResult,
};
use super::ids::Id;
use super::image::Image;
use super::transcript::{ContextEdit, Said, SideList, Start, Transcript, Written};
use alloc::vec::Vec;
use core::ops::Range;
use spans::json::JsonText;
use spans::source::Span;

/// Where the parts of an entry begin in the lists, or by how much these places move. A move to the front wraps around.
#[derive(Clone, Copy)]
struct Lists {
    entries: u32,
    calls: u32,
    results: u32,
    bodies: u32,
    sides: u32,
    thinking: u32,
    targets: u32,
}

impl Lists {
    /// Both, list by list.
    fn with(self, other: Self, both: fn(u32, u32) -> u32) -> Self {
        Self {
            entries: both(self.entries, other.entries),
            calls: both(self.calls, other.calls),
            results: both(self.results, other.results),
            bodies: both(self.bodies, other.bodies),
            sides: both(self.sides, other.sides),
            thinking: both(self.thinking, other.thinking),
            targets: both(self.targets, other.targets),
        }
    }
}

/// How far what is taken over moves. A move to the front wraps around.
#[derive(Clone, Copy)]
struct Shift<'n> {
    bytes: u64,
    lines: u64,
    lists: Lists,
    /// The numbers that the ids have in the whole; `None` if they are the same.
    ids: Option<&'n [Option<Id>]>,
}

impl Shift<'_> {
    fn id(&self, id: Option<Id>) -> Option<Id> {
        self.ids.map_or(id, |ids| ids[id?.index()])
    }

    fn at(&self, at: u64) -> u64 {
        at.wrapping_add(self.bytes)
    }

    /// An empty span at 0 means "none" and stays as it is.
    fn span(&self, span: Span) -> Span {
        if span == Span::default() { span } else { Span::new(self.at(span.start), self.at(span.end)) }
    }

    fn entry_at(&self, entry: u32) -> u32 {
        entry.wrapping_add(self.lists.entries)
    }

    fn call_at(&self, call: u32) -> u32 {
        call.wrapping_add(self.lists.calls)
    }

    fn result_at(&self, result: u32) -> u32 {
        result.wrapping_add(self.lists.results)
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
            entry: self.entry_at(image.entry),
            block: self.span(image.block),
            data: self.span(image.data),
            media_at: self.span(image.media_at),
            ..*image
        }
    }

    fn thinking(&self, thinking: &Thinking) -> Thinking {
        Thinking { block: self.span(thinking.block), ..*thinking }
    }

    fn said(&self, said: &Said) -> Said {
        Said { entry: self.entry_at(said.entry), ..*said }
    }

    fn side_list(&self, list: &SideList) -> SideList {
        SideList { entry: self.entry_at(list.entry), at: self.span(list.at) }
    }

    fn edit(&self, edit: &ContextEdit) -> ContextEdit {
        let target = self.id(Some(edit.target)).unwrap_or(edit.target);
        let calls = edit.calls.iter().filter_map(|&call| self.id(Some(call))).collect();
        ContextEdit { entry: self.entry_at(edit.entry), target, calls, ..*edit }
    }

    fn start(&self, start: &Start) -> Start {
        let call = self.id(Some(start.call)).unwrap_or(start.call);
        Start { call, entry: self.entry_at(start.entry), at: self.span(start.at) }
    }

    fn entry(&self, entry: &Entry) -> Entry {
        Entry {
            line: entry.line.wrapping_add(self.lines),
            span: self.span(entry.span),
            id: self.id(entry.id),
            parent: match entry.parent {
                Link::To(id) => self.id(Some(id)).map_or(Link::Root, Link::To),
                link => link,
            },
            group: self.id(entry.group),
            model: self.id(entry.model),
            calls_from: self.call_at(entry.calls_from),
            results_from: self.result_at(entry.results_from),
            sides_from: entry.sides_from.wrapping_add(self.lists.sides),
            thinking_from: entry.thinking_from.wrapping_add(self.lists.thinking),
            targets_from: entry.targets_from.wrapping_add(self.lists.targets),
            ..*entry
        }
    }

    fn call(&self, call: &Call) -> Call {
        Call {
            entry: self.entry_at(call.entry),
            id: self.id(call.id),
            key: self.id(call.key),
            name: self.id(call.name),
            block: self.span(call.block),
            ..*call
        }
    }

    fn result(&self, result: &ToolResult) -> ToolResult {
        ToolResult {
            entry: self.entry_at(result.entry),
            call: self.id(result.call),
            key: self.id(result.key),
            name: self.id(result.name),
            block: self.span(result.block),
            bodies_from: result.bodies_from.wrapping_add(self.lists.bodies),
            ..*result
        }
    }

    fn target(&self, target: &Target) -> Target {
        Target { id: self.id(target.id), at: self.span(target.at), end: self.id(target.end), ..*target }
    }

    fn issue(&self, issue: &ContentIssue) -> ContentIssue {
        let kind = match issue.kind {
            ContentIssueKind::BlankResult(result, at) => {
                ContentIssueKind::BlankResult(self.result_at(result), self.span(at))
            }
            ContentIssueKind::Displaced(result) => ContentIssueKind::Displaced(self.result_at(result)),
            ContentIssueKind::Early(result) => ContentIssueKind::Early(self.result_at(result)),
            ContentIssueKind::Undeclared(call) => ContentIssueKind::Undeclared(self.call_at(call)),
            ContentIssueKind::ServerCall(id) => ContentIssueKind::ServerCall(self.id(Some(id)).unwrap_or(id)),
            ContentIssueKind::ServerResult(id) => {
                ContentIssueKind::ServerResult(self.id(Some(id)).unwrap_or(id))
            }
            kind => kind,
        };
        ContentIssue { entry: self.entry_at(issue.entry), kind, block: self.span(issue.block) }
    }
}

/// A part of a transcript, of whole lines.
pub(crate) struct TranscriptPart {
    /// It is of the other one.
    pub(crate) other: bool,
    /// Its bytes.
    pub(crate) span: Span,
    /// By how much they move.
    pub(crate) bytes: u64,
    /// By how much the numbers of its lines move.
    pub(crate) lines: u64,
}

/// A part, and where it begins and ends in the lists.
struct Place<'p> {
    part: &'p TranscriptPart,
    from: Lists,
    to: Lists,
    shift: Shift<'p>,
}

impl Place<'_> {
    fn entries(&self) -> Range<usize> {
        self.from.entries as usize..self.to.entries as usize
    }
}

impl Transcript {
    /// The entries that begin in these bytes.
    pub(crate) fn entries_in(&self, span: Span) -> Range<usize> {
        let before = |at: u64| self.entries.partition_point(|entry| entry.span.start < at);
        before(span.start)..before(span.end)
    }

    /// The damage that begins in these bytes.
    pub(crate) fn damage_in(&self, span: Span) -> &[Damage] {
        &self.damage[damage_in(&self.damage, span)]
    }

    /// Adds another transcript, which was read after this one.
    pub(crate) fn append(&mut self, other: &Self) {
        self.add_user_texts(other.user_text, other.user_texts);
        self.reasons |= other.reasons;
        self.read_only = self.read_only.or(other.read_only);
        self.offsets = self.offsets.or(other.offsets);
        self.session = self.session.or(other.session);
        self.ordinals = match (self.ordinals, other.ordinals) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (own, others) => own.or(others),
        };
        self.append_lines(other, self.lines);
        self.lines += other.lines;
    }

    /// Adds the entries and the damage of another transcript, whose lines come after this many.
    pub(crate) fn append_lines(&mut self, other: &Self, lines: u64) {
        // In the order in which they were read, so that they get the numbers of a reading in one piece.
        let ids: Vec<_> = other.ids.texts().map(|text| self.ids.intern(text)).collect();
        let all = |other, lines| TranscriptPart { other, span: Span::new(0, u64::MAX), bytes: 0, lines };
        self.weave(other, &[all(false, 0), all(true, lines)], Some(&ids));
    }

    /// Counts texts of users.
    pub(crate) fn add_user_texts(&mut self, hash: u64, texts: u64) {
        self.user_text = self.user_text.wrapping_add(hash);
        self.user_texts = self.user_texts.wrapping_add(texts);
    }

    /// The users' texts in these entries: their fingerprint, and how many they are.
    pub(crate) fn said_by(&self, entries: &Range<usize>) -> (u64, u64) {
        let said = self.said[items_of(&self.said, entries, |said| said.entry)].iter();
        said.fold((0, 0), |(hash, texts), said| (said.hash.wrapping_add(hash), texts + said.texts))
    }

    /// Becomes the entries and the damage of these parts of itself and of another, in this order. Those of one of them are in
    /// its own order. Of the ids of the other `ids` has the numbers here.
    pub(crate) fn weave(&mut self, other: &Self, parts: &[TranscriptPart], ids: Option<&[Option<Id>]>) {
        let places = self.places(other, parts, ids);
        let newest = places.0.iter().rev().find_map(|place| {
            let newest = if place.part.other { other.token_counts } else { self.token_counts };
            let newest = newest.filter(|&entry| place.entries().contains(&(entry as usize)))?;
            Some(place.shift.entry_at(newest))
        });
        self.token_counts = newest;
        places.list(&mut self.entries, &other.entries, |at| at.entries, Shift::entry);
        places.list(&mut self.calls, &other.calls, |at| at.calls, Shift::call);
        places.list(&mut self.results, &other.results, |at| at.results, Shift::result);
        places.list(&mut self.bodies, &other.bodies, |at| at.bodies, Shift::text);
        places.list(&mut self.sides, &other.sides, |at| at.sides, Shift::text);
        places.list(&mut self.thinking, &other.thinking, |at| at.thinking, Shift::thinking);
        places.list(&mut self.targets, &other.targets, |at| at.targets, Shift::target);
        places.sorted(&mut self.issues, &other.issues, |issue| issue.entry, Shift::issue);
        places.sorted(&mut self.images, &other.images, |image| image.entry, Shift::image);
        places.sorted(&mut self.said, &other.said, |said| said.entry, Shift::said);
        places.sorted(&mut self.side_lists, &other.side_lists, |list| list.entry, Shift::side_list);
        places.sorted(&mut self.starts, &other.starts, |start| start.entry, Shift::start);
        places.sorted(&mut self.edits, &other.edits, |edit| edit.entry, Shift::edit);
        let time = |by: &Shift<'_>, time: &Written| Written { entry: by.entry_at(time.entry), ..*time };
        places.sorted(&mut self.times, &other.times, |time| time.entry, time);
        let index = |by: &Shift<'_>, &entry: &u32| by.entry_at(entry);
        places.sorted(&mut self.unusual, &other.unusual, |&entry| entry, index);
        places.sorted(&mut self.unreasoned, &other.unreasoned, |&entry| entry, index);
        let own = |place: &Place<'_>, list: &[_]| damage_in(list, place.part.span);
        places.list_by(&mut self.damage, &other.damage, own, Shift::damage);
    }

    /// Where these parts go, one after another.
    fn places<'p>(
        &self,
        other: &Self,
        parts: &'p [TranscriptPart],
        ids: Option<&'p [Option<Id>]>,
    ) -> Places<'p> {
        let mut end = Self::default().lists_at(0);
        let place = |part: &'p TranscriptPart| {
            let (of, ids) = if part.other { (other, ids) } else { (self, None) };
            let entries = of.entries_in(part.span);
            let (from, to) = (of.lists_at(entries.start), of.lists_at(entries.end));
            let lists = end.with(from, u32::wrapping_sub);
            end = to.with(lists, u32::wrapping_add);
            Place { part, from, to, shift: Shift { bytes: part.bytes, lines: part.lines, lists, ids } }
        };
        Places(parts.iter().map(place).collect())
    }

    /// Where the parts of the entry with this index begin; the ends of the lists if it is not there.
    fn lists_at(&self, entry: usize) -> Lists {
        let entries = entry as u32;
        let Some(entry) = self.entries.get(entry) else {
            return Lists {
                entries,
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
            entries,
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
fn items_of<T>(list: &[T], entries: &Range<usize>, of: impl Fn(&T) -> u32) -> Range<usize> {
    let before = |entry: usize| list.partition_point(|item| (of(item) as usize) < entry);
    before(entries.start)..before(entries.end)
}

/// The damage in a list that begins in these bytes.
fn damage_in(list: &[Damage], span: Span) -> Range<usize> {
    let before = |at: u64| list.partition_point(|damage| damage.span.start < at);
    before(span.start)..before(span.end)
}

/// Where all parts go.
struct Places<'p>(Vec<Place<'p>>);

impl<'p> Places<'p> {
    /// Puts one list together.
    fn list_by<T: Clone>(
        &self,
        own: &mut Vec<T>,
        other: &[T],
        range: impl Fn(&Place<'p>, &[T]) -> Range<usize>,
        moved: impl Fn(&Shift<'p>, &T) -> T,
    ) {
        let ranges: Vec<_> =
            self.0.iter().map(|place| range(place, if place.part.other { other } else { own })).collect();
        // What comes first is mostly its own and stays where it is.
        let stays = |place: &Place<'_>| !place.part.other && (place.part.bytes, place.part.lines) == (0, 0);
        let kept =
            self.0.first().zip(ranges.first()).filter(|(place, range)| stays(place) && range.start == 0);
        let kept = kept.map(|(_, range)| range.end);
        let (mut at, room) = (kept.unwrap_or(0), other.len());
        // Room for the other's before what will move, so that nothing is overwritten before it was taken.
        own.splice(at..at, other.iter().cloned());
        for (place, range) in self.0.iter().zip(ranges).skip(usize::from(kept.is_some())) {
            for n in range {
                own[at] = moved(&place.shift, if place.part.other { &other[n] } else { &own[n + room] });
                at += 1;
            }
        }
        own.truncate(at);
    }

    /// Puts together a list of which each entry knows its part.
    fn list<T: Clone>(
        &self,
        own: &mut Vec<T>,
        other: &[T],
        at: impl Fn(&Lists) -> u32,
        moved: impl Fn(&Shift<'p>, &T) -> T,
    ) {
        self.list_by(own, other, |place, _| at(&place.from) as usize..at(&place.to) as usize, moved);
    }

    /// Puts together a list in which each item names its entry.
    fn sorted<T: Clone>(
        &self,
        own: &mut Vec<T>,
        other: &[T],
        entry: impl Fn(&T) -> u32,
        moved: impl Fn(&Shift<'p>, &T) -> T,
    ) {
        self.list_by(own, other, |place, list| items_of(list, &place.entries(), &entry), moved);
    }
}

#[cfg(test)]
impl Transcript {
    /// Everything in it, with the texts of ids in the place of their numbers.
    pub(crate) fn spelled(&self) -> alloc::string::String {
        let counts = (self.bytes, self.lines, self.user_text, self.user_texts, self.session, self.ordinals);
        let flags = (self.reasons, self.read_only, self.offsets, self.in_database, self.token_counts);
        let numbered = alloc::format!(
            "{counts:?} {flags:?}\n{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}",
            self.entries,
            self.calls,
            self.results,
            self.bodies,
            self.sides,
            self.thinking,
            self.targets,
            self.starts,
            self.edits,
            self.times,
            self.unusual,
            self.unreasoned,
            self.issues,
            self.images,
            self.said,
            self.side_lists,
            self.damage,
        );
        let texts: Vec<_> = self.ids.texts().map(alloc::string::String::from_utf8_lossy).collect();
        let mut pieces = numbered.split("Id(");
        let mut spelled = alloc::string::String::from(pieces.next().unwrap());
        for piece in pieces {
            let (number, rest) = piece.split_once(')').unwrap();
            let text = &texts[number.parse::<usize>().unwrap() - 1];
            spelled.extend(["Id(", text, ")", rest]);
        }
        spelled
    }
}
