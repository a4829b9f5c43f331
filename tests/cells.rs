//! docs/rules.md: what each rule does in each format, and a fixture that shows each cell of the table.

use crate::fixtures::Fixture;
use crate::support::{Dir, as_written, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use transcript::format::{FORMATS, Format, SupportLevel};
use transcript::rule::{Cover, RULES, Rule};

/// A JavaScript string is limited to half a gigabyte (S10), a title is unseen more than 64 KiB from both ends
/// (S11), and only a database says how much of a session is loaded (S23). No fixture can show that; these rules have tests of their own.
const WITHOUT_A_FIXTURE: &[&str] = &["S10", "S11", "S23"];

/// What a rule does in a format.
fn cover(rule: &Rule, format: &Format) -> Cover {
    match (rule.cover(format), format.level) {
        (Cover::Fixed, SupportLevel::ReadOnly(_)) => Cover::Reported,
        (cover, _) => cover,
    }
}

/// The text of a cell.
fn cell(cover: Cover) -> &'static str {
    match cover {
        Cover::Never => "–",
        Cover::Reported => "reported",
        Cover::Fixed => "fixed",
    }
}

/// The rows of the table.
fn table() -> Vec<String> {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let mut rows =
        vec![format!("| | {} |", names.join(" | ")), format!("|---|{}", "---|".repeat(names.len()))];
    for rule in RULES {
        let cells = FORMATS.iter().map(|format| cell(cover(rule, format)));
        rows.push(format!("| {} | {} |", rule.code(), cells.collect::<Vec<_>>().join(" | ")));
    }
    rows
}

#[test]
fn the_docs_say_what_each_rule_does_in_each_format() {
    let path = root().join("docs/rules.md");
    let table = table().join("\n") + "\n";
    let page = fs::read_to_string(&path).unwrap();
    let (above, _) = page.split_at(page.find("| | ").unwrap());
    as_written(&path, &(above.to_string() + &table));
}

#[test]
fn the_docs_say_why_a_rule_has_nothing_to_do_in_a_format() {
    let page = fs::read_to_string(root().join("docs/rules.md")).unwrap();
    let section = page.split("## ").find(|section| section.starts_with("Why a rule")).unwrap();
    let reasons = section.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
    let told: Vec<&str> = reasons.flat_map(|(codes, _)| codes.split(", ")).collect();
    // Formats that are only read, or whose content is not sent, share one row.
    let others = || {
        let own = |format: &&&Format| {
            !matches!(format.level, SupportLevel::ReadOnly(_)) && format.name != "sharegpt"
        };
        FORMATS.iter().filter(own)
    };
    let mut wrong = Vec::new();
    for rule in RULES {
        let never = others().any(|format| rule.cover(format) == Cover::Never);
        if never != told.contains(&rule.code()) {
            wrong.push(format!("{}{}", rule.code(), if never { "" } else { " (has no –)" }));
        }
    }
    assert!(wrong.is_empty(), "docs/rules.md: why these are nothing to some format: {}", wrong.join(", "));
}

/// What the fixtures of each format show: the codes that are found, and those that are fixed.
fn shown() -> BTreeMap<String, [BTreeSet<String>; 2]> {
    let mut shown: BTreeMap<String, [BTreeSet<String>; 2]> = BTreeMap::new();
    for fixture in Fixture::all() {
        let [found, fixed] = shown.entry(fixture.format().to_string()).or_default();
        for (code, made) in fixture.found() {
            if made {
                fixed.insert(code.clone());
            }
            found.insert(code);
        }
    }
    shown
}

#[test]
fn each_cell_of_the_table_has_a_fixture() {
    let (shown, mut missing) = (shown(), Vec::new());
    for format in FORMATS {
        let [found, fixed] = &shown[format.name];
        for rule in RULES.iter().filter(|rule| !WITHOUT_A_FIXTURE.contains(&rule.code())) {
            let cover = cover(rule, format);
            let is_shown = match cover {
                Cover::Never => true,
                Cover::Reported => found.contains(rule.code()),
                Cover::Fixed => fixed.contains(rule.code()),
            };
            if !is_shown {
                missing.push(format!("{}: {} is {}", format.name, rule.code(), cell(cover)));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "docs/rules.md says more than the fixtures show; {} lack one:\n{}",
        missing.len(),
        missing.join("\n")
    );
}

/// If fixtures show a fix, a cell that says `reported` claims too little; one that says `–` is wrong.
#[test]
fn no_fixture_shows_more_than_the_table_says() {
    for (format, [found, fixed]) in shown() {
        let format = *FORMATS.iter().find(|own| own.name == format).unwrap();
        for rule in RULES {
            let cover = cover(rule, format);
            assert!(!found.contains(rule.code()) || cover != Cover::Never, "{rule:?} occurs in {format:?}");
            assert!(
                !fixed.contains(rule.code()) || cover == Cover::Fixed,
                "{rule:?} is mended in {format:?}"
            );
        }
    }
}

#[test]
fn explain_lists_the_rows() {
    let explained = Dir::new().tailor(&["explain"]).text();
    let listed: Vec<&str> = explained.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let number = |code: &str| (code[..1].to_string(), code[1..].parse::<u32>().unwrap());
    assert!(listed.is_sorted_by_key(|code| number(code)), "{explained}");
    let mut rules: Vec<&str> = RULES.iter().map(|rule| rule.code()).collect();
    rules.sort_by_key(|code| number(code));
    assert_eq!(listed, rules);
}
