//! The only thing that can change bytes: sorted, disjoint edits, drawn from the fixes of findings.
//!
//! A plan never holds the transcript. Rendering it yields spans of the original, to be copied, and short pieces
//! of new bytes in between.

use crate::source::{Fault, Source, Span};
use alloc::vec::Vec;

mod draw;

pub(crate) use draw::{draw, draw_steps, fresh_id, next_stage};

/// A piece of the new text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes of the original that stay where they are.
    Kept(Span),
    /// Bytes of the original that stand at another place now.
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

/// One change: bytes of the original, and what comes in their place (never [`Piece::Kept`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What goes; empty for an insertion.
    pub at: Span,
    /// What comes.
    pub with: Vec<Piece>,
}

/// All changes to one transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Length of the original.
    length: u64,
    /// Invariant: sorted by place, and no two overlap.
    edits: Vec<Edit>,
    /// The texts that markers in the new text name, each as pieces of the original.
    texts: Vec<Vec<Piece>>,
    /// An agent that holds the conversation in memory would sign over something else than it leaves.
    pub(crate) unsettles_memory: bool,
}

impl Plan {
    /// A plan of these edits for a source of `length` bytes; their markers name these texts.
    pub(crate) fn new(length: u64, edits: Vec<Edit>, texts: Vec<Vec<Piece>>) -> Self {
        debug_assert!(edits.windows(2).all(|two| two[0].at.end <= two[1].at.start), "{edits:?}");
        debug_assert!(edits.last().is_none_or(|last| last.at.end <= length), "{edits:?}");
        Self { length, edits, texts, unsettles_memory: false }
    }

    /// The plan that leaves a source of `length` bytes as it is.
    pub fn unchanged(length: u64) -> Self {
        Self::new(length, Vec::new(), Vec::new())
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Whether it changes what a model sees that binds its thinking to that, and the session is not refused without it:
    /// an agent that still has the conversation in memory would sign over something else, and be refused when it resumes.
    pub fn unsettles_memory(&self) -> bool {
        self.unsettles_memory
    }

    /// The changes, in the order of the file.
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// Texts that were cut for the first time: each as it was written, without quotes. The
    /// beginning of its BLAKE3 hash is the address in the marker, see [`crate::marker::Id`].
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

    /// Where the new text comes from.
    pub(crate) fn origins(&self) -> Origins {
        let (mut old, mut new) = (0, 0);
        let mut stretches = Vec::new();
        for edit in &self.edits {
            new += edit.at.start - old;
            for piece in &edit.with {
                stretches.push(match piece {
                    Piece::Kept(span) | Piece::Moved(span) => (new, span.start, true),
                    Piece::New(_) => (new, edit.at.start, false),
                });
                new += piece.len();
            }
            old = edit.at.end;
            stretches.push((new, old, true));
        }
        Origins { stretches }
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

    /// This plan and then another one, which was drawn on the text that this one gives, as one plan.
    pub(crate) fn then(&self, next: &Self) -> Self {
        let own = self.pieces();
        let pieces = through(&own, next.pieces());
        let mut texts = self.texts.clone();
        texts.extend(next.texts.iter().map(|text| through(&own, text.clone())));
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
        Self { unsettles_memory, ..Self::new(self.length, edits, texts) }
    }
}

/// Where what stands in the text that a plan gives comes from.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// Where stretches of the new text begin, where they come from, and whether they are copied: what is new comes from
    /// where it was put in. Where none begins, nothing changes.
    stretches: Vec<(u64, u64, bool)>,
}

impl Origins {
    /// The place in the original.
    pub(crate) fn of(&self, at: u64) -> u64 {
        let next = self.stretches.partition_point(|(start, ..)| *start <= at);
        match next.checked_sub(1).map(|last| self.stretches[last]) {
            Some((start, from, true)) => from + (at - start),
            Some((_, from, false)) => from,
            None => at,
        }
    }
}

/// Pieces of the text that `own` makes, as pieces of what `own` was made from.
fn through(own: &[Piece], pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Kept(span) => slice(own, span, false, &mut out),
            Piece::Moved(span) => slice(own, span, true, &mut out),
            new @ Piece::New(_) => out.push(new),
        }
    }
    out
}

/// The pieces behind a span of the text that `pieces` make.
fn slice(pieces: &[Piece], span: Span, moved: bool, out: &mut Vec<Piece>) {
    let mut at = 0;
    for piece in pieces {
        let (start, end) = (span.start.max(at), span.end.min(at + piece.len()));
        if start < end {
            let (from, to) = (start - at, end - at);
            let within = |of: &Span| Span::new(of.start + from, of.start + to);
            out.push(match piece {
                Piece::Kept(of) if !moved => Piece::Kept(within(of)),
                Piece::Kept(of) | Piece::Moved(of) => Piece::Moved(within(of)),
                Piece::New(bytes) => Piece::New(bytes[from as usize..to as usize].to_vec()),
            });
        }
        at += piece.len();
    }
}

/// The text that a plan gives, as a source: nothing is built in memory.
pub struct Rendered<'a> {
    source: &'a dyn Source,
    pieces: Vec<Piece>,
    /// Where each piece begins in the new text.
    starts: Vec<u64>,
    length: u64,
}

impl<'a> Rendered<'a> {
    /// What `plan` makes of `source`.
    pub fn new(source: &'a dyn Source, plan: &Plan) -> Self {
        let pieces = plan.pieces();
        let mut length = 0;
        let mut starts = Vec::with_capacity(pieces.len());
        for piece in &pieces {
            starts.push(length);
            length += piece.len();
        }
        Self { source, pieces, starts, length }
    }
}

impl Source for Rendered<'_> {
    fn len(&self) -> u64 {
        self.length
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let mut filled = 0;
        let mut index = self.starts.partition_point(|&start| start <= at).saturating_sub(1);
        while filled < buffer.len() && index < self.pieces.len() {
            let from = at + filled as u64 - self.starts[index];
            let rest = &mut buffer[filled..];
            let taken = (self.pieces[index].len().saturating_sub(from)).min(rest.len() as u64) as usize;
            match &self.pieces[index] {
                Piece::New(bytes) => {
                    rest[..taken].copy_from_slice(&bytes[from as usize..from as usize + taken]);
                }
                Piece::Kept(span) | Piece::Moved(span) => {
                    let got = self.source.read(span.start + from, &mut rest[..taken])?;
                    if got < taken {
                        return Err(Fault { at: span.start + from + got as u64 });
                    }
                }
            }
            filled += taken;
            index += 1;
        }
        Ok(filled)
    }
}
