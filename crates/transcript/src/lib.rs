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
//! # Around a transcript
//!
//! | what | where |
//! |---|---|
//! | the input of a summariser, in chunks that fit | [`chunk`] |
//! | whether an error is an overflow, and how many tokens to ask for after an answer that was cut off | [`overflow`] |
//! | the numbers of five other systems | [`profile`] |
//! | a session that is too long all the same | [`recover`](mod@recover), [`compact`](mod@compact) |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod chunk;
pub mod compact;
mod context;
pub mod format;
mod found;
mod mend;
mod model;
pub mod overflow;
pub mod plan;
pub mod profile;
pub mod recover;
pub mod request;
pub mod rule;
pub(crate) mod salvage;
pub mod scan;
pub mod session;
pub mod tail;
pub mod verdict;
pub mod weight;

pub use context::Messages;
pub use finding::{Finding, Severity};
pub use mend::{Mended, Repair, examine, mend, mend_while};
pub use model::policy::Policy;
pub use model::{finding, image, policy, refusal};

/// The words that all formats share: entry, tool call, tool result, boundary, branch.
pub mod entry {
    pub use crate::model::draft::{Draft, SIDE_BYTES_MIN};
    pub use crate::model::entry::*;
    pub use crate::model::ids::{Id, Ids};
    pub use crate::model::image::Image;
    pub use crate::model::transcript::Transcript;
}
pub use plan::{Piece, Plan, Rendered};
pub use session::Awaits;
pub use spans::{Fault, Source, Span};

use alloc::vec::Vec;
use format::Format;
use found::{Survey, Tally};
use mend::Holds;
use model::policy::Depth;
use model::rule::Codes;
use overflow::Failure;
use rule::Stage;
use scan::Scanned;
use session::Session;
use verdict::Conversation;

/// A transcript, looked at. Holds nothing of its text.
pub struct Examination {
    /// What is in it.
    pub facts: Facts,
    /// How much of the conversation the model sees.
    pub messages: Messages,
    /// What is wrong with it, in the order of lines. Of each rule the first few thousand are listed; the last of them counts
    /// the rest, see [`Finding::more`].
    pub findings: Vec<Finding>,
    /// How many of them have a fix that is left for the next run.
    pub waiting: u64,
    /// How long it would be after all fixes that the policy allows.
    pub bytes_after: u64,
    /// What the model would be sent next, in tokens: estimated as for L5.
    pub context_tokens: u64,
    /// The model binds its thinking to what comes before it (M4).
    pub binds: bool,
    /// Where the last entry in context begins that holds such thinking.
    pub signed_at: Option<u64>,
    tally: Tally,
    /// The fixes of the next stage.
    plan: Plan,
    stage: Stage,
    /// How many steps the plan makes, with those that were made before.
    steps_made: usize,
    /// What of the conversation is in what the plan takes out because that was asked for.
    released: Conversation,
    /// The fixes shorten texts and do nothing else, so that a look tells what comes of them.
    only_cuts: bool,
    said: Conversation,
}

impl Examination {
    /// How many findings there are, with those that are not listed.
    pub fn count(&self) -> u64 {
        self.findings.iter().map(Finding::count).sum()
    }

    /// The rules of which not all findings are listed.
    fn cut(&self) -> Codes {
        let mut codes = rule::NONE;
        self.findings
            .iter()
            .filter(|finding| finding.more > 0)
            .for_each(|finding| codes.insert(finding.rule.code()));
        codes
    }
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
    fn of(Scanned { format, transcript, .. }: &Scanned) -> Self {
        Self {
            format: *format,
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

impl Examination {
    /// Of a file in no known format.
    fn of_unknown(facts: Facts) -> Self {
        Self {
            facts,
            messages: Messages::default(),
            findings: Vec::new(),
            waiting: 0,
            tally: Tally::default(),
            steps_made: 0,
            bytes_after: facts.bytes,
            context_tokens: 0,
            binds: false,
            signed_at: None,
            plan: Plan::unchanged(facts.bytes),
            stage: Stage::default(),
            released: Conversation::default(),
            only_cuts: true,
            said: Conversation::default(),
        }
    }
}

/// What may be asked of a session and its findings before they are let go of.
type Remember<'r> = &'r mut dyn FnMut(&Session<'_>, &Survey<'_>);

/// Reads a transcript and asks all rules, and draws the plan of the next stage. An unknown format gives no findings.
fn look(
    source: &dyn Source,
    policy: &Policy,
    depth: Depth,
    holds: &Holds<'_>,
    remember: Remember<'_>,
) -> Result<Examination, Fault> {
    let read = scan::scan(source)?;
    let mut facts = Facts::of(&read);
    let Some(session) = Session::new(&read, source, policy, depth) else {
        return Ok(Examination::of_unknown(facts));
    };
    facts.awaits = session.awaits();
    facts.failed = overflow::failure_of(&session)?;
    let binds = rule::bound_thinking::binds(&session);
    let signed = rule::bound_thinking::bound(&session);
    let signed_at = signed.last().map(|&entry| session.entry(entry).span.start);
    let messages = Messages::of(&session);
    let found = Survey::of(&session, holds)?;
    let stage = found.next_stage();
    let draw = |stage| {
        let steps = found.steps(stage);
        plan::draw(&session, &mut steps.into_iter().flat_map(|(_, ops)| ops))
    };
    let mut plan = draw(stage)?;
    plan.unsettles_memory = found.unsettles_memory(stage);
    // About: what later stages would save is told from the text as it is now.
    let mut bytes_after = plan.length_after();
    for later in [Stage::Lines, Stage::Links, Stage::Talk].into_iter().filter(|later| *later > stage) {
        let after = draw(later)?.length_after();
        bytes_after = (bytes_after + after).saturating_sub(facts.bytes);
    }
    let said = Conversation::of(&session, messages.seen);
    let released = Conversation::released(&session, &found.steps(stage));
    let context_tokens = rule::context_tokens(&session)?;
    remember(&session, &found);
    let (steps_made, only_cuts, waiting) = (found.steps_made(stage), found.only_cuts, found.waiting);
    let Survey { mut findings, tally, .. } = found;
    for finding in &mut findings {
        finding.label(&read.transcript);
    }
    Ok(Examination {
        facts,
        messages,
        findings,
        waiting,
        bytes_after,
        context_tokens,
        binds,
        signed_at,
        tally,
        plan,
        stage,
        steps_made,
        released,
        only_cuts,
        said,
    })
}
