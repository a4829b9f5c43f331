//! A look at a transcript: what is in it, what is wrong with it, and the plan of the first stage that has fixes to make.

use super::context::Messages;
use super::conversation::Conversation;
use super::headline::Headline;
use super::holds::Holds;
use super::survey::Survey;
use super::tally::ProblemTally;
use crate::model::finding::Finding;
use crate::model::policy::Depth;
use crate::model::rule::{Codes, Stage};
use crate::model::situation::Case;
use crate::plan::{self, Plan, Rendered};
use crate::read::changed::scan_changed;
use crate::read::scan::{Reading, Scanned, scan_as};
use crate::rule;
use crate::session::failure::failure_of;
use crate::session::load::Loaded;
use crate::session::tokens::{ContextTokens, tokens_of};
use crate::session::{Facts, Session};
use alloc::vec::Vec;
use spans::source::{Fault, Source};

/// What a look found. Holds nothing of the transcript's text but the headline.
pub struct Examination {
    /// What is in it.
    pub facts: Facts,
    /// How a person recognises it.
    pub headline: Headline,
    /// How much of the conversation the model sees.
    pub messages: Messages,
    /// What is wrong with it, in the order of lines. The first few thousand of each rule are listed; the last of them counts
    /// the rest, see [`Finding::more`].
    pub findings: Vec<Finding>,
    /// How many of their fixes are left for the next run.
    pub waiting: u64,
    /// How long it would be after all fixes that the policy allows.
    pub bytes_after: u64,
    /// How many tokens the model would be sent next, and its window.
    pub context_tokens: ContextTokens,
    /// The signatures of the model's thinking cover what comes before it (M4).
    pub binds: bool,
    /// Offset of the last entry in context with such thinking.
    pub signed_at: Option<u64>,
    pub(super) tally: ProblemTally,
    /// The fixes of `stage`, the first one with fixes to make.
    pub(super) plan: Plan,
    pub(super) stage: Stage,
    /// How many steps this run has made with the plan.
    pub(super) steps_made: usize,
    /// What the plan takes out of the conversation because somebody asked for it by name.
    pub(super) released: Conversation,
    /// All fixes only shorten texts, so their outcome is known without trying them.
    pub(crate) only_cuts: bool,
    pub(super) said: Conversation,
}

impl Examination {
    /// How many findings there are, including those that are not listed.
    pub fn count(&self) -> u64 {
        self.findings.iter().map(Finding::count).sum()
    }

    /// The rules whose findings are not all listed.
    pub(super) fn unlisted(&self) -> Codes {
        let mut codes = rule::NONE;
        self.findings
            .iter()
            .filter(|finding| finding.more > 0)
            .for_each(|finding| codes.insert(finding.rule.code()));
        codes
    }
}

impl Examination {
    /// The look at a file of an unknown format.
    pub(super) fn of_unknown(facts: Facts) -> Self {
        Self {
            facts,
            headline: Headline::default(),
            messages: Messages::default(),
            findings: Vec::new(),
            waiting: 0,
            tally: ProblemTally::default(),
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

/// How transcripts are looked at while a repair is looked for.
#[derive(Clone, Copy)]
pub(super) struct Terms<'p> {
    pub(super) case: Case<'p>,
    pub(super) depth: Depth,
    /// A transcript of so many entries is kept as it was read while results of plans are put together from it. A longer one
    /// would take too much memory twice, and is read again for each further attempt at a repair; mostly there is none.
    pub(super) kept_entries_max: usize,
}

/// Sees a session and its findings before they are dropped: what [`crate::judge`] remembers comes from here.
pub(crate) type Remember<'r> = &'r mut dyn FnMut(&Session<'_>, &Survey<'_>);

/// Reads a transcript, runs all rules, and draws the plan of the first stage with fixes. An unknown format has no findings.
pub(crate) fn look(
    reading: &Reading<'_>,
    case: Case<'_>,
    depth: Depth,
    holds: &Holds<'_>,
    remember: Remember<'_>,
) -> Result<Examination, Fault> {
    look_at(&reading.scanned, reading.source, case, (depth, Purpose::Report), holds, remember)
}

/// Looks at a source that was read.
pub(super) fn look_at_all(
    read: &Scanned,
    source: &dyn Source,
    Terms { case, depth, .. }: Terms<'_>,
    remember: Remember<'_>,
) -> Result<Examination, Fault> {
    look_at(read, source, case, (depth, Purpose::Report), &Holds::default(), remember)
}

/// Looks at a source for a preview. The plan must not be carried out: if the fixes only cut texts it holds just their
/// sizes, and otherwise it may be tried, but lacks the ids of texts.
pub(super) fn look_as_needed(
    read: &Scanned,
    source: &dyn Source,
    case: Case<'_>,
    remember: Remember<'_>,
) -> Result<Examination, Fault> {
    look_at(read, source, case, (Depth::Sizes, Purpose::Preview), &Holds::default(), remember)
}

/// If there are fewer lines to a change, the result is read without the transcript it came from: what is noted of a change is as
/// long as several entries.
const LINES_A_CHANGE_MIN: u64 = 3;

/// A step of a repair: the plan so far, what is added to it, and both together.
#[derive(Clone, Copy)]
pub(super) struct Step<'p> {
    pub(super) from: &'p Plan,
    pub(super) by: &'p Plan,
    pub(super) to: &'p Plan,
}

/// Looks at what a step makes of a source. `read` is what was read of the text before the step, and afterwards what was
/// read of the text after it. If it is known, only lines that the step changes are read again.
pub(super) fn look_at_planned(
    read: &mut Option<Scanned>,
    source: &dyn Source,
    Step { from, by, to }: Step<'_>,
    Terms { case, depth, .. }: Terms<'_>,
    holds: &Holds<'_>,
    remember: Remember<'_>,
) -> Result<Examination, Fault> {
    let (old, new) = (Rendered::new(source, from), Rendered::new(source, to));
    let changed = match read.take() {
        Some(read) if by.is_empty() => Some(read),
        Some(read) if by.edits().len() as u64 > read.transcript.lines / LINES_A_CHANGE_MIN => None,
        Some(read) => scan_changed(read, &old, &new, &by.changes())?,
        None => None,
    };
    let changed = match changed {
        Some(changed) => changed,
        None => scan_as(&new, case.policy.format)?,
    };
    let purpose = if depth == Depth::Trial { Purpose::Verdict } else { Purpose::Report };
    let found = look_at(&changed, &new, case, (depth, purpose), holds, remember);
    *read = Some(changed);
    found
}

/// What a look is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Somebody is told all of it.
    Report,
    /// Somebody is told all of it, but the plan need not be carried out.
    Preview,
    /// It is compared with the look before: how long the context is and how it begins does not matter.
    Verdict,
}

fn look_at(
    read: &Scanned,
    source: &dyn Source,
    case: Case<'_>,
    (depth, purpose): (Depth, Purpose),
    holds: &Holds<'_>,
    remember: Remember<'_>,
) -> Result<Examination, Fault> {
    let mut facts = Facts::from_scan(read);
    let Some(mut session) = Session::new(read, source, case, depth) else {
        return Ok(Examination::of_unknown(facts));
    };
    let is_preview = purpose == Purpose::Preview;
    let mut found = Survey::run(&session, holds, is_preview)?;
    if is_preview && !found.only_cuts {
        session.depth = Depth::Trial;
        found = Survey::run(&session, holds, false)?;
    }
    facts.awaits = session.awaits();
    facts.failed = failure_of(&session)?;
    facts.turns_left = Loaded::from_session(&session).and_then(|loaded| loaded.turns_left());
    let binds = rule::bound_thinking::binds(&session);
    let signed = rule::bound_thinking::bound(&session);
    let signed_at = signed.last().map(|&entry| session.entry(entry).span.start);
    let messages = Messages::from_session(&session);
    let stage = found.next_stage();
    let steps = found.steps(stage);
    let released = Conversation::released(&session, &steps);
    let mut plan = plan::draw(&session, &mut steps.into_iter().flat_map(|(_, ops)| ops))?;
    plan.unsettles_memory = found.unsettles_memory(stage);
    plan.removes_secrets = stage == Stage::Secrets && !plan.is_empty();
    let said = Conversation::from_session(&session, messages.seen);
    let is_told = purpose != Purpose::Verdict;
    let context_tokens = if is_told { tokens_of(&session)? } else { ContextTokens::default() };
    // The line of a data set is known by its number; nobody reads how it begins.
    let is_named = is_told && case.policy.format.is_none();
    let headline = if is_named { Headline::from_session(&session)? } else { Headline::default() };
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
