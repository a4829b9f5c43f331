//! What the rules find in one look, in bounded memory.
//!
//! A file of a megabyte can have hundreds of thousands of findings, and a whole one takes some 500 bytes. So the first
//! of each kind are kept whole, and the last of these counts the rest. Of an error that is not kept, 16 bytes stay: its
//! rule and place, which a repair is compared by. The steps of a fix are kept for as long as one run may make them.

use super::holds::Holds;
use super::tally::Tally;
use crate::model::finding::{Finding, Fix, Held, Op, STEPS_MAX, Safety, Severity};
use crate::plan::thinking::{self, Damage, ThinkingPass};
use crate::rule::{self, RULES, Stage, bound_thinking};
use crate::session::Session;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use hashbrown::HashMap;
use spans::source::Fault;

/// How many findings of a rule are kept whole, for each severity, and apart for those whose fix is made.
pub(crate) const LISTED_MAX: usize = 4096;

/// Which findings are listed together: rule, severity, and whether the fix is made.
type Kind = (usize, Severity, bool);

/// The findings of one kind so far.
struct List {
    listed: usize,
    /// The last one that was listed.
    last: usize,
}

/// Takes findings from rules.
pub(crate) struct Survey<'s> {
    session: &'s Session<'s>,
    holds: &'s Holds<'s>,
    thinking: ThinkingPass,
    /// It matters what an agent remembers.
    memory_matters: bool,
    /// The rule that is asked, as a place in [`RULES`].
    asked: usize,
    lists: BTreeMap<Kind, List>,
    fault: Option<Fault>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) tally: Tally,
    /// The steps of findings that are not listed.
    unlisted: Vec<Steps>,
    /// How many steps there are of each stage.
    steps: [usize; STAGES.len()],
    /// The fixes of each stage change what an agent may remember.
    unsettles_memory: [bool; STAGES.len()],
    /// The fixes shorten texts and do nothing else.
    pub(crate) only_cuts: bool,
    /// How many findings wait for the next run.
    pub(crate) waiting: u64,
}

const STAGES: [Stage; 4] = [Stage::Bytes, Stage::Lines, Stage::Links, Stage::Talk];

/// Steps of a rule that are made for the same reason.
struct Steps {
    rule: usize,
    safety: Safety,
    ops: Vec<Op>,
}

impl<'s> Survey<'s> {
    /// Asks all rules that the policy includes, and holds back what must not be done.
    pub(crate) fn of(session: &'s Session<'s>, holds: &'s Holds<'s>) -> Result<Self, Fault> {
        let mut found = Self::asked(session, holds, Damage::done(session, &|at| holds.linked(at)))?;
        // What is held back may depend on what is found later, and rarely does.
        if let Some(damage) = found.thinking.news() {
            drop(found);
            found = Self::asked(session, holds, damage)?;
        }
        found.asked = place_of(bound_thinking::CODE);
        for removal in found.thinking.removals(session) {
            found.take(removal);
        }
        found.findings.sort_by_key(|finding| finding.line);
        found.tally.finish();
        Ok(found)
    }

    /// The same for thinking that is damaged so; none of it is removed yet.
    fn asked(session: &'s Session<'s>, holds: &'s Holds<'s>, damage: Damage) -> Result<Self, Fault> {
        let mut found = Self {
            session,
            holds,
            thinking: ThinkingPass::of(session, damage),
            memory_matters: thinking::memory_matters(session),
            asked: 0,
            lists: BTreeMap::new(),
            fault: None,
            findings: Vec::new(),
            tally: Tally::default(),
            unlisted: Vec::new(),
            steps: [holds.steps_made; STAGES.len()],
            unsettles_memory: [false; STAGES.len()],
            only_cuts: holds.is_empty(),
            waiting: 0,
        };
        for (place, rule) in RULES.iter().enumerate() {
            if rule::is_asked(rule, session.policy, session.format) {
                found.asked = place;
                (rule.check)(session, &mut rule::Found::new(&mut |finding| found.push(finding)))?;
            }
        }
        match found.fault {
            Some(fault) => Err(fault),
            None => Ok(found),
        }
    }

    /// Takes a finding, and holds its fix back if it must not be made.
    pub(crate) fn push(&mut self, mut finding: Finding) {
        debug_assert_eq!(finding.rule.code(), RULES[self.asked].code());
        if let Err(fault) = self.settle(&mut finding) {
            self.fault.get_or_insert(fault);
        }
        let edits_from = self.thinking.hold(self.session, &mut finding);
        if self.take(finding) {
            self.thinking.edits_from(edits_from);
        }
    }

    /// Holds a fix back that must not be made here.
    fn settle(&self, finding: &mut Finding) -> Result<(), Fault> {
        if finding.fix.safety == Safety::None || finding.fix.ops.is_empty() {
            return Ok(());
        }
        if let Some(worse) = self.holds.of(finding) {
            finding.fix = Fix::held(Held::Worse(worse));
        } else if finding.entry.is_some_and(|entry| self.session.is_pending(entry)) {
            finding.fix = Fix::held(Held::NewestTurn);
        } else if self.session.policy.hold_history && finding.rule.rewrites_history {
            finding.fix = Fix::held(Held::RecentlyUsed);
        } else if let Some(why) = rule::forbidden(self.session, &finding.fix.ops)? {
            finding.fix = Fix::held(why);
        } else if self.session.policy.hold_remembered && self.is_remembered(finding) {
            finding.fix = Fix::held(Held::InMemory);
        }
        Ok(())
    }

    /// Whether a fix changes what an agent may remember, and that matters.
    fn is_remembered(&self, finding: &Finding) -> bool {
        self.memory_matters && thinking::is_remembered(self.session, finding)
    }

    /// Takes a finding as it is; says whether its fix is made.
    fn take(&mut self, mut finding: Finding) -> bool {
        let applies = |finding: &Finding| self.session.policy.selection.applies(finding);
        if applies(&finding) && !has_room(&mut self.steps, &finding) {
            finding.fix = Fix::held(Held::NextRun);
            self.waiting += 1;
        }
        let is_made = applies(&finding);
        if is_made {
            let is_cut = |op: &Op| matches!(op, Op::Cut { .. } | Op::Keep(_));
            self.only_cuts &= finding.fix.ops.iter().all(is_cut);
            let stage = finding.rule.stage as usize;
            self.unsettles_memory[stage] = self.unsettles_memory[stage] || self.is_remembered(&finding);
        }
        self.tally.add(self.asked, &finding);
        let (rule, kind) = (self.asked, (self.asked, finding.severity, is_made));
        let list = self.lists.entry(kind).or_insert(List { listed: 0, last: 0 });
        if list.listed < LISTED_MAX {
            *list = List { listed: list.listed + 1, last: self.findings.len() };
            self.findings.push(finding);
            return is_made;
        }
        self.findings[list.last].more += 1;
        if is_made {
            let Fix { safety, ops } = finding.fix;
            match self.unlisted.last_mut().filter(|steps| (steps.rule, steps.safety) == (rule, safety)) {
                Some(steps) => steps.ops.extend(ops),
                None => self.unlisted.push(Steps { rule, safety, ops }),
            }
        }
        is_made
    }

    /// Whether findings were only counted.
    pub(crate) fn is_cut(&self) -> bool {
        self.findings.iter().any(|finding| finding.more > 0)
    }

    /// The first stage of which there are fixes to make.
    pub(crate) fn next_stage(&self) -> Stage {
        STAGES.into_iter().find(|stage| !self.steps(*stage).is_empty()).unwrap_or_default()
    }

    /// Whether the fixes of a stage change what an agent may remember.
    pub(crate) fn unsettles_memory(&self, stage: Stage) -> bool {
        self.unsettles_memory[stage as usize]
    }

    /// How many steps of a stage were made with these; no more can be made if some had to wait.
    pub(crate) fn steps_made(&self, stage: Stage) -> usize {
        self.steps[stage as usize]
    }

    /// The steps of a stage that are made, and how far each may be trusted: in the order of the rules, not of the lines.
    /// Where two texts overlap, the later rule counts.
    pub(crate) fn steps(&self, stage: Stage) -> Vec<(Safety, &[Op])> {
        let places: HashMap<&str, usize> = RULES.iter().map(|rule| rule.code()).zip(0..).collect();
        let policy = self.session.policy;
        let is_made = |finding: &&Finding| {
            finding.rule.stage == stage && policy.selection.applies(finding) && !finding.fix.ops.is_empty()
        };
        let listed = self.findings.iter().filter(is_made).map(|finding| {
            (places.get(finding.rule.code()).copied(), finding.fix.safety, &finding.fix.ops[..])
        });
        let unlisted = self.unlisted.iter().filter(|steps| RULES[steps.rule].stage == stage);
        let unlisted = unlisted.map(|steps| (Some(steps.rule), steps.safety, &steps.ops[..]));
        let mut steps: Vec<_> = listed.chain(unlisted).collect();
        steps.sort_by_key(|(rule, ..)| *rule);
        steps.into_iter().map(|(_, safety, ops)| (safety, ops)).collect()
    }
}

/// Whether the steps of a finding may be made in this run; takes them in. Once they may not be, no later ones may.
fn has_room(steps: &mut [usize; STAGES.len()], finding: &Finding) -> bool {
    let own = &mut steps[finding.rule.stage as usize];
    // One finding's steps are all made or none, and each run makes some.
    let has_room = *own == 0 || *own + finding.fix.ops.len() <= STEPS_MAX;
    *own = if has_room { *own + finding.fix.ops.len() } else { STEPS_MAX };
    has_room
}

/// The place of a rule in [`RULES`].
fn place_of(code: &str) -> usize {
    RULES.iter().position(|rule| rule.code() == code).unwrap_or_default()
}
