//! What an append to a transcript that was looked at changes, told from the append alone.
//!
//! A [`Tail`] is what has to be remembered of a look: where it ended, what the next entry may hang on, which calls
//! are open. It knows no rule's repair, and it never finds anything: it says that a full look would find what the
//! last one found ([`Verdict::Same`]), or that it does not know ([`Verdict::Look`]). Whatever is unusual is the latter.
//!
//! ```
//! use std::sync::Arc;
//! use transcript::{Policy, tail::{Tail, Verdict}};
//! let mut text = "{\"role\":\"user\",\"content\":\"hello\"}\n".to_string();
//! let (mut tail, _) = Tail::new(&text.as_bytes(), &Arc::new(Policy::default())).unwrap();
//! text += "{\"role\":\"assistant\",\"content\":\"hello\"}\n";
//! assert_eq!(tail.append(&text.as_bytes()).unwrap(), Verdict::Same);
//! assert_eq!(tail.facts().entries, 2);
//! text += "{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"whose?\"}\n";
//! assert!(matches!(tail.append(&text.as_bytes()).unwrap(), Verdict::Look(_)));
//! ```

use crate::examine::look::Examination;
use crate::examine::mend::{Mended, examine_and_remember, mend_and_remember};
use crate::examine::survey::Survey;
use crate::format::Head;
use crate::model::entry::{Kind, Role, Stop};
use crate::model::finding::Finding;
use crate::model::overflow::Cause;
use crate::model::policy::{Policy, SignedThinking};
use crate::model::transcript::Transcript;
use crate::plan::Rendered;
use crate::read::scan::{ENTRIES_MAX, Known, scan_from};
use crate::rule::unreadable_size::WHOLE_BYTES_MAX;
use crate::rule::{Feature, are_plain, bound_thinking, is_taken, minds, most, oversized_for_summary};
use crate::session::failure::failure_in;
use crate::session::{Awaits, Facts, Session};
use alloc::sync::Arc;
use alloc::vec::Vec;
pub use reason::Reason;
use spans::json::Odd;
use spans::source::{Fault, Source, Span, window};

mod branch;
mod content;
mod reason;
mod seen;
mod standing;
mod turn;

use branch::Branch;
use content::Content;
use seen::{Key, Seen};
use standing::Standing;
use turn::Turn;

/// How many of the last known bytes are looked at to tell whether they are still there.
const END_BYTES: u64 = 4096;

/// What is remembered of a transcript, to judge what is appended. Holds nothing of its text.
#[derive(Clone)]
pub struct Tail {
    policy: Arc<Policy>,
    facts: Facts,
    undecided: Option<Head>,
    /// Up to where no line ends behind the known ones.
    searched: u64,
    /// The last bytes of the known lines.
    end: Key,
    /// What is known of the session, or why that is not enough.
    state: Result<State, Reason>,
}

/// What is known of a session that can be judged.
#[derive(Clone)]
struct State {
    seen: Seen,
    branch: Branch,
    turn: Turn,
    content: Content,
    standing: Standing,
}

/// That, and what was heard of the format if that is not decided yet.
type Remembered = (State, Option<Head>);

fn remembered(session: &Session<'_>, found: &Survey<'_>) -> Result<Remembered, Reason> {
    if found.is_cut() {
        // What was only counted may change with what comes.
        return Err(Reason::Unsettled);
    }
    State::of(session, &found.findings).map(|state| (state, session.undecided))
}

/// What an append changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A look would find what the last one found, at the same places, and [`Tail::facts`]. Also if there is nothing new.
    Same,
    /// The same of all whole lines. Behind them one has begun that may still be written; a look now would call it
    /// torn.
    Begun,
    /// Only a look can tell. The tail is of no use any more.
    Look(Reason),
}

impl Tail {
    /// Looks at all of a transcript and remembers its end.
    pub fn new(source: &dyn Source, policy: &Arc<Policy>) -> Result<(Self, Examination), Fault> {
        let mut known = Err(Reason::Format);
        let mut remember = |session: &Session<'_>, found: &Survey<'_>| known = remembered(session, found);
        let found = examine_and_remember(source, policy, &mut remember)?;
        let tail = Self::of(source, policy, &found, known)?;
        Ok((tail, found))
    }

    /// Draws a plan as [`crate::mend`] does, and remembers the end of the transcript as it is, and as the plan makes it
    /// if that is another one.
    pub fn mend(source: &dyn Source, policy: &Arc<Policy>) -> Result<(Mended, Self, Option<Self>), Fault> {
        let mut known = Vec::new();
        let mut remember = |session: &Session<'_>, found: &Survey<'_>| known.push(remembered(session, found));
        let mended = mend_and_remember(source, policy, &mut |_| {}, &mut remember)?;
        let last = if known.len() > 1 { known.pop() } else { None };
        let first = known.into_iter().next().unwrap_or(Err(Reason::Format));
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
        mut known: Result<Remembered, Reason>,
    ) -> Result<Self, Fault> {
        let facts = found.facts;
        let bytes = facts.bytes;
        // What a repair brings to light may be about what comes.
        if !found.only_cuts {
            known = Err(Reason::Unsettled);
        }
        if facts.format.is_some() && !ends_a_line(source, bytes)? {
            known = Err(Reason::Unfinished);
        }
        let undecided = known.as_ref().ok().and_then(|(_, undecided)| *undecided);
        Ok(Self {
            policy: policy.clone(),
            facts,
            undecided,
            searched: bytes,
            end: end_of(source, bytes)?,
            state: known.map(|(state, _)| state),
        })
    }

    /// Whether appends can be judged at all.
    pub fn is_of_use(&self) -> bool {
        self.state.is_ok()
    }

    /// What is in the lines that are known.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What the findings were told by.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// How much memory this takes, about.
    pub fn weight(&self) -> usize {
        let inside = self
            .state
            .as_ref()
            .map_or(0, |state| state.seen.weight() + state.branch.weight() + state.turn.weight());
        size_of::<Self>() + inside
    }

    /// Reads what stands behind the known lines of a source that has grown, and nothing before their last bytes.
    /// A fault leaves all as it was.
    pub fn append(&mut self, source: &dyn Source) -> Result<Verdict, Fault> {
        Ok(match self.advance(source)? {
            Ok(verdict) => verdict,
            Err(reason) => {
                // What was half taken in must not be built upon.
                self.state = Err(reason);
                Verdict::Look(reason)
            }
        })
    }

    fn advance(&mut self, source: &dyn Source) -> Result<Result<Verdict, Reason>, Fault> {
        let (length, bytes) = (source.len(), self.facts.bytes);
        let state = match &mut self.state {
            Ok(state) => state,
            Err(reason) => return Ok(Err(*reason)),
        };
        if length < bytes {
            return Ok(Err(Reason::Shorter));
        }
        if end_of(source, bytes)? != self.end {
            return Ok(Err(Reason::Rewritten));
        }
        let from = self.searched.min(length);
        let Some(end) = last_line_end(source, Span::new(from, length))? else {
            self.searched = length;
            return Ok(Ok(if length > bytes { Verdict::Begun } else { Verdict::Same }));
        };
        let Some(format) = self.facts.format else { return Ok(Err(Reason::Format)) };
        // Then the file itself is a finding.
        if (bytes..end).contains(&WHOLE_BYTES_MAX) && format.content().in_one_string {
            return Ok(Err(Reason::Oversized));
        }
        let known = Known { format, undecided: self.undecided, bytes, lines: self.facts.lines };
        let Some(read) = scan_from(known, source, end)? else { return Ok(Err(Reason::Format)) };
        let added = read.transcript;
        let last_bytes = end_of(source, end)?;
        let breaks = turn::line_breaks(source, &added, &self.policy)?;
        let uncut = &mut state.standing.uncut;
        *uncut = *uncut && !bound_thinking::holds_marker(source, &added, 0..added.results.len())?;
        let mut awaits = self.facts.awaits;
        let spoke = match state.take_all(&added, &breaks, &self.policy, &mut awaits) {
            Ok(spoke) => spoke,
            Err(reason) => return Ok(Err(reason)),
        };
        let failed = match spoke {
            Some(entry) => failure_in(source, format, &added.entries[entry as usize])?,
            None => self.facts.failed,
        };
        if failed.is_some_and(|failed| failed.cause == Cause::InvalidThinking) {
            return Ok(Err(Reason::Unsettled));
        }
        let facts = &mut self.facts;
        (facts.awaits, facts.failed) = (awaits, failed);
        facts.bytes = end;
        facts.lines = added.lines;
        facts.entries += added.entries.len();
        facts.calls += added.calls.len();
        facts.results += added.results.len();
        if facts.entries > ENTRIES_MAX {
            return Ok(Err(Reason::Format));
        }
        (self.undecided, self.end, self.searched) = (read.undecided, last_bytes, length);
        Ok(Ok(if length > end { Verdict::Begun } else { Verdict::Same }))
    }
}

impl State {
    fn of(session: &Session<'_>, findings: &[Finding]) -> Result<Self, Reason> {
        if !session.policy.is_about_the_newest() {
            return Err(Reason::Policy);
        }
        let turn = Turn::of(session)?;
        let content = Content::of(session, findings)?;
        let (branch, floor) = Branch::of(session)?;
        let standing = Standing::of(session, findings, floor, turn.is_open())?;
        Ok(Self {
            seen: Seen::of(&session.transcript.ids, session.transcript.bytes),
            branch,
            turn,
            content,
            standing,
        })
    }

    /// Takes all of it in, and gives the last message of the model among it that is on the live branch. `breaks`: how
    /// many lines end in each result, if that matters.
    fn take_all(
        &mut self,
        added: &Transcript,
        breaks: &[u64],
        policy: &Policy,
        awaits: &mut Option<Awaits>,
    ) -> Result<Option<u32>, Reason> {
        let mut spoke = None;
        if !added.damage.is_empty() {
            return Err(Reason::Damaged);
        }
        self.content.count_on(added)?;
        self.content.name(added, added.bytes)?;
        for entry in 0..added.entries.len() as u32 {
            if self.take(added, breaks, entry, policy)? {
                let found = &added.entries[entry as usize];
                self.turn.awaits(found, awaits);
                spoke = if found.kind == Kind::Message(Role::Assistant) { Some(entry) } else { spoke };
            }
        }
        Ok(spoke)
    }

    /// Takes one more entry in; whether it is on the live branch.
    fn take(
        &mut self,
        added: &Transcript,
        breaks: &[u64],
        entry: u32,
        policy: &Policy,
    ) -> Result<bool, Reason> {
        let found = &added.entries[entry as usize];
        if found.glued || found.odd != Odd::default() {
            return Err(Reason::Damaged);
        }
        if matches!(found.kind, Kind::Boundary | Kind::Header) {
            return Err(Reason::Boundary);
        }
        if too_long(added, entry, policy) {
            return Err(Reason::Oversized);
        }
        let begins = self.turn.begins(added, entry);
        self.content.fits(added, entry, begins)?;
        self.fresh(added, entry, begins)?;
        self.settled(added, entry, policy, begins)?;
        let (calls, results) = (added.calls_of(entry), added.results_of(entry));
        let mixed = !results.is_empty() && found.kind != Kind::Message(Role::Tool);
        let format = self.content.format;
        let strange = format.has_plain_ids()
            && added.calls[calls.clone()].iter().any(|call| !is_taken(added.id_text(call.id)));
        let waits = found.stop == Stop::ToolUse && calls.is_empty();
        let partial = added.calls[calls.clone()].iter().any(|call| call.partial);
        if partial && found.stop != Stop::Aborted {
            return Err(Reason::Damaged);
        }
        if mixed || (waits && self.branch.is_ordered()) || !are_plain(format, added, calls.clone()) || strange
        {
            return Err(Reason::Unpaired);
        }
        if self.branch.hang(added, entry, begins)? {
            self.turn.take(added, breaks, entry, policy, self.branch.is_ordered())?;
            self.content.take(added, entry, begins);
            Ok(true)
        } else if calls.is_empty() && results.is_empty() {
            self.content.leave(found)?;
            Ok(false)
        } else {
            Err(Reason::Branched)
        }
    }

    /// Whether the ids that name something new are new, and remembers all.
    fn fresh(&mut self, added: &Transcript, entry: u32, begins: bool) -> Result<(), Reason> {
        let found = &added.entries[entry as usize];
        let calls = &added.calls[added.calls_of(entry)];
        let group = found.group.filter(|_| begins);
        let renames = self.standing.renames;
        // What hangs on an entry that is not there yet, or on itself, may close a circle.
        if let crate::model::entry::Link::To(id) = found.parent
            && !self.seen.may_hold(added.ids.text(id))
        {
            return Err(Reason::Branched);
        }
        for id in [found.id, group].into_iter().flatten() {
            self.seen.first(added.ids.text(id), renames)?;
        }
        for call in calls {
            let id = call.id.ok_or(Reason::Unpaired)?;
            self.seen.first(added.ids.text(id), renames)?;
        }
        let target = added.target_of(entry);
        let parent = match found.parent {
            crate::model::entry::Link::To(id) => Some(id),
            _ => None,
        };
        let names = calls.iter().map(|call| call.name);
        let results = &added.results[added.results_of(entry)];
        let results = results.iter().flat_map(|result| [result.call, result.name]);
        let others = [parent, found.group, found.model, target.id, target.end];
        for id in names.chain(results).chain(others).flatten() {
            self.seen.insert(added.ids.text(id));
        }
        Ok(())
    }

    /// Whether the entry leaves what was found, and what may be done about it, as it is.
    fn settled(&self, added: &Transcript, entry: u32, policy: &Policy, begins: bool) -> Result<(), Reason> {
        let standing = &self.standing;
        let model = added.id_text(added.entries[entry as usize].model);
        let binds = !added.thinking_of(entry).is_empty() && bound_thinking::model_binds(model);
        let gated = standing.visible && policy.thinking_in_force() != SignedThinking::Ignore;
        let binds = binds && (gated || !(standing.remembered || standing.uncut));
        let labels = standing.any && added.has_target(entry);
        let reopens = standing.in_turn && !begins && !added.calls_of(entry).is_empty();
        if binds || labels || reopens { Err(Reason::Unsettled) } else { Ok(()) }
    }
}

/// Whether the entry may be too long for a summariser, or a side copy in it for its limit.
fn too_long(added: &Transcript, entry: u32, policy: &Policy) -> bool {
    let found = &added.entries[entry as usize];
    let (too_long, too_dense) = oversized_for_summary::too_much(policy, found.text_chars);
    let limit = policy.side_chars_max;
    let side = || added.sides_of(entry).iter().any(|side| most(policy, &[*side]) > limit);
    (minds(policy, Feature::LongText) && (too_long || too_dense))
        || (minds(policy, Feature::LongSide) && limit > 0 && side())
}

/// The last bytes of the known part.
fn end_of(source: &dyn Source, bytes: u64) -> Result<Key, Fault> {
    let mut buffer = [0; END_BYTES as usize];
    let span = Span::new(bytes.saturating_sub(END_BYTES), bytes);
    Ok(Key::of(if span.is_empty() { &[] } else { window(source, span, &mut buffer)? }))
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
