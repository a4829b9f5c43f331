//! Damage to real transcripts: to their beginnings, as far as they are healthy.

use super::harm::{self, Harm};
use super::judge::HealthySession;
use super::requests::refusals_of;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use spans::source;
use std::fs;
use std::path::PathBuf;
use transcript::plan::Rendered;
use transcript::{Awaits, Policy, Source, Span, examine, mend};

/// The longest beginning of a transcript that is used.
const BYTES_MAX: usize = 30_000;

/// Fewer lines hardly make a session.
const LINES_MIN: usize = 7;

/// The repaired beginnings of all transcripts in these formats that their providers accept.
pub(crate) fn sessions(files: Vec<PathBuf>, formats: &[&'static str]) -> Vec<HealthySession> {
    let mut sessions = Vec::new();
    for path in files {
        let bytes = fs::read(&path).unwrap();
        let end = if bytes.len() <= BYTES_MAX {
            bytes.len()
        } else {
            bytes[..BYTES_MAX].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)
        };
        let bytes = at_rest(&bytes[..end]);
        let found = examine(&bytes.as_slice(), &Policy::default()).unwrap();
        let Some(format) =
            formats.iter().find(|name| found.facts.format.map(|format| format.name) == Some(name))
        else {
            continue;
        };
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
        if lines >= LINES_MIN && refusals_of(format, &bytes).unwrap().is_empty() {
            let session = HealthySession::new(&path.display().to_string(), format, &bytes);
            let end = super::judge::end(&session, &Harm::None);
            if end.needed > 0 && end.is_whole() {
                sessions.push(session);
            }
        }
    }
    sessions
}

/// The most complete lines at whose end no tool is awaited, because an open turn is never changed; repaired.
fn at_rest(bytes: &[u8]) -> Vec<u8> {
    let mut end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    while end > 0 {
        let found = examine(&&bytes[..end], &Policy::default()).unwrap();
        if found.facts.awaits != Some(Awaits::Tool) {
            break;
        }
        end = bytes[..end - 1].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    }
    let source = &bytes[..end];
    match mend(&source, &Policy::default()).unwrap().repair {
        Ok(repair) => {
            let rendered = Rendered::new(&source, &repair.plan);
            source::read_span(&rendered, Span::new(0, rendered.len())).unwrap()
        }
        Err(_) => source.to_vec(),
    }
}

/// A number of damaged samples, the same each time. Each session occurs equally often.
pub(crate) fn samples(
    sessions: &[HealthySession],
    of_lines: bool,
    count: usize,
) -> impl Iterator<Item = (&HealthySession, Harm)> {
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut draw = move |below: usize| (rng.next_u64() % below as u64) as usize;
    (0..count).map(move |_| {
        let session = &sessions[draw(sessions.len())];
        let all = harm::all(&session.lines);
        // There are far more keys' bytes than lines, so both are drawn separately.
        let lines: Vec<Harm> = all.iter().filter(|harm| !matches!(harm, Harm::Key(..))).copied().collect();
        let kinds = if of_lines { &lines } else { &all };
        (session, kinds[draw(kinds.len())])
    })
}
