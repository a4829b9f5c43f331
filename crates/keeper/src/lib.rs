//! One transcript on disk: whether it may be touched, and how it is replaced.
//!
//! The only crate that writes files. [`maintain`] is the whole program: `scan`, `fix` and `--dry-run` are this
//! one function with another [`Mode`]. It refuses to know what a transcript means; that is [`transcript`]'s.

#[cfg(test)]
mod actions;
mod attributes;
mod beside;
mod compact;
mod deferral;
mod error;
mod find;
mod folder;
mod follow;
mod gate;
mod lease;
mod leftover;
mod mounts;
mod network;
mod new_text;
mod outcome;
mod packed;
mod place;
mod policies;
mod recover;
mod refusal;
mod replace;
mod restore;
mod roots;
mod snapshot;
mod step;
mod store;
mod tail;
mod undo;
mod vault;
mod worth;
mod writers;

pub use compact::{Compacting, closed, compact};
pub use deferral::{Deferral, SetBy};
pub use error::{Error, is_hindrance};
pub use find::{DEPTH_MAX, Found, find, is_candidate};
pub use follow::{Remembered, follow};
pub use gate::quiet_for;
pub use leftover::{settle_all, settle_late};
pub use network::network;
pub use outcome::{Ending, Guarantee, Outcome, Unsupported};
pub use policies::Policies;
pub use recover::{Recovered, Recovery, recover};
pub use refusal::Refusal;
pub use restore::Extent;
pub use roots::{known_roots, known_roots_above};
pub use snapshot::{bytes_read, spool};
pub use store::{Store, known_stores};
pub use undo::undo;
pub use vault::{Freed, Keep, Purpose, Record, Run, State, Text, Vault};
pub use worth::Worth;

use gate::{GateTarget, NotNow, Pass};
use leftover::Settled;
use new_text::NewText;
use replace::Replacement;
use snapshot::Snapshot;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::{Duration, SystemTime};
use transcript::finding::{Held, Safety};
use transcript::format::Gate;
use transcript::plan::Plan;
use transcript::{Examination, Facts, Fault, Finding, Mended, Policy, Repair, Source, examine, mend_while};
use vault::{Packed, Pending, Swap};

/// What to do with a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Read it and say what is wrong.
    #[default]
    Look,
    /// Also draw the plan, check it and see whether the file could be replaced now, but write nothing.
    DryRun,
    /// Mend it in place.
    Fix,
    /// Leave it alone and write the mended text, or the same text if there is nothing to mend, to this new file.
    CopyTo(PathBuf),
}

/// How to go about it. The default looks, with the default policy, and waits for nothing.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What is asked for.
    pub policy: Policies,
    /// What to do.
    pub mode: Mode,
    /// How long a file must have been quiet before it is replaced.
    pub settle: Duration,
    /// How long before anything in it that rewrites older history is: prompt caches may hold that.
    pub settle_stale: Duration,
    /// How long a session must have been quiet before no agent that cannot be seen is taken to remember it.
    pub memory_settle: Duration,
    /// Where originals are kept. [`Mode::Fix`] needs one.
    pub vault: Option<Vault>,
    /// What makes it worth while to write a whole file anew. Nothing: whatever there is to mend does.
    pub worth: Option<Worth>,
}

/// Looks at one file and does with it what the mode says.
///
/// `root` is the folder that was asked for, if it was a folder: links that lead out of it are not followed.
///
/// # Errors
///
/// When the file cannot be read or written. Then it is as it was, unless the error says otherwise.
pub fn maintain(path: &Path, root: Option<&Path>, options: &Options) -> Result<Outcome, Error> {
    maintain_shown(path, root, options, &|_, _| Ok(()))
}

/// The same. `show` is shown the text as it is together with the plan that was drawn for it, before anything is written;
/// once more if the file had to be looked at again. If the outcome has a plan, it is the last one that was shown.
///
/// # Errors
///
/// As for [`maintain`].
pub fn maintain_shown(
    path: &Path,
    root: Option<&Path>,
    options: &Options,
    show: &dyn Fn(&dyn Source, &Plan) -> Result<(), Fault>,
) -> Result<Outcome, Error> {
    if find::plain(path).is_some() {
        return packed::look(path, root, options);
    }
    if let Some(ending) = sealed(path) {
        return Ok(Outcome::without_look(ending));
    }
    if options.mode != Mode::Look {
        return carry(path, root, options, &|snapshot, policies| {
            let drawn = draw_repair(snapshot, policies, options)?;
            if let Ok(job) = &drawn.job {
                snapshot.read(|source| show(source, &job.repair.plan))?;
            }
            Ok(drawn)
        });
    }
    let snapshot = match Snapshot::open(path, root)? {
        Ok(snapshot) if snapshot.is_empty() => return Ok(Outcome::empty()),
        Ok(snapshot) => snapshot,
        Err(refusal) => return Ok(Outcome::without_look(Ending::Refused(refusal))),
    };
    let found = snapshot.read(|source| examine(source, options.policy.choose(source)?))?;
    Ok(Outcome::looked(found, snapshot.bytes()))
}

/// How it ends with a file that is no text as it stands, whatever is asked for; told by its name alone.
fn sealed(path: &Path) -> Option<Ending> {
    let store = Store::of(path).map(|store| Ending::Unsupported(Unsupported::Store(*store)));
    store.or_else(|| find::plain(path).map(|_| Ending::Refused(Refusal::Compressed)))
}

/// What is to become of a file, told from its text.
struct Drawn {
    before: Examination,
    /// What is to be done; or how it ends without that.
    job: Result<Job, Ending>,
}

impl Drawn {
    fn mended(mended: Mended) -> Self {
        let job = mended.repair.map(Job::from).map_err(|worse| Ending::Refused(Refusal::Worse(worse)));
        Self { before: mended.before, job }
    }
}

/// What is to be done about a file.
struct Job {
    repair: Repair,
    /// What it is for, if it is more than mending.
    purpose: Option<Purpose>,
    /// What it takes out, as far as that is compressed already.
    packed: Packed,
}

/// What is asked before the gates of the format if the conversation changes: that waits for runs in every format.
const CONVERSATION_GATES: &[Gate] = &[Gate::RunInProgress];

impl Job {
    fn gates(&self) -> &'static [Gate] {
        if self.purpose.is_some() { CONVERSATION_GATES } else { &[] }
    }
}

impl From<Repair> for Job {
    fn from(repair: Repair) -> Self {
        Self { repair, purpose: None, packed: Packed::default() }
    }
}

/// The plan that mends a file. What it takes out is compressed by another processor while the plan is checked; nothing is
/// written yet.
fn draw_repair(snapshot: &Snapshot, policies: &Policies, options: &Options) -> Result<Drawn, Error> {
    let keeps = options.mode == Mode::Fix;
    let checked = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut packing = None;
        let mended = snapshot.read(|source| {
            mend_while(source, policies.choose(source)?, &mut |plan| {
                if keeps && Packed::is_worth_it(plan.texts()) {
                    let texts = plan.texts().to_vec();
                    let pack = || snapshot.read(|source| Ok(Packed::ahead(source, texts, &checked)));
                    packing = Builder::new().spawn_scoped(scope, pack).ok();
                }
            })
        });
        checked.store(true, Ordering::Relaxed);
        let packed = packing.and_then(|packing| packing.join().ok()?.ok()).unwrap_or_default();
        let Drawn { before, job } = Drawn::mended(mended?);
        Ok(Drawn { before, job: job.map(|job| Job { packed, ..job }) })
    })
}

/// Draws the plan for a file by these policies, which are those of the options, with history held if that has to wait.
/// May be called again if the file has changed meanwhile.
type Draw<'d> = &'d dyn Fn(&Snapshot, &Policies) -> Result<Drawn, Error>;

/// Does with a file what the mode says and `draw` draws.
fn carry(path: &Path, root: Option<&Path>, options: &Options, draw: Draw<'_>) -> Result<Outcome, Error> {
    if let Some(ending) = sealed(path) {
        return Ok(Outcome::without_look(ending));
    }
    if options.mode == Mode::Fix {
        return fix(path, root, options, draw);
    }
    let snapshot = match Snapshot::open(path, root)? {
        Ok(snapshot) if snapshot.is_empty() => return Ok(Outcome::empty()),
        Ok(snapshot) => snapshot,
        Err(refusal) => return Ok(Outcome::without_look(Ending::Refused(refusal))),
    };
    let (mut outcome, job) = plan(&snapshot, options, draw)?;
    let Some(job) = job else { return Ok(outcome) };
    if let Mode::CopyTo(path) = &options.mode {
        outcome.run = copy(&snapshot, &job, path, options)?;
    }
    let Some(facts) =
        outcome.before.as_ref().map(|found| found.facts).filter(|_| !job.repair.plan.is_empty())
    else {
        return Ok(outcome);
    };
    let closed = match options.mode {
        Mode::DryRun => in_the_way(&snapshot, &facts, options, job.gates())?,
        _ => None,
    };
    match (closed, &options.mode) {
        (Some(reason), _) => outcome.ending = reason.into(),
        (None, Mode::CopyTo(_)) => outcome.end(Ending::Fixed, job.repair),
        (None, _) => outcome.end(Ending::WouldFix, job.repair),
    }
    Ok(outcome)
}

/// Lets `work` read one file as it is now. A refusal is about what stands at the path.
///
/// `root` is as for [`maintain`].
///
/// # Errors
///
/// When the file cannot be read.
pub fn read<T>(
    path: &Path,
    root: Option<&Path>,
    work: impl FnOnce(&dyn Source) -> Result<T, Fault>,
) -> Result<Result<T, Refusal>, Error> {
    match Snapshot::open(path, root)? {
        Ok(snapshot) => snapshot.read(work).map(Ok),
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// What was found, and what is to be done about it; `None` if nothing can be.
fn plan(snapshot: &Snapshot, options: &Options, draw: Draw<'_>) -> Result<(Outcome, Option<Job>), Error> {
    let too_soon = history_waits(snapshot, options);
    let held = too_soon.is_some().then(|| options.policy.map(|policy| policy.hold_history = true));
    let policies = held.as_ref().unwrap_or(&options.policy);
    let mut drawn = draw(snapshot, policies)?;
    let remembered = memory_waits(snapshot, options, &drawn);
    if let Some(reason) = &remembered {
        if drawn.job.as_ref().is_ok_and(|job| job.purpose.is_some()) {
            drawn.job = Err(Ending::Deferred(reason.clone()));
        } else {
            // What the model does not see, or does not take as it is, need not wait.
            drawn = draw(snapshot, &policies.map(|policy| policy.hold_remembered = true))?;
        }
    }
    let mut outcome = Outcome::looked(drawn.before, snapshot.bytes());
    match drawn.job {
        Ok(job) => {
            for (reason, held) in [(too_soon, Held::RecentlyUsed), (remembered, Held::InMemory)] {
                let is_held = |finding: &Finding| finding.fix.safety == Safety::Held(held);
                if let Some(reason) = reason.filter(|_| outcome.remaining().iter().any(is_held)) {
                    outcome.ending = Ending::Deferred(reason);
                }
            }
            Ok((outcome, Some(job)))
        }
        Err(ending) => {
            if matches!(outcome.ending, Ending::Clean | Ending::Findings) {
                outcome.ending = ending;
            }
            Ok((outcome, None))
        }
    }
}

/// Why older history is not rewritten yet; `None` if it may be, or nothing asks for it. A copy is nobody's history.
fn history_waits(snapshot: &Snapshot, options: &Options) -> Option<Deferral> {
    let in_place = matches!(options.mode, Mode::Fix | Mode::DryRun);
    let (quiet, wanted) = (gate::quiet_for(&snapshot.metadata, SystemTime::now()), options.settle_stale);
    let waits = in_place && quiet < wanted && options.policy.each().any(Policy::rewrites_history);
    waits.then_some(Deferral::RecentHistory { quiet, wanted })
}

/// Why what the model sees has to stay in place, if the plan for a file changes that. A session that is too long is refused
/// as it is, whatever an agent remembers.
fn memory_waits(snapshot: &Snapshot, options: &Options, drawn: &Drawn) -> Option<Deferral> {
    let in_place = matches!(options.mode, Mode::Fix | Mode::DryRun);
    let job = drawn.job.as_ref().ok().filter(|_| in_place)?;
    let waits = job.repair.plan.unsettles_memory() && !matches!(job.purpose, Some(Purpose::Recover(_)));
    if waits { may_be_remembered(snapshot, &drawn.before.facts, options) } else { None }
}

/// Why an agent may hold a conversation in memory; `None` if none can, or nobody minds. A `settle` of 0 says that no agent
/// is running.
fn may_be_remembered(snapshot: &Snapshot, facts: &Facts, options: &Options) -> Option<Deferral> {
    if options.settle.is_zero() || options.policy.reloads(facts.format) {
        return None;
    }
    let Snapshot { path, file, metadata, .. } = snapshot;
    let target = GateTarget { path, file, metadata, facts, makes_locks: false };
    gate::memory::waits(&target, options.memory_settle)
}

fn fix(path: &Path, root: Option<&Path>, options: &Options, draw: Draw<'_>) -> Result<Outcome, Error> {
    for _ in 0..leftover::ROUNDS_MAX {
        let snapshot = match Snapshot::open_locked(path, root)? {
            Ok(Ok(snapshot)) if snapshot.is_empty() => return Ok(Outcome::empty()),
            Ok(Ok(snapshot)) => snapshot,
            Ok(Err(reason)) => return Ok(Outcome::deferred(reason)),
            Err(refusal) => return Ok(Outcome::without_look(Ending::Refused(refusal))),
        };
        match snapshot.unless_changed(fix_once(&snapshot, options, draw)) {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(outcome))) => return Ok(outcome),
            Ok(Err(reason)) => return Ok(Outcome::deferred(reason)),
            Err(error) => return Err(error),
        }
    }
    Ok(Outcome::deferred(Deferral::Changed))
}

/// `None` if the file has to be looked at again.
fn fix_once(snapshot: &Snapshot, options: &Options, draw: Draw<'_>) -> Result<Option<Outcome>, Error> {
    let (mut outcome, job) = plan(snapshot, options, draw)?;
    let Some(job) = job.filter(|job| !job.repair.plan.is_empty()) else { return Ok(Some(outcome)) };
    let Some(facts) = outcome.before.as_ref().map(|found| found.facts) else { return Ok(Some(outcome)) };
    if let Some(reason) = options.worth.filter(|_| job.purpose.is_none()).and_then(|worth| {
        worth.waits(outcome.before.as_ref()?, &job.repair, options.policy.of(facts.format).window_tokens)
    }) {
        // What else waits may be worth it with this.
        if !matches!(outcome.ending, Ending::Deferred(_)) {
            outcome.ending = Ending::Deferred(reason);
        }
        return Ok(Some(outcome));
    }
    let enter = || may_write(snapshot, &facts, options, job.gates());
    let vault = options.vault.as_ref().ok_or_else(|| no_vault(&snapshot.path))?;
    {
        let _pass = match enter()? {
            Ok(pass) => pass,
            Err(reason) => return Ok(Some(Outcome { ending: reason.into(), ..outcome })),
        };
        // Lines that an interrupted run has left beside the file come first; then we look again. As long as more may come,
        // the file stays as it is: the places that the ledger of that run names are places in this text.
        match leftover::settle(snapshot, vault)? {
            Ok(Settled::Something) => return Ok(None),
            Ok(Settled::Nothing) => {}
            Ok(Settled::Held) => {
                return Ok(Some(Outcome { ending: Ending::Deferred(Deferral::OldFileOpen), ..outcome }));
            }
            Err(reason) => return Ok(Some(Outcome { ending: Ending::Deferred(reason), ..outcome })),
        }
    }
    let keep = |pending, swap| keep(snapshot, &job, pending, Some(swap), options);
    match carry_out(snapshot, &job.repair.plan, vault, keep, enter)? {
        Ok(done) => {
            outcome.run = Some(done.run);
            outcome.guarantee = Some(done.guarantee);
            outcome.late = done.late;
            outcome.end(Ending::Fixed, job.repair);
        }
        Err(reason) => outcome.ending = reason.into(),
    }
    Ok(Some(outcome))
}

/// Leave to replace the file, or why not. Asks `more` gates first.
fn may_write(
    snapshot: &Snapshot,
    facts: &Facts,
    options: &Options,
    more: &[Gate],
) -> Result<Result<Pass, NotNow>, Error> {
    if let Some(refusal) = snapshot.refusal() {
        return Ok(Err(NotNow::Refused(refusal)));
    }
    let gates = [more, facts.format.map_or(&[][..], |format| format.gates())].concat();
    let Snapshot { path, file, metadata, .. } = snapshot;
    let target = GateTarget { path, file, metadata, facts, makes_locks: options.mode == Mode::Fix };
    let passed = gate::pass(&gates, &target, options.settle)?;
    // Last, for it reads the mounts of all processes.
    Ok(passed.and_then(|pass| match mounts::refusal(&snapshot.path, &snapshot.file) {
        Some(refusal) => Err(NotNow::Refused(refusal)),
        None => Ok(pass),
    }))
}

/// What would keep the file from being replaced now. Nothing is written to find out.
fn in_the_way(
    snapshot: &Snapshot,
    facts: &Facts,
    options: &Options,
    more: &[Gate],
) -> Result<Option<NotNow>, Error> {
    if snapshot.is_locked() {
        return Ok(Some(Deferral::OtherTailor.into()));
    }
    let _pass = match may_write(snapshot, facts, options, more)? {
        Ok(pass) => pass,
        Err(reason) => return Ok(Some(reason)),
    };
    let fail = |cause| Error::new(&snapshot.path, "see who writes to", cause);
    let writer =
        writers::keep_out(&snapshot.file, &snapshot.metadata, writers::PATIENCE).map_err(fail)?.err();
    Ok(writer.map(NotNow::from))
}

/// What came of a replacement that landed.
struct Done {
    guarantee: Guarantee,
    /// The name of the run.
    run: String,
    /// Why lines that came late still wait for their place.
    late: Option<Deferral>,
}

/// An error that says where the originals could go.
fn no_vault(path: &Path) -> Error {
    Error::new(path, "keep the originals", io::Error::other("there is no vault"))
        .with_way_out("--vault DIR names one")
}

/// Replaces the file after what it loses has been kept, and records in the vault whether the run landed. `enter` says
/// whether the file may be replaced.
fn carry_out(
    snapshot: &Snapshot,
    text: &(dyn NewText + Sync),
    vault: &Vault,
    keep: impl FnOnce(Pending, Swap) -> Result<Run, Error>,
    enter: impl FnOnce() -> Result<Result<Pass, NotNow>, Error>,
) -> Result<Result<Done, NotNow>, Error> {
    let pending = vault.begin(&snapshot.path)?;
    let name = pending.run().to_string();
    let work = Replacement::stage(snapshot, &name, text.length())?;
    let swap = work.swap();
    let run = work.write(text, || keep(pending, swap))?;
    let replaced = work.land(&run, text, enter);
    leftover::close(&run, leftover::has_landed(&replaced, snapshot), snapshot);
    Ok(match replaced? {
        Ok(landed) => {
            // The run has landed whatever becomes of them.
            let settled = if landed.late { settle_late(&snapshot.path, vault) } else { Ok(None) };
            let late = settled.unwrap_or_else(|error| Some(Deferral::LateLines(error.to_string())));
            Ok(Done { guarantee: landed.guarantee, run: name, late })
        }
        Err(reason) => Err(reason),
    })
}

/// Writes the mended copy. What is cut out of it is kept too, so that its markers lead somewhere.
fn copy(snapshot: &Snapshot, job: &Job, path: &Path, options: &Options) -> Result<Option<String>, Error> {
    let real = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    // Whether the folder can be made is told when the copy is written.
    let _ = real.parent().map(std::fs::create_dir_all);
    let real = match (real.parent().map(Path::canonicalize), real.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => real,
    };
    let plan = &job.repair.plan;
    let vault = options.vault.as_ref().filter(|_| !plan.is_empty());
    let kept = vault.map(|vault| keep(snapshot, job, vault.begin(&real)?, None, options)).transpose()?;
    let copied = replace::copy_to(snapshot, plan, path);
    if let Some(run) = &kept {
        if copied.is_ok() { run.landed() } else { run.forget() }
    }
    copied.map(|()| kept.map(|run| run.name().to_string()))
}

fn keep(
    snapshot: &Snapshot,
    job: &Job,
    pending: Pending,
    swap: Option<Swap>,
    options: &Options,
) -> Result<Run, Error> {
    let Job { repair, purpose, packed } = job;
    let spill = options.policy.all().spill.as_ref();
    snapshot.read(|source| pending.keep(source, &repair.plan, packed, spill, *purpose, swap))?
}
