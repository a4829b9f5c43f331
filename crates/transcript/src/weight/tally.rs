//! Adds up what was measured: by whether the model sees it, by category, by tool, by turn.

use super::meter::{Meter, NOBODY};
use super::{Amount, Category, CountTokens, Large, NamedAmount, Standing, ToolRow, Turn, Weight};
use crate::format::Shape;
use crate::model::entry::{Entry, Kind, Mark, PieceKind, Role};
use crate::model::ids::Id;
use crate::session::tokens::{self, Rates};
use crate::session::{Answers, Session};
use alloc::collections::BinaryHeap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use hashbrown::HashMap;
use spans::cut;
use spans::literal::{Unit, decode};
use spans::source::{Fault, Span, read_span};

/// How much text of a transcript the tokeniser counts. It is more than any context holds; the rest is estimated.
const EXACT_BYTES_MAX: u64 = 8 << 20;
/// Longest text that the tokeniser counts.
const EXACT_TEXT_BYTES_MAX: u64 = 256 << 10;
/// Longer results have not been cut.
const CUT_BYTES_MAX: u64 = 256 << 10;
/// How much is read again to find cuts: a part of the file, and at least this much.
const CUT_PART: u64 = 8;
const CUT_BYTES_ALWAYS: u64 = 16 << 20;

/// Fills the tables of a weight.
pub(super) fn tally(
    session: &Session<'_>,
    meter: &Meter,
    largest: usize,
    tokens_of: &mut dyn FnMut(&[u8]) -> Option<CountTokens>,
    weight: &mut Weight,
) -> Result<(), Fault> {
    let model = tokens::model_of(session);
    weight.context_tokens = tokens::tokens_of(session)?;
    weight.model = String::from_utf8_lossy(model).into_owned();
    let (tokens, rates) = (tokens_of(model), Rates::for_session(session));
    let exact = Exact { tokens, rates, left: EXACT_BYTES_MAX, all: true };
    weight.standings[Standing::NoEntry as usize].1.bytes = 0;
    weight.parts[Category::Bookkeeping as usize].1.bytes = 0;
    let mut tally = Tally::new(session, meter, largest, exact);
    for entry in 0..session.transcript.entries.len() as u32 {
        tally.entry(entry, weight)?;
    }
    tally.curve(weight);
    tally.cuts(weight)?;
    tally.finish(weight);
    Ok(())
}

/// A tokeniser and how much it may still count.
struct Exact {
    tokens: Option<CountTokens>,
    rates: Rates,
    left: u64,
    all: bool,
}

impl Exact {
    /// The tokens of a piece, estimated if it is not text that can be counted.
    fn count(&mut self, session: &Session<'_>, piece: &Mark, literal: bool) -> Result<u64, Fault> {
        let bytes = piece.span.len();
        match self.tokens {
            Some(tokens) if literal && bytes <= self.left.min(EXACT_TEXT_BYTES_MAX) => {
                self.left -= bytes;
                let string = !matches!(piece.kind, PieceKind::Call);
                let inner =
                    if string { Span::new(piece.span.start + 1, piece.span.end - 1) } else { piece.span };
                let raw = read_span(session.source, inner)?;
                Ok(tokens(&if string { decode(&raw) } else { raw }))
            }
            _ => {
                self.all = false;
                Ok(self.rates.piece(piece))
            }
        }
    }
}

struct Tally<'a> {
    session: &'a Session<'a>,
    meter: &'a Meter,
    exact: Exact,
    /// The last compaction on the live branch.
    boundary: Option<u32>,
    tools: HashMap<Option<Id>, ToolRow>,
    kinds: Vec<Amount>,
    /// The largest entries: length and index.
    largest: BinaryHeap<Reverse<(u64, Reverse<u32>)>>,
    largest_max: usize,
    /// Estimated tokens of each entry, if it were in the context.
    costs: Vec<u32>,
    /// Tokens of each entry in the live context.
    tokens: Vec<u32>,
    /// The turn of each entry.
    turn_of: Vec<u32>,
}

impl<'a> Tally<'a> {
    fn new(session: &'a Session<'a>, meter: &'a Meter, largest_max: usize, exact: Exact) -> Self {
        let count = session.transcript.entries.len();
        Self {
            session,
            meter,
            exact,
            boundary: session.last_boundary(),
            tools: HashMap::new(),
            kinds: vec![Amount::default(); meter.kinds.all.len()],
            largest: BinaryHeap::new(),
            largest_max,
            costs: vec![0; count],
            tokens: vec![0; count],
            turn_of: vec![0; count],
        }
    }

    /// Whether the model saw the entry, now or before a compaction.
    fn seen(&self, index: u32) -> bool {
        let entry = self.session.entry(index);
        // In a graph, the branch starts again at each compaction.
        let before = self.session.format.shape == Shape::Graph
            && Some(index) < self.boundary
            && entry.is_main()
            && !self.session.superseded(index);
        is_sent(entry) && (self.session.is_live(index) || before)
    }

    fn standing(&self, index: u32) -> Standing {
        if !is_sent(self.session.entry(index)) {
            Standing::Unsent
        } else if self.session.in_context(index) {
            Standing::Context
        } else if self.seen(index) && Some(index) < self.boundary {
            Standing::Compacted
        } else {
            Standing::OffBranch
        }
    }

    fn pieces(&self, index: u32) -> &'a [Mark] {
        let from = self.meter.pieces_from[index as usize] as usize;
        let next = self.meter.pieces_from.get(index as usize + 1);
        &self.meter.pieces[from..next.map_or(self.meter.pieces.len(), |&next| next as usize)]
    }

    fn entry(&mut self, index: u32, weight: &mut Weight) -> Result<(), Fault> {
        let entry = self.session.entry(index);
        let (standing, bytes) = (self.standing(index), self.session.transcript.own_bytes(index));
        let (mut rest, mut tokens, mut cost) = (bytes, 0, 0);
        for piece in self.pieces(index) {
            let part = part(entry, piece.kind);
            rest = rest.saturating_sub(piece.span.len());
            cost += self.exact.rates.piece(piece);
            let mut own = 0;
            if standing == Standing::Context && piece.kind != PieceKind::Side {
                let literal = matches!(piece.kind, PieceKind::Text | PieceKind::Result | PieceKind::Call);
                own = self.exact.count(self.session, piece, literal)?;
            }
            tokens += own;
            let amount = Amount { count: 1, bytes: piece.span.len(), tokens: own };
            add(&mut weight.parts[part as usize].1, amount);
            self.tool(piece, amount);
        }
        let part = rest_of(entry);
        add(&mut weight.parts[part as usize].1, Amount { count: 1, bytes: rest, tokens: 0 });
        let amount = Amount { count: 1, bytes, tokens };
        add(&mut weight.standings[standing as usize].1, amount);
        add(&mut self.kinds[usize::from(self.meter.kind_of[index as usize])], Amount { tokens: 0, ..amount });
        self.costs[index as usize] = u32::try_from(cost).unwrap_or(u32::MAX);
        self.tokens[index as usize] = u32::try_from(tokens).unwrap_or(u32::MAX);
        self.turn(index, amount, weight);
        self.largest.push(Reverse((bytes, Reverse(index))));
        if self.largest.len() > self.largest_max {
            self.largest.pop();
        }
        Ok(())
    }

    fn turn(&mut self, index: u32, amount: Amount, weight: &mut Weight) {
        let entry = self.session.entry(index);
        let asks = entry.kind == Kind::Message(Role::User) && entry.is_main() && self.seen(index);
        if asks || weight.turns.is_empty() {
            weight.turns.push(Turn { line: entry.line, ..Turn::default() });
        }
        self.turn_of[index as usize] = weight.turns.len() as u32 - 1;
        if let Some(turn) = weight.turns.last_mut() {
            add(&mut turn.amount, amount);
        }
    }

    fn tool(&mut self, piece: &Mark, amount: Amount) {
        let owned = piece.owner != NOBODY;
        let name = match piece.kind {
            PieceKind::Call => self.session.call(piece.owner).name,
            PieceKind::Result | PieceKind::Side | PieceKind::Image if owned => {
                self.tool_of(piece.owner as usize)
            }
            _ => return,
        };
        let text = || String::from_utf8_lossy(self.session.transcript.id_text(name)).into_owned();
        let row = self.tools.entry(name).or_insert_with(|| ToolRow {
            name: text(),
            calls: Amount::default(),
            results: Amount::default(),
            images: Amount::default(),
            sides: Amount::default(),
        });
        add(
            match piece.kind {
                PieceKind::Call => &mut row.calls,
                PieceKind::Image => &mut row.images,
                PieceKind::Side => &mut row.sides,
                _ => &mut row.results,
            },
            amount,
        );
    }

    /// The tool of a result.
    fn tool_of(&self, result: usize) -> Option<Id> {
        match self.session.answers[result] {
            Answers::Call(call) | Answers::Again(call) => self.session.call(call).name,
            Answers::Nothing | Answers::Unseen => None,
        }
        .or(self.session.result(result).name)
    }

    /// How full the context was at the end of each turn.
    fn curve(&self, weight: &mut Weight) {
        let entries = 0..self.session.transcript.entries.len() as u32;
        let cost = |entry: u32| u64::from(self.costs[entry as usize]);
        let mut before = Vec::with_capacity(entries.len() + 1);
        let mut sum = 0;
        for entry in entries.clone() {
            before.push(sum);
            sum += if self.seen(entry) { cost(entry) } else { 0 };
        }
        let mut context = 0;
        for entry in entries {
            let turn = &mut weight.turns[self.turn_of[entry as usize] as usize];
            let boundary = self.session.kind(entry) == Kind::Boundary;
            if !self.seen(entry) {
            } else if boundary && Some(entry) == self.boundary {
                let kept = (0..entry).filter(|&kept| self.session.in_context(kept) && self.seen(kept));
                context = kept.map(cost).sum::<u64>() + cost(entry);
            } else if boundary {
                let from = self.session.target(entry).filter(|&from| from < entry);
                let kept = from.map_or(0, |from| before[entry as usize] - before[from as usize]);
                context = kept + cost(entry);
            } else if Some(entry) < self.boundary || self.session.in_context(entry) {
                context += cost(entry);
            }
            turn.compactions += u32::from(boundary && self.seen(entry));
            turn.context_tokens = context;
        }
        // What is not in the file is assumed to have been sent all the time.
        let now = weight.context_tokens.tokens;
        for turn in &mut weight.turns {
            turn.context_tokens = turn.context_tokens.saturating_add(now).saturating_sub(context);
        }
    }

    /// Counts the results of each turn that hold one of Tailor's markers.
    fn cuts(&self, weight: &mut Weight) -> Result<(), Fault> {
        let source = self.session.source;
        let mut budget = CUT_BYTES_ALWAYS.max(source.len() / CUT_PART);
        for (index, result) in self.session.transcript.results.iter().enumerate() {
            let mut cut = false;
            for text in self.session.transcript.bodies_of(index) {
                if text.inner.len() < CUT_BYTES_MAX.min(budget) {
                    budget -= text.inner.len();
                    cut |=
                        cut::measure(source, text.inner, Some(text.chars), Unit::Chars, false)?.own.is_some();
                }
            }
            weight.turns[self.turn_of[result.entry as usize] as usize].cuts += u32::from(cut);
        }
        Ok(())
    }

    fn finish(self, weight: &mut Weight) {
        let entries = self.session.transcript.entries.iter().filter(|entry| !entry.listed);
        let whole: u64 = entries.map(|entry| entry.span.len()).sum();
        let outside = weight.facts.bytes.saturating_sub(whole);
        weight.standings[Standing::NoEntry as usize].1.bytes = outside;
        weight.parts[Category::Bookkeeping as usize].1.bytes += outside;
        let mut tools: Vec<ToolRow> = self.tools.values().cloned().collect();
        tools.sort_by(|a, b| by_size((&a.amount(), &a.name), (&b.amount(), &b.name)));
        weight.tools = tools;
        weight.kinds = rows(self.kinds.iter().enumerate().map(|(kind, amount)| NamedAmount {
            name: self.meter.kinds.path(kind as u32, '/'),
            amount: *amount,
        }));
        weight.fields = rows(self.meter.fields.all.iter().enumerate().map(|(field, named)| NamedAmount {
            name: self.meter.fields.path(field as u32, '.'),
            amount: Amount { count: named.count, bytes: named.bytes, tokens: 0 },
        }));
        for (_, span) in &self.meter.images {
            add(&mut weight.images, Amount { count: 1, bytes: span.len(), tokens: 0 });
        }
        weight.images.tokens = weight.parts[Category::Images as usize].1.tokens;
        weight.tokens_are_exact = self.exact.all && self.exact.tokens.is_some();
        let mut largest: Vec<_> = self.largest.iter().map(|Reverse(found)| *found).collect();
        largest.sort_unstable_by_key(|&(bytes, Reverse(entry))| (Reverse(bytes), entry));
        weight.largest = largest.iter().map(|(_, Reverse(entry))| self.large(*entry)).collect();
    }

    fn large(&self, index: u32) -> Large {
        let entry = self.session.entry(index);
        let longest = self.pieces(index).iter().max_by_key(|piece| piece.span.len());
        let pieces: u64 = self.pieces(index).iter().map(|piece| piece.span.len()).sum();
        let bytes = self.session.transcript.own_bytes(index);
        let rest = bytes.saturating_sub(pieces);
        let mut parts = [0; Category::ALL.len()];
        self.pieces(index)
            .iter()
            .for_each(|piece| parts[part(entry, piece.kind) as usize] += piece.span.len());
        parts[rest_of(entry) as usize] += rest;
        let longest = longest.filter(|piece| piece.span.len() >= rest);
        let called = self.session.transcript.calls_of(index).next();
        let called = called.and_then(|call| self.session.call(call as u32).name);
        let tool = called.or_else(|| self.session.transcript.results_of(index).find_map(|r| self.tool_of(r)));
        let text = |id| String::from_utf8_lossy(self.session.transcript.id_text(id)).into_owned();
        Large {
            line: entry.line,
            turn: self.turn_of[index as usize],
            id: text(entry.id),
            kind: self.meter.kinds.path(u32::from(self.meter.kind_of[index as usize]), '/'),
            tool: text(tool),
            standing: self.standing(index),
            part: longest.map_or_else(|| rest_of(entry), |piece| part(entry, piece.kind)),
            parts,
            amount: Amount { count: 1, bytes, tokens: u64::from(self.tokens[index as usize]) },
            text: longest.map_or(entry.span, |piece| piece.span),
        }
    }
}

/// Whether entries of this kind are ever sent.
fn is_sent(entry: &Entry) -> bool {
    !matches!(entry.kind, Kind::Opaque | Kind::Header | Kind::Leaf)
}

/// The category of an entry's bytes that belong to no piece.
fn rest_of(entry: &Entry) -> Category {
    if is_sent(entry) { Category::Envelope } else { Category::Bookkeeping }
}

fn part(entry: &Entry, kind: PieceKind) -> Category {
    match (kind, entry.kind) {
        (PieceKind::Text, Kind::Message(Role::User)) if !entry.injected => Category::User,
        (PieceKind::Text, Kind::Message(Role::Assistant)) => Category::Assistant,
        (PieceKind::Text, _) => Category::Notes,
        (PieceKind::Thinking, _) => Category::Thinking,
        (PieceKind::Call, _) => Category::Calls,
        (PieceKind::Result, _) => Category::Results,
        (PieceKind::Image, _) => Category::Images,
        (PieceKind::Side, _) => Category::SideCopies,
    }
}

fn add(to: &mut Amount, amount: Amount) {
    to.count += amount.count;
    to.bytes += amount.bytes;
    to.tokens += amount.tokens;
}

/// The rows that are not empty, largest first.
fn rows(all: impl Iterator<Item = NamedAmount>) -> Vec<NamedAmount> {
    let mut rows: Vec<NamedAmount> = all.filter(|row| row.amount.bytes > 0).collect();
    rows.sort_by(|a, b| by_size((&a.amount, &a.name), (&b.amount, &b.name)));
    rows
}

fn by_size(a: (&Amount, &String), b: (&Amount, &String)) -> core::cmp::Ordering {
    (Reverse(a.0.bytes), a.1).cmp(&(Reverse(b.0.bytes), b.1))
}
