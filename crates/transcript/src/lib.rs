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
mod mend;
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

pub use context::Messages;
pub use finding::{Finding, Severity};
pub use mend::{Mended, Repair, examine, mend, mend_while};
pub use plan::{Piece, Plan, Rendered};
pub use policy::Policy;
pub use session::Awaits;
pub use source::{Fault, Source, Span};

use alloc::vec::Vec;
use entry::Transcript;
use finding::Op;
use format::Format;
use mend::Holds;
use overflow::Failure;
use rule::Stage;
use session::Session;
use verdict::Conversation;

/// A transcript, looked at. Holds nothing of its text.
pub struct Examination {
    /// What is in it.
    pub facts: Facts,
    /// How much of the conversation the model sees.
    pub messages: Messages,
    /// What is wrong with it, in the order of lines.
    pub findings: Vec<Finding>,
    /// How long it would be after all fixes that the policy allows.
    pub bytes_after: u64,
    /// What the model would be sent next, in tokens: estimated as for L5.
    pub context_tokens: u64,
    /// The model binds its thinking to what comes before it (M4).
    pub binds: bool,
    /// Where the last entry in context begins that holds such thinking.
    pub signed_at: Option<u64>,
    /// The fixes of the next stage.
    plan: Plan,
    stage: Stage,
    /// What of the conversation is in what the plan takes out because that was asked for.
    released: Conversation,
    /// The fixes shorten texts and do nothing else, so that a look tells what comes of them.
    only_cuts: bool,
    said: Conversation,
}

/// What is in a transcript.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Who writes such files; `None` if unknown.
    pub format: Option<&'static dyn Format>,
    /// The file is one JSON object or array, and of no known format.
    pub is_document: bool,
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
            is_document: transcript.is_document,
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

/// What may be asked of a session and its findings before they are let go of.
type Remember<'r> = &'r mut dyn FnMut(&Session<'_>, &[Finding]);

/// Reads a transcript and asks all rules, and draws the plan of the next stage. An unknown format gives no findings.
fn look(
    source: &dyn Source,
    policy: &Policy,
    depth: Depth,
    holds: &Holds<'_>,
    remember: Remember<'_>,
) -> Result<Examination, Fault> {
    let transcript = scan::scan(source)?;
    let mut facts = Facts::of(&transcript);
    let Some(session) = Session::new(&transcript, source, policy, depth) else {
        return Ok(Examination {
            facts,
            messages: Messages::default(),
            findings: Vec::new(),
            bytes_after: facts.bytes,
            context_tokens: 0,
            binds: false,
            signed_at: None,
            plan: Plan::unchanged(facts.bytes),
            stage: Stage::default(),
            released: Conversation::default(),
            only_cuts: true,
            said: Conversation::default(),
        });
    };
    facts.awaits = session.awaits();
    facts.failed = overflow::failure_of(&session)?;
    let binds = rule::bound_thinking::binds(&session);
    let signed = rule::bound_thinking::bound(&session);
    let signed_at = signed.last().map(|&entry| session.entry(entry).span.start);
    let messages = Messages::of(&session);
    let mut findings = rule::check_all(&session, holds)?;
    let stage = plan::next_stage(&session, &findings);
    let mut plan = plan::draw(&session, &findings, stage)?;
    plan.unsettles_memory = rule::bound_thinking::unsettles_memory(&session, &findings, stage);
    // About: what later stages would save is told from the text as it is now.
    let mut bytes_after = plan.length_after();
    for later in [Stage::Lines, Stage::Links, Stage::Talk].into_iter().filter(|later| *later > stage) {
        let after = plan::draw(&session, &findings, later)?.length_after();
        bytes_after = (bytes_after + after).saturating_sub(facts.bytes);
    }
    let said = Conversation::of(&session, messages.seen);
    let released = Conversation::released(&session, &findings, stage);
    let is_cut = |op: &Op| matches!(op, Op::Cut { .. } | Op::Keep(_));
    let applied = || findings.iter().filter(|finding| policy.selection.applies(finding));
    let only_cuts = holds.is_empty() && applied().flat_map(|finding| &finding.fix.ops).all(is_cut);
    let context_tokens = rule::context_tokens(&session)?;
    remember(&session, &findings);
    for finding in &mut findings {
        finding.label(&transcript);
    }
    Ok(Examination {
        facts,
        messages,
        findings,
        bytes_after,
        context_tokens,
        binds,
        signed_at,
        plan,
        stage,
        released,
        only_cuts,
        said,
    })
}
