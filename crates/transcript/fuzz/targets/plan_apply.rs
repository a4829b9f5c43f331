//! Any bytes: a plan keeps what it does not edit, its pieces give what `Rendered` reads, and mending the result
//! changes nothing more. With `STRICT=1` a plan that the verdict turns down counts as a failure too, unless it would
//! leave nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spans::source::read_span;
use transcript::verdict::Worse;
use transcript::{Piece, Plan, Policy, Rendered, Source, Span, mend};
use transcript_fuzz::policies;

fuzz_target!(|data: &[u8]| {
    for policy in policies() {
        settles(data, &policy);
    }
});

fn settles(data: &[u8], policy: &Policy) {
    let mended = mend(&data, policy).expect("bytes in memory can be read");
    let repair = match mended.repair {
        Ok(repair) => repair,
        Err(worse) => {
            let nothing_left = matches!(worse, Worse::Emptied | Worse::FormatLost);
            assert!(nothing_left || std::env::var_os("STRICT").is_none(), "turned down: {worse}");
            return;
        }
    };
    let after = apply(data, &repair.plan);
    let rendered = Rendered::new(&data, &repair.plan);
    assert_eq!(rendered.len(), repair.plan.length_after());
    let read = read_span(&rendered, Span::new(0, rendered.len())).expect("bytes in memory can be read");
    assert!(after == read, "pieces and Rendered differ");
    assert!(!repair.plan.is_empty() || after == data, "an empty plan changes something");

    let again = mend(&&after[..], policy).expect("bytes in memory can be read");
    if let Ok(second) = again.repair {
        assert!(second.plan.is_empty(), "a second run changes something: {:?}", second.plan);
    }
}

fn apply(data: &[u8], plan: &Plan) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    for piece in plan.pieces() {
        match piece {
            Piece::Kept(span) => {
                assert!(at <= span.start, "what stays, stays in order");
                at = span.end;
                out.extend_from_slice(&data[span.start as usize..span.end as usize]);
            }
            Piece::Moved(span) => out.extend_from_slice(&data[span.start as usize..span.end as usize]),
            Piece::New(bytes) => out.extend(bytes),
        }
    }
    out
}
