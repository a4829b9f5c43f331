//! House rules that the compiler does not check.

use crate::support::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FUNCTION_LINES_MAX: usize = 70;
/// The daemon brought 31: log layers, metrics, TOML, signals; making images small 18, for four kinds of files;
/// SQLite 5; tests of screens 3.
const PACKAGES_MAX: usize = 220;

/// Lines of production code in each crate, without blank lines and tests. A change may lower a number; whoever raises one gives the
/// reason in the commit.
const CODE_LINES_MAX: &[(&str, usize)] = &[
    ("keeper", 21_845),
    ("python", 1_606),
    ("spans", 2_295),
    ("tailor", 16_410),
    ("transcript", 37_840),
    ("watch", 4_298),
];

/// All files in the repository, relative to its root.
fn tracked() -> Vec<PathBuf> {
    let files = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = Command::new("git").arg("-C").arg(root()).args(files).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).unwrap();
    let mut paths: Vec<PathBuf> = names.split_terminator('\0').map(PathBuf::from).collect();
    // A file that was deleted without a commit is still listed.
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

/// How no documentation of code begins, because it sends the reader elsewhere.
const RIDDLES: &[&str] = &["The same", "Whose ", "Nobody knows"];

#[test]
fn documentation_says_what_a_thing_is() {
    let is_of_tests = |path: &Path| path.iter().any(|part| part == "tests" || part == "tests.rs");
    let mut riddles = Vec::new();
    for (path, text) in sources().filter(|(path, _)| path.starts_with("crates") && !is_of_tests(path)) {
        let mut is_continued = false;
        for (n, line) in text.lines().enumerate() {
            let said = line.trim_start().strip_prefix("/// ");
            // An option of the command line may be another one, which its help names.
            let is_riddle = |said: &str| {
                RIDDLES.iter().any(|riddle| said.starts_with(riddle)) && !said.starts_with("The same as --")
            };
            if !is_continued && said.is_some_and(is_riddle) {
                riddles.push(format!("{}:{}: {}", path.display(), n + 1, line.trim()));
            }
            is_continued = said.is_some();
        }
    }
    none("say what it is", &riddles);
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let long: Vec<String> = sources().flat_map(|(path, text)| long_functions(&path, &text)).collect();
    none("these functions are too long", &long);
}

/// Relies on rustfmt's indentation: a function ends with the brace below its beginning.
fn long_functions(path: &Path, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut long = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        if !is_function(line) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let end = format!("{}}}", &line[..indent]);
        // A function without a body, or on one line, ends at once.
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

/// Words of the pages in a folder and below it, the root's without those of folders. What has no letter or digit, such as the
/// bars of a table, is no word. A change may lower a number; whoever raises one gives the reason in the commit.
const DOC_WORDS_MAX: &[(&str, usize)] = &[("", 7_972), ("docs", 30_640)];

#[test]
fn the_docs_do_not_grow_unnoticed() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, text) in
        texts().filter(|(path, _)| path.extension().is_some_and(|extension| extension == "md"))
    {
        let folder = DOC_WORDS_MAX.iter().map(|(folder, _)| *folder).find(|folder| match *folder {
            "" => path.parent() == Some(Path::new("")),
            folder => path.starts_with(folder),
        });
        if let Some(folder) = folder {
            *counts.entry(folder).or_default() += words(&text);
        }
    }
    let grown: Vec<String> = DOC_WORDS_MAX
        .iter()
        .filter(|(folder, most)| counts[folder] > *most)
        .map(|(folder, most)| format!("{folder:?}: {} words, {most} are enough", counts[folder]))
        .collect();
    none("pages that have grown", &grown);
}

fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[test]
fn bars_of_tables_are_no_words() {
    assert_eq!(words("| two `words` |\n|---|--:|\n"), 2);
}

#[test]
fn no_crate_grows_unnoticed() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in sources() {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        let is_test = parts.iter().any(|part| ["tests", "tests.rs"].contains(part));
        if let ["crates", name, "src", ..] = parts[..]
            && !is_test
        {
            *counts.entry(name.to_string()).or_default() += code_lines(&text);
        }
    }
    let grown: Vec<String> = CODE_LINES_MAX
        .iter()
        .filter(|(name, most)| counts[*name] > *most)
        .map(|(name, most)| format!("{name}: {} lines, {most} are enough", counts[*name]))
        .collect();
    assert_eq!(counts.len(), CODE_LINES_MAX.len(), "crates, and those with a number");
    none("crates that have grown", &grown);
}

/// Lines that are neither blank nor in a module of tests. Relies on rustfmt's indentation.
fn code_lines(text: &str) -> usize {
    let (mut count, mut is_test) = (0, false);
    let mut before = "";
    for line in text.lines() {
        is_test |= before == "#[cfg(test)]" && line.starts_with("mod ") && line.ends_with('{');
        count += usize::from(!is_test && !line.trim().is_empty());
        is_test &= line != "}";
        before = line;
    }
    count
}

#[test]
fn lines_of_tests_do_not_count() {
    let text = "//! x\n\nfn a() {\n}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
    assert_eq!(code_lines(text), 5);
}

/// Split in two, so that this file does not contain the words.
const UNFINISHED: &[(&str, &str)] = &[
    ("TO", "DO"),
    ("FIX", "ME"),
    ("#[ig", "nore"),
    ("#[should", "_panic"),
    ("todo", "!("),
    ("unimplemented", "!("),
];
const OF_ONE_MACHINE: &[(&str, &str)] = &[("/wo", "rk/"), ("/ro", "ot/"), ("/ho", "me/")];
/// Citations that a reader of the repository cannot follow.
const OF_ELSEWHERE: &[(&str, &str)] = &[
    ("refer", "ence/"),
    ("DESIGN", ".md"),
    ("failure cat", "alogue"),
    ("failure cl", "ass"),
    ("Issu", "e 6"),
];

fn occurrences(texts: impl Iterator<Item = (PathBuf, String)>, words: &[(&str, &str)]) -> Vec<String> {
    let words: Vec<String> = words.iter().map(|(one, two)| format!("{one}{two}")).collect();
    let mut found = Vec::new();
    for (path, text) in texts {
        for (n, line) in text.lines().enumerate() {
            // systemd replaces `%i` by the user's name, so this is no path of one machine.
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
fn nothing_is_cited_that_is_elsewhere() {
    none("citations of what is not in the repository", &occurrences(texts(), OF_ELSEWHERE));
}

/// Where it may depend on the system what is compiled, but for tests: the folder of a system, and these, each with the reason.
const OF_ONE_SYSTEM: &[(&str, &str)] = &[
    ("crates/keeper/src/platform.rs", "names the folder of each system"),
    ("crates/keeper/src/actions.rs", "tests: the state machine uses Linux's descriptors without rights"),
    ("crates/watch/src/lib.rs", "the daemon as a whole needs Unix"),
];

fn depends_on_the_system(line: &str) -> bool {
    line.contains("cfg")
        && ["unix", "windows", "target_os", "target_family"].iter().any(|word| line.contains(word))
}

#[test]
fn a_system_is_one_folder() {
    let is_elsewhere = |path: &Path| {
        let is_of_tests = path.iter().any(|part| part == "tests" || part == "tests.rs");
        path.starts_with("crates") && !path.starts_with("crates/keeper/src/platform") && !is_of_tests
    };
    let systems: BTreeSet<String> = sources()
        .filter(|(path, text)| is_elsewhere(path) && text.lines().any(depends_on_the_system))
        .map(|(path, _)| path.display().to_string())
        .collect();
    let named: BTreeSet<String> = OF_ONE_SYSTEM.iter().map(|(path, _)| (*path).to_string()).collect();
    assert_eq!(systems, named, "files that depend on the system, and those that may");
}

#[test]
fn no_test_file_is_forgotten() {
    let main = fs::read_to_string(root().join("tests/main.rs")).unwrap();
    let manifest = fs::read_to_string(root().join("crates/tailor/Cargo.toml")).unwrap();
    for entry in fs::read_dir(root().join("tests")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "main") {
            let declared = main.lines().any(|line| line.starts_with(&format!("mod {module}; // ")));
            let is_own = manifest.contains(&format!("path = \"../../tests/{name}\""));
            assert!(
                declared || is_own,
                "tests/main.rs does not name {module}, or does not say what it holds"
            );
        }
    }
}

#[test]
fn we_stand_on_few_packages() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    assert!(packages <= PACKAGES_MAX, "{packages} packages are in Cargo.lock, and {PACKAGES_MAX} are enough");
}

/// What the README's first command compiles, third-party crates and ours.
const FIRST_PACKAGES_MAX: usize = 125;

#[test]
fn the_first_command_builds_few_packages() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let first = readme.lines().find_map(|line| line.strip_prefix("cargo run ")).unwrap();
    let lean: Vec<&str> = first.split(' ').filter(|word| *word == "--no-default-features").collect();
    let mut tree = Command::new(env!("CARGO"));
    tree.current_dir(root()).args(["tree", "--locked", "--offline", "-e", "normal,build"]);
    let listed = tree.args(["--prefix", "none", "--no-dedupe", "-f", "{p}"]).args(lean).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).unwrap();
    let packages: BTreeSet<&str> = names.lines().filter_map(|line| line.split(" (").next()).collect();
    let count = packages.len();
    assert!(
        count > 50 && count <= FIRST_PACKAGES_MAX,
        "{count}, {FIRST_PACKAGES_MAX} are enough: {packages:?}"
    );
}

#[test]
fn each_direct_dependency_is_explained() {
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let text = fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let (_, table) = text.split_once("## What each is for").unwrap();
    let named: BTreeSet<&str> = table
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("- `")?.split([':', '(']).next())
        .flat_map(|names| names.split(['`', ',', ' ']))
        .filter(|name| !name.is_empty())
        .collect();
    let dependencies = manifest["workspace"]["dependencies"].as_table().unwrap();
    let theirs = dependencies.iter().filter(|(_, how)| how.get("path").is_none());
    let theirs: BTreeSet<&str> = theirs.map(|(name, _)| name.as_str()).collect();
    assert_eq!(named, theirs, "docs/dependencies.md, and what Cargo.toml has");
}

#[test]
fn the_size_of_the_program_is_the_one_that_ci_allows() {
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    let most = ci.lines().find_map(|line| line.strip_prefix("BINARY_BYTES_MAX=")).unwrap();
    let megabytes = most.parse::<f64>().unwrap() / 1e6;
    let page = fs::read_to_string(root().join("docs/install.md")).unwrap();
    assert!(page.contains(&format!("has less than {megabytes} MB")), "docs/install.md: {megabytes} MB");
}

#[test]
fn only_what_ships_waits_for_the_linker_to_optimize() {
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let profile = |name: &str| manifest["profile"][name].as_table().unwrap();
    for slow in ["lto", "codegen-units"] {
        assert!(!profile("release").contains_key(slow) && !profile("dev").contains_key(slow), "{slow}");
        assert!(profile("dist").contains_key(slow), "{slow}");
    }
}

/// `.ci/run` selects them by that name.
#[test]
fn tests_of_real_transcripts_are_called_so() {
    let asks = |text: &str| {
        [concat!("var_os(\"TAILOR_", "CORPUS\")"), concat!("real_", "files() else")]
            .iter()
            .any(|asks| text.contains(asks))
    };
    let mut others = Vec::new();
    for (path, text) in sources().filter(|(_, text)| asks(text)) {
        let mut inside = "";
        for line in text.lines() {
            inside = if is_function(line) { line } else { inside };
            if asks(line) && !inside.contains("real_") {
                others.push(format!("{}: {inside}", path.display()));
            }
        }
    }
    none("the names of these tests lack `real_`", &others);
}

/// What stands between backticks.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    page.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

fn is_name_of_a_test(word: &str) -> bool {
    word.contains('_') && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

#[test]
fn each_promise_names_tests_that_exist() {
    let rust: String = sources().map(|(_, text)| text).collect();
    let mut missing = Vec::new();
    let mut count = 0;
    for name in ["docs/safety.md", "tests/promises/held.md"] {
        let page = fs::read_to_string(root().join(name)).unwrap();
        for word in quoted(&page) {
            let is_there = match word {
                path if path.starts_with("tests/") => root().join(path).exists(),
                test if is_name_of_a_test(test) => rust.contains(&format!("fn {test}(")),
                _ => continue,
            };
            count += 1;
            if !is_there {
                missing.push(format!("{name}: {word}"));
            }
        }
    }
    none("promises whose tests do not exist", &missing);
    assert!(count > 60, "{count} tests are named");
}

/// Where files are reached by a path, and whose they are. What belongs to others is reached through `platform`, by a `Folder` that is held
/// open or, as root, as the user whose file it is (`as_owner`). New places belong there.
const REACHED_BY_PATH: &[(&str, &str)] = &[
    ("keeper/src/jobs/find.rs", "lists names, which are opened by `Snapshot`"),
    ("keeper/src/ask/gate/claude.rs", "lists names, as the owner of the session"),
    ("keeper/src/ask/gate/codex.rs", "Codex's locks, as the owner of the session"),
    ("keeper/src/ask/gate/copilot.rs", "lists names, as the owner of the session"),
    ("keeper/src/ask/gate/openclaw.rs", "the lock beside a session, as the owner of the session"),
    ("keeper/src/ask/gate/grok.rs", "Grok's lock, as the owner of the session"),
    ("keeper/src/ask/gate/target.rs", "what an agent keeps about a session, as the owner of the session"),
    ("keeper/src/places/roots.rs", "lists folders"),
    (
        "keeper/src/stores/database.rs",
        "SQLite takes a path: as the owner of the database, never through a link",
    ),
    ("keeper/src/places/strays.rs", "lists names, as the owner of the sessions"),
    ("keeper/src/verdicts.rs", "whether there is a file"),
    ("keeper/src/places/windows.rs", "the configuration of the user's own agents"),
    ("tailor/src/baseline.rs", "a file that the user names"),
    ("tailor/src/command/config.rs", "our own configuration"),
    ("tailor/src/command/generate.rs", "a folder that the user names"),
    ("tailor/src/daemons.rs", "lists sockets"),
    ("tailor/src/config.rs", "our own configuration"),
    ("tailor/src/output.rs", "a file that the user names"),
    ("tailor/src/page.rs", "a file that the user names"),
    ("tailor/src/printer/github.rs", "a file that GitHub names"),
    ("watch/src/daemon/ask.rs", "our own socket"),
    ("watch/src/daemon/instance.rs", "our own folder of claims, and a lock on a root"),
    ("watch/src/daemon/look.rs", "whether there is a file, and its times"),
    ("watch/src/daemon/main_loop.rs", "our own socket"),
    ("watch/src/daemon/reading.rs", "our own folder of notes"),
    ("watch/src/daemon/root_watcher.rs", "lists names"),
];

#[test]
fn files_are_reached_by_path_in_few_places() {
    let is_ours = |path: &Path| {
        let text = path.to_string_lossy().into_owned();
        let is_test =
            ["/tests", "/platform/", "actions.rs", "spawned.rs"].iter().any(|part| text.contains(part));
        ["keeper", "watch", "tailor"].iter().any(|of| path.starts_with(format!("crates/{of}/src")))
            && !is_test
    };
    let reach = sources().filter(|(path, _)| is_ours(path)).filter(|(_, text)| reaches_by_path(text));
    let reach: BTreeSet<String> =
        reach.map(|(path, _)| path.display().to_string().replace("crates/", "")).collect();
    let known: BTreeSet<String> = REACHED_BY_PATH.iter().map(|(path, _)| path.to_string()).collect();
    none("these files reach others by a path", &reach.difference(&known).cloned().collect::<Vec<_>>());
    none("these no longer do", &known.difference(&reach).cloned().collect::<Vec<_>>());
}

/// Whether a source, but for its tests, calls something that takes the path of a file.
fn reaches_by_path(text: &str) -> bool {
    const CALLS: &[&str] = &[
        "File::open(",
        "File::create(",
        "File::options(",
        "OpenOptions::",
        "Connection::open",
        "DirBuilder::",
        "WalkBuilder::new",
        "WalkDir::new",
        "create_private(",
        "open_note(",
        "open_lock(",
        "fs::*",
        "fs as ",
        "UnixStream::connect",
        ".read_dir()",
        ".read_link()",
    ];
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code = code.split("#[cfg(test)]\npub(super) mod tests").next().unwrap_or_default();
    let mut lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    // Functions of `fs` are written small, its types great.
    let is_function = |name: &str| name.trim_start().starts_with(|c: char| c.is_ascii_lowercase());
    lines.any(|line| {
        let named = line.split("fs::").skip(1).any(|rest| match rest.strip_prefix('{') {
            Some(all) => all.split('}').next().unwrap_or_default().split(',').any(is_function),
            None => is_function(rest),
        });
        named || CALLS.iter().any(|call| line.contains(call))
    })
}
