//! S15: old results in a context window that fills up.

use super::base::{Cover, Feature, FindingSink, Help, Rule, RuleInfo, about_result};
use super::oversized_result;
use super::trim::{Measured, Notes, caps, exceeded, length_max, may_cut};
use crate::format::written_ms;
use crate::model::context_tokens::ContextTokens;
use crate::model::entry::{Kind, Role};
use crate::model::finding::{Finding, Fix, Held, Severity};
use crate::model::policy::{Crowded, CutShape, Kept, Policy};
use crate::session::Session;
use crate::session::failure::{Failure, failure_of};
use crate::session::tokens::{self, Rates};
use alloc::format;
use alloc::vec::Vec;
use hashbrown::HashSet;
use spans::cut::CutLines;
use spans::json;
use spans::json::JsonText;
use spans::marker;
use spans::source::Fault;

/// How many characters an image counts as (OpenClaw's pruner).
const IMAGE_CHARS: u64 = 8_000;
/// The assumed length of the note at a cut: a marker and two line breaks.
const MARKER_CHARS: u64 = marker::BYTES_MAX as u64 + 2;

/// The limit to go by where there is none.
const UNLIMITED_CHARS: u64 = 32_000;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S15",
        name: "crowded-window",
        help: Help {
            what: "What the model is sent fills 80 % of its window (--crowded-trim-percent), or the model has refused it \
                   as too long, and old tool results are part of it.",
            why: "The session comes near to \"prompt is too long\" with results that the model has long read. Then a \
                  prompt cache is no reason to wait.",
            fix: "The oldest results keep head and tail, a quarter of the limit together, until the context is below 60 % \
                  (--crowded-clear-percent); if that is not enough, the oldest become one line each. If the second share \
                  is above the first, as in --profile openclaw-5057, all long results keep head and tail from the first \
                  on, and the oldest become one line each from the second on. Never touched are what comes before the \
                  first user message or after the last assistant messages, and results with images if the policy skips \
                  those. With --crowded-cache-ttl nothing is done until the model's last message is so old that no \
                  prompt cache holds it.",
            source: "OpenClaw context-pruning (pruner.ts), as in #5057; the default's shares are ours",
        },
        entry_decides: true,
        wakes: &[Feature::Crowded],
        ..RuleInfo::BASE
    },
    cover: |format| if format.results.of_messages() { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let crowded = session.policy.crowded;
    if crowded.trim_percent == 0 {
        return Ok(());
    }
    let counted = tokens::tokens_of(session)?;
    let failed = failure_of(session)?;
    let window = window(&counted, failed, session.policy);
    let quarters = crowded.counts_quarters && counted.counted.is_none();
    if window == 0 || !(quarters || is_full(counted.tokens, window, crowded.trim_percent)) {
        return Ok(());
    }
    let rates = if quarters { Rates::QUARTER } else { Rates::for_session(session) };
    let fills = |cost: u64, percent: u64| {
        cost.saturating_mul(100) >= window.saturating_mul(tokens::UNIT).saturating_mul(percent)
    };
    let mut total = weight(session, rates, |result| once_capped(session, rates, result))?;
    // The count includes what the agent adds to the file, and what S1 is about to cut.
    if !quarters {
        let capped =
            weight(session, rates, |result| Ok(whole(session, rates, result)))?.saturating_sub(total);
        let now = counted.tokens.saturating_mul(tokens::UNIT);
        // It is never less than the texts.
        total = now.saturating_sub(capped).max(total.min(now));
    }
    if !fills(total, crowded.trim_percent) {
        return Ok(());
    }
    let held = held(session)?;
    let before = total.div_ceil(tokens::UNIT);
    let mut old = Vec::new();
    for result in prunable(session) {
        let mut found = PrunableResult::new(session, rates, result)?;
        if crowded.clear_percent < crowded.trim_percent && !fills(total, crowded.clear_percent) {
            (found.trimmed, found.long) = (found.whole, None);
        }
        total = total.saturating_sub(found.whole - found.trimmed);
        old.push(found);
    }
    let sum: u64 = old.iter().map(|old| old.trimmed).sum();
    let clears = crowded.clear_percent > 0 && sum >= rates.text(crowded.clear_chars_min);
    for old in old {
        let clear = clears && fills(total, crowded.clear_percent) && old.cleared < old.trimmed;
        if clear {
            total = total.saturating_sub(old.trimmed - old.cleared);
        }
        let result = old.result;
        if let Some((chars, fix)) = old.fix(session, clear)? {
            let fix = held.map_or(fix, Fix::held);
            let message = format!("result of {chars} characters in a context of {before} of {window} tokens");
            let about = about_result(&RULE, session, result, Severity::Warning, message);
            out.push(Finding { chars: Some(chars), fix, ..about });
        }
    }
    Ok(())
}

/// Whether a look at a session with this count could find something.
pub(crate) fn may_be_crowded(
    policy: &Policy,
    count: Option<&ContextTokens>,
    failed: Option<Failure>,
) -> bool {
    let percent = policy.crowded.trim_percent;
    let full = |counted: &ContextTokens| is_full(counted.tokens, window(counted, failed, policy), percent);
    percent > 0 && count.is_none_or(full)
}

fn is_full(tokens: u64, window: u64, percent: u64) -> bool {
    window > 0 && tokens.saturating_mul(100) >= window.saturating_mul(percent)
}

/// The window that the session has to fit into. If more was refused as too long, it is what the model took last: not every
/// agent knows the window of its model.
fn window(counted: &ContextTokens, failed: Option<Failure>, policy: &Policy) -> u64 {
    let window = counted.window(policy);
    let refused = failed.is_some_and(|failed| failed.cause.is_cured_by_less());
    counted.counted.filter(|_| refused).map_or(window, |taken| window.min(taken.tokens))
}

/// Why nothing is shortened yet; `None` if it is.
fn held(session: &Session<'_>) -> Result<Option<Held>, Fault> {
    if !session.policy.crowded.spares_caches() {
        return Ok(None);
    }
    let recent = session.policy.hold_history.then_some(Held::RecentlyUsed);
    Ok(if is_warm(session)? { Some(Held::WarmCache) } else { recent })
}

/// Whether a prompt cache may still hold what the agent sent last: the model's last message is recent, or its time is
/// unknown.
fn is_warm(session: &Session<'_>) -> Result<bool, Fault> {
    let (Some(now), ttl @ 1..) = (session.policy.now_ms, session.policy.crowded.cache_ttl_ms) else {
        return Ok(false);
    };
    let spoke = |&&entry: &&u32| session.kind(entry) == Kind::Message(Role::Assistant);
    let Some(&newest) = session.live.iter().rev().find(spoke) else { return Ok(true) };
    let doc = json::parse(session.source, session.entry(newest).span)?;
    let written = doc.as_ref().and_then(written_ms);
    Ok(written.is_none_or(|written| now.saturating_sub(written) < ttl))
}

/// A result that may be pruned, and its weight in thousandths of a token.
struct PrunableResult {
    result: usize,
    whole: u64,
    trimmed: u64,
    cleared: u64,
    /// Its texts, if they are longer than a trimmed text.
    long: Option<Measured>,
    trim: Trim,
}

/// How a result is trimmed.
#[derive(Clone, Copy)]
struct Trim {
    chars_max: u64,
    head: u64,
    tail: u64,
    lines: CutLines,
}

impl Trim {
    fn new(session: &Session<'_>, result: usize) -> Self {
        let Crowded { trim_chars_max, head_chars, tail_chars, .. } = session.policy.crowded;
        if trim_chars_max > 0 || head_chars > 0 || tail_chars > 0 {
            let (chars_max, head, tail) = (trim_chars_max, head_chars, tail_chars);
            return Self { chars_max, head, tail, lines: CutLines::Anywhere };
        }
        let limits = caps(session, result).map(|cap| cap.chars_max).chain(session.format.agent_cuts_results);
        let quarter = limits.min().unwrap_or(UNLIMITED_CHARS) / 4;
        let tail = quarter / 4;
        // What is hardly longer would gain little.
        Self { chars_max: quarter + tail, head: quarter - tail, tail, lines: session.policy.shape.lines }
    }
}

impl PrunableResult {
    fn new(session: &Session<'_>, rates: Rates, result: usize) -> Result<Self, Fault> {
        let whole = once_capped(session, rates, result)?;
        let texts = session.transcript.bodies_of(result);
        let markers = rates.text(MARKER_CHARS.saturating_mul(texts.len() as u64));
        let trim = Trim::new(session, result);
        let both = trim.head.saturating_add(trim.tail);
        let mut long = None;
        if length_max(session, texts) > trim.chars_max.max(both) {
            let text = Measured::all(session, texts, trim.chars_max)?;
            // The texts count as one, joined by line breaks.
            let length = text.kept() + (texts.len() as u64).saturating_sub(1);
            long = (length > trim.chars_max && both < length).then_some(text);
        }
        let heavy = texts.iter().any(is_dense);
        let both = if heavy { tokens::dense(both) } else { rates.text(both) };
        let trimmed = if long.is_some() { both.saturating_add(markers).min(whole) } else { whole };
        Ok(Self { result, whole, trimmed, cleared: markers.min(whole), long, trim })
    }

    fn fix(self, session: &Session<'_>, clear: bool) -> Result<Option<(u64, Fix)>, Fault> {
        let Trim { head, tail, lines, .. } = self.trim;
        let (both, none) = (Kept::Sizes { head, tail }, Kept::Sizes { head: 0, tail: 0 });
        let kept = if clear { none } else { both };
        let text = if clear {
            let texts = session.transcript.bodies_of(self.result);
            // Texts that an earlier run has trimmed are measured exactly, so that their markers do not count as text.
            Some(Measured::all(session, texts, head.saturating_add(tail) / 2 + 1)?)
        } else {
            self.long
        };
        let Some(text) = text else { return Ok(None) };
        let shape = CutShape { kept, lines };
        let fix = text.trim(session, shape, u64::MAX, Notes::None)?;
        Ok((!fix.ops.is_empty()).then_some((text.kept(), fix)))
    }
}

/// The results that may be pruned, oldest first: after the first user message, and before the last assistant messages.
fn prunable(session: &Session<'_>) -> Vec<usize> {
    let order: Vec<u32> = session.sent().collect();
    let is = |entry: u32, role| session.kind(entry) == Kind::Message(role);
    let first = order.iter().position(|&entry| is(entry, Role::User));
    let (mut turns, mut seen) = (Vec::new(), HashSet::new());
    for (place, &entry) in order.iter().enumerate() {
        if is(entry, Role::Assistant) && seen.insert(session.turn(entry)) {
            turns.push(place);
        }
    }
    let keep = session.policy.crowded.keep_assistants;
    let end = match turns.len().checked_sub(usize::try_from(keep).unwrap_or(usize::MAX)) {
        Some(at) => turns.get(at).copied().unwrap_or(order.len()),
        None => 0,
    };
    let from = first.unwrap_or(end).min(end);
    let results = order[from..end].iter().flat_map(|&entry| session.transcript.results_of(entry));
    results.filter(|&result| may_cut(session, result)).collect()
}

/// The weight of everything that the model is sent, in thousandths of a token, given the weight of each result.
fn weight(
    session: &Session<'_>,
    rates: Rates,
    of_result: impl Fn(usize) -> Result<u64, Fault>,
) -> Result<u64, Fault> {
    let mut total: u64 = 0;
    for entry in session.sent() {
        let transcript = session.transcript;
        let calls = transcript.calls_of(entry).map(|call| session.call(call as u32).sent_bytes);
        let thinking = transcript.thinking_of(entry).iter().map(|thinking| thinking.block.len());
        let mut chars = session.entry(entry).text_chars + calls.chain(thinking).sum::<u64>();
        for result in transcript.results_of(entry) {
            let of_texts: u64 = transcript.bodies_of(result).iter().map(|text| text.chars).sum();
            chars = chars.saturating_sub(of_texts) + u64::from(session.result(result).images) * IMAGE_CHARS;
            total += of_result(result)?;
        }
        total += rates.text(chars);
    }
    Ok(total)
}

/// The weight of a result as it is.
fn whole(session: &Session<'_>, rates: Rates, result: usize) -> u64 {
    session.transcript.bodies_of(result).iter().map(|text| rates.body(text)).sum()
}

/// The weight of a result after S1 has cut it to its own limit.
fn once_capped(session: &Session<'_>, rates: Rates, result: usize) -> Result<u64, Fault> {
    let whole = whole(session, rates, result);
    if !session.policy.selection.includes(oversized_result::RULE.code()) {
        return Ok(whole);
    }
    let capped = exceeded(session, result)?.map(|(text, cap)| text.left(session, cap.shape, cap.chars_max));
    Ok(capped.map_or(whole, |left| rates.text(left).min(whole)))
}

fn is_dense(text: &JsonText) -> bool {
    tokens::is_dense(text.inner.len(), text.chars)
}
