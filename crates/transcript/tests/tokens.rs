//! Compares the estimate of tokens with what providers counted, on real sessions.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use transcript::policy::{Policy, SignedThinking};
use transcript::tokens::context_tokens;
use transcript::{Piece, mend};

/// Agents whose sessions hold the provider's counts, by their folders, with the largest accepted error at the median
/// and at the 95th percentile, in percent. The rates were fitted to every second file in order of names; the others are
/// judged here. Gemini CLI's sessions with numbers are documents there, which are not lines, but for one of a few messages.
const AGENTS: &[(&str, u64, u64)] =
    &[("claude-code", 15, 40), ("codex", 15, 40), ("pi", 15, 40), ("kimi", 15, 40), ("copilot-cli", 15, 40)];

/// In how many places a session is judged, each time as if it ended there.
const PLACES: usize = 12;

/// The error of each judged place of a session, in percent.
fn errors(bytes: &[u8]) -> Vec<u64> {
    let mut ends: Vec<usize> = memchr::memchr_iter(b'\n', bytes).map(|at| at + 1).collect();
    ends.push(bytes.len());
    let line_of = |end: usize| memchr::memchr_iter(b'\n', &bytes[..end.saturating_sub(1)]).count() as u64 + 1;
    let mut found = Vec::new();
    for place in 0..4 * PLACES {
        // The last place is the end of the session.
        let end = ends[(ends.len() - 1) * (place + 1) / (4 * PLACES)];
        let Some(counted) = context_tokens(&&bytes[..end]).unwrap() else { continue };
        // A count from an earlier line would also judge what came after it.
        let Some(count) = counted.counted.filter(|count| count.line == line_of(end)) else { continue };
        found.push(counted.estimated.abs_diff(count.tokens) * 100 / count.tokens);
    }
    found
}

fn at(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

#[test]
fn real_estimates_are_near_what_providers_counted() {
    let Some(corpus) = std::env::var_os("TAILOR_CORPUS") else {
        // Not captured by the harness, which hides the output of tests that pass.
        let _ = std::io::stderr().write_all(b"SKIPPED: TAILOR_CORPUS names no folder of transcripts\n");
        return;
    };
    let mut wrong = Vec::new();
    eprintln!("agent         half    files  places  median   p95");
    for &(agent, median_max, p95_max) in AGENTS {
        let Ok(folder) = std::fs::read_dir(Path::new(&corpus).join(agent)) else { continue };
        let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let mut halves: BTreeMap<&str, (usize, Vec<u64>)> = BTreeMap::new();
        for (n, file) in files.iter().enumerate() {
            let errors = errors(&std::fs::read(file).unwrap());
            if errors.is_empty() {
                continue;
            }
            let half = halves.entry(if n % 2 == 0 { "judged" } else { "fitted" }).or_default();
            half.0 += 1;
            half.1.extend(errors);
        }
        for (half, (files, mut errors)) in halves {
            errors.sort_unstable();
            let (median, p95) = (at(&errors, 50), at(&errors, 95));
            eprintln!("{agent:12}  {half}  {files:5}  {:6}  {median:4} %  {p95:3} %", errors.len());
            if half == "judged" && (median > median_max || p95 > p95_max) {
                wrong.push(format!("{agent}: {median} % in the median, {p95} % at p95"));
            }
        }
    }
    assert!(wrong.is_empty(), "estimates are too far off:\n{}", wrong.join("\n"));
}

/// Removed thinking leaves no trace, so the count stays too high by that; but thinking is only removed together with a cut
/// before it, and the count falls by the cut.
#[test]
fn real_counts_fall_after_a_cut_that_strips_thinking() {
    let Some(corpus) = std::env::var_os("TAILOR_CORPUS") else {
        eprintln!("SKIPPED: TAILOR_CORPUS names no folder of transcripts");
        return;
    };
    let policy = Policy { result_chars_max: 2_000, thinking: SignedThinking::Strip, ..Policy::default() };
    let thinking = |bytes: &[u8]| memchr::memmem::find_iter(bytes, br#""type":"thinking""#).count();
    let mut stripped = 0;
    for file in std::fs::read_dir(Path::new(&corpus).join("claude-code")).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let Ok(repair) = mend(&&bytes[..], &policy).unwrap().repair else { continue };
        let mut new = Vec::new();
        for piece in repair.plan.pieces() {
            match piece {
                Piece::Kept(span) | Piece::Moved(span) => {
                    new.extend(&bytes[span.start as usize..span.end as usize]);
                }
                Piece::New(text) => new.extend(text),
            }
        }
        if thinking(&new) == thinking(&bytes) {
            continue;
        }
        stripped += 1;
        let [before, after] = [&bytes, &new].map(|text| context_tokens(&&text[..]).unwrap().unwrap().tokens);
        eprintln!("{before:8} -> {after:8} tokens  {}", path.file_name().unwrap().display());
        assert!(after < before, "{}", path.display());
    }
    assert!(stripped > 0, "no session is of a model that signs over what it was sent");
}
