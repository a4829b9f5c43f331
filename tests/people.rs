//! What people see: width, colours, suggestions, completions; and what Ctrl-C leaves.
//!
//! `tests/screens/` holds what terminals show; `UPDATE=1` rewrites it. Read the difference.

use crate::support::{BROKEN, Dir, WHOLE, differs, root, skipped};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Runs a command on a terminal of this width, and returns what appears there.
pub(crate) fn on_terminal(columns: u16, command: Command) -> String {
    typed(columns, command, "")
}

/// The same, with typed input.
fn typed(columns: u16, command: Command, keys: &str) -> String {
    let (mut child, mut terminal) = begun_on_terminal(columns, command);
    terminal.write_all(keys.as_bytes()).unwrap();
    let mut seen = Vec::new();
    // The end of a terminal is reported as an error.
    let _ = terminal.read_to_end(&mut seen);
    child.wait().unwrap();
    String::from_utf8(seen).unwrap().replace("\r\n", "\n")
}

/// A command that has begun on a terminal of so many columns, and the other side of that.
pub(crate) fn begun_on_terminal(columns: u16, mut command: Command) -> (Child, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    #[cfg(not(target_vendor = "apple"))]
    let flags = flags | OpenptFlags::CLOEXEC;
    let terminal = openpt(flags).unwrap();
    // A command that held it as well would never lose its terminal. Apple's systems cannot be told so at opening.
    fcntl_setfd(&terminal, FdFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let other = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let stream = || Stdio::from(other.try_clone().unwrap());
    let child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
    // Reading only ends once neither we nor the command hold this side open.
    drop((command, other));
    (child, File::from(terminal))
}

/// Files that cause every kind of output.
fn folder() -> Dir {
    let dir = Dir::new();
    dir.write("broken.jsonl", BROKEN);
    dir.write("whole.jsonl", WHOLE);
    dir.write("note.jsonl", WHOLE.trim_end());
    dir.write("damaged.jsonl", format!("undefined\n{WHOLE}"));
    dir.write("none.jsonl", "no transcript\n");
    dir.write("long.jsonl", three_long_results());
    dir.write(
        "a-rather-long-folder-name/with-another-one-inside/and-a-session-with-a-long-name.jsonl",
        BROKEN,
    );
    dir
}

/// A session with three results that are too long, and with one abandoned branch.
fn three_long_results() -> String {
    let mut text = WHOLE.to_string();
    let mut parent = "a1".to_string();
    for n in 0..3 {
        let call = format!(
            r#"{{"type":"message","id":"c{n}","parentId":"{parent}","message":{{"role":"assistant","content":[{{"type":"toolCall","id":"t{n}","name":"bash","arguments":{{}}}}],"stopReason":"toolUse"}}}}"#
        );
        let result = format!(
            r#"{{"type":"message","id":"r{n}","parentId":"c{n}","message":{{"role":"toolResult","toolCallId":"t{n}","toolName":"bash","content":"{}"}}}}"#,
            "row ".repeat(10_000 + n)
        );
        text.extend([&call, "\n", &result, "\n"]);
        parent = format!("r{n}");
    }
    for (id, parent) in [("left", "r1"), ("last", &parent)] {
        let said = format!(
            r#"{{"type":"message","id":"{id}","parentId":"{parent}","message":{{"role":"user","content":"and?"}}}}"#
        );
        text.extend([&said, "\n"]);
    }
    text
}

fn command(dir: &Dir, arguments: &[&str], settings: &[(&str, &str)]) -> Command {
    let mut command = dir.command();
    command.args(arguments).env("TERM", "xterm").envs(settings.iter().copied());
    command
}

#[test]
fn screens_look_as_they_should() {
    let looks: &[(&str, &[&str])] = &[
        ("scan", &["scan", "."]),
        ("all", &["scan", ".", "--show", "all"]),
        ("statistics", &["scan", ".", "--statistics"]),
        ("fix", &["fix", "--settle", "0", "."]),
        ("diff", &["fix", "--dry-run", "--diff", "--settle", "0", "broken.jsonl"]),
        ("error", &["scan", "gone.jsonl", "whole.jsonl"]),
        ("help", &["fix", "-h"]),
        ("alone", &[]),
    ];
    let mut wrong = Vec::new();
    for (name, arguments) in looks {
        for columns in [80, 120] {
            for (colour, settings) in [("plain", &[("NO_COLOR", "1")][..]), ("colour", &[])] {
                // On a busy machine, a progress bar appears.
                let mut runs = (0..5).map(|_| on_terminal(columns, command(&folder(), arguments, settings)));
                let seen = runs.find(|seen| !seen.contains("B/s, ")).unwrap();
                assert!(colour == "colour" || !seen.contains('\u{1b}'), "{name}: {seen:?}");
                let path = root().join(format!("tests/screens/{name}-{columns}-{colour}.txt"));
                let seen = seen.replace('\u{1b}', "␛");
                wrong.extend(differs(&path, &seen));
            }
        }
    }
    assert!(wrong.is_empty(), "other than expected:\n{}", wrong.join("\n"));
}

/// Lines are wrapped between words on narrow terminals; piped output is never wrapped or coloured.
#[test]
fn lines_are_broken_for_a_terminal_only() {
    let dir = folder();
    let seen = on_terminal(40, command(&dir, &["scan", "broken.jsonl"], &[("NO_COLOR", "1")]));
    assert!(seen.lines().all(|line| line.chars().count() <= 40), "{seen}");
    let piped = dir.tailor(&["scan", "broken.jsonl"]).text();
    let together = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(together(&seen), together(&piped));
    assert_eq!((piped.lines().count(), piped.contains('\u{1b}')), (3, false));
}

#[test]
fn a_terminal_that_knows_no_other_characters_gets_ascii() {
    let dir = Dir::new();
    dir.write("größe 日.jsonl", BROKEN);
    let seen = on_terminal(200, command(&dir, &["scan", "."], &[("LC_ALL", "C"), ("NO_COLOR", "1")]));
    assert!(seen.is_ascii() && seen.contains("gr\\u{f6}\\u{df}e \\u{65e5}.jsonl"), "{seen}");
    for settings in [&[("LANG", "C.UTF-8"), ("NO_COLOR", "1")][..], &[("NO_COLOR", "1")]] {
        let seen = on_terminal(200, command(&dir, &["scan", "."], settings));
        assert!(seen.contains("größe 日.jsonl"), "{seen}");
    }
}

/// Names and contents that try to clear the screen, set the title, use the clipboard, or reverse text.
#[test]
fn nothing_from_a_file_writes_an_escape() {
    let evil = "\u{1b}[2J\u{1b}]0;x\u{7}\u{1b}]52;c;eA==\u{7}\u{9b}31m\u{202e}\r";
    let dir = Dir::new();
    let inside: String = serde_json::to_string(evil).unwrap();
    let inside = inside.trim_matches('"').replace('\u{9b}', "\\u009b").replace('\u{202e}', "\\u202e");
    let text = BROKEN.replace("bash", &format!("ba{inside}sh")).replace("well?", &inside);
    dir.write(format!("{evil}.jsonl"), text.replace("\"a2\"", &format!("\"a2{inside}\"")));
    dir.write(format!("x{evil}.jsonl"), format!("{evil}\n"));
    let looks: &[&[&str]] = &[
        &["scan", "."],
        &["doctor", "."],
        &["fix", "--dry-run", "--diff", "--show-content", "--settle", "0", "."],
        &["scan", ".", "--format", "json"],
        &["scan", ".", "--format", "sarif"],
        &["scan", ".", "--format", "junit"],
        &["scan", ".", "--format", "github"],
        &["scan", ".", "--format", "gitlab"],
        &["scan", evil],
        &["explain", evil],
    ];
    for arguments in looks {
        let seen = on_terminal(100, command(&dir, arguments, &[("NO_COLOR", "1")]));
        let harmless = |c: char| c == '\n' || !(c.is_control() || ['\u{202e}', '\u{9b}'].contains(&c));
        assert!(seen.chars().all(harmless), "{arguments:?}: {seen:?}");
    }
}

#[test]
fn fix_without_a_path_asks_on_a_terminal() {
    let dir = Dir::new();
    let path = dir.home().join(".pi/agent/sessions/--w--/s.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, BROKEN).unwrap();
    crate::support::make_old(&path);
    for (keys, changed) in [("n\n", false), ("\n", false), ("y\n", true)] {
        let seen = typed(120, command(&dir, &["fix"], &[("NO_COLOR", "1")]), keys);
        let (listed, question) = seen.split_once("Repair ").unwrap_or_else(|| panic!("{seen}"));
        // The typed input comes first.
        let lines: Vec<&str> = listed.lines().filter(|line| line.len() > 1).collect();
        let line = "broken  ~/.pi/agent/sessions/--w--/s.jsonl: 1 problem, 551 B → 874 B";
        assert!(lines.len() == 2 && lines[0] == line, "{seen}");
        assert!(question.starts_with("1 session (1 broken) in place? Each can be undone. [y/N] "), "{seen}");
        assert_eq!(seen.contains("nothing was changed"), !changed, "{seen}");
        assert_eq!(fs::read_to_string(&path).unwrap() != BROKEN, changed, "{seen}");
    }
    let seen = typed(120, command(&dir, &["fix"], &[]), "");
    assert!(seen.contains("nothing wrong") && !seen.contains("[y/N]"), "{seen}");
}

#[test]
fn fix_without_a_path_can_repair_what_is_broken_alone() {
    let dir = Dir::new();
    let folder = dir.home().join(".pi/agent/sessions/--w--");
    fs::create_dir_all(&folder).unwrap();
    let result = format!(
        r#"{{"type":"message","id":"r","parentId":"a2","timestamp":"2026-07-01T10:00:02.500Z","message":{{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{{"type":"text","text":"{}"}}],"isError":false}}}}"#,
        "a word ".repeat(9_000)
    );
    let (begin, last) = BROKEN.trim_end().rsplit_once('\n').unwrap();
    let large = format!("{begin}\n{result}\n{}\n", last.replace("\"a2\"", "\"r\""));
    let files = [("broken.jsonl", BROKEN), ("large.jsonl", &*large)].map(|(name, text)| {
        fs::write(folder.join(name), text).unwrap();
        crate::support::make_old(&folder.join(name));
        (folder.join(name), text)
    });
    let seen = typed(120, command(&dir, &["fix"], &[("NO_COLOR", "1")]), "b\n");
    assert!(seen.contains("Repair in place [b] the 1 broken, [a] all 2, [N] none?"), "{seen}");
    for (path, text) in files {
        let is_changed = fs::read_to_string(&path).unwrap() != text;
        assert_eq!(is_changed, text == BROKEN, "{}: {seen}", path.display());
    }
}

#[test]
fn what_a_repository_ignores_is_not_read_unless_that_is_asked_for() {
    let dir = Dir::new();
    let root = dir.path("repo");
    for path in ["node_modules/a.jsonl", ".cache/b.jsonl", ".pi/agent/sessions/c.jsonl", "tests/d.jsonl"] {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), BROKEN).unwrap();
    }
    fs::write(root.join(".gitignore"), "node_modules/\n").unwrap();
    let read = |arguments: &[&str]| -> String {
        let done = crate::support::run(dir.command().arg("scan").args(arguments), b"");
        let said = String::from_utf8(done.stdout).unwrap() + &done.stderr;
        ["a", "b", "c", "d"].into_iter().filter(|name| said.contains(&format!("{name}.jsonl"))).collect()
    };
    assert_eq!(read(&["repo"]), "cd");
    assert_eq!(read(&["--no-ignore", "repo"]), "abcd");
    assert_eq!(read(&["--exclude", "tests", "repo"]), "c");
    assert_eq!(read(&["--no-ignore", "--exclude", "*/b.jsonl", "--exclude", ".pi/", "repo"]), "ad");
    // In an agent's own folder nothing is ignored.
    fs::write(root.join(".pi/.gitignore"), "sessions/\n").unwrap();
    assert_eq!(read(&["repo/.pi"]), "c");
    // What is named is read.
    assert_eq!(read(&["--exclude", "*.jsonl", "repo/node_modules/a.jsonl"]), "a");
    assert_eq!(read(&["repo/.cache"]), "b");
    let said = crate::support::run(dir.command().args(["scan", "--exclude", "*.jsonl", "repo"]), b"");
    let said = said.stderr;
    assert!(said.contains("--no-ignore reads") && said.contains("--exclude names, and"), "{said}");
    let bad = crate::support::run(dir.command().args(["scan", "--exclude", "a[", "repo"]), b"");
    assert!(bad.stderr.contains("unclosed character class"), "{}", bad.stderr);
}

#[test]
fn an_ignore_file_that_is_none_or_too_long_is_named_and_not_obeyed() {
    let dir = Dir::new();
    let path = dir.write("repo/sub/a.jsonl", BROKEN);
    let folder = path.parent().unwrap();
    let read = || {
        let mut command = dir.command_of("timeout");
        let done =
            crate::support::run(command.args(["60", env!("CARGO_BIN_EXE_tailor"), "scan", "repo"]), b"");
        (String::from_utf8(done.stdout).unwrap() + &done.stderr, done.status)
    };
    fs::write(folder.join("globs"), "a.jsonl\n").unwrap();
    let name = folder.join(".gitignore");
    let pipe = |name: &Path| assert!(Command::new("mkfifo").arg(name).status().unwrap().success());
    let long = |name: &Path| fs::write(name, "a.jsonl\n".repeat(1 << 17) + "#").unwrap();
    let link = |name: &Path| std::os::unix::fs::symlink("globs", name).unwrap();
    for put in [&pipe as &dyn Fn(&Path), &long, &link] {
        put(&name);
        let (said, status) = read();
        assert!(said.contains("a.jsonl") && said.contains(".gitignore: could not obey"), "{status}: {said}");
        fs::remove_file(&name).unwrap();
    }
    fs::write(&name, "\u{feff}*.jsonl\n").unwrap();
    assert!(read().0.contains("no transcripts found"));
    // As for ripgrep, an inner file decides before an outer one, and `.ignore` before `.gitignore`.
    fs::write(folder.join(".ignore"), "!a.jsonl\n").unwrap();
    fs::write(dir.path("repo/.ignore"), "a.jsonl\n").unwrap();
    assert!(!read().0.contains("no transcripts found"));
}

#[test]
fn ctrl_c_at_the_question_ends_at_once() {
    let dir = Dir::new();
    let path = dir.home().join(".pi/agent/sessions/--w--/s.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, BROKEN).unwrap();
    crate::support::make_old(&path);
    let (mut child, mut terminal) = begun_on_terminal(120, command(&dir, &["fix"], &[("NO_COLOR", "1")]));
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(b"[y/N] ") {
        terminal.read_exact(&mut byte).unwrap();
        seen.push(byte[0]);
    }
    interrupt(&child);
    // A busy machine may need seconds.
    for _ in 0..1_200 {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    // Ends the command if it still waits.
    let _ = terminal.write_all(b"n\n");
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
    assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
}

#[test]
fn what_was_meant_is_suggested() {
    let dir = Dir::new();
    dir.write("s.jsonl", WHOLE);
    for (arguments, meant) in [
        (&["scna"][..], "'scan'"),
        (&["fxi"], "'fix'"),
        (
            &["scan", "s.jsonl", "--select", "P99"],
            "no such rule (tailor explain lists them); did you mean P9?",
        ),
        (&["scan", "--formt", "json"], "'--format'"),
        (&["scan", "s.jsonl", "--select", "oversize-result"], "did you mean oversized-result?"),
        (&["scan", "s.jsonl", "--fail-on", "eror"], "did you mean error?"),
        (&["scan", "s.jsonl", "--profile", "chatcil"], "did you mean chatcli?"),
        (&["explain", "tornline"], "did you mean torn-line?"),
    ] {
        let run = dir.tailor(arguments);
        assert_eq!(run.status, 2, "{arguments:?}");
        assert!(run.stderr.contains(meant), "{arguments:?}: {}", run.stderr);
    }
}

/// `-h` fits a screen, with the most common options first; `--help` is the manual.
#[test]
fn the_short_help_is_short_and_begins_with_what_is_needed() {
    let dir = Dir::new();
    for command in ["scan", "fix", "undo"] {
        let [short, long] = ["-h", "--help"].map(|help| dir.tailor(&[command, help]).text());
        assert!(command == "undo" || !short.contains("--stale-") && long.contains("--stale-"), "{short}");
        let defaults = long.lines().filter(|line| line.contains("(default") || line.ends_with("000)"));
        assert_eq!(defaults.collect::<Vec<_>>(), Vec::<&str>::new(), "one style for defaults: [default: …]");
    }
    let short = dir.tailor(&["fix", "-h"]).text();
    let (_, options) = short.split_once("Options:\n").unwrap();
    let names = options.lines().filter_map(|line| line.trim_start().strip_prefix("--")?.split(' ').next());
    assert_eq!(names.take(4).collect::<Vec<_>>(), ["dry-run", "diff", "select", "allow"], "{short}");
    assert!(short.contains("Undo: tailor undo session.jsonl"), "{short}");
}

/// All commands, hidden ones aside, in the order of the help.
fn commands(dir: &Dir) -> Vec<String> {
    let help = dir.tailor(&["help"]).text();
    let (commands, _) = help.split_once("\nOptions:\n").unwrap();
    let named = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  "));
    let commands: Vec<String> = named.map(|(name, _)| name.to_string()).collect();
    assert!(commands.len() > 20, "{help}");
    commands
}

/// Two dozen commands are too many to read.
#[test]
fn the_help_begins_with_the_commands_of_an_ordinary_day() {
    let dir = Dir::new();
    let [short, long] = ["-h", "--help"].map(|help| dir.tailor(&[help]).text());
    let (_, listed) = short.split_once("Everyday commands:\n").unwrap();
    let (listed, more) = listed.split_once("\n\n").unwrap();
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, commands(&dir)[..10]);
    assert!(more.starts_with("More commands (tailor --help): compact, chunk, show, forget, gc, "), "{short}");
    assert!(long.contains("\nSessions in databases:\n  export "), "{long}");
    assert!(long.lines().all(|line| line.chars().count() <= 100), "{long}");
    // What it says in colours is the same.
    let seen = on_terminal(80, command(&dir, &["-h"], &[]));
    assert!(seen.contains("\u{1b}[") && !short.contains('\u{1b}'), "{seen}");
}

/// Each command, hidden ones aside, has examples and exit codes in its help, and sends nobody to a page that a wheel or an npm
/// package does not hold.
#[test]
fn each_help_has_examples() {
    let dir = Dir::new();
    for name in commands(&dir) {
        for help in ["-h", "--help"] {
            let text = dir.tailor(&[&name, help]).text();
            assert!(text.contains(&format!("Examples:\n  tailor {name}")), "{name}: {text}");
            assert!(text.contains("\nExit codes: ") && !text.contains("docs/"), "{name}: {text}");
        }
    }
}

/// `-h` of each command fits a screen of 80 columns and 40 lines.
#[test]
fn the_short_help_is_a_screen() {
    let dir = Dir::new();
    let mut all: Vec<Vec<String>> = commands(&dir).into_iter().map(|name| vec![name]).collect();
    all.extend(
        ["check", "print", "init", "schema"].map(|below| vec!["config".to_string(), below.to_string()]),
    );
    all.push(Vec::new());
    for words in all {
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["-h"]).collect();
        let seen = on_terminal(80, command(&dir, &arguments, &[("NO_COLOR", "1")]));
        assert!(seen.lines().count() <= 40, "{} lines:\n{seen}", seen.lines().count());
        assert!(seen.lines().all(|line| line.chars().count() <= 80), "{seen}");
    }
}

/// How much is said, and in which colours, is the same for all commands.
#[test]
fn colours_and_words_are_chosen_for_any_command() {
    let dir = folder();
    let scan = |more: &[&str]| dir.tailor(&[&["scan", "."], more].concat());
    assert!(!scan(&[]).text().contains('\u{1b}') && scan(&["--color", "always"]).text().contains('\u{1b}'));
    let seen = on_terminal(80, command(&dir, &["--color", "never", "scan", "."], &[]));
    assert!(!seen.contains('\u{1b}') && seen.contains("P1"), "{seen:?}");
    let quiet = scan(&["-q"]);
    let all = scan(&[]).text();
    let without_totals = all
        .strip_suffix(all.lines().next_back().unwrap())
        .or(all.rsplit_once("7 files").map(|(begin, _)| begin));
    assert_eq!(Some(quiet.text().as_str()), without_totals, "{all}");
    let verbose = scan(&["-v", "-j", "1"]);
    assert!(verbose.stderr.contains("configuration: no file"), "{}", verbose.stderr);
    assert!(
        verbose.text().contains("whole.jsonl: clean") && verbose.text().contains("none.jsonl"),
        "{}",
        verbose.text()
    );
    assert_eq!(dir.tailor(&["scan", ".", "-q", "-v"]).status, 2);
    assert_eq!(dir.tailor(&["scan", ".", "-j", "0"]).status, 2);
}

/// Each command, as it is asked for something, and whether it has progress, hints or totals that `-q` leaves out.
const ASKED: [(&str, bool); 20] = [
    ("scan .", true),
    ("scan - --lines", true),
    ("fix . --dry-run --settle 0", true),
    ("doctor .", true),
    ("top .", true),
    ("diff broken.jsonl whole.jsonl", true),
    ("undo .", true),
    ("undo", true),
    ("undo --list", true),
    ("gc", true),
    ("config check", true),
    ("explain", false),
    ("config print", false),
    ("explain P1 broken.jsonl", false),
    ("chunk broken.jsonl", false),
    ("recover broken.jsonl --dry-run --settle 0", true),
    ("compact long.jsonl --dry-run --settle 0 --keep 1", false),
    ("resume pi --no-start --settle 0", true),
    ("report . -o ../page.html", true),
    ("schema", false),
];

/// `-q` leaves lines out and adds none, `-v` leaves none out, `--color` changes nothing but colours, and `-j` nothing.
#[test]
fn every_command_is_as_quiet_verbose_and_colourful_as_it_is_told_to_be() {
    let of_all: Vec<String> =
        ASKED.iter().map(|(words, _)| words.split(' ').next().unwrap().into()).collect();
    for name in commands(&Dir::new()) {
        // Those that are left print what they are asked for, or are tried elsewhere with a daemon and a vault.
        let elsewhere = ["export", "prune", "show", "forget", "keep", "watch", "status", "completions"];
        assert!(of_all.contains(&name) || elsewhere.contains(&name.as_str()), "{name} is not tried");
    }
    for (words, has_more) in ASKED {
        let run = |more: &str| {
            let dir = folder();
            let own =
                dir.home().join(".pi/agent/sessions/--w--/2026_0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f.jsonl");
            fs::create_dir_all(own.parent().unwrap()).unwrap();
            fs::write(&own, BROKEN).unwrap();
            if words.starts_with("undo") {
                dir.tailor(&["fix", ".", "--settle", "0"]);
            }
            let mut command = dir.command();
            command.args(words.split(' ')).args(more.split(' ').filter(|word| !word.is_empty()));
            let run = crate::support::run(&mut command, BROKEN.as_bytes());
            assert!(run.status < 2, "{words} {more}: {}", run.stderr);
            // Where the test is, and which run it was, differ.
            let text = (run.text() + &run.stderr).replace(dir.home().to_str().unwrap(), "HOME");
            text.lines().map(|line| line.split(", run ").next().unwrap().to_string()).collect::<Vec<_>>()
        };
        let without_colours =
            |lines: &[String]| lines.iter().map(|line| anstream_plain(line)).collect::<Vec<_>>();
        let stable = |lines: Vec<String>| {
            // Names and times of runs, and how long ago.
            let is_stable = |line: &String| !words.starts_with("undo") && !line.contains(" ago");
            lines.into_iter().filter(is_stable).collect::<Vec<_>>()
        };
        let all = run("");
        let [quiet, verbose, coloured, plain, alone] =
            ["-q", "-v", "--color always", "--color never", "-j 1"].map(run);
        let is_there = |line: &&String| all.iter().any(|other| other == *line);
        let (kept, count) = (stable(quiet.clone()), stable(all.clone()));
        assert_eq!(kept.iter().find(|line| !is_there(line)), None, "{words} -q says something else");
        assert_eq!(
            quiet.len() < all.len() || quiet.concat().len() < all.concat().len(),
            has_more,
            "{words}: {quiet:#?}\n{all:#?}"
        );
        assert!(verbose.len() >= all.len(), "{words}: {verbose:#?}");
        assert_eq!(stable(without_colours(&coloured)), count, "{words}");
        assert_eq!((stable(plain.clone()), stable(alone)), (count.clone(), count), "{words}");
        assert!(!plain.concat().contains('\u{1b}'), "{words}");
    }
}

/// A line without sequences that set colours.
fn anstream_plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap().to_string();
    parts.fold(first, |text, part| text + part.split_once('m').unwrap().1)
}

/// In every type of line, a field of some name is defined alike.
#[test]
fn a_field_means_the_same_wherever_it_stands() {
    let printed = Dir::new().tailor(&["schema"]).stdout;
    let schema: serde_json::Value = serde_json::from_slice(&printed).unwrap();
    let mut seen: std::collections::BTreeMap<&str, (&str, &serde_json::Value)> =
        std::collections::BTreeMap::default();
    let mut wrong = Vec::new();
    let mut repeated = 0;
    for (kind, part) in schema["$defs"].as_object().unwrap() {
        for (name, field) in part["properties"].as_object().into_iter().flatten() {
            // A line of a data set that is no session has no code; the log's level is not that of a recovery.
            let excepted = [("row", "code"), ("log", "level")];
            if name == "type" || excepted.contains(&(kind.as_str(), name.as_str())) {
                continue;
            }
            let (first, known) = *seen.entry(name).or_insert((kind, field));
            repeated += usize::from(first != kind);
            if known != field {
                wrong.push(format!("{name} in {kind}: {field}\n    in {first}: {known}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(repeated > 100, "{repeated}");
    // A type has one shape.
    let kinds = schema["$defs"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(|part| part["properties"]["type"]["const"].as_str());
    let mut kinds: Vec<&str> = kinds.collect();
    let count = kinds.len();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), count);
}

/// What people type instead of the names of commands and options.
#[test]
fn other_names_lead_to_the_same() {
    let dir = Dir::new();
    dir.write("b.jsonl", BROKEN);
    for (one, other) in [
        (&["scan", "b.jsonl"][..], &["check", "b.jsonl"][..]),
        (&["doctor", "b.jsonl"], &["ls", "b.jsonl"]),
        (
            &["fix", "b.jsonl", "--dry-run", "--settle", "0"],
            &["repair", "b.jsonl", "--dry-run", "--settle", "0s"],
        ),
        (&["undo", "--list", "b.jsonl"], &["restore", "--list", "b.jsonl"]),
        (&["scan", "b.jsonl", "--cut-results", "2k"], &["scan", "b.jsonl", "--cut-results", "2000"]),
        (&["scan", "b.jsonl", "--max-file-size", "1k"], &["scan", "b.jsonl", "--max-file-size", "1024"]),
        (&["gc", "--dry-run", "--older-than", "7d"], &["gc", "--dry-run", "--older-than", "1w"]),
    ] {
        let [one, other] = [one, other].map(|arguments| dir.tailor(arguments));
        assert_eq!((one.status, one.text(), &one.stderr), (other.status, other.text(), &other.stderr));
        assert!(one.status < 2, "{}", one.stderr);
    }
    let bare = dir.tailor(&["gc", "--dry-run", "--older-than", "7"]);
    assert!(bare.status == 2 && bare.stderr.contains("with its unit"), "{}", bare.stderr);
}

#[test]
fn shells_can_read_their_completions() {
    let dir = Dir::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = dir.tailor(&["completions", shell]);
        assert_eq!((run.status, run.stderr.as_str()), (0, ""));
        assert!(run.text().contains("max-file-size"), "{shell}");
        let file = dir.write(shell, run.stdout);
        if !["bash", "zsh", "fish"].contains(&shell) {
            continue;
        }
        match Command::new(shell).arg("-n").arg(file).output() {
            Ok(read) => assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr)),
            Err(_) => skipped(&format!("completions for {shell}: it is not installed")),
        }
    }
    let bash = "source ./bash; COMP_WORDS=(tailor scan --max-f); COMP_CWORD=2; _tailor tailor --max-f scan; echo \"${COMPREPLY[@]}\"";
    let mut shell = dir.command_of("/bin/bash");
    let completed = crate::support::run(shell.args(["--noprofile", "--norc", "-c", bash]), b"");
    assert_eq!(completed.text().trim(), "--max-file-size", "{}", completed.stderr);
}

/// What is typed, and what the last word becomes.
pub(crate) const COMPLETED: [(&str, &str); 12] = [
    ("scan --only im", "images"),
    ("scan --profile openclaw-5", "openclaw-5057"),
    ("fix --select oversized-res", "oversized-result"),
    ("doctor --agent cod", "codex"),
    ("explain oversized-res", "oversized-result"),
    ("undo 0d0f", "0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f"),
    ("resume pi 0d0f", "0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f"),
    ("fix --dry-run 0d0f", "0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f"),
    ("scan -q 0d0f", "0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f"),
    ("fix --settle 0 0d0f", "0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f"),
    ("resume openco", "opencode"),
    ("scan --select P1,oversized-res", "P1,oversized-result"),
];

/// A home with one session, and a shell in it that finds the program.
pub(crate) fn shell_with_session(dir: &Dir, shell: &str) -> Command {
    let session = dir.home().join(".pi/agent/sessions/--w--/2026_0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f.jsonl");
    fs::create_dir_all(session.parent().unwrap()).unwrap();
    fs::write(session, WHOLE).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_tailor")).parent().unwrap();
    let mut command = dir.command_of(shell);
    command.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
    dir.write("script", dir.tailor(&["completions", shell.trim_start_matches("/usr/bin/")]).stdout);
    command
}

#[test]
fn bash_and_fish_complete_names_and_sessions() {
    let dir = Dir::new();
    for (words, wanted) in COMPLETED {
        let mut all: Vec<&str> = words.split(' ').collect();
        let last = all.pop().unwrap();
        let (at, before) = (all.len() + 1, all[all.len() - 1]);
        let bash = format!(
            "source ./script; COMP_WORDS=(tailor {words}); COMP_CWORD={at}; _tailor_and_sessions tailor {last} {before}; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let mut shell = shell_with_session(&dir, "/usr/bin/bash");
        let completed = crate::support::run(shell.args(["--noprofile", "--norc", "-c", &bash]), b"");
        assert_eq!(completed.text().trim(), wanted, "{words}: {}", completed.stderr);
        if !Path::new("/usr/bin/fish").exists() {
            skipped("completions in fish: it is not installed");
            continue;
        }
        let fish = format!("source ./script; complete -C 'tailor {words}'");
        let mut shell = shell_with_session(&dir, "/usr/bin/fish");
        let completed = crate::support::run(shell.args(["--no-config", "-c", &fish]), b"");
        let text = completed.text();
        let names: Vec<&str> = text.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(names, [wanted], "{words}: {}", completed.stderr);
    }
}

/// What the scripts for Elvish and `PowerShell` ask the program for; and in Elvish, what they make of it.
#[test]
fn elvish_and_powershell_complete_names_and_sessions() {
    let dir = Dir::new();
    drop(shell_with_session(&dir, "elvish"));
    for (words, wanted) in COMPLETED {
        let mut before: Vec<&str> = words.split(' ').collect();
        let last = before.pop().unwrap();
        let answer = dir.tailor(&[&["complete", last, "--"][..], &before].concat()).text();
        let names: Vec<&str> = answer.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(names, [wanted], "{words}");
    }
    // Options and commands are in the scripts themselves.
    assert_eq!(dir.tailor(&["complete", "--dry", "--", "fix"]).text(), "");
    let powershell = dir.tailor(&["completions", "powershell"]).text();
    assert!(powershell.contains("$own = @(tailor complete \"$wordToComplete\" '--' @before"), "{powershell}");
    if !Path::new("/usr/bin/elvish").exists() {
        return skipped("completions in Elvish: it is not installed");
    }
    // Only a terminal has `edit:`.
    let script = fs::read_to_string(dir.path("script")).unwrap();
    let script = script
        .replace("edit:completion:arg-completer", "completers")
        .replace("edit:complex-candidate", "candidate");
    let shown = [("fix --dry", "--dry-run")];
    for (words, wanted) in COMPLETED.into_iter().chain(shown) {
        let elvish = format!(
            "var completers = [&]\nfn candidate {{|text &display=''| put $text}}\n{script}\n$completers[tailor] tailor {words} | to-lines"
        );
        let mut shell = shell_with_session(&dir, "/usr/bin/elvish");
        let completed = crate::support::run(shell.args(["-norc", "-c", &elvish]), b"");
        let text = completed.text();
        let fitting = text.lines().filter(|name| wanted != "--dry-run" || name.starts_with("--dry"));
        assert_eq!(fitting.collect::<Vec<_>>(), [wanted], "{words}: {}", completed.stderr);
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let dir = Dir::new();
    assert_eq!(dir.tailor(&["man", "man1"]).status, 0);
    let names = dir.names();
    for name in ["man1/tailor.1", "man1/tailor-scan.1", "man1/tailor-config-check.1"] {
        assert!(names.iter().any(|page| page == name), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|page| page.contains("man-man") || page.contains("tailor-man")));
    let page = fs::read_to_string(dir.path("man1/tailor-scan.1")).unwrap();
    assert!(page.contains("max\\-file\\-size") && page.contains("Examples"), "{page}");
}

/// The output does not fit into a pipe, so the program cannot finish before it is read.
const MANY_FILES: usize = 600;

/// A run over many files that has started and waits for its output to be read.
fn begun(dir: &Dir) -> (Child, BufReader<std::process::ChildStdout>, BufReader<std::process::ChildStderr>) {
    for n in 0..MANY_FILES {
        dir.write(format!("{n:04}.jsonl"), BROKEN);
    }
    let mut command = dir.command();
    command.args(["fix", ".", "--settle", "0", "--format", "json"]).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::with_capacity(1, child.stdout.take().unwrap());
    let err = BufReader::new(child.stderr.take().unwrap());
    let mut first = [0];
    out.read_exact(&mut first).unwrap();
    (child, out, err)
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// How many files were repaired; all others must be unchanged.
fn mended(dir: &Dir, files: usize) -> usize {
    let mut names = dir.names();
    names.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "jsonl"));
    assert_eq!(names.len(), files, "{names:?}");
    let texts = names.iter().map(|name| fs::read_to_string(dir.path(name)).unwrap());
    let mended = texts.filter(|text| text != BROKEN);
    let whole = |text: &String| {
        assert!(text.starts_with(BROKEN.lines().next().unwrap()) && text.lines().count() == 5, "{text}");
    };
    mended.inspect(whole).count()
}

#[test]
fn an_interrupted_run_ends_after_the_files_at_hand_and_says_so() {
    let dir = Dir::new();
    let (mut child, mut out, mut err) = begun(&dir);
    interrupt(&child);
    let mut said = String::new();
    err.read_line(&mut said).unwrap();
    assert!(said.contains("Finishing the current files"), "{said}");
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let ended = child.wait().unwrap();
    assert_eq!(ended.signal(), Some(Signal::INT.as_raw()), "a shell is to see why it ended: {ended}");
    let text = format!("{{{rest}");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (summary, files) = lines.split_last().unwrap();
    let fixed = files.iter().filter(|file| file["outcome"] == "fixed").count();
    let left = summary["not_looked_at"].as_u64().unwrap() as usize;
    assert_eq!((files.len(), fixed + left), (fixed, MANY_FILES));
    assert_eq!((mended(&dir, MANY_FILES), dir.names().len()), (fixed, MANY_FILES));
    assert!(left > 0 && fixed > 0);
}

#[test]
fn a_second_interrupt_ends_at_once_and_every_file_is_whole() {
    let dir = Dir::new();
    let (mut child, out, mut err) = begun(&dir);
    interrupt(&child);
    err.read_line(&mut String::new()).unwrap();
    interrupt(&child);
    // Nobody has read the output, so it has not ended by itself.
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
    drop(out);
    let before = mended(&dir, MANY_FILES);
    assert!(before < MANY_FILES);
    let again = dir.tailor(&["fix", ".", "--settle", "0"]);
    assert_eq!(again.status, 0, "{}", again.stderr);
    assert_eq!((mended(&dir, MANY_FILES), dir.names().len()), (MANY_FILES, MANY_FILES));
}

#[test]
fn the_folder_of_screens_holds_nothing_else() {
    let known = ["scan", "all", "statistics", "fix", "diff", "error", "help", "alone", "doctor"];
    for entry in fs::read_dir(root().join("tests/screens")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let stem = Path::new(&name).file_stem().unwrap().to_str().unwrap();
        let stem = stem.rsplitn(3, '-').last().unwrap();
        assert!(known.contains(&stem), "tests/screens/{name} belongs to no test");
    }
}
