//! How well errors are read, on texts that users pasted in issue trackers. One half was looked at while the reader was
//! written, the other only labelled; `cargo test … errors -- --nocapture` prints the shares by class.

use crate::support::root;
use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;
use transcript::overflow::{Cause, classify};
use transcript::refusal::{Blame, Family, find};

/// Which rules fit a class; none if it is not about the session.
const CLASSES: &[(&str, &str)] = &[
    ("missing-result", "P1 P4 P7 P8 P13"),
    ("orphan-result", "P2 P3 P8 P13"),
    ("order-of-roles", "M7 M8 P4 P7"),
    ("empty-content", "M1 M2"),
    ("bad-arguments", "P9 D1"),
    ("bad-id", "P11"),
    ("unknown-field", "E1"),
    ("unknown-block", "E1"),
    ("image", "S4"),
    ("document", "S20"),
    ("thinking-signature", "M3 M4 M6"),
    ("reasoning", "M5 M13 M14"),
    ("too-long", "S1 S2 S3"),
    ("torn-file", "B1 B2 B3 B4 B5 B6 B7 B8 B9 B10"),
    ("lost-session", "B1 B3 B10 S11 C8 C9"),
    ("store-damaged", ""),
    ("disk", "C4 B1"),
    ("memory", "S10"),
    ("content-filter", "M9"),
    ("training-data", "D1 D2 D3 D4 M7 M8 B9"),
    ("known", ""),
    ("other", ""),
    ("auth", ""),
    ("rate-limit", ""),
    ("overload", ""),
    ("network", ""),
    ("model-unavailable", ""),
    ("config", ""),
];

/// Classes that are never about the session.
const ELSEWHERE: &[&str] = &["auth", "rate-limit", "overload", "network", "model-unavailable", "config"];

/// What an answer to a text is worth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Right,
    Unknown,
    /// Rules of another class.
    Wrong,
    /// About the session and it is not, or the other way round.
    WrongSide,
}

struct Labelled {
    class: String,
    codes: Vec<String>,
    blame: Blame,
    text: String,
}

impl Labelled {
    fn parse(line: &str) -> Self {
        let [_, label, text] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (label, codes) = label.split_once(':').unwrap_or((label, ""));
        let class = label.trim_start_matches(['-', '?']);
        let (_, own) = CLASSES.iter().find(|(name, _)| *name == class).unwrap_or_else(|| panic!("{line}"));
        let blame = match label.as_bytes()[0] {
            b'?' => Blame::Untold,
            b'-' => Blame::Elsewhere,
            _ if ELSEWHERE.contains(&class) => Blame::Elsewhere,
            _ => Blame::Session,
        };
        let codes = if codes.is_empty() { own } else { codes };
        // NEW stands for what has a name since the collection was made.
        let codes = codes.replace("NEW", "E1");
        let codes = codes.split(' ').filter(|code| !code.is_empty()).map(str::to_string).collect();
        Self { class: class.to_string(), codes, blame, text: text.to_string() }
    }

    fn judge(&self, answer: Option<&Family>) -> Verdict {
        let fits = |family: &Family| family.codes.iter().any(|code| self.codes.iter().any(|own| own == code));
        match (self.blame, answer.filter(|family| family.blame != Blame::Untold)) {
            (Blame::Untold, None) => Verdict::Right,
            (_, None) => Verdict::Unknown,
            (blame, Some(family)) if blame != Blame::Elsewhere && fits(family) => Verdict::Right,
            (Blame::Elsewhere, Some(family)) if family.blame == Blame::Elsewhere => Verdict::Right,
            (Blame::Session, Some(family)) if family.blame == Blame::Session => Verdict::Wrong,
            (Blame::Untold, Some(_)) => Verdict::Wrong,
            _ => Verdict::WrongSide,
        }
    }
}

fn labelled(name: &str) -> Vec<Labelled> {
    let text = fs::read_to_string(root().join("tests/errors").join(name)).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(Labelled::parse).collect()
}

/// Prints the shares by class, and returns the permille of each verdict.
fn shares(name: &str) -> impl Fn(Verdict) -> usize {
    let rows = labelled(name);
    let mut by_class: BTreeMap<&str, BTreeMap<Verdict, usize>> = BTreeMap::new();
    for row in &rows {
        let verdict = row.judge(find(&row.text));
        for class in [row.class.as_str(), "all"] {
            *by_class.entry(class).or_default().entry(verdict).or_default() += 1;
        }
    }
    eprintln!("{name:20} {:>5} {:>7} {:>5} {:>10}", "right", "unknown", "wrong", "wrong side");
    for (class, counts) in &by_class {
        let of = |verdict| counts.get(&verdict).copied().unwrap_or(0);
        let (right, unknown) = (of(Verdict::Right), of(Verdict::Unknown));
        eprintln!("{class:20} {right:5} {unknown:7} {:5} {:10}", of(Verdict::Wrong), of(Verdict::WrongSide));
    }
    let all = by_class["all"].clone();
    move |verdict| all.get(&verdict).copied().unwrap_or(0) * 1000 / rows.len()
}

#[test]
fn most_errors_are_read_and_few_of_them_wrongly() {
    let looked = shares("looked.tsv");
    assert!(looked(Verdict::Right) >= 960 && looked(Verdict::Wrong) <= 7 && looked(Verdict::WrongSide) <= 8);
    let unlooked = shares("unlooked.tsv");
    assert!(unlooked(Verdict::Right) >= 980);
    assert!(unlooked(Verdict::Wrong) + unlooked(Verdict::WrongSide) <= 20);
    assert!(unlooked(Verdict::WrongSide) <= 5);
    let fresh = shares("fresh.tsv");
    assert!(fresh(Verdict::Right) >= 950);
    assert!(fresh(Verdict::Wrong) <= 12 && fresh(Verdict::WrongSide) <= 6);
}

/// What `recover` does, and what `explain` says, must agree.
#[test]
fn what_a_shorter_session_cures_is_of_size() {
    for row in ["looked.tsv", "unlooked.tsv", "fresh.tsv"].into_iter().flat_map(labelled) {
        let family = find(&row.text);
        let is_of_size = family.is_some_and(|family| family.codes.iter().any(|code| code.starts_with('S')));
        let is_length = classify(&row.text) == Cause::ContextOverflow;
        assert!(!is_length || is_of_size || row.blame == Blame::Elsewhere, "{}", row.text);
    }
}

/// A person waits for the answer, and a scan of many sessions for each error that they have recorded.
#[test]
fn a_text_is_read_at_once() {
    let rows = labelled("looked.tsv");
    let long: String = rows.iter().map(|row| row.text.as_str()).collect();
    for text in [long.as_str(), "x ".repeat(100_000).as_str(), "((((".repeat(100_000).as_str()] {
        let begun = Instant::now();
        find(text);
        // A test's machine is slow and busy, and the build without optimization.
        assert!(begun.elapsed().as_secs() < 5, "{} bytes", text.len());
    }
}
