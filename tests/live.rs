//! `tailor fix` beside programs that append to the same session and do not know about it.
//!
//! These tests do not trust the program's output: what the writers have logged must be in the file at the end, each
//! line once, whole and in order, however often `fix` ran meanwhile and wherever it was killed.
//!
//! `TAILOR_LIVE_SECONDS` is the time for all scenarios together, `TAILOR_LIVE_SEED` the seed of random numbers, and
//! `TAILOR_LIVE_PROGRAM` another program to test: an optimised build makes more runs in the same time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "the report is what a long run is for")]

#[path = "live/ledger.rs"]
mod ledger; // Compares the writers' logs with the file.
mod rng;
#[allow(dead_code, reason = "shared with `integration`")]
mod support;
#[path = "live/writers.rs"]
mod writers; // Programs that append to a session as agents do.

use rng::Rng;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use support::{Dir, make_old};
use writers::{Kind, RESULT_CHARS_MAX, Site};

const SECONDS: u64 = 8;
const SCENARIOS: u64 = 3;
const FIXERS: usize = 2;
/// A killed run can leave something to finish, and each later run finishes at least one thing.
const SETTLING_RUNS_MAX: usize = 20;
/// Used until the time of a run has been measured.
const KILLED_AFTER_MAX: Duration = Duration::from_millis(30);
/// Of the session, on Unix.
#[cfg(unix)]
const MODE: u32 = 0o640;

#[test]
fn no_line_is_lost_beside_programs_that_append_by_path() {
    check("by path", &[Kind::Node, Kind::ByPath, Kind::ByPath]);
}

#[test]
fn a_program_that_holds_the_file_open_is_never_raced() {
    check("held open", &[Kind::Held, Kind::ByPath]);
}

#[test]
fn no_line_is_lost_beside_all_kinds_of_writers() {
    check("all kinds", &[Kind::Node, Kind::ByPath, Kind::Held, Kind::InPieces]);
}

/// One scenario at a time, because they would slow each other down.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs the writers and `fix` at full speed, then compares.
#[track_caller]
fn check(name: &str, kinds: &[Kind]) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let seed = number("TAILOR_LIVE_SEED", 1);
    let time = Duration::from_secs(number("TAILOR_LIVE_SECONDS", SECONDS)) / SCENARIOS as u32;
    let dir = Dir::new();
    let path = dir.write("s.jsonl", writers::OPENING);
    set_mode(&path);
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
                scope.spawn(move || fix_until_stopped(site, dir, Rng::new(seed * 1000 + n)))
            })
            .collect();
        thread::sleep(time);
        site.stop.store(true, Ordering::Relaxed);
        fixers.into_iter().map(|fixer| fixer.join().unwrap()).fold(Tally::default(), Tally::and)
    });
    let mut wrong = tally.wrong(&site);
    wrong.extend(settle(&dir));
    let account = ledger::account(&site);
    wrong.extend(account.wrong());
    wrong.extend(left_over(&dir, &site));

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
    errors: Vec<String>,
}

impl Tally {
    fn and(mut self, other: Self) -> Self {
        self.killed += other.killed;
        for (outcome, runs) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += runs;
        }
        self.landed.extend(other.landed);
        self.errors.extend(other.errors);
        self
    }

    fn add(&mut self, began: Instant, output: &Output, was_killed: bool) {
        let Some((outcome, reason)) = outcome(output) else {
            if was_killed {
                self.killed += 1;
                return;
            }
            self.errors.push(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
            return;
        };
        match outcome.as_str() {
            "fixed" => self.landed.push((began, Instant::now())),
            "error" => self.errors.push(reason.clone()),
            _ => {}
        }
        // Numbers would make each reason unique.
        let reason: String = reason.chars().filter(|char| !char.is_ascii_digit()).collect();
        *self.outcomes.entry(format!("{outcome} {reason}").trim_end().to_string()).or_default() += 1;
    }

    fn wrong(&self, site: &Site) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.landed.is_empty() {
            wrong.push("no rewrite landed".to_string());
        }
        let holds = site.holds.lock().unwrap();
        let within = |run: &&(Instant, Instant)| holds.iter().any(|hold| hold.0 <= run.0 && run.1 <= hold.1);
        let raced = self.landed.iter().filter(within).count();
        if raced > 0 {
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
        write!(f, "  {runs} runs: {} landed, {} killed", self.landed.len(), self.killed)?;
        self.outcomes.iter().try_for_each(|(outcome, runs)| write!(f, "\n    {runs:6} {outcome}"))
    }
}

/// The outcome of the only file and its reason; `None` if the program printed none.
fn outcome(output: &Output) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(&output.stdout);
    let file: serde_json::Value = serde_json::from_str(text.lines().next()?).ok()?;
    let reason = file["reason"].as_str().unwrap_or_default();
    Some((file["outcome"].as_str()?.to_string(), reason.to_string()))
}

fn command(dir: &Dir) -> std::process::Command {
    let program = std::env::var_os("TAILOR_LIVE_PROGRAM");
    let mut command = program.map_or_else(|| dir.command(), |program| dir.command_of(Path::new(&program)));
    let limit = RESULT_CHARS_MAX.to_string();
    command.args(["fix", "s.jsonl", "--settle", "0", "--format", "json", "--result-chars-max", &limit]);
    // The writers do not write a conversation: there are no requests or answers, and each writer has its own branch.
    command.args(["--ignore", "M7,M8,S18"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs `fix` repeatedly, and kills every third run, usually within the time that a successful run takes.
fn fix_until_stopped(site: &Site, dir: &Dir, mut rng: Rng) -> Tally {
    let mut tally = Tally::default();
    let mut usual = KILLED_AFTER_MAX;
    while !site.stop.load(Ordering::Relaxed) {
        let (began, landed) = (Instant::now(), tally.landed.len());
        let mut child = command(dir).spawn().unwrap();
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
fn settle(dir: &Dir) -> Option<String> {
    let mut last = String::new();
    for _ in 0..SETTLING_RUNS_MAX {
        let output = command(dir).output().unwrap();
        match outcome(&output) {
            Some((outcome, _)) if outcome == "clean" => return None,
            Some((outcome, reason)) => last = format!("{outcome} {reason}"),
            None => last = format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)),
        }
    }
    Some(format!("not clean after {SETTLING_RUNS_MAX} more runs without a writer: {last}"))
}

/// Files in the folder that should not be there, and a changed mode.
fn left_over(dir: &Dir, site: &Site) -> Vec<String> {
    let names = dir.names().into_iter().filter(|name| name != "s.jsonl");
    let mut wrong: Vec<String> = names.map(|name| format!("{name} is left over")).collect();
    wrong.extend(changed_mode(&site.path));
    wrong
}

#[cfg(unix)]
fn set_mode(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(MODE)).unwrap();
}

#[cfg(unix)]
fn changed_mode(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    (mode != MODE).then(|| format!("the mode was {MODE:o} and is {mode:o}"))
}

/// Windows has none.
#[cfg(not(unix))]
fn set_mode(_: &Path) {}

#[cfg(not(unix))]
fn changed_mode(_: &Path) -> Option<String> {
    None
}
