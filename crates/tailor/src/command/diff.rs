//! `--diff`: each change with its place. What was taken out is a size unless text was asked for.

use crate::terminal::plain;
use keeper::Outcome;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use transcript::Span;
use transcript::plan::{Edit, Piece};

/// How much of a text is shown.
const SHOWN_BYTES_MAX: u64 = 2000;

/// The changes of an outcome, as lines to print.
pub(crate) fn describe(path: &Path, outcome: &Outcome, content: bool) -> Vec<String> {
    // The original may have been replaced by now; then its text is gone from the path.
    let original = content.then(|| File::open(path).ok()).flatten().filter(|_| outcome.run.is_none());
    let mut lines = vec![format!("--- {}", plain(&path.to_string_lossy()))];
    for edit in outcome.plan.edits() {
        let line = edit.line;
        lines.push(format!("@@ line {line}, bytes {}..{} @@", edit.at.start, edit.at.end));
        lines.extend(change(edit, original.as_ref()));
    }
    lines
}

fn change(edit: &Edit, original: Option<&File>) -> Vec<String> {
    let mut lines = Vec::new();
    if !edit.at.is_empty() {
        lines.push(match original.and_then(|file| text(file, edit.at)) {
            Some(text) => format!("- {text}"),
            None => format!("- {} bytes", edit.at.len()),
        });
    }
    for piece in &edit.with {
        lines.push(match piece {
            Piece::New(bytes) => format!("+ {}", plain(&String::from_utf8_lossy(bytes))),
            Piece::Kept(span) | Piece::Moved(span) => format!("+ bytes {}..{}", span.start, span.end),
        });
    }
    lines
}

fn text(file: &File, at: Span) -> Option<String> {
    let mut bytes = vec![0; at.len().min(SHOWN_BYTES_MAX) as usize];
    file.read_exact_at(&mut bytes, at.start).ok()?;
    let more = if at.len() > SHOWN_BYTES_MAX { format!(" … ({} bytes)", at.len()) } else { String::new() };
    Some(plain(&String::from_utf8_lossy(&bytes)) + &more)
}
