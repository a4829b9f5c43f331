//! Which format a file has: the right one or none, but never a wrong one.

use crate::fixtures::Fixture;
use crate::folder::real_files;
use crate::plainer::is_plainer;
use std::collections::BTreeMap;
use std::path::Path;
use transcript::compact::{CompactRequest, Stay, Unable, compact};
use transcript::finding::Held;
use transcript::format::{EntryPart, FORMATS, Format, ResultPlace, SupportLevel};
use transcript::scan::scan;
use transcript::{Policy, Reading};

/// This many lines determine the format, so large files need not be read completely.
const LINES: usize = 60;

/// The format of these bytes.
fn claimed(bytes: &[u8]) -> Option<&'static str> {
    scan(&bytes).unwrap().format.map(|format| format.name)
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').take(LINES).collect()
}

/// An archive's gates know whether its program runs, or wait long enough.
#[test]
fn archives_ask_whether_their_program_runs() {
    let asks = |format: &&Format| format.level != SupportLevel::Archive || !format.gates.is_empty();
    let wrong: Vec<_> =
        FORMATS.iter().copied().filter(|format| !asks(format)).map(|format| format.name).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Without its first line, a file has the same format, the plainer one that fits all other lines, or none that is
/// known.
fn check_without_the_first_line(bytes: &[u8], name: &str, wrong: &mut Vec<String>) {
    let whole = claimed(&lines(bytes).concat());
    let rest = claimed(&lines(bytes).get(1..).unwrap_or_default().concat());
    let fell_back = rest.zip(whole).is_some_and(|(rest, whole)| is_plainer(rest, whole));
    if rest.is_some() && rest != whole && !fell_back {
        wrong.push(format!("{name}: {whole:?} with its first line, {rest:?} without"));
    }
}

#[test]
fn without_its_first_line_a_fixture_is_of_no_other_format() {
    let mut wrong = Vec::new();
    for fixture in Fixture::all() {
        let bytes = fixture.input;
        assert_eq!(claimed(&bytes), fixture.name.split('/').next(), "{}", fixture.name);
        check_without_the_first_line(&bytes, &fixture.name, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn real_files_are_of_one_format_or_of_none() {
    let Some(files) = real_files() else { return };
    // Folders of the corpus with files of a single agent.
    let folders = [
        ("pi", "pi"),
        ("claude-code", "claude-code"),
        ("codex", "codex"),
        ("copilot-cli", "copilot-cli"),
        ("kimi", "kimi-cli"),
    ];
    let (mut wrong, mut counts) = (Vec::new(), BTreeMap::new());
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let (name, found) = (path.display().to_string(), claimed(&lines(&bytes).concat()));
        *counts.entry(found).or_insert(0) += 1;
        check_without_the_first_line(&bytes, &name, &mut wrong);
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
        if let Some((_, format)) = folders.iter().find(|(own, _)| folder == *own)
            && found != Some(*format)
        {
            wrong.push(format!("{name}: taken for {found:?}"));
        }
    }
    eprintln!("{counts:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Pseudo-random numbers, the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Lines of two files in random alternation.
fn mix(one: &[u8], two: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let (one, two) = (lines(one), lines(two));
    let (mut left, mut right, mut bytes) = (one.iter().peekable(), two.iter().peekable(), Vec::new());
    while left.peek().is_some() || right.peek().is_some() {
        let from_left = right.peek().is_none() || (left.peek().is_some() && numbers.below(2) == 0);
        let line = if from_left { left.next() } else { right.next() }.unwrap();
        bytes.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            bytes.push(b'\n');
        }
    }
    bytes
}

#[test]
fn a_mixture_is_never_claimed_by_the_wrong_format() {
    const MIXTURES: usize = 10_000;
    // A byte order mark in the middle of a file damages the line after it, which may be the one that determines the
    // format.
    let short = |fixture: &Fixture| {
        let bytes = &fixture.input;
        lines(bytes).len() < 20 && !bytes.starts_with(b"\xef\xbb\xbf")
    };
    let files: Vec<(String, Vec<u8>)> = Fixture::all()
        .iter()
        .filter(|fixture| short(fixture))
        .map(|fixture| (fixture.name.clone(), fixture.input.clone()))
        .collect();
    let (mut numbers, mut wrong, mut mixed) = (Numbers(7), Vec::new(), 0);
    while mixed < MIXTURES {
        let [one, two] = [0; 2].map(|_| &files[numbers.below(files.len())]);
        let format = |file: &(String, Vec<u8>)| file.0.split('/').next().unwrap().to_string();
        let (first, second) = (format(one), format(two));
        if first == second {
            continue;
        }
        mixed += 1;
        let bytes = mix(&one.1, &two.1, &mut numbers);
        let Some(found) = claimed(&bytes) else { continue };
        let other = if found == first { &second } else { &first };
        let known = found == first || found == second;
        if !known || !is_plainer(other, found) {
            wrong.push(format!("{} and {}: {found}", one.0, two.0));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn names_are_different_and_levels_are_kept() {
    let mut names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), FORMATS.len());
    for format in FORMATS {
        let (name, counted) = (format.name, format.counted.is_some());
        match format.level {
            SupportLevel::ReadOnly(why) => {
                assert!(!why.is_empty() && format.answer == ResultPlace::Nowhere, "{name}");
            }
            // Unless allowed, no line is added in files whose lines may be counted.
            SupportLevel::Truncate => assert!(counted || format.answer != ResultPlace::Line, "{name}"),
            SupportLevel::Archive | SupportLevel::Insert => {}
        }
    }
}

#[test]
fn what_is_said_is_told_part_by_part() {
    for fixture in Fixture::all().iter().filter(|fixture| fixture.name.ends_with("/ok-whole-session")) {
        let bytes = &fixture.input;
        let found = scan(&bytes.as_slice()).unwrap();
        let (mut calls, mut results, mut said, mut answered) = (0, 0, false, 0);
        for entry in &found.transcript.entries {
            let doc = spans::json::parse(&bytes.as_slice(), entry.span).unwrap().unwrap();
            let mut in_result = false;
            (found.format.unwrap().parts)(&doc, &mut |part| match part {
                EntryPart::Call { name, .. } => {
                    calls += 1;
                    assert!(name.is_some(), "{}: a call without a name", fixture.name);
                }
                EntryPart::Result => {
                    results += 1;
                    in_result = true;
                }
                EntryPart::Text(text) if in_result => answered += usize::from(!text.span().is_empty()),
                EntryPart::Text(text) => said |= text.text().unwrap().starts_with(b"list"),
                EntryPart::Image => {}
            });
        }
        assert_eq!(
            (calls, results),
            (found.transcript.calls.len(), found.transcript.results.len()),
            "{}",
            fixture.name
        );
        assert!(said && answered >= results, "{}: said {said}, {answered} texts of results", fixture.name);
    }
}

#[test]
fn a_compaction_is_written_or_refused_with_the_reason() {
    let request =
        CompactRequest { stay: Stay::Last(1), summary: Some("They listed files."), message_chars_max: 0 };
    for fixture in Fixture::all().iter().filter(|fixture| fixture.name.ends_with("/ok-whole-session")) {
        let bytes = &fixture.input;
        let source = bytes.as_slice();
        let reading = Reading::new(&source).unwrap();
        let format = reading.scanned.format.unwrap();
        match compact(&reading, &Policy::default(), &request).unwrap().repair {
            Ok(_) => assert!(format.counted.is_none(), "{}", fixture.name),
            Err(Unable::Held(Held::Counted(_))) => assert!(format.counted.is_some(), "{}", fixture.name),
            Err(unable) => assert_eq!(unable, Unable::NotWritten, "{}", fixture.name),
        }
    }
}

#[test]
fn the_page_lists_each_format() {
    let path = crate::support::root().join("docs/formats.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (above, rest) = page.split_once("|---|---|---|---|\n").unwrap();
    let (_, below) = rest.split_once("\n\n").unwrap();
    let row = |format: &&Format| {
        let Format { name, written_by, level, .. } = format;
        let remark = format.remarks();
        assert!(!written_by.is_empty(), "{name}");
        format!("| `{name}` | {written_by} | {} | {remark} |", level.name())
    };
    let table = FORMATS.iter().map(row).collect::<Vec<_>>().join("\n");
    crate::support::as_written(&path, &format!("{above}|---|---|---|---|\n{table}\n\n{below}"));
}
