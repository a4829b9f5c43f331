//! What a transcript says, what is wrong with it, and which bytes would mend it.
//!
//! This crate is pure: no file, no clock, no thread, no randomness, no log, and it never panics on any bytes.
//! Data flows one way, and every step is a type:
//!
//! ```text
//! Source -scan-> Transcript -session-> Session -rules-> Finding -draw-> Plan -render-> pieces of bytes
//! ```
//!
//! [`examine`] goes as far as the findings and what fixing them would save; [`mend`] draws the plan and checks that what
//! the plan gives is no worse and that nothing is left to change.
//!
//! ```
//! let text = br#"{"role":"user","content":"look"}
//! {"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"ls","arguments":"{}"}}]}
//! {"role":"tool","tool_call_id":"c","content":"a.txt"}
//! {"role":"tool","tool_call_id":"x","content":"whose?"}
//! "#;
//! let found = transcript::examine(&&text[..], &transcript::Policy::default()).unwrap();
//! assert_eq!(found.findings[0].rule.code(), "P2");
//! assert_eq!(found.findings[0].line, 4);
//! ```
//!
//! # Before it is a file
//!
//! A bot that keeps its messages itself calls the same rules before it sends or stores them:
//!
//! | what | where |
//! |---|---|
//! | the cap of one result, calls and results in pairs, the budget of a turn, ageing; all of it in one plan | [`live`] |
//! | the guard of a summariser, and its input in chunks | [`live::guard`], [`live::chunks`]; of a file, [`chunk`] |
//! | whether an error is an overflow, and how many tokens to ask for after an answer that was cut off | [`overflow`] |
//! | the numbers of five other systems | [`profile`] |
//! | a session that is too long all the same | [`recover`](mod@recover), [`compact`](mod@compact) |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod block;
pub mod chunk;
pub mod compact;
mod context;
pub mod cut;
pub mod entry;
pub mod finding;
mod fingerprint;
pub mod format;
pub mod image;
pub mod json;
pub mod literal;
pub mod live;
pub mod marker;
pub mod overflow;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod recover;
pub mod refusal;
pub mod request;
pub mod rule;
pub(crate) mod salvage;
pub mod scan;
pub mod session;
pub mod source;
pub mod tail;
pub mod verdict;
pub mod weight;

pub use finding::{Finding, Severity};
pub use plan::{Piece, Plan, Rendered};
pub use policy::Policy;
pub use session::Awaits;
pub use source::{Fault, Source, Span};

use alloc::vec::Vec;
use entry::Transcript;
use format::Format;
use overflow::Failure;
use rule::Stage;
use session::Session;
use verdict::{Health, Loss, Worse};

/// How often a plan may be drawn on the result of the one before. One round is the rule; more happen when bytes, lines or
/// links have to be put right first, or a repair uncovers something that was hidden.
const ROUNDS_MAX: usize = 10;

/// A transcript, looked at. Holds nothing of its text.
pub struct Examination {
    /// What is in it.
    pub facts: Facts,
    /// What is wrong with it, in the order of lines.
    pub findings: Vec<Finding>,
    /// How long it would be after all fixes that the policy allows.
    pub bytes_after: u64,
    /// What the model would be sent next, in tokens: estimated as for L5.
    pub context_tokens: u64,
    /// The fixes of the next stage.
    plan: Plan,
    stage: Stage,
    /// What persons said in what the plan takes out because that was asked for.
    released: (u64, u64),
    health: Health,
}

/// What is in a transcript.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Who writes such files; `None` if unknown.
    pub format: Option<&'static dyn Format>,
    /// Length in bytes.
    pub bytes: u64,
    /// Lines, the last one also without a line break.
    pub lines: u64,
    /// Objects.
    pub entries: usize,
    /// Tool calls.
    pub calls: usize,
    /// Tool results.
    pub results: usize,
    /// What the end of the conversation waits for; `None` if for nothing but a person.
    pub awaits: Option<Awaits>,
    /// How the last turn failed, if it did and the format keeps that.
    pub failed: Option<Failure>,
}

impl Facts {
    /// What a scan tells; what the end awaits takes a session.
    fn of(transcript: &Transcript) -> Self {
        Self {
            format: transcript.format,
            bytes: transcript.bytes,
            lines: transcript.lines,
            entries: transcript.entries.len(),
            calls: transcript.calls.len(),
            results: transcript.results.len(),
            awaits: None,
            failed: None,
        }
    }
}

/// How much an examination is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Everything but the addresses of what would be cut out: texts need not be hashed.
    Sizes,
    /// A plan that can be carried out.
    Plan,
}

/// Reads a transcript and asks all rules. Changes nothing. An unknown format gives no findings.
pub fn examine(source: &dyn Source, policy: &Policy) -> Result<Examination, Fault> {
    look(source, policy, Depth::Sizes, &mut |_, _| {})
}

/// What may be asked of a session and its findings before they are let go of.
type Remember<'r> = &'r mut dyn FnMut(&Session<'_>, &[Finding]);

fn look(
    source: &dyn Source,
    policy: &Policy,
    depth: Depth,
    remember: Remember<'_>,
) -> Result<Examination, Fault> {
    let transcript = scan::scan(source)?;
    let mut facts = Facts::of(&transcript);
    let Some(session) = Session::new(&transcript, source, policy, depth) else {
        let (plan, health) = (Plan::unchanged(facts.bytes), Health::default());
        let (bytes_after, stage) = (facts.bytes, Stage::default());
        let (findings, released, context_tokens) = (Vec::new(), (0, 0), 0);
        return Ok(Examination {
            facts,
            findings,
            bytes_after,
            context_tokens,
            plan,
            stage,
            released,
            health,
        });
    };
    facts.awaits = session.awaits();
    facts.failed = overflow::failure_of(&session)?;
    let mut findings = rule::check_all(&session)?;
    let stage = plan::next_stage(&session, &findings);
    let plan = plan::draw(&session, &findings, stage)?;
    // About: what later stages would save is told from the text as it is now.
    let mut bytes_after = plan.length_after();
    for later in [Stage::Lines, Stage::Links, Stage::Talk].into_iter().filter(|later| *later > stage) {
        let after = plan::draw(&session, &findings, later)?.length_after();
        bytes_after = (bytes_after + after).saturating_sub(facts.bytes);
    }
    let health = Health::of(&session, &findings);
    let released =
        if stage == Stage::Talk { rule::dead_weight::released(&session, &findings) } else { (0, 0) };
    let context_tokens = rule::context_tokens(&session)?;
    remember(&session, &findings);
    for finding in &mut findings {
        finding.label(&transcript);
    }
    Ok(Examination { facts, findings, bytes_after, context_tokens, plan, stage, released, health })
}

/// A transcript, and what is to become of it.
pub struct Mended {
    /// The transcript as it is.
    pub before: Examination,
    /// The repair; an error if there is none that leaves the transcript no worse.
    pub repair: Result<Repair, Worse>,
}

/// A plan that was tried and found good.
pub struct Repair {
    /// All changes; none if there is nothing to mend.
    pub plan: Plan,
    /// The transcript as the plan would make it; `None` if there is nothing to change.
    pub after: Option<Examination>,
}

/// Draws a plan, checks what it gives, and repeats that until nothing is left to change.
pub fn mend(source: &dyn Source, policy: &Policy) -> Result<Mended, Fault> {
    mend_while(source, policy, &mut |_| {})
}

/// The same; `drawn` is shown the first plan before it is checked, so that work which only needs what that takes out can
/// go on meanwhile. Nothing may come of it: the plan may be found bad, or more may be added to it.
pub fn mend_while(
    source: &dyn Source,
    policy: &Policy,
    drawn: &mut dyn FnMut(&Plan),
) -> Result<Mended, Fault> {
    mend_and_remember(source, policy, drawn, &mut |_, _| {})
}

/// The same; the transcript is asked about as it is, and then after each round.
fn mend_and_remember(
    source: &dyn Source,
    policy: &Policy,
    drawn: &mut dyn FnMut(&Plan),
    remember: Remember<'_>,
) -> Result<Mended, Fault> {
    let before = look(source, policy, Depth::Plan, remember)?;
    let mut plan = before.plan.clone();
    if plan.is_empty() {
        return Ok(Mended { before, repair: Ok(Repair { plan, after: None }) });
    }
    drawn(&plan);
    // What is to be no worse: the transcript as it was, or as it was when all of it could be read.
    let (mut baseline, mut stage) = (before.baseline(), before.stage);
    baseline.release(before.released);
    for _ in 0..ROUNDS_MAX {
        let next = look(&Rendered::new(source, &plan), policy, Depth::Plan, remember)?;
        if stage < Stage::Talk {
            if let Err(worse) = baseline.lay_open(&next) {
                return Ok(Mended { before, repair: Err(worse) });
            }
            stage = next.stage;
        }
        if next.plan.is_empty() {
            let repair = baseline.compare(&next, Loss::None).map(|()| Repair { plan, after: Some(next) });
            return Ok(Mended { before, repair });
        }
        baseline.release(next.released);
        plan = plan.then(&next.plan);
    }
    Ok(Mended { before, repair: Err(Worse::Unsettled) })
}
