//! Damage of real transcripts: their beginnings, as far as they are healthy.

use super::folder::gather;
use super::harm::{self, Harm};
use super::judge::Session;
use super::requests::refusals_of;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use spans::source;
use std::fs;
use std::path::Path;
use transcript::plan::Rendered;
use transcript::{Awaits, Policy, Source, Span, examine, mend};

/// Each transcript is cut to so many bytes at most.
const BYTES_MAX: usize = 30_000;

/// Fewer lines are hardly a session.
const LINES_MIN: usize = 7;

/// The beginnings of all transcripts of these formats, mended, that their providers take then.
pub(crate) fn sessions(corpus: &Path, formats: &[&'static str]) -> Vec<Session> {
    let (mut files, mut sessions) = (Vec::new(), Vec::new());
    gather(corpus, &mut files);
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
            let session = Session::new(&path.display().to_string(), format, &bytes);
            let end = super::judge::end(&session, &Harm::None);
            if end.needed > 0 && end.is_whole() {
                sessions.push(session);
            }
        }
    }
    sessions
}

/// As many whole lines as there are until nothing waits for a tool, which is never touched; and mended.
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

/// So many damages, of all or of whole lines, the same each time; each session as often as any other.
pub(crate) fn samples(
    sessions: &[Session],
    of_lines: bool,
    count: usize,
) -> impl Iterator<Item = (&Session, Harm)> {
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut draw = move |below: usize| (rng.next_u64() % below as u64) as usize;
    (0..count).map(move |_| {
        let session = &sessions[draw(sessions.len())];
        let all = harm::all(&session.lines);
        // There are far more bytes than lines.
        let lines: Vec<Harm> = all.iter().filter(|harm| !matches!(harm, Harm::Key(..))).copied().collect();
        let kinds = if of_lines { &lines } else { &all };
        (session, kinds[draw(kinds.len())])
    })
}
