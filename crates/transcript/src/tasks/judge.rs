//! Decides, from an append alone, whether it changes what was found in a transcript.
//!
//! A [`Judge`] remembers where the last full look ended and which parents the next entry may have. It computes the
//! [`Feature`]s of the appended lines and asks whether one of them wakes a rule that is selected (the rules' own `wakes`). It
//! never finds anything itself: either a full look would find what the last one found ([`Judgement::Same`]), or it does not
//! know ([`Judgement::Look`]).
//!
//! ```
//! use std::sync::Arc;
//! use transcript::{Policy, Situation, judge::{Judge, Judgement}};
//! let mut text = "{\"role\":\"user\",\"content\":\"hello\"}\n".to_string();
//! let (policy, situation) = (Arc::new(Policy::default()), Situation::default());
//! let (mut judge, _) = Judge::new(&text.as_bytes(), &policy, &situation).unwrap();
//! text += "{\"role\":\"assistant\",\"content\":\"hello\"}\n";
//! assert_eq!(judge.append(&text.as_bytes()).unwrap(), Judgement::Same);
//! assert_eq!(judge.facts().entries, 2);
//! text += "{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"whose?\"}\n";
//! assert!(matches!(judge.append(&text.as_bytes()).unwrap(), Judgement::Look(_)));
//! ```

use crate::examine::context::Messages;
use crate::examine::look::Examination;
use crate::examine::mend::{Mended, examine_and_remember, mend_and_remember};
use crate::examine::survey::Survey;
use crate::format::Head;
use crate::model::overflow::Cause;
use crate::model::policy::Policy;
use crate::model::situation::{Case, Situation};
use crate::plan::Rendered;
use crate::read::scan::{ReadTo, Scanned, entries_max, scan, scan_from};
use crate::rule::unseen_title::Titles;
use crate::rule::{Feature, bound_thinking, may_be_crowded, woken_by};
use crate::session::failure::failure_in;
use crate::session::tokens::{ContextTokens, Count, Entries};
use crate::session::{Facts, Session};
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use spans::source::{Fault, Source, Span, ends_line_at, read_span};

mod branch;
mod seen;
mod state;
mod turn;

use seen::TextKey;
use state::{AppendedEntry, AppendedFacts, JudgedSession};

/// How many of the first and of the last known bytes are compared, to notice that the file was rewritten.
const END_BYTES: u64 = 4096;

/// What is remembered of a transcript, to judge appends. Holds none of its text. Only the build that stored a judge may
/// read it, and has to add the policy and the facts: see [`Judge::restored`].
#[derive(Clone, Serialize, Deserialize)]
pub struct Judge {
    #[serde(skip)]
    policy: Arc<Policy>,
    #[serde(skip)]
    facts: Facts,
    undecided: Option<Head>,
    /// There is no line end between the known lines and this offset.
    searched: u64,
    /// Hash of the first and the last bytes of the known lines.
    ends: TextKey,
    /// What is known of the session, or why appends cannot be judged.
    state: Result<JudgedSession, Feature>,
    messages: Messages,
    /// The count of tokens; `None` if only a look can tell it.
    count: Option<Count>,
    /// Whether the messages, the number of findings and the title are known as well.
    tells: bool,
    /// How full the window is: the last count, with all that was appended since.
    fills: ContextTokens,
}

/// What a look yields for the judge. `undecided` are the votes on the format so far, if later objects still count.
struct Remembrance {
    state: JudgedSession,
    undecided: Option<Head>,
    count: Option<Count>,
}

fn remembered(session: &Session<'_>, found: &Survey<'_>) -> Result<Remembrance, Feature> {
    if session.transcript.is_document {
        // Nothing is appended to a document: it is written anew.
        return Err(Feature::Rewritten);
    }
    if found.is_cut() {
        // An append may change findings that were only counted.
        return Err(Feature::Unsettled);
    }
    if session.transcript.reasons {
        // Each new call has to be compared with all earlier calls.
        return Err(Feature::Unsettled);
    }
    let state = JudgedSession::from_session(session, &found.findings)?;
    Ok(Remembrance { state, undecided: session.undecided, count: session.tokens.get().cloned() })
}

/// What an append changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// A full look would have the same findings, at the same places, and [`Judge::facts`]. Also if nothing was
    /// appended.
    Same,
    /// A full look would have the same findings in all complete lines. After them is the beginning of a line that may still be written; a look now
    /// would report it as torn.
    Begun,
    /// Only a full look can tell, because of this feature. The judge is of no further use.
    Look(Feature),
}

impl Judge {
    /// Looks at a whole transcript and remembers its end.
    pub fn new(
        source: &dyn Source,
        policy: &Arc<Policy>,
        situation: &Situation,
    ) -> Result<(Self, Examination), Fault> {
        Self::new_scanned(scan(source)?, source, policy, situation)
    }

    /// Looks at a transcript that was read, and remembers its end.
    pub fn new_scanned(
        read: Scanned,
        source: &dyn Source,
        policy: &Arc<Policy>,
        situation: &Situation,
    ) -> Result<(Self, Examination), Fault> {
        let mut known = Err(Feature::Rewritten);
        let mut remember = |session: &Session<'_>, found: &Survey<'_>| known = remembered(session, found);
        let found = examine_and_remember(read, source, Case { policy, situation }, &mut remember)?;
        let judge = Self::after_look(source, policy, &found, known)?;
        Ok((judge, found))
    }

    /// Draws a plan as [`crate::mend`] does, and remembers the end of the transcript, both as it is and, if the plan
    /// changes anything, as it will be.
    pub fn mend(
        source: &dyn Source,
        policy: &Arc<Policy>,
        situation: &Situation,
    ) -> Result<(Mended, Self, Option<Self>), Fault> {
        Self::mend_scanned(scan(source)?, source, policy, situation)
    }

    /// Draws a plan for a transcript that was read, and remembers the ends.
    pub fn mend_scanned(
        read: Scanned,
        source: &dyn Source,
        policy: &Arc<Policy>,
        situation: &Situation,
    ) -> Result<(Mended, Self, Option<Self>), Fault> {
        let mut known = Vec::new();
        let mut remember = |session: &Session<'_>, found: &Survey<'_>| known.push(remembered(session, found));
        let case = Case { policy, situation };
        let mended = mend_and_remember(read, source, case, &mut |_| {}, &mut remember)?;
        let last = if known.len() > 1 { known.pop() } else { None };
        let first = known.into_iter().next().unwrap_or(Err(Feature::Rewritten));
        let before = Self::after_look(source, policy, &mended.before, first)?;
        let after = match (&mended.repair, last) {
            (Ok(repair), Some(last)) => match &repair.after {
                Some(after) => {
                    Some(Self::after_look(&Rendered::new(source, &repair.plan), policy, after, last)?)
                }
                None => None,
            },
            _ => None,
        };
        Ok((mended, before, after))
    }

    /// The judge of a source that was looked at.
    fn after_look(
        source: &dyn Source,
        policy: &Arc<Policy>,
        found: &Examination,
        mut known: Result<Remembrance, Feature>,
    ) -> Result<Self, Fault> {
        let facts = found.facts;
        let bytes = facts.bytes;
        // Findings that a repair uncovers may concern what is appended later.
        if !found.only_cuts {
            known = Err(Feature::Unsettled);
        }
        if facts.format.is_some() && !ends_line_at(source, bytes)? {
            known = Err(Feature::Rewritten);
        }
        let (state, undecided, count) = match known {
            Ok(Remembrance { state, undecided, count }) => (Ok(state), undecided, count),
            Err(feature) => (Err(feature), None, None),
        };
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
            tells: found.headline.is_settled(facts.entries),
            fills: found.context_tokens,
        })
    }

    /// Completes a stored judge with the policy and the facts of the lines that it knows.
    #[must_use]
    pub fn restored(self, policy: &Arc<Policy>, facts: &Facts) -> Self {
        Self { policy: policy.clone(), facts: *facts, ..self }
    }

    /// Whether appends can be judged at all.
    pub fn is_of_use(&self) -> bool {
        self.state.is_ok()
    }

    /// Facts about the known lines.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// How many messages the known lines hold, and how many tokens the context has. `None` if only a look can tell
    /// this, the session's title, or the number of findings.
    pub fn counted(&self) -> Option<(Messages, ContextTokens)> {
        let count = self.count.as_ref().filter(|_| self.tells)?;
        Some((self.messages, count.context_tokens()))
    }

    /// The policy of the look.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Roughly how much memory this takes, in bytes.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.state.as_ref().map_or(0, JudgedSession::weight)
    }

    /// Reads what was appended, and of the known lines only the first and the last bytes. A fault changes nothing.
    pub fn append(&mut self, source: &dyn Source) -> Result<Judgement, Fault> {
        match self.advance(source) {
            Ok(verdict) => Ok(verdict),
            Err(Halt::Look(feature)) => {
                // The state may include half of the append, so it is of no further use.
                self.state = Err(feature);
                Ok(Judgement::Look(feature))
            }
            Err(Halt::Fault(fault)) => Err(fault),
        }
    }

    fn advance(&mut self, source: &dyn Source) -> Result<Judgement, Halt> {
        let (length, bytes) = (source.len(), self.facts.bytes);
        let state = self.state.as_mut().map_err(|feature| *feature)?;
        if length < bytes || ends_of(source, bytes)? != self.ends {
            return Err(Feature::Rewritten.into());
        }
        let from = self.searched.min(length);
        let Some(end) = last_line_end(source, Span::new(from, length))? else {
            self.searched = length;
            return Ok(if length > bytes { Judgement::Begun } else { Judgement::Same });
        };
        let format = self.facts.format.ok_or(Feature::Rewritten)?;
        let known = ReadTo { format, undecided: self.undecided, bytes, lines: self.facts.lines };
        let read = scan_from(known, source, end)?.ok_or(Feature::Rewritten)?;
        let added = read.transcript;
        if added.reasons {
            return Err(Feature::Odd.into());
        }
        let ends = ends_of(source, end)?;
        let is_cut =
            state.cuts_matter() && bound_thinking::holds_marker(source, &added, 0..added.results.len())?;
        let more = AppendedFacts {
            breaks: turn::line_breaks(source, &added, &self.policy)?,
            is_cut,
            reads: seen::reads(source, format, &added)?,
        };
        let mut awaits = self.facts.awaits;
        let taken = state.take_all(&added, &more, &self.policy, &mut awaits)?;
        let count =
            counted_on(self.count.clone(), Entries { transcript: &added, source, format }, &taken.all)?;
        let said = taken.all.iter().filter(|taken| taken.says).count();
        let failed = match taken.spoke {
            Some(entry) => failure_in(source, format, &added.entries[entry as usize])?,
            None => self.facts.failed,
        };
        if failed.is_some_and(|failed| failed.cause == Cause::InvalidThinking) {
            return Err(Feature::Unsettled.into());
        }
        let known = count.as_ref().map(Count::context_tokens);
        let fills = known.unwrap_or(self.fills.with_at_most(end - bytes));
        // Where only a look can tell, it has to be far from full.
        let at_most = if known.is_some() { fills } else { fills.with_at_most(fills.tokens) };
        let has_results = self.facts.results + added.results.len() > 0;
        let crowded = has_results && may_be_crowded(&self.policy, &at_most, failed);
        if crowded && woken_by(&self.policy, format, Feature::Crowded).next().is_some() {
            return Err(Feature::Crowded.into());
        }
        self.fills = fills;
        self.tells &= !taken.unclear && Titles::from_transcript(&added).best().is_none();
        let facts = &mut self.facts;
        (facts.awaits, facts.failed) = (awaits, failed);
        if self.undecided.is_some() {
            facts.votes = read.votes;
        }
        self.messages.all += said;
        self.messages.seen += said;
        facts.bytes = end;
        facts.lines = added.lines;
        facts.entries += added.entries.len();
        facts.calls += added.calls.len();
        facts.results += added.results.len();
        if facts.entries > entries_max(source) {
            return Err(Feature::Rewritten.into());
        }
        (self.undecided, self.ends, self.searched, self.count) = (read.undecided, ends, length, count);
        Ok(if length > end { Judgement::Begun } else { Judgement::Same })
    }
}

/// Why an append was not judged.
enum Halt {
    /// Only a look can tell what this changes.
    Look(Feature),
    Fault(Fault),
}

impl From<Feature> for Halt {
    fn from(feature: Feature) -> Self {
        Self::Look(feature)
    }
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The count, with the append added.
fn counted_on(
    count: Option<Count>,
    added: Entries<'_>,
    taken: &[AppendedEntry],
) -> Result<Option<Count>, Fault> {
    let Some(mut count) = count else { return Ok(None) };
    for (entry, taken) in (0..).zip(taken) {
        if !count.take(added, entry, taken.place)? {
            return Ok(None);
        }
    }
    Ok(Some(count))
}

/// A hash of the first and the last bytes of the known part: a program that rewrites a file changes one of them.
fn ends_of(source: &dyn Source, bytes: u64) -> Result<TextKey, Fault> {
    let (first, last) =
        (Span::new(0, bytes.min(END_BYTES)), Span::new(bytes.saturating_sub(END_BYTES), bytes));
    let mut both = read_span(source, first)?;
    both.extend(read_span(source, last)?);
    Ok(TextKey::from_text(&both))
}

/// The offset after the last line break of a span.
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
