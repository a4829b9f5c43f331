//! Levels of recovery for a session that the API refuses as too long, each removing more than the one before (ChatCLI's
//! `context_recovery.go`, on files instead of messages in memory).
//!
//! The caller decides whether the session is too long, and knows what has been tried.

use crate::examine::holds::Holds;
use crate::examine::look::{Examination, look};
use crate::examine::mend::{Repair, examine, mend, mend_read};
use crate::examine::verdict::Worse;
use crate::model::policy::{Depth, Policy, Selection};
use crate::model::situation::Case;
use crate::plan::{self, Plan, Rendered};
use crate::read::scan::Reading;
use crate::rule::RULES;
use crate::session::{Session, gauges};
use crate::tasks::compact::{CompactRequest, Shares, Stay, Unable, compact, said_in};
use alloc::string::ToString;
use core::fmt;
use spans::source::{Fault, Source};

/// The default number of messages that stay at level 2.
pub const KEEP: u64 = 10;

/// How many messages stay at level 3, at most.
pub const KEEP_LAST: u64 = 4;

/// Longest text of an assistant message at level 1.
pub const REPLY_CHARS_MAX: u64 = 5_000;

/// Longest text of a message at level 3, including its marker.
pub const MESSAGE_CHARS_MAX: u64 = 4_000;

/// How much of that is reserved for the marker.
pub(super) const MARKER_CHARS: u64 = 100;

/// How much may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecoverLevel {
    /// Calls and results are repaired, the limits of results are halved, and long assistant messages are cut to 5,000
    /// characters.
    One,
    /// The instructions and the last messages stay in context.
    Two,
    /// The instructions and the last four messages stay, none of them longer than 4,000 characters.
    Three,
}

impl RecoverLevel {
    /// All levels, in the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::One, Self::Two, Self::Three];

    /// From 1 to 3.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The level with this number.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }
}

impl fmt::Display for RecoverLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

/// The result of a level.
pub struct RecoveredText {
    /// The transcript as it is.
    pub before: Examination,
    /// The plan, which may be empty; or why there is none.
    pub repair: Result<Repair, Unable>,
    /// How the conversation is divided, at levels 2 and 3.
    pub shares: Option<Shares>,
}

/// Draws the plan of a level. `keep` is how many messages stay at levels 2 (10 for 0) and 3 (no more than four).
///
/// At levels 2 and 3 calls and results are repaired first. Then one sentence replaces older messages, as in
/// [`crate::compact`]: in a tree nothing is deleted.
///
/// ```
/// use transcript::recover::{RecoverLevel, recover};
/// let mut text = String::new();
/// for n in 0..20 {
///     text += &format!("{{\"role\":\"user\",\"content\":\"question {n}\"}}\n{{\"role\":\"assistant\",\"content\":\"answer\"}}\n");
/// }
/// let done = recover(&transcript::Reading::new(&text.as_bytes()).unwrap(), &Default::default(), RecoverLevel::Two, 0).unwrap();
/// assert_eq!(done.shares.map(|shares| (shares.kept, shares.left_out)), Some((10, 30)));
/// assert!(done.repair.ok().unwrap().plan.length_after() < text.len() as u64);
/// ```
pub fn recover<'a>(
    reading: &Reading<'_>,
    case: impl Into<Case<'a>>,
    level: RecoverLevel,
    keep: u64,
) -> Result<RecoveredText, Fault> {
    let case = case.into();
    if level == RecoverLevel::One {
        return reset_gauges(reading.source, case, cut(reading, case, 2)?);
    }
    let keep = if keep == 0 { KEEP } else { keep };
    let (stay, message_chars_max) = match level {
        RecoverLevel::Three => (keep.min(KEEP_LAST), MESSAGE_CHARS_MAX - MARKER_CHARS),
        _ => (keep, 0),
    };
    let request = CompactRequest { stay: Stay::Last(stay), summary: None, message_chars_max };
    reset_gauges(reading.source, case, leave_out(reading, case, None, &request)?)
}

/// Sets the numbers in what stays to 0 by which the agent itself would go on to refuse the session: they count what is gone.
pub(super) fn reset_gauges(
    source: &dyn Source,
    case: Case<'_>,
    mut done: RecoveredText,
) -> Result<RecoveredText, Fault> {
    let has_gauges = done.before.facts.format.is_some_and(|format| format.gauges.is_some());
    let Ok(repair) = &mut done.repair else { return Ok(done) };
    if !has_gauges || repair.plan.is_empty() {
        return Ok(done);
    }
    let text = Rendered::new(source, &repair.plan);
    let shorter = Reading::new(&text)?;
    let Some(session) = Session::of(&shorter, case, Depth::Sizes) else { return Ok(done) };
    let steps = gauges::resets(&session, session.sent())?;
    let plan = repair.plan.then(&plan::draw(&session, &mut steps.iter())?);
    let after = examine(&Rendered::new(source, &plan), case)?;
    *repair = Repair { plan, after: Some(after) };
    Ok(done)
}

/// Repairs calls and results, divides the limits of results, and cuts long assistant messages.
pub(super) fn cut(reading: &Reading<'_>, case: Case<'_>, by: u64) -> Result<RecoveredText, Fault> {
    let mended = mend_read(reading, Case { policy: &divided(case.policy, by), ..case })?;
    let repair = mended.repair.map_err(Unable::Worse);
    Ok(RecoveredText { before: mended.before, repair, shares: None })
}

/// Leaves older messages out, after calls and results were repaired or `first` was applied.
pub(super) fn leave_out(
    reading: &Reading<'_>,
    case: Case<'_>,
    first: Option<Plan>,
    request: &CompactRequest<'_>,
) -> Result<RecoveredText, Fault> {
    let (pairing, source) = (pairing(case.policy), reading.source);
    let case = Case { policy: &pairing, ..case };
    let mended = mend_read(reading, case)?;
    let first = first.or(mended.repair.ok().map(|repair| repair.plan));
    let first = first.unwrap_or_else(|| Plan::unchanged(source.len()));
    let done = if first.is_empty() {
        compact(reading, case, request)?
    } else {
        compact(&Reading::new(&Rendered::new(source, &first))?, case, request)?
    };
    let before = mended.before;
    let second = match done.repair {
        Ok(repair) => repair,
        Err(Unable::Nothing) if !first.is_empty() => {
            let repair = Repair { plan: first, after: Some(done.before) };
            return Ok(RecoveredText { before, repair: Ok(repair), shares: None });
        }
        Err(unable) => return Ok(RecoveredText { before, repair: Err(unable), shares: None }),
    };
    let mut plan = if first.is_empty() { second.plan } else { first.then(&second.plan) };
    let (mut after, mut shares) = (second.after, done.shares);
    // Fixes may have been held back because of what is out of context now.
    if let Ok(last) = mend(&Rendered::new(source, &plan), case)?.repair
        && !last.plan.is_empty()
    {
        plan = plan.then(&last.plan);
        after = last.after.or(after);
        let mut kept = Ok(shares.kept);
        let text = Rendered::new(source, &plan);
        look(&Reading::new(&text)?, case, Depth::Sizes, &Holds::default(), &mut |session, _| {
            kept = said_in(session);
        })?;
        shares.kept = kept?;
        // The messages to keep may belong to an interrupted turn, and be removed with it.
        if shares.kept == 0 {
            return Ok(RecoveredText { before, repair: Err(Unable::Worse(Worse::Emptied)), shares: None });
        }
    }
    Ok(RecoveredText { before, repair: Ok(Repair { plan, after }), shares: Some(shares) })
}

/// The policy of level 1, with limits divided by this number (level 1 uses 2).
fn divided(policy: &Policy, by: u64) -> Policy {
    let mut less = policy.clone();
    less.result_chars_max /= by;
    less.turn_chars_max /= by;
    less.tool_chars_max.iter_mut().for_each(|(_, limit)| *limit /= by);
    less.tool_caps.iter_mut().for_each(|own| own.cap.chars_max /= by);
    less.reply_chars_max = REPLY_CHARS_MAX;
    less
}

/// Only repairs of calls, results and lines. Lines without a record are included: one with a byte order mark could
/// become the first line, and the file would begin with the mark.
fn pairing(policy: &Policy) -> Policy {
    let select = RULES.iter().filter(|rule| rule.recovers).map(|rule| rule.code().to_string()).collect();
    let selection = Selection { select, ..policy.selection.clone() };
    Policy { selection, ..policy.clone() }
}

#[cfg(test)]
mod tests {
    use super::{Reading, RecoverLevel, Unable, Worse, recover};
    use crate::examine::mend::examine;
    use crate::model::policy::Policy;
    use crate::plan::Rendered;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;
    use spans::source::Span;

    #[test]
    fn a_mark_does_not_come_to_stand_in_front() {
        let text = "{\"role\":\"user\",\"content\":\"one\"}\n\u{feff}\n\
                    {\"role\":\"user\",\"content\":\"two\"}\n{\"role\":\"user\",\"content\":\"three\"}\n";
        let source = text.as_bytes();
        let done =
            recover(&Reading::new(&source).unwrap(), &Policy::default(), RecoverLevel::Two, 1).unwrap();
        let after =
            examine(&Rendered::new(&source, &done.repair.ok().unwrap().plan), &Policy::default()).unwrap();
        let codes: Vec<_> = after.findings.iter().map(|finding| finding.rule.code()).collect();
        assert_eq!(codes, ["M7"]);
    }

    /// Claude Code would refuse by itself what is left, by the numbers of what went.
    #[test]
    fn no_number_in_what_stays_counts_what_went() {
        let line = |n: u64, kind: &str, message: &str| {
            let parent =
                if n == 1 { "null".into() } else { format!("\"0a000000-0000-4000-8000-{:012}\"", n - 1) };
            format!(
                "{{\"parentUuid\":{parent},\"isSidechain\":false,\"sessionId\":\"s\",\"type\":\"{kind}\",\"message\":{message},\"uuid\":\"0a000000-0000-4000-8000-{n:012}\",\"timestamp\":\"2026-07-01T10:00:00.000Z\"}}\n"
            )
        };
        let turn = |n: u64| {
            let usage = r#"{"input_tokens":3,"cache_creation_input_tokens":170000,"cache_read_input_tokens":1000,"output_tokens":77}"#;
            line(2 * n - 1, "user", r#"{"role":"user","content":"go"}"#)
                + &line(
                    2 * n,
                    "assistant",
                    &format!(
                        r#"{{"id":"m{n}","role":"assistant","content":[{{"type":"text","text":"done"}}],"usage":{usage}}}"#
                    ),
                )
        };
        let text: String = (1..=30).map(turn).collect();
        let bytes = text.as_bytes();
        let done = recover(&Reading::new(&bytes).unwrap(), &Policy::default(), RecoverLevel::Two, 4).unwrap();
        let repair = done.repair.ok().unwrap();
        let rendered = Rendered::new(&bytes, &repair.plan);
        let after = spans::source::read_span(&rendered, Span::new(0, spans::Source::len(&rendered))).unwrap();
        let after = String::from_utf8(after).unwrap();
        let (gone, stays) = after.split_once("compact_boundary").unwrap();
        assert_eq!(
            stays
                .matches(
                    "\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":77"
                )
                .count(),
            2
        );
        assert!(!stays.contains("170000") && gone.matches("170000").count() == 28);
        assert!(repair.after.unwrap().context_tokens.tokens < 50_000);
    }

    #[test]
    fn what_stays_does_not_go_with_its_turn() {
        let text = [
            r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#,
            r#"{"type":"message","id":"a1","parentId":null,"message":{"role":"user","content":"go"}}"#,
            r#"{"type":"message","id":"a2","parentId":"a1","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"read","arguments":{},"partialJson":"{"}],"stopReason":"aborted"}}"#,
            r#"{"type":"message","id":"a3","parentId":"a2","message":{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"x"}]}}"#,
        ];
        let text = text.map(|line| format!("{line}\n")).concat();
        let done =
            recover(&Reading::new(&text.as_bytes()).unwrap(), &Policy::default(), RecoverLevel::Two, 1)
                .unwrap();
        assert!(matches!(done.repair, Err(Unable::Worse(Worse::Emptied))));
    }
}
