//! The repair of a transcript: draws plans until nothing is left to change, compares the result with the original, and leaves
//! out repairs that would make something worse.

use super::context::Messages;
use super::holds::{Hold, Holds};
use super::look::{Examination, Remember, Step, Terms, look_as_needed, look_at_all, look_at_planned};
use super::verdict::{Loss, RepairBaseline, Worse};
use crate::model::finding::{Finding, Held, Safety};
use crate::model::policy::{Depth, Policy};
use crate::model::situation::Case;
use crate::plan::{Origins, Plan, Rendered};
use crate::read::scan::{Reading, Scanned, scan_as};
use crate::rule::Stage;
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use hashbrown::HashMap;
use spans::source::{Fault, Source};

/// How often a plan may be drawn on the result of the one before. Mostly once; more often when bytes, lines or links have to
/// be repaired first, or a repair reveals something.
const ROUNDS_MAX: usize = 10;

/// How many rules are left out, one after another, to find those that make something worse.
const TRIES_MAX: usize = 12;

/// If one fix of a rule makes something worse, the others are tried one by one, unless there are more than this.
const PLACES_MAX: usize = 8;

/// See [`Terms::kept_entries_max`]; about 30 MB.
const KEPT_ENTRIES_MAX: usize = 1 << 17;

/// A transcript and its repair.
pub struct Mended {
    /// The transcript as it is. Its findings say what the repair does about them.
    pub before: Examination,
    /// The repair; an error if every one would make something worse.
    pub repair: Result<Repair, Worse>,
}

/// A plan that was tried and found good.
pub struct Repair {
    /// All changes; empty if there is nothing to repair.
    pub plan: Plan,
    /// The transcript as the plan would make it; `None` if there is nothing to change.
    pub after: Option<Examination>,
}

/// Reads a transcript and runs all rules. An unknown format has no findings.
///
/// A repair that does more than cut texts is tried, so that the findings say what `fix` would do about them.
pub fn examine<'a>(source: &dyn Source, case: impl Into<Case<'a>>) -> Result<Examination, Fault> {
    let case = case.into();
    examine_read(&Reading::as_format(source, case.policy.format)?, case)
}

/// Examines a source that was read, and of which more is asked.
pub fn examine_read<'a>(reading: &Reading<'_>, case: impl Into<Case<'a>>) -> Result<Examination, Fault> {
    let case = case.into();
    let found = look_as_needed(&reading.scanned, reading.source, case, &mut |_, _| {})?;
    if found.only_cuts {
        return Ok(found);
    }
    with_trial(found, (reading.scanned.clone(), reading.source), case)
}

/// Examines a source that was read.
pub fn examine_scanned<'a>(
    read: Scanned,
    source: &dyn Source,
    case: impl Into<Case<'a>>,
) -> Result<Examination, Fault> {
    examine_and_remember(read, source, case.into(), &mut |_, _| {})
}

/// Examines a source that was read; `remember` sees the transcript as it is.
pub(crate) fn examine_and_remember(
    read: Scanned,
    source: &dyn Source,
    case: Case<'_>,
    remember: Remember<'_>,
) -> Result<Examination, Fault> {
    let found = look_as_needed(&read, source, case, remember)?;
    if found.only_cuts { Ok(found) } else { with_trial(found, (read, source), case) }
}

/// What was found, and what a repair would do about it.
fn with_trial(
    found: Examination,
    read: (Scanned, &dyn Source),
    case: Case<'_>,
) -> Result<Examination, Fault> {
    let terms = Terms { case, depth: Depth::Trial, kept_entries_max: KEPT_ENTRIES_MAX };
    Ok(mend_from(found, read, terms, &mut |_| {}, &mut |_, _| {})?.before)
}

/// Draws a plan, checks its result, and repeats that until nothing is left to change.
pub fn mend<'a>(source: &dyn Source, case: impl Into<Case<'a>>) -> Result<Mended, Fault> {
    let case = case.into();
    mend_scanned(scan_as(source, case.policy.format)?, source, case, &mut |_| {})
}

/// Mends a source that was read, and of which more is asked.
pub fn mend_read<'a>(reading: &Reading<'_>, case: impl Into<Case<'a>>) -> Result<Mended, Fault> {
    mend_scanned(reading.scanned.clone(), reading.source, case, &mut |_| {})
}

/// Mends a source that was read; `drawn` sees the first plan before it is checked, so that texts it takes out can be
/// stored meanwhile. It must not be carried out: the check may reject it or add to it.
pub fn mend_scanned<'a>(
    read: Scanned,
    source: &dyn Source,
    case: impl Into<Case<'a>>,
    drawn: &mut dyn FnMut(&Plan),
) -> Result<Mended, Fault> {
    mend_and_remember(read, source, case.into(), drawn, &mut |_, _| {})
}

/// Mends a source that was read; `remember` sees the transcript as it is, and then after each round. The last call is for the result.
pub(crate) fn mend_and_remember(
    read: Scanned,
    source: &dyn Source,
    case: Case<'_>,
    drawn: &mut dyn FnMut(&Plan),
    remember: Remember<'_>,
) -> Result<Mended, Fault> {
    let terms = Terms { case, depth: Depth::Plan, kept_entries_max: KEPT_ENTRIES_MAX };
    let before = look_at_all(&read, source, terms, remember)?;
    mend_from(before, (read, source), terms, drawn, remember)
}

/// Mends a transcript that has been looked at.
fn mend_from(
    before: Examination,
    (read, source): (Scanned, &dyn Source),
    terms: Terms<'_>,
    drawn: &mut dyn FnMut(&Plan),
    remember: Remember<'_>,
) -> Result<Mended, Fault> {
    let (mut mended, mut is_part) = mend_once(before, (read, source), terms, drawn, remember)?;
    // A fix that was left out may do no harm once the others are made. The next run would find that, so this one does.
    for _ in 0..ROUNDS_MAX {
        let Ok(Repair { plan, after: Some(_) }) = &mended.repair else { break };
        if !is_part {
            break;
        }
        let rendered = Rendered::new(source, plan);
        let read = scan_as(&rendered, terms.case.policy.format)?;
        let before = look_at_all(&read, &rendered, terms, remember)?;
        let (next, is_part_again) = mend_once(before, (read, &rendered), terms, &mut |_| {}, remember)?;
        let Ok(Repair { plan: more, after: Some(mut after) }) = next.repair else {
            if next.repair.is_err() {
                look_at_all(&scan_as(&rendered, terms.case.policy.format)?, &rendered, terms, remember)?;
            }
            break;
        };
        let plan = plan.then(&more);
        mended.before.bytes_after = plan.length_after();
        mended.before.update_findings(&mut after, &plan.origins(), terms.case.policy);
        mended.before.count_brought_back(&after.messages);
        mended.repair = Ok(Repair { plan, after: Some(after) });
        is_part = is_part_again;
    }
    Ok(mended)
}

/// Finds the largest repair that makes nothing worse, and returns whether it leaves something out.
fn mend_once(
    mut before: Examination,
    (read, source): (Scanned, &dyn Source),
    terms: Terms<'_>,
    drawn: &mut dyn FnMut(&Plan),
    remember: Remember<'_>,
) -> Result<(Mended, bool), Fault> {
    if before.plan.is_empty() {
        let plan = before.plan.clone();
        return Ok((Mended { before, repair: Ok(Repair { plan, after: None }) }, false));
    }
    drawn(&before.plan);
    let tried = Mender { read: Some(read), source, terms, before: &before, remember }.best()?;
    if let Err(worse) = tried.verdict {
        before.hold_all(terms.case.policy, worse);
        return Ok((Mended { before, repair: Err(worse) }, false));
    }
    let (tried_after, is_part) = (tried.after, tried.is_part);
    let plan = match tried.plan {
        Cow::Borrowed(_) => None,
        Cow::Owned(plan) => Some(plan),
    };
    let plan = plan.unwrap_or_else(|| core::mem::take(&mut before.plan));
    before.bytes_after = plan.length_after();
    let after = match tried_after {
        Some(held) if plan.is_empty() => {
            before.findings = held.findings;
            before.tally = held.tally;
            before.waiting = held.waiting;
            None
        }
        Some(mut after) => {
            before.update_findings(&mut after, &plan.origins(), terms.case.policy);
            before.count_brought_back(&after.messages);
            Some(after)
        }
        None => None,
    };
    Ok((Mended { before, repair: Ok(Repair { plan, after }) }, is_part))
}

impl Examination {
    /// Marks all fixes as held for this reason.
    fn hold_all(&mut self, policy: &Policy, why: Worse) {
        self.bytes_after = self.facts.bytes;
        for finding in self.findings.iter_mut().filter(|finding| policy.selection.applies(finding)) {
            finding.fix.safety = Safety::Held(Held::Worse(why));
        }
    }

    /// Counts what the agent sends again once links are mended. Answers that the repair makes up were never there.
    fn count_brought_back(&mut self, after: &Messages) {
        let joins = |finding: &Finding| finding.hides_messages() && finding.fix.safety == Safety::Safe;
        let added = after.all.saturating_sub(self.messages.all);
        let more = after.seen.saturating_sub(self.messages.seen + added);
        self.messages.brought_back = if self.findings.iter().any(joins) { more } else { 0 };
    }

    /// Updates the findings with what the repair did about them: one that is gone afterwards was repaired, if only by the
    /// fix of another, and one that is still there was not. One that is there only afterwards was revealed.
    fn update_findings(&mut self, after: &mut Self, origins: &Origins<'_>, policy: &Policy) {
        type Key = (&'static str, u64, Option<String>);
        let key =
            |finding: &Finding, place| -> Key { (finding.rule.code(), place, finding.labels.call.clone()) };
        let (cut_before, cut_after) = (self.unlisted(), after.unlisted());
        let mut left: HashMap<Key, Vec<usize>> = HashMap::new();
        for (n, finding) in after.findings.iter_mut().enumerate().rev() {
            // It may have been there before without being listed.
            finding.uncovered = !cut_before.has(finding.rule.code());
            left.entry(key(finding, origins.original_offset(finding.at))).or_default().push(n);
        }
        for finding in &mut self.findings {
            match left.get_mut(&key(finding, finding.at)).and_then(Vec::pop) {
                Some(same) => {
                    after.findings[same].uncovered = false;
                    // A look says whether a cut is made, but not whether what is left is still too long.
                    if !(self.only_cuts && policy.selection.applies(finding)) {
                        finding.fix.safety = after.findings[same].fix.safety;
                    }
                }
                None if cut_after.has(finding.rule.code()) => {}
                // Cutting a text may remove other findings in it, which a look alone does not show.
                None if self.only_cuts => {}
                None if policy.selection.applies(finding) || finding.fix.safety == Safety::None => {}
                None => {
                    finding.fix.safety = Safety::Safe;
                    finding.saves_bytes = None;
                }
            }
        }
    }
}

/// A fix that was made in an attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
struct MadeFix {
    stage: Stage,
    code: &'static str,
    place: u64,
}

/// Where links were repaired, sorted.
fn links(made: &[MadeFix]) -> Vec<u64> {
    let links = made.iter().filter(|made| made.stage == Stage::Links);
    let mut places: Vec<u64> = links.map(|made| made.place).collect();
    places.sort_unstable();
    places
}

/// The outcome of an attempt.
struct Tried<'m> {
    plan: Cow<'m, Plan>,
    /// The result; `None` if it is the original.
    after: Option<Examination>,
    verdict: Result<(), Worse>,
    /// Repairs of bytes, lines and links revealed what is wrong with the result.
    is_uncovered: bool,
    /// That is acceptable, because the original had errors as well.
    is_forgiven: bool,
    /// In the order in which they were made.
    made: Vec<MadeFix>,
    /// Some fixes are left out.
    is_part: bool,
}

impl Tried<'_> {
    /// The rule to leave out next.
    fn suspect(&self, why: Worse) -> Option<Hold> {
        let of_stage = |made: &&MadeFix| (made.stage < Stage::Talk) == self.is_uncovered;
        let code = match why {
            Worse::Unsettled(code) => code,
            _ => self.made.iter().rfind(of_stage).or_else(|| self.made.last())?.code,
        };
        Some(Hold { code, place: None, why })
    }

    /// A hold for each place at which the held rule made a fix.
    fn places(&self, hold: Hold) -> Vec<Hold> {
        let mut places = Vec::new();
        for made in self.made.iter().filter(|made| made.code == hold.code) {
            let here = Hold { place: Some(made.place), ..hold };
            if !places.iter().any(|other: &Hold| other.place == here.place) {
                places.push(here);
            }
        }
        places
    }
}

struct Mender<'m> {
    /// The transcript as it is; `None` once it was taken for an attempt.
    read: Option<Scanned>,
    source: &'m dyn Source,
    terms: Terms<'m>,
    before: &'m Examination,
    remember: Remember<'m>,
}

impl<'m> Mender<'m> {
    /// The largest repair that makes nothing worse.
    fn best(mut self) -> Result<Tried<'m>, Fault> {
        let whole = self.attempt(&[])?;
        let Err(mut why) = whole.verdict else { return Ok(whole) };
        if why == Worse::TooMany {
            return Ok(whole);
        }
        let (mut holds, mut suspect) = (Vec::new(), whole.suspect(why));
        let mut part = None;
        while let Some(hold) = suspect.filter(|_| part.is_none() && holds.len() < TRIES_MAX) {
            holds.push(hold);
            let tried = self.attempt(&holds)?;
            (suspect, part) = match tried.verdict {
                Ok(()) => (None, Some(tried)),
                Err(worse) => {
                    why = worse;
                    (tried.suspect(why), None)
                }
            };
        }
        // Problems that damage had hidden are not a reason to leave a refused session as it is.
        let sends = |tried: &Tried<'_>| !tried.after.as_ref().unwrap_or(self.before).tally.has_refusals();
        let pardoned = whole.is_forgiven && !part.as_ref().is_some_and(sends);
        if part.is_none() || (pardoned && self.is_refused()) {
            return if pardoned { self.pardon() } else { Ok(whole) };
        }
        let best = self.least(holds, &whole)?;
        // A session that could be sent is left alone only if nothing at all changes. If this fix made part of the repair,
        // the next one would start from other text and might make the rest: two runs must not do what one refuses.
        if pardoned && !best.plan.is_empty() { self.pardon() } else { Ok(best) }
    }

    /// Makes all fixes, whatever they reveal.
    fn pardon(&mut self) -> Result<Tried<'m>, Fault> {
        Ok(Tried { verdict: Ok(()), ..self.attempt(&[])? })
    }

    /// Makes as many of the held fixes as do no harm; leaving out all of them was enough.
    fn least(&mut self, mut holds: Vec<Hold>, whole: &Tried<'m>) -> Result<Tried<'m>, Fault> {
        self.give_back(&mut holds, 1)?;
        // Perhaps only some places of a rule do harm.
        let several = |hold: &Hold| match (hold.why, whole.places(*hold)) {
            (Worse::Unsettled(_), _) => alloc::vec![*hold],
            (_, places) if (2..=PLACES_MAX).contains(&places.len()) => places,
            _ => alloc::vec![*hold],
        };
        let mut apart: Vec<Hold> = holds.iter().flat_map(several).collect();
        if apart.len() > holds.len() && self.attempt(&apart)?.verdict.is_ok() {
            self.give_back(&mut apart, 0)?;
            holds = apart;
        }
        self.attempt(&holds)
    }

    /// Whether the agent cannot read the original, or the API refuses it.
    fn is_refused(&self) -> bool {
        let Examination { facts, tally, .. } = self.before;
        facts.format.is_some_and(|format| tally.is_refused(format))
    }

    /// Releases the holds that are not needed, except the last few. Those near the end of the file come first, because the
    /// conversation continues there.
    fn give_back(&mut self, holds: &mut Vec<Hold>, last: usize) -> Result<(), Fault> {
        for at in (0..holds.len().saturating_sub(last)).rev() {
            let hold = holds.remove(at);
            if let Err(why) = self.attempt(holds)?.verdict {
                holds.insert(at, Hold { why, ..hold });
            }
        }
        Ok(())
    }

    /// The transcript as it is, for an attempt to change.
    fn original(&mut self) -> Option<Scanned> {
        let kept_max = self.terms.kept_entries_max;
        let kept = self.read.as_ref().filter(|read| read.transcript.entries.len() <= kept_max);
        kept.cloned().or_else(|| self.read.take())
    }

    /// Looks at what a step makes of the source.
    fn examine_planned(
        &mut self,
        read: &mut Option<Scanned>,
        step: Step<'_>,
        holds: &Holds<'_>,
    ) -> Result<Examination, Fault> {
        look_at_planned(read, self.source, step, self.terms, holds, self.remember)
    }

    /// Makes all fixes but those that are held.
    fn attempt(&mut self, holds: &[Hold]) -> Result<Tried<'m>, Fault> {
        let (before, is_part) = (self.before, !holds.is_empty());
        let mut baseline = RepairBaseline::from_original(before);
        let mut plan: Cow<'_, Plan> = Cow::Owned(Plan::unchanged(self.source.len()));
        let (mut after, mut read) = (None, self.original());
        if !holds.is_empty() {
            let holds = Holds { left_out: holds, ..Holds::default() };
            after =
                Some(self.examine_planned(&mut read, Step { from: &plan, by: &plan, to: &plan }, &holds)?);
        }
        let (mut made, mut opens, mut verdict) = (Vec::new(), true, None);
        for round in 0..=ROUNDS_MAX {
            let now = after.as_ref().unwrap_or(self.before);
            if now.plan.is_empty() || verdict.is_some() {
                break;
            }
            let from = made.len();
            made.extend(now.made(self.terms.case.policy, &plan.origins()));
            if round == ROUNDS_MAX {
                verdict = made.get(from).map(|made: &MadeFix| Worse::Unsettled(made.code));
                break;
            }
            baseline.release(now.released);
            opens &= now.stage < Stage::Talk;
            let from = plan;
            plan = match &after {
                // Long plans are not held twice.
                None => Cow::Borrowed(&before.plan),
                Some(now) => Cow::Owned(from.then(&now.plan)),
            };
            let (origins, steps_made) = (plan.origins(), now.steps_made);
            let holds = Holds { left_out: holds, links: links(&made), origins, steps_made };
            let next =
                self.examine_planned(&mut read, Step { from: &from, by: &now.plan, to: &plan }, &holds)?;
            if opens {
                verdict = baseline.reveal(&next, &holds.origins).err();
            }
            after = Some(next);
        }
        let (found, origins) = (after.as_ref().unwrap_or(self.before), plan.origins());
        let verdict = verdict.map_or_else(|| baseline.compare(found, &origins, Loss::None), Err);
        let is_new = matches!(verdict, Err(Worse::NewFindings(_)));
        let is_uncovered = opens || (is_new && baseline.has_uncovered(found, &origins));
        let is_forgiven = is_new && is_uncovered && baseline.forgives(found, &origins);
        Ok(Tried { plan, after, verdict, is_uncovered, is_forgiven, made, is_part })
    }
}

impl Examination {
    /// The fixes that its plan makes.
    fn made(&self, policy: &Policy, origins: &Origins<'_>) -> Vec<MadeFix> {
        let due = |finding: &&Finding| finding.rule.stage == self.stage && policy.selection.applies(finding);
        let made = |finding: &Finding| MadeFix {
            stage: self.stage,
            code: finding.rule.code(),
            place: origins.original_offset(finding.at),
        };
        self.findings.iter().filter(due).map(made).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Cow, Depth, Examination, Fault, Held, MadeFix, Mended, Plan, Repair, Safety, Source, Stage, Terms,
        Tried, Worse, examine, look_at_all, mend, mend_from,
    };
    use crate::examine::context::Messages;
    use crate::format::FORMATS;
    use crate::model::finding::{ERRORS_MAX, Finding};
    use crate::model::policy::{Policy, Selection};
    use crate::plan::Rendered;
    use crate::read::scan::scan;
    use alloc::format;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;
    use core::cell::Cell;
    use core::fmt::Write;

    /// The lines of a pi session behind its header: id, parent, message.
    fn session(lines: &[(&str, &str, &str)]) -> String {
        let mut text = String::from("{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/w\"}\n");
        for (id, parent, message) in lines {
            writeln!(
                text,
                "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"message\":{message}}}"
            )
            .unwrap();
        }
        text
    }

    /// The last fix of the stages that revealed what is wrong, or of the one that made it; and if they made none, the last of all.
    #[test]
    fn the_fix_that_is_left_out_first_is_the_last_that_can_be_to_blame() {
        let suspect = |stages: &[(Stage, &'static str)], is_uncovered| {
            let made = stages.iter().map(|&(stage, code)| MadeFix { stage, code, place: 0 }).collect();
            let (plan, is_forgiven, is_part) = (Cow::Owned(Plan::unchanged(0)), false, false);
            let tried =
                Tried { plan, after: None, verdict: Ok(()), is_uncovered, is_forgiven, made, is_part };
            tried.suspect(Worse::Shortened).map(|hold| hold.code)
        };
        let all = [(Stage::Bytes, "B"), (Stage::Links, "L"), (Stage::Talk, "T"), (Stage::Lines, "N")];
        assert_eq!((suspect(&all, true), suspect(&all, false)), (Some("N"), Some("T")));
        assert_eq!((suspect(&all[..3], true), suspect(&all[..2], false)), (Some("L"), Some("L")));
        assert_eq!((suspect(&all[2..3], true), suspect(&[], true)), (Some("T"), None));
    }

    const ASKED: &str = r#"{"role":"user","content":"go on"}"#;
    const SAID: &str = r#"{"role":"assistant","content":[{"type":"text","text":"yes"}],"stopReason":"stop"}"#;

    /// A message with an image of 9,000 pixels, which no provider takes.
    fn shown() -> String {
        let head = "iVBORw0KGgoAAAANSUhEUgAAIygAAABkCAIAAAA";
        format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"look"}},{{"type":"image","data":"{head}{}","mimeType":"image/png"}}]}}"#,
            "A".repeat(401)
        )
    }

    /// A branch with that, and one whose parent is lost.
    fn two_branches(shown: &str) -> Vec<(&str, &str, &str)> {
        alloc::vec![
            ("a1", "null", shown),
            ("a2", "\"a1\"", SAID),
            ("b1", "\"lost\"", ASKED),
            ("b2", "\"b1\"", SAID),
        ]
    }

    /// Records that do not lie in one file. A line break between the tokens of a record is a space to who reads.
    struct LooseRecords(Vec<String>);

    impl Source for LooseRecords {
        fn len(&self) -> u64 {
            self.0.iter().map(|row| row.len() as u64 + 1).sum()
        }

        fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
            let mut start = 0;
            let mut filled = 0;
            for row in &self.0 {
                for byte in row.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }).chain([b'\n']) {
                    if start >= at && filled < buffer.len() {
                        buffer[filled] = byte;
                        filled += 1;
                    }
                    start += 1;
                }
            }
            Ok(filled)
        }
    }

    #[test]
    fn a_source_can_be_rows_and_each_edit_lies_in_one() {
        let long = format!(
            "{{\"role\":\"toolResult\",\"toolCallId\":\"c\",\n\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}",
            "row ".repeat(20_000)
        );
        let call = r#"{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"x","arguments":{}}],"stopReason":"toolUse"}"#;
        let message = |id: &str, parent: &str, message: &str| {
            format!("{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\n\"message\":{message}}}")
        };
        let rows = LooseRecords(alloc::vec![
            r#"{"type":"session","version":3,"id":"s","cwd":"/w"}"#.to_string(),
            message("a", "null", ASKED),
            message("b", "\"a\"", call),
            message("c", "\"b\"", &long),
            message("d", "\"c\"", SAID),
        ]);
        let policy = Policy::default();
        let file: String = rows.0.iter().map(|row| row.replace('\n', " ") + "\n").collect();
        let Mended { before, repair } = mend(&rows, &policy).unwrap();
        assert_eq!(codes(&before.findings), codes(&mended(&file, &policy).0.before.findings));
        let plan = repair.ok().unwrap().plan;
        let starts = rows.0.iter().scan(0, |at, row| {
            let start = *at;
            *at += row.len() as u64 + 1;
            Some(start)
        });
        let starts: Vec<u64> = starts.collect();
        let row = |at: u64| starts.partition_point(|start| *start <= at) - 1;
        assert!(!plan.is_empty());
        for edit in plan.edits() {
            assert_eq!((row(edit.at.start), row(edit.at.end)), (3, 3), "{edit:?}");
        }
    }

    fn allowing(codes: &[&str]) -> Policy {
        let allow = codes.iter().map(ToString::to_string).collect();
        Policy { selection: Selection { allow, ..Selection::default() }, ..Policy::default() }
    }

    fn mended(text: &str, policy: &Policy) -> (Mended, String) {
        let source = text.as_bytes();
        let mended = mend(&source, policy).unwrap();
        let plan = &mended.repair.as_ref().ok().unwrap().plan;
        let rendered = Rendered::new(&source, plan);
        let bytes = spans::source::read_span(&rendered, crate::Span::new(0, plan.length_after())).unwrap();
        (mended, String::from_utf8(bytes).unwrap())
    }

    fn codes(findings: &[Finding]) -> Vec<(&'static str, u64, Safety)> {
        findings.iter().map(|finding| (finding.rule.code(), finding.line, finding.fix.safety)).collect()
    }

    #[track_caller]
    fn is_held_for(safety: Safety, codes: &str) {
        let Safety::Held(Held::Worse(Worse::NewFindings(news))) = safety else { panic!("{safety:?}") };
        assert_eq!((news.codes.to_string().as_str(), news.curable), (codes, true));
    }

    #[test]
    fn what_would_bring_an_error_is_held_with_what_allows_both() {
        let text = session(&two_branches(&shown()));
        let (done, after) = mended(&text, &Policy::default());
        assert_eq!(after, text);
        let found = codes(&done.before.findings);
        assert_eq!(found.iter().map(|found| found.0).collect::<Vec<_>>(), ["S18", "T1"]);
        is_held_for(found[1].2, "S4");
        // A look says the same.
        assert_eq!(codes(&examine(&text.as_bytes(), &Policy::default()).unwrap().findings), found);
        let (done, after) = mended(&text, &allowing(&["T1", "S4"]));
        assert!(after.contains(r#""parentId":"a2","message":{"role":"user","content":"go on""#), "{after}");
        assert_eq!(codes(&done.repair.ok().unwrap().after.unwrap().findings), []);
        assert_eq!(done.before.messages, Messages { all: 4, seen: 2, off_branch: 2, brought_back: 2 });
    }

    #[test]
    fn the_link_that_does_no_harm_is_mended() {
        let shown = shown();
        let mut lines = two_branches(&shown);
        lines.push(("c1", "\"gone\"", ASKED));
        let (done, _) = mended(&session(&lines), &Policy::default());
        let after = done.repair.ok().unwrap().after.unwrap();
        assert_eq!((done.before.messages.seen, after.messages.seen), (1, 3));
        let left: Vec<_> = after.findings.iter().filter(|finding| finding.rule.code() == "T1").collect();
        assert_eq!((left.len(), left[0].line, left[0].uncovered), (1, 4, false));
        is_held_for(left[0].fix.safety, "S4");
    }

    #[test]
    fn what_goes_with_another_repair_is_said_to_be_mended() {
        let lines = [("a1", "null", ASKED), ("a2", "\"a1\"", SAID), ("b1", "\"lost\"", ASKED)];
        let (done, _) = mended(&session(&lines), &Policy::default());
        let said = codes(&done.before.findings);
        assert_eq!(said, [("S18", 3, Safety::Safe), ("T1", 4, Safety::Safe)]);
        assert_eq!(codes(&done.repair.ok().unwrap().after.unwrap().findings), []);
    }

    const CHAT: &str = "{\"role\":\"user\",\"content\":\"go on\"}\n";
    /// A call that was torn, with its result on the same line. Lines may not go here, so the result would stay alone.
    const GLUED: &str =
        "{\"role\":\"assistant\",\"tool_c{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"r\"}\n";
    const CHAT_SAID: &str = "{\"role\":\"assistant\",\"content\":\"yes\"}\n";

    #[test]
    fn a_session_that_could_be_sent_is_not_made_one_that_is_refused() {
        let text = [CHAT, GLUED, CHAT_SAID].concat();
        let (done, after) = mended(&text, &Policy::default());
        assert_eq!(after, text);
        let found = codes(&done.before.findings);
        assert_eq!(found.iter().map(|found| (found.0, found.1)).collect::<Vec<_>>(), [("B2", 2)]);
        is_held_for(found[0].2, "P2");
        let (done, after) = mended(&text, &allowing(&["B2", "P2"]));
        assert_eq!(after, [CHAT, CHAT_SAID].concat());
        assert_eq!(codes(&done.repair.ok().unwrap().after.unwrap().findings), []);
    }

    /// One was refused anyway; in the other one more is to be mended, which is done together with that or not at all.
    #[test]
    fn what_damage_hid_may_come_to_light_where_more_is_wrong() {
        let result = r#"{"role":"tool","tool_call_id":"c1","content":"r"}"#.to_string() + "\n";
        let lost = result.replace("c1", "c0");
        let [refused, torn] = [[CHAT, &lost, GLUED], [CHAT, GLUED, "{\"role\":\"user\",\"con\n"]]
            .map(|text| text.concat() + CHAT_SAID);
        assert_eq!(mended(&refused, &Policy::default()).1, [CHAT, &lost, &result, CHAT_SAID].concat());
        assert_eq!(mended(&torn, &Policy::default()).1, [CHAT, &result, CHAT_SAID].concat());
    }

    /// Vibe refuses a file with a line that it cannot read, so that nothing is lost by mending that.
    #[test]
    fn a_line_that_cannot_be_read_counts_where_the_agent_does_not_skip_it() {
        let text = [CHAT, GLUED, CHAT_SAID].concat();
        let tally = examine(&text.as_bytes(), &Policy::default()).unwrap().tally;
        let named = |name| FORMATS.iter().find(|format| format.name == name).copied().unwrap();
        let refuses = |name| tally.is_refused(named(name));
        assert_eq!(["openai-chat", "vibe"].map(refuses), [false, true]);
    }

    /// Where many lines were lost, each link comes into sight with the one after it.
    #[test]
    fn many_lost_links_are_mended_at_once() {
        let ids: Vec<String> = (0..40).map(|n| format!("e{n}")).collect();
        let parent =
            |n: usize| if n.is_multiple_of(2) { format!("\"e{}\"", n - 1) } else { format!("\"lost{n}\"") };
        let parents: Vec<String> =
            (0..40).map(|n| if n == 0 { "null".to_string() } else { parent(n) }).collect();
        let said = |n: usize| if n.is_multiple_of(2) { ASKED } else { SAID };
        let lines: Vec<_> = (0..40).map(|n| (ids[n].as_str(), parents[n].as_str(), said(n))).collect();
        let (done, _) = mended(&session(&lines), &Policy::default());
        let after = done.repair.ok().unwrap().after.unwrap();
        assert_eq!((done.before.messages.seen, after.messages.seen), (1, 40));
        assert_eq!(codes(&after.findings), []);
    }

    /// Each block is invalid, so that none holds back the repair of those before it.
    #[test]
    fn invalid_thinking_goes_in_one_round() {
        let thinks = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"[REDACTED]"},{"type":"text","text":"yes"}],"model":"claude-opus-5-5","stopReason":"stop"}"#;
        let ids: Vec<String> = (0..41).map(|n| format!("e{n}")).collect();
        let parents: Vec<String> =
            (0..41).map(|n| if n == 0 { "null".to_string() } else { format!("\"e{}\"", n - 1) }).collect();
        let lines: Vec<_> = (0..41)
            .map(|n| (ids[n].as_str(), parents[n].as_str(), if n.is_multiple_of(2) { ASKED } else { thinks }))
            .collect();
        let (done, after) = mended(&session(&lines), &Policy::default());
        let found = codes(&done.before.findings);
        assert!(found.len() == 20 && found.iter().all(|found| (found.0, found.2) == ("M3", Safety::Safe)));
        assert!(!after.contains("REDACTED"));
    }

    /// The rest is mended, and the rule is named, in the transcript as it is and in what becomes of it.
    #[test]
    fn a_rule_that_does_not_settle_is_left_out_and_named() {
        let text = concat!(
            "{\"otter\":1,\"session\":\"s\"}\n",
            "{\"who\":\"me\",\"says\":\"list\"}\n",
            "{\"who\":\"model\",\"says\":\"tick\",\"runs\":[{\"ref\":\"r1\",\"tool\":\"ls\"}]}\n",
            "{\"who\":\"me\",\"says\":\"and?\"}\n",
            "{\"who\":\"model\",\"says\":\"done\"}\n",
        );
        let (done, after) = mended(text, &Policy::default());
        assert!(after.contains("tick") && after.contains(r#"{"who":"tool","ref":"r1","gives":"#), "{after}");
        let held = Safety::Held(Held::Worse(Worse::Unsettled("Z1")));
        let left = codes(&done.repair.ok().unwrap().after.unwrap().findings);
        assert_eq!(codes(&done.before.findings), [("P1", 3, Safety::Safe), ("Z1", 3, held)]);
        assert_eq!(left, [("Z1", 3, held)]);
    }

    /// One record on a line would be mended; of too many nobody could say that the result is no worse.
    #[test]
    fn what_has_too_many_errors_to_compare_is_left_and_says_why() {
        let glued = |records: usize| {
            session(&[("a1", "null", ASKED)]) + &("{}".repeat(1000) + "\n").repeat(records / 1000)
        };
        let few = mend(&glued(ERRORS_MAX - 1000).as_bytes(), &Policy::default()).unwrap();
        assert!(few.repair.is_ok());
        let many = mend(&glued(ERRORS_MAX + 2000).as_bytes(), &Policy::default()).unwrap();
        assert_eq!(many.repair.err(), Some(Worse::TooMany));
        assert!(many.before.findings.len() < ERRORS_MAX && many.before.count() > ERRORS_MAX as u64);
        let told = Worse::TooMany.to_string();
        assert!(told.contains(&ERRORS_MAX.to_string()) && told.contains("--select"), "{told}");
        for finding in &many.before.findings {
            assert_eq!(finding.fix.safety, Safety::Held(Held::Worse(Worse::TooMany)));
        }
    }

    /// Counts how much is read.
    struct CountingSource<'b>(&'b [u8], Cell<u64>);

    impl Source for CountingSource<'_> {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
            let got = self.0.read(at, buffer)?;
            self.1.set(self.1.get() + got as u64);
            Ok(got)
        }
    }

    /// A session of 150 entries in which every ninth call has no result. What decides the format, which is read again, is
    /// short.
    fn long_session() -> String {
        let line = |n: usize| {
            let said = match n % 3 {
                0 => format!(
                    r#"{{"role":"user","content":"{}"}}"#,
                    "go ".repeat(if n < 60 { 1 } else { 9000 })
                ),
                1 => format!(
                    r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"c{n}","name":"ls","arguments":{{}}}}],"stopReason":"toolUse"}}"#
                ),
                _ if n % 27 == 2 => r#"{"role":"custom","content":"lost"}"#.into(),
                _ => {
                    let call = n - 1;
                    format!(
                        r#"{{"role":"toolResult","toolCallId":"c{call}","toolName":"ls","content":"done"}}"#
                    )
                }
            };
            let parent = n.max(1) - 1;
            format!(
                r#"{{"type":"message","id":"e{n}","parentId":"e{parent}","timestamp":"t","message":{said}}}"#
            ) + "\n"
        };
        (0..150).map(line).collect()
    }

    /// The session again, of which one repair makes something worse, so that there are several attempts.
    fn long_session_with_holds() -> String {
        let shown = shown();
        let lines = [("a1", "\"e149\"", shown.as_str()), ("a2", "\"a1\"", SAID), ("b1", "\"lost\"", ASKED)];
        let more = session(&lines);
        long_session() + more.split_once('\n').unwrap().1
    }

    #[test]
    fn a_result_is_the_same_whether_it_is_put_together_or_read() {
        let policy = Policy::default();
        let tried = |text: &str, kept_entries_max, depth| {
            let source = CountingSource(text.as_bytes(), Cell::new(0));
            let terms = Terms { case: (&policy).into(), depth, kept_entries_max };
            let read = scan(&text.as_bytes()).unwrap();
            let before = look_at_all(&read, &source, terms, &mut |_, _| {}).unwrap();
            let read_before = source.1.replace(0);
            assert!(read_before < source.len() / 4, "{read_before}");
            let mended = mend_from(before, (read, &source), terms, &mut |_| {}, &mut |_, _| {}).unwrap();
            let told = |found: &Examination| {
                let findings = found.findings.iter();
                let findings: Vec<_> =
                    findings.map(|found| (found.rule.code(), found.line, found.fix.safety)).collect();
                format!("{:?} {} {findings:?}", found.facts, found.bytes_after)
            };
            let Ok(Repair { plan, after: Some(after) }) = mended.repair else { panic!("no repair") };
            ((told(&mended.before), told(&after), plan), source.1.get() > source.len() / 2)
        };
        for depth in [Depth::Trial, Depth::Plan] {
            let (text, entries) = (long_session_with_holds(), 153);
            let (read, was_read) = tried(&text, entries - 1, depth);
            let (put_together, was_read_again) = tried(&text, entries, depth);
            assert!(was_read && !was_read_again, "{was_read} {was_read_again}");
            assert_eq!(read, put_together);
            // One attempt is enough.
            let (.., was_read) = tried(&long_session(), 0, depth);
            assert!(!was_read);
        }
    }
}
