//! Carries work on one file through all its steps: open it, have a plan drawn for it, and do with the plan what the mode says.
//!
//! What the plan is for (a repair, a recovery, a compaction) is up to the caller, which passes a function that draws it.

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::gate::{self, Pass};
use crate::ask::outcome::{Ending, Guarantee, Outcome, Unsupported};
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::disk::folder::Folder;
use crate::disk::new_text::NewText;
use crate::jobs::find;
use crate::jobs::leave::{CONVERSATION_GATES, could_write, may_be_in_turn, may_be_remembered, may_write};
use crate::jobs::stored::{Replacing, Stored};
use crate::options::{Mode, Options};
use crate::places::store::{self, Store};
use crate::platform::acting::Acting;
use crate::swap::content::FileContent;
use crate::swap::leftover::{ROUNDS_MAX, came_back, finish_leftovers, late_lines, remove_second_name};
use crate::swap::replace::{copy_to, replace};
use crate::swap::snapshot::{Snapshot, as_owner};
use crate::vault::{PackedTexts, Pending, Purpose, Run, Swap, Vault};
use std::path::Path;
use std::time::SystemTime;
use transcript::finding::{Held, Safety};
use transcript::format::Gate;
use transcript::situation::{KnownRecords, Situation};
use transcript::{Examination, Facts, Finding, Mended, Policy, Rendered, Repair};

/// The ending for a file that is not plain text, such as a database or a compressed file. Goes by the name alone.
pub(crate) fn sealed(path: &Path) -> Option<Ending> {
    let store = match store::split(path) {
        Some((file, _)) => Some(file),
        None => Some(path).filter(|path| Store::for_path(path).is_some()),
    };
    let store = store.map(|file| match Store::for_path(file) {
        Some(store) if !store::is_read(file) => Ending::Unsupported(Unsupported::Store(*store)),
        _ => Ending::Unsupported(Unsupported::Stored),
    });
    store.or_else(|| find::plain(path).map(|_| Ending::Refused(Refusal::Compressed)))
}

/// What a drawing function returns: what it found in the text, and what to do next.
pub(crate) struct Drawn<T> {
    pub(crate) before: Examination,
    pub(crate) next: Next,
    /// A result for the caller of `carry`. `None` keeps the one of an earlier drawing.
    pub(crate) seen: Option<T>,
}

/// What to do with a file next.
pub(crate) enum Next {
    /// Nothing: the ending is that of the examination.
    Leave,
    /// Nothing, with this ending.
    End(Ending),
    /// Change it.
    Change(Box<ChangeJob>),
}

/// A change to be made to a file.
pub(crate) struct ChangeJob {
    pub(crate) repair: Repair,
    /// What it is for; `None` for a repair.
    pub(crate) purpose: Option<Purpose>,
    /// What it removes, as far as that is compressed already.
    pub(crate) packed: PackedTexts,
}

impl<T> Drawn<T> {
    pub(crate) fn mended(mended: Mended) -> Self {
        let next = match mended.repair {
            Ok(repair) => Next::change(repair, None),
            Err(worse) => Next::End(Ending::Refused(Refusal::Worse(worse))),
        };
        Self { before: mended.before, next, seen: None }
    }

    /// The job, if there is one.
    fn job(&self) -> Option<&ChangeJob> {
        if let Next::Change(job) = &self.next { Some(job) } else { None }
    }
}

impl Next {
    /// To make this change. `purpose` is `None` for a repair.
    pub(crate) fn change(repair: Repair, purpose: Option<Purpose>) -> Self {
        Self::Change(Box::new(ChangeJob { repair, purpose, packed: PackedTexts::default() }))
    }
}

impl ChangeJob {
    fn gates(&self) -> &'static [Gate] {
        if self.purpose.is_some() { CONVERSATION_GATES } else { &[] }
    }

    fn keep(
        &self,
        snapshot: &Snapshot,
        pending: Pending,
        swap: Option<Swap>,
        options: &Options,
    ) -> Result<Run, Stop> {
        let Self { repair, purpose, packed } = self;
        let spill = options.policy.all().spill.as_ref();
        snapshot.read(|source| pending.keep(source, &repair.plan, packed, spill, *purpose, swap))
    }

    /// Writes the repaired copy. What is cut is stored in the vault too, so that the markers in the copy lead somewhere.
    fn copy(&self, snapshot: &Snapshot, path: &Path, options: &Options) -> Result<Option<String>, Stop> {
        let real = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        // If the folder cannot be created, writing the copy fails later with an error.
        let _ = real.parent().map(Folder::make);
        let own = Acting::ourselves();
        let real = match (real.parent().map(Path::canonicalize), real.file_name()) {
            (Some(Ok(folder)), Some(name)) => folder.join(name),
            _ => real,
        };
        drop(own);
        let plan = &self.repair.plan;
        let vault = options.vault.as_ref().filter(|_| !plan.is_empty());
        let kept = vault.map(|vault| self.keep(snapshot, vault.begin(&real)?, None, options)).transpose()?;
        let copied = copy_to(snapshot, plan, path);
        if let Some(run) = &kept {
            if copied.is_ok() { run.landed() } else { run.forget() }
        }
        copied?;
        Ok(kept.map(|run| run.name().to_string()))
    }
}

/// How often a session in a store is read again because its rows changed meanwhile.
pub(crate) const STORE_TRIES: usize = 3;

/// The situation of a session in a store.
pub(crate) fn knowing(situation: &Situation, stored: &Stored) -> Situation {
    let (known_records, load) = (stored.known_records.clone(), stored.load);
    Situation { known_records, load, ..situation.clone() }
}

/// Draws the plan for a file in this situation: that of the options, in which some changes are held back if they have to wait. Is
/// called again if the file has changed meanwhile, or if something more has to be held back.
pub(crate) type Draw<'d, T> = &'d dyn Fn(&FileContent, &Situation) -> Result<Drawn<T>, Stop>;

/// Has `draw` draw a plan for a file, and does with it what the mode says. Also returns the result of `draw`, if any.
pub(crate) fn carry<T>(
    path: &Path,
    root: Option<&Path>,
    options: &Options,
    draw: Draw<'_, T>,
) -> Result<(Outcome, Option<T>), Error> {
    if let Some(ending) = sealed(path) {
        return Ok((Outcome::without_look(ending), None));
    }
    let _acting = match as_owner(path) {
        Ok(acting) => acting,
        Err(stop) => return Ok((Outcome::from_result(Err(stop))?, None)),
    };
    let mut work = FileWork::new(options, draw, may_be_remembered);
    for _ in 0..ROUNDS_MAX {
        let done = match Snapshot::open(path, root) {
            Ok(snapshot) if options.mode == Mode::Fix => snapshot.unless_changed(work.file(&snapshot)),
            Ok(snapshot) => work.file(&snapshot),
            Err(stop) => Err(stop),
        };
        if let Some(done) = done.transpose() {
            return Ok((Outcome::from_result(done)?, work.seen));
        }
    }
    Ok((Outcome::deferred(Deferral::Changed), work.seen))
}

/// Gives a file that is to be changed its name back, if an interrupted run took it.
pub(crate) fn gone_is_back(path: &Path, options: &Options) -> Result<(), Stop> {
    match &options.vault {
        Some(vault) if options.mode == Mode::Fix => came_back(path, vault).map(drop),
        _ => Ok(()),
    }
}

/// Carries out a plan for a session in a store, whose owner may be at work on it.
pub(crate) fn carry_stored<T>(
    stored: &Stored,
    only: &'static str,
    options: &Options,
    draw: Draw<'_, T>,
) -> Result<(Outcome, Option<T>), Error> {
    let mut work = FileWork::new(options, draw, may_be_in_turn);
    work.situation = of_rows(stored, options);
    work.situation.settled_only = Some(only);
    let mut planned = work.plan(&stored.content);
    let waits =
        planned.as_ref().is_ok_and(|(outcome, _)| outcome.remaining().iter().any(needs_owner_stopped));
    if waits && options.mode != Mode::Look && !options.beside_only {
        match stored.waits_for_owner(&options.mode) {
            Ok(()) => {
                let known = planned.and_then(|(outcome, _)| known_records(stored, &outcome));
                work.situation.known_records = known.as_ref().cloned().unwrap_or_default();
                work.situation.settled_only = None;
                planned = known.and_then(|_| work.plan(&stored.content));
            }
            Err(stop) => {
                if let (Ok((outcome, _)), Ok(Ending::Deferred(reason))) =
                    (&mut planned, Ending::from_stop(stop))
                    && outcome.ending == Ending::Findings
                {
                    outcome.ending = Ending::Deferred(reason);
                }
            }
        }
    }
    let done = planned.and_then(|planned| work.rows(stored, planned));
    Ok((Outcome::from_result(done)?, work.seen))
}

/// Carries out a change that the owner of a store must not be at work beside, such as a recovery.
pub(crate) fn carry_stopped<T>(
    stored: &Stored,
    options: &Options,
    draw: Draw<'_, T>,
) -> Result<(Outcome, Option<T>), Error> {
    let mut work = FileWork::new(options, draw, |_, _, _| None);
    work.situation = of_rows(stored, options);
    let mut planned = work.plan(&stored.content);
    if let Ok((outcome, Some(_))) = &mut planned {
        let left = match options.mode {
            Mode::CopyTo(_) => Ok(Ending::Unsupported(Unsupported::Stored)),
            _ => stored.waits_for_owner(&options.mode).map_or_else(Ending::from_stop, |()| Ok(Ending::Clean)),
        };
        match left? {
            Ending::Clean => {}
            ending => {
                outcome.ending = ending;
                planned = planned.map(|(outcome, _)| (outcome, None));
            }
        }
    }
    let done = planned.and_then(|planned| work.rows(stored, planned));
    Ok((Outcome::from_result(done)?, work.seen))
}

/// What is the case with a session in a store that is changed.
fn of_rows(stored: &Stored, options: &Options) -> Situation {
    Situation { rows_only: Some(stored.no_rows()), ..knowing(&options.situation, stored) }
}

/// Whether a finding may be repaired once the owner of a store is stopped.
fn needs_owner_stopped(finding: &Finding) -> bool {
    matches!(finding.fix.safety, Safety::Held(Held::SettledOnly(_))) || finding.rule.is_unreadable()
}

/// What is known of the records that the owner of a store cannot read, and what they held.
fn known_records(stored: &Stored, outcome: &Outcome) -> Result<KnownRecords, Stop> {
    let before = outcome.before.iter().flat_map(|before| &before.findings);
    let lines: Vec<u64> =
        before.filter(|finding| finding.rule.is_unreadable()).map(|finding| finding.line).collect();
    stored.content.read(|source| stored.known(source, &lines))
}

/// Carries out a plan for a stream, whose text the caller writes.
pub(crate) fn carry_stream<T>(
    content: &FileContent,
    options: &Options,
    draw: Draw<'_, T>,
) -> Result<(Outcome, Option<T>), Error> {
    let mut work = FileWork::new(options, draw, may_be_remembered);
    let done = work.stream(content);
    Ok((Outcome::from_result(done)?, work.seen))
}

/// Work on one file.
struct FileWork<'a, T> {
    options: &'a Options,
    situation: Situation,
    draw: Draw<'a, T>,
    seen: Option<T>,
    /// Why to wait because an agent may remember the conversation.
    remembers: fn(&FileContent, &Facts, &Options) -> Option<Deferral>,
}

impl<'a, T> FileWork<'a, T> {
    fn new(
        options: &'a Options,
        draw: Draw<'a, T>,
        remembers: fn(&FileContent, &Facts, &Options) -> Option<Deferral>,
    ) -> Self {
        Self { options, situation: options.situation.clone(), draw, seen: None, remembers }
    }

    /// Does with a file what the mode says. `None` if it has to be opened and examined again.
    fn file(&mut self, snapshot: &Snapshot) -> Result<Option<Outcome>, Stop> {
        let options = self.options;
        if options.mode == Mode::Fix && !snapshot.lock()? {
            return Ok(None);
        }
        let (mut outcome, job) = self.plan(snapshot)?;
        let Some(job) = job else { return Ok(Some(outcome)) };
        if let Mode::CopyTo(copy) = &options.mode {
            outcome.run = job.copy(snapshot, copy, options)?;
        }
        let plan = &job.repair.plan;
        let Some(facts) = outcome.facts().filter(|_| !plan.is_empty()) else { return Ok(Some(outcome)) };
        let enter = || may_write(snapshot, &facts, options, job.gates());
        let done = match options.mode {
            Mode::CopyTo(_) => Ok(Ending::Fixed),
            Mode::Look | Mode::DryRun => {
                could_write(snapshot, &facts, options, job.gates()).map(|()| Ending::WouldFix)
            }
            Mode::Fix => {
                if let Some(reason) = self.is_not_worth_it(&outcome, &job) {
                    // If something else waits too, the change may be worth it together with that; then the other reason is given.
                    if !matches!(outcome.ending, Ending::Deferred(_)) {
                        outcome.ending = Ending::Deferred(reason);
                    }
                    return Ok(Some(outcome));
                }
                let vault = options.vault(&snapshot.path)?;
                let keep = |pending, swap| job.keep(snapshot, pending, Some(swap), options);
                match is_alone(snapshot, vault, enter) {
                    Ok(true) => replace(snapshot, plan, vault, keep, enter).map(|done| {
                        outcome.late = late_lines(&done, snapshot, vault);
                        (outcome.run, outcome.guarantee) = (Some(done.run), Some(done.guarantee));
                        Ending::Fixed
                    }),
                    Ok(false) => return Ok(None),
                    Err(stop) => Err(stop),
                }
            }
        };
        match done {
            Ok(ending) => outcome.end(ending, job.repair),
            Err(stop) => outcome.ending = Ending::from_stop(stop)?,
        }
        Ok(Some(outcome))
    }

    fn stream(&mut self, content: &FileContent) -> Result<Outcome, Stop> {
        let (mut outcome, job) = self.plan(content)?;
        let Some(job) = job.filter(|job| !job.repair.plan.is_empty()) else { return Ok(outcome) };
        let repair = job.repair;
        if let Some(vault) = self.options.vault.as_ref().filter(|_| !repair.plan.texts().is_empty()) {
            let spill = self.options.policy.all().spill.as_ref();
            let run = content.read(|source| vault.keep_stream(source, &repair.plan, spill))?;
            outcome.run = Some(run.name().to_string());
        }
        outcome.end(Ending::Fixed, repair);
        Ok(outcome)
    }

    fn rows(&self, stored: &Stored, planned: (Outcome, Option<Box<ChangeJob>>)) -> Result<Outcome, Stop> {
        let content = &stored.content;
        let (mut outcome, job) = planned;
        let Some(job) = job.filter(|job| !job.repair.plan.is_empty()) else { return Ok(outcome) };
        if self.options.mode == Mode::DryRun {
            outcome.end(Ending::WouldFix, job.repair);
            return Ok(outcome);
        }
        let vault = self.options.vault(&content.path)?;
        let plan = &job.repair.plan;
        let keep = |rows| {
            let pending = vault.begin(&content.path)?;
            // Rows are kept whole, with what is in them.
            let pending = if plan.removes_secrets() { pending } else { pending.with_rows(rows) };
            let spill = self.options.policy.all().spill.as_ref();
            content.read(|source| pending.keep(source, plan, &job.packed, spill, job.purpose, None))
        };
        let done = content.read(|old| {
            let new = Rendered::new(old, plan);
            let only_if_still = plan.unsettles_memory();
            stored.replace(Replacing { old, new: &new, parts: plan.parts(), only_if_still, made: None }, keep)
        });
        match done {
            Ok(written) => {
                outcome.run = Some(written.run.name().to_string());
                outcome.rows_saved_bytes = Some(written.saved_bytes);
                outcome.guarantee = Some(Guarantee::Transaction);
                outcome.end(Ending::Fixed, job.repair);
            }
            Err(stop) => outcome.ending = Ending::from_stop(stop)?,
        }
        Ok(outcome)
    }

    fn is_not_worth_it(&self, outcome: &Outcome, job: &ChangeJob) -> Option<Deferral> {
        let before = outcome.before.as_ref()?;
        let worth = self.options.worth.filter(|_| job.purpose.is_none())?;
        worth.waits(before, &job.repair, self.options.policy.for_format(before.facts.format))
    }

    /// What was found, and the change to make; `None` if there is none.
    fn plan(&mut self, content: &FileContent) -> Result<(Outcome, Option<Box<ChangeJob>>), Stop> {
        if content.is_empty() {
            return Ok((Outcome::empty(), None));
        }
        let too_soon = self.history_waits(content);
        self.situation.hold_history = too_soon.is_some() || self.options.situation.hold_history;
        self.situation.hold_remembered = self.options.situation.hold_remembered;
        let mut drawn = self.draw(content)?;
        let remembered = self.memory_waits(content, &drawn);
        if let Some(reason) = &remembered {
            if drawn.job().is_some_and(|job| job.purpose.is_some()) {
                drawn.next = Next::End(Ending::Deferred(reason.clone()));
            } else {
                // Draw it again without changes to what the model sees. The others need not wait.
                self.situation.hold_remembered = true;
                drawn = self.draw(content)?;
            }
        }
        let mut outcome = Outcome::looked(drawn.before, content.bytes());
        match drawn.next {
            Next::Leave => Ok((outcome, None)),
            Next::Change(job) => {
                for (reason, held) in [(too_soon, Held::RecentlyUsed), (remembered, Held::InMemory)] {
                    let is_held = |finding: &Finding| finding.fix.safety == Safety::Held(held);
                    if let Some(reason) = reason.filter(|_| outcome.remaining().iter().any(is_held)) {
                        outcome.ending = Ending::Deferred(reason);
                    }
                }
                Ok((outcome, Some(job)))
            }
            Next::End(ending) => {
                if matches!(outcome.ending, Ending::Clean | Ending::Findings) {
                    outcome.ending = ending;
                }
                Ok((outcome, None))
            }
        }
    }

    fn draw(&mut self, content: &FileContent) -> Result<Drawn<T>, Stop> {
        let mut drawn = (self.draw)(content, &self.situation)?;
        self.seen = drawn.seen.take().or(self.seen.take());
        Ok(drawn)
    }

    /// Whether the file itself would change. A copy is in no prompt cache, and no agent remembers it.
    fn is_in_place(&self) -> bool {
        matches!(self.options.mode, Mode::Fix | Mode::DryRun)
    }

    /// Why older history must not be rewritten yet; `None` if it may be, or if no policy rewrites it.
    fn history_waits(&self, content: &FileContent) -> Option<Deferral> {
        let quiet = gate::quiet_for(&content.metadata, SystemTime::now());
        let wanted = self.options.settle_stale;
        let waits =
            self.is_in_place() && quiet < wanted && self.options.policy.each().any(Policy::rewrites_history);
        waits.then_some(Deferral::RecentHistory { quiet, wanted })
    }

    /// Why the plan has to wait because it changes what the model sees and an agent may remember it. A recovery never waits for
    /// that: the API refuses the session as it is.
    fn memory_waits(&self, content: &FileContent, drawn: &Drawn<T>) -> Option<Deferral> {
        let job = drawn.job().filter(|_| self.is_in_place())?;
        let waits = job.repair.plan.unsettles_memory() && !job.purpose.is_some_and(Purpose::is_recovery);
        if waits { (self.remembers)(content, &drawn.before.facts, self.options) } else { None }
    }
}

/// Whether nothing of an earlier run is left beside a file that may be written to. `false` if there was something, which is
/// finished now: then the file has to be examined again.
fn is_alone(
    snapshot: &Snapshot,
    vault: &Vault,
    enter: impl FnOnce() -> Result<Pass, Stop>,
) -> Result<bool, Stop> {
    // First, because a file with two names is refused.
    if remove_second_name(snapshot, vault)? {
        return Ok(false);
    }
    let _pass = enter()?;
    // As long as more late lines may come, the file must not be replaced, because the ledger of the interrupted run holds
    // offsets into it.
    Ok(!finish_leftovers(snapshot, vault)?)
}
