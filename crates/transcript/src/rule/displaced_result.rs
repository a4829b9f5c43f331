//! P4: something stands between a call and its result.

use super::base::{
    Cover, Found, Group, Help, Rule, RuleInfo, about_result, severity_in_context, too_heavy_to_return,
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
            what: "There is something between a call and its result, or (Claude Code) the result is not loaded with its call.",
            why: "APIs want results directly behind the message with the calls: \"`tool_use` ids were found without \
                  `tool_result` blocks immediately after\", \"insufficient tool messages following tool_calls\".",
            fix: "The result moves up behind its call, what stood between comes after it, and links follow. Nothing is \
                  taken out. Claude Code and Codex join pairs by id wherever they stand. Claude Code does if it loads them: a \
                  result that hangs on neither the branch nor its call is linked to its call.",
            source: "OpenClaw #27150, #8221, #27356",
        },
        groups: &[Group::Pairing],
        recovers: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
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

fn check(session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
    if session.shape.pairs_anywhere {
        astray(session, out);
    } else {
        report(
            &RULE,
            session,
            Displacement::AfterOthers,
            "there is something between the call and its result",
            out,
        );
    }
    Ok(())
}

/// What stands so within a line that is a whole conversation. Nothing moves there.
fn report_in_rows(
    rule: &'static Rule,
    session: &Session<'_>,
    displacement: Displacement,
    message: &str,
    out: &mut Found<'_>,
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

/// How a result is displaced that does not come right after its call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Displacement {
    /// It comes before the call.
    BeforeCall,
    /// It comes after the call, with something else between.
    AfterOthers,
}

/// Reports each result on the branch that is displaced so. The fix moves it to right after its call.
pub(super) fn report(
    rule: &'static Rule,
    session: &Session<'_>,
    displacement: Displacement,
    message: &str,
    out: &mut Found<'_>,
) {
    report_in_rows(rule, session, displacement, message, out);
    let mut pairs = Pairs::new(session);
    for (index, answers) in session.answers.iter().enumerate() {
        let Answers::Call(call) = *answers else { continue };
        let (from, to) = (session.call(call).entry, session.result(index).entry);
        if pairs.displaced(from, to) == Some(displacement) {
            let severity = severity_in_context(session, to);
            let fix = pairs.pull_up(from, index);
            out.push(Finding { fix, ..about_result(rule, session, index, severity, message.to_string()) });
        }
    }
}

/// In a graph a result is loaded if it hangs on the branch or on its call; one that hangs elsewhere is linked to its call.
fn astray(session: &Session<'_>, out: &mut Found<'_>) {
    for (index, answers) in session.answers.iter().enumerate() {
        let Answers::Call(call) = *answers else { continue };
        let (from, to) = (session.call(call).entry, session.result(index).entry);
        // What hangs on the message with the call is loaded, also where a person's text stands beside it.
        let hangs_there = session.parent(to).is_some_and(|parent| session.turn(parent) == session.turn(from));
        if session.is_live(to) || hangs_there || !session.in_context(from) || session.superseded(to) {
            continue;
        }
        let at = session.entry(to).parent_at;
        let id = session.entry(from).id.map(|id| session.transcript.ids.text(id));
        let pure = session.entry(to).kind == Kind::Message(Role::Tool) && !session.shares_its_id(to);
        let fix = match id.filter(|id| pure && !at.is_empty() && core::str::from_utf8(id).is_ok()) {
            Some(id) => {
                let mut with = Vec::new();
                quote(id, &mut with);
                Fix::safe(vec![Op::Replace { at, with }])
            }
            None => Fix::held(Held::Tangled),
        };
        let message = "the result is linked where it is not loaded".to_string();
        out.push(Finding { fix, ..about_result(&RULE, session, index, Severity::Error, message) });
    }
}

/// Whether an entry is part of what is sent and does not belong to the call's own results.
pub(crate) fn speaks(session: &Session<'_>, call: u32, entry: u32) -> bool {
    match session.entry(entry).kind {
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

/// What stands between calls and their results. One message may have any number of calls: what is found out about it is
/// kept for all of them.
struct Pairs<'a> {
    session: &'a Session<'a>,
    /// Places of the compactions on the branch.
    boundaries: Vec<usize>,
    calls: HashMap<u32, After>,
    /// Whether all results of an entry are of one entry's calls, for the two that were asked about last.
    pure: Option<(u32, u32, bool)>,
}

/// What comes after an entry with calls.
#[derive(Clone, Copy)]
struct After {
    /// The place of the first that is none of its results; the end of the branch if there is none.
    speaker: usize,
    /// See [`last_in_place`].
    last: u32,
}

impl<'a> Pairs<'a> {
    fn new(session: &'a Session<'a>) -> Self {
        let is_boundary = |&(_, entry): &(usize, &u32)| session.entry(*entry).kind == Kind::Boundary;
        let boundaries =
            session.live.iter().enumerate().filter(is_boundary).map(|(place, _)| place).collect();
        Self { session, boundaries, calls: HashMap::new(), pure: None }
    }

    fn after(&mut self, call: u32, place: usize) -> After {
        let session = self.session;
        *self.calls.entry(call).or_insert_with(|| {
            let behind = &session.live[place + 1..];
            let speaker = behind.iter().position(|&entry| speaks(session, call, entry));
            let speaker = place + 1 + speaker.unwrap_or(behind.len());
            After { speaker, last: last_in_place(session, call) }
        })
    }

    fn displaced(&mut self, call: u32, result: u32) -> Option<Displacement> {
        let (from, to) = (self.session.place(call)?, self.session.place(result)?);
        if to < from {
            return Some(Displacement::BeforeCall);
        }
        (self.after(call, from).speaker < to).then_some(Displacement::AfterOthers)
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
        let pure = session.entry(entry).kind == Kind::Message(Role::Tool)
            && session.transcript.results_of(entry).all(own);
        self.pure = Some((entry, call, pure));
        pure
    }

    fn pull_up(&mut self, call: u32, result: usize) -> Fix {
        let session = self.session;
        let entry = session.result(result).entry;
        let pure = self.is_pure(entry, call);
        let (from, to) = (session.place(call).unwrap_or(0), session.place(entry).unwrap_or(0));
        // Across a compaction the pair would change sides; that is for the rule about boundaries.
        let first = self.boundaries.partition_point(|&place| place < from.min(to));
        let boundary = self.boundaries.get(first).is_some_and(|&place| place < from.max(to));
        let heavy = session.in_context(call) && too_heavy_to_return(session, entry);
        // A running agent may hang its next entry on this one.
        let held = session.is_newest(entry) && session.entry(entry).id.is_some();
        if session.is_pending(call) {
            Fix::held(Held::NewestTurn)
        } else if session.shares_its_id(entry) {
            // Of entries with one id the last line counts, and that may be another one afterwards.
            Fix::held(Held::Referenced)
        } else if pure && !boundary && !held && !heavy && !session.entry(entry).listed {
            Fix::safe(vec![Op::Move { entry, after: self.after(call, from).last }])
        } else {
            Fix::held(Held::Tangled)
        }
    }
}

/// The last of the results that stand where they should, directly behind the call's entry; that entry itself if
/// there is none. What a compaction kept may begin among them: the model must not see a result without its call.
fn last_in_place(session: &Session<'_>, call: u32) -> u32 {
    let behind = session.place(call).map_or(&[][..], |place| &session.live[place + 1..]);
    let with_call = |entry: u32| session.in_context(entry) == session.in_context(call);
    let in_place = behind.iter().take_while(|&&entry| !speaks(session, call, entry) && with_call(entry));
    let results = in_place.filter(|&&entry| session.entry(entry).kind == Kind::Message(Role::Tool));
    results.last().copied().unwrap_or(call)
}
