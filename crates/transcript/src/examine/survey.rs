//! Runs the rules, takes their findings, and decides which fixes are made, in bounded memory.
//!
//! A file of a megabyte can have hundreds of thousands of findings, and a whole one takes some 500 bytes. So only the first
//! ones of each kind are kept whole, and the last of these counts the rest. Of an error that is not kept, 16 bytes stay: its
//! rule and place, by which the verdict compares. Steps of fixes are all kept, up to as many as one run makes.

use super::holds::Holds;
use super::settled;
use super::tally::ProblemTally;
use crate::model::finding::{Finding, Fix, Held, Op, STEPS_MAX, Safety, Severity};
use crate::model::rule::RuleInfo;
use crate::plan::thinking::{self, BrokenThinking, ThinkingPass};
use crate::rule::{self, RULES, Stage, bound_thinking};
use crate::session::Session;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use hashbrown::HashMap;
use spans::source::Fault;

/// How many findings of a rule are kept whole, for each severity, and apart for those whose fix is made.
pub(crate) const LISTED_MAX: usize = 4096;

/// Which findings are counted together: those of one rule and severity, apart for those whose fix is made.
type ListKey = (usize, Severity, bool);

/// The findings of one key so far.
struct List {
    listed: usize,
    /// Index of the last one that was listed.
    last: usize,
}

/// Takes findings from rules.
pub(crate) struct Survey<'s> {
    session: &'s Session<'s>,
    holds: &'s Holds<'s>,
    thinking: ThinkingPass,
    /// A running agent could sign its next thinking over a text that it still has in memory.
    memory_matters: bool,
    /// Records of unknown kinds may change what the agent sends.
    doubt: rule::Doubt,
    /// The rule that is running, as an index into [`RULES`].
    rule: usize,
    lists: BTreeMap<ListKey, List>,
    fault: Option<Fault>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) tally: ProblemTally,
    /// The steps of findings that are not listed.
    unlisted: Vec<Steps>,
    /// How many steps there are of each stage.
    steps: [usize; STAGES.len()],
    /// Whether the fixes of each stage change what an agent may have in memory.
    unsettles_memory: [bool; STAGES.len()],
    /// All fixes that are made only shorten texts.
    pub(crate) only_cuts: bool,
    /// How many fixes are left for the next run.
    pub(crate) waiting: u64,
}

const STAGES: [Stage; 5] = [Stage::Secrets, Stage::Bytes, Stage::Lines, Stage::Links, Stage::Talk];

/// Steps of a finding.
struct Steps {
    rule: usize,
    safety: Safety,
    ops: Vec<Op>,
}

impl<'s> Survey<'s> {
    /// Runs all rules that the policy selects, and holds back the fixes that must not be made. With `cuts`, no rule runs
    /// after one that does more than cut texts.
    pub(crate) fn run(session: &'s Session<'s>, holds: &'s Holds<'s>, cuts: bool) -> Result<Self, Fault> {
        let broken = BrokenThinking::done(session, &|at| holds.linked(at));
        let mut found = Self::run_rules(session, holds, broken, cuts)?;
        // Later findings may show that thinking is broken for which earlier fixes were held back. It is rare.
        if let Some(broken) = found.thinking.newly_broken() {
            drop(found);
            found = Self::run_rules(session, holds, broken, cuts)?;
        }
        found.rule = index_of(bound_thinking::CODE);
        for removal in found.thinking.removals(session) {
            found.take(removal);
        }
        found.findings.sort_by_key(|finding| finding.line);
        found.tally.finish();
        Ok(found)
    }

    /// The findings of all rules, given which thinking is broken; its removal is not among them yet.
    fn run_rules(
        session: &'s Session<'s>,
        holds: &'s Holds<'s>,
        broken: BrokenThinking,
        cuts: bool,
    ) -> Result<Self, Fault> {
        let mut found = Self {
            session,
            holds,
            thinking: ThinkingPass::begin(session, broken),
            memory_matters: thinking::memory_matters(session),
            doubt: rule::Doubt::of(session),
            rule: 0,
            lists: BTreeMap::new(),
            fault: None,
            findings: Vec::new(),
            tally: ProblemTally::default(),
            unlisted: Vec::new(),
            steps: [holds.steps_made; STAGES.len()],
            unsettles_memory: [false; STAGES.len()],
            only_cuts: holds.is_empty(),
            waiting: 0,
        };
        for (index, rule) in RULES.iter().enumerate() {
            if cuts && !found.only_cuts {
                break;
            }
            if rule::runs(rule, session.policy, session.format) {
                found.rule = index;
                (rule.check)(session, &mut rule::FindingSink::new(&mut |finding| found.push(finding)))?;
            }
        }
        match found.fault {
            Some(fault) => Err(fault),
            None => Ok(found),
        }
    }

    /// Takes a finding of the running rule, after holding its fix back if it must not be made.
    pub(crate) fn push(&mut self, mut finding: Finding) {
        debug_assert_eq!(finding.rule.code(), RULES[self.rule].code());
        if let Err(fault) = self.hold_back(&mut finding) {
            self.fault.get_or_insert(fault);
        }
        let edits_from = self.thinking.hold(self.session, &mut finding);
        if self.take(finding) {
            self.thinking.edits_from(edits_from);
        }
    }

    /// Holds a fix back that must not be made here, for reasons other than signed thinking.
    fn hold_back(&self, finding: &mut Finding) -> Result<(), Fault> {
        if finding.fix.safety == Safety::None || finding.fix.ops.is_empty() {
            return Ok(());
        }
        if let Some(worse) = self.holds.why_left_out(finding) {
            finding.fix = Fix::held(Held::Worse(worse));
        } else if self.may_be_at_work_on(finding) {
            finding.fix = Fix::held(Held::NewestTurn);
        } else if let Some(why) = self.session.situation.rows_only
            && finding.fix.ops.iter().any(settled::brings_a_line)
        {
            finding.fix = Fix::held(Held::RowsOnly(why));
        } else if let Some(why) = self.session.situation.settled_only
            && !settled::only_shortens(self.session, &finding.fix.ops)
        {
            finding.fix = Fix::held(Held::SettledOnly(why));
        } else if self.doubt.bears_on(finding) {
            finding.fix = Fix::held(Held::UnknownKind);
        } else if self.session.situation.hold_history && finding.rule.rewrites_history {
            finding.fix = Fix::held(Held::RecentlyUsed);
        } else if let Some(why) = rule::forbidden(self.session, &finding.fix.ops)? {
            finding.fix = Fix::held(why);
        } else if self.session.situation.hold_remembered && self.is_remembered(finding) {
            finding.fix = Fix::held(Held::InMemory);
        }
        Ok(())
    }

    /// Whether a finding is in a turn whose tools may be running. A link leads to what came before it, and is mended there too.
    /// Nor does an error wait if no agent is there.
    fn may_be_at_work_on(&self, finding: &Finding) -> bool {
        let is_error = finding.severity == Severity::Error;
        let is_mended_there = finding.rule.joins_unsent || (is_error && self.session.situation.agent_gone);
        !is_mended_there && finding.entry.is_some_and(|entry| self.session.is_pending(entry))
    }

    /// Whether a fix changes what an agent may have in memory, and that matters.
    fn is_remembered(&self, finding: &Finding) -> bool {
        self.memory_matters && thinking::is_remembered(self.session, finding)
    }

    /// Lists or counts a finding, and returns whether its fix is made.
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
        self.tally.add(self.rule, &finding);
        let (rule, key) = (self.rule, (self.rule, finding.severity, is_made));
        let list = self.lists.entry(key).or_insert(List { listed: 0, last: 0 });
        if list.listed < LISTED_MAX {
            *list = List { listed: list.listed + 1, last: self.findings.len() };
            self.findings.push(finding);
            return is_made;
        }
        self.findings[list.last].more += 1;
        if is_made {
            let Fix { safety, ops } = finding.fix;
            self.unlisted.push(Steps { rule, safety, ops });
        }
        is_made
    }

    /// Whether some findings were only counted.
    pub(crate) fn is_cut(&self) -> bool {
        self.findings.iter().any(|finding| finding.more > 0)
    }

    /// The first stage with fixes to make.
    pub(crate) fn next_stage(&self) -> Stage {
        STAGES.into_iter().find(|stage| !self.steps(*stage).is_empty()).unwrap_or_default()
    }

    /// Whether the fixes of a stage change what an agent may have in memory.
    pub(crate) fn unsettles_memory(&self, stage: Stage) -> bool {
        self.unsettles_memory[stage as usize]
    }

    /// How many steps of a stage this run has made, these included. If some had to wait, it is the most that a run makes.
    pub(crate) fn steps_made(&self, stage: Stage) -> usize {
        self.steps[stage as usize]
    }

    /// The steps of a stage that are made, with the safety of their fixes, in the order of the rules and not of the lines:
    /// where two overlap, that of the later rule counts.
    pub(crate) fn steps(&self, stage: Stage) -> Vec<(Safety, &[Op])> {
        // Most of a million rows have nothing wrong, and the table below takes longer than they do.
        if self.findings.is_empty() {
            return Vec::new();
        }
        let indices: HashMap<&str, usize> = RULES.iter().map(|rule| rule.code()).zip(0..).collect();
        let policy = self.session.policy;
        // Thinking that is bound to a secret goes with it.
        let is_of_stage = |rule: &RuleInfo| {
            rule.stage == stage || (stage == Stage::Secrets && rule.code() == bound_thinking::CODE)
        };
        let is_secret = |finding: &Finding| {
            finding.rule.stage == stage && policy.selection.applies(finding) && !finding.fix.ops.is_empty()
        };
        if stage == Stage::Secrets && !self.findings.iter().any(is_secret) {
            return Vec::new();
        }
        let is_made = |finding: &&Finding| {
            is_of_stage(finding.rule) && policy.selection.applies(finding) && !finding.fix.ops.is_empty()
        };
        let listed = self.findings.iter().filter(is_made).map(|finding| {
            (indices.get(finding.rule.code()).copied(), finding.fix.safety, &finding.fix.ops[..])
        });
        let unlisted = self.unlisted.iter().filter(|steps| is_of_stage(RULES[steps.rule]));
        let unlisted = unlisted.map(|steps| (Some(steps.rule), steps.safety, &steps.ops[..]));
        let mut steps: Vec<_> = listed.chain(unlisted).collect();
        steps.sort_by_key(|(rule, ..)| *rule);
        steps.into_iter().map(|(_, safety, ops)| (safety, ops)).collect()
    }
}

/// Counts the steps of a finding if this run may make them, and returns whether it may. Once it may not, it makes no later
/// ones either.
fn has_room(steps: &mut [usize; STAGES.len()], finding: &Finding) -> bool {
    let own = &mut steps[finding.rule.stage as usize];
    // The steps of a finding are made together, and each run must make some.
    let has_room = *own == 0 || *own + finding.fix.ops.len() <= STEPS_MAX;
    *own = if has_room { *own + finding.fix.ops.len() } else { STEPS_MAX };
    has_room
}

/// The index of a rule in [`RULES`].
fn index_of(code: &str) -> usize {
    RULES.iter().position(|rule| rule.code() == code).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::model::policy::{Policy, SignedThinking};
    use crate::plan::Plan;
    use alloc::string::String;

    fn plan(text: &str, thinking: SignedThinking) -> Plan {
        let policy = Policy { result_chars_max: 100, thinking, ..Policy::default() };
        crate::mend(&text.as_bytes(), &policy).unwrap().repair.ok().unwrap().plan
    }

    /// A cut that comes after all thinking that is signed is made, and an agent that has the whole text in memory would sign its next
    /// thinking over that.
    #[test]
    fn what_an_agent_may_remember_matters_only_where_its_thinking_is_bound() {
        let thinking = r#"{"type":"thinking","thinking":"Hm.","signature":"c2lnbmVkLTEA"},"#;
        let text = [
            "{\"role\":\"user\",\"content\":\"build\"}\n{\"role\":\"assistant\",\"content\":[",
            thinking,
            "{\"type\":\"tool_use\",\"id\":\"toolu_A\",\"name\":\"ls\",\"input\":{}}]}\n",
            "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_A\",\"content\":\"",
            &"a row of a long list\\n".repeat(99),
            "\"}]}\n{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"Built.\"}]}\n",
            "{\"role\":\"user\",\"content\":\"and?\"}\n",
        ]
        .concat();
        let unbound: String = text.replace(thinking, "");
        for (text, policy, matters) in [
            (&text, SignedThinking::Keep, true),
            (&text, SignedThinking::Ignore, false),
            (&unbound, SignedThinking::Keep, false),
        ] {
            let plan = plan(text, policy);
            assert!(!plan.is_empty());
            assert_eq!(plan.unsettles_memory(), matters, "{policy:?} {text}");
        }
    }
}
