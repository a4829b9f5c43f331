//! Shortening a string literal: how long its text is, and between which two units it may be cut.
//!
//! A literal may be larger than memory; it is read in windows, and no more of it than the question takes.

use crate::literal::{LiteralPiece, UNIT_BYTES_MAX, Unit, boundary, count, piece};
use crate::marker;
use crate::source::{Fault, HeldSource, Source, Span, window};
use alloc::vec;
use alloc::vec::Vec;

/// How much is read at a time to measure. Small enough for the stack: an allocator that gets as much back, text after
/// text, spends more on tidying up than is lost by reading oftener.
const MEASURE_BYTES: usize = ROOM_BYTES - marker::BYTES_MAX;

/// `MEASURE_BYTES`, with the bytes after it that are read to find markers.
const ROOM_BYTES: usize = 16 * 1024;

/// How much is read at a time for a content address: hashing goes several times as fast in long pieces.
const ADDRESS_BYTES: usize = 64 * 1024;

/// How many markers in a text are considered. A text with more is about markers.
const MARKERS_MAX: usize = 4096;

/// How much is read at a time, at most, to find one place.
const SEARCH_BYTES: usize = MEASURE_BYTES;

/// How much is read at least, however near the place is.
const SEARCH_BYTES_MIN: usize = 256;

/// No more room than this is made for most texts: those that are read again are short.
const SMALL_BYTES: usize = 4 * 1024;

/// A range that is searched several times is held in memory up to this length.
const HELD_BYTES: usize = 12 * 1024;

/// How much of a literal is counted at a time. After the last step that fits, units are counted one by one.
const STEP_BYTES: usize = 1024;

/// How far back a line's end is looked for at first.
const LINE_BYTES: u64 = 256;

/// How far apart a backslash and a place must be for the place to be sure to lie between two units.
const DOUBT_BYTES: u64 = 256;

/// The result of one pass over a literal.
#[derive(Clone, Debug)]
pub struct Measure {
    /// The inside of the literal, without quotes.
    pub span: Span,
    /// Length in the unit asked for, markers included.
    pub units: u64,
    /// Tailor's own marker, if it was cut before.
    pub own: Option<marker::FoundMarker>,
    /// Content address of the literal as written; zeros if it was not asked for.
    pub id: marker::TextId,
    unit: Unit,
}

impl Measure {
    /// A literal whose characters are counted already, to be cut for the sake of the length that is left: without
    /// an address and without a look for our own marker.
    pub fn counted(span: Span, chars: u64, unit: Unit) -> Self {
        Self { span, units: chars, own: None, id: marker::TextId::UNKNOWN, unit }
    }

    /// What it is measured in.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Length without our own marker and the line breaks around it: what counts against a limit.
    pub fn kept(&self) -> u64 {
        self.own.as_ref().map_or(self.units, |found| found.total - found.omitted)
    }

    /// Length of the text before it was first cut by us.
    pub fn original(&self) -> u64 {
        self.own.as_ref().map_or(self.units, |found| found.total)
    }
}

/// Reads the literal at `inner` (without quotes) once: its length, unless that is known, our marker in it, and if
/// `addressed` its content address.
pub fn measure(
    source: &dyn Source,
    inner: Span,
    known: Option<u64>,
    unit: Unit,
    addressed: bool,
) -> Result<Measure, Fault> {
    let mut hash = addressed.then(blake3::Hasher::new);
    let (mut markers, mut units) = (Vec::new(), known.unwrap_or(0));
    let block = if addressed { ADDRESS_BYTES } else { MEASURE_BYTES };
    for_each_block(source, inner, block, |at, bytes, owned| {
        if let Some(hash) = &mut hash {
            hash.update(&bytes[..owned]);
        }
        let room = MARKERS_MAX - markers.len();
        markers.extend(marker::find(bytes, owned, at).take(room));
        if known.is_none() {
            units += count(&bytes[..owned], unit);
        }
        true
    })?;
    let own = match markers.iter().find(|found| found.explains(units)) {
        None if !markers.is_empty() => of_other_unit(source, inner, unit, units, &markers)?,
        own => own.cloned(),
    };
    let id = hash.map_or(marker::TextId::UNKNOWN, |hash| marker::TextId::new(&hash.finalize()));
    Ok(Measure { span: inner, units, own, id, unit })
}

/// Our own marker, from a run under a policy that counted differently. The text around it is counted again, and what was
/// taken out is believed.
fn of_other_unit(
    source: &dyn Source,
    inner: Span,
    unit: Unit,
    units: u64,
    markers: &[marker::FoundMarker],
) -> Result<Option<marker::FoundMarker>, Fault> {
    for other in [Unit::Chars, Unit::Utf16, Unit::Bytes].into_iter().filter(|&other| other != unit) {
        let mut counted = 0;
        for_each_block(source, inner, MEASURE_BYTES, |_, bytes, owned| {
            counted += count(&bytes[..owned], other);
            true
        })?;
        if let Some(found) = markers.iter().find(|found| found.explains(counted)) {
            let around = units.saturating_sub(found.span.len());
            return Ok(Some(marker::FoundMarker {
                total: found.omitted.saturating_add(around),
                ..found.clone()
            }));
        }
    }
    Ok(None)
}

/// How much to keep of a text and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Units to keep at most at the beginning.
    pub head: u64,
    /// Units to keep at most at the end.
    pub tail: u64,
}

/// Where a text may be cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CutLines {
    /// Where what may stay ends, between any two characters.
    Anywhere,
    /// At the end of a line, if that leaves half of what may stay.
    #[default]
    Half,
    /// At the end of a line as ChatCLI looks for it: the line break itself must stand in the farther half of what may
    /// stay before the cut, and in the nearer half of what may stay after it, but not first.
    Inside,
}

/// A cut: the bytes to take out of a literal, between two units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// What is taken out, in bytes of the source.
    pub out: Span,
    /// Units that stay in front of it.
    pub head: u64,
    /// Units that stay after it.
    pub tail: u64,
    /// What stays in front ends with a line break (or is empty).
    pub head_ends_line: bool,
}

/// Chooses where to cut a measured literal: at most `keep.head` units stay before the cut and `keep.tail` after it,
/// each shortened to a line's end as `lines` says. Our own older marker always falls into what is taken out.
pub fn cut(source: &dyn Source, measure: &Measure, keep: Keep, lines: CutLines) -> Result<Cut, Fault> {
    let marker = measure.own.as_ref().map(|found| found.span);
    let head_end = marker.map_or(measure.span.end, |span| span.start);
    let head = head(source, measure.unit, Span::new(measure.span.start, head_end), keep.head, lines)?;
    let tail_start = marker.map_or(head.at, |span| span.end.max(head.at));
    let tail = tail(source, measure.unit, Span::new(tail_start, measure.span.end), keep.tail, lines)?;
    Ok(Cut {
        out: Span::new(head.at, tail.at),
        head: head.units,
        tail: tail.units,
        head_ends_line: head.line || head.at == measure.span.start,
    })
}

/// How many units the first `lines` lines of a measured literal have, if anything follows them before
/// our own marker; `None` also if there are `most` of them or more.
pub fn lines_end(
    source: &dyn Source,
    measure: &Measure,
    lines: u64,
    most: u64,
) -> Result<Option<u64>, Fault> {
    let end = measure.own.as_ref().map_or(measure.span.end, |found| found.span.start);
    let (mut left, mut behind, mut more) = (lines, measure.span.start, false);
    let far = measure.span.start.saturating_add(most.saturating_mul(UNIT_BYTES_MAX as u64));
    for_each_block(source, Span::new(measure.span.start, end), SEARCH_BYTES, |at, bytes, owned| {
        if left > 0 {
            behind = at + after_lines(&bytes[..owned], &mut left) as u64;
        }
        more = left == 0 && behind < end;
        left > 0 && behind < far
    })?;
    if !more {
        return Ok(None);
    }
    let mut units = 0;
    for_each_block(source, Span::new(measure.span.start, behind), SEARCH_BYTES, |_, bytes, owned| {
        units += count(&bytes[..owned], measure.unit);
        units < most
    })?;
    Ok((units < most).then_some(units))
}

/// The place after this many line breaks, or the end of the bytes; `left` is what then remains.
fn after_lines(bytes: &[u8], left: &mut u64) -> usize {
    let mut at = 0;
    while *left > 0 {
        let Some(calm) = memchr::memchr(b'\\', &bytes[at..]) else { return bytes.len() };
        let escape = piece(&bytes[at + calm..]);
        *left -= u64::from(escape.is_newline());
        at += calm + escape.raw;
    }
    at
}

/// How many line breaks stand in this part of a literal, which begins between two units.
pub fn line_breaks(source: &dyn Source, inner: Span) -> Result<u64, Fault> {
    let mut left = u64::MAX;
    for_each_block(source, inner, MEASURE_BYTES, |_, bytes, owned| {
        after_lines(&bytes[..owned], &mut left);
        true
    })?;
    Ok(u64::MAX - left)
}

/// A place between two units, with the number of units that are kept on its side.
#[derive(Clone, Copy)]
struct CutPoint {
    at: u64,
    units: u64,
    line: bool,
}

/// How many bytes are likely to hold so many units: a few more, because of escapes.
fn search_bytes(budget: u64) -> usize {
    budget.saturating_add(budget / 4).clamp(SEARCH_BYTES_MIN as u64, SEARCH_BYTES as u64) as usize
}

/// Where a head of at most `budget` units ends.
fn head(
    source: &dyn Source,
    unit: Unit,
    span: Span,
    budget: u64,
    lines: CutLines,
) -> Result<CutPoint, Fault> {
    if budget == 0 {
        return Ok(CutPoint { at: span.start, units: 0, line: false });
    }
    let stretch = span.len().min((search_bytes(budget) + marker::BYTES_MAX) as u64);
    let mut room = [0; HELD_BYTES];
    let source = &HeldSource::new(source, Span::new(span.start, span.start + stretch), &mut room)?;
    let hard = advance(source, unit, span, budget)?;
    if lines == CutLines::Anywhere {
        return Ok(hard);
    }
    // The last line's end before it, looked for in wider and wider steps.
    let mut back = LINE_BYTES;
    loop {
        let from = sure_place(source, span, hard.at.saturating_sub(back).max(span.start))?;
        let (mut behind, mut line) = (0, None);
        walk(source, Span::new(from, hard.at), |at, piece| {
            behind += piece.length(unit);
            if piece.is_newline() {
                line = Some(at + piece.raw as u64);
                behind = 0;
            }
            true
        })?;
        if let Some(at) = line {
            let units = hard.units - behind;
            let short = match lines {
                // The line break itself is the last of these units, and the first one is number 0.
                CutLines::Inside => units < budget / 2 + 2,
                _ => units * 2 < budget,
            };
            return Ok(if short { hard } else { CutPoint { at, units, line: true } });
        }
        if from == span.start || behind * 2 > budget {
            return Ok(hard);
        }
        back *= 4;
    }
}

/// Where a tail of at most `budget` units begins.
fn tail(
    source: &dyn Source,
    unit: Unit,
    span: Span,
    budget: u64,
    lines: CutLines,
) -> Result<CutPoint, Fault> {
    if budget == 0 {
        return Ok(CutPoint { at: span.end, units: 0, line: false });
    }
    let mut back = search_bytes(budget) as u64;
    let stretch = span.len().min(back + DOUBT_BYTES);
    let mut room = [0; HELD_BYTES];
    let source = &HeldSource::new(source, Span::new(span.end - stretch, span.end), &mut room)?;
    let hard = loop {
        let from = sure_place(source, span, span.end.saturating_sub(back).max(span.start))?;
        let mut units = 0;
        for_each_block(source, Span::new(from, span.end), MEASURE_BYTES, |_, bytes, owned| {
            units += count(&bytes[..owned], unit);
            true
        })?;
        if units <= budget && from > span.start {
            back = back.saturating_mul(2);
            continue;
        }
        let place = advance_at_least(source, unit, Span::new(from, span.end), units.saturating_sub(budget))?;
        break CutPoint { at: place.at, units: units - place.units, line: false };
    };
    if lines == CutLines::Anywhere {
        return Ok(hard);
    }
    let (mut left, mut line) = (hard.units, None);
    walk(source, Span::new(hard.at, span.end), |at, piece| {
        left -= piece.length(unit);
        if piece.is_newline() {
            line = Some(CutPoint { at: at + piece.raw as u64, units: left, line: true });
        }
        line.is_none() && left * 2 >= hard.units
    })?;
    let fits = |line: &CutPoint| match lines {
        CutLines::Inside => line.units + 1 < hard.units && line.units + 1 + hard.units / 2 > hard.units,
        _ => line.units * 2 >= hard.units,
    };
    Ok(line.filter(fits).unwrap_or(hard))
}

/// The place after at most `budget` units.
fn advance(source: &dyn Source, unit: Unit, span: Span, budget: u64) -> Result<CutPoint, Fault> {
    let begin = CutPoint { at: span.start, units: 0, line: false };
    let mut place = if budget > STEP_BYTES as u64 { strides(source, unit, span, budget)? } else { begin };
    // No more than a search that ends with the budget has in memory.
    let block = search_bytes(budget - place.units).min(2 * STEP_BYTES);
    for_each_block(source, Span::new(place.at, span.end), block, |at, bytes, owned| {
        let mut i = 0;
        while i < owned && place.units < budget {
            // Letters as they are count one each, whatever is counted.
            let calm =
                calm(&bytes[i..owned]).min(usize::try_from(budget - place.units).unwrap_or(usize::MAX));
            let (raw, units, line) = if calm > 0 {
                (calm, calm as u64, false)
            } else {
                let piece = piece(&bytes[i..]);
                (piece.raw, piece.length(unit), piece.is_newline())
            };
            if place.units + units > budget {
                return false;
            }
            i += raw;
            place = CutPoint { at: at + i as u64, units: place.units + units, line };
        }
        place.units < budget
    })?;
    Ok(place)
}

/// A place after at most `budget` units and not much fewer, counted in long steps.
fn strides(source: &dyn Source, unit: Unit, span: Span, budget: u64) -> Result<CutPoint, Fault> {
    let mut place = CutPoint { at: span.start, units: 0, line: false };
    for_each_block(source, span, search_bytes(budget), |at, bytes, owned| {
        let mut from = 0;
        while from < owned {
            let rest = &bytes[from..owned];
            let step = if rest.len() > STEP_BYTES + marker::BYTES_MAX {
                whole_units(rest, STEP_BYTES)
            } else {
                rest.len()
            };
            let units = place.units + count(&rest[..step], unit);
            if units > budget {
                return false;
            }
            from += step;
            place = CutPoint { at: at + from as u64, units, line: false };
        }
        place.units < budget
    })?;
    Ok(place)
}

/// How many bytes at the beginning are characters of their own: ASCII, no escape, and no stray byte after them.
fn calm(bytes: &[u8]) -> usize {
    let plain = bytes.iter().position(|&byte| byte == b'\\' || byte >= 0x80);
    plain.map_or(bytes.len(), |end| if bytes[end] & 0xc0 == 0x80 { end.saturating_sub(1) } else { end })
}

/// The first place after at least `wanted` units; a character of several units is taken whole.
fn advance_at_least(source: &dyn Source, unit: Unit, span: Span, wanted: u64) -> Result<CutPoint, Fault> {
    let mut place = advance(source, unit, span, wanted)?;
    if place.units < wanted {
        walk(source, Span::new(place.at, span.end), |at, piece| {
            place =
                CutPoint { at: at + piece.raw as u64, units: place.units + piece.length(unit), line: false };
            // The next character does not fit, so it is enough.
            false
        })?;
    }
    Ok(place)
}

/// A place between two units at or before `near`, found by looking a little ahead of it; by counting from the
/// beginning of the span where there is nothing but escapes.
fn sure_place(source: &dyn Source, span: Span, near: u64) -> Result<u64, Fault> {
    if near <= span.start {
        return Ok(span.start);
    }
    let from = near.saturating_sub(DOUBT_BYTES).max(span.start);
    let mut buffer = [0; DOUBT_BYTES as usize + 1];
    let bytes = window(source, Span::new(from, (near + 1).min(span.end)), &mut buffer)?;
    if let Some(at) = boundary(bytes, from == span.start) {
        return Ok(from + at as u64);
    }
    let mut place = span.start;
    for_each_block(source, Span::new(span.start, span.end), SEARCH_BYTES, |at, _, owned| {
        if at + owned as u64 <= near {
            place = at + owned as u64;
        }
        at + (owned as u64) < near
    })?;
    Ok(place)
}

/// Walks a literal in blocks that end between two units. `each` gets the offset, the block with up to
/// [`marker::BYTES_MAX`] bytes of what follows, and the length of the block proper; `false` ends the walk.
fn for_each_block(
    source: &dyn Source,
    inner: Span,
    block: usize,
    mut each: impl FnMut(u64, &[u8], usize) -> bool,
) -> Result<(), Fault> {
    let size = (block + marker::BYTES_MAX).min(inner.len() as usize);
    let (mut small, mut large, mut heap, mut at) = (None, None, None, inner.start);
    while at < inner.end {
        let span = Span::new(at, inner.end.min(at + size as u64));
        let window = if let Some(bytes) = source.lend(span) {
            bytes
        } else if size <= SMALL_BYTES {
            window(source, span, &mut small.get_or_insert([0; SMALL_BYTES])[..size])?
        } else if size <= ROOM_BYTES {
            window(source, span, &mut large.get_or_insert([0; ROOM_BYTES])[..size])?
        } else {
            window(source, span, heap.get_or_insert_with(|| vec![0; size]))?
        };
        let last = at + window.len() as u64 == inner.end;
        let owned = if last { window.len() } else { whole_units(window, window.len() - marker::BYTES_MAX) };
        if !each(at, window, owned) {
            return Ok(());
        }
        at += owned as u64;
    }
    Ok(())
}

/// Visits unit after unit, with its offset, until told to stop.
fn walk(
    source: &dyn Source,
    span: Span,
    mut visit: impl FnMut(u64, LiteralPiece) -> bool,
) -> Result<(), Fault> {
    for_each_block(source, span, 2 * STEP_BYTES, |at, bytes, owned| {
        let mut i = 0;
        while i < owned {
            let piece = piece(&bytes[i..]);
            if !visit(at + i as u64, piece) {
                return false;
            }
            i += piece.raw;
        }
        true
    })
}

/// How many bytes, at most `near`, are whole units. More than [`marker::BYTES_MAX`] bytes follow.
fn whole_units(bytes: &[u8], near: usize) -> usize {
    if let Some(at) = boundary(&bytes[..=near], false) {
        return at;
    }
    let mut at = 0;
    loop {
        let next = at + piece(&bytes[at..]).raw;
        if next > near {
            return at;
        }
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::JsonText;
    use alloc::string::String;
    use proptest::prelude::*;

    /// The characters of a literal as the tokeniser counts them.
    fn tokenised(raw: &[u8]) -> Option<JsonText> {
        let line = [b"{\"a\":\"", raw, b"\"}"].concat();
        let doc = crate::json::parse(&&line[..], Span::new(0, line.len() as u64)).unwrap();
        doc.map(|doc| JsonText::from_value(doc.get("a").unwrap()))
    }

    fn cut_all(raw: &[u8], unit: Unit, head: u64, tail: u64) -> (Measure, Cut) {
        let measure = measure(&raw, Span::new(0, raw.len() as u64), None, unit, true).unwrap();
        let cut = cut(&raw, &measure, Keep { head, tail }, CutLines::Half).unwrap();
        (measure, cut)
    }

    /// Counts by decoding, the slow and certain way.
    fn length(raw: &[u8], unit: Unit) -> u64 {
        let mut quoted = alloc::vec![b'"'];
        quoted.extend(raw);
        quoted.push(b'"');
        let text: String = serde_json::from_slice(&quoted).unwrap();
        match unit {
            Unit::Chars => text.chars().count() as u64,
            Unit::Utf16 => text.encode_utf16().count() as u64,
            Unit::Bytes => text.len() as u64,
        }
    }

    #[test]
    fn counts_each_unit() {
        let raw = r"a\n\u00e9é\ud83d\ude00😀\ud83d.".as_bytes();
        let of = |unit| measure(&raw, Span::new(0, raw.len() as u64), None, unit, false).unwrap().units;
        assert_eq!(of(Unit::Chars), 8);
        assert_eq!(of(Unit::Utf16), 10);
        assert_eq!(of(Unit::Bytes), 1 + 1 + 2 + 2 + 4 + 4 + 3 + 1);
    }

    #[test]
    fn a_marker_that_was_counted_otherwise_is_ours_all_the_same() {
        let raw = "é\\n[tailor: 7 of 9 chars omitted; full text: tailor show 3f9a1c20d7e4]\\né".as_bytes();
        let of = |unit| measure(&raw, Span::new(0, raw.len() as u64), None, unit, false).unwrap();
        assert_eq!((of(Unit::Chars).kept(), of(Unit::Chars).original()), (2, 9));
        // Two letters of two bytes, and the line breaks around the marker.
        assert_eq!((of(Unit::Bytes).kept(), of(Unit::Bytes).original()), (6, 13));
        let quoted = "ééééé [tailor: 7 of 9 chars omitted; full text: tailor show 3f9a1c20d7e4]".as_bytes();
        let whole = measure(&quoted, Span::new(0, quoted.len() as u64), None, Unit::Bytes, false).unwrap();
        assert_eq!(whole.own, None);
    }

    #[test]
    fn never_splits_a_pair_or_an_escape() {
        let raw = br"\ud83d\ude00\ud83d\ude00\ud83d\ude00";
        let (_, cut) = cut_all(raw, Unit::Utf16, 3, 3);
        assert_eq!((cut.out, cut.head, cut.tail), (Span::new(12, 24), 2, 2));
        let (_, cut) = cut_all(br"\\\\\\n\\", Unit::Chars, 2, 1);
        assert_eq!(cut.out, Span::new(4, 7));
    }

    #[test]
    fn lone_surrogates_and_broken_utf8_survive() {
        let raw = b"ab\\ud83dcd\xff\xfe\x80ef\\udc00";
        let (measure, cut) = cut_all(raw, Unit::Chars, 3, 2);
        assert_eq!(measure.units, 10);
        assert_eq!(cut.out, Span::new(8, 14));
    }

    #[test]
    fn prefers_line_ends() {
        let (_, cut) = cut_all(br"one\ntwo\nthree\nfour\nfive", Unit::Chars, 10, 7);
        assert_eq!((cut.out, cut.head, cut.tail, cut.head_ends_line), (Span::new(10, 23), 8, 4, true));
    }

    #[test]
    fn a_literal_larger_than_the_window_is_measured_and_cut_alike() {
        let raw = r"\u00e9\\x é\n".repeat(200_000).into_bytes();
        let (measure, cut) = cut_all(&raw, Unit::Chars, 1000, 1001);
        assert_eq!(measure.units, 6 * 200_000);
        assert_eq!(cut.head, 996);
        assert_eq!(cut.tail, 996);
        assert_eq!(length(&raw[..cut.out.start as usize], Unit::Chars), 996);
        assert_eq!(length(&raw[cut.out.end as usize..], Unit::Chars), 996);
    }

    #[test]
    fn an_escape_that_the_end_cut_off_is_measured_and_cut() {
        for raw in [&b"\\"[..], b"\\\x80", b"\\u00", b"a\\", b"\\ud83d\\"] {
            for unit in [Unit::Chars, Unit::Utf16, Unit::Bytes] {
                for (head, tail) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)] {
                    let (measure, cut) = cut_all(raw, unit, head, tail);
                    assert!(cut.head + cut.tail <= measure.units, "{raw:?} {unit:?} {head} {tail}");
                    assert!(cut.out.end <= raw.len() as u64);
                }
            }
        }
    }

    /// How much stays of a text of so many letters and a line break behind `before` of them.
    fn stays(before: usize, letters: usize, keep: Keep, lines: CutLines) -> u64 {
        let raw = "x".repeat(before) + "\\n" + &"y".repeat(letters - before);
        let measure = Measure::counted(Span::new(0, raw.len() as u64), letters as u64 + 1, Unit::Chars);
        let cut = cut(&raw.as_bytes(), &measure, keep, lines).unwrap();
        cut.head + cut.tail
    }

    /// Which half of what may stay the line break is in; and for some, that it is not the first of what stays after the cut.
    #[test]
    fn a_text_is_cut_at_the_end_of_a_line_in_the_right_half() {
        let (head, tail) = (Keep { head: 10, tail: 0 }, Keep { head: 0, tail: 10 });
        for (before, half, inside) in [(3, 10, 10), (4, 5, 10), (5, 6, 10), (6, 7, 7), (8, 9, 9), (9, 10, 10)]
        {
            assert_eq!(stays(before, 79, head, CutLines::Half), half, "{before}");
            assert_eq!(stays(before, 79, head, CutLines::Inside), inside, "{before}");
        }
        for (before, half, inside) in [(0, 9, 10), (1, 8, 8), (4, 5, 5), (5, 10, 10), (9, 10, 10)] {
            assert_eq!(stays(70 + before, 79, tail, CutLines::Half), half, "{before}");
            assert_eq!(stays(70 + before, 79, tail, CutLines::Inside), inside, "{before}");
        }
        // Far from the cut, and too far.
        for (before, far) in [(1_400, 1_401), (1_000, 1_001), (998, 2_000)] {
            assert_eq!(stays(before, 9_999, Keep { head: 2_000, tail: 0 }, CutLines::Half), far, "{before}");
        }
    }

    #[test]
    fn a_literal_of_escapes_alone_has_boundaries_too() {
        let raw = br"\ud83d\ude00".repeat(60_000);
        let (measure, _) = cut_all(&raw, Unit::Chars, 10, 10);
        assert_eq!(measure.units, 60_000);
    }

    proptest! {
        #[test]
        fn a_cut_is_exact_in_every_unit(
            parts in proptest::collection::vec(
                proptest::sample::select(alloc::vec!["a", "é", "😀", r"\n", r"\\", r"\u00e9", r"\ud83d\ude00", "\\\""]), 0..60),
            head in 0u64..40, tail in 0u64..40,
        ) {
            let raw = parts.concat().into_bytes();
            for unit in [Unit::Chars, Unit::Utf16, Unit::Bytes] {
                let (measure, cut) = cut_all(&raw, unit, head, tail);
                prop_assert_eq!(measure.units, length(&raw, unit));
                let (front, back) = (&raw[..cut.out.start as usize], &raw[cut.out.end as usize..]);
                // Both halves are literals of their own: nothing was split.
                prop_assert_eq!(length(front, unit), cut.head);
                prop_assert_eq!(length(back, unit), cut.tail);
                prop_assert!(cut.head <= head);
                prop_assert!(cut.tail <= tail || cut.out.is_empty());
            }
        }

        #[test]
        fn the_tokeniser_counts_characters_as_a_search_does(
            parts in proptest::collection::vec(
                proptest::sample::select(alloc::vec![
                    &b"a"[..], "é".as_bytes(), "😀".as_bytes(), br"\n", br"\\", br"\u00e9", br"\ud83d\ude00", br"\ud83d", br"\udc00",
                    b"\\\"", b"\xff", b"\x80", b"\xe2\x82", b"\xf0\x9f",
                ]),
                0..90,
            ),
        ) {
            let raw = parts.concat();
            let text = tokenised(&raw).unwrap();
            for unit in [Unit::Chars, Unit::Utf16, Unit::Bytes] {
                let counted = count(&raw, unit);
                prop_assert_eq!(text.length(unit).unwrap_or(counted), counted);
            }
            prop_assert_eq!(text.length(Unit::Chars), Some(text.chars));
        }

        #[test]
        fn any_bytes_are_measured_without_panic(raw in proptest::collection::vec(any::<u8>(), 0..200), head in 0u64..50, tail in 0u64..50) {
            for unit in [Unit::Chars, Unit::Utf16, Unit::Bytes] {
                let (measure, cut) = cut_all(&raw, unit, head, tail);
                prop_assert!(cut.head + cut.tail <= measure.units);
            }
        }
    }
}
