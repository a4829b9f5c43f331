//! S15: old results in a context window that fills up.

use super::base::{Cover, Feature, FindingSink, Help, Rule, RuleInfo, about_result};
use super::oversized_result;
use super::superseded_sent_texts;
use super::trim::{Measured, Notes, caps, exceeded, length_max, may_cut};
use crate::format::written_ms;
use crate::model::context_tokens::ContextTokens;
use crate::model::entry::{Kind, Role};
use crate::model::finding::{Finding, Fix, Held, Severity};
use crate::model::policy::{Crowded, CutShape, Kept, Policy};
use crate::session::failure::{Failure, failure_of};
use crate::session::load::Loaded;
use crate::session::tokens::{self, Rates};
use crate::session::{Session, gauges};
use alloc::format;
use alloc::string::String;
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
                   as too long, or the session fills as much of what its agent loads (S23), and old tool results are part \
                   of it.",
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
    let Some(mut room) = fuller(tokens_sent(session)?, bytes_loaded(session)?) else { return Ok(()) };
    let held = held(session)?;
    let context = room.describe();
    let mut old = Vec::new();
    for result in prunable(session) {
        let mut found = PrunableResult::new(session, room.rates, result)?;
        if crowded.clear_percent < crowded.trim_percent && !room.is_full(crowded.clear_percent) {
            (found.trimmed, found.long) = (found.whole, None);
        }
        room.free(found.whole - found.trimmed);
        old.push(found);
    }
    let sum: u64 = old.iter().map(|old| old.trimmed).sum();
    let clears = crowded.clear_percent > 0 && sum >= room.rates.text(crowded.clear_chars_min);
    let mut is_first = true;
    for old in old {
        let clear = clears && room.is_full(crowded.clear_percent) && old.cleared < old.trimmed;
        if clear {
            room.free(old.trimmed - old.cleared);
        }
        let result = old.result;
        if let Some((chars, mut fix)) = old.fix(session, clear)? {
            if core::mem::take(&mut is_first) {
                let entry = session.result(result).entry;
                fix.ops.extend(gauges::resets(session, session.sent().skip_while(|&sent| sent != entry))?);
            }
            let fix = held.map_or(fix, Fix::held);
            let message = format!("result of {chars} characters in {context}");
            let about = about_result(&RULE, session, result, Severity::Warning, message);
            out.push(Finding { chars: Some(chars), fix, ..about });
        }
    }
    Ok(())
}

/// What a session takes up of the room that there is for it, in thousandths.
struct Room {
    rates: Rates,
    used: u64,
    all: u64,
    unit: &'static str,
}

impl Room {
    fn is_full(&self, percent: u64) -> bool {
        self.used.saturating_mul(100) >= self.all.saturating_mul(percent)
    }

    fn free(&mut self, freed: u64) {
        self.used = self.used.saturating_sub(freed);
    }

    fn describe(&self) -> String {
        let (used, all) = (self.used.div_ceil(tokens::UNIT), self.all / tokens::UNIT);
        format!("a context of {used} of {all} {}", self.unit)
    }
}

/// The one of which less is left.
fn fuller(one: Option<Room>, other: Option<Room>) -> Option<Room> {
    let share = |room: &Room| u128::from(room.used) * u128::from(u64::MAX) / u128::from(room.all.max(1));
    one.into_iter().chain(other).max_by_key(share)
}

/// What the model is sent, in its window; `None` if that is not full.
fn tokens_sent(session: &Session<'_>) -> Result<Option<Room>, Fault> {
    let crowded = session.policy.crowded;
    let counted = tokens::tokens_of(session)?;
    let failed = failure_of(session)?;
    let window = window(&counted, failed, session.policy);
    let quarters = crowded.counts_quarters && counted.counted.is_none();
    if window == 0 || !(quarters || is_full(counted.tokens, window, crowded.trim_percent)) {
        return Ok(None);
    }
    let rates = if quarters { Rates::QUARTER } else { Rates::for_session(session) };
    let mut used = weight(session, rates, |result| once_capped(session, rates, result))?;
    // The count includes what the agent adds to the file, and what S1 is about to cut.
    if !quarters {
        let capped = weight(session, rates, |result| Ok(whole(session, rates, result)))?.saturating_sub(used);
        let now = counted.tokens.saturating_mul(tokens::UNIT);
        // It is never less than the texts.
        used = now.saturating_sub(capped).max(used.min(now));
    }
    let room = Room { rates, used, all: window.saturating_mul(tokens::UNIT), unit: "tokens" };
    Ok(Some(room).filter(|room| room.is_full(crowded.trim_percent)))
}

/// What the agent loads of the session, where there is a limit: past it the conversation begins in its middle, however few
/// tokens the agent sends of it. `None` if that is not full once S22 and S1 have taken out what they can.
fn bytes_loaded(session: &Session<'_>) -> Result<Option<Room>, Fault> {
    let Some(loaded) = Loaded::from_session(session) else { return Ok(None) };
    let rates = Rates::CHARACTERS;
    let bytes = loaded.bytes.saturating_sub(superseded_sent_texts::ops(session)?.bytes);
    let texts = weight(session, rates, |result| Ok(whole(session, rates, result)))?;
    let capped = texts.saturating_sub(weight(session, rates, |result| once_capped(session, rates, result))?);
    let used = bytes.saturating_mul(tokens::UNIT).saturating_sub(capped);
    let room = Room {
        rates,
        used,
        all: loaded.limit.bytes_max.saturating_mul(tokens::UNIT),
        unit: "bytes that its agent loads",
    };
    Ok(Some(room).filter(|room| room.is_full(session.policy.crowded.trim_percent)))
}

/// Whether nothing of a session needs to be shortened yet, be it only by S1.
pub(super) fn has_room(session: &Session<'_>) -> Result<bool, Fault> {
    let Some(loaded) = Loaded::from_session(session) else { return Ok(false) };
    let percent = session.policy.crowded.trim_percent;
    let bytes = loaded.bytes.saturating_sub(superseded_sent_texts::ops(session)?.bytes);
    let is_sent = may_be_crowded(session.policy, &tokens::tokens_of(session)?, failure_of(session)?);
    Ok(percent > 0 && !is_sent && !is_full(bytes, loaded.limit.bytes_max, percent))
}

/// Whether a look at a session with this count could find something.
pub(crate) fn may_be_crowded(policy: &Policy, counted: &ContextTokens, failed: Option<Failure>) -> bool {
    let percent = policy.crowded.trim_percent;
    percent > 0 && is_full(counted.tokens, window(counted, failed, policy), percent)
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
    let recent = session.situation.hold_history.then_some(Held::RecentlyUsed);
    Ok(if is_warm(session)? { Some(Held::WarmCache) } else { recent })
}

/// Whether a prompt cache may still hold what the agent sent last: the model's last message is recent, or its time is
/// unknown.
fn is_warm(session: &Session<'_>) -> Result<bool, Fault> {
    let (Some(now), ttl @ 1..) = (session.situation.now_ms, session.policy.crowded.cache_ttl_ms) else {
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

#[cfg(test)]
mod tests {
    use crate::examine::mend::mend;
    use crate::model::policy::{Crowded, Policy};
    use crate::model::situation::{Case, LoadLimit, Situation};
    use crate::plan::Rendered;
    use alloc::format;
    use alloc::string::String;
    use spans::source::{Source, Span, read_span};

    const PI: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/w\"}\n";

    /// So many turns, each with a result of so many lines of six characters.
    fn session(turns: usize, lines: usize) -> String {
        let mut text = String::from(PI);
        let mut parent = String::from("null");
        for turn in 0..turns {
            let result = "a row\\n".repeat(lines);
            for (id, message) in [
                ("u", String::from(r#"{"role":"user","content":"go on"}"#)),
                (
                    "a",
                    format!(
                        r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"c{turn}","name":"read","arguments":{{}}}}],"stopReason":"toolUse"}}"#
                    ),
                ),
                (
                    "r",
                    format!(
                        r#"{{"role":"toolResult","toolCallId":"c{turn}","toolName":"read","content":[{{"type":"text","text":"{result}"}}]}}"#
                    ),
                ),
                (
                    "z",
                    String::from(
                        r#"{"role":"assistant","content":[{"type":"text","text":"done"}],"stopReason":"stop"}"#,
                    ),
                ),
            ] {
                let line = format!(
                    "{{\"type\":\"message\",\"id\":\"{id}{turn}\",\"parentId\":{parent},\"message\":{message}}}\n"
                );
                text.push_str(&line);
                parent = format!("\"{id}{turn}\"");
            }
        }
        text
    }

    fn mended<'a>(text: &str, case: impl Into<Case<'a>>) -> String {
        let bytes = text.as_bytes();
        let plan = mend(&bytes, case).unwrap().repair.unwrap().plan;
        let rendered = Rendered::new(&bytes, &plan);
        let after = read_span(&rendered, Span::new(0, Source::len(&rendered))).unwrap();
        String::from_utf8(after).unwrap()
    }

    fn limit(bytes_max: u64, result_chars_max: u64) -> LoadLimit {
        LoadLimit { window_tokens: 1_000_000, bytes_max, entries_max: 10_000, result_chars_max }
    }

    #[test]
    fn what_the_agent_has_cut_to_its_own_limit_stays_as_long_as_there_is_room() {
        let text = session(4, 8_333);
        let changes = |policy: &Policy, (bytes_max, chars_max)| {
            let load = Some(limit(bytes_max, chars_max));
            let situation = Situation { load, ..Situation::default() };
            mended(&text, Case { policy, situation: &situation }) != text
        };
        let (plain, roomy) = (Policy::default(), (1_000_000, 64_000));
        assert!(!changes(&plain, roomy));
        assert!(changes(&plain, (280_000, 64_000)), "not all is loaded soon");
        assert!(changes(&plain, (1_000_000, 48_000)), "longer than what the agent keeps");
        let many = Policy { window_tokens: Some(60_000), ..plain.clone() };
        assert!(changes(&many, roomy), "the window is full");
        let chosen = Policy { result_chars_max: 40_000, ..plain.clone() };
        assert!(changes(&chosen, roomy), "somebody chose a limit");
        let mut allowed = plain.clone();
        allowed.selection.allow = ["S1".into()].into();
        assert!(changes(&allowed, roomy));
        assert!(changes(&Policy { crowded: Crowded::OFF, ..plain }, roomy), "nothing else would cut it");
    }

    /// However few tokens the agent counts.
    #[test]
    fn what_is_loaded_has_to_fit_as_well() {
        let text = session(20, 3_333);
        let mended_within = |text: &str, bytes_max| {
            let situation = Situation { load: Some(limit(bytes_max, 64_000)), ..Situation::default() };
            mended(text, Case { policy: &Policy::default(), situation: &situation })
        };
        assert_eq!(mended(&text, &Policy::default()), text);
        assert_eq!(mended_within(&text, 600_000), text);
        let after = mended_within(&text, 450_000);
        assert!(after.len() < 450_000 * 6 / 10 && after.len() > 150_000, "{}", after.len());
        assert_eq!(mended_within(&after, 450_000), after);
        let newest = text.rfind("\"id\":\"u18\"").unwrap();
        assert!(after.ends_with(&text[newest..]), "the newest results stay");
    }
}
