//! Damages a healthy session once and checks what `fix` makes of it, with readers that follow the agents' own rules and
//! share no code with the crate.
//!
//! Every line of a small session of each live format is lost, torn, doubled, glued, swapped or overwritten, and every
//! byte of every key is replaced by five others. Samples of real transcripts are damaged as well. About a hundredth of
//! this runs with the other tests; `.ci/long` runs all of it and prints the table:
//!
//! ```sh
//! TAILOR_DAMAGE_OF=1 TAILOR_DAMAGE_REAL=4000 TAILOR_CORPUS=DIR cargo test --release -p session-tailor --test damage -- --nocapture
//! ```
//!
//! `SHOW_DAMAGE=FORMAT`, or `all`, prints the cases of a format that are not whole after `fix`.
#![allow(
    clippy::pedantic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests: a failed unwrap is a failed test, and plain loops read better"
)]

#[path = "promises/agents.rs"]
#[allow(dead_code, reason = "shared with `promises`")]
mod agents;
#[path = "folder.rs"]
mod folder;
#[path = "damage/harm.rs"]
mod harm;
#[path = "damage/judge.rs"]
mod judge;
#[path = "promises/oracle.rs"]
#[allow(dead_code, reason = "shared with `promises`")]
mod oracle;
#[path = "promises/reader.rs"]
#[allow(dead_code, reason = "shared with `promises`")]
mod reader;
#[path = "damage/real.rs"]
mod real;
#[path = "promises/requests.rs"]
#[allow(dead_code, reason = "shared with `promises`")]
mod requests;
#[path = "promises/story.rs"]
#[allow(dead_code, reason = "shared with `promises`")]
mod story;

use folder::real_files;
use harm::Harm;
use judge::{DamagedEnd, HealthySession};
use std::collections::BTreeMap;

/// A small session of each live format: two requests, each with a call, its result and an answer.
const SESSIONS: &[(&str, &str)] = &[
    ("pi", include_str!("damage/pi.jsonl")),
    ("claude-code", include_str!("damage/claude-code.jsonl")),
    ("codex", include_str!("damage/codex.jsonl")),
    ("copilot-cli", include_str!("damage/copilot-cli.jsonl")),
    ("gemini-cli", include_str!("damage/gemini-cli.jsonl")),
    ("qwen-code", include_str!("damage/qwen-code.jsonl")),
    ("kimi-code", include_str!("damage/kimi-code.jsonl")),
    ("kimi-cli", include_str!("damage/kimi-cli.jsonl")),
    ("vibe", include_str!("damage/vibe.jsonl")),
    ("grok-build", include_str!("damage/grok-build.jsonl")),
    ("picoclaw", include_str!("damage/picoclaw.jsonl")),
    ("nanobot", include_str!("damage/nanobot.jsonl")),
    ("anthropic", include_str!("damage/anthropic.jsonl")),
    ("openai-chat", include_str!("damage/openai-chat.jsonl")),
];

/// One of so many cases runs with the other tests.
const SAMPLED_OF: usize = 101;

/// How many samples of damage to real transcripts are tested.
const REAL_SAMPLES: usize = 20;

/// How the cases of one format ended.
#[derive(Clone, Copy, Default)]
struct Tally {
    cases: usize,
    /// All messages on undamaged lines, except at most two, are in context, and the request is accepted.
    whole: usize,
    /// The request is accepted.
    accepted: usize,
    /// Not whole, and an error is reported.
    said: usize,
    /// Not whole, and no error is reported.
    silent: usize,
    /// Less in context than before the fix, or no longer accepted.
    worse: usize,
}

impl Tally {
    fn add(&mut self, end: &DamagedEnd) {
        self.cases += 1;
        self.whole += usize::from(end.is_whole());
        self.accepted += usize::from(end.accepted);
        self.said += usize::from(!end.is_whole() && end.said);
        self.silent += usize::from(!end.is_whole() && !end.said);
        self.worse += usize::from(end.is_worse());
    }

    fn row(&self, name: &str) -> String {
        let percent = self.whole as f64 * 100.0 / self.cases.max(1) as f64;
        let Self { cases, whole, accepted, said, silent, worse } = self;
        format!("| {name} | {cases} | {whole} | {percent:.2} % | {accepted} | {said} | {silent} | {worse} |")
    }
}

fn print_table(title: &str, tallies: &BTreeMap<&str, Tally>) -> Tally {
    let mut all = Tally::default();
    eprintln!("\n{title}\n\n| format | cases | whole | | accepted | said | silent | worse |");
    eprintln!("|---|--:|--:|--:|--:|--:|--:|--:|");
    for (name, tally) in tallies {
        eprintln!("{}", tally.row(name));
        all.cases += tally.cases;
        all.whole += tally.whole;
        all.accepted += tally.accepted;
        all.said += tally.said;
        all.silent += tally.silent;
        all.worse += tally.worse;
    }
    eprintln!("{}", all.row("all"));
    all
}

fn tried(session: &HealthySession, harm: &Harm) -> DamagedEnd {
    let end = judge::end(session, harm);
    let shown = std::env::var("SHOW_DAMAGE").is_ok_and(|format| format == session.format || format == "all");
    if shown && (!end.is_whole() || end.is_worse()) {
        eprintln!("{} {}: {end:?}", session.name, harm.told(&session.lines));
    }
    end
}

fn sessions() -> Vec<HealthySession> {
    let sessions = SESSIONS.iter().map(|(format, text)| HealthySession::new(format, format, text.as_bytes()));
    sessions.collect()
}

fn exhaust(of: usize) -> BTreeMap<&'static str, Tally> {
    let mut tallies = BTreeMap::new();
    for (session, (format, _)) in sessions().iter().zip(SESSIONS) {
        let tally: &mut Tally = tallies.entry(*format).or_default();
        for harm in harm::all(&session.lines).iter().step_by(of) {
            tally.add(&tried(session, harm));
        }
    }
    tallies
}

#[test]
fn the_sessions_are_healthy() {
    for session in sessions() {
        let bytes = harm::befall(&session.lines, &Harm::None);
        let found = transcript::examine(&bytes.as_slice(), &transcript::Policy::default()).unwrap();
        assert_eq!(found.facts.format.map(|format| format.name), Some(session.format));
        assert!(found.findings.is_empty(), "{}: {}", session.format, found.findings[0].message);
        let end = judge::end(&session, &Harm::None);
        assert!(end.accepted && end.is_whole() && end.needed == 9, "{}: {end:?}", session.format);
    }
}

#[test]
fn a_file_appended_to_itself_is_told_as_that() {
    for (format, text) in SESSIONS.iter().filter(|(format, _)| ["claude-code", "qwen-code"].contains(format))
    {
        let twice = text.repeat(2);
        let found = transcript::examine(&twice.as_bytes(), &transcript::Policy::default()).unwrap();
        let copies = found.findings.iter().filter(|finding| finding.rule.code() == "T5");
        let told = copies.filter(|copy| copy.message.ends_with("the file was appended to itself")).count();
        assert_eq!(told, text.lines().count(), "{format}");
    }
}

/// A number from the environment.
fn number(key: &str, default: usize) -> usize {
    std::env::var(key).map_or(default, |text| text.parse().unwrap())
}

/// `TAILOR_DAMAGE_OF=1` takes every case, and minutes.
#[test]
fn damage_is_mended_or_said() {
    let of = number("TAILOR_DAMAGE_OF", SAMPLED_OF);
    let tallies = exhaust(of);
    let all = print_table("Damage of small sessions", &tallies);
    assert_eq!(all.worse, 0);
    assert!(of == 1 || all.silent == 0);
    assert!(all.whole * 100 >= all.cases * 98);
}

#[test]
fn damage_of_real_transcripts_is_mended_or_said() {
    let Some(files) = real_files() else { return };
    let samples = number("TAILOR_DAMAGE_REAL", REAL_SAMPLES);
    let formats: Vec<&str> = SESSIONS.iter().map(|(format, _)| *format).collect();
    let sessions = real::sessions(files, &formats);
    for (of_lines, what) in [(false, "damages"), (true, "damages to lines")] {
        let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
        for (session, harm) in real::samples(&sessions, of_lines, samples) {
            tallies.entry(session.format).or_default().add(&tried(session, &harm));
        }
        let title = format!("{samples} {what} of {} real transcripts", sessions.len());
        let all = print_table(&title, &tallies);
        assert_eq!(all.worse, 0);
    }
}
