//! The house rules that no compiler knows.

use crate::support::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FUNCTION_LINES_MAX: usize = 70;
/// The daemon brought 31: log layers, metrics, TOML, signals.
const PACKAGES_MAX: usize = 185;

/// All files that belong to the repository, relative to its top.
fn tracked() -> Vec<PathBuf> {
    let files = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = Command::new("git").arg("-C").arg(root()).args(files).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).unwrap();
    let mut paths: Vec<PathBuf> = names.split_terminator('\0').map(PathBuf::from).collect();
    // What was deleted and not committed yet is still listed.
    paths.retain(|path| root().join(path).is_file());
    assert!(!paths.is_empty());
    paths
}

/// Those of them that are text.
fn texts() -> impl Iterator<Item = (PathBuf, String)> {
    tracked().into_iter().filter_map(|path| {
        let text = String::from_utf8(fs::read(root().join(&path)).unwrap()).ok()?;
        Some((path, text))
    })
}

/// Our own Rust files.
fn sources() -> impl Iterator<Item = (PathBuf, String)> {
    texts().filter(|(path, _)| path.extension().is_some_and(|extension| extension == "rs"))
}

#[track_caller]
fn none(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn each_file_says_what_it_is() {
    let silent = sources().filter(|(_, text)| !text.starts_with("//!"));
    let silent: Vec<String> = silent.map(|(path, _)| path.display().to_string()).collect();
    none("these files do not open with `//!`", &silent);
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let long: Vec<String> = sources().flat_map(|(path, text)| long_functions(&path, &text)).collect();
    none("these functions are too long", &long);
}

/// Goes by indentation, which rustfmt sees to: a function ends with the brace that stands below its beginning.
fn long_functions(path: &Path, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut long = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        if !is_function(line) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let end = format!("{}}}", &line[..indent]);
        // One without a body, or with all of it on one line, ends at once.
        let length = match lines[start..].iter().position(|line| *line == end) {
            Some(length) if !line.ends_with([';', '}']) => length + 1,
            _ => 1,
        };
        if length > FUNCTION_LINES_MAX {
            long.push(format!("{}:{}: {length} lines", path.display(), start + 1));
        }
    }
    long
}

fn is_function(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| {
        word.starts_with("pub") || ["const", "async", "unsafe", "extern", "crate)", "super)"].contains(word)
    });
    words.next() == Some("fn")
}

#[test]
fn long_functions_are_found() {
    let body = "    let x = 1;\n".repeat(FUNCTION_LINES_MAX);
    let found = long_functions(
        Path::new("a.rs"),
        &format!("//! x\npub(crate) fn long() {{\n{body}}}\n\nfn short() {{\n}}\n"),
    );
    assert_eq!(found, ["a.rs:2: 72 lines"]);
    assert!(
        long_functions(Path::new("a.rs"), &format!("fn a();\nfn b() {{}}\nmod c {{\n{body}}}\n")).is_empty()
    );
}

/// Written in two halves, so that this file has none of them.
const UNFINISHED: &[(&str, &str)] = &[
    ("TO", "DO"),
    ("FIX", "ME"),
    ("#[ig", "nore"),
    ("#[should", "_panic"),
    ("todo", "!("),
    ("unimplemented", "!("),
];
const OF_ONE_MACHINE: &[(&str, &str)] = &[("/wo", "rk/"), ("/ro", "ot/"), ("/ho", "me/")];

fn occurrences(texts: impl Iterator<Item = (PathBuf, String)>, words: &[(&str, &str)]) -> Vec<String> {
    let words: Vec<String> = words.iter().map(|(one, two)| format!("{one}{two}")).collect();
    let mut found = Vec::new();
    for (path, text) in texts {
        for (n, line) in text.lines().enumerate() {
            // Where systemd puts the name of a user, it is the path of no machine.
            let line = line.replace(concat!("/ho", "me/%i"), "");
            let here = words.iter().filter(|word| line.contains(*word));
            found.extend(here.map(|word| format!("{}:{}: {word}", path.display(), n + 1)));
        }
    }
    found
}

#[test]
fn nothing_is_left_for_later() {
    none("unfinished", &occurrences(sources(), UNFINISHED));
}

#[test]
fn no_path_is_of_one_machine() {
    none("paths of one machine", &occurrences(texts(), OF_ONE_MACHINE));
}

#[test]
fn no_test_file_is_forgotten() {
    let main = fs::read_to_string(root().join("tests/main.rs")).unwrap();
    for entry in fs::read_dir(root().join("tests")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "main") {
            let declared = main.lines().any(|line| line.starts_with(&format!("mod {module}; // ")));
            assert!(declared, "tests/main.rs does not name {module}, or does not say what it holds");
        }
    }
}

#[test]
fn we_stand_on_few_packages() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    assert!(packages <= PACKAGES_MAX, "{packages} packages are in Cargo.lock, and {PACKAGES_MAX} are enough");
}

/// What each rule does in each format, as rows of a table.
fn coverage() -> Vec<String> {
    use transcript::format::{FORMATS, Level};
    use transcript::rule::{Cover, RULES, Stage};
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
    let mut rows =
        vec![format!("| | {} |", names.join(" | ")), format!("|---|{}", "---|".repeat(names.len()))];
    for rule in RULES {
        // Of what is only read, lines are looked at and not what they say.
        let of_lines = rule.stage() == Stage::Bytes || ["L1", "L2"].contains(&rule.code());
        let cells = FORMATS.iter().map(|format| match (rule.cover(*format), format.level()) {
            (_, Level::ReadOnly(_)) if !of_lines => "–",
            (Cover::Never, _) => "–",
            (Cover::Reported, _) | (Cover::Fixed, Level::ReadOnly(_)) => "reported",
            (Cover::Fixed, _) => "fixed",
        });
        rows.push(format!("| {} | {} |", rule.code(), cells.collect::<Vec<_>>().join(" | ")));
    }
    rows
}

#[test]
fn the_docs_say_what_each_rule_does_in_each_format() {
    let path = root().join("docs/rules.md");
    let table = coverage().join("\n") + "\n";
    let page = fs::read_to_string(&path).unwrap();
    let (above, there) = page.split_at(page.find("| | ").unwrap());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, above.to_string() + &table).unwrap();
        return;
    }
    assert_eq!(there, table, "docs/rules.md should end with this table (UPDATE=1 writes it)");
}

#[test]
fn the_docs_say_why_a_rule_has_nothing_to_do_in_a_format() {
    use transcript::format::{FORMATS, Level};
    let page = fs::read_to_string(root().join("docs/rules.md")).unwrap();
    let section = page.split("## ").find(|section| section.starts_with("Why a rule")).unwrap();
    let reasons = section.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
    let told: Vec<&str> = reasons.flat_map(|(codes, _)| codes.split(", ")).collect();
    // Of what is only read, and of texts that nobody sends, it is said at once.
    let others = || {
        let own = |format: &&&dyn transcript::format::Format| {
            !matches!(format.level(), Level::ReadOnly(_)) && format.name() != "sharegpt"
        };
        FORMATS.iter().filter(own)
    };
    for rule in transcript::rule::RULES {
        let never = others().any(|format| rule.cover(*format) == transcript::rule::Cover::Never);
        let name = rule.code();
        assert_eq!(never, told.contains(&name), "docs/rules.md: why {name} is nothing to some format");
    }
}

#[test]
fn no_fixture_shows_what_cannot_occur() {
    use transcript::rule::Cover;
    for format in transcript::format::FORMATS {
        for case in fs::read_dir(root().join("fixtures").join(format.name())).unwrap() {
            let found = fs::read_to_string(case.unwrap().path().join("findings.json")).unwrap();
            for rule in transcript::rule::RULES {
                let here = found.contains(&format!("\"code\":\"{}\"", rule.code()));
                let cover = rule.cover(*format);
                assert!(!(here && cover == Cover::Never), "{rule:?} occurs in {format:?}");
            }
        }
    }
}

#[test]
fn each_rule_is_in_the_readme() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with('|')).collect();
    for rule in transcript::rule::RULES {
        let is_about = |row: &&&str| {
            let mut cells = row.split('|').map(|cell| cell.trim().trim_matches('`'));
            cells.any(|cell| cell == rule.code()) && row.contains(rule.name())
        };
        assert!(rows.iter().any(|row| is_about(&row)), "README.md has no row for {rule:?}");
    }
}
