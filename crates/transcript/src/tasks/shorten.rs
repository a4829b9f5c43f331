//! Shortens a session to a number of tokens, with as little loss as possible.
//!
//! [`Length`] says whether it is too long at all, and [`shorten`] makes it shorter. The caller knows earlier attempts.

use crate::examine::mend::examine_read;
use crate::model::context_tokens::ContextTokens;
use crate::model::overflow::{tokens_named, window_named};
use crate::model::policy::{Depth, Policy, WINDOW_TOKENS};
use crate::model::situation::Case;
use crate::plan::{Plan, Rendered};
use crate::read::scan::Reading;
use crate::rule::bound_thinking::bound;
use crate::session::Session;
use crate::session::tokens::{context_tokens, context_tokens_by};
use crate::tasks::compact::{CompactRequest, Stay, Unable};
use crate::tasks::recover::{
    KEEP_LAST, MARKER_CHARS, MESSAGE_CHARS_MAX, RecoveredText, cut, leave_out, reset_gauges,
};
use serde::{Deserialize, Serialize};
use spans::source::Fault;

/// How much of the window a shortened session fills by default.
pub const TARGET_PERCENT: u64 = 60;
/// How full the window must be to shorten a session that was not refused.
const FULL_PERCENT: u64 = 80;
/// If a request had more than this many times the estimate, it was not this session's.
const TIMES_MAX: u64 = 4;
/// Estimates of tokens after a cut are rounded to hundreds.
const ROUND: u64 = 100;
/// How many times fewer messages are kept because the estimate was too low.
const TRIES: usize = 4;

/// How long a session is, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Length {
    /// Tokens that the model is sent: from the error, or else the file, or else estimated.
    pub tokens: u64,
    /// The estimate from the texts alone.
    pub estimated: u64,
    /// The model's context window: from the policy, or else the error, the file, or the model's name.
    pub window: u64,
    /// The error's number of tokens, if it cannot be about this session.
    pub foreign: Option<u64>,
}

/// What is known about the need to shorten a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Need {
    /// A request was refused as too long.
    pub refused: bool,
    /// The number of tokens that the user wants, if any.
    pub target_tokens: Option<u64>,
    /// How many times it was shortened since the model last answered: each time, half as much stays.
    pub attempts: u64,
}

impl Length {
    /// The length of a session, given the text of the error with which it was refused.
    ///
    /// ```
    /// use transcript::shorten::Length;
    /// let counted = transcript::tokens::ContextTokens { tokens: 190_000, estimated: 150_000, ..Default::default() };
    /// let error = Some("prompt is too long: 234743 tokens > 200000 maximum");
    /// let length = Length::new(&counted, &Default::default(), error);
    /// assert_eq!((length.tokens, length.window), (234_743, 200_000));
    /// ```
    pub fn new(counted: &ContextTokens, policy: &Policy, error: Option<&str>) -> Self {
        let window = policy.window_tokens.or_else(|| error.and_then(window_named)).or(counted.window);
        let named = error.and_then(tokens_named);
        let fits = |named: &u64| *named <= counted.tokens.saturating_mul(TIMES_MAX);
        Self {
            tokens: named.filter(fits).unwrap_or(counted.tokens),
            estimated: counted.estimated,
            window: window.filter(|window| *window > 0).unwrap_or(WINDOW_TOKENS),
            foreign: named.filter(|named| !fits(named)),
        }
    }

    /// Measures a transcript; `None` if the format is unknown.
    pub fn measure(
        reading: &Reading<'_>,
        policy: &Policy,
        error: Option<&str>,
    ) -> Result<Option<Self>, Fault> {
        Ok(context_tokens_by(reading, policy)?.map(|counted| Self::new(&counted, policy, error)))
    }

    /// How many tokens it should have; `None` if it is not too long.
    ///
    /// ```
    /// use transcript::shorten::{Length, Need};
    /// let length = |tokens| Length { tokens, estimated: tokens, window: 200_000, foreign: None };
    /// let refused = Need { refused: true, ..Need::default() };
    /// assert_eq!(length(234_743).target(&refused), Some(120_000));
    /// assert_eq!(length(24_000).target(&refused), None, "12 % full");
    /// assert_eq!(length(150_000).target(&Need::default()), None, "nobody says that it was refused");
    /// assert_eq!(length(24_000).target(&Need { target_tokens: Some(9_000), ..refused }), Some(9_000));
    /// ```
    pub fn target(&self, need: &Need) -> Option<u64> {
        if let Some(asked) = need.target_tokens {
            return (self.tokens > asked).then_some(asked);
        }
        let part = |of: u64, percent: u64| of.saturating_mul(percent) / 100;
        let most = part(self.window, TARGET_PERCENT) >> need.attempts.min(u64::from(u32::BITS));
        if !need.refused {
            return (self.tokens >= part(self.window, FULL_PERCENT)).then_some(most);
        }
        let likely = self.foreign.is_none() && self.tokens.saturating_mul(2) >= most;
        // A refused session is too long, whatever the estimate says.
        likely.then(|| most.min(part(self.tokens, TARGET_PERCENT)))
    }

    /// How many tokens it has if the texts are estimated at this many.
    pub fn when(&self, estimated: u64) -> u64 {
        let scaled = u128::from(estimated) * u128::from(self.tokens) / u128::from(self.estimated.max(1));
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX);
        scaled.checked_next_multiple_of(ROUND).unwrap_or(scaled).min(self.tokens)
    }

    /// The estimate of the texts if it has this many tokens.
    fn estimate(&self, tokens: u64) -> u64 {
        let scaled = u128::from(tokens) * u128::from(self.estimated) / u128::from(self.tokens.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// The result of shortening.
pub struct Shortened {
    /// The plan, or why there is none.
    pub recovered: RecoveredText,
    /// How many tokens the plan leaves.
    pub tokens: u64,
    /// From how many of the messages that stay signed thinking is removed, because the plan changes what comes before.
    pub thinking_removed: u64,
    /// Why older messages could not be left out, if they could not.
    pub unable: Option<Unable>,
}

/// Draws the plan that makes a session fit into `target` tokens: it cuts results and long assistant messages if that is
/// enough; or else leaves out older messages, and keeps as many of the newest as fit; or else does both. If nothing is
/// enough, the plan is the one that leaves the fewest tokens.
///
/// ```
/// use transcript::shorten::{Length, shorten};
/// let mut text = String::new();
/// for n in 0..100 {
///     text += &format!("{{\"role\":\"user\",\"content\":\"question {n}\"}}\n{{\"role\":\"assistant\",\"content\":\"answer\"}}\n");
/// }
/// let source = text.as_bytes();
/// let reading = transcript::Reading::new(&source).unwrap();
/// let counted = transcript::tokens::context_tokens(&source).unwrap().unwrap();
/// let length = Length::new(&counted, &Default::default(), None);
/// let done = shorten(&reading, &Default::default(), &length, 200).unwrap();
/// assert!(done.tokens <= 200 && done.recovered.shares.unwrap().kept >= 60);
/// ```
pub fn shorten<'a>(
    reading: &Reading<'_>,
    case: impl Into<Case<'a>>,
    length: &Length,
    target: u64,
) -> Result<Shortened, Fault> {
    let case = case.into();
    let mut search = PlanSearch { reading, case, length, target, best: None, unable: None };
    let first = search.cut(2)?;
    if search.misses() {
        search.leave_out(None)?;
        if search.best.as_ref().is_none_or(|best| best.tokens > target || best.tokens < target / 2) {
            search.leave_out(first.as_ref())?;
        }
    }
    // The newest turn is too long, or older messages cannot be left out.
    for by in [4, 8, 16, 32] {
        if search.misses() {
            let first = search.cut(by)?;
            search.leave_out(first.as_ref())?;
        }
    }
    if search.misses() {
        let message_chars_max = MESSAGE_CHARS_MAX - MARKER_CHARS;
        let request = CompactRequest { stay: Stay::Last(KEEP_LAST), summary: None, message_chars_max };
        let last = leave_out(reading, case, None, &request)?;
        search.weigh(last)?;
    }
    search.done()
}

/// Tries plans, one after the other.
struct PlanSearch<'a> {
    reading: &'a Reading<'a>,
    case: Case<'a>,
    length: &'a Length,
    target: u64,
    best: Option<Best>,
    /// Why older messages could not be left out at the first attempt.
    unable: Option<Unable>,
}

struct Best {
    recovered: RecoveredText,
    tokens: u64,
}

impl PlanSearch<'_> {
    /// Whether no plan so far is enough.
    fn misses(&self) -> bool {
        self.best.as_ref().is_none_or(|best| best.tokens > self.target)
    }

    /// Tries to cut texts, and returns the plan.
    fn cut(&mut self, by: u64) -> Result<Option<Plan>, Fault> {
        let done = cut(self.reading, self.case, by)?;
        let plan =
            done.repair.as_ref().ok().map(|repair| repair.plan.clone()).filter(|plan| !plan.is_empty());
        self.weigh(done)?;
        Ok(plan)
    }

    /// Tries to leave older messages out, after `first` was applied, or else after the minimum.
    fn leave_out(&mut self, first: Option<&Plan>) -> Result<(), Fault> {
        let most = self.length.estimate(self.target);
        let mut room = most;
        for _ in 0..TRIES {
            let request = CompactRequest { stay: Stay::Fitting(room), summary: None, message_chars_max: 0 };
            let done = leave_out(self.reading, self.case, first.cloned(), &request)?;
            let Some(estimated) = self.weigh(done)?.filter(|estimated| *estimated > most) else { break };
            room = room.saturating_sub(estimated - most + 1);
        }
        Ok(())
    }

    /// Keeps a plan if it is better than the best so far. Returns the estimate of its texts.
    fn weigh(&mut self, recovered: RecoveredText) -> Result<Option<u64>, Fault> {
        let repair = match &recovered.repair {
            Ok(repair) if !repair.plan.is_empty() => repair,
            Ok(_) => return Ok(None),
            Err(unable) => {
                self.unable = self.unable.or(Some(*unable).filter(|unable| *unable != Unable::Nothing));
                return Ok(None);
            }
        };
        let estimated = match &repair.after {
            Some(after) => after.context_tokens.estimated,
            None => context_tokens(&Rendered::new(self.reading.source, &repair.plan))?
                .map_or(0, |left| left.estimated),
        };
        let tokens = self.length.when(estimated);
        let better = match &self.best {
            None => tokens < self.length.tokens,
            Some(best) if best.tokens > self.target => tokens < best.tokens,
            // Both are enough: the one that leaves more is better.
            Some(best) => tokens <= self.target && tokens > best.tokens,
        };
        if better {
            self.best = Some(Best { recovered, tokens });
        }
        Ok(Some(estimated))
    }

    fn done(self) -> Result<Shortened, Fault> {
        let Some(Best { recovered, tokens }) = self.best else {
            let before = examine_read(self.reading, self.case)?;
            let repair = Err(self.unable.unwrap_or(Unable::Nothing));
            let recovered = RecoveredText { before, repair, shares: None };
            return Ok(Shortened {
                recovered,
                tokens: self.length.tokens,
                thinking_removed: 0,
                unable: None,
            });
        };
        let recovered = reset_gauges(self.reading.source, self.case, recovered)?;
        let from = recovered.shares.map_or(0, |shares| shares.from);
        let mut thinking_removed = signed(self.reading, self.case, from);
        if let Ok(repair) = &recovered.repair
            && thinking_removed > 0
        {
            let shorter = Rendered::new(self.reading.source, &repair.plan);
            let left = signed(&Reading::new(&shorter)?, self.case, 0);
            thinking_removed = thinking_removed.saturating_sub(left);
        }
        Ok(Shortened { recovered, tokens, thinking_removed, unable: self.unable })
    }
}

/// How many entries in context hold bound thinking, from an offset in the file on.
fn signed(reading: &Reading<'_>, case: Case<'_>, from: u64) -> u64 {
    let Some(session) = Session::of(reading, case, Depth::Sizes) else { return 0 };
    bound(&session).iter().filter(|&&entry| session.entry(entry).span.start >= from).count() as u64
}
