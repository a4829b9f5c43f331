//! Any bytes: no panic, every place lies within the bytes, and pieces of any size are read alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spans::cut::measure;
use spans::json::JsonText;
use spans::literal::Unit;
use transcript::entry::Transcript;
use transcript::scan::{Scanner, scan};
use transcript::{Source, Span, examine};
use transcript_fuzz::policies;

fuzz_target!(|data: &[u8]| {
    for policy in policies() {
        let found = examine(&data, &policy).expect("bytes in memory can be read");
        for finding in &found.findings {
            assert!((1..=found.facts.lines).contains(&finding.line), "{}", finding.message);
        }
    }
    places(data, &scan(&data).expect("bytes in memory can be read").transcript);
    for size in [1, 3, data.len() / 2 + 1] {
        in_pieces(data, size);
    }
});

fn places(data: &[u8], transcript: &Transcript) {
    let whole = Span::new(0, Source::len(&data));
    assert_eq!(transcript.bytes, whole.end);
    let (mut at, mut list) = (0, Span::new(0, 0));
    for (n, entry) in transcript.entries.iter().enumerate() {
        if entry.listed {
            // A message in the list of the record before it.
            assert!(list.contains(entry.span), "{entry:?}");
            list.start = entry.span.end;
        } else {
            assert!(at <= entry.span.start && whole.contains(entry.span), "{entry:?}");
            (at, list) = (entry.span.end, entry.span);
        }
        assert!(transcript.calls_of(n as u32).all(|call| entry.span.contains(transcript.calls[call].block)));
        for result in transcript.results_of(n as u32) {
            assert!(entry.span.contains(transcript.results[result].block));
            transcript.bodies_of(result).iter().for_each(|body| text(data, entry.span, body));
        }
        transcript.sides_of(n as u32).iter().for_each(|side| text(data, entry.span, side));
        assert!(transcript.thinking_of(n as u32).iter().all(|block| entry.span.contains(block.block)));
    }
    for damage in &transcript.damage {
        assert!(whole.contains(damage.span) && damage.line <= transcript.lines, "{damage:?}");
    }
}

/// A text lies in its entry, and was counted while it was read as it is counted by itself.
fn text(data: &[u8], entry: Span, text: &JsonText) {
    assert!(entry.contains(text.inner), "{text:?}");
    let measured = measure(&data, text.inner, None, Unit::Chars, false).expect("bytes in memory can be read");
    assert_eq!(text.chars, measured.units, "{text:?}");
}

fn in_pieces(data: &[u8], size: usize) {
    let once = scan(&data).expect("bytes in memory can be read").transcript;
    let mut scanner = Scanner::new();
    data.chunks(size).for_each(|piece| scanner.feed(piece));
    let pieces = scanner.finish(data.len() as u64).transcript;
    assert_eq!(format!("{:?}", once.entries), format!("{:?}", pieces.entries));
    assert_eq!(format!("{:?}", once.calls), format!("{:?}", pieces.calls));
    assert_eq!(format!("{:?}", once.results), format!("{:?}", pieces.results));
    let places = |read: &Transcript| -> Vec<_> {
        read.damage.iter().map(|damage| (damage.line, damage.span)).collect()
    };
    assert_eq!(places(&once), places(&pieces));
    assert_eq!((once.lines, once.user_text), (pieces.lines, pieces.user_text));
}
