//! The main loop: events come in, looks go out. No event is acted on directly, and nothing here waits for a disk: root
//! watchers and workers do, on threads of their own.

mod answer;
mod report;
mod roots;

use crate::config::{Build, Config, Roots};
use crate::daemon::ask::{serve_metrics, serve_status};
use crate::daemon::event::{Event, Why};
use crate::daemon::exits::Exits;
use crate::daemon::instance::NotClaimed;
use crate::daemon::keeping::{KeepReport, KeepThread};
use crate::daemon::look::Looker;
use crate::daemon::metrics::{Metrics, whole};
use crate::daemon::queue::{Cure, FILES_MAX, Job, Queue, RootId, Tick};
use crate::daemon::reading::Reading;
use crate::daemon::root_discovery::RootDiscovery;
use crate::daemon::systemd;
use keeper::{RunsToKeep, Vault, is_candidate, is_replacing, plain, stop_reading};
use report::LastReport;
use roots::Watched;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::{error, info, warn};
use transcript::overflow::Failure;

/// How many events may wait for the loop. If there are more, root watchers wait, and then the kernel, which reports
/// that it had to drop events.
const EVENTS_MAX: usize = 4_096;
/// How many events are taken before due files are given out again.
const EVENTS_AT_ONCE: usize = 512;
/// How many files are looked at at a time. It may exceed the number of cores, because a look mostly waits for the disk.
const WORKERS: usize = 4;
/// Time between two runs that delete old originals.
const CLEAR_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// Time before the first such run.
const CLEAR_FIRST: Duration = Duration::from_secs(10 * 60);
/// How often the service manager's status line is updated, if it has changed.
const STATUS_EVERY: Duration = Duration::from_secs(10);
/// How often metrics are written to a file, if configured.
const TEXTFILE_EVERY: Duration = Duration::from_secs(15);
/// How long looks have time to end. One that is cut off is like one of a daemon that is killed: no file is damaged by that.
const STOP_MAX: Duration = Duration::from_millis(600);
/// The longest sleep while they do.
const STOP_SLEEP_MAX: Duration = Duration::from_millis(50);
/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);

/// Why the daemon cannot run at all.
#[derive(Debug)]
pub enum Error {
    /// Other daemons watch all of the roots.
    AllTaken(String),
    /// The system refused threads, signals or descriptors.
    System(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllTaken(why) => f.write_str(why),
            Self::System(cause) => write!(f, "could not start the daemon: {cause}"),
        }
    }
}

impl std::error::Error for Error {}

/// A task for a worker.
enum WorkItem {
    Look(Job, Option<PathBuf>, Arc<Looker>),
    Clear(Vault, RunsToKeep),
}

/// The state of the loop.
struct Daemon {
    config: Arc<Config>,
    looker: Arc<Looker>,
    queue: Queue,
    roots: Vec<Watched>,
    roots_opened: RootId,
    /// Roots that other daemons watch, with the reason to print.
    taken: BTreeMap<PathBuf, String>,
    /// Watches for new folders of known agents, unless the roots are configured.
    discovery: Option<RootDiscovery>,
    last_reports: HashMap<Arc<Path>, LastReport>,
    /// Sessions that are too long, as their agents say.
    too_long: HashMap<Arc<Path>, Failure>,
    /// Keeps what sessions become, if that is asked for.
    keep: Option<KeepThread>,
    /// Why something was not kept.
    keep_error: Option<String>,
    /// Processes that files wait for.
    exits: Exits,
    metrics: Metrics,
    events: SyncSender<Event>,
    work: SyncSender<WorkItem>,
    at_work: usize,
    began: Instant,
    next_clear: Tick,
    next_roots: Tick,
    next_alive: Option<Tick>,
    next_status: Tick,
    next_textfile: Tick,
    status_text: String,
    full: bool,
    stopping: bool,
    /// From when on looks that still run are left behind, unless one is replacing a file.
    stop_at: Tick,
    /// The socket that this daemon opened.
    socket: Option<PathBuf>,
    config_error: Option<String>,
    /// Why metrics could not be written to their file.
    textfile_error: Option<String>,
}

/// Watches transcripts until it receives the signal to stop. `reload` reads the configuration again.
///
/// # Errors
///
/// If nothing can be watched.
pub fn run(
    config: Config,
    build: &Build,
    reload: &mut dyn FnMut() -> Result<Config, String>,
) -> Result<(), Error> {
    let (events, inbox) = sync_channel(EVENTS_MAX);
    let work = start_workers(&events).map_err(Error::System)?;
    pass_on_signals(events.clone()).map_err(Error::System)?;
    let mut daemon = Daemon::new(config, build, events, work).map_err(Error::System)?;
    daemon.begin()?;
    daemon.serve();
    systemd::ready();
    daemon.turn(&inbox, reload);
    daemon.end();
    Ok(())
}

/// Turns signals into events.
fn pass_on_signals(events: SyncSender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let pass_on = move || {
        for signal in signals.forever() {
            let event = if signal == SIGHUP { Event::Reload } else { Event::Stop };
            if events.send(event).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("signals".to_string()).spawn(pass_on).map(drop)
}

fn start_workers(events: &SyncSender<Event>) -> io::Result<SyncSender<WorkItem>> {
    let (work, jobs) = sync_channel(WORKERS);
    let jobs = Arc::new(Mutex::new(jobs));
    for n in 0..WORKERS {
        let (jobs, events) = (jobs.clone(), events.clone());
        let worker = move || {
            while let Some(done) = next_work(&jobs).map(carry_out) {
                if events.send(done).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name(format!("worker-{n}")).spawn(worker)?;
    }
    Ok(work)
}

fn next_work(jobs: &Mutex<Receiver<WorkItem>>) -> Option<WorkItem> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn carry_out(work: WorkItem) -> Event {
    match work {
        WorkItem::Look(job, root, looker) => {
            let file = job.store.as_ref().unwrap_or(&job.path);
            let root = root.filter(|root| **root != **file);
            Event::Looked(Box::new(looker.run(job, root.as_deref())))
        }
        WorkItem::Clear(vault, keep) => match vault.gc(keep, false) {
            Ok(freed) => Event::Cleared {
                removed_bytes: freed.bytes,
                kept_bytes: freed.bytes_kept,
                errors: freed.errors.iter().map(ToString::to_string).collect(),
            },
            Err(error) => Event::Cleared { removed_bytes: 0, kept_bytes: 0, errors: vec![error.to_string()] },
        },
    }
}

impl Daemon {
    fn new(
        config: Config,
        build: &Build,
        events: SyncSender<Event>,
        work: SyncSender<WorkItem>,
    ) -> io::Result<Self> {
        let config = Arc::new(config);
        let start = Tick::from_millis(0);
        let metrics = Metrics::new(build);
        metrics.config_ok.set(1);
        Ok(Self {
            exits: Exits::open(events.clone())?,
            queue: Queue::new(config.settle(), FILES_MAX),
            looker: Arc::new(Looker::new(&config, Arc::new(Reading::open(&config.state)))),
            next_roots: start.after(config.rescan),
            config,
            roots: Vec::new(),
            roots_opened: 0,
            taken: BTreeMap::new(),
            discovery: None,
            last_reports: HashMap::new(),
            too_long: HashMap::new(),
            keep: None,
            keep_error: None,
            metrics,
            events,
            work,
            at_work: 0,
            began: Instant::now(),
            next_clear: start.after(CLEAR_FIRST),
            next_alive: systemd::alive_every().map(|_| start),
            next_status: start,
            next_textfile: start,
            textfile_error: None,
            status_text: String::new(),
            full: false,
            stopping: false,
            stop_at: start,
            socket: None,
            config_error: None,
        })
    }

    /// The only place that reads the clock.
    fn now(&self) -> Tick {
        Tick::from_millis(i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    /// Claims the roots and watches each.
    fn begin(&mut self) -> Result<(), Error> {
        let (mode, stores) = (self.config.mode.name(), self.config.stores.name());
        info!(event = "start", mode, stores_mode = stores, pid = std::process::id(), "started");
        for (path, wait) in self.looker.reading.suspects() {
            let (path, minutes) = (plain(&path.to_string_lossy()), wait.as_secs() / 60);
            warn!(
                event = "trouble",
                path,
                "{path}: a daemon was killed while it read this file; reading it in {minutes} minutes, or once it has changed"
            );
        }
        self.begin_to_keep()?;
        let taken = self.open_roots();
        self.discover_roots();
        if self.roots.is_empty() && taken.is_empty() {
            warn!(event = "root", "no agent folders found yet; looking again periodically");
        }
        match (&self.config.roots, taken.into_iter().next()) {
            (Roots::These(_), Some(why)) if self.roots.is_empty() => Err(Error::AllTaken(why.to_string())),
            (Roots::Known, Some(why @ NotClaimed::By { .. })) if self.roots.is_empty() => {
                Err(Error::AllTaken(why.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Opens the sockets. If one fails, the daemon runs without it.
    fn serve(&mut self) {
        let path = self.config.socket.display();
        if let Err(cause) = serve_status(&self.config.socket, self.events.clone()) {
            error!(event = "socket", reason = %cause, "{path}: could not open the socket for `tailor status`: {cause}");
        } else {
            self.socket = Some(self.config.socket.clone());
        }
        if let Some(listen) = &self.config.listen
            && let Err(cause) = serve_metrics(listen, self.events.clone())
        {
            error!(event = "listen", reason = %cause, "{listen}: could not serve metrics: {cause}");
        }
    }

    /// Runs until it was told to stop and no look is running, or those that do take too long.
    fn turn(&mut self, inbox: &Receiver<Event>, reload: &mut dyn FnMut() -> Result<Config, String>) {
        while !(self.stopping && (self.at_work == 0 || self.now() >= self.stop_at && !is_replacing())) {
            self.tick();
            let first = match inbox.recv_timeout(self.sleep()) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let more = inbox.try_iter().take(EVENTS_AT_ONCE);
            for event in std::iter::once(first).chain(more) {
                self.take(event, reload);
            }
        }
    }

    /// The time until something is due. If all workers are busy, only their return matters.
    fn sleep(&self) -> Duration {
        let now = self.now();
        let due = self.queue.deadline().filter(|_| self.at_work < WORKERS && !self.stopping);
        let clear = self.config.writes().then_some(self.next_clear);
        let status = (self.next_status > now).then_some(self.next_status);
        let textfile = self.config.metrics_textfile.is_some().then_some(self.next_textfile);
        let moments = [due, clear, textfile, Some(self.next_roots), self.next_alive, status];
        let next = moments.into_iter().flatten().min();
        let most = if self.stopping { STOP_SLEEP_MAX } else { SLEEP_MAX };
        next.map_or(SLEEP_MAX, |next| next.since(now)).min(most)
    }

    /// Does everything that is due.
    fn tick(&mut self) {
        let now = self.now();
        if self.next_alive.is_some_and(|next| next <= now) {
            systemd::alive();
            self.next_alive = systemd::alive_every().map(|time| now.after(time));
        }
        if self.stopping {
            return;
        }
        if self.next_roots <= now {
            self.next_roots = now.after(self.config.rescan);
            drop(self.open_roots());
        }
        if self.next_status <= now {
            self.say_how_it_is();
        }
        if self.next_textfile <= now {
            self.next_textfile = now.after(TEXTFILE_EVERY);
            self.write_textfile(now);
        }
        if self.next_clear <= now && self.at_work < WORKERS {
            self.next_clear = now.after(CLEAR_EVERY);
            // When only observing, we write nothing, and the originals are not ours to delete.
            if self.config.writes() {
                self.give(WorkItem::Clear(self.config.vault.clone(), self.config.keep));
            }
        }
        while self.at_work < WORKERS {
            let Some(job) = self.queue.next(now) else { break };
            let root = self.roots.iter().find(|root| root.id == job.root).map(|root| root.path.clone());
            self.give(WorkItem::Look(job, root, self.looker.clone()));
        }
    }

    fn give(&mut self, work: WorkItem) {
        // The channel has room for each worker, and there are never more jobs than workers.
        self.at_work += usize::from(self.work.try_send(work).is_ok());
    }

    fn take(&mut self, event: Event, reload: &mut dyn FnMut() -> Result<Config, String>) {
        let now = self.now();
        self.note(&event);
        match event {
            Event::Touched { root, path } => {
                let known = !self.has(root) || self.queue.touch(&path, root, now);
                self.is_full(!known);
            }
            Event::Found { root, path, stamp, quiet, walk } => {
                let known = !self.has(root) || self.queue.found(&path, root, (stamp, walk), quiet, now);
                self.is_full(!known);
            }
            Event::Closed { root, path } => {
                if self.has(root) {
                    self.queue.free(&path, Cure::Close);
                }
            }
            Event::Exited(pid) => {
                for path in self.exits.ended(pid) {
                    self.queue.free(&path, Cure::Exit(pid));
                }
            }
            Event::Walked { root, walk, complete, why } => self.walked(root, walk, complete, why),
            Event::Root { root, state, folders } => self.root_stands(root, state, folders),
            Event::Roots => drop(self.open_roots()),
            Event::Blind(why) => {
                warn!(
                    event = "trouble",
                    reason = why,
                    "new agent folders are found only by the periodic walk: {why}"
                );
            }
            Event::Trouble { root, text } => {
                warn!(event = "trouble", root = self.name_of(root), "{}", plain(&text));
            }
            Event::Looked(report) => {
                self.at_work -= 1;
                // What fails now has failed because it was told to.
                if !(self.stopping && report.has_failed()) {
                    self.looked(&report, now);
                }
            }
            Event::Cleared { removed_bytes, kept_bytes, errors } => {
                self.at_work -= 1;
                self.metrics.freed_bytes.inc_by(removed_bytes);
                self.metrics.vault_bytes.set(whole(kept_bytes));
                info!(event = "cleared", bytes = removed_bytes, bytes_kept = kept_bytes, "cleared the vault");
                for text in errors {
                    warn!(event = "trouble", "{text}");
                }
            }
            Event::Kept(report) => self.kept(report),
            // The client may have gone.
            Event::Ask(answer) => drop(answer.try_send(self.answer(now))),
            Event::Reload => self.reload(reload()),
            Event::Stop => {
                if !self.stopping {
                    info!(event = "stop", at_work = self.at_work, "stopping");
                    systemd::stopping();
                    stop_reading();
                    self.stop_at = now.after(STOP_MAX);
                }
                self.stopping = true;
            }
        }
        // Soon, but not for each event.
        if self.next_status <= now {
            self.next_status = now.after(STATUS_EVERY);
        }
    }

    /// Begins to keep what sessions become, if the configuration asks for it.
    fn begin_to_keep(&mut self) -> Result<(), Error> {
        let vault = self.config.vault.clone();
        let begin = |keeping| KeepThread::spawn(keeping, vault, self.events.clone());
        self.keep = self.config.keeping.as_ref().map(begin).transpose().map_err(Error::System)?;
        Ok(())
    }

    /// Counts an event, and has a session kept that may have changed.
    fn note(&self, event: &Event) {
        self.metrics.events.inc();
        let (path, is_touched) = match event {
            Event::Touched { path, .. } => (path, true),
            Event::Found { path, .. } => (path, false),
            _ => return,
        };
        if let Some(keep) = self.keep.as_ref().filter(|_| is_candidate(path)) {
            keep.see(path.clone(), is_touched);
        }
    }

    /// Takes note of what was kept. An error is logged once.
    fn kept(&mut self, report: KeepReport) {
        self.metrics.archive_bytes.set(whole(report.archive_bytes));
        self.metrics.kept_bytes.inc_by(report.grown_bytes);
        self.metrics.generations_ended.inc_by(report.ended);
        self.metrics.generations_dropped.inc_by(report.dropped);
        if let Some(error) = report.error.as_ref().filter(|_| report.error != self.keep_error) {
            warn!(event = "trouble", "{}", plain(error));
        }
        self.keep_error = report.error;
    }

    fn has(&self, root: RootId) -> bool {
        self.roots.iter().any(|known| known.id == root)
    }

    /// Logs it once when too many files are known, and once when there is room again.
    fn is_full(&mut self, ignored: bool) {
        if ignored {
            self.metrics.ignored.inc();
            if !self.full {
                warn!(event = "full", "more than {FILES_MAX} files; the rest are ignored");
            }
        }
        self.full |= ignored;
    }

    fn walked(&mut self, root: RootId, walk: u32, complete: bool, why: Why) {
        let word = match why {
            Why::Begin => "begin",
            Why::Time => "time",
            Why::Overflow => "overflow",
        };
        self.metrics.walks.get_or_create(&[("why", word)]).inc();
        if why == Why::Overflow {
            let root = self.name_of(root);
            warn!(event = "overflow", root, "the kernel dropped events; walked the root instead");
        }
        if complete && self.has(root) {
            self.metrics.succeeded();
            self.queue.walked(root, walk);
            self.forget_gone();
            self.full &= self.queue.files() >= FILES_MAX;
        }
    }

    /// Applies the new configuration, or keeps the old one if the new one is invalid.
    fn reload(&mut self, config: Result<Config, String>) {
        systemd::reloading();
        self.metrics.reloads.inc();
        match config {
            Ok(config) => {
                for (what, same) in [
                    ("listen", config.listen == self.config.listen),
                    ("socket", config.socket == self.config.socket),
                ] {
                    if !same {
                        warn!(event = "reload", "`{what}` takes effect after a restart");
                    }
                }
                let is_kept_alike = config.keeping == self.config.keeping;
                self.config = Arc::new(config);
                if !is_kept_alike {
                    self.keep = None;
                    self.config_error = self.begin_to_keep().err().map(|error| error.to_string());
                }
                self.looker = Arc::new(self.looker.under(&self.config));
                self.config_error = None;
                self.queue.renew(self.config.settle());
                self.reopen_roots();
                info!(event = "reload", mode = self.config.mode.name(), "configuration reloaded");
            }
            Err(reason) => {
                error!(event = "reload", reason, "still running with the old configuration: {reason}");
                self.config_error = Some(reason);
            }
        }
        self.metrics.config_ok.set(i64::from(self.config_error.is_none()));
        systemd::ready();
    }

    fn end(mut self) {
        self.write_textfile(self.now());
        self.keep = None;
        self.looker.reading.end();
        if let Some(socket) = &self.socket {
            drop(std::fs::remove_file(socket));
        }
        info!(event = "end", "ended");
    }
}
