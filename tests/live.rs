//! `tailor fix` beside programs that append to the same session and do not know about it.
//!
//! These tests do not trust the program's output: what the writers have logged must be in the file at the end, each
//! line once, whole and in order, however often `fix` ran meanwhile and wherever it was killed.
//!
//! `TAILOR_LIVE_SECONDS` is the time for all scenarios together, `TAILOR_LIVE_SEED` the seed of random numbers, and
//! `TAILOR_LIVE_PROGRAM` another program to test: an optimised build makes more runs in the same time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "the report is what a long run is for")]

#[allow(dead_code, reason = "shared with `integration`")]
mod folder; // Says what is skipped.
#[path = "live/ledger.rs"]
mod ledger; // Compares the writers' logs with the file.
#[path = "live/quit.rs"]
mod quit; // A session whose agent has quit.
mod rng;
#[allow(dead_code, reason = "shared with `integration`")]
mod support;
#[path = "live/writers.rs"]
mod writers; // Programs that append to a session as agents do.

use rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use support::{Dir, make_old};
use writers::{AppendKind, RESULT_CHARS_MAX, Site};

const SECONDS: u64 = 8;
const SCENARIOS: u64 = 7;
const FIXERS: usize = 2;
/// Each run takes more than a second there.
const WITHOUT_LEASES_MIN: Duration = Duration::from_secs(5);
/// A killed run can leave something to finish, and each later run finishes at least one thing.
const SETTLING_RUNS_MAX: usize = 20;
/// Used until the time of a run has been measured.
const KILLED_AFTER_MAX: Duration = Duration::from_millis(30);

#[test]
fn no_line_is_lost_beside_programs_that_append_by_path() {
    check("by path", &[AppendKind::Node, AppendKind::ByPath, AppendKind::ByPath], &System::here());
}

#[test]
fn a_program_that_holds_the_file_open_is_never_raced() {
    check("held open", &[AppendKind::Held, AppendKind::ByPath], &System::here());
}

#[test]
fn no_line_is_lost_beside_all_kinds_of_writers() {
    check(
        "all kinds",
        &[AppendKind::Node, AppendKind::ByPath, AppendKind::Held, AppendKind::InPieces],
        &System::here(),
    );
}

/// There are no leases, and all programs that have the file open are seen.
#[cfg(target_os = "linux")]
#[test]
fn no_line_is_lost_without_leases() {
    if may_refuse_leases() {
        let system = System { mode: 0o644, refuses_leases: true, guarantee: "drained", ..System::here() };
        check("without leases", &[AppendKind::ByPath, AppendKind::Held, AppendKind::ByPath], &system);
    }
}

/// Another user's file: others may have it open without being seen.
#[cfg(target_os = "linux")]
#[test]
fn no_line_is_lost_where_nobody_is_seen() {
    if may_refuse_leases() {
        let system = System { mode: 0o666, refuses_leases: true, guarantee: "quiet", ..System::here() };
        check("nobody seen", &[AppendKind::Seldom, AppendKind::Seldom], &system);
    }
}

/// As on macOS: nothing keeps others out, nobody is seen, and names are not exchanged. They come back at any moment.
#[cfg(target_os = "linux")]
#[test]
fn no_line_is_lost_on_a_plain_system() {
    check("plain", &[AppendKind::Seldom, AppendKind::Seldom], &System::plain("linked"));
}

/// As on Windows: there the old file steps aside as well.
#[cfg(target_os = "linux")]
#[test]
fn no_line_is_lost_where_the_old_file_steps_aside() {
    check("one name", &[AppendKind::Seldom, AppendKind::Seldom], &System::plain("one-name"));
}

/// What the system does for the program.
struct System {
    /// Of the session, on Unix. Programs of users that may write to it are not all seen.
    #[cfg_attr(not(unix), allow(dead_code, reason = "Windows has none"))]
    mode: u32,
    /// Nobody gets a lease.
    refuses_leases: bool,
    /// What the program should say that it gives.
    guarantee: &'static str,
    /// It keeps nobody out and does not say who has a file open; and how.
    plain: Option<String>,
}

impl System {
    fn here() -> Self {
        let told = std::env::var(PLAIN).ok();
        let plain = if cfg!(target_os = "linux") { told } else { Some("here".to_string()) };
        let guarantee = if plain.is_some() { "quiet" } else { "lease" };
        Self { mode: 0o640, refuses_leases: false, guarantee, plain }
    }

    /// One that is to have no more than macOS, or than Windows, where a file has one name only.
    #[cfg(target_os = "linux")]
    fn plain(how: &str) -> Self {
        Self { guarantee: "quiet", plain: Some(how.to_string()), ..Self::here() }
    }
}

/// Tells Linux to have no more than others, and how.
const PLAIN: &str = "TAILOR_PLAIN_SYSTEM";

/// Whether we can have the system refuse leases.
#[cfg(target_os = "linux")]
fn may_refuse_leases() -> bool {
    let may = std::fs::OpenOptions::new().write(true).open(LEASES_ENABLED).is_ok();
    if !may {
        support::skipped("no leases: it takes root to have the system refuse them");
    }
    may
}

/// See `proc_sys_fs(5)`.
const LEASES_ENABLED: &str = "/proc/sys/fs/leases-enable";

/// The system refuses leases until this is dropped.
struct WithoutLeases;

impl WithoutLeases {
    fn begin() -> Self {
        std::fs::write(LEASES_ENABLED, "0").unwrap();
        Self
    }
}

impl Drop for WithoutLeases {
    fn drop(&mut self) {
        std::fs::write(LEASES_ENABLED, "1").unwrap();
    }
}

/// One scenario at a time, because they would slow each other down.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs the writers and `fix` at full speed, then compares.
#[track_caller]
fn check(name: &str, kinds: &[AppendKind], system: &System) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let seed = number("TAILOR_LIVE_SEED", 1);
    let mut time = Duration::from_secs(number("TAILOR_LIVE_SECONDS", SECONDS)) / SCENARIOS as u32;
    if system.refuses_leases || system.plain.is_some() {
        time = time.max(WITHOUT_LEASES_MIN);
    }
    let _refused = system.refuses_leases.then(WithoutLeases::begin);
    let dir = Dir::new();
    let path = dir.write("s.jsonl", writers::OPENING);
    prepare(&dir, &path, system);
    make_old(&path);
    let site = Site::new(path, dir.home());

    let tally = thread::scope(|scope| {
        for (kind, seed) in kinds.iter().zip(seed * 100 + 1..) {
            let site = &site;
            scope.spawn(move || kind.write(site, seed));
        }
        let fixers: Vec<_> = (1..=FIXERS as u64)
            .map(|n| {
                let (site, dir) = (&site, &dir);
                scope.spawn(move || fix_until_stopped(site, dir, system, Rng::new(seed * 1000 + n)))
            })
            .collect();
        thread::sleep(time);
        site.stop.store(true, Ordering::Relaxed);
        fixers.into_iter().map(|fixer| fixer.join().unwrap()).fold(Tally::default(), Tally::and)
    });
    let mut wrong = tally.wrong(&site, system);
    wrong.extend(settle(&dir, system));
    let account = ledger::account(&site);
    wrong.extend(account.wrong());
    wrong.extend(left_over(&dir, &site, system));

    let report = format!("{name}, {:.1} s, seed {seed}\n{tally}\n{account}", time.as_secs_f64());
    assert!(
        wrong.is_empty(),
        "{report}\n\nwrong:\n  {}\n\nall of it stays in {}",
        wrong.join("\n  "),
        dir.keep().display()
    );
    eprintln!("{report}");
}

fn number(variable: &str, otherwise: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else { return otherwise };
    text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number"))
}

/// How the runs of `fix` ended.
#[derive(Default)]
struct Tally {
    killed: usize,
    /// How many runs had each outcome; of runs that ended in another way, only those that we did not kill.
    outcomes: BTreeMap<String, usize>,
    /// The start and end of each run that replaced the file.
    landed: Vec<(Instant, Instant)>,
    /// What each of them said that kept the lines of others safe.
    guarantees: BTreeSet<String>,
    errors: Vec<String>,
}

impl Tally {
    fn and(mut self, other: Self) -> Self {
        self.killed += other.killed;
        for (outcome, runs) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += runs;
        }
        self.landed.extend(other.landed);
        self.guarantees.extend(other.guarantees);
        self.errors.extend(other.errors);
        self
    }

    fn add(&mut self, began: Instant, output: &Output, was_killed: bool) {
        let Some(FixAnswer { outcome, reason, guarantee }) = FixAnswer::parse(output) else {
            if was_killed {
                self.killed += 1;
                return;
            }
            self.errors.push(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
            return;
        };
        match outcome.as_str() {
            "fixed" => {
                self.landed.push((began, Instant::now()));
                self.guarantees.insert(guarantee);
            }
            "error" => self.errors.push(reason.clone()),
            _ => {}
        }
        // Numbers would make each reason unique.
        let reason: String = reason.chars().filter(|char| !char.is_ascii_digit()).collect();
        *self.outcomes.entry(format!("{outcome} {reason}").trim_end().to_string()).or_default() += 1;
    }

    fn wrong(&self, site: &Site, system: &System) -> Vec<String> {
        let mut wrong = Vec::new();
        let given: Vec<&str> = self.guarantees.iter().map(String::as_str).collect();
        if given.iter().any(|given| *given != system.guarantee) {
            wrong.push(format!("the guarantee was {given:?}"));
        }
        // Without leases a run lands only in a pause that is longer than it takes, which an emulated or busy machine may not find.
        if self.landed.is_empty() && !system.refuses_leases && system.plain.is_none() {
            wrong.push("no rewrite landed".to_string());
        }
        let holds = site.holds.lock().unwrap();
        let within = |run: &&(Instant, Instant)| holds.iter().any(|hold| hold.0 <= run.0 && run.1 <= hold.1);
        let raced = self.landed.iter().filter(within).count();
        // What is not seen cannot be waited for; its lines come over later.
        if raced > 0 && system.plain.is_none() {
            wrong.push(format!("{raced} rewrites landed while a program held the file open all the time"));
        }
        if let Some(error) = self.errors.first() {
            wrong.push(format!("{} runs ended in an error, the first: {error}", self.errors.len()));
        }
        wrong
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.killed + self.outcomes.values().sum::<usize>();
        write!(
            f,
            "  {runs} runs: {} landed {:?}, {} killed",
            self.landed.len(),
            self.guarantees,
            self.killed
        )?;
        self.outcomes.iter().try_for_each(|(outcome, runs)| write!(f, "\n    {runs:6} {outcome}"))
    }
}

/// What the program said of the only file.
struct FixAnswer {
    outcome: String,
    reason: String,
    guarantee: String,
}

impl FixAnswer {
    /// `None` if the program printed none.
    fn parse(output: &Output) -> Option<Self> {
        let text = String::from_utf8_lossy(&output.stdout);
        let file: serde_json::Value = serde_json::from_str(text.lines().next()?).ok()?;
        let [reason, guarantee] =
            ["reason", "guarantee"].map(|key| file[key].as_str().unwrap_or_default().to_string());
        Some(Self { outcome: file["outcome"].as_str()?.to_string(), reason, guarantee })
    }
}

/// The program that is tested.
fn program() -> PathBuf {
    std::env::var_os("TAILOR_LIVE_PROGRAM").unwrap_or(env!("CARGO_BIN_EXE_tailor").into()).into()
}

fn command(dir: &Dir, system: &System) -> std::process::Command {
    let mut command = dir.command_of(program());
    let limit = RESULT_CHARS_MAX.to_string();
    command.args(["fix", "s.jsonl", "--settle", "0", "--format", "json", "--cut-results", &limit]);
    // The writers do not write a conversation: there are no requests or answers, and each writer has its own branch. They write more
    // than fits into any window, and only their long results are to be shortened.
    command.args(["--ignore", "M7,M8,S15,S18"]);
    command.envs(system.plain.iter().map(|how| (PLAIN, how)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs `fix` repeatedly, and kills every third run, usually within the time that a successful run takes.
fn fix_until_stopped(site: &Site, dir: &Dir, system: &System, mut rng: Rng) -> Tally {
    let mut tally = Tally::default();
    let mut usual = KILLED_AFTER_MAX;
    while !site.stop.load(Ordering::Relaxed) {
        let (began, landed) = (Instant::now(), tally.landed.len());
        let mut child = command(dir, system).spawn().unwrap();
        let kill = rng.below(3) == 0;
        if kill {
            let latest = [KILLED_AFTER_MAX, usual, usual, 2 * usual][rng.below(4) as usize];
            thread::sleep(Duration::from_micros(rng.below(latest.as_micros() as u64)));
            child.kill().unwrap();
        }
        tally.add(began, &child.wait_with_output().unwrap(), kill);
        if tally.landed.len() > landed {
            usual = began.elapsed();
        }
    }
    tally
}

/// Once all writers have stopped, `fix` finishes its work.
fn settle(dir: &Dir, system: &System) -> Option<String> {
    let mut last = String::new();
    for _ in 0..SETTLING_RUNS_MAX {
        let output = command(dir, system).output().unwrap();
        match FixAnswer::parse(&output) {
            Some(FixAnswer { outcome, .. }) if outcome == "clean" => return None,
            Some(FixAnswer { outcome, reason, .. }) => last = format!("{outcome} {reason}"),
            None => last = format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)),
        }
    }
    Some(format!("not clean after {SETTLING_RUNS_MAX} more runs without a writer: {last}"))
}

/// Files in the folder that should not be there, and a changed mode.
fn left_over(dir: &Dir, site: &Site, system: &System) -> Vec<String> {
    let names = dir.names().into_iter().filter(|name| name != "s.jsonl");
    let mut wrong: Vec<String> = names.map(|name| format!("{name} is left over")).collect();
    wrong.extend(changed_mode(&site.path, system));
    wrong
}

/// Gives the session its mode and owner.
#[cfg(unix)]
fn prepare(dir: &Dir, path: &Path, system: &System) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(system.mode)).unwrap();
    // Processes of root may hide what they have open, as the first of a virtual machine does.
    if system.refuses_leases {
        dir.give_files_to(support::NOBODY, support::NOBODY);
    }
}

#[cfg(unix)]
fn changed_mode(path: &Path, system: &System) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let (was, mode) = (system.mode, std::fs::metadata(path).unwrap().permissions().mode() & 0o7777);
    (mode != was).then(|| format!("the mode was {was:o} and is {mode:o}"))
}

/// Windows has neither.
#[cfg(not(unix))]
fn prepare(_: &Dir, _: &Path, _: &System) {}

#[cfg(not(unix))]
fn changed_mode(_: &Path, _: &System) -> Option<String> {
    None
}
