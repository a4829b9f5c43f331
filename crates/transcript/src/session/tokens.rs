//! How many tokens the context has: one count, for every command and every rule.
//!
//! The newest number that the provider reported on the live branch says how many tokens there were up to there, with
//! the instructions and the tools that are not in the file. What came since is estimated and added; what Tailor cut since
//! is estimated and taken off. Without such a number all of it is an estimate (`rates.rs`).
//!
//! A file does not say when something was cut. The numbers show it: once the agent has read the shorter file, the next
//! number is lower than the one before. As long as none is, they are older than the cut.

mod carried;
mod rates;
mod usage;

use crate::format::{EntryPart, Format};
use crate::model::context_tokens::NewestNumber;
pub use crate::model::context_tokens::{ContextTokens, ReportedTokens};
pub(crate) use crate::model::context_tokens::{Count, Rates};
use crate::model::entry::{Entry, Kind, Role};
use crate::model::ids::Id;
use crate::model::overflow::window_named;
use crate::model::policy::{Depth, ModelWindow, Policy};
use crate::model::transcript::Transcript;
use crate::read::scan::Reading;
use crate::session::failure::error_in;
use crate::session::own::{self, stands_for_others};
use crate::session::{Compacts, Session};
use alloc::vec::Vec;
pub(crate) use carried::BranchPosition;
pub use rates::IMAGE_TOKENS;
pub(crate) use rates::{UNIT, dense, is_dense};
use spans::cut::measure;
use spans::fingerprint;
use spans::json;
use spans::literal::Unit;
use spans::source::{Fault, Source, Span, read_span};
use usage::Usage;

/// How much of a file is searched, from the end, for the newest number.
const SEARCH_BYTES_MAX: u64 = 4 << 20;
/// An entry that is not a message and is longer than this holds no numbers.
const RECORD_BYTES_MAX: u64 = 64 << 10;
/// By how many percent a number has to be lower than the one before it to show that the agent has read a shorter context.
/// When old thinking is left out, numbers mostly fall by less; in two real sessions they fall by 15 and 18 percent. Then a cut
/// of Tailor's before the fall is taken for one that the number counts, until the next number.
const FALL_PERCENT: u64 = 10;
/// How many times as much as a number the texts up to there may be estimated at, if nothing else confirms it.
const COUNT_TIMES_MAX: u64 = 2;
/// How many times as many tokens as the texts of the last two requests a number has to have that is less than that: then it
/// counts more than what is new, and the agent leaves something out that is in the file. Qwen Code (0.24.4) and Gemini CLI
/// (0.61) clear old results in memory only. What some servers report is a number of what was not cached, which is no more than
/// what is new.
const RECENT_TIMES_MIN: u64 = 2;
/// By how many percent a number may exceed the estimate of the texts that it should cover, if nothing else confirms it.
const NEAR_PERCENT: u64 = 25;
/// Texts longer than this have not been cut.
const CUT_BYTES_MAX: u64 = 256 << 10;

/// How many tokens the context of a transcript has; `None` if the format is unknown.
///
/// ```
/// let text = br#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}
/// {"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"go"}}
/// {"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[],"usage":{"input":9000,"output":20}}}
/// "#;
/// let found = transcript::tokens::context_tokens(&&text[..]).unwrap().unwrap();
/// assert_eq!((found.tokens, found.counted.unwrap().line), (9020, 3));
/// ```
pub fn context_tokens(source: &dyn Source) -> Result<Option<ContextTokens>, Fault> {
    context_tokens_by(&Reading::new(source)?, &Policy::default())
}

/// Counts with the windows that a policy knows.
pub(crate) fn context_tokens_by(
    reading: &Reading<'_>,
    policy: &Policy,
) -> Result<Option<ContextTokens>, Fault> {
    let session = Session::of(reading, policy, Depth::Sizes);
    session.map(|session| tokens_of(&session)).transpose()
}

/// Entries, and where their bytes are: of a whole session, or what was appended to one.
#[derive(Clone, Copy)]
pub(crate) struct Entries<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) source: &'a dyn Source,
    pub(crate) format: &'static Format,
}

impl<'a> Entries<'a> {
    fn from_session(session: &Session<'a>) -> Self {
        Self { transcript: session.transcript, source: session.source, format: session.format }
    }

    fn entry(&self, index: u32) -> &'a Entry {
        &self.transcript.entries[index as usize]
    }
}

/// Counts the tokens of a session.
pub(crate) fn tokens_of(session: &Session<'_>) -> Result<ContextTokens, Fault> {
    if let Some(known) = session.tokens.get() {
        return Ok(known.context_tokens());
    }
    let counted = count(session)?;
    Ok(session.tokens.get_or_init(|| counted).context_tokens())
}

fn count(session: &Session<'_>) -> Result<Count, Fault> {
    let rates = Rates::for_session(session);
    let costs = Costs::new(session, rates);
    let newest = Newest::find(session)?;
    let mut count = Count {
        rates,
        model_window: rates::window_of(model_of(session)),
        stated: stated(session),
        window: newest.window,
        window_in_error: newest.window_in_error,
        number: None,
        sum: costs.sum(),
        since: 0,
        waiting: waiting(session, rates),
        recent: None,
        gone: None,
        gone_next: None,
        left: newest.left,
    };
    if let Some((at, tokens)) = newest.count {
        count.number = Some(NewestNumber::new(Entries::from_session(session), at, tokens));
        count.since = costs.since(session, at);
        if !count.is_most() {
            count.recent = recent(session, &costs, at)?;
        }
        if count.is_whole() {
            (count.gone, count.gone_next) = gone_since(session, &costs, at)?;
        }
    }
    Ok(count)
}

/// What the configuration of the agent says about the last model.
fn stated(session: &Session<'_>) -> Option<(u64, u64)> {
    let model = model_of(session);
    let is_it = |known: &&ModelWindow| known.format == session.format.name && known.model.as_bytes() == model;
    let known = session.policy.model_windows.iter().find(is_it)?;
    Some((known.tokens, fingerprint::hash(model)))
}

/// What the texts cost that came with the two requests before a number.
fn recent(session: &Session<'_>, costs: &Costs, at: u32) -> Result<Option<u64>, Fault> {
    let (mut before, mut left, mut newest) = (0, SEARCH_BYTES_MAX, at);
    for entry in (0..at).rev().filter(|&entry| is_of_branch(session, entry)) {
        left = left.saturating_sub(session.entry(entry).span.len());
        if left == 0 {
            break;
        }
        let group = session.entry(newest).group;
        // The lines of one message share its number.
        if count_at(session, entry)?.is_none() || group.is_some() && group == session.entry(entry).group {
            continue;
        }
        (before, newest) = (before + 1, entry);
        if before == 2 {
            return Ok(Some(costs.since(session, entry).saturating_sub(costs.since(session, at))));
        }
    }
    Ok(None)
}

/// The cost of entries after the newest message of a graph that are not messages. They are in context once a message follows
/// them.
fn waiting(session: &Session<'_>, rates: Rates) -> u64 {
    let up = core::iter::successors(session.ends.tip, |&entry| session.parent(entry));
    let after = up.take(session.transcript.entries.len()).take_while(|&entry| Some(entry) != session.leaf);
    after.map(|entry| rates.entry(Entries::from_session(session), entry)).sum()
}

/// The model that spoke last; empty if none is named.
pub(crate) fn model_of<'s>(session: &'s Session<'_>) -> &'s [u8] {
    let model = session.live.iter().rev().find_map(|&entry| session.entry(entry).model);
    session.transcript.id_text(model)
}

/// The estimated tokens of a context of which only a part stays: first of what always stays, and then for each of these
/// entries, in model order, of that entry and all after it.
pub(crate) fn tokens_from(session: &Session<'_>, entries: &[u32]) -> (u64, Vec<u64>) {
    let rates = Rates::for_session(session);
    let costs: Vec<(u32, u64)> = costs_of_sent(session, rates).collect();
    let stays = |entry: u32| session.kind(entry) == Kind::Message(Role::System);
    let (mut fixed, mut sum, mut from) = (0, 0, alloc::vec![0; session.transcript.entries.len()]);
    for &(entry, cost) in costs.iter().rev() {
        *(if stays(entry) { &mut fixed } else { &mut sum }) += cost;
        from[entry as usize] = sum;
    }
    let tokens = |&entry: &u32| from[entry as usize].div_ceil(rates::UNIT);
    (rates.base + fixed.div_ceil(rates::UNIT), entries.iter().map(tokens).collect())
}

/// What each entry in context is estimated at, in the order of the model.
fn costs_of_sent(session: &Session<'_>, rates: Rates) -> impl Iterator<Item = (u32, u64)> {
    let instructs = |&entry: &u32| session.in_context(entry) && rates::is_instructions(session.entry(entry));
    let system = session.model_order().iter().rev().copied().find(instructs);
    session.sent().map(move |entry| {
        let instructs = Some(entry) == system;
        let all = Entries::from_session(session);
        let cost = match session.edit_of(entry) {
            // The entry that changes this one holds what is sent.
            Some(_) => 0,
            None if instructs => Rates::instructions(session, entry),
            None => rates.entry(all, entry),
        };
        (entry, cost)
    })
}

/// The costs of entries, summed up from the end.
struct Costs {
    rates: Rates,
    /// In the order of the file: the cost of each entry together with all after it.
    after: Vec<(u32, u64)>,
    /// The sums among those that share a message.
    after_in_group: Vec<(Id, u32, u64)>,
}

impl Costs {
    fn new(session: &Session<'_>, rates: Rates) -> Self {
        let mut after: Vec<(u32, u64)> = Vec::with_capacity(session.live.len());
        after.extend(costs_of_sent(session, rates));
        after.sort_unstable();
        let group = |&(entry, cost): &(u32, u64)| Some((session.entry(entry).group?, entry, cost));
        let mut after_in_group: Vec<_> = after.iter().filter_map(group).collect();
        after_in_group.sort_unstable();
        for at in (1..after.len()).rev() {
            after[at - 1].1 += after[at].1;
        }
        for at in (1..after_in_group.len()).rev() {
            if after_in_group[at - 1].0 == after_in_group[at].0 {
                after_in_group[at - 1].2 += after_in_group[at].2;
            }
        }
        Self { rates, after, after_in_group }
    }

    /// All of it, in thousandths of a token.
    fn sum(&self) -> u64 {
        self.after.first().map_or(0, |(_, all)| *all)
    }

    fn total(&self) -> u64 {
        self.rates.base + self.sum().div_ceil(rates::UNIT)
    }

    /// What the model sees after an entry, in tokens.
    fn after(&self, session: &Session<'_>, at: u32) -> u64 {
        self.since(session, at).div_ceil(rates::UNIT)
    }

    /// What the model sees after an entry, in thousandths of a token.
    fn since(&self, session: &Session<'_>, at: u32) -> u64 {
        let next = self.after.partition_point(|&(entry, _)| entry <= at);
        let all = self.after.get(next).map_or(0, |(_, cost)| *cost);
        // The lines of one message share its number.
        let same = session.entry(at).group.and_then(|group| {
            let next =
                self.after_in_group.partition_point(|&(other, entry, _)| (other, entry) <= (group, at));
            self.after_in_group.get(next).filter(|(other, ..)| *other == group)
        });
        all - same.map_or(0, |(.., cost)| *cost)
    }
}

/// What is read from the end of a file.
#[derive(Default)]
struct Newest {
    count: Option<(u32, u64)>,
    window: Option<u64>,
    /// An error names the window.
    window_in_error: bool,
    /// How much more may be searched.
    left: u64,
}

impl Newest {
    fn find(session: &Session<'_>) -> Result<Self, Fault> {
        // What a log was taken back to is shorter than what was counted before.
        let back = |&entry: &u32| session.kind(entry) == Kind::Leaf && !session.format.shape.has_parents();
        let shortens = |entry: &u32| back(entry) || session.leaves_prompts(*entry);
        let from = last_boundary(session)?.max(session.live.iter().copied().filter(shortens).max());
        let (mut found, mut left) = (Self::default(), SEARCH_BYTES_MAX);
        let mut answered = false;
        let all = 0..session.transcript.entries.len() as u32;
        for entry in all.rev().filter(|&entry| is_of_branch(session, entry)) {
            let here = session.entry(entry);
            left = left.saturating_sub(here.span.len());
            if left == 0 {
                break;
            }
            if !answered && here.ends_request() {
                answered = true;
                if found.window.is_none() {
                    found.window = window_in_error(Entries::from_session(session), here)?;
                    found.window_in_error = found.window.is_some();
                }
            }
            if let Some(usage) = usage_of(Entries::from_session(session), here)? {
                if usage.tokens > 0 && Some(entry) > from && found.count.is_none() {
                    (found.count, found.left) = (Some((entry, usage.tokens)), left);
                }
                found.window = found.window.or(Some(usage.window).filter(|window| *window > 0));
            }
            let is_known = found.window.is_some() || !session.format.states_window;
            if found.count.is_some() && answered && is_known {
                break;
            }
        }
        if found.count.is_none() {
            found.left = left;
        }
        Ok(found)
    }
}

/// The window that the error names with which a request ended.
fn window_in_error(all: Entries<'_>, entry: &Entry) -> Result<Option<u64>, Fault> {
    Ok(error_in(all.source, all.format, entry)?.as_deref().and_then(window_named))
}

/// The last compaction of the live branch, by its place in the file; in a list, our message that stands for others.
fn last_boundary(session: &Session<'_>) -> Result<Option<u32>, Fault> {
    let boundary = session.live.iter().copied().filter(|&entry| session.kind(entry) == Kind::Boundary);
    if let Some(boundary) = boundary.max() {
        return Ok(Some(boundary));
    }
    let speaks = |&entry: &u32| matches!(session.kind(entry), Kind::Message(Role::User | Role::Assistant));
    let Some(first) = session.sent().find(speaks) else { return Ok(None) };
    Ok(stands_for_others(session, first)?.then_some(first))
}

/// Whether an entry is one that may hold numbers about the conversation.
fn may_count(format: &Format, found: &Entry) -> bool {
    let kind = match found.kind {
        Kind::Message(Role::Assistant) => found.span.len() <= SEARCH_BYTES_MAX,
        // Lists and logs have records of their own for that.
        Kind::Opaque => !format.shape.has_parents() && found.span.len() <= RECORD_BYTES_MAX,
        _ => false,
    };
    kind && !found.is_sidechain
}

/// Whether an entry is not a message of another branch.
fn is_of_branch(session: &Session<'_>, entry: u32) -> bool {
    session.kind(entry) == Kind::Opaque || session.is_live(entry)
}

/// What an entry says about its request.
fn usage_of(all: Entries<'_>, found: &Entry) -> Result<Option<Usage>, Fault> {
    if !may_count(all.format, found) {
        return Ok(None);
    }
    let raw = read_span(all.source, found.span)?;
    let named = |name: &[u8]| memchr::memmem::find(&raw, name).is_some();
    if !named(b"usage") && !named(b"oken") {
        return Ok(None);
    }
    let doc = json::parse(all.source, found.span)?;
    Ok(doc.as_ref().and_then(json::Doc::root).and_then(usage::usage))
}

/// How many tokens were removed before an entry after its number was reported; `None` if that number says nothing about
/// what is there now. And the same for the next number, unless it is lower; `None` if only a look can tell.
fn gone_since(session: &Session<'_>, costs: &Costs, at: u32) -> Result<(Option<u64>, Option<u64>), Fault> {
    // Where compactions are appended, what follows one is newer.
    if session.shape.compacts != Compacts::AtEnd
        && let Some(boundary) = last_boundary(session)?
        && !knows_of(session, costs, boundary, at)?
    {
        return Ok((None, None));
    }
    let (mut first, mut gone, mut later) = (None, 0_u64, 0);
    for entry in session.sent() {
        let omitted = omitted_in(Entries::from_session(session), costs.rates, entry)?;
        if entry >= at {
            later += omitted;
        } else if omitted > 0 {
            gone = gone.saturating_add(omitted);
            first = first.or(Some(entry));
        }
    }
    let mut gone = gone.div_ceil(rates::UNIT);
    if let Some(first) = first {
        let counts = counts(session, first, at)?;
        let falls = counts.windows(2).map(|two| fallen(session, costs, two[0], two[1]));
        gone = falls.fold(gone, u64::saturating_sub);
    }
    Ok((Some(gone), (later == 0).then_some(gone)))
}

/// Whether the number of an entry that follows a compaction was reported after it. `recover` inserts one before entries that
/// are older and keep their numbers.
fn knows_of(session: &Session<'_>, costs: &Costs, boundary: u32, at: u32) -> Result<bool, Fault> {
    let mut first = None;
    for entry in boundary..=at {
        first =
            count_at(session, entry)?.filter(|_| is_of_branch(session, entry)).map(|tokens| (entry, tokens));
        if first.is_some() {
            break;
        }
    }
    let Some((first, lowest)) = first else { return Ok(false) };
    let texts = costs.total().saturating_sub(costs.after(session, first));
    let honest = match count_before(session, boundary)? {
        Some(before) if falls(before, lowest) => lowest / COUNT_TIMES_MAX <= texts,
        // Nothing to compare with.
        None if session.shape.compacts != Compacts::InPlace => lowest / COUNT_TIMES_MAX <= texts,
        // As high as before, or nearly: it must be near to what stands there.
        _ => lowest.saturating_mul(100) <= texts.saturating_mul(100 + NEAR_PERCENT),
    };
    Ok(honest
        || counts(session, boundary, at)?.windows(2).any(|two| fallen(session, costs, two[0], two[1]) > 0))
}

/// The last number before a compaction, on the branch that it ended.
fn count_before(session: &Session<'_>, boundary: u32) -> Result<Option<u64>, Fault> {
    let ended =
        if session.shape.compacts == Compacts::Linked { before_boundary(session, boundary)? } else { None };
    let branch = ended.map(|last| session.path(Some(last)));
    let is_of_it = |entry: &u32| match &branch {
        Some(branch) => branch.contains(entry),
        None => is_of_branch(session, *entry),
    };
    let mut left = SEARCH_BYTES_MAX;
    for entry in (0..boundary).rev() {
        left = left.saturating_sub(session.entry(entry).span.len());
        if left == 0 {
            break;
        }
        if let Some(tokens) = count_at(session, entry)?
            && is_of_it(&entry)
        {
            return Ok(Some(tokens));
        }
    }
    Ok(None)
}

/// The entry that a compaction names as the one before it (Claude Code).
fn before_boundary(session: &Session<'_>, boundary: u32) -> Result<Option<u32>, Fault> {
    let doc = json::parse(session.source, session.entry(boundary).span)?;
    let named = doc.as_ref().and_then(|doc| doc.get("logicalParentUuid")).and_then(json::Value::text);
    Ok(named.and_then(|id| session.transcript.ids.find(&id)).and_then(|id| session.by_id(id)))
}

/// The numbers from one entry to another, in the order of the file.
fn counts(session: &Session<'_>, from: u32, to: u32) -> Result<Vec<(u32, u64)>, Fault> {
    let mut all = Vec::new();
    for entry in (from..=to).filter(|&entry| is_of_branch(session, entry)) {
        all.extend(count_at(session, entry)?.map(|tokens| (entry, tokens)));
    }
    Ok(all)
}

/// The number in an entry.
fn count_at(session: &Session<'_>, entry: u32) -> Result<Option<u64>, Fault> {
    let usage = usage_of(Entries::from_session(session), session.entry(entry))?;
    Ok(usage.map(|usage| usage.tokens).filter(|tokens| *tokens > 0))
}

/// How much less a number is than what the one before it and what came in between let expect.
fn fallen(session: &Session<'_>, costs: &Costs, one: (u32, u64), next: (u32, u64)) -> u64 {
    let came = || costs.after(session, one.0) - costs.after(session, next.0).min(costs.after(session, one.0));
    if falls(one.1, next.1) { (one.1 - next.1).saturating_add(came()) } else { 0 }
}

/// Whether a number is so much lower than the one before it that the agent has read a shorter context.
fn falls(before: u64, after: u64) -> bool {
    after < before - before.saturating_mul(FALL_PERCENT) / 100
}

/// What is gone from an entry according to our markers, at the given rates.
fn omitted_in(all: Entries<'_>, rates: Rates, entry: u32) -> Result<u64, Fault> {
    let bodies = all.transcript.results_of(entry).flat_map(|result| all.transcript.bodies_of(result));
    let mut texts: Vec<(Span, Option<u64>)> =
        bodies.map(|text| (text.inner, text.length(Unit::Chars))).collect();
    for inner in marked_texts(all, all.entry(entry))? {
        if !texts.iter().any(|(other, _)| *other == inner) {
            texts.push((inner, None));
        }
    }
    let mut omitted: u64 = 0;
    for (inner, length) in texts.into_iter().filter(|(inner, _)| inner.len() <= CUT_BYTES_MAX) {
        if let Some(own) = measure(all.source, inner, length, Unit::Chars, false)?.own {
            let marker = read_span(all.source, own.span)?;
            // The marker in the place of an image says what it was.
            let image = own.omitted == own.total && memchr::memmem::find(&marker, b" image").is_some();
            let cost = if image { IMAGE_TOKENS * rates::UNIT } else { rates.text(own.omitted) };
            omitted = omitted.saturating_add(cost);
        }
    }
    Ok(omitted)
}

/// The texts of a message that holds a marker of ours.
fn marked_texts(all: Entries<'_>, found: &Entry) -> Result<Vec<Span>, Fault> {
    let mut texts = Vec::new();
    let speaks = matches!(found.kind, Kind::Message(Role::User | Role::Assistant));
    if !speaks || found.span.len() > CUT_BYTES_MAX {
        return Ok(texts);
    }
    let raw = read_span(all.source, found.span)?;
    if memchr::memmem::find(&raw, own::BEGIN).is_none() {
        return Ok(texts);
    }
    if let Some(doc) = json::parse(all.source, found.span)? {
        (all.format.parts)(&doc, &mut |part| {
            if let EntryPart::Text(text) = part {
                texts.push(text.inner());
            }
        });
    }
    Ok(texts)
}

#[cfg(test)]
mod tests;
