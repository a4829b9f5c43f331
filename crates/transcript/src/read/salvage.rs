//! What can be had of a line that is not one object: whole records between fragments, records with stray control
//! characters or NUL bytes in them, records that line breaks have cut into several lines.
//!
//! Only damaged lines come here, and each is held in memory while it is looked at. Nothing is ever completed: a record is
//! whole in the bytes that are there, or it is a fragment.

use crate::format::names::{FieldNames, stumbled};
use crate::format::{Format, Vote};
use crate::model::entry::{Damage, DamageKind};
use crate::model::transcript::Transcript;
use crate::read::scan::{BOM, LINE_RECORDS_MAX};
use alloc::borrow::Cow;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use memchr::{memchr, memmem};
use spans::json::{Fed, Tokeniser};
use spans::source::{Fault, Source, Span, read_span};

/// Longer lines are only reported.
pub(crate) const LINE_BYTES_MAX: u64 = 16 << 20;

/// How many lines a broken record may span.
const JOINED_LINES_MAX: usize = 64;

/// How much of a line may be searched for the beginning of a record, in multiples of its length.
const PASSES_MAX: usize = 64;

/// Up to this many damaged lines are reported one by one; beyond that, adjacent ones without a record become one.
const APART_MAX: usize = 4096;

/// At how many places of one line control characters and damaged names are repaired.
const PLACES_MAX: usize = 1 << 16;

/// What was wrong with a line, or with several that were one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DamageCause {
    /// Whole records, and fragments between them.
    Spliced,
    /// NUL bytes.
    Nul,
    /// A byte order mark before the record.
    Bom,
    /// Control characters that should have been escaped.
    Control,
    /// A byte of a name was overwritten by a quote, which ends it.
    Name,
    /// Line breaks in the middle of a record.
    Broken,
    /// No record at all.
    Nothing,
    /// Too long, or too tangled, to look into.
    Unknown,
}

/// Damage, and what would mend it.
#[derive(Clone, Debug)]
pub(crate) struct DamagedLine {
    /// The damage; its span covers all lines concerned.
    pub damage: Damage,
    pub cause: DamageCause,
    /// How many records are in it.
    pub records: usize,
    /// How many lines without a record it is; 1 where there is a record.
    pub lines: u64,
    /// What has to go, and what comes in its place: sorted, and no two overlap.
    pub edits: Vec<(Span, Vec<u8>)>,
    /// Whether what has to go holds the beginning of a user's message.
    pub user: bool,
}

impl DamagedLine {
    /// Whether it is the end of the file, not ended by a line break. NUL bytes alone are no line.
    pub(crate) fn is_torn(&self) -> bool {
        self.damage.kind == DamageKind::Torn && (self.cause != DamageCause::Nul || self.records > 0)
    }

    /// Merges the next line into this one if neither holds a record and both are simply removed.
    fn takes_in(&mut self, next: &Self) -> bool {
        let goes =
            |damaged: &Self| damaged.cause == DamageCause::Nothing && !damaged.user && !damaged.is_torn();
        let both_go = goes(self) && goes(next);
        let ([(own, with)], [(at, other)]) = (&mut self.edits[..], &next.edits[..]) else { return false };
        if !both_go || own.end != at.start || !with.is_empty() || !other.is_empty() {
            return false;
        }
        own.end = at.end;
        self.damage.span.end = next.damage.span.end;
        self.lines += next.lines;
        true
    }
}

/// A transcript whose damaged lines are examined.
#[derive(Clone, Copy)]
struct Examined<'a> {
    transcript: &'a Transcript,
    format: &'static Format,
    source: &'a dyn Source,
}

/// All lines of a transcript that are not records.
pub(crate) fn damaged_lines(
    transcript: &Transcript,
    format: &'static Format,
    source: &dyn Source,
) -> Result<Vec<DamagedLine>, Fault> {
    let examined = Examined { transcript, format, source };
    let damage: Vec<Damage> =
        examined.transcript.damage.iter().copied().filter(|damage| is_broken(damage.kind)).collect();
    let mut damaged_lines = Vec::new();
    let mut at = 0;
    while at < damage.len() {
        let (damaged, lines) = salvage(examined, &damage[at..])?;
        at += lines;
        let is_full = damaged_lines.len() >= APART_MAX;
        if !damaged_lines.last_mut().is_some_and(|last: &mut DamagedLine| is_full && last.takes_in(&damaged))
        {
            damaged_lines.push(damaged);
        }
    }
    Ok(damaged_lines)
}

fn is_broken(kind: DamageKind) -> bool {
    match kind {
        DamageKind::NotJson(_) | DamageKind::Nul(_) | DamageKind::TooComplex | DamageKind::Torn => true,
        DamageKind::Unterminated | DamageKind::NotUtf8(_) | DamageKind::Bom | DamageKind::Separators(_) => {
            false
        }
    }
}

/// Looks at the first of these, and says how many belong to it.
fn salvage(examined: Examined<'_>, damage: &[Damage]) -> Result<(DamagedLine, usize), Fault> {
    let first = damage[0];
    let unknown = DamagedLine {
        damage: first,
        cause: DamageCause::Unknown,
        records: 0,
        lines: 1,
        edits: Vec::new(),
        user: false,
    };
    if first.kind == DamageKind::TooComplex || first.span.len() > LINE_BYTES_MAX {
        return Ok((unknown, 1));
    }
    let alone = one(examined, first)?;
    if alone.as_ref().is_none_or(|damaged| damaged.records == 0) && may_go_on(first.kind) {
        let joined = joined(examined, damage)?;
        if let Some(joined) = joined {
            return Ok(joined);
        }
    }
    Ok((alone.unwrap_or(unknown), 1))
}

/// Whether the line may be the beginning of a record that goes on in the next one.
fn may_go_on(kind: DamageKind) -> bool {
    matches!(kind, DamageKind::NotJson(_) | DamageKind::Nul(_))
}

/// Several lines that are one record, if the line breaks between them are taken for text.
fn joined(examined: Examined<'_>, damage: &[Damage]) -> Result<Option<(DamagedLine, usize)>, Fault> {
    let start = damage[0].span.start;
    let mut bytes = read_span(examined.source, damage[0].span)?;
    // It must begin in the first line, and not only with NUL bytes there.
    if bytes.iter().find(|byte| **byte > b' ') != Some(&b'{') {
        return Ok(None);
    }
    let Some(blanks) = bytes.iter().position(|byte| !byte.is_ascii_whitespace()) else { return Ok(None) };
    bytes.drain(..blanks);
    let open = start + blanks as u64;
    let mut reading = Reading::new(open, examined.format);
    if !matches!(reading.feed(&bytes), Fed::More) {
        return Ok(None);
    }
    let mut lines = 1;
    // Ever more at a time: most end, or turn out to be no record, soon.
    while let Some(more) = reach(examined.source, damage, lines)? {
        let read = open + bytes.len() as u64;
        bytes.extend(read_span(examined.source, Span::new(read, damage[more - 1].span.end))?);
        match reading.feed(&bytes) {
            Fed::More => lines = more,
            Fed::Done(taken) => {
                let end = open + taken as u64;
                // The line in which it ends has nothing else in it.
                let Some(last) = damage[lines..more].iter().position(|line| end <= line.span.end) else {
                    return Ok(None);
                };
                let lines = lines + last + 1;
                let whole = Span::new(start, damage[lines - 1].span.end);
                let rest = &bytes[taken..(whole.end - open) as usize];
                let is_record = rest.iter().all(u8::is_ascii_whitespace)
                    && ((examined.format.vote)(&reading.tokens.doc) != Vote::Foreign
                        || examined.format.is_record(&reading.tokens.doc));
                if !is_record {
                    return Ok(None);
                }
                let mut edits = reading.edits;
                between_tokens(&damage[..lines], &mut edits);
                let damage = Damage { span: whole, ..damage[0] };
                let damaged = DamagedLine {
                    damage,
                    cause: DamageCause::Broken,
                    records: 1,
                    lines: 1,
                    edits,
                    user: false,
                };
                return Ok(Some((damaged, lines)));
            }
            Fed::Bad(_) | Fed::TooComplex => return Ok(None),
        }
    }
    Ok(None)
}

/// Up to which line to read on after so many, if there is nothing but white space between them and they are not too many
/// or too long.
fn reach(source: &dyn Source, damage: &[Damage], lines: usize) -> Result<Option<usize>, Fault> {
    let most = (lines * 2).min(damage.len()).min(JOINED_LINES_MAX);
    for line in lines..most {
        let whole = Span::new(damage[0].span.start, damage[line].span.end);
        let gap = Span::new(damage[line - 1].span.end, damage[line].span.start);
        if whole.len() > LINE_BYTES_MAX || !is_blank(source, gap)? {
            return Ok((line > lines).then_some(line));
        }
    }
    Ok((most > lines).then_some(most))
}

/// Removes line breaks that are not part of a text: JSON allows them, but a record has to be one line.
fn between_tokens(lines: &[Damage], edits: &mut Vec<(Span, Vec<u8>)>) {
    for pair in lines.windows(2) {
        let gap = Span::new(pair[0].span.end, pair[1].span.start);
        if !edits.iter().any(|(at, _)| at.start < gap.end && gap.start < at.end) {
            edits.push((gap, Vec::new()));
        }
    }
    edits.sort_unstable_by_key(|(at, _)| at.start);
}

fn is_blank(source: &dyn Source, span: Span) -> Result<bool, Fault> {
    Ok(span.len() <= 4096 && read_span(source, span)?.iter().all(u8::is_ascii_whitespace))
}

/// One line by itself; `None` if it is too tangled.
fn one(examined: Examined<'_>, damage: Damage) -> Result<Option<DamagedLine>, Fault> {
    let bytes = read_span(examined.source, damage.span)?;
    let Some(records) = records(examined.format, &bytes) else { return Ok(None) };
    let torn = damage.kind == DamageKind::Torn;
    // Whole objects before a torn one are entries already.
    let before =
        examined.transcript.entries.last().is_some_and(|last| torn && last.span.end == damage.span.start);
    let (mut edits, mut at, mut odd) = (Vec::new(), 0, GapFlags::default());
    for (n, found) in records.iter().enumerate() {
        let gap = &bytes[at..found.start];
        odd.gap(gap);
        let with = if n > 0 || before { &b"\n"[..] } else { b"" };
        if !gap.is_empty() || !with.is_empty() {
            edits.push((Span::new(at as u64, found.start as u64), with.to_vec()));
        }
        odd.edits(&bytes, &found.edits);
        edits.extend(found.edits.iter().cloned());
        at = found.end;
    }
    let rest = &bytes[at..];
    odd.gap(rest);
    if records.is_empty() {
        edits.push((Span::new(0, damage.span.len()), if before { b"\n".to_vec() } else { Vec::new() }));
        let damaged = nothing(examined.source, damage, edits, &odd)?;
        return Ok(Some(DamagedLine { user: begins_user(&bytes), ..damaged }));
    }
    if torn || !rest.iter().all(u8::is_ascii_whitespace) {
        edits
            .push((Span::new(at as u64, bytes.len() as u64), if torn { b"\n".to_vec() } else { Vec::new() }));
    }
    let user = edits.iter().any(|(at, _)| begins_user(&bytes[at.start as usize..at.end as usize]));
    let edits = placed(edits, damage.span.start);
    Ok(Some(DamagedLine { damage, cause: odd.cause(), records: records.len(), lines: 1, edits, user }))
}

/// A line without a record goes with its line break.
fn nothing(
    source: &dyn Source,
    damage: Damage,
    mut edits: Vec<(Span, Vec<u8>)>,
    odd: &GapFlags,
) -> Result<DamagedLine, Fault> {
    let mut end = [0];
    if source.read(damage.span.end, &mut end)? == 1 && end == *b"\n" {
        edits[0].0.end += 1;
    }
    let edits = placed(edits, damage.span.start);
    let cause = if odd.nul && !odd.fragment { DamageCause::Nul } else { DamageCause::Nothing };
    Ok(DamagedLine { damage, cause, records: 0, lines: 1, edits, user: false })
}

/// Whether a fragment is from a message that names a user as its author, and not from a tool result. It is judged by its bytes:
/// there is nothing else to go by.
fn begins_user(fragment: &[u8]) -> bool {
    let holds = |what: &[u8]| memmem::find(fragment, what).is_some();
    let spaced = |key: &str| [format!("\"{key}\":\"user\""), format!("\"{key}\": \"user\"")];
    let says = ["role", "type"].iter().flat_map(|key| spaced(key)).any(|pair| holds(pair.as_bytes()));
    says && !holds(b"tool_result") && !holds(b"toolUseResult") && !holds(b"functionResponse")
}

fn placed(mut edits: Vec<(Span, Vec<u8>)>, base: u64) -> Vec<(Span, Vec<u8>)> {
    for (at, _) in &mut edits {
        *at = Span::new(base + at.start, base + at.end);
    }
    // There may be a line of these for every few bytes.
    edits.shrink_to_fit();
    edits
}

/// What was odd about a line.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "five facts that have nothing to do with each other")]
struct GapFlags {
    nul: bool,
    bom: bool,
    fragment: bool,
    control: bool,
    name: bool,
}

impl GapFlags {
    fn gap(&mut self, gap: &[u8]) {
        self.nul |= gap.contains(&0);
        self.fragment |= is_fragment(gap);
        self.bom |= gap.iter().any(|byte| *byte > b' ') && !is_fragment(gap);
    }

    fn edits(&mut self, bytes: &[u8], edits: &[(Span, Vec<u8>)]) {
        for (at, _) in edits {
            let replaced = &bytes[at.start as usize..at.end as usize];
            match replaced {
                _ if replaced.contains(&0) => self.nul = true,
                [b'"' | b'\\'] => self.name = true,
                _ => self.control = true,
            }
        }
    }

    fn cause(&self) -> DamageCause {
        match self {
            Self { fragment: true, .. } => DamageCause::Spliced,
            Self { nul: true, .. } => DamageCause::Nul,
            Self { bom: true, .. } => DamageCause::Bom,
            Self { control: true, .. } => DamageCause::Control,
            Self { name: true, .. } => DamageCause::Name,
            _ => DamageCause::Spliced,
        }
    }
}

/// Whether there is more than white space and a byte order mark. Looks no further than it must: this is asked again and
/// again of what is left of a line.
fn is_fragment(gap: &[u8]) -> bool {
    let mut visible = gap.iter().copied().filter(|byte| *byte > b' ').take(BOM.len() + 1).peekable();
    visible.peek().is_some() && !visible.eq(BOM.iter().copied())
}

/// A whole record inside a damaged line: its offsets in that line, and the edits that would make it readable.
struct WholeRecord {
    start: usize,
    end: usize,
    edits: Vec<(Span, Vec<u8>)>,
}

/// All whole records of a line, in order; `None` if there are too many, or looking for them takes too long.
fn records(format: &Format, bytes: &[u8]) -> Option<Vec<WholeRecord>> {
    let (mut found, mut at, mut places) = (Vec::new(), 0, 0);
    let mut work = (bytes.len() + 1024) * PASSES_MAX;
    while let Some(open) = memchr(b'{', &bytes[at..]) {
        let start = at + open;
        match record(format, bytes, start, &mut work) {
            Some(record) => {
                at = record.end;
                places += record.edits.len();
                if found.len() == LINE_RECORDS_MAX || places > PLACES_MAX {
                    return None;
                }
                found.push(record);
            }
            // What runs on to the end is one record that was never finished, however deep.
            None if work == 0 => return runs_on(bytes, at).then_some(found),
            None => at = start + 1,
        }
    }
    Some(found)
}

/// Whether the object that begins after a place continues to the end of the line without an error.
fn runs_on(bytes: &[u8], from: usize) -> bool {
    let Some(open) = memchr(b'{', &bytes[from..]) else { return false };
    let rest = &bytes[from + open..];
    Tokeniser::new(0).feed(rest) == Fed::More
}

/// How many names of one record may be damaged. Each is read once more from the record's beginning.
const NAMES_MAX: usize = 4;

/// The record that begins at `start`, if there is one.
fn record(format: &Format, bytes: &[u8], start: usize, work: &mut usize) -> Option<WholeRecord> {
    let mut text = Cow::Borrowed(&bytes[start..]);
    let mut names: Vec<(Span, Vec<u8>)> = Vec::new();
    loop {
        let mut reading = Reading::new(start as u64, format);
        let fed = reading.feed(&text);
        let passed = match fed {
            Fed::Done(at) | Fed::Bad(at) => at,
            Fed::More | Fed::TooComplex => text.len(),
        };
        *work = work.saturating_sub(passed + 16);
        let taken = match fed {
            Fed::Done(taken) => taken,
            Fed::Bad(at) if *work > 0 && names.len() < NAMES_MAX => {
                let (place, was) = stumbled(format.names, &text, at)?;
                text.to_mut()[place] = was;
                let place = (start + place) as u64;
                names.push((Span::new(place, place + 1), [was].into()));
                continue;
            }
            Fed::TooComplex => {
                // What is inside it is not a record of its own.
                *work = 0;
                return None;
            }
            _ => return None,
        };
        let end = start + taken;
        // Alone on its line, it would be an entry if it could be read, whatever it means.
        let is_alone = !is_fragment(&bytes[end..]) && !is_fragment(&bytes[..start]);
        let doc = &reading.tokens.doc;
        let is_record = (is_alone && (format.vote)(doc) != Vote::Foreign) || format.is_record(doc);
        // What comes after the record has nothing to do with it.
        names.retain(|(at, _)| at.end <= end as u64);
        let mut edits = [reading.edits, names].concat();
        edits.sort_unstable_by_key(|(at, _)| at.start);
        return is_record.then_some(WholeRecord { start, end, edits });
    }
}

/// An object that is read although bytes are in it that cannot stand where they are. Each byte is gone over once.
struct Reading {
    tokens: Tokeniser,
    start: u64,
    /// What has to become of control characters.
    edits: Vec<(Span, Vec<u8>)>,
    /// The format's names: one with a NUL byte in it is damaged, and the byte does not just go.
    names: &'static [FieldNames],
}

impl Reading {
    fn new(start: u64, format: &Format) -> Self {
        Self { tokens: Tokeniser::new(start), start, edits: Vec::new(), names: format.names }
    }

    /// Continues with bytes of which the first were read already. Runs of control characters count as blanks.
    fn feed(&mut self, bytes: &[u8]) -> Fed {
        let mut last = None;
        loop {
            let fed = self.tokens.feed(bytes);
            let Fed::Bad(from) = fed else { return fed };
            if bytes[from] == 0 && stumbled(self.names, bytes, from).is_some() {
                return fed;
            }
            let inside = self.tokens.in_text();
            let run = bytes[from..].iter().take(if inside { usize::MAX } else { 1 });
            let to = from + run.take_while(|byte| **byte < b' ').count();
            // Where a blank will not do either, it was not the control character.
            if to == from || last.replace(from) == Some(from) {
                return fed;
            }
            let with = if inside { escaped(&bytes[from..to]) } else { Vec::new() };
            if self.edits.len() == PLACES_MAX {
                return Fed::TooComplex;
            }
            self.edits.push((Span::new(self.start + from as u64, self.start + to as u64), with));
            self.tokens.blank(bytes, from, to);
        }
    }
}

/// Control characters as JSON writes them. NUL bytes are what a file system puts where nothing was written.
fn escaped(controls: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    for byte in controls {
        match byte {
            0 => {}
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out
}
