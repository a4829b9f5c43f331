//! Copies of files.

use crate::platform::FileExt;
use std::fs::File;
use std::io::{self, Write};
use transcript::Span;

/// How much is copied at a time.
const PIECE_BYTES: u64 = 256 << 10;

/// Copies a span of one file to the current position of another. Returns how many bytes there were. The position of the
/// first file is not used, because another thread may read from it.
pub(crate) fn copy_span(from: &File, span: Span, mut out: &File) -> io::Result<u64> {
    let mut at = span.start;
    let mut buffer = vec![0; span.len().min(PIECE_BYTES) as usize];
    while at < span.end {
        let wanted = (span.end - at).min(PIECE_BYTES) as usize;
        let got = from.read_at(&mut buffer[..wanted], at)?;
        if got == 0 {
            break;
        }
        out.write_all(&buffer[..got])?;
        at += got as u64;
    }
    Ok(at - span.start)
}
