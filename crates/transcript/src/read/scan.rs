//! Turns bytes into entries: splits lines, tokenises objects, detects the format. One pass over pieces of any size, which
//! keeps no line.
//!
//! Lines end at `\n` and nowhere else. What is not an object is noted as [`Damage`] and otherwise left alone.
//! Two whole objects on one line are two entries, and the second one is marked as glued. The first objects wait until the
//! format is known (`Scanner::decide`).

use super::document;
use crate::format::kinds::KnownKinds;
use crate::format::names::{self, SoundKeys};
use crate::format::{self, Format, Head, fields};
use crate::model::draft::Draft;
use crate::model::entry::{ContentIssueKind, Damage, DamageKind};
use crate::model::transcript::Transcript;
use alloc::vec::Vec;
use core::convert::Infallible;
use memchr::memchr_iter;
use spans::json::{self, Doc, Fed, Tokeniser, Value, ValueKind as Json};
use spans::source::{Fault, Source, Span, WINDOW_BYTES};

/// Most entries in one transcript, however much memory there is. Longer ones are refused.
pub const ENTRIES_MAX: usize = 16_000_000;

/// How much memory an entry takes at most, about, while a transcript is read, examined and mended: 117 bytes were measured for
/// one of `{}`, and a list may be half as long again while it grows.
pub const ENTRY_BYTES: u64 = 256;

/// Most entries that are read of a source.
pub(crate) fn entries_max(source: &dyn Source) -> usize {
    ENTRIES_MAX.min(source.records_max())
}

/// Most records on one line, damaged or not. A line with more is reported and not split, because an entry takes hundreds of
/// times the memory of a record as short as `{}`.
pub(crate) const LINE_RECORDS_MAX: usize = 4096;

pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// A source as it was read.
#[derive(Clone, Default)]
pub struct Scanned {
    /// Who writes such files; `None` if unknown, and then the transcript is empty.
    pub format: Option<&'static Format>,
    /// The votes on the format so far, if later objects would still count.
    pub(crate) undecided: Option<Head>,
    /// The entries.
    pub transcript: Transcript,
    /// Where the objects end that decided the format.
    pub(crate) head_end: u64,
    /// The votes that decided it.
    pub(crate) votes: Head,
}

/// A source and its entries: read once, whatever is asked of it.
pub struct Reading<'a> {
    /// The bytes.
    pub source: &'a dyn Source,
    /// The entries.
    pub scanned: Scanned,
}

impl<'a> Reading<'a> {
    /// Reads a whole source.
    pub fn new(source: &'a dyn Source) -> Result<Self, Fault> {
        Ok(Self { source, scanned: scan(source)? })
    }

    /// Reads a whole source, which is taken for the format of this name, if there is one.
    pub(crate) fn as_format(source: &'a dyn Source, format: Option<&str>) -> Result<Self, Fault> {
        Ok(Self { source, scanned: scan_as(source, format)? })
    }
}

/// Sees each entry as it has just been read.
pub(crate) trait Visitor: Send {
    /// Sees the newest entry of the transcript. The objects in `list` are entries that follow.
    fn entry(&mut self, transcript: &mut Transcript, root: Option<Value<'_>>, list: Option<Value<'_>>);

    /// Ends a line, after which the transcript has this many entries; `kept` says whether those of the line are among them.
    fn end_line(&mut self, entries: usize, kept: bool);
}

/// Reads a whole source.
pub fn scan(source: &dyn Source) -> Result<Scanned, Fault> {
    read_all(Scanner::new(), source)
}

/// Reads a whole source, which is taken for the format of this name, if there is one.
pub fn scan_as(source: &dyn Source, format: Option<&str>) -> Result<Scanned, Fault> {
    let mut scanner = Scanner::new();
    scanner.told = format::FORMATS.iter().copied().find(|known| Some(known.name) == format);
    if scanner.told.is_some() {
        (scanner.head, scanner.read.format) = (None, scanner.told);
    }
    read_all(scanner, source)
}

/// Reads a whole source, and shows each entry to a visitor, with marks for its pieces.
pub(crate) fn scan_with(source: &dyn Source, visitor: &mut dyn Visitor) -> Result<Scanned, Fault> {
    let mut scanner = Scanner { visitor: Some(visitor), ..Scanner::new() };
    scanner.read.transcript.keep_marks();
    read_all(scanner, source)
}

fn read_all(mut scanner: Scanner<'_>, source: &dyn Source) -> Result<Scanned, Fault> {
    scanner.read_up_to(source.len(), source, Scanner::hopeless)?;
    scanner.finish_whole(source)
}

/// Whether something other than a record comes first: lines inside a document may look like records.
pub(super) fn may_be_document(Scanned { format, transcript, .. }: &Scanned) -> bool {
    let first = transcript.entries.first().map_or(u64::MAX, |entry| entry.span.start);
    format.is_none() || transcript.damage.first().is_some_and(|damage| damage.span.start < first)
}

/// The format of a source; reads no more than that takes. `None` if unknown.
pub fn detect(source: &dyn Source) -> Result<Option<&'static Format>, Fault> {
    Ok(head(source)?.format)
}

/// The beginning of a source, up to where its format is decided or a little further.
pub(super) fn head(source: &dyn Source) -> Result<Scanned, Fault> {
    let mut scanner = Scanner::new();
    let end = source.len();
    scanner.read_up_to(end, source, |scanner| scanner.head.is_none())?;
    Ok(scanner.finish(end))
}

/// The lines that begin in the first bytes of a source.
pub(super) fn beginning(source: &dyn Source, bytes: u64) -> Result<Scanned, Fault> {
    let mut scanner = Scanner { lines_to: bytes, ..Scanner::new() };
    scanner.read_up_to(source.len(), source, Scanner::is_done)?;
    Ok(scanner.finish(source.len()))
}

/// The lines that begin in a span, of which one begins it; their numbers begin there. `end` is where the last of them ends at
/// the latest. `session` is the one that the first row of the file names.
pub(super) fn lines(
    format: &'static Format,
    session: Option<u64>,
    source: &dyn Source,
    span: Span,
    end: u64,
    entries_max: usize,
) -> Result<Scanned, Fault> {
    let mut scanner = Scanner { head: None, lines_to: span.end, entries_max, ..Scanner::new() };
    scanner.tokens = Tokeniser::new(span.start);
    scanner.line.start = span.start;
    scanner.read.format = Some(format);
    scanner.read.transcript.session = session;
    scanner.read_up_to(end, source, Scanner::is_done)?;
    Ok(scanner.finish(end))
}

/// An object that waits for the format to be known.
struct Waiting {
    doc: Doc,
    place: RecordPlace,
}

/// Where a record is.
#[derive(Clone, Copy)]
pub(super) struct RecordPlace {
    pub(super) line: u64,
    pub(super) span: Span,
    /// It follows another record on the same line.
    pub(super) glued: bool,
    /// It is in the list of the record before it.
    pub(super) listed: bool,
}

/// Reads a transcript piece by piece.
pub struct Scanner<'v> {
    read: Scanned,
    tokens: Tokeniser,
    head: Option<Vec<Waiting>>,
    head_nodes: usize,
    line: CurrentLine,
    /// Only lines that begin before this offset are read.
    lines_to: u64,
    entries_max: usize,
    /// The lines after a known place make the file one of another format.
    strayed: bool,
    /// What the file is taken for, whatever it looks like.
    told: Option<&'static Format>,
    seen: Seen,
    visitor: Option<&'v mut dyn Visitor>,
}

/// The end of the part of a transcript that was read before: a place between two lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadTo {
    pub(crate) format: &'static Format,
    /// The votes on the format so far, if that is not decided yet.
    pub(crate) undecided: Option<Head>,
    /// Bytes before the place.
    pub(crate) bytes: u64,
    /// Lines before the place.
    pub(crate) lines: u64,
}

/// Reads whole lines from a known place up to `end`. `None` if they make the file one of another format. Indices of entries
/// and ids begin at the place.
pub(crate) fn scan_from(known: ReadTo, source: &dyn Source, end: u64) -> Result<Option<Scanned>, Fault> {
    let mut scanner = Scanner { head: None, tokens: Tokeniser::new(known.bytes), ..Scanner::new() };
    scanner.line.start = known.bytes;
    scanner.read.format = Some(known.format);
    (scanner.read.undecided, scanner.read.votes) = (known.undecided, known.undecided.unwrap_or_default());
    scanner.read.transcript.lines = known.lines;
    scanner.read_up_to(end, source, Scanner::hopeless)?;
    let strayed = scanner.strayed;
    Ok((!strayed).then(|| scanner.finish(end)))
}

/// The line being read.
#[derive(Default)]
struct CurrentLine {
    start: u64,
    /// Where the last whole object ended.
    object_end: u64,
    objects: usize,
    /// How many entries, or waiting objects, there were before this line.
    before: usize,
    bad: Option<DamageKind>,
    not_utf8: Option<u64>,
    /// Offset of its first U+2028 or U+2029.
    separator: Option<u64>,
}

impl Default for Scanner<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner<'_> {
    /// A scanner that has seen nothing.
    pub fn new() -> Self {
        Self {
            read: Scanned::default(),
            tokens: Tokeniser::new(0),
            head: Some(Vec::new()),
            head_nodes: 0,
            line: CurrentLine::default(),
            lines_to: u64::MAX,
            entries_max: ENTRIES_MAX,
            strayed: false,
            told: None,
            seen: Seen::default(),
            visitor: None,
        }
    }

    /// Whether reading on is useless: the file is in no known format, or has too many entries.
    pub fn hopeless(&self) -> bool {
        (self.head.is_none() && self.read.format.is_none())
            || self.read.transcript.entries.len() > self.entries_max
    }

    /// Whether all is read that is wanted.
    fn is_done(&self) -> bool {
        self.hopeless() || self.line.start >= self.lines_to
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for window in bytes.chunks(WINDOW_BYTES) {
            if self.hopeless() {
                return;
            }
            let Ok(()) = self.tokens.go_on(window.len(), |room| {
                room.copy_from_slice(window);
                Ok::<_, Infallible>(())
            });
            self.take_window();
        }
    }

    /// Reads up to an offset, or until `enough`.
    fn read_up_to(&mut self, end: u64, source: &dyn Source, enough: fn(&Self) -> bool) -> Result<(), Fault> {
        self.entries_max = self.entries_max.min(entries_max(source));
        while self.tokens.end() < end && !enough(self) {
            // The rest of a damaged line is not held.
            if self.line.bad.is_some() {
                self.tokens.skip_to(source.data_from(self.tokens.end()).min(end));
            }
            let at = self.tokens.end();
            let count = (end - at).min(WINDOW_BYTES as u64) as usize;
            self.tokens.go_on(count, |room| source.fill(at, room))?;
            self.take_window();
        }
        Ok(())
    }

    /// Reads the lines that end in the bytes that were added last, and the beginning of the next one.
    fn take_window(&mut self) {
        for end in self.tokens.line_ends() {
            if self.is_done() {
                return;
            }
            self.read_line_to(end, true);
            self.end_line(end, true);
            self.tokens.go_to(end + 1);
        }
        if self.is_done() {
            return;
        }
        let held = self.tokens.doc.bytes().len();
        if self.line.bad.is_some() {
            // The rest of the line is not held.
            self.tokens.reset();
            self.tokens.go_to(held);
        } else if self.tokens.is_full() {
            self.read_line_to(held, false);
            if !self.tokens.make_room() {
                self.line.bad = Some(DamageKind::TooComplex);
            }
        }
    }

    /// Ends the input, which was all of a source, and returns what [`scan`] gives.
    ///
    /// # Errors
    ///
    /// When the source cannot be read.
    pub fn finish_whole(mut self, source: &dyn Source) -> Result<Scanned, Fault> {
        self.end_input();
        let Self { read, told, visitor, .. } = self;
        let document = may_be_document(&read).then(|| json::document(source)).transpose()?.flatten();
        match document {
            Some(document) if !document::is_row(source, &document)? => {
                document::read(source, &document, told, visitor)
            }
            _ => Ok(finished(read, source.len())),
        }
    }

    /// Ends the input, which is `bytes` long, and returns what was read.
    pub fn finish(mut self, bytes: u64) -> Scanned {
        self.end_input();
        finished(self.read, bytes)
    }

    /// Reads what is left of the input.
    fn end_input(&mut self) {
        let end = self.tokens.doc.bytes().len();
        if self.tokens.end() > self.line.start && !self.is_done() {
            self.read_line_to(end, true);
            self.end_line(end, false);
        }
        if self.head.is_some() {
            self.read.undecided = Some(self.decide());
        }
    }

    /// Reads more of the line, up to a place; `ends` says whether it ends there.
    fn read_line_to(&mut self, to: usize, ends: bool) {
        let Self { tokens, line, read, .. } = self;
        if tokens.next() == 0 && tokens.doc.bytes().starts_with(BOM) {
            read.transcript.damage.push(Damage { line: 1, span: Span::new(0, 3), kind: DamageKind::Bom });
            tokens.go_to(BOM.len());
        }
        let whole = if ends { to } else { json::whole_chars(&tokens.doc.bytes()[..to]) };
        for (at, bytes) in tokens.beyond_ascii(whole) {
            line.check_beyond_ascii(at, bytes);
        }
        while self.line.bad.is_none() {
            match self.tokens.read(to) {
                Fed::More => return,
                Fed::Done(_) => self.object(),
                Fed::Bad(bad) => {
                    let at = self.tokens.doc.offset(bad);
                    let nul = self.tokens.doc.bytes()[bad] == 0;
                    self.line.bad = Some(if nul { DamageKind::Nul(at) } else { DamageKind::NotJson(at) });
                }
                Fed::TooComplex => self.line.bad = Some(DamageKind::TooComplex),
            }
        }
    }

    /// Reads the object that has just ended.
    fn object(&mut self) {
        let span = self.tokens.doc.root().map(Value::span).unwrap_or_default();
        let (line, glued) = (self.read.transcript.lines + 1, self.line.objects > 0);
        self.line.objects += 1;
        self.line.object_end = span.end;
        if self.line.objects > LINE_RECORDS_MAX {
            self.line.bad = Some(DamageKind::TooComplex);
            self.tokens.reset();
            return;
        }
        let place = RecordPlace { line, span, glued, listed: false };
        let Self { head, read, tokens, seen, visitor, .. } = self;
        match (head, read.format) {
            (Some(head), _) => {
                let doc = tokens.doc.take();
                self.head_nodes += doc.size();
                head.push(Waiting { doc, place });
            }
            (None, Some(format)) => {
                if let Some(head) = &mut read.undecided {
                    head.add(&tokens.doc);
                    read.votes = *head;
                }
                let transcript = &mut read.transcript;
                Entries { format, transcript, seen, visitor: visitor.as_deref_mut() }
                    .read(&mut tokens.doc, place);
            }
            (None, None) => {}
        }
        self.tokens.reset();
    }

    /// Ends a line at a place; `terminated` says whether by a line break.
    fn end_line(&mut self, end: usize, terminated: bool) {
        let end = self.tokens.doc.offset(end);
        let line = core::mem::take(&mut self.line);
        let separator = line.separator.filter(|_| line.not_utf8.is_none());
        self.line.start = end + u64::from(terminated);
        self.read.transcript.lines += 1;
        let unfinished = !self.tokens.untouched();
        self.tokens.reset();
        let kind = match line.bad {
            Some(kind) => Some(kind),
            None if unfinished && terminated => Some(DamageKind::NotJson(end)),
            None if unfinished => Some(DamageKind::Torn),
            None => None,
        };
        let torn = kind.is_some() && !terminated && kind != Some(DamageKind::TooComplex);
        // Whole objects before a torn one are not torn.
        let start = if torn && line.objects > 0 { line.object_end } else { line.start };
        let damage = &mut self.read.transcript.damage;
        let number = self.read.transcript.lines;
        let mut note = |kind| damage.push(Damage { line: number, span: Span::new(start, end), kind });
        if kind.is_none() {
            for kind in [line.not_utf8.map(DamageKind::NotUtf8), separator.map(DamageKind::Separators)] {
                kind.into_iter().for_each(&mut note);
            }
        }
        match kind {
            _ if torn => note(DamageKind::Torn),
            Some(kind) => note(kind),
            None => _ = (line.objects > 0 && !terminated).then(|| note(DamageKind::Unterminated)),
        }
        if kind.is_some() && !torn {
            match &mut self.head {
                Some(head) => head.truncate(line.before),
                None => self.read.transcript.forget_entries_from(line.before),
            }
        }
        if let Some(visitor) = &mut self.visitor {
            visitor.end_line(self.read.transcript.entries.len(), kind.is_none() || torn);
        }
        if self.head.as_ref().is_some_and(|head| format::is_head(head.len(), self.head_nodes)) {
            self.decide();
            self.read.head_end = self.line.start;
        }
        self.recheck_format();
        self.line.before = self.head.as_ref().map_or(self.read.transcript.entries.len(), Vec::len);
    }

    /// Decides the format by the objects that wait for it, and reads these as entries.
    fn decide(&mut self) -> Head {
        let mut waiting = self.head.take().unwrap_or_default();
        let head = Head::from_docs(&mut waiting.iter().map(|waiting| &waiting.doc), self.head_nodes);
        (self.read.format, self.read.votes) = (head.format(), head);
        if let Some(format) = self.read.format {
            let Self { read, seen, visitor, .. } = self;
            let transcript = &mut read.transcript;
            let mut entries = Entries { format, transcript, seen, visitor: visitor.as_deref_mut() };
            for Waiting { doc, place } in &mut waiting {
                entries.read(doc, *place);
            }
            entries.end_line();
        }
        head
    }

    /// After a known place: notes whether the lines so far still have the same format.
    fn recheck_format(&mut self) {
        let Some(head) = &self.read.undecided else { return };
        let same = head.format().map(|format| format.name) == self.read.format.map(|format| format.name);
        self.strayed |= !same;
        if head.full() {
            self.read.undecided = None;
        }
    }
}

/// What was read, of which nothing is left.
fn finished(mut read: Scanned, bytes: u64) -> Scanned {
    read.transcript.bytes = bytes;
    // Nothing is added any more, and up to a half of a long list would be unused.
    read.transcript.entries.shrink_to_fit();
    read
}

/// What was seen in the records before.
#[derive(Default)]
pub(super) struct Seen {
    keys: SoundKeys,
    kinds: KnownKinds,
}

/// Reads objects as entries.
pub(super) struct Entries<'s, 'v> {
    pub(super) format: &'static Format,
    pub(super) transcript: &'s mut Transcript,
    pub(super) seen: &'s mut Seen,
    pub(super) visitor: Option<&'s mut (dyn Visitor + 'v)>,
}

impl Entries<'_, '_> {
    /// Ends the line of the entries before.
    pub(super) fn end_line(&mut self) {
        if let Some(visitor) = &mut self.visitor {
            visitor.end_line(self.transcript.entries.len(), true);
        }
    }

    /// Reads an object as an entry, and the records in it as further entries.
    pub(super) fn read(&mut self, doc: &mut Doc, place: RecordPlace) {
        let Self { format, transcript, seen, visitor } = self;
        let mut draft = Draft::new(transcript, place.line, place.span, place.glued);
        (draft.entry.odd, draft.entry.listed) = (doc.odd(), place.listed);
        for (key, name) in names::mend(format.names, doc, &mut seen.keys) {
            draft.issue(ContentIssueKind::Corrupted(Some(name)), key);
        }
        (format.read)(doc, &mut draft);
        if let Some(root) = doc.root() {
            seen.kinds.note_unknown(format.kinds, root, &mut draft);
            fields::note_unknown(format.fields, root, &mut draft);
        }
        draft.finish();
        let list = (format.records_in)(doc);
        if let Some(visitor) = visitor {
            visitor.entry(transcript, doc.root(), list);
        }
        let records = list.into_iter().flat_map(Value::items).filter(|record| record.kind() == Json::Object);
        for record in records {
            let mut draft = Draft::new(transcript, place.line, record.span(), false);
            draft.entry.listed = true;
            (format.read_record)(record, &mut draft);
            seen.kinds.note_unknown(format.kinds, record, &mut draft);
            draft.finish();
            if let Some(visitor) = visitor {
                visitor.entry(transcript, Some(record), None);
            }
        }
    }
}

/// U+2028, a line separator, and U+2029, a paragraph separator.
pub(crate) fn is_separator(bytes: &[u8]) -> bool {
    matches!(bytes, [0xe2, 0x80, 0xa8 | 0xa9, ..])
}

impl CurrentLine {
    /// Looks for invalid UTF-8 and for separators in a part of the line, which begins and ends with whole characters.
    fn check_beyond_ascii(&mut self, at: u64, bytes: &[u8]) {
        if self.not_utf8.is_some() {
            return;
        }
        if let Err(error) = simdutf8::compat::from_utf8(bytes) {
            self.not_utf8 = Some(at + error.valid_up_to() as u64);
        } else if self.separator.is_none() {
            let place = memchr_iter(0xe2, bytes).find(|&at| is_separator(&bytes[at..]));
            self.separator = place.map(|place| at + place as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::parts::Parts;
    use alloc::string::String;
    use core::cell::Cell;

    /// A file of which a part is a hole, on a machine with little memory.
    struct Sparse<'s> {
        bytes: &'s [u8],
        hole: Span,
        records_max: usize,
        /// How many bytes of the hole were read.
        read: Cell<u64>,
    }

    impl Source for Sparse<'_> {
        fn len(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
            let (from, to) = (at.max(self.hole.start), (at + buffer.len() as u64).min(self.hole.end));
            self.read.set(self.read.get() + to.saturating_sub(from));
            self.bytes.read(at, buffer)
        }

        fn records_max(&self) -> usize {
            self.records_max
        }

        fn data_from(&self, at: u64) -> u64 {
            if at >= self.hole.start && at < self.hole.end { self.hole.end } else { at }
        }
    }

    const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n";

    #[test]
    fn a_hole_is_skipped_and_gives_what_zeros_give() {
        let line = |n: usize| {
            alloc::format!(
                "{{\"type\":\"custom\",\"id\":\"e{n}\",\"parentId\":null,\"customType\":\"x\",\"data\":{n}}}\n"
            )
        };
        let front = String::from(HEADER) + &(0..40).map(line).collect::<String>();
        let back: String = (40..80).map(line).collect();
        let zeros = (8 << 20) + 1_000;
        // Between lines, within a line, and up to the end.
        for (cut, back) in [(0, &*back), (0, "\n"), (20, &*back), (0, "")] {
            let front = &front[..front.len() - cut];
            let bytes = [front.as_bytes(), &alloc::vec![0; zeros], back.as_bytes()].concat();
            let hole = Span::new(front.len() as u64, (front.len() + zeros) as u64);
            let source = Sparse { bytes: &bytes, hole, records_max: usize::MAX, read: Cell::new(0) };
            let (sparse, plain) = (scan(&source).unwrap(), scan(&bytes.as_slice()).unwrap());
            assert_eq!(sparse.transcript.damage, plain.transcript.damage, "{cut}");
            assert_eq!(
                (sparse.transcript.lines, sparse.transcript.bytes),
                (plain.transcript.lines, bytes.len() as u64)
            );
            let spans = |read: &Scanned| -> Vec<_> {
                read.transcript.entries.iter().map(|entry| (entry.span, entry.line)).collect()
            };
            assert_eq!(spans(&sparse), spans(&plain), "{cut}");
            // So much of a line is held before it is looked at.
            assert!(source.read.get() <= 3 << 20, "{}", source.read.get());
        }
    }

    #[test]
    fn no_more_records_are_read_than_fit() {
        let text = String::from(HEADER) + &"{}\n".repeat(50_000);
        let bytes = text.as_bytes();
        let none = Span::new(0, 0);
        for records_max in [1_000, 20_000, 100_000] {
            let source = Sparse { bytes, hole: none, records_max, read: Cell::new(0) };
            let entries = scan(&source).unwrap().transcript.entries.len();
            assert!(
                entries <= records_max + WINDOW_BYTES && (entries > records_max) == (records_max < 50_000)
            );
            let Some(mut parts) = Parts::begin(&source, 30_000, 2).unwrap() else { panic!("one part") };
            let (reader, mut fit) = (parts.reader(), true);
            for part in parts.rest() {
                let read = reader.read(&source, part).unwrap();
                assert!(read.transcript.entries.len() <= records_max / 2 + WINDOW_BYTES);
                fit &= parts.add(&read);
            }
            assert_eq!(fit, records_max > 50_000);
        }
    }
}
