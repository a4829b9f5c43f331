//! Everything in fixtures/: what is found, and what becomes of it, byte for byte.
//!
//! A case is a folder `fixtures/<format>/<case>`: `in.jsonl`, `findings.json` (what `scan` finds in it), `out.jsonl`
//! (what `fix` makes of it), and `policy.args` if it needs other arguments, one a line. `UPDATE=1` writes anew what
//! is expected; read the difference before you believe it. What a fixture expects is what is right.

use crate::support::{Dir, root};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
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

    /// What a check says of it, if it failed.
    fn wrong(&self, checked: Result<(), String>) -> Option<String> {
        checked.err().map(|why| format!("fixtures/{}: {why}", self.name))
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
    let all = Fixture::all();
    let wrong = all.iter().filter_map(|fixture| fixture.wrong(what(fixture, &Dir::in_memory())));
    tell(&wrong.collect::<Vec<_>>());
}

#[track_caller]
pub(crate) fn tell(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} fixtures are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Fixtures that are checked with the same arguments: one run of the program does for all of them.
pub(crate) struct Batch {
    pub(crate) dir: Dir,
    arguments: Vec<String>,
    /// Each with its file, in a folder of its own.
    pub(crate) fixtures: Vec<(Fixture, PathBuf)>,
}

impl Batch {
    /// All fixtures, by their arguments.
    pub(crate) fn all(arguments: impl Fn(&Fixture) -> Vec<&str>) -> impl Iterator<Item = Self> {
        let mut groups: BTreeMap<Vec<String>, Vec<Fixture>> = BTreeMap::new();
        for fixture in Fixture::all() {
            let arguments = arguments(&fixture).into_iter().map(str::to_string).collect();
            groups.entry(arguments).or_default().push(fixture);
        }
        groups.into_iter().map(|(arguments, fixtures)| {
            let dir = Dir::in_memory();
            let write = |fixture: Fixture| {
                let path = dir.write(Path::new(&fixture.name).join(INPUT), fixture.bytes(INPUT));
                (fixture, path)
            };
            let fixtures = fixtures.into_iter().map(write).collect();
            Self { dir, arguments, fixtures }
        })
    }

    /// Runs the program on all files: its line about each, in the order of the fixtures.
    #[track_caller]
    pub(crate) fn run(&self) -> Vec<String> {
        self.run_with(&self.arguments)
    }

    /// The same with other arguments.
    #[track_caller]
    pub(crate) fn run_with<S: AsRef<str>>(&self, arguments: &[S]) -> Vec<String> {
        let paths = self.fixtures.iter().map(|(_, path)| path.to_str().unwrap());
        let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).chain(paths.clone()).collect();
        let run = self.dir.tailor(&arguments);
        let text = run.text();
        let about = |line: &str| parsed(line)["path"].as_str().map(str::to_string);
        let mut lines: BTreeMap<String, String> =
            text.lines().filter_map(|line| Some((about(line)?, line.to_string()))).collect();
        let mut of = |path: &str| lines.remove(path).unwrap_or_else(|| panic!("{path}: {}", run.stderr));
        paths.map(&mut of).collect()
    }

    /// What is wrong, given something that was found out about each fixture.
    pub(crate) fn wrong<T>(
        &self,
        found: &[T],
        what: impl Fn(&Fixture, &Path, &T) -> Result<(), String>,
    ) -> Vec<String> {
        let each = self.fixtures.iter().zip(found);
        each.filter_map(|((fixture, path), found)| fixture.wrong(what(fixture, path, found))).collect()
    }
}

pub(crate) fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
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

/// The findings of a line of `--format json` as they were printed, one a line.
fn findings_of(line: &str) -> Vec<u8> {
    #[derive(serde::Deserialize)]
    struct File<'a> {
        #[serde(borrow)]
        findings: Vec<&'a RawValue>,
    }
    let file: File<'_> = serde_json::from_str(line).unwrap();
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
    let scan = |fixture: &Fixture, _: &Path, line: &String| {
        let format = &parsed(line)["format"];
        if *format != fixture.format() {
            return Err(format!("taken for {format}"));
        }
        let got = findings_of(line);
        if fixture.updated(FINDINGS, &got) {
            return Ok(());
        }
        let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        if parse(&got) == parse(&fixture.bytes(FINDINGS)) {
            return Ok(());
        }
        Err(format!("found {}", String::from_utf8_lossy(&got).trim_end()))
    };
    let batches = Batch::all(|fixture| [&["scan", "--format", "json"][..], &fixture.for_scan()].concat());
    tell(&batches.flat_map(|batch| batch.wrong(&batch.run(), scan)).collect::<Vec<_>>());
}

#[test]
fn fix_mends_it_and_a_second_fix_changes_nothing() {
    let fix = |fixture: &Fixture, path: &Path, (first, got, second): &(Value, Vec<u8>, Value)| {
        if !fixture.updated(OUTPUT, got) {
            same("the file after fix", got, &fixture.bytes(OUTPUT))
                .map_err(|why| format!("{why} ({} {})", first["outcome"], first["reason"]))?;
        }
        if (*got != fixture.bytes(INPUT)) != (first["outcome"] == "fixed") {
            return Err(format!("the outcome is {}", first["outcome"]));
        }
        if !["clean", "findings", "unsupported"].iter().any(|outcome| second["outcome"] == *outcome) {
            return Err(format!("the outcome of a second fix is {}", second["outcome"]));
        }
        same("the file after a second fix", &fs::read(path).unwrap(), got)?;
        let left = fs::read_dir(path.parent().unwrap()).unwrap().count();
        if left == 1 { Ok(()) } else { Err(format!("beside it lies something: {left} names")) }
    };
    let batches = Batch::all(|fixture| fixture.for_fix(&["--format", "json"]));
    let wrong = batches.flat_map(|batch| {
        let first = batch.run();
        let got: Vec<_> = batch.fixtures.iter().map(|(_, path)| fs::read(path).unwrap()).collect();
        let both = first.iter().zip(batch.run()).zip(got);
        let found: Vec<_> = both.map(|((one, two), got)| (parsed(one), got, parsed(&two))).collect();
        batch.wrong(&found, fix)
    });
    tell(&wrong.collect::<Vec<_>>());
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
    let dry_run = |fixture: &Fixture, path: &Path, line: &String| {
        let (before, after, file) = (fixture.bytes(INPUT), fixture.bytes(OUTPUT), parsed(line));
        same("the file after a dry run", &fs::read(path).unwrap(), &before)?;
        let predicted = file["bytes_after"].as_u64().unwrap_or(before.len() as u64);
        if predicted == after.len() as u64 && (file["outcome"] == "would-fix") == (before != after) {
            return Ok(());
        }
        Err(format!("{} with {predicted} bytes, wanted {}", file["outcome"], after.len()))
    };
    let batches = Batch::all(|fixture| fixture.for_fix(&["--dry-run", "--format", "json"]));
    tell(&batches.flat_map(|batch| batch.wrong(&batch.run(), dry_run)).collect::<Vec<_>>());
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
    let formats: BTreeSet<&str> = FORMATS.iter().map(|format| format.name).collect();
    assert_eq!(with_cases, formats);
}
