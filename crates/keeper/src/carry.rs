//! From a file to what came of it: it is read, a plan for it is drawn, and that is carried out as the mode says.
//!
//! What a plan is for is the business of whoever draws it.

use crate::content::Content;
use crate::deferral::Deferral;
use crate::error::Error;
use crate::find;
use crate::gate;
use crate::leave::{CONVERSATION_GATES, could_write, may_be_remembered, may_write};
use crate::leftover::{ROUNDS_MAX, finish_leftovers, replace_and_finish};
use crate::options::{Mode, Options};
use crate::outcome::{Ending, Outcome, Unsupported};
use crate::policies::Policies;
use crate::refusal::Refusal;
use crate::replace::{Replaced, copy_to};
use crate::snapshot::Snapshot;
use crate::stop::Stop;
use crate::store::Store;
use crate::vault::{Packed, Pending, Purpose, Run, Swap};
use std::path::Path;
use std::time::SystemTime;
use transcript::finding::{Held, Safety};
use transcript::format::Gate;
use transcript::{Examination, Facts, Finding, Mended, Policy, Repair};

/// How it ends with a file that is no text as it stands, whatever is asked for; told by its name alone.
pub(crate) fn sealed(path: &Path) -> Option<Ending> {
    let store = Store::of(path).map(|store| Ending::Unsupported(Unsupported::Store(*store)));
    store.or_else(|| find::plain(path).map(|_| Ending::Refused(Refusal::Compressed)))
}

/// What is to become of a file, told from its text.
pub(crate) struct Drawn<T> {
    pub(crate) before: Examination,
    pub(crate) next: Next,
    /// What whoever drew this wants to know later. `None` leaves what an earlier drawing told.
    pub(crate) told: Option<T>,
}

/// What is to be done next.
pub(crate) enum Next {
    /// Nothing.
    Leave,
    /// Nothing, and it ends like this.
    End(Ending),
    /// The file is changed.
    Change(Box<Job>),
}

/// What is to be done about a file.
pub(crate) struct Job {
    pub(crate) repair: Repair,
    /// What it is for, if it is more than mending.
    pub(crate) purpose: Option<Purpose>,
    /// What it takes out, as far as that is compressed already.
    pub(crate) packed: Packed,
}

impl<T> Drawn<T> {
    pub(crate) fn mended(mended: Mended) -> Self {
        let next = match mended.repair {
            Ok(repair) => Next::change(repair, None),
            Err(worse) => Next::End(Ending::Refused(Refusal::Worse(worse))),
        };
        Self { before: mended.before, next, told: None }
    }

    /// The job, if there is one.
    fn job(&self) -> Option<&Job> {
        if let Next::Change(job) = &self.next { Some(job) } else { None }
    }
}

impl Next {
    /// A repair is made, for this if it is more than mending.
    pub(crate) fn change(repair: Repair, purpose: Option<Purpose>) -> Self {
        Self::Change(Box::new(Job { repair, purpose, packed: Packed::default() }))
    }
}

impl Job {
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

    /// Writes the mended copy. What is cut out of it is kept too, so that its markers lead somewhere.
    fn copy(&self, snapshot: &Snapshot, path: &Path, options: &Options) -> Result<Option<String>, Stop> {
        let real = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        // Whether the folder can be made is told when the copy is written.
        let _ = real.parent().map(std::fs::create_dir_all);
        let real = match (real.parent().map(Path::canonicalize), real.file_name()) {
            (Some(Ok(folder)), Some(name)) => folder.join(name),
            _ => real,
        };
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

/// Draws the plan for a file by these policies, which are those of the options, with history held if that has to wait.
/// May be called again if the file has changed meanwhile.
type Draw<'d, T> = &'d dyn Fn(&Content, &Policies) -> Result<Drawn<T>, Stop>;

/// Does with a file what the mode says and `draw` draws. Also gives what that told.
pub(crate) fn carry<T>(
    path: &Path,
    root: Option<&Path>,
    options: &Options,
    draw: Draw<'_, T>,
) -> Result<(Outcome, Option<T>), Error> {
    if let Some(ending) = sealed(path) {
        return Ok((Outcome::without_look(ending), None));
    }
    let mut work = Work { options, draw, told: None };
    let done = if options.mode == Mode::Fix { work.fix(path, root) } else { work.look(path, root) };
    Ok((Outcome::of(done)?, work.told))
}

/// The same for a stream, whose text somebody else writes.
pub(crate) fn carry_stream<T>(
    content: &Content,
    options: &Options,
    draw: Draw<'_, T>,
) -> Result<(Outcome, Option<T>), Error> {
    let mut work = Work { options, draw, told: None };
    let done = work.stream(content);
    Ok((Outcome::of(done)?, work.told))
}

/// One file on its way.
struct Work<'a, T> {
    options: &'a Options,
    draw: Draw<'a, T>,
    told: Option<T>,
}

impl<T> Work<'_, T> {
    /// Changes nothing in the file.
    fn look(&mut self, path: &Path, root: Option<&Path>) -> Result<Outcome, Stop> {
        let snapshot = Snapshot::open(path, root)?;
        let (mut outcome, job) = self.plan(&snapshot)?;
        let Some(job) = job else { return Ok(outcome) };
        if let Mode::CopyTo(copy) = &self.options.mode {
            outcome.run = job.copy(&snapshot, copy, self.options)?;
        }
        let Some(facts) = outcome.facts().filter(|_| !job.repair.plan.is_empty()) else { return Ok(outcome) };
        if let Mode::CopyTo(_) = self.options.mode {
            outcome.end(Ending::Fixed, job.repair);
            return Ok(outcome);
        }
        match could_write(&snapshot, &facts, self.options, job.gates()) {
            Ok(()) => outcome.end(Ending::WouldFix, job.repair),
            Err(stop) => outcome.ending = Ending::of(stop)?,
        }
        Ok(outcome)
    }

    fn stream(&mut self, content: &Content) -> Result<Outcome, Stop> {
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

    fn fix(&mut self, path: &Path, root: Option<&Path>) -> Result<Outcome, Stop> {
        for _ in 0..ROUNDS_MAX {
            let snapshot = Snapshot::open_locked(path, root)?;
            let done = self.fix_once(&snapshot);
            if let Some(outcome) = snapshot.unless_changed(done)? {
                return Ok(outcome);
            }
        }
        Err(Deferral::Changed.into())
    }

    /// `None` if the file has to be looked at again.
    fn fix_once(&mut self, snapshot: &Snapshot) -> Result<Option<Outcome>, Stop> {
        let (mut outcome, job) = self.plan(snapshot)?;
        let job = job.filter(|job| !job.repair.plan.is_empty());
        let (Some(job), Some(facts)) = (job, outcome.facts()) else { return Ok(Some(outcome)) };
        if let Some(reason) = self.is_not_worth_it(&outcome, &job) {
            // What else waits may be worth it with this.
            if !matches!(outcome.ending, Ending::Deferred(_)) {
                outcome.ending = Ending::Deferred(reason);
            }
            return Ok(Some(outcome));
        }
        match self.replace(snapshot, &job, &facts) {
            Ok(None) => return Ok(None),
            Ok(Some((done, late))) => {
                outcome.run = Some(done.run);
                outcome.guarantee = Some(done.guarantee);
                outcome.late = late;
                outcome.end(Ending::Fixed, job.repair);
            }
            Err(stop) => outcome.ending = Ending::of(stop)?,
        }
        Ok(Some(outcome))
    }

    fn is_not_worth_it(&self, outcome: &Outcome, job: &Job) -> Option<Deferral> {
        let before = outcome.before.as_ref()?;
        let worth = self.options.worth.filter(|_| job.purpose.is_none())?;
        worth.waits(before, &job.repair, self.options.policy.of(before.facts.format))
    }

    /// `None` if the file has to be looked at again.
    fn replace(
        &self,
        snapshot: &Snapshot,
        job: &Job,
        facts: &Facts,
    ) -> Result<Option<(Replaced, Option<Deferral>)>, Stop> {
        let options = self.options;
        let vault = options.vault(&snapshot.path)?;
        let enter = || may_write(snapshot, facts, options, job.gates());
        {
            let _pass = enter()?;
            // Lines that an interrupted run has left beside the file come first; then we look again. As long as more may
            // come, the file stays as it is: the places that the ledger of that run names are places in this text.
            if finish_leftovers(snapshot, vault)? {
                return Ok(None);
            }
        }
        let keep = |pending, swap| job.keep(snapshot, pending, Some(swap), options);
        replace_and_finish(snapshot, &job.repair.plan, vault, keep, enter).map(Some)
    }

    /// What was found, and what is to be done about it; `None` if nothing can be.
    fn plan(&mut self, content: &Content) -> Result<(Outcome, Option<Box<Job>>), Stop> {
        if content.is_empty() {
            return Ok((Outcome::empty(), None));
        }
        let options = self.options;
        let too_soon = self.history_waits(content);
        let held = too_soon.is_some().then(|| options.policy.map(|policy| policy.hold_history = true));
        let policies = held.as_ref().unwrap_or(&options.policy);
        let mut drawn = self.draw(content, policies)?;
        let remembered = self.memory_waits(content, &drawn);
        if let Some(reason) = &remembered {
            if drawn.job().is_some_and(|job| job.purpose.is_some()) {
                drawn.next = Next::End(Ending::Deferred(reason.clone()));
            } else {
                // What the model does not see, or does not take as it is, need not wait.
                drawn = self.draw(content, &policies.map(|policy| policy.hold_remembered = true))?;
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

    fn draw(&mut self, content: &Content, policies: &Policies) -> Result<Drawn<T>, Stop> {
        let mut drawn = (self.draw)(content, policies)?;
        self.told = drawn.told.take().or(self.told.take());
        Ok(drawn)
    }

    /// Whether the file itself changes. A copy is nobody's history, and nobody remembers it.
    fn is_in_place(&self) -> bool {
        matches!(self.options.mode, Mode::Fix | Mode::DryRun)
    }

    /// Why older history is not rewritten yet; `None` if it may be, or nothing asks for it.
    fn history_waits(&self, content: &Content) -> Option<Deferral> {
        let quiet = gate::quiet_for(&content.metadata, SystemTime::now());
        let wanted = self.options.settle_stale;
        let waits =
            self.is_in_place() && quiet < wanted && self.options.policy.each().any(Policy::rewrites_history);
        waits.then_some(Deferral::RecentHistory { quiet, wanted })
    }

    /// Why what the model sees has to stay in place, if the plan for a file changes that. A session that is too long is
    /// refused as it is, whatever an agent remembers.
    fn memory_waits(&self, content: &Content, drawn: &Drawn<T>) -> Option<Deferral> {
        let job = drawn.job().filter(|_| self.is_in_place())?;
        let waits = job.repair.plan.unsettles_memory() && !job.purpose.is_some_and(Purpose::is_recovery);
        if waits { may_be_remembered(content, &drawn.before.facts, self.options) } else { None }
    }
}
