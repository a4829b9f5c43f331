//! Keeps what sessions become, on a thread of its own: nothing else waits for the archive.

use crate::config::Keeping;
use crate::daemon::event::Event;
use keeper::{Archive, Change, Keeper, REST_EVERY, Vault};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long changes are gathered before they are kept. A line is there a second after it was written.
const GATHER: Duration = Duration::from_millis(250);
/// How many files that a walk has found are looked at before what has changed meanwhile.
const FOUND_AT_ONCE: usize = 16;
/// Time between two runs that drop what is beyond the limits, …
const BOUND_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// … and before the first one.
const BOUND_FIRST: Duration = Duration::from_secs(5 * 60);

/// The thread. It ends when this is dropped, after it has kept what it was told of.
pub(crate) struct KeepThread {
    paths: Option<Sender<SeenFile>>,
    thread: Option<JoinHandle<()>>,
}

/// A file that may have changed.
struct SeenFile {
    path: PathBuf,
    /// Whether it has just changed; else a walk has found it.
    is_touched: bool,
}

impl KeepThread {
    pub(crate) fn spawn(config: &Keeping, vault: Vault, events: SyncSender<Event>) -> io::Result<Self> {
        let (paths, inbox) = channel();
        let keeper = Keeper::new(Archive::new(config.folder.clone()), Some(vault));
        let (now, config) = (Instant::now(), config.clone());
        let worker = Worker {
            config,
            keeper,
            events,
            touched: BTreeSet::new(),
            found: BTreeSet::new(),
            failed: BTreeSet::new(),
            next_rest: now,
            next_bound: now + BOUND_FIRST,
            report: KeepReport::default(),
        };
        let thread =
            std::thread::Builder::new().name("keep".to_string()).spawn(move || worker.run(&inbox))?;
        Ok(Self { paths: Some(paths), thread: Some(thread) })
    }

    /// Notes that a file may have changed.
    pub(crate) fn see(&self, path: PathBuf, is_touched: bool) {
        if let Some(paths) = &self.paths {
            // If the thread has died, its last report said why.
            let _ = paths.send(SeenFile { path, is_touched });
        }
    }
}

impl Drop for KeepThread {
    fn drop(&mut self) {
        self.paths = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread has done since its last report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeepReport {
    /// How many bytes sessions have grown by.
    pub(crate) grown_bytes: u64,
    /// How many generations have ended.
    pub(crate) ended: u64,
    /// How many generations were dropped.
    pub(crate) dropped: u64,
    /// How many bytes the archive has.
    pub(crate) archive_bytes: u64,
    /// Why something could not be kept.
    pub(crate) error: Option<String>,
}

struct Worker {
    config: Keeping,
    keeper: Keeper,
    events: SyncSender<Event>,
    touched: BTreeSet<PathBuf>,
    found: BTreeSet<PathBuf>,
    /// Files to look at again later.
    failed: BTreeSet<PathBuf>,
    next_rest: Instant,
    next_bound: Instant,
    report: KeepReport,
}

impl Worker {
    fn run(mut self, inbox: &Receiver<SeenFile>) {
        loop {
            let is_idle = self.found.is_empty();
            let pause = self.next_rest.saturating_duration_since(Instant::now());
            let first = inbox.recv_timeout(if is_idle { pause } else { Duration::ZERO });
            let has_ended = matches!(first, Err(RecvTimeoutError::Disconnected));
            if let Ok(seen) = first {
                self.take(seen);
                std::thread::sleep(GATHER);
            }
            for seen in inbox.try_iter() {
                self.take(seen);
            }
            let mut paths: Vec<PathBuf> = std::mem::take(&mut self.touched).into_iter().collect();
            for _ in 0..FOUND_AT_ONCE {
                paths.extend(self.found.pop_first().filter(|_| !has_ended));
            }
            self.keep(&paths);
            if has_ended {
                return;
            }
            self.rest();
        }
    }

    fn take(&mut self, seen: SeenFile) {
        if seen.is_touched {
            self.found.remove(&seen.path);
            self.touched.insert(seen.path);
        } else if !self.touched.contains(&seen.path) {
            self.found.insert(seen.path);
        }
    }

    fn keep(&mut self, paths: &[PathBuf]) {
        let (report, failed) = (&mut self.report, &mut self.failed);
        let kept = self.keeper.look(paths, &mut |path, seen| match seen {
            Ok(Change::None) => {}
            Ok(Change::Grown(bytes)) => report.grown_bytes += bytes,
            Ok(Change::Ended(_)) => report.ended += 1,
            Err(error) => {
                failed.insert(path.to_path_buf());
                report.error = Some(error.to_string());
            }
        });
        if let Err(error) = kept.and_then(|()| self.keeper.verify()) {
            self.failed.extend(paths.iter().cloned());
            self.report.error = Some(error.to_string());
        }
    }

    /// Looks after the archive, if it is time for that, and reports.
    fn rest(&mut self) {
        let now = Instant::now();
        if now < self.next_rest {
            return;
        }
        self.next_rest = now + REST_EVERY;
        self.found.append(&mut self.failed);
        let mut done = self.keeper.rest().map(|gone| self.report.ended += gone);
        if now >= self.next_bound {
            self.next_bound = now + BOUND_EVERY;
            let bounded = self.keeper.bound(self.config.limits);
            let dropped = bounded.map(|dropped| self.report.dropped += dropped.generations.len() as u64);
            done = done.and(dropped);
        }
        if let Err(error) = done {
            self.report.error = Some(error.to_string());
        }
        self.report.archive_bytes = self.keeper.bytes();
        // A loop that has no time for it gets it later.
        if self.events.try_send(Event::Kept(self.report.clone())).is_ok() {
            self.report = KeepReport::default();
        }
    }
}
