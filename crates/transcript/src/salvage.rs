//! What can be had of a line that is not one object: whole records between fragments, records with stray control
//! characters or NUL bytes in them, records that line breaks have cut into several lines.
//!
//! Only damaged lines come here, and each is held in memory while it is looked at. Nothing is ever completed: a record is
//! whole in the bytes that are there, or it is a fragment.

use crate::block::Marks;
use crate::entry::{Damage, DamageKind};
use crate::format::names::stumbled;
use crate::format::{Format, Vote};
use crate::json::{Fed, Tokeniser};
use crate::scan::BOM;
use crate::session::Session;
use crate::source::{Fault, Source, Span, read_span};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use memchr::{memchr, memchr2, memmem};

/// Longer lines are only reported.
pub(crate) const LINE_BYTES_MAX: u64 = 16 << 20;

/// So many lines may have been one record.
const JOINED_LINES_MAX: usize = 64;

/// How many times its length a line may be gone over, looking for where a record begins.
const PASSES_MAX: usize = 64;

/// What was wrong with a line, or with several that were one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Whole records, and fragments between them.
    Spliced,
    /// NUL bytes.
    Nul,
    /// A byte order mark before the record.
    Bom,
    /// Control characters that should have been escaped.
    Control,
    /// A byte of a name was written over by one that ends it.
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
pub(crate) struct Wreck {
    /// The damage; its span covers all lines concerned.
    pub damage: Damage,
    pub cause: Cause,
    /// How many records are in it.
    pub records: usize,
    /// What has to go, and what comes in its place: sorted, and no two overlap.
    pub edits: Vec<(Span, Vec<u8>)>,
    /// Whether what has to go holds the beginning of a user's message.
    pub user: bool,
}

impl Wreck {
    /// Whether it is the end of the file, not ended by a line break. NUL bytes alone are no line.
    pub(crate) fn is_torn(&self) -> bool {
        self.damage.kind == DamageKind::Torn && (self.cause != Cause::Nul || self.records > 0)
    }
}

/// All lines of a session that are no records.
pub(crate) fn wrecks(session: &Session<'_>) -> Result<Vec<Wreck>, Fault> {
    let damage: Vec<Damage> =
        session.transcript.damage.iter().copied().filter(|damage| is_broken(damage.kind)).collect();
    let mut wrecks = Vec::new();
    let mut at = 0;
    while at < damage.len() {
        let (wreck, lines) = look(session, &damage[at..])?;
        wrecks.push(wreck);
        at += lines;
    }
    Ok(wrecks)
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
fn look(session: &Session<'_>, damage: &[Damage]) -> Result<(Wreck, usize), Fault> {
    let first = damage[0];
    let unknown = Wreck { damage: first, cause: Cause::Unknown, records: 0, edits: Vec::new(), user: false };
    if first.kind == DamageKind::TooComplex || first.span.len() > LINE_BYTES_MAX {
        return Ok((unknown, 1));
    }
    let alone = one(session, first)?;
    if alone.as_ref().is_none_or(|wreck| wreck.records == 0) && may_go_on(first.kind) {
        let joined = joined(session, damage)?;
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
fn joined(session: &Session<'_>, damage: &[Damage]) -> Result<Option<(Wreck, usize)>, Fault> {
    let start = damage[0].span.start;
    for lines in 2..=damage.len().min(JOINED_LINES_MAX) {
        let (before, last) = (damage[lines - 2], damage[lines - 1]);
        let whole = Span::new(start, last.span.end);
        if whole.len() > LINE_BYTES_MAX
            || !is_blank(session.source, Span::new(before.span.end, last.span.start))?
        {
            return Ok(None);
        }
        let bytes = read_span(session.source, whole)?;
        // It must begin with the first line, and not only with NUL bytes there, and end with the last one.
        let mut work = bytes.len() * 2;
        let first = &bytes[..damage[0].span.len() as usize];
        let Some(open) = first.iter().position(|byte| !byte.is_ascii_whitespace()) else { return Ok(None) };
        if first.iter().all(|byte| *byte <= b' ') {
            return Ok(None);
        }
        let Some(found) = record(session.format, &bytes, open, &mut work) else { continue };
        if bytes[found.end..].iter().all(u8::is_ascii_whitespace) {
            let mut edits: Vec<_> = found.edits.into_iter().map(|edit| placed(edit, start)).collect();
            between_tokens(&damage[..lines], &mut edits);
            let damage = Damage { span: whole, ..damage[0] };
            let wreck = Wreck { damage, cause: Cause::Broken, records: 1, edits, user: false };
            return Ok(Some((wreck, lines)));
        }
    }
    Ok(None)
}

/// Takes out the line breaks that are no part of a text: JSON does not mind them, but a record has to be one line.
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
fn one(session: &Session<'_>, damage: Damage) -> Result<Option<Wreck>, Fault> {
    let bytes = read_span(session.source, damage.span)?;
    let Some(records) = records(session.format, &bytes) else { return Ok(None) };
    let torn = damage.kind == DamageKind::Torn;
    // Whole objects before a torn one are entries already.
    let before =
        session.transcript.entries.last().is_some_and(|last| torn && last.span.end == damage.span.start);
    let (mut edits, mut at, mut odd) = (Vec::new(), 0, Odd::default());
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
        let wreck = nothing(session.source, damage, edits, &odd)?;
        return Ok(Some(Wreck { user: begins_user(&bytes), ..wreck }));
    }
    if torn || !rest.iter().all(u8::is_ascii_whitespace) {
        edits
            .push((Span::new(at as u64, bytes.len() as u64), if torn { b"\n".to_vec() } else { Vec::new() }));
    }
    let user = edits.iter().any(|(at, _)| begins_user(&bytes[at.start as usize..at.end as usize]));
    let edits = edits.into_iter().map(|edit| placed(edit, damage.span.start)).collect();
    Ok(Some(Wreck { damage, cause: odd.cause(), records: records.len(), edits, user }))
}

/// A line without a record goes with its line break.
fn nothing(
    source: &dyn Source,
    damage: Damage,
    mut edits: Vec<(Span, Vec<u8>)>,
    odd: &Odd,
) -> Result<Wreck, Fault> {
    let mut end = [0];
    if source.read(damage.span.end, &mut end)? == 1 && end == *b"\n" {
        edits[0].0.end += 1;
    }
    let edits = edits.into_iter().map(|edit| placed(edit, damage.span.start)).collect();
    let cause = if odd.nul && !odd.fragment { Cause::Nul } else { Cause::Nothing };
    Ok(Wreck { damage, cause, records: 0, edits, user: false })
}

/// Whether a fragment is of a message that says that a user wrote it, and is no result of a tool. It is told by its bytes:
/// there is no more to go by.
fn begins_user(fragment: &[u8]) -> bool {
    let holds = |what: &[u8]| memmem::find(fragment, what).is_some();
    let spaced = |key: &str| [format!("\"{key}\":\"user\""), format!("\"{key}\": \"user\"")];
    let says = ["role", "type"].iter().flat_map(|key| spaced(key)).any(|pair| holds(pair.as_bytes()));
    says && !holds(b"tool_result") && !holds(b"toolUseResult") && !holds(b"functionResponse")
}

fn placed((at, with): (Span, Vec<u8>), base: u64) -> (Span, Vec<u8>) {
    (Span::new(base + at.start, base + at.end), with)
}

/// What was odd about a line.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "five facts that have nothing to do with each other")]
struct Odd {
    nul: bool,
    bom: bool,
    fragment: bool,
    control: bool,
    name: bool,
}

impl Odd {
    fn gap(&mut self, gap: &[u8]) {
        self.nul |= gap.contains(&0);
        let rest: Vec<u8> = gap.iter().copied().filter(|byte| *byte > b' ').collect();
        match rest.strip_prefix(BOM) {
            Some([]) => self.bom = true,
            _ => self.fragment |= !rest.is_empty(),
        }
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

    fn cause(&self) -> Cause {
        match self {
            Self { fragment: true, .. } => Cause::Spliced,
            Self { nul: true, .. } => Cause::Nul,
            Self { bom: true, .. } => Cause::Bom,
            Self { control: true, .. } => Cause::Control,
            Self { name: true, .. } => Cause::Name,
            _ => Cause::Spliced,
        }
    }
}

/// A whole record inside a line: offsets in that line, and what would make it readable.
struct Found {
    start: usize,
    end: usize,
    edits: Vec<(Span, Vec<u8>)>,
}

/// All whole records of a line, in order; `None` if looking for them takes too long.
fn records(format: &dyn Format, bytes: &[u8]) -> Option<Vec<Found>> {
    let (mut found, mut at) = (Vec::new(), 0);
    let mut work = (bytes.len() + 1024) * PASSES_MAX;
    while let Some(open) = memchr(b'{', &bytes[at..]) {
        let start = at + open;
        match record(format, bytes, start, &mut work) {
            Some(record) => {
                at = record.end;
                found.push(record);
            }
            // What runs on to the end is one record that was never finished, however deep.
            None if work == 0 => return runs_on(bytes, at).then_some(found),
            None => at = start + 1,
        }
    }
    Some(found)
}

/// Whether what begins behind a place goes on to the end of the line without a fault.
fn runs_on(bytes: &[u8], from: usize) -> bool {
    let Some(open) = memchr(b'{', &bytes[from..]) else { return false };
    let rest = &bytes[from + open..];
    matches!(Tokeniser::new().feed_all(rest, 0, &mut Marks::default()), Fed::More)
}

/// The record that begins at `start`, if there is one.
fn record(format: &dyn Format, bytes: &[u8], start: usize, work: &mut usize) -> Option<Found> {
    let mut edits: Vec<(Span, Vec<u8>)> = Vec::new();
    // Bytes that cannot stand where they are become spaces, one for one, so that places stay.
    let mut clean: Vec<u8> = Vec::new();
    loop {
        let text = if clean.is_empty() { &bytes[start..] } else { &clean[..] };
        let mut tokens = Tokeniser::new();
        let fed = tokens.feed_all(text, 0, &mut Marks::default());
        let passed = match fed {
            Fed::Done(taken) => taken,
            Fed::Bad(at) => at,
            Fed::More | Fed::TooComplex => text.len(),
        };
        *work = work.saturating_sub(passed + 16);
        match fed {
            Fed::Done(taken) => {
                // What is behind the record has nothing to do with it.
                edits.retain(|(at, _)| at.end <= (start + taken) as u64);
                edits.sort_unstable_by_key(|(at, _)| at.start);
                let end = start + taken;
                // What nothing else stands beside would be an entry if it could be read, whatever it means.
                let belongs = is_alone(bytes, start, end) && format.vote(&tokens.doc) != Vote::Foreign;
                let is_record = belongs || format.is_record(&tokens.doc);
                return is_record.then_some(Found { start, end, edits });
            }
            Fed::Bad(at)
                if *work > 0
                    && let Some((place, was)) = stumbled(format.names(), text, at) =>
            {
                if clean.is_empty() {
                    clean = bytes[start..].to_vec();
                }
                clean[place] = was;
                let place = (start + place) as u64;
                edits.push((Span::new(place, place + 1), [was].into()));
            }
            Fed::Bad(at) if text[at] < b' ' && *work > 0 => {
                let inside = tokens.in_text();
                let end = if inside { string_end(text, at) } else { at + 1 };
                if clean.is_empty() {
                    clean = bytes[start..].to_vec();
                }
                edits.extend(controls(&mut clean, at, end, inside, start));
            }
            _ => return None,
        }
    }
}

/// Whether there is nothing else in the line.
fn is_alone(bytes: &[u8], start: usize, end: usize) -> bool {
    let mut around = Odd::default();
    around.gap(&bytes[..start]);
    around.gap(&bytes[end..]);
    !around.fragment
}

/// Where the string ends that a place lies in.
fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(next) = memchr2(b'"', b'\\', &bytes[at..]) {
        at += next;
        if bytes[at] == b'"' {
            return at;
        }
        at = (at + 2).min(bytes.len());
    }
    bytes.len()
}

/// Takes the control characters of a stretch out: what has to be done about each run of them.
fn controls(clean: &mut [u8], from: usize, to: usize, inside: bool, base: usize) -> Vec<(Span, Vec<u8>)> {
    let mut edits = Vec::new();
    let mut at = from;
    while at < to {
        let run = clean[at..to].iter().take_while(|byte| **byte < b' ').count();
        if run > 0 {
            let with = if inside { escaped(&clean[at..at + run]) } else { Vec::new() };
            edits.push((Span::new((base + at) as u64, (base + at + run) as u64), with));
            clean[at..at + run].fill(b' ');
        }
        at += run.max(1);
    }
    edits
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
