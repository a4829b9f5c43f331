//! A text that will replace another one, whether it comes from a plan, an undo or a merge.

use crate::base::interruption::stop_if_told;
use crate::platform::{FileExt, copying, holes};
use blake3::{Hash, Hasher};
use std::fs::File;
use std::io::{self, Write};
use transcript::Span;
use transcript::plan::{Piece, Plan};

/// How much of a file is compared or hashed at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// How much is copied before we look whether we are to stop.
const COPY_BYTES: usize = 256 << 20;

/// A new text for a file, made from the old one and from what is put in.
pub(crate) trait NewText {
    /// The parts of it: the length of each, and the span of the old text that it is a copy of, if it is one.
    fn parts(&self) -> Vec<(u64, Option<Span>)>;

    /// Writes all of it, or fails; then `out` is thrown away.
    fn write(&self, original: &File, out: &File) -> io::Result<()>;

    /// Whether a file holds, at their places, the bytes that the old text does not have, as far as they are known.
    fn has_added(&self, _: &File) -> io::Result<bool> {
        Ok(true)
    }

    /// Its length in bytes, as long as nothing is appended to the old text.
    fn length(&self) -> u64 {
        self.parts().iter().map(|(length, _)| length).sum()
    }

    /// The spans of the old text that the new one keeps, each with its offset there.
    fn kept(&self) -> Vec<(Span, u64)> {
        let mut at = 0;
        let place = |(length, span): (u64, Option<Span>)| {
            at += length;
            Some((span?, at - length))
        };
        self.parts().into_iter().filter_map(place).collect()
    }

    /// The spans of the old text, which has `length` bytes, that the new one does not keep.
    fn removed(&self, length: u64) -> Vec<Span> {
        let mut kept: Vec<Span> = self.kept().into_iter().map(|(span, _)| span).collect();
        kept.sort_by_key(|span| span.start);
        let (mut at, mut removed) = (0, Vec::new());
        for span in kept.into_iter().chain([Span::new(length, length)]) {
            if at < span.start {
                removed.push(Span::new(at, span.start));
            }
            at = at.max(span.end);
        }
        removed
    }
}

impl NewText for Plan {
    fn parts(&self) -> Vec<(u64, Option<Span>)> {
        let kept = |piece: &Piece| match piece {
            Piece::Kept(span) | Piece::Moved(span) => Some(*span),
            Piece::New(_) => None,
        };
        self.pieces().into_iter().map(|piece| (piece.len(), kept(&piece))).collect()
    }

    fn has_added(&self, new: &File) -> io::Result<bool> {
        let mut at = 0;
        for piece in self.pieces() {
            if let Piece::New(bytes) = &piece {
                let mut there = vec![0; bytes.len()];
                if read_up_to(new, &mut there, at)? < there.len() || there != *bytes {
                    return Ok(false);
                }
            }
            at += piece.len();
        }
        Ok(true)
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

/// Copies bytes of one file to the end of what was written to another.
pub(crate) fn copy_span(from: &File, span: Span, out: &File) -> io::Result<()> {
    for start in (span.start..span.end).step_by(COPY_BYTES) {
        stop_if_told()?;
        let piece = Span::new(start, span.end.min(start + COPY_BYTES as u64));
        if copying::copy_span(from, piece, out)? < piece.len() {
            return Err(shrank());
        }
    }
    Ok(())
}

/// The error of a copy of a file that has lost bytes since it was read.
pub(crate) fn shrank() -> io::Error {
    io::Error::other("the file shrank meanwhile")
}

/// The hash of some spans of a file, one after the other; `None` if `stop` interrupted it.
pub(crate) fn hash_of(file: &File, spans: &[Span], stop: &dyn Fn() -> bool) -> io::Result<Option<Hash>> {
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; PIECE_BYTES];
    for span in spans {
        for piece in pieces(*span) {
            if stop() {
                return Ok(None);
            }
            let room = &mut buffer[..piece.len() as usize];
            file.read_exact_at(room, piece.start)?;
            hasher.update(room);
        }
    }
    Ok(Some(hasher.finalize()))
}

/// How many bytes from the start of a span are the same in another file from `at` on; `None` if `stop` interrupted it.
pub(crate) fn same_bytes(
    one: &File,
    span: Span,
    other: &File,
    at: u64,
    stop: &dyn Fn() -> bool,
) -> io::Result<Option<u64>> {
    let (mut left, mut right) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    let (mut start, mut is_empty) = (span.start, false);
    while start < span.end {
        if stop() {
            return Ok(None);
        }
        let there = at + (start - span.start);
        // Where zeros were, a hole may be.
        if is_empty {
            let hole = |file: &File, at| holes::data_from(file, at).map_or(0, |data| data - at);
            let both = hole(one, start).min(hole(other, there));
            if both > 0 {
                start += both;
                continue;
            }
        }
        let wanted = (span.end - start).min(PIECE_BYTES as u64) as usize;
        let (left, right) = (&mut left[..wanted], &mut right[..wanted]);
        let have = read_up_to(one, left, start)?.min(read_up_to(other, right, there)?);
        let (left, right) = (&left[..have], &right[..have]);
        if left != right || have < wanted {
            let same = left.iter().zip(right).take_while(|(one, other)| one == other).count();
            return Ok(Some(start - span.start + same as u64));
        }
        is_empty = left.iter().all(|byte| *byte == 0);
        start += wanted as u64;
    }
    Ok(Some(span.len()))
}

fn pieces(span: Span) -> impl Iterator<Item = Span> {
    (span.start..span.end)
        .step_by(PIECE_BYTES)
        .map(move |start| Span::new(start, span.end.min(start + PIECE_BYTES as u64)))
}

/// Fills as much of the buffer as the file has.
pub(crate) fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn the_first_byte_that_differs_is_found_wherever_it_is() {
        let length = 2 * PIECE_BYTES + 100;
        let text = vec![b'a'; length];
        for at in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, length - 1] {
            let mut other = text.clone();
            other[at] = b'b';
            let span = Span::new(0, length as u64);
            let same = same_bytes(&file(&text), span, &file(&other), 0, &|| false).unwrap();
            assert_eq!(same, Some(at as u64));
            let before = Span::new(0, at as u64);
            let same = same_bytes(&file(&text), before, &file(&other), 0, &|| false).unwrap();
            assert_eq!(same, Some(before.end));
            let hash = |bytes: &[u8]| hash_of(&file(bytes), &[span], &|| false).unwrap();
            assert!(hash(&text) == hash(&text) && hash(&text) != hash(&other));
        }
        let shorter = same_bytes(&file(&text), Span::new(5, 50), &file(&text[..20]), 0, &|| false).unwrap();
        assert_eq!(shorter, Some(20));
        assert_eq!(same_bytes(&file(&text), Span::new(0, 9), &file(&text), 0, &|| true).unwrap(), None);
    }

    /// Behind a hole in both, as behind zeros in one of them.
    #[test]
    fn what_differs_behind_a_hole_is_found() {
        let hole = 3 * PIECE_BYTES as u64;
        let sparse = |end: &[u8]| {
            let file = tempfile::tempfile().unwrap();
            file.set_len(hole).unwrap();
            file.write_all_at(end, hole).unwrap();
            file
        };
        let zeros = file(&[vec![0; hole as usize], b"one".to_vec()].concat());
        for (other, same) in [(sparse(b"one"), 3), (sparse(b"two"), 0), (sparse(b"ore"), 1), (zeros, 3)] {
            let found = same_bytes(&sparse(b"one"), Span::new(0, hole + 3), &other, 0, &|| false).unwrap();
            assert_eq!(found, Some(hole + same));
            let before = same_bytes(&sparse(b"one"), Span::new(0, hole - 9), &other, 0, &|| false).unwrap();
            assert_eq!(before, Some(hole - 9));
        }
    }

    #[test]
    fn what_is_not_kept_is_removed() {
        struct SpansOnly(Vec<Span>);
        impl NewText for SpansOnly {
            fn parts(&self) -> Vec<(u64, Option<Span>)> {
                self.0.iter().map(|span| (span.len(), Some(*span))).collect()
            }
            fn write(&self, _: &File, _: &File) -> io::Result<()> {
                Ok(())
            }
        }
        let kept = [(5, 7), (0, 3), (7, 9)].map(|(from, to)| Span::new(from, to));
        assert_eq!(SpansOnly(kept.to_vec()).removed(12), [Span::new(3, 5), Span::new(9, 12)]);
        assert_eq!(SpansOnly(Vec::new()).removed(2), [Span::new(0, 2)]);
    }
}
