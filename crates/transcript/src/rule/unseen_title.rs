//! S11: a session title that its agent does not find.

use super::base::{Cover, Feature, FindingSink, Help, Repeats, Rule, RuleInfo, about};
use crate::model::entry::{Entry, Service};
use crate::model::finding::{Finding, Fix, Guard, Held, Op, Severity};
use crate::model::transcript::Transcript;
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use serde::{Deserialize, Serialize};
use spans::source::{Fault, Span, ends_line_at, read_span};

/// How much of each end of a file is read to list it (`LITE_READ_BUF_SIZE` of the Agent SDK).
const WINDOW_BYTES: u64 = 65_536;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S11",
        name: "unseen-title",
        help: Help {
            what: "The last title of the session is neither in the first nor in the last 64 KiB of the file, and that is \
                   all that Claude Code reads to list sessions.",
            why: "The session is listed under another name, or cannot be found: \"No conversation found\". From 2.1.239 on \
                  Claude Code writes the title again by itself.",
            fix: "With --allow S11 the record is written once more, as the last line.",
            source: "claude-code #25090, #26140, #51284, #44367; sessions.py of the Agent SDK",
        },
        distant: true,
        model_sees: false,
        entry_decides: true,
        wakes: &[Feature::Title],
        repeats: Repeats::Once,
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.titles { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let bytes = session.transcript.bytes;
    let Some(at) = Titles::from_transcript(session.transcript).unseen(bytes) else { return Ok(()) };
    let entry = session.transcript.entries.partition_point(|entry| entry.span.start < at.start) as u32;
    let mut line = read_span(session.source, at)?;
    line.push(b'\n');
    let ended = ends_line_at(session.source, bytes)?;
    let fix = if !ended {
        // B1 has to be repaired first.
        Fix::held(Held::Tangled)
    } else if at.len() >= WINDOW_BYTES {
        Fix::NONE
    } else {
        Fix::guarded(Guard::Appends, vec![Op::Insert { at: bytes, with: line }])
    };
    let message = "the title stands where the agent does not look for it".to_string();
    out.push(Finding { fix, ..about(&RULE, session, entry, Severity::Note, message) });
    Ok(())
}

/// Places of the last title of each kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Titles {
    /// A title that the user gave. It counts before the other.
    given: Option<(u64, u64)>,
    /// A title that the model made.
    made: Option<(u64, u64)>,
}

impl Titles {
    pub(crate) fn from_transcript(transcript: &Transcript) -> Self {
        let mut titles = Self::default();
        for (_, entry) in transcript.unusual() {
            titles.take(entry);
        }
        titles
    }

    /// Adds an entry.
    pub(crate) fn take(&mut self, entry: &Entry) {
        match entry.service {
            Service::Title => self.given = Some((entry.span.start, entry.span.end)),
            Service::MadeTitle => self.made = Some((entry.span.start, entry.span.end)),
            _ => {}
        }
    }

    /// The record of the title that counts.
    pub(crate) fn best(self) -> Option<Span> {
        self.given.or(self.made).map(|(start, end)| Span::new(start, end))
    }

    /// The title, if it is outside the ends that are read in a file of this length.
    pub(crate) fn unseen(self, bytes: u64) -> Option<Span> {
        let seen = |at: Span| at.start < WINDOW_BYTES || at.end + WINDOW_BYTES > bytes;
        self.best().filter(|&at| !seen(at))
    }
}
