//! The direction of imports: only towards lower floors, and in no crate in a circle of many files.

use crate::support::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The floors of each crate from the ground up, with their rooms. A room is a folder or a file, or several that import each
/// other. It may import from lower floors and from itself. The root of the crate is above all of them, and only re-exports names;
/// so is `daemon`, which is there on some systems only.
const HOUSES: &[(&str, &[&[&str]])] = &[
    (
        "transcript",
        &[
            &["model"],
            &["secret"],
            &["refusal"],
            &["format"],
            &["read"],
            &["session"],
            &["contract"],
            &["rule", "weight"],
            &["plan"],
            &["examine"],
            &["tasks"],
        ],
    ),
    (
        "keeper",
        &[
            &["base"],
            &["platform"],
            &["disk", "places"],
            &["ask"],
            &["archive", "vault"],
            &["swap"],
            &["options"],
            &["stores"],
            &["jobs"],
            &["verdicts"],
        ],
    ),
    (
        "watch",
        &[
            &["config", "memory", "queue", "reading", "status", "changes", "instance", "systemd", "textfile"],
            &["absent", "look metrics", "options"],
            &["event keeping"],
            &["ask", "exits", "root_discovery", "root_watcher"],
            &["main_loop"],
        ],
    ),
    (
        "tailor",
        &[
            &["amount", "daemons", "status", "terminal", "packing", "threads"],
            &["say", "place", "table"],
            &["downscale", "remedy", "baseline", "output"],
            &["value"],
            &["names", "tokens"],
            &["settings"],
            &["config"],
            &["sessions"],
            &["args", "size_report"],
            &["report", "log"],
            &["printer", "page"],
            &["command"],
        ],
    ),
];

/// The largest circle of imports that is allowed, in files.
const CIRCLE_FILES_MAX: usize = 3;

/// The crates that are checked for circles.
const WITHOUT_CIRCLES: &[&str] = &["keeper", "python", "spans", "tailor", "transcript", "watch"];

/// The files of a crate by module, and the imports of each: a module, and the line that names it.
#[derive(Default)]
struct House {
    /// The path of each module's file below `src`, without `.rs`. Test modules are left out.
    modules: BTreeMap<Vec<String>, String>,
    imports: BTreeMap<Vec<String>, Vec<(usize, Vec<String>)>>,
}

impl House {
    fn of_crate(krate: &str) -> Self {
        let mut texts = BTreeMap::new();
        gather(&root().join("crates").join(krate).join("src"), &mut Vec::new(), &mut texts);
        Self::of_texts(texts)
    }

    /// From the text of each file, by its path below `src`.
    fn of_texts(texts: BTreeMap<Vec<String>, String>) -> Self {
        let texts: BTreeMap<Vec<String>, Vec<String>> =
            texts.into_iter().map(|(path, text)| (module_of(&path), production_lines(&text))).collect();
        let of_tests: BTreeSet<Vec<String>> =
            texts.iter().flat_map(|(module, lines)| test_children(module, lines)).collect();
        let is_test = |module: &Vec<String>| (1..=module.len()).any(|n| of_tests.contains(&module[..n]));
        let modules =
            texts.keys().filter(|module| !is_test(module)).map(|m| (m.clone(), m.join("/"))).collect();
        let mut house = Self { modules, ..Self::default() };
        let named: BTreeMap<&Vec<String>, Vec<(usize, Vec<String>)>> = texts
            .iter()
            .filter(|(module, _)| !is_test(module))
            .map(|(module, lines)| (module, paths(module, lines)))
            .collect();
        // For a name that depends on the system, the line decides which module it stands for.
        let hands_on = |module: &Vec<String>, line: usize| {
            let lines = &texts[module];
            lines[line - 1].contains(" use ") && line > 1 && lines[line - 2].starts_with("#[cfg(")
        };
        for (module, paths) in &named {
            let sources = paths
                .iter()
                .flat_map(|(line, path)| sources(path, &named, &hands_on).into_iter().map(|to| (*line, to)));
            let imports = sources.filter(|(_, to)| to != *module).collect();
            house.imports.insert((*module).clone(), imports);
        }
        house
    }

    /// Imports that lead upwards.
    fn upward(&self, floors: &[&[&str]]) -> Vec<String> {
        let is_in = |room: &&str, name: &str| room.split(' ').any(|own| own == name);
        let room = |module: &[String]| module.iter().find(|name| *name != "daemon").cloned();
        let floor = |module: &[String]| match room(module) {
            None => Some(floors.len() + usize::from(module.is_empty())),
            Some(name) => floors.iter().position(|rooms| rooms.iter().any(|room| is_in(room, &name))),
        };
        let share_a_room = |one: &str, other: &str| {
            floors.iter().copied().flatten().any(|room| is_in(room, one) && is_in(room, other))
        };
        let mut wrong = Vec::new();
        for (from, imports) in &self.imports {
            let Some(own) = floor(from) else {
                wrong.push(format!("{} stands on no floor", self.modules[from]));
                continue;
            };
            for (line, to) in imports {
                let is_own = room(from).zip(room(to)).is_some_and(|(one, other)| share_a_room(&one, &other));
                if !is_own && floor(to).is_none_or(|below| below >= own) {
                    wrong.push(format!("{}.rs:{line}: {}", self.modules[from], to.join("::")));
                }
            }
        }
        wrong
    }

    /// Circles of too many files.
    fn circles(&self) -> Vec<String> {
        let reach: BTreeMap<_, _> =
            self.modules.keys().map(|module| (module, self.reached(module))).collect();
        let circle = |module| {
            let joined = |other: &&Vec<String>| reach[*other].contains(module);
            reach[module].iter().copied().filter(joined).collect::<BTreeSet<&Vec<String>>>()
        };
        let circles: BTreeSet<_> = self.modules.keys().map(circle).collect();
        let large = circles.into_iter().filter(|circle| circle.len() > CIRCLE_FILES_MAX);
        large.map(|circle| circle.into_iter().map(|m| m.join("::")).collect::<Vec<_>>().join(", ")).collect()
    }

    /// All modules that a module imports, directly or not.
    fn reached(&self, from: &[String]) -> BTreeSet<&Vec<String>> {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(module) = next.pop() {
            for (_, to) in &self.imports[module] {
                if reached.insert(to) {
                    next.push(to);
                }
            }
        }
        reached
    }
}

/// The modules that a path leads to. If a module re-exports the name for one system, its source counts.
fn sources(
    path: &[String],
    named: &BTreeMap<&Vec<String>, Vec<(usize, Vec<String>)>>,
    hands_on: &impl Fn(&Vec<String>, usize) -> bool,
) -> Vec<Vec<String>> {
    let Some(to) = (0..=path.len()).rev().map(|n| path[..n].to_vec()).find(|to| named.contains_key(to))
    else {
        return Vec::new();
    };
    let handed = named[&to].iter().filter(|(line, other)| {
        path.len() > to.len() && other.last() == path.get(to.len()) && hands_on(&to, *line)
    });
    let found: Vec<_> = handed
        .filter(|(_, other)| other.starts_with(&to) && other.len() > to.len() + 1)
        .flat_map(|(_, other)| sources(other, named, hands_on))
        .collect();
    if found.is_empty() { vec![to] } else { found }
}

fn gather(folder: &Path, below: &mut Vec<String>, texts: &mut BTreeMap<Vec<String>, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        below.push(path.file_stem().unwrap().to_str().unwrap().to_string());
        if path.is_dir() {
            gather(&path, below, texts);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            texts.insert(below.clone(), fs::read_to_string(&path).unwrap());
        }
        below.pop();
    }
}

/// The module of a file, given its path below `src`.
fn module_of(path: &[String]) -> Vec<String> {
    match path {
        [folders @ .., last] if last == "mod" => folders.to_vec(),
        [only] if only == "lib" || only == "main" => Vec::new(),
        _ => path.to_vec(),
    }
}

/// The lines without comments, up to the file's tests.
fn production_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines.windows(2).position(|two| is_for_tests(two[0]) && two[1].ends_with(" {"));
    let code = |line: &&str| line.split("//").next().unwrap_or_default().to_string();
    lines[..tests.unwrap_or(lines.len())].iter().map(code).collect()
}

/// Whether the next item is only built for tests.
fn is_for_tests(line: &str) -> bool {
    line == "#[cfg(test)]" || line.starts_with("#[cfg(all(test,")
}

/// The child modules that are only built for tests.
fn test_children(module: &[String], lines: &[String]) -> Vec<Vec<String>> {
    let declared = lines.windows(2).filter(|two| is_for_tests(two[0].trim()));
    let names = declared.filter_map(|two| declared_module(&two[1]));
    names.map(|name| [module, &[name.to_string()]].concat()).collect()
}

/// The module that a line declares.
fn declared_module(line: &str) -> Option<&str> {
    let mut words = line.trim().strip_suffix(';')?.split_whitespace().rev();
    let name = words.next()?;
    (words.next() == Some("mod")).then_some(name)
}

/// Whether a line is in an inline module; rustfmt guarantees the indentation of its closing brace.
fn is_inline(lines: &[String], line: usize) -> bool {
    let opens = |text: &&String| text.contains("mod ") && text.ends_with(" {");
    let last = lines[..line].iter().rev().find(|text| text.as_str() == "}" || opens(text));
    last.is_some_and(|text| text != "}")
}

/// All paths in a file to other modules of the crate, each with its line.
fn paths(module: &[String], lines: &[String]) -> Vec<(usize, Vec<String>)> {
    let children: Vec<&str> = lines.iter().filter_map(|line| declared_module(line)).collect();
    let text = lines.join("\n");
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(start) = text[at..].find(is_word).map(|start| at + start) {
        let word: &str = text[start..].split(|c| !is_word(c)).next().unwrap_or_default();
        at = start + word.len();
        let line = || text[..start].matches('\n').count();
        // A visibility is no import.
        let begins = !["::", ".", "pub(in "].iter().any(|before| text[..start].ends_with(before));
        let base = match word {
            "crate" => Some(Vec::new()),
            "super" if is_inline(lines, line()) => Some(module.to_vec()),
            "super" => Some(module[..module.len().saturating_sub(1)].to_vec()),
            "self" => Some(module.to_vec()),
            child if children.contains(&child) => Some([module, &[child.to_string()]].concat()),
            _ => None,
        };
        let Some(base) = base.filter(|_| begins) else { continue };
        let Some(rest) = text[at..].strip_prefix("::") else { continue };
        for path in tree(base, &mut rest.chars().peekable()) {
            found.push((line() + 1, path));
        }
    }
    found
}

/// The paths of a use tree, or of a path, after its first word.
fn tree(mut path: Vec<String>, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    if rest.next_if_eq(&'{').is_some() {
        loop {
            while rest.next_if(|c| c.is_whitespace() || *c == ',').is_some() {}
            if rest.next_if_eq(&'}').is_some() || rest.peek().is_none() {
                return all;
            }
            all.extend(tree(path.clone(), rest));
            // The rest of an element is `as` and another name.
            while rest.next_if(|c| !matches!(c, ',' | '}')).is_some() {}
        }
    }
    let mut word = String::new();
    while let Some(c) = rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
        word.push(c);
    }
    match word.as_str() {
        "" | "self" => return vec![path],
        "super" => _ = path.pop(),
        _ => path.push(word),
    }
    let mut ahead = rest.clone();
    if ahead.next() == Some(':') && ahead.next() == Some(':') {
        *rest = ahead;
        return tree(path, rest);
    }
    vec![path]
}

#[track_caller]
fn none(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn imports_run_down() {
    for (krate, floors) in HOUSES {
        none(&format!("imports in {krate} that do not run down"), &House::of_crate(krate).upward(floors));
    }
}

#[test]
fn no_circle_is_large() {
    for krate in WITHOUT_CIRCLES {
        none(&format!("circles of imports in {krate}"), &House::of_crate(krate).circles());
    }
}

/// What changes files or rows, and the rooms of `keeper` in which it is called. `platform` does what it is asked for.
const ACTS: &[(&str, &[&str])] = &[
    (".exchange(", &["swap"]),
    (".rename(", &["disk", "swap", "vault"]),
    (".execute(", &["stores"]),
    (".execute_batch(", &["stores"]),
];

#[test]
fn only_some_rooms_change_files_or_rows() {
    let mut texts = BTreeMap::new();
    gather(&root().join("crates/keeper/src"), &mut Vec::new(), &mut texts);
    let is_of_tests = |path: &[String]| path.iter().any(|part| ["tests", "actions"].contains(&part.as_str()));
    texts.retain(|path, _| path.first().is_some_and(|room| room != "platform") && !is_of_tests(path));
    for (call, rooms) in ACTS {
        let calls = |text: &String| production_lines(text).iter().any(|line| line.contains(call));
        let callers = texts.iter().filter(|(_, text)| calls(text));
        let callers: BTreeSet<&str> = callers.map(|(path, _)| path[0].as_str()).collect();
        assert_eq!(callers, rooms.iter().copied().collect(), "{call}");
    }
}

#[test]
fn the_archive_knows_no_transcripts() {
    let mut texts = BTreeMap::new();
    gather(&root().join("crates/keeper/src"), &mut Vec::new(), &mut texts);
    texts.retain(|path, _| path.first().is_some_and(|room| room == "archive"));
    assert!(texts.len() > 5);
    let knows = |text: &String| production_lines(text).iter().any(|line| line.contains("transcript::"));
    assert!(!texts.values().any(knows));
}

fn house(files: &[(&str, &str)]) -> House {
    let path = |name: &str| name.split('/').map(str::to_string).collect();
    House::of_texts(files.iter().map(|(name, text)| (path(name), text.to_string())).collect())
}

#[test]
fn an_import_upwards_is_found_however_it_is_written() {
    let floors: &[&[&str]] = &[&["low"], &["high", "beside"]];
    for text in [
        "use crate::high::Thing;",
        "use crate::{low::x, high};",
        "fn f() {\n    crate::high::f();\n}",
        "use super::high::{self, Thing};",
        "use crate::Thing;",
    ] {
        let house = house(&[("lib", "mod low;\nmod high;\nuse low::a;"), ("low", text), ("high", "")]);
        assert!(!house.upward(floors).is_empty(), "{text}");
    }
    let fine = [
        ("lib", "pub use high::Thing;\nmod high;\nmod low;"),
        (
            "low",
            "mod inner;\nuse inner::x;\n// crate::high\n#[cfg(test)]\nmod tests {\nuse crate::high::x;\n}",
        ),
        (
            "low/inner",
            "use super::super::low::y;\nuse super::*;\nmod written {\n    use super::z;\n}\n#[cfg(test)]\nmod only;",
        ),
        ("low/inner/only", "use crate::high::x;"),
        ("high", "use crate::low::{\n    inner::x,\n    y,\n};"),
    ];
    assert_eq!(house(&fine).upward(floors), [""; 0]);
    let beside = house(&[("lib", ""), ("high", "use crate::beside::x;"), ("beside", "")]);
    assert_eq!(beside.upward(floors), ["high.rs:1: beside"]);
    assert_eq!(house(&[("attic", "")]).upward(floors), ["attic stands on no floor"]);
}

#[test]
fn a_circle_is_found() {
    let ring = |last: &'static str| {
        house(&[
            ("lib", "#[cfg(unix)]\npub use e::y;\nmod a;\nmod b;\nmod c;\nmod d;\nmod e;\nuse a::z;"),
            ("e", ""),
            ("a", "use crate::b::x;"),
            ("b", "use super::c::x;"),
            ("c", "fn f() {\n    crate::d::x()\n}"),
            ("d", last),
        ])
    };
    assert_eq!(ring("use crate::a::x;").circles(), ["a, b, c, d"]);
    assert_eq!(ring("use crate::b::x;").circles(), [""; 0]);
    // A re-export for one system counts as an import from its source.
    assert_eq!(ring("use crate::y;").circles(), [""; 0]);
}
