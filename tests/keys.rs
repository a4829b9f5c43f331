//! `tailor top` driven by keys, on terminals of 80 and 200 columns: what they show, and that they are given back.
//!
//! What is shown stands in `tests/snapshots/keys-*.txt`; `UPDATE=1` writes it anew. Read the difference.

use crate::people::{COMPLETED, begun_on_terminal, shell_with_session};
use crate::support::{BROKEN, Dir, WHOLE, as_written, root, skipped};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How long a screen is waited for: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// `top` on a terminal, or a shell.
struct Terminal {
    child: Child,
    keys: File,
    bytes: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    /// All that came.
    all: Vec<u8>,
}

impl Terminal {
    fn begin(dir: &Dir, columns: u16, arguments: &[&str]) -> Self {
        let mut command = dir.command();
        command.arg("top").args(arguments);
        Self::spawn(columns, command)
    }

    fn spawn(columns: u16, mut command: Command) -> Self {
        command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
        let (child, keys) = begun_on_terminal(columns, command);
        let (tell, bytes) = channel();
        let mut seen = keys.try_clone().unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The end of a terminal is an error.
            while let Ok(count @ 1..) = seen.read(&mut buffer) {
                if tell.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keys, bytes, screen: vt100::Parser::new(24, columns, 0), all: Vec::new() }
    }

    /// Waits until the screen shows something like that, and gives it.
    #[track_caller]
    fn until(&mut self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let text = self.screen.screen().contents();
            if is(&text) {
                return text;
            }
            assert!(begun.elapsed() < PATIENCE, "no {what}:\n{text}");
            if let Ok(bytes) = self.bytes.recv_timeout(Duration::from_millis(100)) {
                self.screen.process(&bytes);
                self.all.extend(bytes);
            }
        }
    }

    /// Types, and waits until the screen shows this.
    #[track_caller]
    fn press(&mut self, keys: &str, shows: &str) -> String {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.until(shows, |text| text.replace('\n', " ").contains(shows))
    }

    fn resize(&mut self, columns: u16, lines: u16) {
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keys, size).unwrap();
        self.screen.screen_mut().set_size(lines, columns);
    }

    /// Waits for the end, and looks whether the terminal is as it was.
    fn end(mut self) -> (ExitStatus, Vec<u8>) {
        let ended = self.child.wait().unwrap();
        while let Ok(bytes) = self.bytes.recv_timeout(Duration::from_secs(1)) {
            self.screen.process(&bytes);
            self.all.extend(bytes);
        }
        assert!(!self.screen.screen().alternate_screen() && !self.screen.screen().hide_cursor());
        (ended, self.all)
    }
}

/// Three sessions that were written two hours ago.
fn sessions() -> Dir {
    let dir = Dir::new();
    let then = SystemTime::now() - Duration::from_secs(2 * 3_600 + 30);
    for (name, text) in [("one", crate::top::session()), ("broken", BROKEN.into()), ("whole", WHOLE.into())] {
        let path = dir.write(format!("sessions/{name}.jsonl"), text);
        File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    }
    dir
}

const DOWN: &str = "\u{1b}[B";

/// Through all levels and back, on a terminal of so many columns.
fn walk(columns: u16) {
    let dir = sessions();
    let mut terminal = Terminal::begin(&dir, columns, &["sessions"]);
    let all_looked_at = |text: &str| text.contains("2 broken") && !text.contains("looking");
    let mut seen = vec![terminal.until("sessions", all_looked_at)];
    // Both are broken; the larger is the first.
    seen.push(terminal.press("\r", "Context: "));
    seen.push(terminal.press("\r", "of the file)"));
    seen.push(terminal.press("\r", "kind "));
    terminal.press("h", "largest first");
    terminal.press("s", "fullest first");
    terminal.press("\u{7f}", "Context: ");
    terminal.press("\u{1b}", "worst first");
    seen.push(terminal.press(&format!("{DOWN}l"), "Context: "));
    terminal.press("\u{1b}[D", "2 of 3");
    seen.push(terminal.press("/whol", "Find: whol_"));
    terminal.press("\r", "with \"whol\"");
    seen.push(terminal.press("?", "What fills your sessions"));
    terminal.press(" ", "with \"whol\"");
    terminal.resize(40, 12);
    seen.push(terminal.until("narrow screen", |text| text.contains("? help") && !text.contains("q quit")));
    terminal.press("q", "");
    let (ended, _) = terminal.end();
    assert!(ended.success(), "{ended}");
    let text = seen.join(&format!("\n{}\n", "=".repeat(40)));
    assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)), "{text}");
    assert!(!text.contains("row of many"), "no content unless asked for: {text}");
    let path = root().join(format!("tests/snapshots/keys-{columns}.txt"));
    as_written(&path, &text);
}

#[test]
fn keys_lead_through_sessions_turns_and_entries_on_80_columns() {
    walk(80);
}

#[test]
fn keys_lead_through_sessions_turns_and_entries_on_200_columns() {
    walk(200);
}

/// However it ends.
#[test]
fn the_terminal_is_given_back() {
    let dir = sessions();
    for (keys, signal) in [("q", None), ("\u{3}", None), ("", Some(Signal::TERM)), ("", Some(Signal::HUP))] {
        let mut terminal = Terminal::begin(&dir, 80, &["sessions/one.jsonl"]);
        terminal.until("a session", |text| text.contains("Context: "));
        let held = terminal.keys.try_clone().unwrap();
        assert!(!tcgetattr(&held).unwrap().local_modes.contains(rustix::termios::LocalModes::ECHO));
        terminal.keys.write_all(keys.as_bytes()).unwrap();
        if let Some(signal) = signal {
            kill_process(Pid::from_child(&terminal.child), signal).unwrap();
        }
        let (ended, _) = terminal.end();
        assert_eq!(
            (ended.success(), ended.signal()),
            (signal.is_none(), signal.map(Signal::as_raw)),
            "{keys:?}"
        );
        assert!(
            tcgetattr(&held).unwrap().local_modes.contains(rustix::termios::LocalModes::ECHO),
            "{keys:?}"
        );
    }
}

/// Closing a terminal's window leaves nothing behind, not even where no signal tells of it.
#[test]
fn top_ends_with_its_terminal() {
    let dir = sessions();
    let mut command = dir.command();
    command.args(["top", "sessions"]).env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
    let (mut child, mut terminal) = begun_on_terminal(80, command);
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&seen).contains("worst first") {
        let count = terminal.read(&mut buffer).unwrap();
        seen.extend_from_slice(&buffer[..count]);
    }
    drop(terminal);
    let begun = Instant::now();
    let ended = loop {
        match child.try_wait().unwrap() {
            None if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(50)),
            ended => break ended,
        }
    };
    if ended.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(ended.is_some(), "it goes on without a terminal");
}

/// Titles, names of tools and of files that try to: clear the screen, set the title, use the clipboard.
#[test]
fn nothing_from_a_transcript_writes_an_escape() {
    let evil = "\u{1b}[2J\u{1b}]0;x\u{7}\u{1b}]52;c;eA==\u{7}\u{202e}\r";
    let inside = serde_json::to_string(evil).unwrap();
    let inside = inside.trim_matches('"').replace('\u{202e}', "\\u202e");
    let dir = Dir::new();
    let text = BROKEN.replace("bash", &format!("ba{inside}sh")).replace("\"go\"", &format!("\"{inside}go\""));
    assert!(text.matches(&inside).count() >= 2, "{text}");
    dir.write(format!("sessions/{evil}.jsonl"), text.replace("\"a2\"", &format!("\"a2{inside}\"")));
    let mut terminal = Terminal::begin(&dir, 120, &["--show-content", "sessions"]);
    terminal.until("a session", |text| text.contains("Context: ") && text.contains("\\u{1b}]52"));
    terminal.press("\r", "of the file)");
    terminal.press("\r", "kind ");
    terminal.press("q", "");
    let (_, all) = terminal.end();
    let all = String::from_utf8(all).unwrap();
    assert!(
        !["\u{1b}]", "\u{1b}[2J\u{1b}", "\u{7}", "\u{202e}"].iter().any(|bad| all.contains(bad)),
        "{all:?}"
    );
}

/// What is asked for as tables, or goes into a pipe, is printed.
#[test]
fn tables_where_there_are_no_keys() {
    let dir = sessions();
    for (arguments, shows) in [
        (&["--plain", "sessions"][..], "tailor top FILE"),
        (&["-n", "3", "sessions"], "tailor top FILE"),
        (&["--json", "sessions"], "\"largest\""),
    ] {
        let (ended, all) = Terminal::begin(&dir, 80, arguments).end();
        let text = String::from_utf8(all).unwrap();
        assert!(
            ended.success() && text.contains(shows) && !text.contains('\u{1b}'),
            "{arguments:?}: {text:?}"
        );
    }
}

#[test]
fn zsh_completes_names_and_sessions() {
    if !Path::new("/usr/bin/zsh").exists() {
        skipped("completions in zsh: it is not installed");
        return;
    }
    let dir = Dir::new();
    let mut shell = shell_with_session(&dir, "/usr/bin/zsh");
    shell.args(["-f", "-i"]);
    let mut terminal = Terminal::spawn(200, shell);
    let begin = "PS1='> '; mkdir f; mv script f/_tailor; fpath=($PWD/f $fpath); autoload -U compinit; compinit -u -D; print rea''dy\n";
    terminal.press(begin, "ready");
    for (words, wanted) in COMPLETED {
        let (before, _) = words.rsplit_once(' ').unwrap();
        terminal.press(&format!("\u{15}tailor {words}\t"), &format!("tailor {before} {wanted}"));
    }
    terminal.press("\u{15}exit\n", "exit");
    assert!(terminal.end().0.success());
}
