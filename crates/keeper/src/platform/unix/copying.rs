//! Copies of files, with their holes.

use crate::platform::holes;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use transcript::Span;

/// Shorter holes are written out.
const HOLE_BYTES_MIN: u64 = 64 << 10;

/// How much is copied at a time where the kernel does not do it.
const PIECE_BYTES: usize = 64 << 10;

/// Copies a span of one file to the current position of another. Returns how many bytes there were. Holes become holes, if
/// nothing follows that position yet. The position of the first file is not used, because another thread may move it.
pub(crate) fn copy_span(from: &File, span: Span, mut out: &File) -> io::Result<u64> {
    let mut at = span.start;
    while at < span.end {
        let mut end = span.end;
        if end - at >= HOLE_BYTES_MIN {
            let data = holes::data_from(from, at).map_or(at, |data| data.min(end));
            let here = out.stream_position()?;
            if data - at >= HOLE_BYTES_MIN && out.metadata()?.len() == here {
                out.set_len(here + data - at)?;
                at += out.seek(SeekFrom::End(0))? - here;
                continue;
            }
            // Up to the next hole, and at least past a short one.
            end = holes::hole_from(from, data).map_or(end, |hole| hole.clamp(at + 1, end));
        }
        let copied = copy_bytes(from, Span::new(at, end), out)?;
        at += copied;
        if at < end {
            break;
        }
    }
    Ok(at - span.start)
}

/// Copies bytes, inside the kernel if it can. Returns how many there were.
fn copy_bytes(from: &File, span: Span, mut out: &File) -> io::Result<u64> {
    let mut at = span.start;
    while at < span.end {
        match holes::copy_range(from, at, out, span.end - at) {
            Ok(copied) if copied > 0 => at += copied,
            // Files of two file systems, or one that is open for appending.
            _ => break,
        }
    }
    let mut buffer = vec![0; PIECE_BYTES.min((span.end - at) as usize)];
    while at < span.end {
        let wanted = buffer.len().min((span.end - at) as usize);
        match from.read_at(&mut buffer[..wanted], at) {
            Ok(0) => break,
            Ok(got) => {
                out.write_all(&buffer[..got])?;
                at += got as u64;
            }
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(at - span.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_copied_as_holes_and_data_as_data() {
        use std::os::unix::fs::MetadataExt;
        let from = tempfile::tempfile().unwrap();
        let length = 40 << 20;
        from.set_len(length).unwrap();
        for at in [5, 3 << 20, (3 << 20) + 9_000, 20 << 20, length - 1] {
            from.write_all_at(b"data", at).unwrap();
        }
        let read = |file: &File| {
            let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        let whole = read(&from);
        for (start, end) in [(0, whole.len()), (7, 30 << 20), (1 << 20, 2 << 20), (3 << 20, 4 << 20)] {
            let out = tempfile::tempfile().unwrap();
            (&out).write_all(b"before").unwrap();
            let span = Span::new(start as u64, end as u64);
            assert_eq!(copy_span(&from, span, &out).unwrap(), span.len());
            (&out).write_all(b"after").unwrap();
            assert!(read(&out) == [b"before", &whole[start..end], b"after"].concat(), "{start} {end}");
            assert!(out.metadata().unwrap().blocks() * 512 < 2 << 20, "{start} {end}");
        }
        // What the file does not have is not made up, and what follows is not taken for a hole.
        let out = tempfile::tempfile().unwrap();
        let beyond = Span::new(30 << 20, 90 << 20);
        assert_eq!(copy_span(&from, beyond, &out).unwrap(), read(&from).len() as u64 - (30 << 20));
        out.write_all_at(&vec![7; 4 << 20], 0).unwrap();
        (&out).rewind().unwrap();
        copy_span(&from, Span::new(4 << 20, 6 << 20), &out).unwrap();
        assert!(read(&out)[..2 << 20].iter().all(|byte| *byte == 0));
    }
}
