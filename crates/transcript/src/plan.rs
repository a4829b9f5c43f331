//! Plans: the sorted, disjoint edits that the fixes of findings come to. Nothing else changes bytes.
//!
//! A plan never holds the transcript. Rendering it yields spans of the original, to be copied, with short pieces of new
//! bytes between them.

use crate::read::changed::TextChange;
use alloc::borrow::Cow;
use alloc::vec::Vec;
use spans::source::{Fault, Source, Span};

mod draw;
pub(crate) mod thinking;

pub(crate) use draw::{draw, fresh_id};

/// A piece of the new text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes of the original that stay where they are.
    Kept(Span),
    /// Bytes of the original that move.
    Moved(Span),
    /// New bytes.
    New(Vec<u8>),
}

impl Piece {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Kept(span) | Self::Moved(span) => span.len(),
            Self::New(bytes) => bytes.len() as u64,
        }
    }

    /// Whether the piece holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One change: bytes of the original, and what replaces them (never [`Piece::Kept`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The bytes to take out; empty for an insertion.
    pub at: Span,
    /// What to put in.
    pub with: Vec<Piece>,
}

/// All changes to one transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Length of the original.
    length: u64,
    /// Invariant: sorted by offset, and no two overlap.
    edits: Vec<Edit>,
    /// The texts that markers in the new text name, each as pieces of the original.
    texts: Vec<Vec<Piece>>,
    /// See the method.
    pub(crate) unsettles_memory: bool,
    /// See the method.
    pub(crate) removes_secrets: bool,
}

impl Plan {
    /// A plan of these edits for a source of `length` bytes; their markers name these texts.
    pub(crate) fn new(length: u64, edits: Vec<Edit>, texts: Vec<Vec<Piece>>) -> Self {
        debug_assert!(edits.windows(2).all(|two| two[0].at.end <= two[1].at.start), "{edits:?}");
        debug_assert!(edits.last().is_none_or(|last| last.at.end <= length), "{edits:?}");
        Self { length, edits, texts, unsettles_memory: false, removes_secrets: false }
    }

    /// The plan that leaves a source of `length` bytes as it is.
    pub fn unchanged(length: u64) -> Self {
        Self::new(length, Vec::new(), Vec::new())
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Whether an agent that has the conversation in memory could be refused because of the plan. It changes what the model
    /// sees, the model's signatures cover that, and the session is accepted as it is. Such an agent would sign its next
    /// thinking over the old text, and be refused when it resumes with the new one.
    pub fn unsettles_memory(&self) -> bool {
        self.unsettles_memory
    }

    /// Whether it takes out secrets, so that nothing of what it takes out may be kept. Its [texts](Self::texts) have none.
    pub fn removes_secrets(&self) -> bool {
        self.removes_secrets
    }

    /// The changes, in the order of the file.
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// Texts that were cut for the first time: each as it was written, without quotes. The
    /// beginning of its BLAKE3 hash is the address in the marker, see [`spans::marker::TextId`].
    pub fn texts(&self) -> &[Vec<Piece>] {
        &self.texts
    }

    /// Length of the original in bytes.
    pub fn length_before(&self) -> u64 {
        self.length
    }

    /// Length of the new text in bytes.
    pub fn length_after(&self) -> u64 {
        let gone: u64 = self.edits.iter().map(|edit| edit.at.len()).sum();
        let new: u64 = self.edits.iter().flat_map(|edit| &edit.with).map(Piece::len).sum();
        self.length - gone + new
    }

    /// Where it changes the original, and how long what it puts there is.
    pub(crate) fn changes(&self) -> Vec<TextChange> {
        let change =
            |Edit { at, with }: &Edit| TextChange { at: *at, length: with.iter().map(Piece::len).sum() };
        self.edits.iter().map(change).collect()
    }

    /// Maps offsets in the new text to the original.
    pub(crate) fn origins(&self) -> Origins<'_> {
        Origins { segments: Some(Segments::from_plan(self)) }
    }

    /// The new text, as pieces in order.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::with_capacity(self.edits.len() * 2 + 1);
        let mut at = 0;
        for edit in &self.edits {
            pieces.push(Piece::Kept(Span::new(at, edit.at.start)));
            pieces.extend(edit.with.iter().cloned());
            at = edit.at.end;
        }
        pieces.push(Piece::Kept(Span::new(at, self.length)));
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }

    /// One plan that does what this one does and then `next`, which was drawn on this one's result.
    pub(crate) fn then(&self, next: &Self) -> Self {
        let own = Segments::from_plan(self);
        let pieces = own.through(next.pieces());
        let mut texts = self.texts.clone();
        texts.extend(next.texts.iter().map(|text| own.through(text.clone())));
        let mut edits = Vec::new();
        let (mut start, mut with) = (0, Vec::new());
        for piece in pieces {
            match piece {
                Piece::Kept(span) => {
                    let at = Span::new(start, span.start);
                    edits.push(Edit { at, with: core::mem::take(&mut with) });
                    start = span.end;
                }
                other => with.push(other),
            }
        }
        edits.push(Edit { at: Span::new(start, self.length), with });
        edits.retain(|edit| !(edit.at.is_empty() && edit.with.is_empty()));
        let unsettles_memory = self.unsettles_memory || next.unsettles_memory;
        let removes_secrets = self.removes_secrets || next.removes_secrets;
        Self { unsettles_memory, removes_secrets, ..Self::new(self.length, edits, texts) }
    }
}

/// The new text in segments: what is kept before an edit, then the pieces of the edit.
struct Segments<'p> {
    plan: &'p Plan,
    /// Where each segment begins in the new text: there may be hundreds of thousands.
    all: Vec<Segment>,
}

struct Segment {
    /// In the new text.
    start: u64,
    edit: u32,
    /// 0 is what is kept before the edit; its pieces follow.
    piece: u32,
}

impl<'p> Segments<'p> {
    fn from_plan(plan: &'p Plan) -> Self {
        let pieces: usize = plan.edits.iter().map(|edit| 1 + edit.with.len()).sum();
        let mut segments = Self { plan, all: Vec::with_capacity(pieces + 1) };
        let mut start = 0;
        for edit in 0..=plan.edits.len() {
            for piece in 0..=plan.edits.get(edit).map_or(0, |edit| edit.with.len()) {
                segments.all.push(Segment { start, edit: edit as u32, piece: piece as u32 });
                start += segments.piece(segments.all.len() - 1).len();
            }
        }
        segments
    }

    /// The last segment that begins at a place or before it.
    fn at(&self, at: u64) -> usize {
        self.all.partition_point(|segment| segment.start <= at).saturating_sub(1)
    }

    fn piece(&self, segment: usize) -> Cow<'p, Piece> {
        let Segment { edit, piece, .. } = self.all[segment];
        let (edits, edit) = (&self.plan.edits, edit as usize);
        if let Some(piece) = (piece as usize).checked_sub(1) {
            return Cow::Borrowed(&edits[edit].with[piece]);
        }
        let from = edit.checked_sub(1).map_or(0, |before| edits[before].at.end);
        let to = edits.get(edit).map_or(self.plan.length, |edit| edit.at.start);
        Cow::Owned(Piece::Kept(Span::new(from, to)))
    }

    /// Pieces of the new text, as pieces of the original.
    fn through(&self, pieces: Vec<Piece>) -> Vec<Piece> {
        let mut out = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Kept(span) => self.slice(span, false, &mut out),
                Piece::Moved(span) => self.slice(span, true, &mut out),
                new @ Piece::New(_) => out.push(new),
            }
        }
        out
    }

    /// Appends the pieces of the original, and the new bytes, that a span of the new text is made of.
    fn slice(&self, span: Span, moved: bool, out: &mut Vec<Piece>) {
        for segment in self.at(span.start)..self.all.len() {
            let (at, piece) = (self.all[segment].start, self.piece(segment));
            if at >= span.end {
                return;
            }
            let (start, end) = (span.start.max(at), span.end.min(at + piece.len()));
            if start < end {
                let (from, to) = (start - at, end - at);
                let within = |of: &Span| Span::new(of.start + from, of.start + to);
                out.push(match &*piece {
                    Piece::Kept(of) if !moved => Piece::Kept(within(of)),
                    Piece::Kept(of) | Piece::Moved(of) => Piece::Moved(within(of)),
                    Piece::New(bytes) => Piece::New(bytes[from as usize..to as usize].to_vec()),
                });
            }
        }
    }
}

/// Maps offsets in a planned text to the original. Without a plan they are the same.
#[derive(Default)]
pub(crate) struct Origins<'p> {
    segments: Option<Segments<'p>>,
}

impl Origins<'_> {
    /// The offset in the original; for new bytes, that at which they are put in.
    pub(crate) fn original_offset(&self, at: u64) -> u64 {
        let Some(segments) = &self.segments else { return at };
        let segment = segments.at(at);
        match &*segments.piece(segment) {
            Piece::Kept(span) | Piece::Moved(span) => span.start + (at - segments.all[segment].start),
            Piece::New(_) => segments.plan.edits[segments.all[segment].edit as usize].at.start,
        }
    }
}

/// The planned text as a source. It is never built in memory.
pub struct Rendered<'a> {
    source: &'a dyn Source,
    segments: Segments<'a>,
    length: u64,
}

impl<'a> Rendered<'a> {
    /// `source` as `plan` would change it.
    pub fn new(source: &'a dyn Source, plan: &'a Plan) -> Self {
        Self { source, segments: Segments::from_plan(plan), length: plan.length_after() }
    }
}

impl Source for Rendered<'_> {
    fn len(&self) -> u64 {
        self.length
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let mut filled = 0;
        let mut segment = self.segments.at(at);
        while filled < buffer.len() && segment < self.segments.all.len() {
            let piece = self.segments.piece(segment);
            let from = at + filled as u64 - self.segments.all[segment].start;
            let rest = &mut buffer[filled..];
            let taken = (piece.len().saturating_sub(from)).min(rest.len() as u64) as usize;
            match &*piece {
                Piece::New(bytes) if taken > 0 => {
                    rest[..taken].copy_from_slice(&bytes[from as usize..from as usize + taken]);
                }
                Piece::Kept(span) | Piece::Moved(span) if taken > 0 => {
                    let got = self.source.read(span.start + from, &mut rest[..taken])?;
                    if got < taken {
                        return Err(Fault { at: span.start + from + got as u64 });
                    }
                }
                _ => {}
            }
            filled += taken;
            segment += 1;
        }
        Ok(filled)
    }

    fn records_max(&self) -> usize {
        self.source.records_max()
    }

    fn data_from(&self, at: u64) -> u64 {
        let segment = self.segments.at(at);
        let Some(start) = self.segments.all.get(segment).map(|segment| segment.start) else { return at };
        match &*self.segments.piece(segment) {
            Piece::Kept(span) | Piece::Moved(span) => {
                let from = span.start + (at - start);
                at + self.source.data_from(from).min(span.end).saturating_sub(from)
            }
            Piece::New(_) => at,
        }
    }
}
