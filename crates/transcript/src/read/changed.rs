//! A text that was read before and has changed in places: only the lines there are read again. What
//! results is what a scan of the whole text gives.

use super::parts::line_end;
use super::scan::{self, Scanned};
use crate::model::entry::ContentIssueKind;
use crate::model::parts::TranscriptPart;
use crate::model::transcript::Transcript;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use memchr::{memchr_iter, memrchr};
use spans::source::{Fault, Source, Span, WINDOW_BYTES};

/// A change: a span of the old text, and how many bytes replace it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextChange {
    pub(crate) at: Span,
    pub(crate) length: u64,
}

/// The transcript of a text that was `old` before these sorted changes. `None` if it has to be scanned. Ids of the old text
/// stay in it.
pub(crate) fn scan_changed(
    before: Scanned,
    old: &dyn Source,
    new: &dyn Source,
    changes: &[TextChange],
) -> Result<Option<Scanned>, Fault> {
    let Some(format) = before.format.filter(|_| before.is_simple()) else { return Ok(None) };
    let session = before.transcript.session;
    let regions = regions(&before.transcript, old, new, changes)?;
    let again: u64 = regions.iter().map(|region| region.new.len()).sum();
    if again > new.len() / 2 {
        return Ok(None);
    }
    let (mut head_end, mut votes) = (before.head_end, before.votes);
    if regions.first().is_some_and(|first| first.old.start < head_end) {
        let head = scan::head(new)?;
        if head.undecided.is_some() || head.format.map(|found| found.name) != Some(format.name) {
            return Ok(None);
        }
        (head_end, votes) = (head.head_end, head.votes);
    }
    let mut joined = Joined::new(before, old);
    for region in &regions {
        let read = scan::lines(format, session, new, region.new, region.new.end, scan::entries_max(new))?;
        // What users say on damaged lines counts, but not where the format is still being decided.
        let damaged =
            !read.transcript.damage.is_empty() || !joined.before.transcript.damage_in(region.old).is_empty();
        let is_head = region.old.start < joined.before.head_end;
        if is_head && damaged || !joined.take(region, &read.transcript)? {
            return Ok(None);
        }
    }
    let mut transcript = joined.finish();
    transcript.bytes = new.len();
    let read = Scanned { format: Some(format), undecided: None, transcript, head_end, votes };
    let is_sure = read.transcript.entries.len() <= scan::entries_max(new) && !scan::may_be_document(&read);
    Ok(is_sure.then_some(read))
}

impl Scanned {
    /// Whether each line can be read without the others.
    fn is_simple(&self) -> bool {
        let Transcript { is_document, read_only, offsets, reasons, .. } = self.transcript;
        self.undecided.is_none() && !is_document && read_only.or(offsets).is_none() && !reasons
    }
}

/// Whole lines that are read again.
struct Region {
    /// Where they were.
    old: Span,
    /// Where they are.
    new: Span,
}

/// The lines that changes touch.
fn regions(
    before: &Transcript,
    old: &dyn Source,
    new: &dyn Source,
    changes: &[TextChange],
) -> Result<Vec<Region>, Fault> {
    let mut regions: Vec<Region> = Vec::new();
    // By how much the text after the change moves; to the front it wraps around.
    let mut shift = 0_u64;
    for (n, TextChange { at, length }) in changes.iter().enumerate() {
        // The last line may have no end, and then what comes after it is a part of it.
        let last = regions.pop_if(|last| at.start < last.old.end || last.old.end == old.len());
        let read_to = regions.last().map_or(0, |last| last.old.end);
        let (start, moved) = if let Some(last) = &last {
            (last.old.start, last.new.start)
        } else {
            let start = line_start(before, old, Span::new(read_to, at.start))?;
            (start, start.wrapping_add(shift))
        };
        shift = shift.wrapping_add(*length).wrapping_sub(at.len());
        let mut end = at.end.max(last.map_or(start, |last| last.old.end));
        // The next change extends the region if it begins in it.
        let next = changes.get(n + 1).map_or(u64::MAX, |next| next.at.start);
        // No line ends inside an entry.
        let inside = before.entry_over(end).filter(|_| end > start).map(|entry| entry.end);
        // Behind the change both texts are the same.
        let is_same = end > at.end;
        if end < old.len()
            && end <= next
            && !(inside.is_none()
                && begins_line(old, start, end)?
                && (is_same || begins_line(new, moved, end.wrapping_add(shift))?))
        {
            end = line_end(old, Span::new(inside.unwrap_or(end), old.len()))?.unwrap_or(old.len());
        }
        let new = Span::new(moved, end.wrapping_add(shift));
        regions.push(Region { old: Span::new(start, end), new });
    }
    Ok(regions)
}

/// Whether a line begins at an offset, given that one begins at `start` before it.
fn begins_line(source: &dyn Source, start: u64, at: u64) -> Result<bool, Fault> {
    let mut last = [0];
    if at > start {
        source.fill(at - 1, &mut last)?;
    }
    Ok(at == start || last == *b"\n")
}

/// The beginning of the line that holds the end of a span; a line begins where the span does.
fn line_start(before: &Transcript, source: &dyn Source, span: Span) -> Result<u64, Fault> {
    // No line begins inside an entry.
    let inside = before.entry_over(span.end).filter(|entry| entry.start >= span.start);
    if inside.is_none() && begins_line(source, span.start, span.end)? {
        return Ok(span.end);
    }
    let mut end = inside.map_or(span.end, |entry| entry.start);
    if inside.is_some() && begins_line(source, span.start, end)? {
        return Ok(end);
    }
    let mut room = vec![0; WINDOW_BYTES.min((end - span.start) as usize)];
    while end > span.start {
        let start = span.start.max(end.saturating_sub(room.len() as u64));
        let held = &mut room[..(end - start) as usize];
        source.fill(start, held)?;
        if let Some(place) = memrchr(b'\n', held) {
            return Ok(start + place as u64 + 1);
        }
        end = start;
    }
    Ok(span.start)
}

impl Transcript {
    /// The bytes of the last entry that begins before a place, if they reach there.
    fn entry_over(&self, at: u64) -> Option<Span> {
        let before = self.entries.partition_point(|entry| entry.span.start < at);
        let span = self.entries[..before].last()?.span;
        (at <= span.end).then_some(span)
    }
}

/// The transcript of the new text, as far as it is known what it is made from.
struct Joined<'b> {
    /// Without its ids.
    before: Scanned,
    old: &'b dyn Source,
    /// What was read again, with the ids of all.
    again: Transcript,
    parts: Vec<TranscriptPart>,
    /// How much of the old text is already taken over or replaced.
    at: u64,
    /// How far bytes and lines move from there on; wraps around if they move to the front.
    bytes: u64,
    lines: u64,
    /// The last offset up to which lines were counted, and their number.
    counted_to: (u64, u64),
    /// The first entry that names a different session than the first entry.
    foreign: Option<u32>,
    /// Each record has a number, one more than that of the record before.
    counted: bool,
}

impl<'b> Joined<'b> {
    fn new(mut before: Scanned, old: &'b dyn Source) -> Self {
        let Transcript { ordinals, user_text, user_texts, .. } = before.transcript;
        let mut again = Transcript::default();
        again.ids = core::mem::take(&mut before.transcript.ids);
        again.add_user_texts(user_text, user_texts);
        let entries = before.transcript.entries.len() as u64;
        let counted = ordinals.is_some_and(|(first, last)| last.checked_sub(first) == entries.checked_sub(1));
        Self {
            old,
            again,
            parts: Vec::new(),
            at: 0,
            bytes: 0,
            lines: 0,
            counted_to: (0, 0),
            foreign: before.first(ContentIssueKind::Foreign),
            counted: counted && before.first(ContentIssueKind::Ordinal).is_none(),
            before,
        }
    }

    /// Takes over what comes before a region, and then the region as it is now. Returns whether that was possible.
    fn take(&mut self, region: &Region, now: &Transcript) -> Result<bool, Fault> {
        let gone = self.before.transcript.entries_in(region.old);
        if !self.fits(region, &gone, now) {
            return Ok(false);
        }
        self.keep_to(region.old.start);
        let (hash, texts) = self.user_texts(region, &gone)?;
        self.again.add_user_texts(hash.wrapping_neg(), texts.wrapping_neg());
        self.again.add_user_texts(now.user_text, now.user_texts);
        let (start, end) = (self.lines_before(region.old.start)?, self.lines_before(region.old.end)?);
        self.again.in_database |= now.in_database;
        self.again.append_lines(now, start.wrapping_add(self.lines));
        self.parts.push(TranscriptPart { other: true, span: region.new, bytes: 0, lines: 0 });
        self.lines = self.lines.wrapping_add(now.lines).wrapping_sub(end - start);
        self.bytes = region.new.end.wrapping_sub(region.old.end);
        self.at = region.old.end;
        Ok(true)
    }

    /// Whether nothing changed in how a region and the other lines depend on each other.
    fn fits(&self, region: &Region, gone: &Range<usize>, now: &Transcript) -> bool {
        let before = &self.before.transcript;
        let lost_count = before.token_counts.is_some_and(|entry| gone.contains(&(entry as usize)));
        if lost_count && now.token_counts.is_none() || now.reasons || now.read_only.or(now.offsets).is_some()
        {
            return false;
        }
        let foreign = self.foreign.map(|entry| before.entries[entry as usize].span.start);
        if foreign.is_some_and(|foreign| region.old.start <= foreign) || now.session != before.session {
            return false;
        }
        let Some((first, _)) = before.ordinals else { return now.ordinals.is_none() };
        let numbers = (!gone.is_empty()).then(|| (first + gone.start as u64, first + gone.end as u64 - 1));
        let breaks = now.issues().iter().any(|issue| issue.kind == ContentIssueKind::Ordinal);
        self.counted && now.ordinals == numbers && !breaks
    }

    fn keep_to(&mut self, end: u64) {
        let span = Span::new(self.at, end);
        self.parts.push(TranscriptPart { other: false, span, bytes: self.bytes, lines: self.lines });
    }

    /// The user texts in the old region: their fingerprint and their number.
    fn user_texts(&self, region: &Region, gone: &Range<usize>) -> Result<(u64, u64), Fault> {
        let Scanned { format, transcript, .. } = &self.before;
        match format.filter(|_| !transcript.damage_in(region.old).is_empty()) {
            // Texts of damaged lines count too, but no entry records them.
            Some(format) => {
                let old = scan::lines(
                    format,
                    transcript.session,
                    self.old,
                    region.old,
                    region.old.end,
                    scan::entries_max(self.old),
                )?;
                Ok((old.transcript.user_text, old.transcript.user_texts))
            }
            None => Ok(transcript.said_by(gone)),
        }
    }

    /// How many lines of the old text precede a line start, or the end of the text. Must be called with increasing offsets.
    fn lines_before(&mut self, at: u64) -> Result<u64, Fault> {
        let Transcript { bytes, lines, entries, .. } = &self.before.transcript;
        if at == *bytes {
            return Ok(*lines);
        }
        let next = entries.partition_point(|entry| entry.span.start < at);
        if let Some(entry) = entries.get(next).filter(|entry| entry.span.start == at) {
            return Ok(entry.line - 1);
        }
        // Count only the lines since the last entry.
        let last = next.checked_sub(1).map(|last| (entries[last].span.start, entries[last].line - 1));
        let (from, mut count) = last.unwrap_or_default().max(self.counted_to);
        self.old.pieces(Span::new(from, at), &mut |bytes| {
            count += memchr_iter(b'\n', bytes).count() as u64;
            true
        })?;
        self.counted_to = (at, count);
        Ok(count)
    }

    fn finish(mut self) -> Transcript {
        let Transcript { bytes, lines, .. } = self.before.transcript;
        self.keep_to(bytes);
        let Self { before: Scanned { transcript: mut own, .. }, mut again, parts, .. } = self;
        own.lines = lines.wrapping_add(self.lines);
        own.ids = core::mem::take(&mut again.ids);
        own.in_database |= again.in_database;
        (own.user_text, own.user_texts) = (again.user_text, again.user_texts);
        own.weave(&again, &parts, None);
        own
    }
}

impl Scanned {
    /// The first entry with such an issue.
    fn first(&self, kind: ContentIssueKind) -> Option<u32> {
        self.transcript.issues().iter().find(|issue| issue.kind == kind).map(|issue| issue.entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::parts::Parts;
    use alloc::format;
    use alloc::string::String;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    /// Lines as agents write them, and others. `N` is the line's number.
    const PI: &[&str] = &[
        r#"{"type":"message","id":"eN","parentId":"eP","timestamp":"2026-07-01T10:00:00.000Z","message":{"role":"user","content":"go N"}}"#,
        r#"{"type":"message","id":"eN","parentId":"eP","timestamp":"2026-07-01T10:00:00.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"sN"},{"type":"toolCall","id":"cN","name":"ls","arguments":{}}],"model":"m","stopReason":"toolUse"}}"#,
        r#"{"type":"message","id":"eN","parentId":"eP","timestamp":"2026-07-01T10:00:00.000Z","message":{"role":"toolResult","toolCallId":"cP","toolName":"ls","content":[{"type":"text","text":"a 😀 \\ud83d\\ude00 N"},{"type":"text","text":" "}]}}"#,
        r#"{"type":"custom","id":"eN","timestamp":"2026-07-01T10:00:00.000Z","customType":"x"}"#,
        r#"{"type":"compaction","id":"eN","parentId":"eP","timestamp":"t","summary":"s","firstKeptEntryId":"e3"}"#,
    ];
    const CLAUDE: &[&str] = &[
        r#"{"type":"user","uuid":"uN","parentUuid":"uP","sessionId":"s","message":{"role":"user","content":"go N"},"timestamp":"t"}"#,
        r#"{"type":"assistant","uuid":"uN","parentUuid":"uP","sessionId":"s","message":{"id":"mN","role":"assistant","model":"m","content":[{"type":"tool_use","id":"cN","name":"Bash","input":{}}],"stop_reason":"tool_use"},"timestamp":"t"}"#,
        r#"{"type":"user","uuid":"uN","parentUuid":"uP","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"cP","content":[{"type":"text","text":""},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}]},"toolUseResult":{"stdout":"N"},"timestamp":"t"}"#,
        r#"{"type":"user","uuid":"uN","parentUuid":"uP","sessionId":"other","message":{"role":"user","content":"from elsewhere"},"timestamp":"t"}"#,
        r#"{"type":"progress","uuid":"uN","parentUuid":"uP","sessionId":"s","timestamp":"t"}"#,
    ];
    const CODEX: &[&str] = &[
        r#"{"timestamp":"t","ordinal":N,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go N"}]}}"#,
        r#"{"timestamp":"t","ordinal":N,"type":"response_item","payload":{"type":"function_call","call_id":"cN","name":"shell","arguments":"{}"}}"#,
        r#"{"timestamp":"t","ordinal":N,"type":"response_item","payload":{"type":"function_call_output","call_id":"cP","output":"ok N"}}"#,
        r#"{"timestamp":"t","ordinal":N,"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"total_tokens":N}}}}"#,
    ];
    const CHAT: &[&str] = &[
        r#"{"role":"user","content":"go N"}"#,
        r#"{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[{"id":"cN","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"cN","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#,
        r#"{"role":"tool","tool_call_id":"cP","content":"a.txt"}"#,
    ];
    /// What happens to lines.
    const ODD: &[&str] = &[
        "",
        "no record",
        "{\"a\":\u{0}1}",
        "[1]",
        "{\"type\":\"x\"}{\"type\":\"y\"}",
        "{\"a\":\"\u{2028}\"}",
    ];

    fn session() -> impl Strategy<Value = String> {
        let kinds = select(vec![PI, CLAUDE, CODEX, CHAT]);
        let lines = vec((any::<Index>(), 0u8..100), 0..90);
        (kinds, lines, 40usize..80, prop::bool::ANY).prop_map(|(kinds, lines, plain, ends)| {
            let of = |kind: &str, n: usize| {
                kind.replace('N', &format!("{n}")).replace('P', &format!("{}", n.max(1) - 1))
            };
            let mut all: Vec<String> = (0..plain).map(|n| of(kinds[n % 3 % kinds.len()], n)).collect();
            for (kind, odd) in lines {
                let line = if odd < 10 { ODD[kind.index(ODD.len())] } else { kinds[kind.index(kinds.len())] };
                all.push(of(line, all.len()));
            }
            all.join("\n") + if ends { "\n" } else { "" }
        })
    }

    /// Replaces bytes by new ones.
    fn edits() -> impl Strategy<Value = Vec<(Index, Index, u8, String)>> {
        let new = select(vec![
            "",
            "x",
            "\n",
            "\\n",
            "{\"type\":\"custom\",\"id\":\"new\"}\n",
            "\"role\":\"user\",",
            "}\n{",
        ]);
        vec((any::<Index>(), any::<Index>(), any::<u8>(), new.prop_map(String::from)), 0..5)
    }

    /// The text with edits, and these as changes.
    fn edited(text: &str, edits: &[(Index, Index, u8, String)]) -> (Vec<u8>, Vec<TextChange>) {
        let ends: Vec<usize> =
            text.match_indices('\n').map(|(at, _)| at + 1).chain([0, text.len()]).collect();
        let mut spans: Vec<(usize, usize, &str)> = edits
            .iter()
            .map(|(from, to, kind, new)| {
                // Whole lines, from the middle of one to that of another, inside one, or nothing.
                let from =
                    if kind % 2 == 0 { ends[from.index(ends.len())] } else { from.index(text.len() + 1) };
                let to = match kind % 8 {
                    0 | 1 => ends[to.index(ends.len())],
                    2 => ends.iter().copied().filter(|end| *end > from).min().unwrap_or(from),
                    3 | 4 => (from + to.index(300)).min(text.len()),
                    _ => from,
                };
                (from.min(to), from.max(to).min(from.min(to) + 600), new.as_str())
            })
            .collect();
        spans.sort_unstable();
        let (mut out, mut changes, mut at) = (Vec::new(), Vec::new(), 0);
        for (from, to, new) in spans {
            if from < at {
                continue;
            }
            out.extend_from_slice(&text.as_bytes()[at..from]);
            out.extend_from_slice(new.as_bytes());
            changes.push(TextChange { at: Span::new(from as u64, to as u64), length: new.len() as u64 });
            at = to;
        }
        out.extend_from_slice(&text.as_bytes()[at..]);
        (out, changes)
    }

    fn spelled(read: &Scanned) -> String {
        format!(
            "{:?} {:?} {}\n{}",
            read.format.map(|format| format.name),
            read.undecided,
            read.head_end,
            read.transcript.spelled()
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_put_together_is_what_a_scan_gives(text in session(), edits in edits()) {
            let (new, changes) = edited(&text, &edits);
            let before = scan::scan(&text.as_bytes()).unwrap();
            let whole = scan::scan(&new.as_slice()).unwrap();
            if let Some(read) = scan_changed(before, &text.as_bytes(), &new.as_slice(), &changes).unwrap() {
                prop_assert_eq!(spelled(&read), spelled(&whole), "{:?}\n{}", changes, String::from_utf8_lossy(&new));
            }
        }

        #[test]
        fn parts_make_what_a_scan_gives(text in session(), part_bytes in 3000u64..20_000) {
            let whole = scan::scan(&text.as_bytes()).unwrap();
            let Some(mut parts) = Parts::begin(&text.as_bytes(), part_bytes, 1).unwrap() else { return Ok(()) };
            let reader = parts.reader();
            for part in parts.rest() {
                parts.add(&reader.read(&text.as_bytes(), part).unwrap());
            }
            if let Some(read) = parts.finish() {
                prop_assert_eq!(spelled(&read), spelled(&whole));
                let ids = |read: &Scanned| read.transcript.ids.texts().map(<[u8]>::to_vec).collect::<Vec<_>>();
                prop_assert_eq!(ids(&read), ids(&whole));
            }
        }
    }

    /// The last line has no end, and changes in it and after it are changes of one line; nothing that a user says on a damaged
    /// line counts where the format is still being decided.
    #[test]
    fn rare_places_give_what_a_scan_gives() {
        let line =
            |n: usize| PI[n % 2].replace('N', &format!("{n}")).replace('P', &format!("{}", n.max(1) - 1));
        let text = (0..90).map(line).collect::<Vec<_>>().join("\n");
        let changed = |at: [(usize, &str); 2]| {
            let (mut new, mut changes) = (text.clone(), Vec::new());
            for (at, put) in at {
                changes.push(TextChange { at: Span::new(at as u64, at as u64), length: put.len() as u64 });
            }
            at.iter().rev().for_each(|(at, put)| new.insert_str(*at, put));
            let before = scan::scan(&text.as_bytes()).unwrap();
            let whole = scan::scan(&new.as_bytes()).unwrap();
            let read = scan_changed(before, &text.as_bytes(), &new.as_bytes(), &changes).unwrap();
            read.map(|read| assert_eq!(spelled(&read), spelled(&whole))).is_some()
        };
        let last = text.rfind('\n').unwrap() + 1;
        assert!(changed([(last, "x"), (text.len(), "\n")]));
        let third = text.match_indices('\n').nth(1).unwrap().0;
        changed([(third, "x"), (text.len(), "\n")]);
    }

    /// Only the newest count of tokens is remembered, and the one before it counts once that is gone.
    #[test]
    fn an_earlier_count_of_tokens_counts_if_the_newest_is_gone() {
        let line = |n: usize| {
            let kind = if n == 60 || n == 80 { 3 } else { 0 };
            CODEX[kind].replace("\"ordinal\":N,", "").replace('N', &format!("{n}")) + "\n"
        };
        let lines: Vec<String> = (0..90).map(line).collect();
        let text = lines.concat();
        let start = lines[..80].concat().len();
        let gone = start..start + lines[80].len();
        let new = [&text[..gone.start], &text[gone.end..]].concat();
        let changes = [TextChange { at: Span::new(gone.start as u64, gone.end as u64), length: 0 }];
        let before = scan::scan(&text.as_bytes()).unwrap();
        let whole = scan::scan(&new.as_bytes()).unwrap();
        assert_eq!((before.transcript.token_counts, whole.transcript.token_counts), (Some(80), Some(60)));
        if let Some(read) = scan_changed(before, &text.as_bytes(), &new.as_bytes(), &changes).unwrap() {
            assert_eq!(spelled(&read), spelled(&whole));
        }
    }

    /// It must succeed in most cases: a test that never compares would prove nothing.
    #[test]
    fn it_is_put_together_where_lines_stand_alone() {
        let line = |n: usize| {
            PI[n % 3].replace('N', &format!("{n}")).replace('P', &format!("{}", n.max(1) - 1)) + "\n"
        };
        let text: String = (0..150).map(line).collect();
        let at = Span::new(text.find("go 48").unwrap() as u64, text.find("go 48").unwrap() as u64 + 5);
        let new = text.replacen("go 48", "stay", 1);
        let before = scan::scan(&text.as_bytes()).unwrap();
        let changes = [TextChange { at, length: 4 }];
        let read = scan_changed(before, &text.as_bytes(), &new.as_bytes(), &changes).unwrap();
        assert_eq!(read.map(|read| read.transcript.entries.len()), Some(150));
        let mut parts = Parts::begin(&text.as_bytes(), 9_000, 1).unwrap().unwrap();
        let reader = parts.reader();
        assert!(parts.rest().count() > 1);
        assert!(parts.rest().all(|part| parts.add(&reader.read(&text.as_bytes(), part).unwrap())));
        assert_eq!(parts.finish().map(|read| read.transcript.entries.len()), Some(150));
    }
}
