//! What may be wrong with a session. One file a rule; [`RULES`] lists them all.
//!
//! A rule sees the whole session and yields findings. It changes nothing: what a fix would do is said in
//! [`crate::finding::Op`] steps, and only [`crate::plan`] turns those into bytes. Codes are
//! stable, listed in docs/rules.md; names say what is wrong, not the cure.

use crate::entry::{Damage, Kind, QuirkKind, Role};
use crate::finding::{Finding, Fix, Guard, Held, Labels, Op, Severity};
use crate::format::{Answer, Counted, Format, Results, Shape};
use crate::found::Found;
use crate::salvage::Wreck;
use crate::session::Session;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use spans::source::{Fault, Span, read_span};

mod abandoned_compaction;
mod aborted_call_with_result;
mod altered_thought;
mod before_compaction;
mod blocked_content;
pub(crate) mod bound_thinking;
mod broken_ordinals;
mod broken_record;
mod byte_order_mark;
mod call_without_arguments;
mod call_without_result;
mod context_over_limit;
mod control_text;
mod copied_entry;
mod counter_past_end;
mod crowded_window;
mod dangling_boundary;
mod dangling_parent;
mod dead_weight;
mod displaced_result;
mod duplicate_call_id;
mod duplicate_result;
mod empty_text;
mod empty_turn;
mod error_flood;
mod foreign_encoding;
mod foreign_rows;
mod glued_lines;
mod half_pair;
mod invalid_thinking;
mod invalid_tool_name;
mod line_separator;
pub(crate) mod mirrored_reply;
mod misordered_results;
mod misplaced_header;
mod no_user_turn;
mod nul_bytes;
mod off_branch;
mod over_limit;
mod oversized_file;
mod oversized_for_summary;
mod oversized_line;
mod oversized_reply;
mod oversized_result;
mod oversized_side_copy;
mod oversized_turn;
mod parent_cycle;
mod progress_entry;
mod reasoning_alone;
mod removal;
#[cfg(test)]
mod restless;
mod result_before_call;
mod result_over_limit;
mod result_without_call;
mod same_role_again;
mod sidechain_entry;
mod stale_result;
mod superseded_record;
mod superseded_snapshot;
mod tool_stop_without_call;
mod torn_line;
mod trim;
mod turn_over_limit;
mod unacceptable_call_id;
mod unreadable_line;
pub(crate) mod unreadable_size;
mod unseen_title;
mod unsendable_image;

pub(crate) use call_without_result::next_user;
pub(crate) use context_over_limit::context_tokens;
pub(crate) use displaced_result::speaks;
pub(crate) use invalid_tool_name::are_plain;
pub(crate) use no_user_turn::{is_from_user, lacks_a_user};
pub(crate) use oversized_for_summary::OversizedForSummary;
pub(crate) use oversized_reply::shorten_message;
pub(crate) use oversized_turn::OversizedTurn;
pub(crate) use same_role_again::{Flow, flow};
pub(crate) use trim::most;
pub(crate) use unacceptable_call_id::is_taken;
pub(crate) use unseen_title::Titles;

/// All rules, in the order in which they look and plan: pairing, then sizes, then ages, then bytes,
/// then what breaks a limit of the run.
pub const RULES: &[&dyn Rule] = &[
    &call_without_result::CallWithoutResult,
    &result_without_call::ResultWithoutCall,
    &aborted_call_with_result::AbortedCallWithResult,
    &displaced_result::DisplacedResult,
    &duplicate_result::DuplicateResult,
    &duplicate_call_id::DuplicateCallId,
    &misordered_results::MisorderedResults,
    &result_before_call::ResultBeforeCall,
    &call_without_arguments::CallWithoutArguments,
    &invalid_tool_name::InvalidToolName,
    &unacceptable_call_id::UnacceptableCallId,
    &tool_stop_without_call::ToolStopWithoutCall,
    &oversized_result::OversizedResult,
    &oversized_turn::OversizedTurn,
    &oversized_for_summary::OversizedForSummary,
    &oversized_side_copy::OversizedSideCopy,
    &stale_result::StaleResult,
    &crowded_window::CrowdedWindow,
    &oversized_reply::OversizedReply,
    &superseded_record::SupersededRecord,
    &torn_line::TornLine,
    &glued_lines::GluedLines,
    &nul_bytes::NulBytes,
    &foreign_encoding::ForeignEncoding,
    &half_pair::HalfPair,
    &line_separator::LineSeparator,
    &byte_order_mark::ByteOrderMark,
    &broken_record::BrokenRecord,
    &unreadable_line::UnreadableLine,
    &misplaced_header::MisplacedHeader,
    &control_text::ControlText,
    &dangling_parent::DanglingParent,
    &parent_cycle::ParentCycle,
    &abandoned_compaction::AbandonedCompaction,
    &dangling_boundary::DanglingBoundary,
    &copied_entry::CopiedEntry,
    &foreign_rows::ForeignRows,
    &broken_ordinals::BrokenOrdinals,
    &counter_past_end::CounterPastEnd,
    &mirrored_reply::MirroredReply,
    &empty_turn::EmptyTurn,
    &empty_text::EmptyText,
    &invalid_thinking::InvalidThinking,
    &reasoning_alone::ReasoningAlone,
    &altered_thought::AlteredThought,
    &same_role_again::SameRoleAgain,
    &no_user_turn::NoUserTurn,
    &blocked_content::BlockedContent,
    &error_flood::ErrorFlood,
    &unsendable_image::UnsendableImage,
    &progress_entry::ProgressEntry,
    &superseded_snapshot::SupersededSnapshot,
    &sidechain_entry::SidechainEntry,
    &before_compaction::BeforeCompaction,
    &off_branch::OffBranch,
    &unseen_title::UnseenTitle,
    &unreadable_size::UnreadableSize,
    &bound_thinking::BoundThinking,
    &oversized_file::OversizedFile,
    &oversized_line::OversizedLine,
    &result_over_limit::ResultOverLimit,
    &turn_over_limit::TurnOverLimit,
    &context_over_limit::ContextOverLimit,
    #[cfg(test)]
    &restless::Restless,
];

/// One thing that may be wrong.
pub trait Rule: Sync {
    /// Stable short code.
    fn code(&self) -> &'static str;

    /// Stable name.
    fn name(&self) -> &'static str;

    /// What a person wants to know about it.
    fn help(&self) -> Help;

    /// When its fixes are made.
    fn stage(&self) -> Stage {
        Stage::Talk
    }

    /// What it does in a format. It is asked to look only where this is not [`Cover::Never`].
    fn cover(&self, _format: &dyn Format) -> Cover {
        Cover::Fixed
    }

    /// Whether its fixes change history that the agent has sent many times, and prompt caches hold.
    fn rewrites_history(&self) -> bool {
        false
    }

    /// Looks for it.
    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault>;
}

/// What a rule does in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// It finds it, and there are places where it mends it.
    Fixed,
    /// It finds it and says so.
    Reported,
    /// It cannot occur there, or the owning program puts it right by itself; docs/rules.md says why, and what is left.
    Never,
}

/// What has to be right before the rest can be looked at: fixes of an earlier stage are made by themselves, and then
/// all is read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Bytes that keep records from being read.
    Bytes,
    /// Which records there are.
    Lines,
    /// How they hang together.
    Links,
    /// What they say to each other.
    #[default]
    Talk,
}

impl fmt::Debug for dyn Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code(), self.name())
    }
}

/// The text of `tailor explain`.
#[derive(Clone, Copy, Debug)]
pub struct Help {
    /// What is wrong, in one sentence.
    pub what: &'static str,
    /// Why that hurts; error texts of APIs that come from it.
    pub why: &'static str,
    /// What `fix` does, and when it does not.
    pub fix: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
}

/// The rule with this code or name, in any case.
pub fn find(text: &str) -> Option<&'static dyn Rule> {
    RULES
        .iter()
        .copied()
        .find(|rule| rule.code().eq_ignore_ascii_case(text) || rule.name().eq_ignore_ascii_case(text))
}

/// Whether a finding tells what is in a file rather than what is wrong with it, so that a repair of something else may
/// bring it to light: notes about content, weight that is not loaded, and how far from the end something stands.
pub fn is_remark(finding: &Finding) -> bool {
    let groups = ["content", "dead-weight"].into_iter().filter_map(Group::find);
    let code = finding.rule.code();
    let distant = code == "S11";
    finding.severity == Severity::Note && (distant || groups.into_iter().any(|group| GROUPS[group.0].1(code)))
}

/// Rules that are about one thing, and can be chosen together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(usize);

/// Whether a group has a code.
type Has = fn(&str) -> bool;

/// Each group: its name, and which codes it has.
const GROUPS: &[(&str, Has)] = &[
    ("pairing", |code| code.starts_with('P')),
    ("content", |code| code.starts_with('M')),
    ("images", |code| code == "S4"),
    ("dead-weight", |code| ["S6", "S7", "S8", "S9", "S17", "S18", "T3"].contains(&code)),
    ("bytes", |code| code.starts_with('B')),
    ("tree", |code| code.starts_with('T')),
];

impl Group {
    /// The names of all groups.
    pub const NAMES: [&'static str; GROUPS.len()] = {
        let (mut names, mut n) = ([""; GROUPS.len()], 0);
        while n < GROUPS.len() {
            names[n] = GROUPS[n].0;
            n += 1;
        }
        names
    };

    /// The group with this name.
    pub fn find(name: &str) -> Option<Self> {
        GROUPS.iter().position(|(own, _)| own.eq_ignore_ascii_case(name)).map(Self)
    }

    /// The codes of its rules.
    pub fn codes(self) -> impl Iterator<Item = &'static str> {
        let has = GROUPS[self.0].1;
        RULES.iter().map(|rule| rule.code()).filter(move |code| has(code))
    }
}

/// Whether no record of a format ever comes or goes.
fn records_stay(format: &dyn Format) -> bool {
    records_keep_their_order(format) || matches!(format.counted(), Some(Counted::Number(_)))
}

/// Whether none ever moves.
fn records_keep_their_order(format: &dyn Format) -> bool {
    matches!(format.counted(), Some(Counted::Records(_) | Counted::Lines(_)))
}

/// What a rule does in a format that takes results out: with their lines, or out of them.
fn cover_of_removed_results(format: &dyn Format) -> Cover {
    match format.results() {
        Results::Lines if records_stay(format) => Cover::Reported,
        Results::Lines | Results::Blocks => Cover::Fixed,
        Results::InConversation => Cover::Reported,
        Results::WithCall | Results::Unpaired | Results::Unread => Cover::Never,
    }
}

/// Why the file, or what counts its lines, does not allow these steps.
pub(crate) fn forbidden(session: &Session<'_>, steps: &[Op]) -> Result<Option<Held>, Fault> {
    if let Some(why) = session.read_only() {
        return Ok(Some(Held::ReadOnly(why)));
    }
    let (place, lines, from) = match session.format.counted() {
        None => return Ok(None),
        Some(Counted::Records(place) | Counted::Number(place)) => (place, false, u32::MAX),
        Some(Counted::Lines(place)) => (place, true, u32::MAX),
        Some(Counted::UpToCompaction(place)) => (place, false, session.last_boundary().unwrap_or(0)),
        Some(Counted::UpToCount(place)) => (place, false, counted_up_to(session)),
    };
    for op in steps {
        let changes = match *op {
            Op::Insert { .. } | Op::ToFront(_) => true,
            Op::DropEntry(entry) | Op::DropCopy(entry) => entry < from,
            Op::Move { .. } if matches!(session.format.counted(), Some(Counted::Number(_))) => false,
            Op::Move { entry, after } => entry < from || after < from,
            Op::Answer(call) => {
                session.format.answer() != Answer::NextUser && session.call(call).entry < from
            }
            Op::Replace { at, ref with } if lines => changes_line_count(session, at, with)?,
            Op::Replace { .. } | Op::Cut { .. } | Op::DropBlock { .. } | Op::Keep(_) => false,
        };
        if changes {
            return Ok(Some(Held::Counted(place)));
        }
    }
    Ok(None)
}

/// The first entry that no count in the file reaches. What cannot be read may have been counted.
fn counted_up_to(session: &Session<'_>) -> u32 {
    let counts = session.transcript.quirks().iter().filter_map(|quirk| match quirk.kind {
        QuirkKind::Counts(count) => Some(u32::try_from(count).unwrap_or(u32::MAX)),
        _ => None,
    });
    match counts.max() {
        Some(0) => 0,
        Some(count) => count.saturating_add(1).saturating_add(session.transcript.damage.len() as u32),
        None => u32::MAX,
    }
}

/// Whether a line comes or goes, or comes to be empty, of those that end: they are counted.
fn changes_line_count(session: &Session<'_>, at: Span, with: &[u8]) -> Result<bool, Fault> {
    let bytes = session.transcript.bytes;
    let read = |start: u64, end: u64| read_span(session.source, Span::new(start, end.min(bytes)));
    let ends = !at.is_empty() && read(at.end - 1, at.end)? == b"\n";
    if ends || at.end >= bytes {
        return Ok(ends);
    }
    let begins = at.start == 0 || read(at.start - 1, at.start)? == b"\n";
    let behind = read(at.end, at.end + 2)?;
    let nothing_else = behind.starts_with(b"\n") || behind.starts_with(b"\r\n");
    Ok(with.contains(&b'\n') || (with.is_empty() && begins && nothing_else))
}

/// A finding about an entry, without a fix yet.
fn about(
    rule: &'static dyn Rule,
    session: &Session<'_>,
    entry: u32,
    severity: Severity,
    message: String,
) -> Finding {
    let found = session.entry(entry);
    let at = found.span.start;
    Finding { entry: Some(entry), at, ..about_place(rule, found.line, severity, message) }
}

/// A finding about a call.
fn about_call(
    rule: &'static dyn Rule,
    session: &Session<'_>,
    call: usize,
    severity: Severity,
    message: &str,
) -> Finding {
    let found = &session.transcript.calls[call];
    Finding {
        call: found.id,
        tool: found.name,
        ..about(rule, session, found.entry, severity, message.into())
    }
}

/// A finding about a line that is not an entry.
fn about_line(
    rule: &'static dyn Rule,
    damage: &Damage,
    severity: Severity,
    message: String,
    fix: Fix,
) -> Finding {
    Finding { fix, at: damage.span.start, ..about_place(rule, damage.line, severity, message) }
}

/// A finding about a line and nothing on it; about the whole file if that is line 1.
fn about_place(rule: &'static dyn Rule, line: u64, severity: Severity, message: String) -> Finding {
    Finding {
        rule,
        severity,
        line,
        labels: Labels::default(),
        uncovered: false,
        more: 0,
        at: 0,
        entry: None,
        call: None,
        tool: None,
        chars: None,
        saves_bytes: None,
        message,
        fix: Fix::NONE,
    }
}

/// A finding about a line that is no record, with what would mend it.
fn about_wreck(rule: &'static dyn Rule, wreck: &Wreck, message: String) -> Finding {
    // Without the line, records are hidden from the agent; else it was nothing that any program could read.
    let severity = if wreck.records > 0 || wreck.user { Severity::Error } else { Severity::Warning };
    let message = if wreck.user { format!("{message}; a user's message begins in it") } else { message };
    let replace = |(at, with): &(Span, Vec<u8>)| Op::Replace { at: *at, with: with.clone() };
    let fix = Fix::safe(wreck.edits.iter().map(replace).collect());
    about_line(rule, &wreck.damage, severity, message, fix)
}

/// A finding about a result.
fn about_result(
    rule: &'static dyn Rule,
    session: &Session<'_>,
    result: usize,
    severity: Severity,
    message: String,
) -> Finding {
    let found = session.result(result);
    Finding {
        call: found.call,
        tool: tool_of(session, result),
        ..about(rule, session, found.entry, severity, message)
    }
}

/// Pairing errors make the API refuse the session only where the model sees them.
fn severity_in_context(session: &Session<'_>, entry: u32) -> Severity {
    if session.in_context(entry) { Severity::Error } else { Severity::Note }
}

/// The tool that a result is from: its own word, or its call's.
pub(crate) fn tool_of(session: &Session<'_>, result: usize) -> Option<crate::entry::Id> {
    session.result(result).name.or_else(|| match session.answers[result] {
        crate::session::Answers::Call(call) | crate::session::Answers::Again(call) => session.call(call).name,
        _ => None,
    })
}

/// Whether an entry is not to come back into context: a summariser could not take it.
fn too_heavy_to_return(session: &Session<'_>, entry: u32) -> bool {
    let limit = session.policy.summary_chars_max;
    !session.in_context(entry) && limit > 0 && session.entry(entry).text_chars > limit
}

/// The results that go, each with the fix that takes it out of its entry together with the others there. That is planned
/// once for each entry, which may hold thousands.
fn removals<'s>(
    session: &'s Session<'_>,
    goes: &'s dyn Fn(usize) -> bool,
) -> impl Iterator<Item = (usize, Fix)> + 's {
    let mut last: Option<(u32, Fix)> = None;
    (0..session.answers.len()).filter(|&result| goes(result)).map(move |result| {
        let entry = session.result(result).entry;
        let (_, fix) = last.take().filter(|(of, _)| *of == entry).unwrap_or_else(|| {
            let together: Vec<usize> =
                session.transcript.results_of(entry).filter(|&other| goes(other)).collect();
            (entry, drop_results(session, entry, &together))
        });
        last = Some((entry, fix.clone()));
        (result, fix)
    })
}

/// Takes results out of an entry, and that as well if nothing else is left in it. They are in order.
fn drop_results(session: &Session<'_>, entry: u32, results: &[usize]) -> Fix {
    let Kind::Message(role) = session.entry(entry).kind else {
        // It is one of many messages, and the entry is all of them.
        return Fix::held(Held::Tangled);
    };
    let block_of = |result: usize| session.result(result).block;
    let mut blocks: Vec<Span> = results.iter().map(|&result| block_of(result)).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let mut own = session.transcript.results_of(entry);
    if results.iter().any(|&result| session.is_in_record_of_call(result)) {
        let goes = |result: usize| results.binary_search(&result).is_ok();
        if own.any(|other| !goes(other) && blocks.binary_search(&block_of(other)).is_ok()) {
            return Fix::held(Held::Tangled);
        }
        let emptied = blocks.into_iter().map(|at| Op::Replace { at, with: b"[]".to_vec() });
        return Fix::safe(emptied.collect());
    }
    let whole = results.iter().any(|&result| session.result(result).whole);
    let alone = whole || (role == Role::Tool && results.len() == own.len());
    // Somebody may rewind to a record that its id tells: an empty one stays.
    if !alone || session.format.shape() == Shape::Upserts {
        return Fix::safe(blocks.into_iter().map(|block| Op::DropBlock { entry, block }).collect());
    }
    if session.shares_its_id(entry) || session.is_labelled(entry) {
        return Fix::held(Held::Referenced);
    }
    let ops = alloc::vec![Op::DropEntry(entry)];
    if session.format.answer() != Answer::Line {
        return Fix::guarded(Guard::ChangesLineCount, ops);
    }
    let is_newest = session.is_newest(entry) && session.entry(entry).id.is_some();
    if is_newest { Fix::guarded(Guard::NewestEntry, ops) } else { Fix::safe(ops) }
}
