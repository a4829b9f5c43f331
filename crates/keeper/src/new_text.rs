//! What a file is to become, whoever says so.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use transcript::Span;
use transcript::plan::{Piece, Plan};

/// A text that can be written from a file as it was read.
pub(crate) trait NewText {
    /// Its length in bytes.
    fn length(&self) -> u64;

    /// Writes all of it.
    fn write(&self, original: &File, out: &mut File) -> io::Result<()>;
}

impl NewText for Plan {
    fn length(&self) -> u64 {
        self.length_after()
    }

    fn write(&self, original: &File, out: &mut File) -> io::Result<()> {
        for piece in self.pieces() {
            match piece {
                Piece::New(bytes) => out.write_all(&bytes)?,
                Piece::Kept(span) | Piece::Moved(span) => copy_span(original, span, out)?,
            }
        }
        Ok(())
    }
}

/// Copies a part of a file. The kernel does it, without our memory.
pub(crate) fn copy_span(original: &File, span: Span, out: &mut File) -> io::Result<()> {
    let mut from = original;
    from.seek(SeekFrom::Start(span.start))?;
    let copied = io::copy(&mut from.take(span.len()), out)?;
    if copied < span.len() {
        return Err(io::Error::other("the file shrank meanwhile"));
    }
    Ok(())
}
