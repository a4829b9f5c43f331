//! Whether an append changes what was found in a transcript, decided from the append alone.
//!
//! A [`Judge`] remembers where the last full look ended and which parents the next entry may have. It computes the
//! [`Feature`]s of the appended lines and asks whether one of them wakes a rule that is selected (the rules' own `wakes`). It
//! never finds anything itself: either a full look would find what the last one found ([`Verdict::Same`]), or it does not
//! know ([`Verdict::Look`]).
//!
//! ```
//! use std::sync::Arc;
//! use transcript::{Policy, judge::{Judge, Verdict}};
//! let mut text = "{\"role\":\"user\",\"content\":\"hello\"}\n".to_string();
//! let (mut judge, _) = Judge::new(&text.as_bytes(), &Arc::new(Policy::default())).unwrap();
//! text += "{\"role\":\"assistant\",\"content\":\"hello\"}\n";
//! assert_eq!(judge.append(&text.as_bytes()).unwrap(), Verdict::Same);
//! assert_eq!(judge.facts().entries, 2);
//! text += "{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"whose?\"}\n";
//! assert!(matches!(judge.append(&text.as_bytes()).unwrap(), Verdict::Look(_)));
//! ```

use crate::examine::context::Messages;
use crate::examine::look::Examination;
use crate::examine::mend::{Mended, examine_and_remember, mend_and_remember};
use crate::examine::survey::Survey;
use crate::format::Head;
use crate::model::overflow::Cause;
use crate::model::policy::Policy;
use crate::plan::Rendered;
use crate::read::scan::{ENTRIES_MAX, Known, scan_from};
use crate::rule::unseen_title::Titles;
use crate::rule::{Feature, bound_thinking};
use crate::session::failure::failure_in;
use crate::session::tokens::{ContextTokens, Count, Entries};
use crate::session::{Facts, Session};
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use spans::source::{Fault, Source, Span, read_span, window};

mod branch;
mod seen;
mod state;
mod turn;

use seen::Key;
use state::{State, Taken};

/// How many of the first and of the last known bytes are compared, to notice that the file was rewritten.
const END_BYTES: u64 = 4096;

/// What is remembered of a transcript, to judge what is appended. Holds nothing of its text. Only the build that stored it
/// may read it, and then needs the policy and the facts as well: see [`Judge::restored`].
#[derive(Clone, Serialize, Deserialize)]
pub struct Judge {
    #[serde(skip)]
    policy: Arc<Policy>,
    #[serde(skip)]
    facts: Facts,
    undecided: Option<Head>,
    /// Up to here no line ends after the known ones.
    searched: u64,
    /// The first bytes of the known lines, and the last.
    ends: Key,
    /// What is known of the session, or why that is not enough.
    state: Result<State, Feature>,
    messages: Messages,
    /// The count of tokens; `None` as in [`Judge::counted`].
    count: Option<Count>,
}

/// What a look leaves for the judge. `undecided` are the votes on the format so far, if later objects would still count.
struct Remembered {
    state: State,
    undecided: Option<Head>,
    count: Option<Count>,
}

fn remembered(session: &Session<'_>, found: &Survey<'_>) -> Result<Remembered, Feature> {
    if found.is_cut() {
        // Findings that were only counted may change with an append.
        return Err(Feature::Unsettled);
    }
    if session.transcript.reasons {
        // Each new call is compared with all calls before.
        return Err(Feature::Unsettled);
    }
    let state = State::of(session, &found.findings)?;
    Ok(Remembered { state, undecided: session.undecided, count: session.tokens.get().cloned() })
}

/// What an append changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A look would find what the last one found, at the same places, and [`Judge::facts`]. Also if nothing was appended.
    Same,
    /// The same for all whole lines. After them, a line has begun that may still be written; a look now would call it torn.
    Begun,
    /// Only a full look can tell, because of this feature. The judge is of no use any more.
    Look(Feature),
}

impl Judge {
    /// Looks at all of a transcript and remembers its end.
    pub fn new(source: &dyn Source, policy: &Arc<Policy>) -> Result<(Self, Examination), Fault> {
        let mut known = Err(Feature::Rewritten);
        let mut remember = |session: &Session<'_>, found: &Survey<'_>| known = remembered(session, found);
        let found = examine_and_remember(source, policy, &mut remember)?;
        let judge = Self::of(source, policy, &found, known)?;
        Ok((judge, found))
    }

    /// Draws a plan as [`crate::mend`] does, and remembers the end of the transcript as it is, and as the plan makes it
    /// if that is another one.
    pub fn mend(source: &dyn Source, policy: &Arc<Policy>) -> Result<(Mended, Self, Option<Self>), Fault> {
        let mut known = Vec::new();
        let mut remember = |session: &Session<'_>, found: &Survey<'_>| known.push(remembered(session, found));
        let mended = mend_and_remember(source, policy, &mut |_| {}, &mut remember)?;
        let last = if known.len() > 1 { known.pop() } else { None };
        let first = known.into_iter().next().unwrap_or(Err(Feature::Rewritten));
        let before = Self::of(source, policy, &mended.before, first)?;
        let after = match (&mended.repair, last) {
            (Ok(repair), Some(last)) => match &repair.after {
                Some(after) => Some(Self::of(&Rendered::new(source, &repair.plan), policy, after, last)?),
                None => None,
            },
            _ => None,
        };
        Ok((mended, before, after))
    }

    /// What was remembered of a source that was looked at.
    fn of(
        source: &dyn Source,
        policy: &Arc<Policy>,
        found: &Examination,
        mut known: Result<Remembered, Feature>,
    ) -> Result<Self, Fault> {
        let facts = found.facts;
        let bytes = facts.bytes;
        // What a repair brings to light may be about what comes.
        if !found.only_cuts {
            known = Err(Feature::Unsettled);
        }
        if facts.format.is_some() && !ends_a_line(source, bytes)? {
            known = Err(Feature::Rewritten);
        }
        let (state, undecided, count) = match known {
            Ok(Remembered { state, undecided, count }) => (Ok(state), undecided, count),
            Err(feature) => (Err(feature), None, None),
        };
        let count = count.filter(|_| found.headline.is_settled(facts.entries));
        let ends = ends_of(source, bytes)?;
        Ok(Self {
            policy: policy.clone(),
            facts,
            undecided,
            searched: bytes,
            ends,
            state,
            messages: found.messages,
            count,
        })
    }

    /// One that was written down, with what it was told by and what was in the lines that it knows.
    #[must_use]
    pub fn restored(self, policy: &Arc<Policy>, facts: &Facts) -> Self {
        Self { policy: policy.clone(), facts: *facts, ..self }
    }

    /// Whether appends can be judged at all.
    pub fn is_of_use(&self) -> bool {
        self.state.is_ok()
    }

    /// What is in the lines that are known.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// How many messages the known lines hold, and how many tokens the context has; `None` if only a look can tell, or what
    /// the session is called, or how much there is of what was found.
    pub fn counted(&self) -> Option<(Messages, ContextTokens)> {
        self.count.as_ref().map(|count| (self.messages, count.context_tokens()))
    }

    /// The policy of the look.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// How much memory this takes, about.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.state.as_ref().map_or(0, State::weight)
    }

    /// Reads what was appended to the known lines, and of these only the first and the last bytes. A fault changes nothing.
    pub fn append(&mut self, source: &dyn Source) -> Result<Verdict, Fault> {
        Ok(match self.advance(source)? {
            Ok(verdict) => verdict,
            Err(feature) => {
                // What was half taken in must not be built upon.
                self.state = Err(feature);
                Verdict::Look(feature)
            }
        })
    }

    fn advance(&mut self, source: &dyn Source) -> Result<Result<Verdict, Feature>, Fault> {
        let (length, bytes) = (source.len(), self.facts.bytes);
        let state = match &mut self.state {
            Ok(state) => state,
            Err(feature) => return Ok(Err(*feature)),
        };
        if length < bytes {
            return Ok(Err(Feature::Rewritten));
        }
        if ends_of(source, bytes)? != self.ends {
            return Ok(Err(Feature::Rewritten));
        }
        let from = self.searched.min(length);
        let Some(end) = last_line_end(source, Span::new(from, length))? else {
            self.searched = length;
            return Ok(Ok(if length > bytes { Verdict::Begun } else { Verdict::Same }));
        };
        let Some(format) = self.facts.format else { return Ok(Err(Feature::Rewritten)) };
        let known = Known { format, undecided: self.undecided, bytes, lines: self.facts.lines };
        let Some(read) = scan_from(known, source, end)? else { return Ok(Err(Feature::Rewritten)) };
        let added = read.transcript;
        if added.reasons {
            return Ok(Err(Feature::Odd));
        }
        let ends = ends_of(source, end)?;
        let breaks = turn::line_breaks(source, &added, &self.policy)?;
        let cut = state.minds_cuts() && bound_thinking::holds_marker(source, &added, 0..added.results.len())?;
        let mut awaits = self.facts.awaits;
        let (spoke, taken) = match state.take_all(&added, (&breaks, cut), &self.policy, &mut awaits) {
            Ok(taken) => taken,
            Err(feature) => return Ok(Err(feature)),
        };
        let all = Entries { transcript: &added, source, format };
        let count = match &taken {
            Some(taken) => counted_on(self.count.clone(), all, taken)?,
            None => None,
        };
        let said = taken.iter().flatten().filter(|taken| taken.says).count();
        let failed = match spoke {
            Some(entry) => failure_in(source, format, &added.entries[entry as usize])?,
            None => self.facts.failed,
        };
        if failed.is_some_and(|failed| failed.cause == Cause::InvalidThinking) {
            return Ok(Err(Feature::Unsettled));
        }
        let facts = &mut self.facts;
        (facts.awaits, facts.failed) = (awaits, failed);
        self.messages.all += said;
        self.messages.seen += said;
        facts.bytes = end;
        facts.lines = added.lines;
        facts.entries += added.entries.len();
        facts.calls += added.calls.len();
        facts.results += added.results.len();
        if facts.entries > ENTRIES_MAX {
            return Ok(Err(Feature::Rewritten));
        }
        (self.undecided, self.ends, self.searched, self.count) = (read.undecided, ends, length, count);
        Ok(Ok(if length > end { Verdict::Begun } else { Verdict::Same }))
    }
}

/// The count with what was appended.
fn counted_on(count: Option<Count>, added: Entries<'_>, taken: &[Taken]) -> Result<Option<Count>, Fault> {
    let Some(mut count) = count.filter(|_| Titles::of(added.transcript).best().is_none()) else {
        return Ok(None);
    };
    for (entry, taken) in (0..).zip(taken) {
        if !count.take(added, entry, taken.place)? {
            return Ok(None);
        }
    }
    Ok(Some(count))
}

/// The first and the last bytes of the known part: who rewrites a file rewrites one of them.
fn ends_of(source: &dyn Source, bytes: u64) -> Result<Key, Fault> {
    let (first, last) =
        (Span::new(0, bytes.min(END_BYTES)), Span::new(bytes.saturating_sub(END_BYTES), bytes));
    let mut both = read_span(source, first)?;
    both.extend(read_span(source, last)?);
    Ok(Key::of(&both))
}

/// Whether a line ends after the first `bytes` of a source, or they are none.
///
/// # Errors
///
/// When the source cannot be read.
pub fn ends_a_line(source: &dyn Source, bytes: u64) -> Result<bool, Fault> {
    let mut last = [0];
    Ok(bytes == 0 || window(source, Span::new(bytes - 1, bytes), &mut last)? == b"\n")
}

/// Behind the last line break of a span.
fn last_line_end(source: &dyn Source, span: Span) -> Result<Option<u64>, Fault> {
    let (mut at, mut end) = (span.start, None);
    if span.is_empty() {
        return Ok(None);
    }
    source.pieces(span, &mut |bytes| {
        end = memchr::memrchr(b'\n', bytes).map(|last| at + last as u64 + 1).or(end);
        at += bytes.len() as u64;
        true
    })?;
    Ok(end)
}
