//! P4: something stands between a call and its result.

use super::base::{
    Cover, FindingSink, Group, Help, Rule, RuleInfo, about_result, severity_in_context, too_heavy_to_return,
};
use super::counted::records_keep_their_order;
use crate::format::{Format, Results, Shape};
use crate::model::entry::{ContentIssueKind, Kind, Role};
use crate::model::finding::{Finding, Fix, Held, Op, Severity};
use crate::session::{Answers, Session};
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashMap;
use spans::literal::quote;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P4",
        name: "displaced-result",
        help: Help {
            what: "There is something between a call and its result, or (Qwen Code) the result is not loaded with its call.",
            why: "APIs want results directly after the message with the calls: \"`tool_use` ids were found without \
                  `tool_result` blocks immediately after\", \"insufficient tool messages following tool_calls\".",
            fix: "The result moves to right after its call, what was between comes after it, and links are adapted. \
                  Nothing is removed. Claude Code and Codex join pairs by id wherever they are. In Qwen Code, a \
                  result whose parent is neither on the branch nor its call is not loaded, so its call becomes its \
                  parent.",
            source: "OpenClaw #27150, #8221, #27356",
        },
        groups: &[Group::Pairing],
        recovers: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    // Claude Code finds the result of a call wherever it hangs.
    cover: |format| if format.any_record_is_leaf { Cover::Never } else { cover(format) },
    check,
};

pub(super) fn cover(format: &Format) -> Cover {
    match format.results {
        Results::Lines | Results::Blocks if format.shape == Shape::Log => Cover::Never,
        Results::Lines | Results::Blocks if records_keep_their_order(format) => Cover::Reported,
        Results::Lines | Results::Blocks => Cover::Fixed,
        Results::InConversation | Results::Unpaired => Cover::Reported,
        _ => Cover::Never,
    }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    if session.shape.pairs_anywhere {
        astray(session, out);
    } else {
        report(
            &RULE,
            session,
            Displacement::AfterOthers,
            "something comes between the call and its result",
            out,
        );
    }
    Ok(())
}

/// Reports displaced results within a line that is a whole conversation. Nothing moves there.
fn report_in_rows(
    rule: &'static Rule,
    session: &Session<'_>,
    displacement: Displacement,
    message: &str,
    out: &mut FindingSink<'_>,
) {
    for issue in session.transcript.issues() {
        let ((ContentIssueKind::Displaced(result), Displacement::AfterOthers)
        | (ContentIssueKind::Early(result), Displacement::BeforeCall)) = (issue.kind, displacement)
        else {
            continue;
        };
        let severity = severity_in_context(session, issue.entry);
        out.push(about_result(rule, session, result as usize, severity, message.to_string()));
    }
}

/// How a result is displaced that is not directly after its call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Displacement {
    /// It comes before the call.
    BeforeCall,
    /// It comes after the call, with something else between.
    AfterOthers,
}

/// Reports each result on the branch with this displacement. The fix moves it to right after its call.
pub(super) fn report(
    rule: &'static Rule,
    session: &Session<'_>,
    displacement: Displacement,
    message: &str,
    out: &mut FindingSink<'_>,
) {
    report_in_rows(rule, session, displacement, message, out);
    let mut pairs = Pairs::new(session);
    for (index, answers) in session.answers.iter().enumerate() {
        let Answers::Call(call) = *answers else { continue };
        let (from, to) = (session.call(call).entry, session.result(index).entry);
        if pairs.is_displaced(from, to, displacement) {
            let severity = severity_in_context(session, to);
            let fix = pairs.pull_up(from, index);
            out.push(Finding { fix, ..about_result(rule, session, index, severity, message.to_string()) });
        }
    }
}

/// In a graph a result is loaded if it is on the branch or a child of its call. Any other result is linked to its call.
fn astray(session: &Session<'_>, out: &mut FindingSink<'_>) {
    for (index, answers) in session.answers.iter().enumerate() {
        let Answers::Call(call) = *answers else { continue };
        let (from, to) = (session.call(call).entry, session.result(index).entry);
        // Children of the message with the call are loaded, even if there is user text beside them.
        let hangs_there = session.parent(to).is_some_and(|parent| session.turn(parent) == session.turn(from));
        if session.is_live(to) || hangs_there || !session.in_context(from) || session.superseded(to) {
            continue;
        }
        let at = session.entry(to).parent_at();
        let id = session.entry(from).id.map(|id| session.transcript.ids.text(id));
        let pure = session.kind(to) == Kind::Message(Role::Tool) && !session.shares_its_id(to);
        let fix = match id.filter(|id| pure && !at.is_empty() && core::str::from_utf8(id).is_ok()) {
            Some(id) => {
                let mut with = Vec::new();
                quote(id, &mut with);
                Fix::safe(vec![Op::Replace { at, with }])
            }
            None => Fix::held(Held::Tangled),
        };
        let message = "the result is linked to an entry that is not loaded".to_string();
        out.push(Finding { fix, ..about_result(&RULE, session, index, Severity::Error, message) });
    }
}

/// Whether an entry is sent and does not belong to the call's own results.
pub(crate) fn speaks(session: &Session<'_>, call: u32, entry: u32) -> bool {
    match session.kind(entry) {
        Kind::Message(Role::Tool) => {
            session.transcript.results_of(entry).any(|result| match session.answers[result] {
                Answers::Call(other) => session.call(other).entry != call,
                _ => false,
            })
        }
        Kind::Message(_) | Kind::Note | Kind::Boundary => true,
        Kind::Header | Kind::Leaf | Kind::Opaque => false,
    }
}

/// What is between calls and their results. A message may have any number of calls, so what was found out about it is
/// kept for all of them.
struct Pairs<'a> {
    session: &'a Session<'a>,
    /// Positions of the compactions on the branch.
    boundaries: Vec<usize>,
    calls: HashMap<u32, AfterCalls>,
    /// Whether all results of an entry belong to another entry's calls, for the pair that was looked up last.
    pure: Option<(u32, u32, bool)>,
}

/// What follows an entry with calls.
#[derive(Clone, Copy)]
struct AfterCalls {
    /// The position of the first entry that is none of its results; the end of the branch if all are.
    speaker: usize,
    /// See [`last_in_place`].
    last: u32,
}

impl<'a> Pairs<'a> {
    fn new(session: &'a Session<'a>) -> Self {
        let is_boundary = |&(_, entry): &(usize, &u32)| session.kind(*entry) == Kind::Boundary;
        let boundaries =
            session.live.iter().enumerate().filter(is_boundary).map(|(place, _)| place).collect();
        Self { session, boundaries, calls: HashMap::new(), pure: None }
    }

    fn after(&mut self, call: u32, place: usize) -> AfterCalls {
        let session = self.session;
        *self.calls.entry(call).or_insert_with(|| {
            let rest = &session.live[place + 1..];
            let speaker = rest.iter().position(|&entry| speaks(session, call, entry));
            let speaker = place + 1 + speaker.unwrap_or(rest.len());
            AfterCalls { speaker, last: last_in_place(session, call) }
        })
    }

    /// Whether a result is displaced in this way.
    fn is_displaced(&mut self, call: u32, result: u32, how: Displacement) -> bool {
        let (Some(from), Some(to)) = (self.session.place(call), self.session.place(result)) else {
            return false;
        };
        match how {
            Displacement::BeforeCall => to < from,
            // Nearly all come right after their call.
            Displacement::AfterOthers => to > from + 1 && self.after(call, from).speaker < to,
        }
    }

    fn is_pure(&mut self, entry: u32, call: u32) -> bool {
        if let Some((_, _, pure)) = self.pure.filter(|&(of, by, _)| (of, by) == (entry, call)) {
            return pure;
        }
        let session = self.session;
        let own = |other: usize| match session.answers[other] {
            Answers::Call(other) => session.call(other).entry == call,
            _ => false,
        };
        let pure =
            session.kind(entry) == Kind::Message(Role::Tool) && session.transcript.results_of(entry).all(own);
        self.pure = Some((entry, call, pure));
        pure
    }

    fn pull_up(&mut self, call: u32, result: usize) -> Fix {
        let session = self.session;
        let entry = session.result(result).entry;
        let pure = self.is_pure(entry, call);
        let (from, to) = (session.place(call).unwrap_or(0), session.place(entry).unwrap_or(0));
        // Across a compaction, the pair would change sides. P2 handles that.
        let first = self.boundaries.partition_point(|&place| place < from.min(to));
        let boundary = self.boundaries.get(first).is_some_and(|&place| place < from.max(to));
        let heavy = session.in_context(call) && too_heavy_to_return(session, entry);
        // A running agent may make this entry the parent of its next one.
        let held = session.is_newest(entry) && session.entry(entry).id.is_some();
        if session.is_pending(call) {
            Fix::held(Held::NewestTurn)
        } else if session.shares_its_id(entry) {
            // Among entries with one id the last line counts, which may be another one after the move.
            Fix::held(Held::Referenced)
        } else if pure
            && !boundary
            && !held
            && !heavy
            && (!session.entry(entry).listed || session.transcript.is_document)
        {
            Fix::safe(vec![Op::Move { entry, after: self.after(call, from).last }])
        } else {
            Fix::held(Held::Tangled)
        }
    }
}

/// The last result directly after the call's entry; that entry itself if there is none. A compaction may keep entries
/// from one of these results on: the model must not see a result without its call.
fn last_in_place(session: &Session<'_>, call: u32) -> u32 {
    let rest = session.place(call).map_or(&[][..], |place| &session.live[place + 1..]);
    let with_call = |entry: u32| session.in_context(entry) == session.in_context(call);
    let in_place = rest.iter().take_while(|&&entry| !speaks(session, call, entry) && with_call(entry));
    let results = in_place.filter(|&&entry| session.kind(entry) == Kind::Message(Role::Tool));
    results.last().copied().unwrap_or(call)
}
