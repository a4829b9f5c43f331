//! The work of a worker: one look at a file, with a report for the loop.
//!
//! [`Looker::examine`] is the only function here that has `keeper` read a transcript. The end of a long file is
//! remembered, so that an append costs only what was appended.

use crate::config::{Config, Roots, WatchMode};
use crate::daemon::memory::Memory;
use crate::daemon::metrics::FindingLabels;
use crate::daemon::queue::{Cure, Done, Job, Listed, Pace, Repaired};
use crate::daemon::reading::Reading;
use keeper::{
    Deferral, Ending, Error, FileId, FoundFile, Options, Outcome, Recovery, Remembered, SetBy, Sight, Stamp,
    Tokens, Verdicts, bytes_read, find, follow, insert_late_lines, is_hindrance, known_roots, maintain,
    may_be_read, recover, stamp_of,
};
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracing::debug;
use transcript::finding::Severity;
use transcript::overflow::Failure;
use transcript::policy::Selection;
use transcript::{Examination, Finding, Situation};

/// How many times in a row a session is recovered before the daemon gives up.
const RESCUES_MAX: u64 = 3;
/// Memory limit for remembered files.
const MEMORY_BYTES_MAX: usize = 16 << 20;

/// A store is listed at most this often, and for no more than this part of the time.
const LISTING_PAUSE: Duration = Duration::from_secs(1);
const LISTING_SHARE: u32 = 20;

/// How many entries a report names, and how much of each id: agents' ids are short.
const ENTRIES_MAX: usize = 10;
const ENTRY_CHARS_MAX: usize = 64;

/// How files are looked at, or sessions in stores.
struct LookOptions {
    enforces: bool,
    soon: Options,
    late: Options,
    /// Results of earlier looks, by pace.
    verdicts_soon: Option<Verdicts>,
    verdicts_late: Option<Verdicts>,
}

/// The settings and the memory of workers.
pub(crate) struct Looker {
    files: Arc<LookOptions>,
    stores: Arc<LookOptions>,
    settle: Duration,
    /// How to recover sessions that are too long; `None` if they are not to be recovered.
    rescue: Option<Options>,
    memory: Mutex<Memory<Remembered>>,
    /// Files with late lines queued beside them, which the files themselves do not show.
    late_lines: Arc<Mutex<HashSet<PathBuf>>>,
    pub(crate) reading: Arc<Reading>,
}

/// How many findings there are of each kind.
pub(crate) type Findings = BTreeMap<FindingLabels, u64>;

/// The result of a look.
#[derive(Debug)]
pub(crate) struct LookReport {
    pub(crate) job: Job,
    pub(crate) done: Done,
    /// `None` if the file had not changed and was not read.
    pub(crate) seen: Option<ReadFile>,
    /// The sessions in it, if it is a store.
    pub(crate) sessions: Vec<Listed>,
    pub(crate) took: Duration,
    /// How much of the file was read.
    pub(crate) read_bytes: u64,
}

impl LookReport {
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.done, Done::Failed | Done::Hindered)
    }
}

/// The result of reading a file.
#[derive(Debug, Default)]
pub(crate) struct ReadFile {
    /// As in `tailor fix --format json`; or `same` if an append changed nothing.
    pub(crate) outcome: &'static str,
    pub(crate) reason: Option<String>,
    /// One word for the reason, for metrics.
    pub(crate) cause: &'static str,
    pub(crate) agent: Option<&'static str>,
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// How many bytes a fix has saved on disk.
    pub(crate) saved_bytes: u64,
    pub(crate) run: Option<String>,
    /// Whether findings were counted. If not, their number has not changed.
    pub(crate) counted: bool,
    /// How many findings remain, of each kind.
    pub(crate) findings: Findings,
    pub(crate) saves_bytes: u64,
    /// The last error of the agent, if it says that the session is too long.
    pub(crate) too_long: Option<Failure>,
    /// Tokens before and after, if the session was recovered.
    pub(crate) recovered: Option<Tokens>,
    /// Codes of the findings, each once; after a fix, of those that it repaired.
    pub(crate) codes: Vec<&'static str>,
    /// Codes of the findings that remain after a fix.
    pub(crate) left: Vec<&'static str>,
    /// Ids of the first entries with findings.
    pub(crate) entries: Vec<String>,
}

impl LookOptions {
    fn from_config(config: &Config, mode: WatchMode) -> Self {
        let [soon, late] = [Pace::Soon, Pace::Late].map(|pace| config.options(mode, pace));
        Self {
            enforces: mode == WatchMode::Enforce,
            verdicts_soon: verdicts(config, &soon),
            verdicts_late: config.settle().late.and_then(|_| verdicts(config, &late)),
            soon,
            late,
        }
    }

    /// Which fixes apply to this file.
    fn selection(&self, pace: Pace, outcome: &Outcome) -> &Selection {
        let options = if pace == Pace::Late { &self.late } else { &self.soon };
        let format = outcome.before.as_ref().and_then(|found| found.facts.format);
        &options.policy.for_format(format).selection
    }
}

impl Looker {
    pub(crate) fn new(config: &Config, reading: Arc<Reading>) -> Self {
        let files = Arc::new(LookOptions::from_config(config, config.mode));
        let is_same = config.stores == config.mode;
        Self {
            stores: if is_same {
                files.clone()
            } else {
                Arc::new(LookOptions::from_config(config, config.stores))
            },
            files,
            settle: config.settle,
            rescue: config.rescue(),
            memory: Mutex::new(Memory::new(MEMORY_BYTES_MAX)),
            late_lines: Arc::default(),
            reading,
        }
    }

    /// A looker for a new configuration. What was remembered of files depends on the old one and is forgotten, but
    /// waiting late lines stay known.
    pub(crate) fn under(&self, config: &Config) -> Self {
        Self { late_lines: self.late_lines.clone(), ..Self::new(config, self.reading.clone()) }
    }

    /// Looks at a file, unless it has not changed; lists the sessions of a store, or looks at one of them.
    pub(crate) fn run(&self, job: Job, root: Option<&Path>) -> LookReport {
        let (began, read_before) = (std::time::Instant::now(), bytes_read());
        let mut sessions = Vec::new();
        let (done, seen) = match stamp_of(&job.path) {
            _ if job.store.is_some() => self.look_at_session(&job, root),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => (Done::Gone, None),
            Ok(stamp) if job.known == Some(stamp) => (Done::Settled(stamp), None),
            Ok(_) if !is_file(&job.path) => (Done::Gone, None),
            Ok(stamp) => match listed(&job.path, stamp) {
                Some(Ok(listed)) => {
                    sessions = listed;
                    (
                        Done::Listed {
                            now: stamp,
                            rest: (began.elapsed() * LISTING_SHARE).max(LISTING_PAUSE),
                        },
                        None,
                    )
                }
                Some(Err(error)) => (failed(error.is_hindrance()), Some(ReadFile::error(error.to_string()))),
                None => self.read(&job, root, stamp),
            },
            Err(cause) => {
                let text = format!("{}: could not look at the file: {cause}", job.path.display());
                (failed(is_hindrance(&cause)), Some(ReadFile::error(text)))
            }
        };
        if done == Done::Gone {
            drop(self.memory().take(&job.path));
            self.late_lines().remove(&*job.path);
        }
        LookReport {
            job,
            done,
            seen,
            sessions,
            took: began.elapsed(),
            read_bytes: bytes_read() - read_before,
        }
    }

    /// Looks at a session in a store, once it has been quiet for long enough: only its store says when it was written to.
    fn look_at_session(&self, job: &Job, root: Option<&Path>) -> (Done, Option<ReadFile>) {
        let written = find(&[&job.path]).into_iter().flatten().find_map(|found| found.written);
        let now = Listed::new(&job.path, written, None);
        match self.settle.checked_sub(now.quiet).filter(|wait| !wait.is_zero()) {
            Some(after) => (Done::Deferred { as_it_is: None, after, cure: Cure::Change }, None),
            None if job.known == Some(now.stamp) => (Done::Settled(now.stamp), None),
            None => self.read(job, root, now.stamp),
        }
    }

    fn way(&self, job: &Job) -> &LookOptions {
        if job.store.is_some() { &self.stores } else { &self.files }
    }

    fn read(&self, job: &Job, root: Option<&Path>, stamp: Stamp) -> (Done, Option<ReadFile>) {
        let _being_read = match self.reading.begin(&job.path, stamp, data_bytes(&job.path)) {
            Ok(being_read) => being_read,
            Err(after) => return (Done::Deferred { as_it_is: None, after, cure: Cure::Change }, None),
        };
        match self.see(job, root) {
            Ok(FileLook { outcome: Some(outcome), too_long, recovered, set_by }) => {
                let selection = self.way(job).selection(job.pace, &outcome);
                let seen = ReadFile { too_long, recovered, ..ReadFile::new(&outcome, selection, set_by) };
                (done(&job.path, &outcome, stamp, selection), Some(seen))
            }
            Ok(FileLook { outcome: None, too_long, .. }) => {
                (Done::Settled(stamp), Some(ReadFile { outcome: "same", too_long, ..ReadFile::default() }))
            }
            Err(error) if error.is_missing() => (Done::Gone, None),
            Err(error) => (failed(error.is_hindrance()), Some(ReadFile::error(error.to_string()))),
        }
    }

    /// Merges queued late lines; then looks at the file, unless some are still queued.
    fn see(&self, job: &Job, root: Option<&Path>) -> Result<FileLook, Error> {
        if let Some(why) = self.place_late_lines(&job.path)? {
            return Ok(FileLook::from_outcome(Some(Outcome::deferred(why)), None));
        }
        let looked = self.examine(job, root).and_then(|looked| self.rescued(job, root, looked))?;
        if looked.outcome.as_ref().is_some_and(|outcome| outcome.late.is_some()) {
            self.late_lines().insert(job.path.to_path_buf());
        }
        Ok(looked)
    }

    /// Puts late lines from an earlier look into place. Returns why they still have to wait.
    fn place_late_lines(&self, path: &Path) -> Result<Option<Deferral>, Error> {
        let Some(vault) = self.files.soon.vault.as_ref().filter(|_| self.files.enforces) else {
            return Ok(None);
        };
        if !self.late_lines().contains(path) {
            return Ok(None);
        }
        let waits = insert_late_lines(path, vault)?;
        if waits.is_none() {
            self.late_lines().remove(path);
        }
        Ok(waits)
    }

    fn late_lines(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.late_lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file as far as necessary, and repairs it if configured.
    fn examine(&self, job: &Job, root: Option<&Path>) -> Result<FileLook, Error> {
        if job.pace == Pace::Late { self.examine_late(job, root) } else { self.examine_soon(job, root) }
    }

    fn examine_late(&self, job: &Job, root: Option<&Path>) -> Result<FileLook, Error> {
        let (path, way) = (&job.path, self.way(job));
        let verdicts = way.verdicts_late.as_ref().zip(Sight::now(path));
        if let Some(known) = verdicts.as_ref().and_then(|(verdicts, now)| verdicts.known(path, now)) {
            return Ok(FileLook::from_outcome(Some(known), None));
        }
        // `soon` judges the next append.
        let situation = Situation { now_ms: now_ms(), ..Situation::default() };
        let outcome = maintain(path, root, &Options { situation, ..way.late.clone() })?;
        if outcome.ending == Ending::Fixed {
            drop(self.memory().take(path));
        }
        if let Some((verdicts, before)) = verdicts {
            verdicts.enter(path, &before, &outcome, None);
        }
        Ok(FileLook::from_outcome(Some(outcome), None))
    }

    fn examine_soon(&self, job: &Job, root: Option<&Path>) -> Result<FileLook, Error> {
        let (path, way) = (&job.path, self.way(job));
        let mut remembered = self.memory().take(path);
        let outcome = match &way.verdicts_soon {
            Some(verdicts) => verdicts.follow(path, root, &way.soon, &mut remembered)?,
            None => follow(path, root, &way.soon, &mut remembered)?,
        };
        let failed = remembered.as_ref().and_then(Remembered::failed);
        if let Some(remembered) = remembered.filter(Remembered::is_worth_it) {
            let weight = remembered.weight();
            self.memory().put(path, remembered, weight);
        }
        Ok(FileLook::from_outcome(outcome, failed))
    }

    /// Recovers a session if its agent says that it is too long and the configuration asks for it: once each time that
    /// the agent says so.
    fn rescued(&self, job: &Job, root: Option<&Path>, looked: FileLook) -> Result<FileLook, Error> {
        // That a repair would not be worth it does not matter if the API refuses the session.
        let is_put_off = looked.outcome.as_ref().is_some_and(|outcome| match &outcome.ending {
            Ending::Deferred(reason) => !matches!(
                reason,
                Deferral::NotWorth { .. } | Deferral::Remembered { .. } | Deferral::MayRemember { .. }
            ),
            ending => matches!(ending, Ending::Unsupported(_)),
        });
        let rescue = self.rescue.as_ref().filter(|_| self.way(job).enforces);
        let (Some(options), Some(_), false) = (rescue, looked.too_long, is_put_off) else {
            return Ok(looked);
        };
        let recovery = Recovery { only_new: true, attempts_max: RESCUES_MAX, ..Recovery::default() };
        let done = recover(&job.path, root, &recovery, options)?;
        if done.outcome.ending == Ending::Clean {
            return Ok(looked);
        }
        if done.outcome.ending == Ending::Fixed {
            drop(self.memory().take(&job.path));
        }
        let recovered = done.tokens.filter(|tokens| tokens.after.is_some());
        let failed = looked.too_long;
        Ok(FileLook {
            recovered,
            set_by: SetBy::Recovery,
            ..FileLook::from_outcome(Some(done.outcome), failed)
        })
    }

    /// How many files are remembered, and how many bytes that takes.
    pub(crate) fn remembers(&self) -> (usize, usize) {
        let memory = self.memory();
        (memory.files(), memory.weight())
    }

    fn memory(&self) -> MutexGuard<'_, Memory<Remembered>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether files may be written.
    pub(crate) fn enforces(&self) -> bool {
        self.files.enforces
    }
}

/// The outcome of a look.
struct FileLook {
    /// `None` if the append changes nothing.
    outcome: Option<Outcome>,
    too_long: Option<Failure>,
    recovered: Option<Tokens>,
    /// The setting that makes it wait if it is deferred.
    set_by: SetBy,
}

impl FileLook {
    /// `failed` is the last known error if the file was not read as a whole.
    fn from_outcome(outcome: Option<Outcome>, failed: Option<Failure>) -> Self {
        let read = outcome.as_ref().and_then(|outcome| outcome.after.as_ref().or(outcome.before.as_ref()));
        let failed = read.map_or(failed, |read| read.facts.failed);
        let too_long = failed.filter(|failure| failure.cause.is_cured_by_less());
        Self { outcome, too_long, recovered: None, set_by: SetBy::Configuration }
    }
}

/// How much of a file is data, and not a hole.
fn data_bytes(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).map_or(0, |found| found.len().min(found.blocks().saturating_mul(512)))
}

fn is_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// The sessions of a store; `None` if the file is none.
fn listed(path: &Path, stamp: Stamp) -> Option<Result<Vec<Listed>, Error>> {
    if !may_be_read(path) {
        return None;
    }
    let found: Result<Vec<FoundFile>, Error> = find(&[path]).into_iter().collect();
    if found.as_ref().is_ok_and(|found| found.iter().any(|found| found.path == path)) {
        return None;
    }
    let list = |found: FoundFile| Listed::new(&found.path, found.written, Some(stamp));
    Some(found.map(|found| found.into_iter().map(list).collect()))
}

impl Listed {
    /// A session that was last written at this time; if that is not known, it changes with its store.
    fn new(path: &Path, written: Option<SystemTime>, store: Option<Stamp>) -> Self {
        let since = written.and_then(|written| written.duration_since(UNIX_EPOCH).ok());
        let millis = since.map(|since| {
            (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), i64::from(since.subsec_nanos()))
        });
        let none =
            Stamp { file: FileId { device: 0, inode: 0 }, bytes: 0, modified: (0, 0), changed: (0, 0) };
        let stamp = millis.map(|modified| Stamp { modified, ..none }).or(store).unwrap_or(none);
        // A time in the future says nothing.
        let quiet =
            written.map_or(Duration::MAX, |at| SystemTime::now().duration_since(at).unwrap_or_default());
        Self { path: path.to_path_buf(), stamp, quiet }
    }
}

/// The results of earlier looks. If they cannot be opened, every file is read.
fn verdicts(config: &Config, options: &Options) -> Option<Verdicts> {
    let roots = match &config.roots {
        Roots::Known => known_roots(),
        Roots::These(paths) => paths.clone(),
    };
    let opened = Verdicts::open(config.cache.as_deref()?, options, &roots);
    opened.inspect_err(|why| debug!(event = "cache", reason = %why, "reading all files: {why}")).ok()
}

/// Milliseconds since 1970.
fn now_ms() -> Option<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

fn done(path: &Path, outcome: &Outcome, stamp: Stamp, selection: &Selection) -> Done {
    if let Some(why) = &outcome.late {
        return Done::Deferred { as_it_is: None, after: why.retry_after(), cure: Cure::Others };
    }
    match &outcome.ending {
        Ending::Fixed => {
            let found = outcome.before.as_ref().map_or(0, Examination::count);
            let repaired = Repaired {
                places: mended(outcome, selection).map(place).collect(),
                gain: outcome.remaining_count() < found,
                errors: mended(outcome, selection).any(|finding| finding.severity == Severity::Error),
            };
            Done::Mended { now: untouched(path, outcome, stamp), repaired }
        }
        // The next look is after a change.
        Ending::Deferred(Deferral::NotWorth { .. }) => Done::Settled(stamp),
        Ending::Deferred(reason) => {
            let cure = match reason {
                Deferral::Growing { .. }
                | Deferral::MayRun { .. }
                | Deferral::Changed
                | Deferral::Running { .. } => Cure::Change,
                Deferral::Open { .. } | Deferral::HeldOpen => Cure::Close,
                Deferral::InUse { pid, .. }
                | Deferral::Runs { pid, .. }
                | Deferral::Remembered { pid, .. } => Cure::Exit(*pid),
                _ => Cure::Others,
            };
            Done::Deferred { as_it_is: Some(stamp), after: reason.retry_after(), cure }
        }
        _ => Done::Settled(stamp),
    }
}

fn failed(hindered: bool) -> Done {
    if hindered { Done::Hindered } else { Done::Failed }
}

/// The findings that were repaired.
fn mended<'a>(outcome: &'a Outcome, selection: &Selection) -> impl Iterator<Item = &'a Finding> {
    let found = outcome.before.iter().flat_map(|found| &found.findings);
    found.filter(|finding| selection.applies(finding))
}

/// A number for a place and what is wrong there. A text that is shortened step by step has another length each time.
fn place(finding: &Finding) -> u64 {
    let Finding { rule, line, labels, chars, .. } = finding;
    let mut hasher = DefaultHasher::new();
    (rule.code(), line, &labels.entry, &labels.call, chars).hash(&mut hasher);
    hasher.finish()
}

/// The codes of findings, each once, in order.
fn codes<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<&'static str> {
    let mut codes = Vec::new();
    for finding in findings {
        if !codes.contains(&finding.rule.code()) {
            codes.push(finding.rule.code());
        }
    }
    codes
}

/// The number of remaining findings of each kind.
fn tally(outcome: &Outcome) -> Findings {
    let agent = outcome.agent().unwrap_or("unknown");
    let mut tally = Findings::new();
    for finding in outcome.remaining() {
        let (severity, rule) = (finding.severity.name(), finding.rule.code());
        *tally.entry([("severity", severity), ("rule", rule), ("agent", agent)]).or_default() +=
            finding.count();
    }
    tally
}

/// The ids of the first entries with findings.
fn entries<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for entry in findings.filter_map(|finding| finding.labels.entry.as_ref()) {
        if entries.len() < ENTRIES_MAX && !entries.contains(entry) {
            entries.push(entry.chars().take(ENTRY_CHARS_MAX).collect());
        }
    }
    entries
}

/// The stamp of the new file, if nothing has changed it since: an append would change its length or time.
fn untouched(path: &Path, outcome: &Outcome, before: Stamp) -> Option<Stamp> {
    let now = Stamp::from_metadata(&std::fs::symlink_metadata(path).ok()?);
    (now.bytes == outcome.bytes_after && now.modified == before.modified).then_some(now)
}

impl ReadFile {
    fn error(reason: String) -> Self {
        Self { outcome: "error", reason: Some(reason), ..Self::default() }
    }

    fn new(outcome: &Outcome, selection: &Selection, set_by: SetBy) -> Self {
        let fixed = outcome.ending == Ending::Fixed;
        let told: Vec<&Finding> = if fixed {
            mended(outcome, selection).collect()
        } else {
            outcome.before.iter().flat_map(|found| &found.findings).collect()
        };
        let left = if fixed { codes(outcome.remaining().iter()) } else { Vec::new() };
        let would_be = outcome.before.as_ref().map_or(outcome.bytes, |found| found.bytes_after);
        Self {
            outcome: outcome.ending.name(),
            reason: reason(outcome, set_by),
            cause: cause(&outcome.ending),
            agent: outcome.agent(),
            before: outcome.bytes,
            after: outcome.bytes_after,
            saved_bytes: outcome
                .rows_saved_bytes
                .unwrap_or(outcome.bytes.saturating_sub(outcome.bytes_after)),
            run: outcome.run.clone(),
            counted: outcome.before.is_some() || matches!(outcome.ending, Ending::Unsupported(_)),
            findings: tally(outcome),
            saves_bytes: if fixed { 0 } else { outcome.bytes.saturating_sub(would_be) },
            too_long: None,
            recovered: None,
            codes: codes(told.iter().copied()),
            left,
            entries: entries(told.into_iter()),
        }
    }
}

/// Why nothing was done; `None` if something was.
fn reason(outcome: &Outcome, set_by: SetBy) -> Option<String> {
    match &outcome.ending {
        Ending::Deferred(why) => Some(why.describe(set_by).to_string()),
        _ => outcome.reason(),
    }
}

/// The list of causes. Each has a counter, and a new reason needs a cause.
macro_rules! causes {
    ($($reason:pat => $word:literal,)*) => {
        /// All causes of deferrals.
        pub(crate) const CAUSES: &[&str] = &[$($word),*];

        fn word(reason: &Deferral) -> &'static str {
            match reason {
                $($reason => $word,)*
            }
        }
    };
}

causes! {
    Deferral::Growing { .. } | Deferral::MayRun { .. } => "growing",
    Deferral::RecentHistory { .. } => "recent",
    Deferral::NotWorth { .. } => "not-worth",
    Deferral::Changed => "changed",
    Deferral::HeldOpen | Deferral::Open { .. } | Deferral::OldFileOpen | Deferral::Withheld => "open",
    Deferral::OtherTailor => "other-tailor",
    Deferral::Running { .. } => "running",
    Deferral::Locked { .. } | Deferral::Doubtful { .. } | Deferral::Busy { .. } => "locked",
    Deferral::InUse { .. } | Deferral::Runs { .. } | Deferral::Compacting { .. } => "in-use",
    Deferral::Remembered { .. } | Deferral::MayRemember { .. } => "remembered",
    Deferral::Unseen { .. } => "unseen",
    Deferral::Unprovable { .. } => "unprovable",
    Deferral::LateLines(_) => "late-lines",
}

fn cause(ending: &Ending) -> &'static str {
    if let Ending::Deferred(reason) = ending { word(reason) } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keeper::{Policies, RunsToKeep, Vault, Worth};
    use transcript::{Awaits, Policy};

    fn config() -> Config {
        Config {
            roots: Roots::These(Vec::new()),
            mode: WatchMode::Enforce,
            stores: WatchMode::Observe,
            policy: Policies::from(Policy::default()),
            settle: Duration::ZERO,
            settle_stale: Duration::ZERO,
            memory_settle: Duration::ZERO,
            recover: false,
            worth: Worth::default(),
            rescan: Duration::ZERO,
            vault: Vault::new("vault".into()),
            keep: RunsToKeep::default(),
            keeping: None,
            cache: None,
            listen: None,
            metrics_textfile: None,
            socket: PathBuf::new(),
            state: PathBuf::new(),
        }
    }

    #[test]
    fn a_deferral_names_no_option_of_the_command_line() {
        let quiet = Duration::from_secs(30);
        let running = Deferral::Running { awaits: Awaits::Model, quiet, wanted: quiet * 2 };
        let stale = Deferral::RecentHistory { quiet, wanted: quiet * 2 };
        let may_run = Deferral::MayRun { quiet, wanted: quiet * 2 };
        for why in [Deferral::Growing { quiet, settle: quiet * 2 }, may_run, stale, running] {
            let said = reason(&Outcome::deferred(why), SetBy::Configuration).unwrap();
            assert!(said.contains("in the configuration") && !said.contains("--"), "{said}");
        }
        let recovery = Deferral::Growing { quiet, settle: quiet * 2 };
        let said = reason(&Outcome::deferred(recovery), SetBy::Recovery).unwrap();
        assert!(said.contains("60 s") && !said.contains("settle") && !said.contains("--"), "{said}");
    }

    /// Otherwise the next change of it would be taken for the daemon's own.
    #[test]
    fn a_file_that_somebody_has_written_since_is_not_as_we_left_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stamp = || Stamp::from_metadata(&file.path().symlink_metadata().unwrap());
        let quiet = Duration::ZERO;
        let mut outcome = Outcome::deferred(Deferral::Growing { quiet, settle: quiet });
        (outcome.bytes_after, outcome.bytes) = (0, 9);
        let before = stamp();
        assert_eq!(untouched(file.path(), &outcome, before), Some(before));
        let modified = file.path().metadata().unwrap().modified().unwrap();
        file.as_file().set_modified(modified + Duration::from_secs(1)).unwrap();
        assert_eq!(untouched(file.path(), &outcome, before), None);
        file.as_file().set_len(1).unwrap();
        assert_eq!(untouched(file.path(), &outcome, stamp()), None);
    }

    #[test]
    fn lines_that_wait_are_not_forgotten_with_the_configuration() {
        let state = tempfile::tempdir().unwrap();
        let looker = Looker::new(&config(), Arc::new(Reading::open(state.path())));
        let renewed = looker.under(&config());
        // A worker may still use the old one.
        looker.late_lines().insert("a.jsonl".into());
        assert!(renewed.late_lines().contains(Path::new("a.jsonl")));
    }
}
