//! A look at a transcript: what is in it, what is wrong, and what fixing that would save.

use super::context::Messages;
use super::conversation::Conversation;
use super::headline::Headline;
use super::holds::Holds;
use super::survey::Survey;
use super::tally::Tally;
use crate::model::finding::Finding;
use crate::model::policy::{Depth, Policy};
use crate::model::rule::{Codes, Stage};
use crate::plan::{self, Plan};
use crate::read::scan::scan;
use crate::rule;
use crate::session::failure::failure_of;
use crate::session::tokens::{ContextTokens, tokens_of};
use crate::session::{Facts, Session};
use alloc::vec::Vec;
use spans::source::{Fault, Source};

/// A transcript, looked at. Holds nothing of its text but the headline.
pub struct Examination {
    /// What is in it.
    pub facts: Facts,
    /// How a person recognises it.
    pub headline: Headline,
    /// How much of the conversation the model sees.
    pub messages: Messages,
    /// What is wrong with it, in the order of lines. Of each rule the first few thousand are listed; the last of them counts
    /// the rest, see [`Finding::more`].
    pub findings: Vec<Finding>,
    /// How many of them have a fix that is left for the next run.
    pub waiting: u64,
    /// How long it would be after all fixes that the policy allows.
    pub bytes_after: u64,
    /// How many tokens the model would be sent next, and its window.
    pub context_tokens: ContextTokens,
    /// The model binds its thinking to what comes before it (M4).
    pub binds: bool,
    /// Where the last entry in context begins that holds such thinking.
    pub signed_at: Option<u64>,
    pub(super) tally: Tally,
    /// The fixes of the next stage.
    pub(super) plan: Plan,
    pub(super) stage: Stage,
    /// How many steps the plan makes, with those that were made before.
    pub(super) steps_made: usize,
    /// What of the conversation is in what the plan takes out because that was asked for.
    pub(super) released: Conversation,
    /// The fixes shorten texts and do nothing else, so that a look tells what comes of them.
    pub(crate) only_cuts: bool,
    pub(super) said: Conversation,
}

impl Examination {
    /// How many findings there are, with those that are not listed.
    pub fn count(&self) -> u64 {
        self.findings.iter().map(Finding::count).sum()
    }

    /// The rules of which not all findings are listed.
    pub(super) fn cut(&self) -> Codes {
        let mut codes = rule::NONE;
        self.findings
            .iter()
            .filter(|finding| finding.more > 0)
            .for_each(|finding| codes.insert(finding.rule.code()));
        codes
    }
}

impl Examination {
    /// Of a file in no known format.
    pub(super) fn of_unknown(facts: Facts) -> Self {
        Self {
            facts,
            headline: Headline::default(),
            messages: Messages::default(),
            findings: Vec::new(),
            waiting: 0,
            tally: Tally::default(),
            steps_made: 0,
            bytes_after: facts.bytes,
            context_tokens: ContextTokens::default(),
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
pub(crate) type Remember<'r> = &'r mut dyn FnMut(&Session<'_>, &Survey<'_>);

/// Reads a transcript and asks all rules, and draws the plan of the next stage. An unknown format gives no findings.
pub(crate) fn look(
    source: &dyn Source,
    policy: &Policy,
    depth: Depth,
    holds: &Holds<'_>,
    remember: Remember<'_>,
) -> Result<Examination, Fault> {
    look_at(source, policy, depth, false, holds, remember)
}

/// The same. The plan can be carried out unless all it does is cut texts: sizes are enough then.
pub(crate) fn look_as_needed(
    source: &dyn Source,
    policy: &Policy,
    remember: Remember<'_>,
) -> Result<Examination, Fault> {
    look_at(source, policy, Depth::Sizes, true, &Holds::default(), remember)
}

fn look_at(
    source: &dyn Source,
    policy: &Policy,
    depth: Depth,
    as_needed: bool,
    holds: &Holds<'_>,
    remember: Remember<'_>,
) -> Result<Examination, Fault> {
    let read = scan(source)?;
    let mut facts = Facts::of(&read);
    let Some(mut session) = Session::new(&read, source, policy, depth) else {
        return Ok(Examination::of_unknown(facts));
    };
    let mut found = Survey::of(&session, holds)?;
    if as_needed && !found.only_cuts {
        session.depth = Depth::Plan;
        found = Survey::of(&session, holds)?;
    }
    facts.awaits = session.awaits();
    facts.failed = failure_of(&session)?;
    let binds = rule::bound_thinking::binds(&session);
    let signed = rule::bound_thinking::bound(&session);
    let signed_at = signed.last().map(|&entry| session.entry(entry).span.start);
    let messages = Messages::of(&session);
    let stage = found.next_stage();
    let steps = found.steps(stage);
    let released = Conversation::released(&session, &steps);
    let mut plan = plan::draw(&session, &mut steps.into_iter().flat_map(|(_, ops)| ops))?;
    plan.unsettles_memory = found.unsettles_memory(stage);
    let said = Conversation::of(&session, messages.seen);
    let context_tokens = tokens_of(&session)?;
    let headline = Headline::of(&session)?;
    remember(&session, &found);
    let (steps_made, only_cuts, waiting) = (found.steps_made(stage), found.only_cuts, found.waiting);
    let Survey { mut findings, tally, .. } = found;
    for finding in &mut findings {
        finding.label(&read.transcript);
    }
    Ok(Examination {
        facts,
        headline,
        messages,
        findings,
        waiting,
        bytes_after: plan.length_after(),
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
