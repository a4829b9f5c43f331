//! The examples of README.md: each `$ tailor …` is run and must print what stands below it.
//!
//! An example is a fenced block marked `console`. It runs in a folder that holds a copy of `fixtures/`, each block
//! in one of its own. A line `…` stands for any lines.

use crate::support::{Dir, run};
use std::fs;
use std::path::Path;

/// A line `$ tailor …` and what it is to print.
struct Example {
    command: String,
    expected: Vec<String>,
}

/// The examples of each block.
fn blocks(readme: &str) -> Vec<Vec<Example>> {
    let mut blocks = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
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

/// Whether lines are as expected, where `…` stands for any number of them.
fn fits(lines: &[&str], expected: &[String]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((line, rest)) if line == "…" => (0..=lines.len()).any(|skip| fits(&lines[skip..], rest)),
        Some((line, rest)) => lines.first() == Some(&line.as_str()) && fits(&lines[1..], rest),
    }
}

/// Runs a line through the shell, which finds our program under its name.
fn output(dir: &Dir, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_tailor")).parent().unwrap();
    let mut shell = dir.command_of("/bin/sh");
    shell.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
    run(shell.args(["-c", command]), b"").text()
}

fn copy(from: &Path, dir: &Dir, name: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let below = name.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), dir, &below);
        } else {
            dir.write(below, fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn every_example_prints_what_the_readme_shows() {
    let root = crate::support::root();
    let blocks = blocks(&fs::read_to_string(root.join("README.md")).unwrap());
    assert!(!blocks.is_empty());
    for block in blocks {
        let dir = Dir::new();
        copy(&root.join("fixtures"), &dir, Path::new("fixtures"));
        for Example { command, expected } in block {
            assert!(command.starts_with("tailor "), "{command}");
            let text = output(&dir, &command);
            let lines: Vec<&str> = text.lines().collect();
            assert!(
                fits(&lines, &expected),
                "$ {command}\n{text}\nis not what README.md shows:\n{}",
                expected.join("\n")
            );
        }
    }
}

#[test]
fn three_dots_stand_for_any_lines() {
    let expected = ["a", "…", "c"].map(String::from);
    assert!(fits(&["a", "c"], &expected) && fits(&["a", "b", "b", "c"], &expected));
    assert!(!fits(&["a", "b"], &expected) && !fits(&["a"], &expected));
}
