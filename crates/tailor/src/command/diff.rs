//! `--diff`: each change with its place. Removed text is shown as a size unless `--show-content` is given.

use crate::terminal::plain;
use spans::source::read_span;
use std::path::Path;
use transcript::plan::{Piece, Plan};
use transcript::{Fault, Source, Span};

/// How much of a text is shown.
const SHOWN_BYTES_MAX: u64 = 2000;

/// The changes of a plan, as lines to print; empty if there are none.
pub(crate) fn describe(
    path: &Path,
    source: &dyn Source,
    plan: &Plan,
    content: bool,
) -> Result<Vec<String>, Fault> {
    if plan.is_empty() {
        return Ok(Vec::new());
    }
    let mut lines = vec![format!("--- {}", plain(&path.to_string_lossy()))];
    let mut place = LineCounter::default();
    for edit in plan.edits() {
        let at = edit.at;
        lines.push(format!("@@ line {}, bytes {}..{} @@", place.line_of(source, at)?, at.start, at.end));
        if !at.is_empty() {
            lines.push(if content && !plan.removes_secrets() {
                text(source, at)?
            } else {
                format!("- {} bytes", at.len())
            });
        }
        lines.extend(edit.with.iter().map(new));
    }
    Ok(lines)
}

/// How far line breaks have been counted. A plan may combine several rounds, and later rounds count the lines of a
/// changed text, so lines of the file are counted here.
#[derive(Default)]
struct LineCounter {
    at: u64,
    breaks: u64,
    /// The byte before is a line break.
    is_line_start: bool,
}

impl LineCounter {
    /// The line of an edit, from 1. Text inserted at the beginning of a line belongs to the line before.
    fn line_of(&mut self, source: &dyn Source, edit: Span) -> Result<u64, Fault> {
        source.pieces(Span::new(self.at, edit.start), &mut |bytes| {
            // One piece more than breaks.
            self.breaks += bytes.split(|byte| *byte == b'\n').count() as u64 - 1;
            self.is_line_start = bytes.last().map_or(self.is_line_start, |last| *last == b'\n');
            true
        })?;
        self.at = edit.start;
        let is_behind = edit.is_empty() && self.is_line_start;
        Ok(self.breaks + u64::from(!is_behind))
    }
}

fn new(piece: &Piece) -> String {
    match piece {
        Piece::New(bytes) => format!("+ {}", plain(&String::from_utf8_lossy(bytes))),
        Piece::Kept(span) | Piece::Moved(span) => format!("+ bytes {}..{}", span.start, span.end),
    }
}

fn text(source: &dyn Source, at: Span) -> Result<String, Fault> {
    let shown = Span::new(at.start, at.end.min(at.start + SHOWN_BYTES_MAX));
    let bytes = read_span(source, shown)?;
    let more = if shown == at { String::new() } else { format!(" … ({} bytes)", at.len()) };
    Ok(format!("- {}{more}", plain(&String::from_utf8_lossy(&bytes))))
}
