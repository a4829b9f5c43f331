//! README.md and docs/: each `$ tailor …` is run and must print what is below it, each link must work, and the picture
//! must show what the program prints.
//!
//! An example is a fenced block marked `console`. Each block runs in a folder of its own that holds the fixtures it
//! names. A line `…` stands for any lines.

use crate::support::{Dir, root, run, skipped};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use transcript::refusal::FAMILIES;

/// Limits of the README: people in trouble read it, and everything else has a page in docs/.
const README_LINES_MAX: usize = 250;
const README_BYTES_MAX: usize = 10_000;

/// All pages for people, relative to the repository, with their text.
fn pages() -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    for folder in ["", "docs", "docs/rules"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = PathBuf::from(entry.unwrap().file_name());
            if name.extension().is_some_and(|extension| extension == "md") {
                paths.push(Path::new(folder).join(name));
            }
        }
    }
    paths.sort();
    let text = |path: &PathBuf| fs::read_to_string(root().join(path)).unwrap();
    paths.into_iter().map(|path| (path.clone(), text(&path))).collect()
}

/// A line `$ tailor …` and its expected output.
struct Example {
    command: String,
    expected: Vec<String>,
}

/// The examples of each block.
fn blocks(page: &str) -> Vec<Vec<Example>> {
    let mut blocks = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match (inside, line) {
            (false, "```console") => {
                inside = true;
                blocks.push(Vec::new());
            }
            (true, "```") => inside = false,
            (true, _) => add(blocks.last_mut().unwrap(), line),
            (false, _) => {}
        }
    }
    blocks
}

fn add(block: &mut Vec<Example>, line: &str) {
    if let Some(command) = line.strip_prefix("$ ") {
        block.push(Example { command: command.to_string(), expected: Vec::new() });
    } else {
        block.last_mut().expect("a block begins with a command").expected.push(line.to_string());
    }
}

/// Whether lines are as expected; `…` stands for any number of lines.
fn fits(lines: &[&str], expected: &[String]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((line, rest)) if line == "…" => (0..=lines.len()).any(|skip| fits(&lines[skip..], rest)),
        Some((line, rest)) => lines.first() == Some(&line.as_str()) && fits(&lines[1..], rest),
    }
}

/// Runs a line in a shell that finds our program by name.
fn output(dir: &Dir, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_tailor")).parent().unwrap();
    let mut shell = dir.command_of("/bin/sh");
    shell.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
    run(shell.args(["-c", command]), b"").text()
}

/// Copies the fixtures that a command names.
fn copy_fixtures(command: &str, dir: &Dir) {
    for name in command.split(' ').filter(|word| word.starts_with("fixtures/")) {
        if !dir.path(name).exists() {
            dir.write(name, fs::read(root().join(name)).unwrap());
        }
    }
}

/// The table of errors is made of the families, so that `explain` says the same.
#[test]
fn the_table_of_errors_shows_the_families() {
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    for family in FAMILIES.iter().filter(|family| !family.shown.is_empty()) {
        let row = format!("| {} | `{}`", family.shown.join("<br>"), family.command);
        assert!(page.contains(&row), "README.md has no row {row}");
    }
}

#[test]
fn every_example_prints_what_its_page_shows() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, page) in pages() {
        for block in blocks(&page) {
            let dir = Dir::new();
            for Example { command, expected } in block {
                assert!(command.starts_with("tailor "), "{}: {command}", path.display());
                count += 1;
                copy_fixtures(&command, &dir);
                let text = output(&dir, &command);
                let lines: Vec<&str> = text.lines().collect();
                if !fits(&lines, &expected) {
                    let expected = expected.join("\n");
                    wrong.push(format!("{}: $ {command}\n{text}\ninstead of\n{expected}\n", path.display()));
                }
            }
        }
    }
    assert!(count > 10, "{count} examples were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_configuration_that_is_shown_is_right() {
    let page = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let dir = Dir::new();
    dir.write("c.toml", rest.split_once("```").unwrap().0);
    let checked = dir.tailor(&["config", "check", "--config", "c.toml"]);
    assert_eq!(checked.status, 0, "{}", checked.stderr);
}

/// The words of a text that begin with two hyphens.
fn options(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| word.starts_with("--") && word.len() > 2).collect()
}

#[test]
fn each_option_has_a_word_in_the_docs() {
    let dir = Dir::new();
    let help = dir.tailor(&["--help"]).text();
    let commands = help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<&str> = commands.filter(|name| !name.is_empty() && !name.starts_with('-')).collect();
    assert!(commands.contains(&"scan") && commands.contains(&"config"), "{help}");
    let pages: String = pages().into_iter().map(|(_, page)| page).collect();
    let known = options(&pages);
    let mut missing = BTreeSet::new();
    for command in commands.into_iter().filter(|command| *command != "help") {
        let help = dir.tailor(&[command, "--help"]).text();
        let unknown =
            options(&help).into_iter().filter(|option| *option != "--help" && !known.contains(option));
        missing.extend(unknown.map(|option| format!("{command} {option}")));
    }
    assert!(missing.is_empty(), "no page speaks of {missing:?}");
}

#[test]
fn three_dots_stand_for_any_lines() {
    let expected = ["a", "…", "c"].map(String::from);
    assert!(fits(&["a", "c"], &expected) && fits(&["a", "b", "b", "c"], &expected));
    assert!(!fits(&["a", "b"], &expected) && !fits(&["a"], &expected));
}

#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (lines, bytes) = (readme.lines().count(), readme.len());
    assert!(lines <= README_LINES_MAX && bytes <= README_BYTES_MAX, "{lines} lines, {bytes} bytes");
}

/// The page without its fenced blocks, which have no links or headings.
fn prose(page: &str) -> String {
    page.split("\n```").step_by(2).collect::<Vec<_>>().join("\n")
}

/// The names by which headings of a page can be linked to, as GitHub makes them.
fn anchors(page: &str) -> BTreeSet<String> {
    let prose = prose(page);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let anchor =
        |heading: &str| heading.trim_start_matches('#').trim().chars().filter(kept).collect::<String>();
    headings.map(|heading| anchor(heading).to_lowercase().replace(' ', "-")).collect()
}

/// The targets of all links on a page, except those out of the repository.
fn links(page: &str) -> Vec<String> {
    let prose = prose(page);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_string()).filter(|target| !target.starts_with("http")).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, page) in pages() {
        for target in links(&page) {
            count += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let has_anchor = || anchors(&fs::read_to_string(root().join(&file)).unwrap()).contains(anchor);
            if !root().join(&file).exists() || !anchor.is_empty() && !has_anchor() {
                wrong.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(count > 20, "{count} links were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files of the repository that a page names without a link.
fn named_files(page: &str) -> impl Iterator<Item = &str> {
    let folders = ["crates/", "tests/", "benches/", "packages/", "integrations/", "systemd/", "docs/"];
    let quoted = page.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter(move |name| folders.iter().any(|folder| name.starts_with(folder)) && !name.contains(' '))
}

#[test]
fn every_file_that_is_named_is_there() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, page) in pages() {
        for name in named_files(&page) {
            count += 1;
            if !root().join(name).exists() {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(count > 40, "{count} files are named");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn links_and_anchors_are_found() {
    let page =
        "# A `b` & c\n[x](#a-b--c) and [y](docs/z.md)\n```\n# no [z](gone)\n```\n## Two\n[w](https://w)\n";
    assert_eq!(links(page), ["#a-b--c", "docs/z.md"]);
    assert_eq!(anchors(page), BTreeSet::from(["a-b--c", "two"].map(String::from)));
}

#[test]
fn the_picture_shows_what_the_program_prints() {
    let checked = Command::new(root().join("docs/pictures/make"))
        .arg("--check")
        .arg(env!("CARGO_BIN_EXE_tailor"))
        .output();
    match checked {
        Ok(output) if output.status.code() == Some(127) => skipped("docs/pictures: there is no python3"),
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => panic!("docs/pictures/make: {error}"),
    }
}
