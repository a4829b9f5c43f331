//! docs/rules: what each rule does in each format, and a fixture that shows it.

use crate::fixtures::Fixture;
use crate::support::{Dir, differs, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use transcript::format::{FORMATS, Format, Results, SupportLevel};
use transcript::rule::{Cover, RULES, Rule};

/// A JavaScript string is limited to half a gigabyte (S10), a title is unseen more than 64 KiB from both ends
/// (S11), and only a database says how much of a session is loaded (S23). Secrets are put together when tests run (X1). No fixture
/// can show that; these rules have tests of their own.
const WITHOUT_A_FIXTURE: &[&str] = &["S10", "S11", "S23", "X1"];

/// What a rule does in a format.
fn cover(rule: &Rule, format: &Format) -> Cover {
    match (rule.cover(format), format.level) {
        (Cover::Fixed, SupportLevel::ReadOnly(_)) => Cover::Reported,
        (cover, _) => cover,
    }
}

/// What a rule does in a format, in a word.
fn word(cover: Cover) -> &'static str {
    match cover {
        Cover::Never => "not looked for",
        Cover::Reported => "reported",
        Cover::Fixed => "fixed",
    }
}

/// The pages of docs/rules: name, first letters of the codes, and title.
const PAGES: &[(&str, &str, &str)] = &[
    ("calls", "P", "Calls and results"),
    ("sizes", "S", "Sizes and dead weight"),
    ("bytes", "B", "Bytes and lines"),
    ("links", "TV", "Links, counters and records"),
    ("messages", "EM", "Messages"),
    ("data-sets", "D", "Rows of data sets"),
    ("limits", "L", "Limits of `scan`"),
    ("secrets", "X", "Secrets"),
];

fn is_read_only(format: &Format) -> bool {
    matches!(format.level, SupportLevel::ReadOnly(_))
}

fn is_data_set(format: &Format) -> bool {
    matches!(format.results, Results::InConversation | Results::Unpaired)
}

type IsOfKind = fn(&Format) -> bool;

/// The kinds of formats, as docs/rules.md names them.
const KINDS: &[(&str, IsOfKind)] = &[
    ("sessions", |format| !is_read_only(format) && !is_data_set(format)),
    ("data sets", is_data_set),
    ("read-only formats", is_read_only),
];

/// The formats in which a rule does one of these, as briefly as their kinds allow.
fn formats_where(rule: &Rule, covers: &[Cover]) -> String {
    let is_meant = |format: &&&Format| covers.contains(&cover(rule, format));
    if FORMATS.iter().all(|format| is_meant(&format)) {
        return "all formats".to_string();
    }
    let names =
        |formats: &[&&Format]| formats.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
    let mut parts = Vec::new();
    for (kind, is_of_kind) in KINDS {
        let of_kind = FORMATS.iter().filter(|format| is_of_kind(format));
        let (meant, others): (Vec<_>, Vec<_>) = of_kind.partition(is_meant);
        match (meant.len(), others.len()) {
            (0, _) => {}
            (_, 0) => parts.push((*kind).to_string()),
            (some, rest) if some > rest => parts.push(format!("{kind} but {}", names(&others))),
            _ => parts.push(names(&meant)),
        }
    }
    parts.join("; ")
}

/// The line that says where a rule does what.
fn place(rule: &Rule) -> String {
    let does = |what: Cover| FORMATS.iter().any(|format| cover(rule, format) == what);
    let reported = || formats_where(rule, &[Cover::Reported]);
    match (does(Cover::Fixed), does(Cover::Reported)) {
        (true, true) => {
            let found = formats_where(rule, &[Cover::Fixed, Cover::Reported]);
            // docs/rules.md says of read-only formats that nothing is repaired there.
            match reported().trim_end_matches("read-only formats").trim_end_matches("; ") {
                "" => format!("Found in: {found}."),
                only => format!("Found in: {found}. Only reported in: {only}."),
            }
        }
        (true, false) => format!("Found in: {}.", formats_where(rule, &[Cover::Fixed])),
        _ => format!("Only reported, in: {}.", reported()),
    }
}

/// The text of a page of docs/rules.
fn page_of_rules(letters: &str, title: &str) -> String {
    let mut rules: Vec<&Rule> =
        RULES.iter().copied().filter(|rule| letters.contains(&rule.code()[..1])).collect();
    rules.sort_by_key(|rule| code_order(rule.code()));
    let mut page = format!("# {title}\n\n[rules.md](../rules.md) explains the words.\n");
    let mut told: Vec<(&str, &str)> = Vec::new();
    for rule in rules {
        let (code, name, help, place) = (rule.code(), rule.name(), rule.help(), place(rule));
        let what = help.what;
        let fix = match told.iter().find(|(fix, _)| *fix == help.fix) {
            Some((_, same)) => format!("As {same}."),
            None => help.fix.to_string(),
        };
        told.push((help.fix, code));
        write!(page, "\n## {code} {name}\n\n{what}\n\n**Repair.** {fix}\n\n{place}\n")
            .expect("a text takes all");
    }
    page
}

/// The letter of a code and its number.
fn code_order(code: &str) -> (String, u32) {
    (code[..1].to_string(), code[1..].parse().unwrap())
}

#[test]
fn the_docs_say_what_each_rule_does_in_each_format() {
    let differences: Vec<String> = PAGES
        .iter()
        .filter_map(|(name, letters, title)| {
            differs(&root().join(format!("docs/rules/{name}.md")), &page_of_rules(letters, title))
        })
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let letters: String = PAGES.iter().map(|(_, letters, _)| *letters).collect();
    let homeless: Vec<&str> =
        RULES.iter().map(|rule| rule.code()).filter(|code| !letters.contains(&code[..1])).collect();
    assert!(homeless.is_empty(), "no page of docs/rules has {homeless:?}");
}

#[test]
fn the_docs_say_why_a_rule_has_nothing_to_do_in_a_format() {
    let page = fs::read_to_string(root().join("tests/cells.md")).unwrap();
    let reasons = page.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
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
    assert!(wrong.is_empty(), "tests/cells.md: why these are nothing to some format: {}", wrong.join(", "));
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
                missing.push(format!("{}: {} is {}", format.name, rule.code(), word(cover)));
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
    assert!(listed.is_sorted_by_key(|code| code_order(code)), "{explained}");
    let mut rules: Vec<&str> = RULES.iter().map(|rule| rule.code()).collect();
    rules.sort_by_key(|code| code_order(code));
    assert_eq!(listed, rules);
}
