//! A text that is to stand in the place of another one. What it means and where it comes from is not known here.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use transcript::Span;
use transcript::plan::{Piece, Plan};

/// A new text for a file, made from the old one and from what is put in.
pub(crate) trait NewText {
    /// Its length in bytes, as long as nothing is appended to the old text.
    fn length(&self) -> u64;

    /// Writes all of it. What cannot be written in full is an error; `out` is thrown away then.
    fn write(&self, original: &File, out: &File) -> io::Result<()>;
}

impl NewText for Plan {
    fn length(&self) -> u64 {
        self.length_after()
    }

    fn write(&self, original: &File, mut out: &File) -> io::Result<()> {
        for piece in self.pieces() {
            match piece {
                Piece::New(bytes) => out.write_all(&bytes)?,
                Piece::Kept(span) | Piece::Moved(span) => copy_span(original, span, out)?,
            }
        }
        Ok(())
    }
}

/// Copies bytes of one file to the end of what was written to another. The kernel does it, without our memory.
pub(crate) fn copy_span(mut from: &File, span: Span, mut out: &File) -> io::Result<()> {
    from.seek(SeekFrom::Start(span.start))?;
    let copied = io::copy(&mut from.take(span.len()), &mut out)?;
    if copied < span.len() { Err(io::Error::other("the file shrank meanwhile")) } else { Ok(()) }
}
