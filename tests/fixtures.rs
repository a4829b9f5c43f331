//! The stories of tests/stories and all fixtures: what is found, and what `fix` makes of it.
//!
//! A story is written once and spelled in each format; see there. What only one format can show is a folder
//! `fixtures/<format>/<case>`: `in.jsonl`, `out.jsonl` if `fix` changes it, and `policy.args`, one per line, if it
//! needs other arguments. `fixtures/<format>/findings.txt` has a line per case: what `scan` finds. `UPDATE=1` rewrites
//! what is expected of folders; read the difference before you believe it. What a fixture expects must be what is
//! right.
//!
//! The wording of findings is in tests/snapshots/messages.txt, and nowhere else.

use crate::stories::{self, FindingOutcome, SpelledStory, StoryFinding};
use crate::support::{Dir, as_written, root, updates};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use transcript::format::FORMATS;
use transcript::rule::Group;

/// The name of a case's file.
pub(crate) const INPUT: &str = "in.jsonl";
const OUTPUT: &str = "out.jsonl";
const FINDINGS: &str = "findings.txt";
const ARGUMENTS: &str = "policy.args";

/// A case: a folder, or a story in one format.
pub(crate) struct Fixture {
    /// `<format>/<case>`, or `<format>/stories/<story>`.
    pub(crate) name: String,
    arguments: Vec<String>,
    pub(crate) input: Vec<u8>,
    expected: Expected,
}

/// The expected result of a case.
enum Expected {
    /// For a folder: its findings as [`row`] writes them, and the file after `fix`.
    Recorded { findings: String, output: Vec<u8> },
    /// For a story: its findings, and the lines that a repair must not change.
    Told { shown: Vec<StoryFinding>, texts: Vec<String> },
}

impl Fixture {
    pub(crate) fn all() -> Vec<Self> {
        let told = stories::all().into_iter().map(Self::told);
        Self::recorded().into_iter().chain(told).collect()
    }

    /// The fixtures in folders.
    fn recorded() -> Vec<Self> {
        let formats = folders(&root().join("fixtures"));
        let of_format = |format: PathBuf| {
            let findings = findings_of_format(&format);
            folders(&format).into_iter().map(move |folder| Self::new(&folder, &findings))
        };
        formats.into_iter().flat_map(of_format).collect()
    }

    fn new(folder: &Path, findings: &BTreeMap<String, String>) -> Self {
        let case = folder.file_name().unwrap().to_str().unwrap();
        let format = folder.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let arguments = fs::read_to_string(folder.join(ARGUMENTS)).unwrap_or_default();
        let input = fs::read(folder.join(INPUT)).unwrap();
        let output = fs::read(folder.join(OUTPUT)).unwrap_or_else(|_| input.clone());
        let findings = findings.get(case).cloned().unwrap_or_else(|| "no line in findings.txt".into());
        Self {
            name: format!("{format}/{case}"),
            arguments: arguments.lines().map(str::to_string).collect(),
            input,
            expected: Expected::Recorded { findings, output },
        }
    }

    fn told(told: SpelledStory) -> Self {
        Self {
            name: format!("{}/stories/{}", told.format, told.story),
            arguments: told.arguments,
            input: told.bytes,
            expected: Expected::Told { shown: told.shown, texts: told.texts },
        }
    }

    pub(crate) fn format(&self) -> &str {
        self.name.split('/').next().unwrap()
    }

    /// The arguments for `scan`, without those that only `fix` has.
    fn for_scan(&self) -> Vec<&str> {
        let mut arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let of_fix = |argument: &&str| ["--allow", "--settle"].contains(argument);
        while let Some(at) = arguments.iter().position(of_fix) {
            arguments.drain(at..at + 2);
        }
        arguments
    }

    pub(crate) fn for_fix<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        // `fix` has no options for a check's limits, which are written with `=`.
        let is_of_check = |argument: &&str| {
            argument.starts_with("--tolerance") || (argument.starts_with("--max-") && argument.contains('='))
        };
        let own = self.arguments.iter().map(String::as_str).filter(|argument| !is_of_check(argument));
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

    /// What happens to a finding with this kind of fix.
    fn outcome(&self, code: &str, fix: &str) -> FindingOutcome {
        match fix {
            "safe" => FindingOutcome::Mended,
            "guarded" if self.allows(code) => FindingOutcome::Mended,
            "guarded" => FindingOutcome::Asks,
            "held" => FindingOutcome::Held,
            _ => FindingOutcome::Reported,
        }
    }

    /// The code of each finding, and whether its fix is made. If a possible fix were not made, a second run would make
    /// it, but a second run must change nothing.
    pub(crate) fn found(&self) -> Vec<(String, bool)> {
        match &self.expected {
            Expected::Told { shown, .. } => {
                let found =
                    |shown: &StoryFinding| (shown.code.clone(), shown.outcome == FindingOutcome::Mended);
                shown.iter().map(found).collect()
            }
            Expected::Recorded { findings, output } => {
                let found = |one: &str| {
                    let words: Vec<&str> = one.split(' ').collect();
                    let mended = self.outcome(words[0], words[3]) == FindingOutcome::Mended;
                    (words[0].to_string(), *output != self.input && mended)
                };
                findings.split(", ").filter(|one| !one.is_empty()).map(found).collect()
            }
        }
    }

    /// Whether `fix` changes the file.
    fn changes(&self) -> bool {
        match &self.expected {
            Expected::Recorded { output, .. } => *output != self.input,
            Expected::Told { shown, .. } => shown.iter().any(|shown| shown.outcome == FindingOutcome::Mended),
        }
    }

    /// The error of a check, with the fixture's name.
    fn wrong(&self, checked: Result<(), String>) -> Option<String> {
        checked.err().map(|why| format!("fixtures/{}: {why}", self.name))
    }
}

/// The findings of each case of a format.
fn findings_of_format(format: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(format.join(FINDINGS)).unwrap_or_default();
    let rows = text.lines().map(|line| line.split_once(':').unwrap());
    rows.map(|(case, findings)| (case.to_string(), findings.trim().to_string())).collect()
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let mut inside: Vec<PathBuf> = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path()).collect();
    inside.sort();
    inside.into_iter().filter(|path| path.is_dir()).collect()
}

#[track_caller]
pub(crate) fn tell(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} fixtures are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Fixtures with the same arguments, which one run of the program checks together.
pub(crate) struct FixtureBatch {
    pub(crate) dir: Dir,
    arguments: Vec<String>,
    /// Each fixture with its file, in a folder of its own.
    pub(crate) fixtures: Vec<(Fixture, PathBuf)>,
}

impl FixtureBatch {
    /// All fixtures, grouped by their arguments.
    pub(crate) fn all(arguments: impl Fn(&Fixture) -> Vec<&str>) -> impl Iterator<Item = Self> {
        let mut groups: BTreeMap<Vec<String>, Vec<Fixture>> = BTreeMap::new();
        for fixture in Fixture::all() {
            let arguments = arguments(&fixture).into_iter().map(str::to_string).collect();
            groups.entry(arguments).or_default().push(fixture);
        }
        groups.into_iter().map(|(arguments, fixtures)| {
            let dir = Dir::in_memory();
            let write = |fixture: Fixture| {
                let path = dir.write(Path::new(&fixture.name).join(INPUT), &fixture.input);
                (fixture, path)
            };
            let fixtures = fixtures.into_iter().map(write).collect();
            Self { dir, arguments, fixtures }
        })
    }

    /// The arguments that `scan` and `fix` share.
    fn scan_arguments(&self) -> Vec<String> {
        let own = self.fixtures[0].0.for_scan().into_iter();
        own.filter(|argument| self.arguments.iter().any(|own| own == argument)).map(str::to_string).collect()
    }

    /// Runs the program on all files. Returns its lines, in the order of the fixtures.
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
        let here = self.dir.path("");
        // Files below the working directory are named from there.
        let mut of = |path: &str| {
            let below = Path::new(path).strip_prefix(&here).unwrap().to_str().unwrap();
            lines.remove(below).unwrap_or_else(|| panic!("{path}: {}", run.stderr))
        };
        paths.map(&mut of).collect()
    }

    /// All errors, given something about each fixture.
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

/// The findings of a line of `--format json` without their wording: code, line, severity, fix.
fn row(findings: &Value) -> String {
    let text = |finding: &Value| {
        let word = |key: &str| finding[key].as_str().unwrap().to_string();
        format!("{} {} {} {}", word("code"), finding["line"], word("severity"), word("fix"))
    };
    findings.as_array().unwrap().iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Checks that a story has the findings that it lists, on its lines.
fn are_those(fixture: &Fixture, shown: &[StoryFinding], findings: &Value) -> Result<(), String> {
    let mut missing: Vec<&StoryFinding> = shown.iter().collect();
    for finding in findings.as_array().unwrap() {
        let (code, line) = (finding["code"].as_str().unwrap(), finding["line"].as_u64().unwrap());
        let outcome = fixture.outcome(code, finding["fix"].as_str().unwrap());
        let is_it = |shown: &&StoryFinding| {
            shown.code == code && shown.outcome == outcome && shown.lines.contains(&line)
        };
        let Some(at) = missing.iter().position(is_it) else {
            return Err(format!("{code} in line {line} is {outcome:?}, and the story does not tell of it"));
        };
        missing.remove(at);
    }
    if missing.is_empty() { Ok(()) } else { Err(format!("not found: {missing:?}")) }
}

/// A line without what a repair may change in any line: its parent's id, and a number by which Claude Code judges how long
/// the session is (S15).
fn unlinked(line: &str) -> String {
    let mut line = line.replace(r#""input_tokens":3,"#, r#""input_tokens":0,"#);
    for key in [r#""parentId":""#, r#""parentUuid":""#] {
        if let Some(at) = line.find(key) {
            let end = line[at + key.len()..].find('"').map_or(line.len(), |end| at + key.len() + end + 1);
            line.replace_range(at..end, "");
        }
    }
    line
}

/// Checks that a repaired story has all of its messages, except lines with a finding.
fn says_the_same(
    fixture: &Fixture,
    shown: &[StoryFinding],
    texts: &[String],
    after: &[u8],
) -> Result<(), String> {
    let text = String::from_utf8_lossy(after);
    let lines: BTreeSet<String> = text.lines().map(unlinked).collect();
    if let Some(gone) = texts.iter().find(|line| !lines.contains(&unlinked(line))) {
        return Err(format!("nothing was wrong with a line that is gone: {gone}"));
    }
    let mended = || shown.iter().filter(|shown| shown.outcome == FindingOutcome::Mended);
    let is_shorter = after.len() < fixture.input.len();
    // A label may be longer than the wrong one, and words longer than a small picture.
    let shortens = |shown: &StoryFinding| shown.code.starts_with('S') && shown.code != "S4";
    if mended().next().is_some() && mended().all(shortens) && !is_shorter {
        return Err("it did not become shorter".into());
    }
    Ok(())
}

#[test]
fn scan_finds_what_is_wrong_and_nothing_else() {
    let scan = |fixture: &Fixture, _: &Path, line: &String| {
        let file = parsed(line);
        if file["format"] != fixture.format() {
            return Err(format!("taken for {}", file["format"]));
        }
        match &fixture.expected {
            Expected::Recorded { .. } if updates() => Ok(()),
            Expected::Recorded { findings, .. } if row(&file["findings"]) == *findings => Ok(()),
            Expected::Recorded { .. } => Err(format!("found {}", row(&file["findings"]))),
            Expected::Told { shown, .. } => are_those(fixture, shown, &file["findings"]),
        }
    };
    let (mut wrong, mut rows) = (Vec::new(), BTreeMap::<String, BTreeMap<String, String>>::new());
    let mut words = BTreeSet::new();
    for batch in
        FixtureBatch::all(|fixture| [&["scan", "--format", "json"][..], &fixture.for_scan()].concat())
    {
        let lines = batch.run();
        wrong.extend(batch.wrong(&lines, scan));
        for ((fixture, _), line) in batch.fixtures.iter().zip(&lines) {
            let findings = &parsed(line)["findings"];
            words.extend(findings.as_array().unwrap().iter().map(message));
            if let Expected::Recorded { .. } = fixture.expected {
                let (format, case) = fixture.name.split_once('/').unwrap();
                rows.entry(format.into()).or_default().insert(case.into(), row(findings));
            }
        }
    }
    if updates() {
        for (format, cases) in rows {
            let text: String = cases
                .iter()
                .map(|(case, row)| format!("{case}: {row}").trim_end().to_string() + "\n")
                .collect();
            fs::write(root().join("fixtures").join(format).join(FINDINGS), text).unwrap();
        }
    }
    tell(&wrong);
    each_rule_has_its_words(&words);
}

/// The message of a finding, with a letter in place of each number.
fn message(finding: &Value) -> String {
    let word = |key: &str| finding[key].as_str().unwrap_or_default();
    let text = match word("reason") {
        "" => format!("{}: {}", word("code"), word("message")),
        reason => format!("{}: {} [{reason}]", word("code"), word("message")),
    };
    let mut out = String::new();
    for one in text.split_inclusive(' ') {
        let (is_code, digits) =
            (one.ends_with(": ") && out.is_empty(), one.starts_with(|c: char| c.is_ascii_digit()));
        if digits && !is_code {
            let rest = one.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            out.push('N');
            out += rest;
        } else {
            out += one;
        }
    }
    out
}

/// tests/snapshots/messages.txt: each message of each rule that a case shows.
fn each_rule_has_its_words(words: &BTreeSet<String>) {
    let path = root().join("tests/snapshots/messages.txt");
    as_written(&path, &words.iter().map(|line| line.clone() + "\n").collect::<String>());
}

#[test]
fn fix_does_what_a_dry_run_predicts_and_a_second_fix_changes_nothing() {
    let fix = |fixture: &Fixture, path: &Path, (first, got, second): &(Value, Vec<u8>, Value)| {
        match &fixture.expected {
            Expected::Recorded { .. } if updates() => write_output(fixture, got),
            Expected::Recorded { output, .. } => same("the file after fix", got, output)
                .map_err(|why| format!("{why} ({} {})", first["outcome"], first["reason"]))?,
            Expected::Told { shown, texts } => says_the_same(fixture, shown, texts, got)?,
        }
        let changed = *got != fixture.input;
        if changed != (first["outcome"] == "fixed") || (!updates() && changed != fixture.changes()) {
            return Err(format!("the outcome is {}", first["outcome"]));
        }
        if !["clean", "findings", "unsupported"].iter().any(|outcome| second["outcome"] == *outcome) {
            return Err(format!("the outcome of a second fix is {}", second["outcome"]));
        }
        same("the file after a second fix", &fs::read(path).unwrap(), got)?;
        let left = fs::read_dir(path.parent().unwrap()).unwrap().count();
        if left == 1 { Ok(()) } else { Err(format!("beside it lies something: {left} names")) }
    };
    let batches = FixtureBatch::all(|fixture| fixture.for_fix(&["--format", "json"]));
    let wrong = batches.flat_map(|batch| {
        let dry = batch.run_with(&[&batch.arguments[..], &["--dry-run".to_string()]].concat());
        let stays = |_: &Fixture, path: &Path, before: &Vec<u8>| {
            same("a file after a dry run", &fs::read(path).unwrap(), before)
        };
        let inputs: Vec<_> = batch.fixtures.iter().map(|(fixture, _)| fixture.input.clone()).collect();
        let mut wrong = batch.wrong(&inputs, stays);
        let first = batch.run();
        let got: Vec<_> = batch.fixtures.iter().map(|(_, path)| fs::read(path).unwrap()).collect();
        let scan = ["scan", "--format", "json"].map(str::to_string);
        let after = batch.run_with(&[&scan[..], &batch.scan_arguments()].concat());
        wrong.extend(batch.wrong(&after, |fixture, _, line| shows_what_stays(fixture, line)));
        let predicted: Vec<_> = dry.iter().map(|line| parsed(line)).zip(&got).collect();
        wrong.extend(batch.wrong(&predicted, |fixture, _, (told, got)| was_predicted(fixture, told, got)));
        let both = first.iter().zip(batch.run()).zip(got);
        let found: Vec<_> = both.map(|((one, two), got)| (parsed(one), got, parsed(&two))).collect();
        wrong.extend(batch.wrong(&found, fix));
        wrong
    });
    tell(&wrong.collect::<Vec<_>>());
}

fn write_output(fixture: &Fixture, got: &[u8]) {
    let path = root().join("fixtures").join(&fixture.name).join(OUTPUT);
    if *got != fixture.input {
        fs::write(path, got).unwrap();
    } else if path.exists() {
        fs::remove_file(path).unwrap();
    }
}

/// After a repair, a story has the findings that it marks as remaining, and no others.
fn shows_what_stays(fixture: &Fixture, line: &str) -> Result<(), String> {
    let Expected::Told { shown, .. } = &fixture.expected else { return Ok(()) };
    // Only `scan` is given limits.
    let stays =
        shown.iter().filter(|shown| shown.outcome != FindingOutcome::Mended && !shown.code.starts_with('L'));
    let mut want: Vec<&str> = stays.map(|shown| shown.code.as_str()).collect();
    let file = parsed(line);
    let findings = file["findings"].as_array().unwrap();
    let mut got: Vec<&str> = findings.iter().map(|one| one["code"].as_str().unwrap()).collect();
    want.sort_unstable();
    got.sort_unstable();
    if got == want { Ok(()) } else { Err(format!("{got:?} are left instead of {want:?}")) }
}

/// A pipe must give what a file gives. One case per format and set of arguments is enough.
#[test]
fn a_pipe_gives_the_same_bytes() {
    let mut seen = BTreeSet::new();
    let wrong = Fixture::recorded().into_iter().filter_map(|fixture| {
        let Expected::Recorded { output, .. } = &fixture.expected else { return None };
        let is_new = seen.insert((fixture.format().to_string(), fixture.changes()));
        if !is_new && !seen.insert((fixture.arguments.join(" "), fixture.changes())) {
            return None;
        }
        let run = Dir::in_memory().pipe(&fixture.input, &fixture.for_fix(&["-"]));
        fixture.wrong(same("standard output", &run.stdout, output))
    });
    tell(&wrong.collect::<Vec<_>>());
}

/// Checks that a dry run has told what `fix` did: whether it changes the file, and to which size.
fn was_predicted(fixture: &Fixture, told: &Value, got: &[u8]) -> Result<(), String> {
    let size = told["bytes_after"].as_u64().unwrap_or(fixture.input.len() as u64);
    if size == got.len() as u64 && (told["outcome"] == "would-fix") == (got != fixture.input) {
        return Ok(());
    }
    Err(format!("a dry run predicts {} with {size} bytes", told["outcome"]))
}

#[test]
fn each_folder_is_complete_and_holds_nothing_else() {
    for format in folders(&root().join("fixtures")) {
        let rows = findings_of_format(&format);
        let cases: BTreeSet<String> = folders(&format).iter().map(|case| last(case)).collect();
        assert_eq!(cases, rows.into_keys().collect(), "{}: {FINDINGS}", format.display());
        for case in folders(&format) {
            let names: BTreeSet<String> =
                fs::read_dir(&case).unwrap().map(|entry| last(&entry.unwrap().path())).collect();
            assert!(names.contains(INPUT), "{} has no {INPUT}", case.display());
            let known = |name: &String| [INPUT, OUTPUT, ARGUMENTS].contains(&name.as_str());
            assert!(names.iter().all(known), "{} holds more: {names:?}", case.display());
        }
    }
}

fn last(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_string()
}

/// Names are true: each code in a name is found, and `ok-` has no findings.
#[test]
fn names_say_what_is_shown() {
    let is_code = |word: &&str| {
        let (letter, number) = word.split_at(1);
        letter.contains(|c: char| "blmpstv".contains(c)) && !number.is_empty() && number.parse::<u8>().is_ok()
    };
    let mut wrong = Vec::new();
    for fixture in Fixture::all() {
        let found: BTreeSet<String> = fixture.found().into_iter().map(|(code, _)| code).collect();
        let case = fixture.name.rsplit('/').next().unwrap();
        // A story need not show all of its codes in every format.
        let is_told = matches!(fixture.expected, Expected::Told { .. });
        let missing = case.split('-').take_while(is_code).find(|code| !found.contains(&code.to_uppercase()));
        if let Some(code) = missing.filter(|_| !is_told) {
            wrong.push(format!("{}: {code} is not found: {found:?}", fixture.name));
        }
        // In Gemini CLI a record that is written again is superseded in any case.
        if case.starts_with("ok-") && found.iter().any(|code| code != "S17") {
            wrong.push(format!("{}: {found:?} are found", fixture.name));
        }
    }
    tell(&wrong);
}

#[test]
fn each_format_has_cases_and_each_folder_is_a_format() {
    let formats: BTreeSet<&str> = FORMATS.iter().map(|format| format.name).collect();
    let recorded = Fixture::recorded();
    assert!(recorded.iter().all(|fixture| formats.contains(fixture.format())));
    let told = stories::all();
    assert_eq!(told.iter().map(|told| told.format).collect::<BTreeSet<_>>(), formats);
}

/// For programs beside the tests: writes all stories to the folder in `TAILOR_STORIES_DIR`, laid out like fixtures/.
#[test]
fn stories_can_be_written_to_a_folder() {
    let dir = Dir::in_memory();
    let folder = std::env::var_os("TAILOR_STORIES_DIR").map_or_else(|| dir.files(), PathBuf::from);
    let stories = stories::all();
    for told in &stories {
        let case = folder.join(told.format).join(told.story);
        fs::create_dir_all(&case).unwrap();
        fs::write(case.join(INPUT), &told.bytes).unwrap();
        if !told.arguments.is_empty() {
            fs::write(case.join(ARGUMENTS), told.arguments.join("\n") + "\n").unwrap();
        }
    }
    let written: usize = folders(&folder).iter().map(|format| folders(format).len()).sum();
    assert!(written >= stories.len() && written > 600, "{written} of {}", stories.len());
}
