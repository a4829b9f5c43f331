//! What workers do: one look at one file, and what the loop has to know of it.
//!
//! [`Looker::examine`] is the only call into `keeper` that reads a transcript. A look that goes over no more than what
//! was appended belongs there: what it has to remember of a file is its own affair, and the queue stays as it is. What an
//! agent's own transcript says about an overflow would come back as one more field of [`Seen`].

use crate::config::{Config, Mode};
use crate::queue::{Cure, Done, Job, Pace, Stamp};
use keeper::{Deferral, Ending, Error, Outcome, maintain};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use transcript::finding::Safety;

/// What a worker needs to know.
pub(crate) struct Looker {
    pub(crate) config: Arc<Config>,
}

/// What came of a look.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) job: Job,
    pub(crate) done: Done,
    /// `None` if the file was as before and not read.
    pub(crate) seen: Option<Seen>,
    pub(crate) took: Duration,
}

/// What is told about a file that was read.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// As in `tailor fix --format json`.
    pub(crate) outcome: &'static str,
    pub(crate) reason: Option<String>,
    /// One word for the reason, for metrics.
    pub(crate) cause: &'static str,
    pub(crate) agent: Option<&'static str>,
    pub(crate) before: u64,
    pub(crate) after: u64,
    pub(crate) run: Option<String>,
    /// How many findings remain, and how many of them could be mended.
    pub(crate) findings: u64,
    pub(crate) saves_bytes: u64,
    /// Codes of what was found, each once.
    pub(crate) codes: Vec<&'static str>,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let nanos = |secs: i64, nanos: i64| secs.saturating_mul(1_000_000_000).saturating_add(nanos);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: nanos(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanos(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Looker {
    /// Looks at a file, unless it is as it was.
    pub(crate) fn look(&self, job: Job, root: Option<&Path>) -> Report {
        let began = std::time::Instant::now();
        let (done, seen) = match std::fs::symlink_metadata(&job.path) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => (Done::Gone, None),
            Ok(metadata) if job.known == Some(Stamp::of(&metadata)) => {
                (Done::Settled(Stamp::of(&metadata)), None)
            }
            Ok(metadata) if !metadata.is_file() => (Done::Gone, None),
            Ok(metadata) => self.read(&job, root, Stamp::of(&metadata)),
            Err(cause) => {
                let text = format!("{}: could not look at the file: {cause}", job.path.display());
                (Done::Failed, Some(Seen { outcome: "error", reason: Some(text), ..Seen::default() }))
            }
        };
        Report { job, done, seen, took: began.elapsed() }
    }

    fn read(&self, job: &Job, root: Option<&Path>, stamp: Stamp) -> (Done, Option<Seen>) {
        match self.examine(&job.path, root, job.pace) {
            Ok(outcome) => (done(&job.path, &outcome, stamp), Some(Seen::new(&outcome))),
            Err(error) if error.is_missing() => (Done::Gone, None),
            Err(error) => {
                let reason = Some(error.to_string());
                (Done::Failed, Some(Seen { outcome: "error", reason, ..Seen::default() }))
            }
        }
    }

    /// Reads the file and mends it, if that is what is asked for.
    fn examine(&self, path: &Path, root: Option<&Path>, pace: Pace) -> Result<Outcome, Error> {
        let agent = if self.config.agents.is_empty() { None } else { self.agent(path, root)? };
        maintain(path, root, &self.config.options(agent, pace))
    }

    /// Whose transcript it is; asked only where some agent has rules of its own.
    fn agent(&self, path: &Path, root: Option<&Path>) -> Result<Option<&'static str>, Error> {
        let mut options = self.config.options(None, Pace::Soon);
        options.mode = keeper::Mode::Look;
        Ok(maintain(path, root, &options)?.agent())
    }

    /// Whether anything may be written.
    pub(crate) fn enforces(&self) -> bool {
        self.config.mode == Mode::Enforce
    }
}

fn done(path: &Path, outcome: &Outcome, stamp: Stamp) -> Done {
    match &outcome.ending {
        Ending::Fixed => {
            let lines = mended_lines(outcome);
            let found = outcome.before.as_ref().map_or(0, |found| found.findings.len());
            let gain = outcome.remaining().len() < found;
            Done::Mended { now: untouched(path, outcome, stamp), lines, gain }
        }
        Ending::Deferred(reason) => {
            let cure = match reason {
                Deferral::Growing { .. } | Deferral::Changed | Deferral::Running { .. } => Cure::Change,
                _ => Cure::Others,
            };
            Done::Deferred { as_it_is: Some(stamp), after: reason.retry_after(), cure }
        }
        _ => Done::Settled(stamp),
    }
}

/// First and last line of what was wrong and could be mended.
fn mended_lines(outcome: &Outcome) -> (u64, u64) {
    let findings = outcome.before.iter().flat_map(|found| &found.findings);
    let mut lines = findings
        .filter(|finding| matches!(finding.fix.safety, Safety::Safe | Safety::Guarded(_)))
        .map(|finding| finding.line);
    let first = lines.next().unwrap_or(1);
    lines.fold((first, first), |(low, high), line| (low.min(line), high.max(line)))
}

/// The new file, if it is as we left it: what comes later makes it longer, or sets its time anew.
fn untouched(path: &Path, outcome: &Outcome, before: Stamp) -> Option<Stamp> {
    let now = Stamp::of(&std::fs::symlink_metadata(path).ok()?);
    (now.bytes == outcome.bytes_after && now.modified == before.modified).then_some(now)
}

impl Seen {
    fn new(outcome: &Outcome) -> Self {
        let mut codes: Vec<&'static str> = Vec::new();
        for finding in outcome.before.iter().flat_map(|found| &found.findings) {
            if !codes.contains(&finding.rule.code()) {
                codes.push(finding.rule.code());
            }
        }
        let would_be = outcome.before.as_ref().map_or(outcome.bytes, |found| found.bytes_after);
        let fixed = outcome.ending == Ending::Fixed;
        Self {
            outcome: outcome.ending.name(),
            reason: outcome.ending.reason(),
            cause: cause(&outcome.ending),
            agent: outcome.agent(),
            before: outcome.bytes,
            after: outcome.bytes_after,
            run: outcome.run.clone(),
            findings: outcome.remaining().len() as u64,
            saves_bytes: if fixed { 0 } else { outcome.bytes.saturating_sub(would_be) },
            codes,
        }
    }
}

fn cause(ending: &Ending) -> &'static str {
    let Ending::Deferred(reason) = ending else { return "" };
    match reason {
        Deferral::Growing { .. } => "growing",
        Deferral::Changed => "changed",
        Deferral::HeldOpen | Deferral::Open { .. } => "open",
        Deferral::OtherTailor => "other-tailor",
        Deferral::Running { .. } => "running",
        Deferral::Locked { .. } | Deferral::Doubtful { .. } | Deferral::Busy { .. } => "locked",
        Deferral::InUse { .. } => "in-use",
        Deferral::Unseen { .. } => "unseen",
        Deferral::Unprovable { .. } => "unprovable",
    }
}
