//! tests/profiles/cases.md: each case of another system is in an existing test or fixture, and each of our cases is in the
//! list; and what the profiles do to real transcripts.

use crate::support::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use transcript::mend;
use transcript::policy::{Policy, SignedThinking};
use transcript::profile::PROFILES;

/// The cases of other systems, with their numbers.
const CASES: &str = "crates/transcript/src/model/profile/tests.rs";

/// A row of the tables of cases.
struct CaseRow {
    cases: Vec<String>,
    verdict: String,
    shown_by: Vec<String>,
}

/// The texts in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

fn rows() -> Vec<CaseRow> {
    let tables = fs::read_to_string(root().join("tests/profiles/cases.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        let [cases, verdict, shown_by, ""] = cells[..] else { panic!("not three columns: {line}") };
        let (cases, shown_by) = (quoted(cases), quoted(shown_by));
        (!cases.is_empty()).then(|| CaseRow { cases, verdict: verdict.to_string(), shown_by })
    };
    tables.lines().filter_map(row).collect()
}

/// All test functions in our Rust files, by name, with their text and the comment above.
fn tests() -> BTreeMap<String, (PathBuf, String)> {
    let mut found = BTreeMap::new();
    for folder in ["crates", "tests"] {
        let mut files = Vec::new();
        crate::support::list(&root().join(folder), &root().join(folder), &mut files);
        let paths = files.iter().map(|name| Path::new(folder).join(name));
        for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
            let text = fs::read_to_string(root().join(&path)).unwrap();
            for part in text.split("\n\n") {
                let Some((_, rest)) = part.split_once("#[test]") else { continue };
                let Some((_, rest)) = rest.split_once("fn ") else { continue };
                let function = rest.split('(').next().unwrap();
                // Up to the function's end, which may be after empty lines.
                let from = text.find(part).unwrap();
                let length = text[from..].find("\n}\n").map_or(text.len() - from, |end| end + 2);
                found.insert(function.to_string(), (path.clone(), text[from..from + length].to_string()));
            }
        }
    }
    found
}

#[test]
fn each_case_of_another_system_is_where_the_table_says() {
    let tests = tests();
    let mut wrong = Vec::new();
    for CaseRow { cases, verdict, shown_by } in rows() {
        let told = |word: &str| verdict.strip_prefix(word);
        let explained =
            told("differs on purpose: ").or(told("not of a transcript: ")).or(told("elsewhere: "));
        let holds = told("holds").is_some();
        if !holds && explained.is_none_or(str::is_empty) {
            wrong.push(format!("{cases:?}: `{verdict}` is no verdict"));
        }
        if (holds || verdict.starts_with("differs")) == shown_by.is_empty() {
            wrong.push(format!("{cases:?}: something shows it, or it says why nothing does"));
        }
        let mut told_in = String::new();
        let mut elsewhere = false;
        for name in &shown_by {
            match tests.get(name) {
                Some((path, text)) if path == Path::new(CASES) => told_in += text,
                Some(_) => elsewhere = true,
                None if root().join("fixtures").join(name).join("in.jsonl").is_file() => elsewhere = true,
                None => wrong.push(format!("{name} is neither a test nor a fixture")),
            }
        }
        let missing = cases.iter().filter(|case| !told_in.contains(&case.replace('"', "\\\"")));
        wrong.extend(
            missing
                .filter(|_| !elsewhere && !shown_by.is_empty())
                .map(|case| format!("no test names {case}")),
        );
    }
    assert!(wrong.is_empty(), "tests/profiles/cases.md:\n{}", wrong.join("\n"));
}

#[test]
fn each_case_in_our_tables_is_in_the_list() {
    let mut listed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows() {
        for name in row.shown_by {
            listed.entry(name).or_default().extend(row.cases.iter().map(|case| case.replace('"', "\\\"")));
        }
    }
    let (mut count, mut wrong) = (0, Vec::new());
    for (name, (_, text)) in tests().iter().filter(|(_, (path, _))| path == Path::new(CASES)) {
        for label in labels(text) {
            count += 1;
            if !listed
                .get(name)
                .is_some_and(|cases| cases.iter().any(|case| label.starts_with(case.as_str())))
            {
                wrong.push(format!("{name}: {label}"));
            }
        }
    }
    assert!(wrong.is_empty(), "tests/profiles/cases.md does not list\n{}", wrong.join("\n"));
    assert!(count > 70, "{count} cases were found");
}

/// The first word of each row of a table in a test.
fn labels(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let first = |n: usize| {
        let rest = lines[n].strip_prefix("(\"").or_else(|| {
            let begins = n > 0 && lines[n - 1] == "(";
            lines[n].strip_prefix('"').filter(|_| begins)
        })?;
        Some(&rest[..rest.find("\",")?])
    };
    (0..lines.len()).filter_map(first).collect()
}

/// What a profile does to all files of a format.
#[derive(Default)]
struct Sum {
    files: usize,
    mended: usize,
    before: u64,
    after: u64,
    codes: BTreeMap<&'static str, usize>,
}

/// Prints what each profile does, format by format. Each plan is applied, and must leave nothing to repair.
#[test]
fn profiles_over_real_transcripts() {
    let Some(files) = crate::folder::real_files() else { return };
    let mut all: BTreeMap<(&str, usize), Sum> = BTreeMap::new();
    let mut refused = BTreeSet::new();
    for path in files {
        let bytes = fs::read(&path).unwrap();
        for (n, profile) in PROFILES.iter().enumerate() {
            let mended = mend(&bytes.as_slice(), &profile.policy()).unwrap();
            let Some(format) = mended.before.facts.format else { continue };
            let sum = all.entry((format.name, n)).or_default();
            sum.files += 1;
            sum.before += bytes.len() as u64;
            for finding in &mended.before.findings {
                *sum.codes.entry(finding.rule.code()).or_default() += 1;
            }
            match mended.repair {
                Ok(repair) => {
                    sum.mended += usize::from(!repair.plan.is_empty());
                    sum.after += repair.plan.length_after();
                }
                Err(worse) => _ = refused.insert(format!("{} {}: {worse}", path.display(), profile.name)),
            }
        }
    }
    eprintln!(
        "| format | profile | files mended | before, MB | after, MB | ratio | findings |\n|---|---|---:|---:|---:|---:|---|"
    );
    for ((format, n), Sum { files, mended, before, after, codes }) in all {
        let megabytes = |bytes: u64| format!("{}.{}", bytes / 1_000_000, bytes / 100_000 % 10);
        let codes: Vec<String> = codes.iter().map(|(code, count)| format!("{code} {count}")).collect();
        eprintln!(
            "| {format} | `{}` | {mended} of {files} | {} | {} | {} % | {} |",
            PROFILES[n].name,
            megabytes(before),
            megabytes(after),
            after * 100 / before,
            codes.join(", ")
        );
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

/// Prints how much of the context S24 takes out of sessions of more than 200 kB, and with signed thinking ignored.
#[test]
fn superseded_reads_over_real_transcripts() {
    let Some(files) = crate::folder::real_files() else { return };
    let mut all: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    let choices = [("thinking kept", SignedThinking::Keep), ("thinking ignored", SignedThinking::Ignore)];
    for bytes in files.iter().map(|path| fs::read(path).unwrap()).filter(|bytes| bytes.len() > 200_000) {
        for (name, thinking) in choices {
            let mut policy = Policy { thinking, ..Policy::default() };
            policy.selection.select = vec!["S24".to_string()];
            policy.selection.allow = vec!["S24".to_string()];
            let mended = mend(&bytes.as_slice(), &policy).unwrap();
            let Some(format) = mended.before.facts.format.filter(|format| !format.reads.is_empty()) else {
                continue;
            };
            let repair = mended.repair.unwrap();
            let before = mended.before.context_tokens.tokens.max(1);
            let after = repair.after.map_or(before, |after| after.context_tokens.tokens);
            assert!(after <= before, "{before} {after}");
            all.entry((format.name, name)).or_default().push((before - after) * 1_000 / before);
        }
    }
    for ((format, name), mut saved) in all {
        saved.sort_unstable();
        let (median, most) = (saved[saved.len() / 2], saved[saved.len() - 1]);
        eprintln!(
            "{format}, {name}: median {}.{} % of the context of {} sessions, most {}.{} %",
            median / 10,
            median % 10,
            saved.len(),
            most / 10,
            most % 10
        );
    }
}
