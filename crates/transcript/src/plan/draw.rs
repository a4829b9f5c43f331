//! Draws a plan: turns the steps of fixes into edits. It collects which entries go, move or are added, re-links the others, and
//! then writes all of it as sorted, disjoint edits.

mod link;

use super::{Edit, Piece, Plan};
use crate::format::{Lost, ResultPlace};
use crate::model::entry::{DamageKind, Kind, Role};
use crate::model::finding::Op;
use crate::rule::{next_user, record_of};
use crate::session::Session;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::array;
use core::cell::RefCell;
use spans::json::{self, Doc, Value, ValueKind as Json};
use spans::source::{Fault, Span, read_span};

/// Draws the plan of these steps.
pub(crate) fn draw(session: &Session<'_>, steps: &mut dyn Iterator<Item = &Op>) -> Result<Plan, Fault> {
    let mut drawing = Drawing::new(session);
    steps.for_each(|step| drawing.collect(step));
    drawing.replace.extend(core::mem::take(&mut drawing.cuts).into_values());
    drawing.blocks()?;
    drawing.moves.retain(|entry, after| !drawing.drop.contains(entry) && !drawing.drop.contains(after));
    match session.format.answer {
        ResultPlace::NextUser => drawing.answer_in_next_user()?,
        ResultPlace::Line | ResultPlace::LineIfAllowed => drawing.answer_with_lines(),
        ResultPlace::Call(state) => drawing.answer_in_call(state)?,
        ResultPlace::Nowhere => {}
    }
    drawing.link()?;
    drawing.edits()
}

/// A line to be added: the result of a call.
struct NewLine {
    call: u32,
    after: u32,
    id: String,
}

struct Drawing<'a> {
    session: &'a Session<'a>,
    replace: Vec<(Span, Vec<u8>)>,
    /// For each text, what of it is cut, and the marker.
    cuts: BTreeMap<Span, (Span, Vec<u8>)>,
    drop_blocks: BTreeMap<u32, BTreeSet<Span>>,
    drop: BTreeSet<u32>,
    copies: BTreeSet<u32>,
    /// The entry that moves to the front of the file.
    first: Option<u32>,
    /// For each entry that moves, the one that it moves after.
    moves: BTreeMap<u32, u32>,
    answers: Vec<u32>,
    texts: BTreeSet<Span>,
    /// Whole lines to insert, which go with no existing entry, and their offsets.
    inserts: Vec<(u64, Vec<u8>)>,
    lines: Vec<NewLine>,
    /// Results without a message that could hold them: a new one is added after this entry.
    messages: BTreeMap<u32, Vec<u8>>,
    /// The parents of the new lines, decoded; in the same order.
    parents: Vec<Vec<u8>>,
    /// The entries that were parsed last. One may have any number of calls, and each result repeats something from it.
    docs: RefCell<[(u32, Rc<Doc>); 2]>,
}

/// An entry of the branch after the plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BranchNode {
    Old(u32),
    New(u32),
}

impl<'a> Drawing<'a> {
    fn new(session: &'a Session<'a>) -> Self {
        Self {
            session,
            replace: Vec::new(),
            cuts: BTreeMap::new(),
            drop_blocks: BTreeMap::new(),
            drop: BTreeSet::new(),
            copies: BTreeSet::new(),
            first: None,
            moves: BTreeMap::new(),
            answers: Vec::new(),
            texts: BTreeSet::new(),
            inserts: Vec::new(),
            lines: Vec::new(),
            messages: BTreeMap::new(),
            parents: Vec::new(),
            docs: RefCell::new(array::from_fn(|_| (u32::MAX, Rc::default()))),
        }
    }

    fn collect(&mut self, op: &Op) {
        match op {
            Op::Replace { at, with } => self.replace.push((*at, with.clone())),
            Op::Cut { text, at, with } => _ = self.cuts.insert(*text, (*at, with.clone())),
            Op::DropBlock { entry, block } => {
                self.drop_blocks.entry(*entry).or_default().insert(*block);
            }
            Op::DropEntry(entry) => _ = self.drop.insert(*entry),
            Op::DropCopy(entry) => _ = self.copies.insert(*entry),
            Op::ToFront(entry) => self.first = Some(*entry),
            Op::Move { entry, after } => _ = self.moves.insert(*entry, *after),
            Op::Answer(call) => self.answers.push(*call),
            Op::Keep(text) => _ = self.texts.insert(*text),
            Op::Insert { at, with } => self.inserts.push((*at, with.clone())),
        }
    }

    fn doc(&self, entry: u32) -> Result<Rc<Doc>, Fault> {
        let mut docs = self.docs.borrow_mut();
        if let Some((_, doc)) = docs.iter().find(|(of, _)| *of == entry) {
            return Ok(doc.clone());
        }
        let span = self.session.entry(entry).span;
        let doc = Rc::new(json::parse(self.session.source, span)?.ok_or(Fault { at: span.start })?);
        docs.rotate_right(1);
        docs[0] = (entry, doc.clone());
        Ok(doc)
    }

    /// Turns dropped array elements into bytes to take out. If nothing of an entry would be left, the entry is dropped.
    fn blocks(&mut self) -> Result<(), Fault> {
        for (entry, blocks) in core::mem::take(&mut self.drop_blocks) {
            if self.drop.contains(&entry) {
                continue;
            }
            let doc = self.doc(entry)?;
            let arrays = doc.root().into_iter().flat_map(json::Value::descendants);
            for array in arrays.filter(|value| value.kind() == Json::Array) {
                let items: Vec<Span> = array.items().map(json::Value::span).collect();
                let gone: Vec<bool> = items.iter().map(|item| blocks.contains(item)).collect();
                if !gone.contains(&true) {
                    continue;
                }
                if gone.contains(&false) || self.stays_as_an_empty_list(entry) {
                    self.replace.extend(without(&items, &gone).map(|at| (at, Vec::new())));
                } else if !self.stays_whole(entry) {
                    self.drop.insert(entry);
                }
            }
        }
        Ok(())
    }

    /// Whether an entry that held only results stays as an empty one, which the agent does not send.
    fn stays_as_an_empty_list(&self, entry: u32) -> bool {
        let results = self.session.kind(entry) == Kind::Message(Role::Tool);
        self.session.shape.emptied_records_stay && results
    }

    /// Whether an entry is not taken out even if nothing of it would be left.
    fn stays_whole(&self, entry: u32) -> bool {
        let session = self.session;
        session.is_newest(entry)
            || session.superseded(entry)
            || session.is_labelled(entry)
            || session.format.counted.is_some()
            || session.transcript.offsets.is_some()
    }

    fn literal(&self, at: Span) -> Result<Vec<u8>, Fault> {
        read_span(self.session.source, at)
    }

    /// The missing result of a call, as the format writes it.
    fn spell(&self, call: u32, id: &str, parent: &[u8]) -> Result<Vec<u8>, Fault> {
        let found = self.session.call(call);
        let doc = self.doc(found.entry)?;
        let start = self.session.transcript.start_of(found);
        let place = if start == found.entry { None } else { Some(self.doc(start)?) };
        let failed = core::cell::Cell::new(None);
        // Invalid UTF-8 must not spread to the new line.
        let utf8 = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned().into_bytes();
        let raw = |value: json::Value<'_>| {
            let written = self.literal(value.span()).unwrap_or_else(|fault| {
                failed.set(Some(fault));
                Vec::new()
            });
            utf8(&written)
        };
        let lost = Lost {
            doc: &doc,
            raw: &raw,
            place: place.as_deref().unwrap_or(&doc),
            call: &self.literal(found.id_at())?,
            tool: &utf8(self.session.transcript.id_text(found.name)),
            id,
            parent,
        };
        let line = (self.session.format.missing_result)(&lost);
        failed.get().map_or(Ok(line), Err)
    }

    /// Puts results at the beginning of the user messages after their calls.
    fn answer_in_next_user(&mut self) -> Result<(), Fault> {
        let mut targets: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for call in core::mem::take(&mut self.answers) {
            let entry = self.session.call(call).entry;
            let Some(user) = next_user(self.session, entry) else {
                let block = self.spell(call, "", b"")?;
                let blocks = self.messages.entry(entry).or_default();
                if !blocks.is_empty() {
                    blocks.push(b',');
                }
                blocks.extend(block);
                continue;
            };
            if self.drop.contains(&user) || self.moves.contains_key(&user) {
                continue;
            }
            let block = self.spell(call, "", b"")?;
            let blocks = targets.entry(user).or_default();
            if !blocks.is_empty() {
                blocks.push(b',');
            }
            blocks.extend(block);
        }
        for (user, blocks) in targets {
            let doc = self.doc(user)?;
            let inside = || doc.get("message").and_then(|message| message.get("content"));
            let Some(content) = doc.get("content").or_else(inside).or_else(|| doc.get("parts")) else {
                continue;
            };
            let span = content.span();
            let (at, mut with) = if content.kind() == Json::String {
                self.replace.push((Span::new(span.end, span.end), b"}]".to_vec()));
                (span.start, [b"[", &blocks[..], br#",{"type":"text","text":"#].concat())
            } else {
                (span.start + 1, blocks)
            };
            if content.items().next().is_some() {
                with.push(b',');
            }
            self.replace.push((Span::new(at, at), with));
        }
        Ok(())
    }

    /// Puts results into the objects of their calls, in place of this field's value.
    fn answer_in_call(&mut self, state: &str) -> Result<(), Fault> {
        for call in core::mem::take(&mut self.answers) {
            let (entry, id) = (self.session.call(call).entry, self.session.call(call).id_at());
            let doc = self.doc(entry)?;
            let is_own = |object: &Value<'_>| object.fields().any(|(_, value)| value.span() == id);
            let own = doc.root().into_iter().flat_map(Value::descendants).find(is_own);
            if let Some(state) = own.and_then(|call| call.get(state)) {
                self.replace.push((state.span(), self.spell(call, "", b"")?));
            }
        }
        Ok(())
    }

    fn answer_with_lines(&mut self) {
        let mut taken = BTreeSet::new();
        for call in core::mem::take(&mut self.answers) {
            let after = self.session.transcript.start_of(self.session.call(call));
            if self.drop.contains(&after) {
                continue;
            }
            let found = self.session.call(call);
            let seed = (found.block.start, self.session.transcript.id_text(found.id));
            let id = fresh_id(self.session, found.entry, seed, &|id| taken.contains(id));
            taken.insert(id.clone());
            self.lines.push(NewLine { call, after, id });
        }
        let own_id =
            |line: &NewLine| self.session.transcript.id_text(self.session.entry(line.after).id).to_vec();
        self.parents = self.lines.iter().map(own_id).collect();
    }

    /// Everything collected, as sorted, disjoint edits.
    fn edits(mut self) -> Result<Plan, Fault> {
        let gone = self.departures()?;
        let replace = disjoint(core::mem::take(&mut self.replace));
        let mut moved: Vec<Span> = self.moves.keys().map(|&entry| self.session.entry(entry).span).collect();
        moved.sort_unstable();
        let inside: Vec<_> = replace.iter().filter(|(at, _)| within(*at, &moved)).cloned().collect();
        let mut edits: Vec<(u8, Edit)> = self.padding(&replace, &gone);
        for (at, with) in replace {
            if !within(at, &gone) {
                // At one offset, new lines come before the line break that separates glued objects.
                let with = if with.is_empty() { Vec::new() } else { vec![Piece::New(with)] };
                edits.push((1, Edit { at, with }));
            }
        }
        edits.extend(gone.into_iter().map(|at| (2, Edit { at, with: Vec::new() })));
        for (after, with) in self.arrivals(&inside)? {
            let end = self.session.entry(after).span.end;
            edits.push((0, Edit { at: Span::new(end, end), with }));
        }
        if let Some(first) = self.first {
            let line_break = self.separator(first)?.to_vec();
            let line = vec![Piece::Moved(self.session.entry(first).span), Piece::New(line_break)];
            let front = self.front();
            edits.push((0, Edit { at: Span::new(front, front), with: line }));
        }
        for (at, with) in core::mem::take(&mut self.inserts) {
            edits.push((3, Edit { at: Span::new(at, at), with: vec![Piece::New(with)] }));
        }
        edits.sort_by_key(|(order, edit)| (edit.at.start, edit.at.end, *order));
        let mut merged: Vec<Edit> = Vec::new();
        for (_, edit) in edits {
            match merged.last_mut() {
                // Adjacent edits are merged, so that composing plans gives the same edits.
                Some(last) if last.at.end == edit.at.start => {
                    last.at.end = edit.at.end;
                    last.with.extend(edit.with);
                }
                _ => merged.push(edit),
            }
        }
        for edit in &mut merged {
            edit.with.retain(|piece| !piece.is_empty());
        }
        let texts = self.texts.iter().map(|&text| vec![Piece::Kept(text)]).collect();
        Ok(Plan::new(self.session.transcript.bytes, merged, texts))
    }

    /// Spaces after the records that become shorter, and before the lines that are gone, if every line has to stay where it is.
    fn padding(&self, replace: &[(Span, Vec<u8>)], gone: &[Span]) -> Vec<(u8, Edit)> {
        let transcript = self.session.transcript;
        let mut shorter: BTreeMap<u64, u64> = BTreeMap::new();
        if transcript.offsets.is_none() {
            return Vec::new();
        }
        for (at, with) in replace.iter().filter(|(at, _)| !within(*at, gone)) {
            if let Some(record) = record_of(self.session, *at) {
                *shorter.entry(record.end).or_default() += at.len().saturating_sub(with.len() as u64);
            }
        }
        let mut lines: Vec<Span> = Vec::new();
        for line in gone {
            match lines.last_mut().filter(|last| last.end == line.start) {
                Some(last) => last.end = line.end,
                None => lines.push(*line),
            }
        }
        for at in lines {
            let before = transcript.entries.partition_point(|entry| entry.span.start < at.start);
            if let Some(record) = transcript.entries[..before].iter().rfind(|entry| !entry.listed) {
                *shorter.entry(record.span.end).or_default() += at.len();
            }
        }
        let spaces = |(end, count): (u64, u64)| {
            let with = vec![Piece::New(vec![b' '; usize::try_from(count).unwrap_or_default()])];
            (4, Edit { at: Span::new(end, end), with })
        };
        shorter.into_iter().map(spaces).collect()
    }

    /// The bytes of the entries that leave their place, sorted: whole lines, and elements of lists.
    fn departures(&self) -> Result<Vec<Span>, Fault> {
        let leaving = self.drop.iter().chain(&self.copies).chain(self.moves.keys()).chain(&self.first);
        let leaving: BTreeSet<u32> = leaving.copied().collect();
        let transcript = self.session.transcript;
        let (mut gone, mut list) = (Vec::new(), 0..0);
        for &entry in &leaving {
            if !self.session.entry(entry).listed {
                gone.push(self.whole_line(entry)?);
            } else if !list.contains(&entry) {
                let holder = transcript.holder_of(entry);
                let elements = transcript.entries[holder as usize + 1..].iter().take_while(|e| e.listed);
                let spans: Vec<Span> = elements.map(|element| element.span).collect();
                list = holder + 1..holder + 1 + spans.len() as u32;
                if !leaving.contains(&holder) {
                    let leaves: Vec<bool> = list.clone().map(|element| leaving.contains(&element)).collect();
                    gone.extend(without(&spans, &leaves));
                }
            }
        }
        gone.sort_unstable();
        gone.dedup();
        Ok(gone)
    }

    /// Where the first line begins: after the file's byte order mark, which must stay first.
    fn front(&self) -> u64 {
        let damage = &self.session.transcript.damage;
        damage.iter().find(|found| found.kind == DamageKind::Bom).map_or(0, |mark| mark.span.end)
    }

    /// What is put after which entry: new lines, then moved ones, with the edits inside them.
    fn arrivals(&self, inside: &[(Span, Vec<u8>)]) -> Result<BTreeMap<u32, Vec<Piece>>, Fault> {
        let mut arrivals: BTreeMap<u32, Vec<Piece>> = BTreeMap::new();
        for (line, parent) in self.lines.iter().zip(&self.parents) {
            let mut bytes = self.separator(line.after)?.to_vec();
            bytes.extend(self.spell(line.call, &line.id, parent)?);
            arrivals.entry(line.after).or_default().push(Piece::New(bytes));
        }
        for (&after, blocks) in &self.messages {
            let mut bytes = self.separator(after)?.to_vec();
            bytes.extend((self.session.format.results_message)(blocks));
            arrivals.entry(after).or_default().push(Piece::New(bytes));
        }
        for (&entry, &after) in &self.moves {
            let span = self.session.entry(entry).span;
            let pieces = arrivals.entry(after).or_default();
            pieces.push(Piece::New(self.separator(after)?.to_vec()));
            let mut at = span.start;
            let first = inside.partition_point(|(edit, _)| edit.start < span.start);
            for (edit, with) in inside[first..].iter().take_while(|(edit, _)| span.contains(*edit)) {
                pieces.push(Piece::Moved(Span::new(at, edit.start)));
                pieces.push(Piece::New(with.clone()));
                at = edit.end;
            }
            pieces.push(Piece::Moved(Span::new(at, span.end)));
        }
        Ok(arrivals)
    }

    /// What separates an entry from one that is put after it: a line break, and in a list a comma before that.
    fn separator(&self, entry: u32) -> Result<&'static [u8], Fault> {
        if self.session.entry(entry).listed {
            return Ok(b",\n");
        }
        let mut two = [0; 2];
        let got = self.session.source.read(self.session.entry(entry).span.end, &mut two)?;
        Ok(if &two[..got] == b"\r\n" { b"\r\n" } else { b"\n" })
    }

    /// The bytes of an entry with its line break, or the object alone if others stand on its line.
    fn whole_line(&self, entry: u32) -> Result<Span, Fault> {
        let found = self.session.entry(entry);
        let (mut end, mut byte) = (found.span.end, [0]);
        while !found.glued && self.session.source.read(end, &mut byte)? == 1 {
            end += 1;
            match byte[0] {
                b'\n' => return Ok(Span::new(found.span.start, end)),
                b' ' | b'\t' | b'\r' => {}
                _ => return Ok(found.span),
            }
        }
        Ok(Span::new(found.span.start, if found.glued { found.span.end } else { end }))
    }
}

/// A new id that is the same on every machine: a hash of an offset and a name. It has the form of its neighbour's id.
pub(crate) fn fresh_id(
    session: &Session<'_>,
    neighbour: u32,
    seed: (u64, &[u8]),
    taken: &dyn Fn(&str) -> bool,
) -> String {
    let own = session.transcript.id_text(session.entry(neighbour).id);
    let mut n = 0_u32;
    loop {
        let mut hash = blake3::Hasher::new();
        hash.update(&seed.0.to_le_bytes());
        hash.update(seed.1);
        hash.update(&n.to_le_bytes());
        let hex = hash.finalize().to_hex();
        let id = if own.len() < session.shape.short_ids_below {
            hex[..8].into()
        } else {
            // The form of a random uuid.
            format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[12..15], &hex[15..18], &hex[18..30])
        };
        if session.transcript.ids.find(id.as_bytes()).is_none() && !taken(&id) {
            return id;
        }
        n += 1;
    }
}

/// The bytes to take out so that some elements of an array go, with the right commas.
fn without<'s>(items: &'s [Span], gone: &'s [bool]) -> impl Iterator<Item = Span> + 's {
    let first_kept = gone.iter().position(|&gone| !gone).unwrap_or(items.len());
    (0..items.len()).filter(|&index| gone[index]).map(move |index| {
        if index > first_kept {
            Span::new(items[index - 1].end, items[index].end)
        } else {
            Span::new(items[index].start, items.get(index + 1).map_or(items[index].end, |next| next.start))
        }
    })
}

/// Whether a span is inside one of these, which are sorted and disjoint, or at its edge.
fn within(at: Span, spans: &[Span]) -> bool {
    let next = spans.partition_point(|span| span.start <= at.start);
    let touches = |span: &Span| span.start <= at.start && at.end <= span.end;
    spans[..next].iter().rev().take(2).any(touches)
}

/// The replacements, sorted. Of those that overlap or are equal, only the last one stays.
fn disjoint(replace: Vec<(Span, Vec<u8>)>) -> Vec<(Span, Vec<u8>)> {
    // Mostly they are so already.
    if replace.is_sorted_by(|(a, _), (b, _)| a.end <= b.start && a < b) {
        return replace;
    }
    let mut kept: BTreeMap<Span, Vec<u8>> = BTreeMap::new();
    for (at, with) in replace.into_iter().rev() {
        let before =
            kept.range(..=at).next_back().is_some_and(|(other, _)| other.end > at.start || *other == at);
        let after = kept.range(at..).next().is_some_and(|(other, _)| other.start < at.end);
        if !before && !after {
            kept.insert(at, with);
        }
    }
    kept.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_replacements_that_overlap_the_last_one_stays_and_neighbours_all_do() {
        let drawn = |spans: &[(u64, u64)]| {
            let replace = spans.iter().map(|&(start, end)| (Span::new(start, end), Vec::new())).collect();
            let spans: Vec<_> = disjoint(replace).into_iter().map(|(at, _)| (at.start, at.end)).collect();
            spans
        };
        assert_eq!(drawn(&[(4, 8), (0, 4), (8, 9)]), [(0, 4), (4, 8), (8, 9)]);
        assert_eq!(drawn(&[(0, 4), (8, 9), (4, 8)]), [(0, 4), (4, 8), (8, 9)]);
        assert_eq!(drawn(&[(0, 5), (4, 8)]), [(4, 8)]);
        assert_eq!(drawn(&[(4, 8), (0, 5)]), [(0, 5)]);
        assert_eq!(drawn(&[(4, 8), (7, 9), (7, 9)]), [(7, 9)]);
        assert_eq!(drawn(&[(4, 4), (4, 4), (2, 4)]), [(2, 4), (4, 4)]);
    }
}
