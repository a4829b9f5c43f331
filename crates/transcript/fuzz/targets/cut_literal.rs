//! Any bytes, any unit, any budget: no panic. If the bytes can stand in a JSON string, what stays of a cut one counts
//! exactly what the cut says, and nothing is split. The first three bytes choose the unit and the budgets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spans::cut::CutLines;
use spans::cut::{Keep, cut, measure};
use spans::literal::{Unit, decode, quote};
use transcript::Span;

const UNITS: [Unit; 3] = [Unit::Chars, Unit::Utf16, Unit::Bytes];

fuzz_target!(|data: &[u8]| {
    let [unit, head, tail, literal @ ..] = data else { return };
    let unit = UNITS[usize::from(*unit) % UNITS.len()];
    let keep = Keep { head: u64::from(*head), tail: u64::from(*tail) };
    let count = |bytes: &[u8]| units(bytes, unit);

    let whole = Span::new(0, literal.len() as u64);
    let measured = measure(&literal, whole, None, unit, true).expect("bytes in memory can be read");
    let cut = cut(&literal, &measured, keep, CutLines::Half).expect("bytes in memory can be read");
    assert!(whole.contains(cut.out), "{cut:?}");
    let text = decode(literal);
    if !is_literal(literal) {
        return;
    }
    if let Some(certain) = by_decoding(literal, unit) {
        assert_eq!(measured.units, certain);
    }
    let (front, rest) = literal.split_at(cut.out.start as usize);
    let (out, back) = rest.split_at(cut.out.len() as usize);
    assert_eq!((count(front), count(back)), (cut.head, cut.tail), "{cut:?}");
    assert_eq!(count(front) + count(out) + count(back), measured.units, "{cut:?}");
    assert!(cut.head <= keep.head, "{cut:?}");
    assert!(cut.tail <= keep.tail || out.is_empty(), "{cut:?}");
    assert!(measured.own.is_none_or(|marker| cut.out.contains(marker.span) || out.is_empty()));

    let mut quoted = Vec::new();
    quote(&text, &mut quoted);
    assert_eq!(decode(&quoted[1..quoted.len() - 1]), text);
});

/// Whether quotes around the bytes make them a JSON string, but for what is not UTF-8: others are no entry's text.
fn is_literal(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        rest = match rest {
            [] => return true,
            [b'\\', b'u', a, b, c, d, rest @ ..]
                if [a, b, c, d].iter().all(|byte| byte.is_ascii_hexdigit()) =>
            {
                rest
            }
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', rest @ ..] => rest,
            [b'\\' | b'"' | 0..0x20, ..] => return false,
            [_, rest @ ..] => rest,
        }
    }
}

fn units(literal: &[u8], unit: Unit) -> u64 {
    measure(&literal, Span::new(0, literal.len() as u64), None, unit, false)
        .expect("bytes in memory can be read")
        .units
}

/// The count of a literal that any JSON reader accepts.
fn by_decoding(literal: &[u8], unit: Unit) -> Option<u64> {
    let quoted = [b"\"", literal, b"\""].concat();
    let text: String = serde_json::from_slice(&quoted).ok()?;
    Some(match unit {
        Unit::Chars => text.chars().count(),
        Unit::Utf16 => text.encode_utf16().count(),
        Unit::Bytes => text.len(),
    } as u64)
}
