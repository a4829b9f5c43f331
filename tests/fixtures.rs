//! Everything in fixtures/: what is found, and what becomes of it, byte for byte.
//!
//! A case is a folder `fixtures/<format>/<case>`: `in.jsonl`, `findings.json` (what `scan` finds in it), `out.jsonl`
//! (what `fix` makes of it), and `policy.args` if it needs other arguments, one a line. `UPDATE=1` writes anew what
//! is expected; read the difference before you believe it. What a fixture expects is what is right.

use crate::support::{Dir, root};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use transcript::format::FORMATS;
use transcript::rule::Group;

pub(crate) const INPUT: &str = "in.jsonl";
const OUTPUT: &str = "out.jsonl";
const FINDINGS: &str = "findings.json";
const ARGUMENTS: &str = "policy.args";

pub(crate) struct Fixture {
    folder: PathBuf,
    /// `<format>/<case>`.
    pub(crate) name: String,
    arguments: Vec<String>,
}

impl Fixture {
    pub(crate) fn all() -> Vec<Self> {
        let fixtures = root().join("fixtures");
        let cases = folders(&fixtures).into_iter().flat_map(|format| folders(&format));
        cases.map(|folder| Self::new(&fixtures, folder)).collect()
    }

    fn new(fixtures: &Path, folder: PathBuf) -> Self {
        let name = folder.strip_prefix(fixtures).unwrap().to_str().unwrap().to_string();
        let arguments = fs::read_to_string(folder.join(ARGUMENTS)).unwrap_or_default();
        Self { folder, name, arguments: arguments.lines().map(str::to_string).collect() }
    }

    pub(crate) fn format(&self) -> &str {
        self.name.split('/').next().unwrap()
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.join(name)).unwrap_or_else(|error| panic!("{}/{name}: {error}", self.name))
    }

    /// The arguments for `scan`, to which nothing can be allowed, and which waits for nobody.
    fn for_scan(&self) -> Vec<&str> {
        let mut arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let of_fix = |argument: &&str| ["--allow", "--settle"].contains(argument);
        while let Some(at) = arguments.iter().position(of_fix) {
            arguments.drain(at..at + 2);
        }
        arguments
    }

    pub(crate) fn for_fix<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        // What a check allows, `fix` does not know.
        let own = self.arguments.iter().map(String::as_str);
        let own =
            own.filter(|argument| !argument.starts_with("--max-") && !argument.starts_with("--tolerance"));
        let settles = self.arguments.iter().any(|argument| argument == "--settle");
        let fix = ["fix"].into_iter().chain((!settles).then_some("--settle=0"));
        fix.chain(own).chain(more.iter().copied()).collect()
    }

    /// Whether `fix` makes the guarded fixes of a rule.
    fn allows(&self, code: &str) -> bool {
        self.arguments.windows(2).any(|pair| match pair[0].as_str() {
            "--allow" => pair[1] == code,
            "--only" => Group::find(&pair[1]).is_some_and(|group| group.codes().any(|own| own == code)),
            _ => false,
        })
    }

    /// The code of each finding, and whether its fix is made. One that could be and is not would be made by a second
    /// run, which changes nothing.
    pub(crate) fn found(&self) -> Vec<(String, bool)> {
        let findings: Vec<Value> = serde_json::from_slice(&self.bytes(FINDINGS)).unwrap();
        let changed = self.bytes(INPUT) != self.bytes(OUTPUT);
        let found = |finding: &Value| {
            let code = finding["code"].as_str().unwrap();
            let fixable = match finding["fix"].as_str() {
                Some("safe") => true,
                Some("guarded") => self.allows(code),
                _ => false,
            };
            (code.to_string(), changed && fixable)
        };
        findings.iter().map(found).collect()
    }

    /// Whether the expectation is to be written instead of checked.
    fn updated(&self, name: &str, bytes: &[u8]) -> bool {
        let update = std::env::var_os("UPDATE").is_some();
        if update {
            fs::write(self.folder.join(name), bytes).unwrap();
        }
        update
    }
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let mut inside: Vec<PathBuf> = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path()).collect();
    inside.sort();
    inside.into_iter().filter(|path| path.is_dir()).collect()
}

/// Runs a check on all fixtures and tells of all that fail.
pub(crate) fn check(what: impl Fn(&Fixture, &Dir) -> Result<(), String>) {
    let wrong: Vec<String> = Fixture::all()
        .iter()
        .filter_map(|fixture| {
            what(fixture, &Dir::new()).err().map(|why| format!("fixtures/{}: {why}", fixture.name))
        })
        .collect();
    assert!(wrong.is_empty(), "{} fixtures are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn same(what: &str, got: &[u8], want: &[u8]) -> Result<(), String> {
    if got == want {
        return Ok(());
    }
    let line =
        got.split(|&b| b == b'\n').zip(want.split(|&b| b == b'\n')).position(|(got, want)| got != want);
    Err(format!(
        "{what} differs, first in line {}",
        line.map_or_else(|| "past one's end".into(), |n| (n + 1).to_string())
    ))
}

/// The findings of a line of `--format json` as it was printed, one a line.
fn findings_of(stdout: &str) -> Vec<u8> {
    #[derive(serde::Deserialize)]
    struct File<'a> {
        #[serde(borrow)]
        findings: Vec<&'a RawValue>,
    }
    let file: File<'_> = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    let mut text = String::from("[");
    for (n, finding) in file.findings.iter().enumerate() {
        text += if n > 0 { ",\n  " } else { "\n  " };
        text += &without_fingerprint(finding.get());
    }
    text += if file.findings.is_empty() { "]\n" } else { "\n]\n" };
    text.into_bytes()
}

/// Fingerprints are tested where it is tested what they are for.
fn without_fingerprint(finding: &str) -> String {
    let (before, rest) = finding.split_once(r#","fingerprint":""#).unwrap();
    format!("{before}{}", rest.split_once('"').unwrap().1)
}

#[test]
fn scan_finds_what_is_wrong_and_nothing_else() {
    check(|fixture, dir| {
        let path = dir.write("in.jsonl", fixture.bytes(INPUT));
        let arguments = ["scan", "--format", "json", path.to_str().unwrap()];
        let run = dir.tailor(&[&arguments[..], &fixture.for_scan()].concat());
        let file = run.file();
        if file["format"] != fixture.format() {
            return Err(format!("taken for {}", file["format"]));
        }
        let got = findings_of(&run.text());
        if fixture.updated(FINDINGS, &got) {
            return Ok(());
        }
        let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        if parse(&got) == parse(&fixture.bytes(FINDINGS)) {
            return Ok(());
        }
        Err(format!("found {}", String::from_utf8_lossy(&got).trim_end()))
    });
}

#[test]
fn fix_mends_it_and_a_second_fix_changes_nothing() {
    check(|fixture, dir| {
        let path = dir.write("in.jsonl", fixture.bytes(INPUT));
        let arguments = fixture.for_fix(&["--format", "json", path.to_str().unwrap()]);
        let first = dir.tailor(&arguments).file();
        let got = fs::read(&path).unwrap();
        if !fixture.updated(OUTPUT, &got) {
            same("the file after fix", &got, &fixture.bytes(OUTPUT))
                .map_err(|why| format!("{why} ({} {})", first["outcome"], first["reason"]))?;
        }
        let changed = got != fixture.bytes(INPUT);
        if changed != (first["outcome"] == "fixed") {
            return Err(format!("the outcome is {}", first["outcome"]));
        }
        let second = dir.tailor(&arguments).file();
        if !["clean", "findings", "unsupported"].iter().any(|outcome| second["outcome"] == *outcome) {
            return Err(format!("the outcome of a second fix is {}", second["outcome"]));
        }
        same("the file after a second fix", &fs::read(&path).unwrap(), &got)?;
        let left = dir.names();
        if left == ["in.jsonl"] { Ok(()) } else { Err(format!("beside it lies something: {left:?}")) }
    });
}

#[test]
fn a_pipe_gives_the_same_bytes() {
    check(|fixture, dir| {
        let run = dir.pipe(&fixture.bytes(INPUT), &fixture.for_fix(&["-"]));
        same("standard output", &run.stdout, &fixture.bytes(OUTPUT))
    });
}

#[test]
fn a_dry_run_predicts_and_changes_nothing() {
    check(|fixture, dir| {
        let (before, after) = (fixture.bytes(INPUT), fixture.bytes(OUTPUT));
        let path = dir.write("in.jsonl", &before);
        let arguments = fixture.for_fix(&["--dry-run", "--format", "json", path.to_str().unwrap()]);
        let file = dir.tailor(&arguments).file();
        same("the file after a dry run", &fs::read(&path).unwrap(), &before)?;
        let predicted = file["bytes_after"].as_u64().unwrap_or(before.len() as u64);
        if predicted == after.len() as u64 && (file["outcome"] == "would-fix") == (before != after) {
            return Ok(());
        }
        Err(format!("{} with {predicted} bytes, wanted {}", file["outcome"], after.len()))
    });
}

#[test]
fn each_case_is_complete() {
    for fixture in Fixture::all() {
        let names: BTreeSet<_> =
            fs::read_dir(&fixture.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        for name in [INPUT, OUTPUT, FINDINGS] {
            assert!(names.contains(std::ffi::OsStr::new(name)), "fixtures/{} has no {name}", fixture.name);
        }
        let known = |name: &std::ffi::OsString| {
            [INPUT, OUTPUT, FINDINGS, ARGUMENTS].iter().any(|known| name == known)
        };
        assert!(names.iter().all(known), "fixtures/{} holds more: {names:?}", fixture.name);
    }
}

#[test]
fn each_format_has_cases_and_each_folder_is_a_format() {
    let fixtures = Fixture::all();
    let with_cases: BTreeSet<&str> = fixtures.iter().map(Fixture::format).collect();
    let formats: BTreeSet<&str> = FORMATS.iter().map(|format| format.name()).collect();
    assert_eq!(with_cases, formats);
}
