//! `tailor watch` with programs that write, killed, reloaded, and given wrong input. Tests wait for a state, with a
//! deadline, and never for a fixed time.

#[cfg(feature = "stores")]
mod stores;

use crate::gate::{Living, claude, remembered};
use crate::support::{BROKEN, Dir, WHOLE, give_to_powerless, is_root, make_old, root, skipped};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

const PATIENCE: Duration = Duration::from_secs(20);

/// The same for a daemon that is always at work.
const PATIENCE_MAX: Duration = Duration::from_secs(300);
const LIMIT: usize = 300;

/// Waits until a condition holds.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A daemon that is killed when its test ends.
struct Daemon<'a> {
    dir: &'a Dir,
    child: Child,
}

impl<'a> Daemon<'a> {
    /// Starts the daemon and waits until it answers.
    #[track_caller]
    fn start(dir: &'a Dir, arguments: &[&str]) -> Self {
        let mut command = dir.command();
        command.args(arguments);
        Self::spawn(dir, command)
    }

    #[track_caller]
    fn spawn(dir: &'a Dir, mut command: Command) -> Self {
        let log = File::options().create(true).append(true).open(dir.home().join("log")).unwrap();
        command
            .env("XDG_RUNTIME_DIR", dir.home())
            .env("USER", "bot")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let daemon = Self { dir, child: command.spawn().unwrap() };
        until("it answers", || daemon.status().is_some());
        daemon
    }

    fn status(&self) -> Option<Value> {
        let mut command = self.dir.command();
        command.args(["status", "--json"]).env("XDG_RUNTIME_DIR", self.dir.home());
        let run = crate::support::run(&mut command, b"");
        let status = run.json().pop()?;
        (status["pid"] == self.child.id()).then_some(status)
    }

    /// Waits for as long as the daemon gets on with its work: how fast it does depends on the machine.
    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        let (mut last, mut done) = (None, Vec::new());
        let start = Instant::now();
        let mut deadline = start + PATIENCE;
        while Instant::now() < deadline {
            last = self.status();
            let Some(status) = &last else { continue };
            if is_so(status) {
                return;
            }
            let now: Vec<Value> = ["files", "looks", "fixed"].map(|what| status[what].clone()).into();
            if now != done && start.elapsed() < PATIENCE_MAX {
                (done, deadline) = (now, Instant::now() + PATIENCE);
            }
        }
        let log: Vec<String> = log(self.dir).lines().rev().take(30).map(String::from).collect();
        panic!("in vain: {what}\n{last:#?}\n{}", log.join("\n"));
    }

    /// Waits until all known files have been looked at and nothing is left to do.
    #[track_caller]
    fn until_idle(&self, files: usize) {
        self.until("it is idle", |status| {
            status["files"] == files && status["waiting"] == 0 && status["at_work"] == 0
        });
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", self.child.id())).status();
        assert!(sent.unwrap().success());
    }

    /// Stops the daemon and returns its exit code.
    fn stop(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn log(dir: &Dir) -> String {
    fs::read_to_string(dir.home().join("log")).unwrap_or_default()
}

/// The lines of a session as pi appends them: turns of a question, a call, its result and an answer. Every third result
/// is too long, and every fourth turn has a result without a call.
fn session(turns: usize) -> Vec<String> {
    conversation(turns, true)
}

/// The same, with or without the results that have no call.
fn conversation(turns: usize, orphans: bool) -> Vec<String> {
    let mut lines = vec![
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#
            .to_string(),
    ];
    let mut parent = "null".to_string();
    let mut add = |id: String, message: String| {
        lines.push(format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-07-01T10:00:01.000Z","message":{message}}}"#
        ));
        parent = format!("\"{id}\"");
    };
    for n in 0..turns {
        let text = if n % 3 == 2 { "row of output\\n".repeat(100) } else { "short".to_string() };
        let result = |call: &str| {
            format!(
                r#"{{"role":"toolResult","toolCallId":"{call}","toolName":"bash","isError":false,"content":[{{"type":"text","text":"{text}"}}]}}"#
            )
        };
        add(format!("u{n}"), format!(r#"{{"role":"user","content":"question {n}"}}"#));
        add(
            format!("c{n}"),
            format!(
                r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"call{n}","name":"bash","arguments":{{}}}}],"stopReason":"toolUse"}}"#
            ),
        );
        add(format!("r{n}"), result(&format!("call{n}")));
        if orphans && n % 4 == 3 {
            add(format!("orphan{n}"), result("nobody"));
        }
        add(
            format!("a{n}"),
            format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"answer {n}"}}],"stopReason":"stop"}}"#
            ),
        );
    }
    lines
}

/// Appends as agents do: open, write a line, close.
fn append(path: &Path, line: &str) {
    let mut file = File::options().append(true).create(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn ids(text: &str) -> Vec<String> {
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_string();
    text.lines().map(id).collect()
}

fn arguments<'a>(root: &'a str, limit: &'a str) -> Vec<&'a str> {
    vec!["watch", root, "--mode", "enforce", "--settle", "0.2", "--set", limit]
}

#[test]
fn a_session_that_grows_ends_clean_and_whole_and_can_be_put_back() {
    let dir = Dir::new();
    let (root, limit) = (dir.path("sessions"), format!("result_chars_max={LIMIT}"));
    fs::create_dir(&root).unwrap();
    let path = root.join("s.jsonl");
    let lines = session(16);
    let arguments = arguments("sessions", &limit);
    let mut daemon = Daemon::start(&dir, &arguments);
    let mut turns = 0;
    for (n, line) in lines.iter().enumerate() {
        append(&path, line);
        if !line.contains("\"stop\"") {
            continue;
        }
        turns += 1;
        if turns % 4 == 0 {
            until("what is too long is cut", || fs::metadata(&path).unwrap().len() < written(&lines[..=n]));
        }
        if turns == 6 || turns == 11 {
            // Kills it, whatever it is doing.
            drop(daemon);
            daemon = Daemon::start(&dir, &arguments);
        }
    }
    daemon.until_idle(1);
    let text = fs::read_to_string(&path).unwrap();
    let wanted = ids(&lines.join("\n")).into_iter().filter(|id| !id.starts_with("orphan"));
    assert_eq!(ids(&text), wanted.collect::<Vec<String>>());
    assert_eq!(daemon.stop(), Some(0));
    let scan = dir.tailor(&["scan", "sessions", "--cut-results", &LIMIT.to_string(), "--json"]);
    assert_eq!(scan.file()["outcome"], "clean", "{}", scan.text());
    assert_eq!(names(&root), ["s.jsonl"], "something is left beside it");

    let mut undone = 0;
    while dir.tailor(&["undo", "sessions/s.jsonl", "--settle", "0"]).status == 0 {
        undone += 1;
    }
    assert!(undone >= 2, "{undone} runs\n{}", log(&dir));
    assert_eq!(fs::read_to_string(&path).unwrap(), lines.join("\n") + "\n");
}

/// A Node process that appends lines of a transcript on request.
struct Player {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Player {
    /// `None` if there is no Node.
    fn new(source: &Path, session: &Path) -> Option<Self> {
        let mut node = Command::new("node");
        node.arg(root().join("tests/writers/play.mjs")).args([source, session]);
        let Ok(mut child) = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
            skipped("Node as a writer: node is not installed");
            return None;
        };
        let said = BufReader::new(child.stdout.take().unwrap());
        Some(Self { child, said })
    }

    /// Appends this many lines.
    #[track_caller]
    fn play(&mut self, lines: usize) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{lines}").unwrap();
        let mut said = String::new();
        self.said.read_line(&mut said).unwrap();
        assert_eq!(said, ".\n");
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // The process ends with its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Plays a transcript line by line while a daemon is killed and reconfigured. In the end everything that can be
/// repaired is repaired, and undo restores what was played. Returns how many runs there were.
fn play(lines: &[String]) -> Option<usize> {
    let dir = Dir::new();
    let (folder, config) = (dir.path("sessions"), dir.home().join("config.toml"));
    fs::create_dir(&folder).unwrap();
    let (source, session) = (dir.home().join("source"), folder.join("s.jsonl"));
    let text = lines.join("\n") + "\n";
    fs::write(&source, &text).unwrap();
    let configure = |limit: usize| {
        // In the end everything is repaired, however little it saves.
        let worth = "[watch]\nrewrite_saved_bytes_min = 1";
        let text = format!("mode = \"enforce\"\nsettle = 0.05\nresult_chars_max = {limit}\n{worth}\n");
        fs::write(&config, text).unwrap();
    };
    configure(100_000);
    let arguments = ["watch", "sessions", "--config", config.to_str().unwrap()];
    let mut player = Player::new(&source, &session)?;
    let mut daemon = Some(Daemon::start(&dir, &arguments));
    let (mut done, steps) = (0, lines.len().min(40));
    for step in 0..steps {
        if step == steps / 4 || step == steps * 3 / 4 {
            // Kills it, whatever it is doing.
            drop(daemon.take());
        } else if step == steps / 2 {
            configure(LIMIT);
            daemon.as_ref().unwrap().signal("HUP");
        }
        let is_checked = step % 5 == 4;
        let mut until = lines.len() * (step + 1) / steps;
        // A conversation that waits for an answer is not changed.
        while is_checked && until < lines.len() && !lines[until - 1].contains(r#""stopReason":"stop""#) {
            until += 1;
        }
        player.play(until.saturating_sub(done));
        done = done.max(until);
        let daemon = daemon.get_or_insert_with(|| Daemon::start(&dir, &arguments));
        if is_checked {
            daemon.until("it has caught up, or waits for an answer", |status| {
                let troubles = status["troubles"].as_array().is_some_and(|troubles| !troubles.is_empty());
                status["looks"].as_u64() > Some(0) && (status["waiting"] == 0 || troubles)
            });
        }
    }
    drop(player);
    drop(daemon);
    // After a long time, the answer is no longer awaited.
    make_old(&session);
    let daemon = Daemon::start(&dir, &arguments);
    daemon.until_idle(1);
    assert_eq!(daemon.stop(), Some(0));
    let limit = LIMIT.to_string();
    let arguments = ["fix", "sessions", "--dry-run", "--cut-results", &limit, "--json"];
    let again = dir.tailor(&arguments).file();
    assert_ne!(again["outcome"], "would-fix", "{again:#}\n{}", log(&dir));
    assert_eq!(names(&folder), ["s.jsonl"], "something is left beside it");
    let mut undone = 0;
    while dir.tailor(&["undo", "sessions/s.jsonl", "--settle", "0"]).status == 0 {
        undone += 1;
    }
    assert!(fs::read_to_string(&session).unwrap() == text, "{undone} runs\n{}", log(&dir));
    Some(undone)
}

#[test]
fn what_node_plays_ends_clean_and_whole_and_can_be_put_back() {
    if let Some(runs) = play(&session(30)) {
        assert!(runs >= 2, "{runs} runs");
    }
}

/// Uses the shortest transcripts, to stay fast.
#[test]
fn real_transcripts_that_node_plays_can_be_put_back() {
    let Some(corpus) = std::env::var_os("TAILOR_CORPUS") else {
        return skipped("real transcripts, played: TAILOR_CORPUS names no folder of transcripts");
    };
    let folder = Path::new(&corpus).join("pi");
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    found.sort_by_key(|path| fs::metadata(path).unwrap().len());
    for path in found.iter().take(2) {
        let lines = fs::read_to_string(path).unwrap().lines().map(String::from).collect::<Vec<String>>();
        play(&lines);
    }
}

/// The daemon has a disk of its own, which is full for a while.
#[test]
fn a_full_disk_is_waited_for() {
    let dir = Dir::new();
    let full = dir.path("full");
    fs::create_dir(&full).unwrap();
    let script = "mount -t tmpfs -o size=2m none \"$1\" && shift && exec \"$0\" \"$@\"";
    let space = if is_root() { "-m" } else { "-rm" };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let inside = |command: &mut Command| {
        command.env("PATH", &path).args([space, "sh", "-c", script]);
    };
    let mut probe = dir.command_of("unshare");
    inside(&mut probe);
    probe.arg("true").arg(&full).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        return skipped("a full disk beside the daemon: no file system of our own may be mounted here");
    }
    let mut command = dir.command_of("unshare");
    inside(&mut command);
    command.arg(env!("CARGO_BIN_EXE_tailor")).arg(&full).arg("watch").arg(&full);
    command.args(["--mode", "enforce", "--settle", "0.1", "--set", "result_chars_max=200"]);
    let daemon = Daemon::spawn(&dir, command);
    // Its mounts are private, but visible through /proc.
    let full = PathBuf::from(format!("/proc/{}/root{}", daemon.child.id(), full.display()));
    let text = crate::disk::session();
    let (filler, session) = (full.join("filler"), full.join("s.jsonl"));
    fs::write(&filler, vec![0; (2 << 20) - text.len() - 100_000]).unwrap();
    fs::write(&session, &text).unwrap();
    daemon.until("it says so", |status| {
        let trouble = &status["troubles"][0];
        let said =
            trouble["outcome"] == "error" && trouble["reason"].as_str().unwrap().contains("free some space");
        said && (&status["hindered"], &status["tripped"]) == (&1.into(), &0.into())
    });
    let more = r#"{"type":"custom","id":"y","parentId":"z","customType":"x"}"#;
    append(&session, more);
    assert_eq!(fs::read_to_string(&session).unwrap(), format!("{text}{more}\n"));
    fs::remove_file(&filler).unwrap();
    daemon.until("it is mended", |status| status["fixed"] == 1 && status["hindered"] == 0);
    let mended = fs::read_to_string(&session).unwrap();
    assert!(mended.len() < text.len() && mended.ends_with(&format!("{more}\n")));
    assert_eq!(names(&full), ["s.jsonl"]);
}

/// Another process has the port, the socket and one of the roots: each is reported, and the daemon continues without
/// them.
#[test]
fn what_others_have_stops_nothing_else() {
    let dir = Dir::new();
    for folder in ["theirs", "ours"] {
        fs::create_dir(dir.path(folder)).unwrap();
    }
    let first = Daemon::start(&dir, &["watch", "theirs", "--settle", "0.1"]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = port.local_addr().unwrap().to_string();
    let mut command = dir.command();
    command.args(["watch", "theirs", "ours", "--mode", "enforce", "--settle", "0.1", "--listen", &listen]);
    // The same socket as the first daemon's.
    command.env("XDG_RUNTIME_DIR", dir.home()).stderr(File::create(dir.home().join("second")).unwrap());
    let second = Daemon { dir: &dir, child: command.spawn().unwrap() };
    let path = dir.path("ours/s.jsonl");
    write_broken(&path);
    until_mended(&path);
    let said = fs::read_to_string(dir.home().join("second")).unwrap();
    let taken = format!("another tailor watches {} already", dir.path("theirs").display());
    let socket = "could not open the socket for `tailor status`: another program answers there";
    for line in [&taken, "could not serve metrics: Address already in use", socket] {
        assert_eq!(said.lines().filter(|said| said.contains(line)).count(), 1, "{line}\n{said}");
    }
    // The first daemon still answers, and its socket stays when the second ends.
    assert_eq!(second.stop(), Some(0));
    first.until("it answers", |status| status["roots"][0]["watch_state"] == "watched");
}

/// Each of these is reported in one line, and the daemon continues.
#[test]
fn what_is_no_root_stops_nothing_else() {
    let dir = Dir::new();
    dir.write("real/s.jsonl", BROKEN);
    symlink("real", dir.path("link")).unwrap();
    symlink("circle", dir.path("circle")).unwrap();
    symlink("nowhere", dir.path("dangling")).unwrap();
    symlink("..", dir.path("real/up")).unwrap();
    fs::write(dir.home().join("socket"), "mine").unwrap();
    let mut command = dir.command();
    command.args(["watch", "link", "real", "circle", "dangling", "/dev/null", "--mode", "enforce"]);
    command.args(["--settle", "0.1", "--socket"]).arg(dir.home().join("socket"));
    command.stderr(File::create(dir.home().join("log")).unwrap());
    let daemon = Daemon { dir: &dir, child: command.spawn().unwrap() };
    until_mended(&dir.path("real/s.jsonl"));
    let count = |text: &str| log(&dir).lines().filter(|line| line.contains(text)).count();
    for line in [
        "/real: watched",
        "/circle: could not read the root: Too many levels of symbolic links",
        "/dangling: does not exist yet; waiting for it",
        "/dev/null: could not read the root: it is neither a folder nor a file",
        "could not open the socket for `tailor status`: this path exists and is not a socket",
    ] {
        until(line, || count(line) == 1);
    }
    assert_eq!((count("/link"), count("another tailor")), (0, 0), "{}", log(&dir));
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(fs::read_to_string(dir.home().join("socket")).unwrap(), "mine");
}

#[test]
fn metrics_are_written_to_a_file() {
    let dir = Dir::new();
    let file = dir.home().join("tailor.prom");
    dir.write("s.jsonl", BROKEN);
    let arguments = ["watch", ".", "--settle", "0.1", "--metrics-textfile", file.to_str().unwrap()];
    let daemon = Daemon::start(&dir, &arguments);
    daemon.until("it is looked at", |status| status["findings_total"] == 1);
    assert_eq!(daemon.stop(), Some(0));
    let text = fs::read_to_string(&file).unwrap();
    let found = "\ntailor_findings{user=\"bot\",severity=\"error\",rule=\"P1\",agent=\"pi\"} 1\n";
    assert!(text.contains(found) && text.contains("\n# TYPE tailor_looks_total counter\n"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    let daemon = Daemon::start(&dir, &["watch", ".", "--metrics-textfile", "/proc/x.prom"]);
    daemon.until("it goes on", |status| status["findings_total"] == 1);
    assert!(log(&dir).contains("/proc/x.prom: could not write metrics: "), "{}", log(&dir));
}

#[test]
fn findings_of_a_root_that_is_no_longer_watched_leave_the_metrics() {
    let dir = Dir::new();
    let (file, config) = (dir.home().join("tailor.prom"), dir.home().join("config.toml"));
    let folder = |name: &str| dir.path(name).join("s.jsonl");
    for name in ["one", "two"] {
        write_broken(&folder(name));
    }
    let configure = |roots: &str| fs::write(&config, format!("settle = 0.1\nroots = [{roots}]\n")).unwrap();
    let root = |name: &str| format!("{:?}", dir.path(name));
    configure(&format!("{}, {}", root("one"), root("two")));
    let arguments = ["watch", "--config", config.to_str().unwrap(), "--metrics-textfile"];
    let daemon = Daemon::start(&dir, &[&arguments[..], &[file.to_str().unwrap()]].concat());
    daemon.until("both are looked at", |status| status["findings_total"] == 2);
    configure(&root("two"));
    daemon.signal("HUP");
    daemon.until("one is forgotten", |status| status["findings_total"] == 1);
    assert_eq!(daemon.stop(), Some(0));
    let text = fs::read_to_string(&file).unwrap();
    let found: Vec<&str> = text.lines().filter(|line| line.starts_with("tailor_findings{")).collect();
    assert!(found.len() == 1 && found[0].ends_with(" 1"), "{found:?}");
}

/// The entry that pi writes after a request that was too long.
fn too_long(id: &str, parent: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":"{parent}","timestamp":"2026-07-01T11:00:00.000Z","message":{{"role":"assistant","content":[],"stopReason":"error","errorMessage":"400 prompt is too long: 211884 tokens > 200000 maximum"}}}}"#
    )
}

#[test]
fn a_session_that_is_too_long_is_told_and_recovered_once_for_each_time() {
    let dir = Dir::new();
    let path = dir.path("s.jsonl");
    let wide = "row of output and more of it. ".repeat(8);
    let text = conversation(60, false).join("\n").replace("row of output", &wide) + "\n";
    fs::write(&path, text).unwrap();
    append(&path, &too_long("e1", "a59"));
    make_old(&path);
    let before = fs::read(&path).unwrap();
    // What is shortened because the window is full is tried elsewhere.
    let enforcing = ["watch", ".", "--mode", "enforce", "--settle", "0.1", "--set", "crowded.trim_percent=0"];
    let daemon = Daemon::start(&dir, &enforcing);
    daemon.until("it is told", |status| status["too_long"].as_array().unwrap().len() == 1);
    daemon.until_idle(1);
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(fs::read(&path).unwrap(), before, "nobody has asked for more");
    let told = "s.jsonl: line 242 records that the API refused it as too long (context-overflow)";
    assert!(log(&dir).contains(told), "{}", log(&dir));

    let start = || {
        make_old(&path);
        Daemon::start(&dir, &[&enforcing[..], &["--set", "recover=true"]].concat())
    };
    let recovered = || log(&dir).matches(": recovered, ").count();
    let daemon = start();
    daemon.until("it is recovered", |_| recovered() == 1);
    daemon.until_idle(1);
    drop(daemon);
    // A user message is no new failure.
    append(
        &path,
        r#"{"type":"message","id":"u60","parentId":"e1","timestamp":"2026-07-01T11:00:01.000Z","message":{"role":"user","content":"again"}}"#,
    );
    let daemon = start();
    daemon.until_idle(1);
    drop(daemon);
    assert_eq!(recovered(), 1, "{}", log(&dir));
    append(&path, &too_long("e2", "u60"));
    // Until a minute has passed, the reason is not `settle`.
    let daemon = Daemon::start(&dir, &[&enforcing[..], &["--set", "recover=true"]].concat());
    daemon.until("it waits for the agent", |status| {
        let reason = status["troubles"][0]["reason"].as_str().unwrap_or_default();
        reason.contains("for 60 s without writes (so that the agent can shorten")
            && !reason.contains("settle")
    });
    drop(daemon);
    let daemon = start();
    daemon.until("it is recovered further", |_| recovered() == 2);
    daemon.until_idle(1);
    let log = log(&dir);
    let left = |rest: &str| rest.split_once(" -> ").unwrap().1.split_once(" of ").unwrap().0.parse::<u64>();
    let left: Vec<u64> = log.split(": recovered, ").skip(1).map(|rest| left(rest).unwrap()).collect();
    assert!(left[1] < left[0] && left[0] <= 120_000, "{left:?}");
}

/// Old results, by configuration: both the daemon and `fix` wait until no prompt cache can hold them.
#[test]
fn old_results_wait_until_the_cache_is_cold() {
    let dir = Dir::new();
    let case = root().join("fixtures/pi/s14-flags-alone");
    let (before, after) =
        (fs::read(case.join("in.jsonl")).unwrap(), fs::read(case.join("out.jsonl")).unwrap());
    assert_ne!(before, after);
    let config = dir.home().join("config.toml");
    let configure = |stale: u32| {
        let text = "[stale]\nshorten_turns = 2\nclear_turns = 4\nchars_min = 400\nhead_chars = 120\ntail_chars = 60\n";
        fs::write(&config, format!("settle = 0.1\nsettle_stale = {stale}\n{text}")).unwrap();
    };
    configure(1_000);
    let config = config.to_str().unwrap();
    let path = dir.path("s.jsonl");
    fs::write(&path, &before).unwrap();
    // Long enough ago that no answer is awaited, but not as long as the configuration requires.
    let written = SystemTime::now() - Duration::from_secs(700);
    File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
    // If the user says that no agent is running, it happens at once.
    let fix = |more: &[&str]| dir.tailor(&[&["fix", "s.jsonl", "--config", config], more].concat());
    let at_once = fix(&["--dry-run", "--settle", "0", "--json"]).file();
    assert_eq!(at_once["outcome"], "would-fix");
    let waits = fix(&["--json"]).file();
    assert_eq!((&waits["outcome"], &waits["findings"][0]["fix"]), (&"deferred".into(), &"held".into()));
    assert!(waits["reason"].as_str().unwrap().contains("--settle-stale 0"), "{waits:#}");
    assert_eq!(fs::read(&path).unwrap(), before);

    let daemon = Daemon::start(&dir, &["watch", ".", "--mode", "enforce", "--config", config]);
    daemon.until("it is looked at", |status| status["looks"] == 1);
    assert_eq!(daemon.status().unwrap()["waiting"], 1);
    assert_eq!(fs::read(&path).unwrap(), before);
    configure(1);
    daemon.signal("HUP");
    daemon.until("it is shortened", |status| status["fixed"] == 1);
    assert_eq!(fs::read(&path).unwrap(), after);
}

fn written(lines: &[String]) -> u64 {
    lines.iter().map(|line| line.len() as u64 + 1).sum()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    crate::support::list(folder, folder, &mut names);
    names.sort();
    names
}

#[test]
fn to_observe_is_to_write_nothing() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    let before = fs::metadata(&path).unwrap();
    let daemon = Daemon::start(&dir, &["watch", ".", "--settle", "0.1", "--log-format", "json"]);
    daemon.until("it is looked at", |status| status["findings_total"] == 1);
    append(&path, r#"{"type":"custom","id":"x","parentId":"a3","timestamp":"2026-07-01T10:00:04.000Z"}"#);
    daemon.until("it is looked at again", |status| status["looks"] == 2);
    assert_eq!(daemon.stop(), Some(0));
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.ino(), &fs::read_to_string(&path).unwrap()[..BROKEN.len()]), (before.ino(), BROKEN));
    assert_eq!(dir.names(), ["s.jsonl"]);
    assert!(!dir.home().join(".state/tailor/runs").exists(), "it has kept something");
    let log = log(&dir);
    assert!(
        log.contains(r#""event":"findings""#)
            && log.contains(r#""found_codes":"P1""#)
            && !log.contains("well?"),
        "{log}"
    );
}

#[test]
fn roots_and_folders_may_come_later_and_be_replaced() {
    let dir = Dir::new();
    let arguments = ["watch", "later/on", "--mode", "enforce", "--settle", "0.1"];
    let daemon = Daemon::start(&dir, &arguments);
    daemon.until("it waits", |status| status["roots"][0]["watch_state"] == "missing");
    for name in ["one.jsonl", "deep/er/two.jsonl", "deep/er/still/three.jsonl"] {
        let path = dir.path("later/on").join(name);
        write_broken(&path);
        until_mended(&path);
    }
    daemon.until("it is watched", |status| status["roots"][0]["folders"] == 4);
    // Another folder replaces the first.
    fs::rename(dir.path("later/on"), dir.path("gone")).unwrap();
    let path = dir.path("later/on/four.jsonl");
    write_broken(&path);
    until_mended(&path);
    daemon.until("the others are forgotten", |status| status["files"] == 1);

    // No other daemon may watch what is inside it, or what contains it.
    for root in ["later/on", "later", "later/on/deep"] {
        let second = dir.tailor(&["watch", root]);
        assert_eq!(second.status, 2, "{}", second.stderr);
        let who = format!("(process {})", daemon.child.id());
        assert!(second.stderr.contains(&who), "{}", second.stderr);
    }
    assert_eq!(daemon.stop(), Some(0));
    assert!(!dir.home().join("tailor/status.sock").exists());
}

/// Writes a session with something to repair, and its folders.
fn write_broken(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, BROKEN).unwrap();
    make_old(path);
}

#[track_caller]
fn until_mended(path: &Path) {
    until("it is mended", || fs::read_to_string(path).is_ok_and(|text| text.len() > BROKEN.len()));
}

/// No walk happens within the time of this test: the kernel reports the folder.
#[test]
fn an_agent_that_is_installed_later_is_found_at_once() {
    let dir = Dir::new();
    let arguments = ["watch", "--mode", "enforce", "--settle", "0.1", "--set", "rescan=0"];
    let daemon = Daemon::start(&dir, &arguments);
    assert!(log(&dir).contains("no agent folders found yet"), "{}", log(&dir));
    for (n, name) in [
        ".pi/agent/sessions/--w--/one.jsonl",
        ".claude/projects/-w/two.jsonl",
        ".openclaw/agents/main/sessions/three.jsonl",
        ".openclaw/agents/other/sessions/four.jsonl",
    ]
    .into_iter()
    .enumerate()
    {
        let path = dir.home().join(name);
        write_broken(&path);
        until_mended(&path);
        daemon.until("it is a root", |status| status["roots"].as_array().unwrap().len() == n + 1);
    }
}

#[test]
fn a_root_that_cannot_be_read_holds_up_no_other() {
    let dir = Dir::new();
    let (shut, open) = (dir.path("shut"), dir.path("open"));
    for folder in [&shut, &open.join("shut")] {
        write_broken(&folder.join("s.jsonl"));
        fs::set_permissions(folder, Permissions::from_mode(0o000)).unwrap();
    }
    // Cycles of links: below a root, and as a root.
    symlink(&open, open.join("circle")).unwrap();
    symlink("loop", dir.path("loop")).unwrap();
    for path in [&shut, &open, &open.join("shut"), &dir.files()] {
        give_to_powerless(path);
    }
    let mut command = dir.powerless();
    command.args(["watch", "shut", "open", "loop", "--mode", "enforce", "--settle", "0.1"]);
    let daemon = Daemon::spawn(&dir, command);
    let reason = |status: &Value, name: &str| {
        let roots = status["roots"].as_array().unwrap();
        let found = roots.iter().find(|root| root["path"].as_str().unwrap().ends_with(name)).unwrap();
        format!("{}: {}", found["watch_state"].as_str().unwrap(), found["reason"].as_str().unwrap_or("-"))
    };
    for (root, says) in [
        ("/shut", "unreadable: Permission denied"),
        ("/loop", "unreadable: Too many levels of symbolic links"),
        ("/open", "watched: -"),
    ] {
        daemon.until(root, |status| reason(status, root).starts_with(says));
    }
    let path = open.join("s.jsonl");
    fs::write(&path, BROKEN).unwrap();
    make_old(&path);
    give_to_powerless(&path);
    until_mended(&path);
    let log = log(&dir);
    assert!(log.contains("/open/shut: could not read the folder: Permission denied"), "{log}");
    assert_eq!(daemon.status().unwrap()["files"], 1);
}

#[test]
fn a_wrong_configuration_changes_nothing_and_a_right_one_does() {
    let dir = Dir::new();
    let config = dir.home().join("config.toml");
    let path = dir.write("s.jsonl", BROKEN);
    fs::write(&config, "mode = \"observe\"\nsettle = 0.1\n").unwrap();
    let daemon = Daemon::start(&dir, &["watch", ".", "--config", config.to_str().unwrap()]);
    daemon.until("it is looked at", |status| status["findings_total"] == 1);

    fs::write(&config, "mode = \"enforce\"\nsettel = 0.1\n").unwrap();
    daemon.signal("HUP");
    daemon.until("it is refused", |status| {
        status["config_error"].as_str().is_some_and(|error| error.contains("did you mean `settle`?"))
    });
    // An invalid configuration does not prevent asking the daemon.
    let socket = dir.home().join("tailor/status.sock");
    let asked = ["status", "--config", config.to_str().unwrap(), "--socket", socket.to_str().unwrap()];
    let told = dir.tailor(&asked);
    assert_eq!(told.status, 1, "{}", told.stderr);
    assert!(told.text().contains("observe (process") && told.stderr.contains("did you mean `settle`?"));
    assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);

    fs::write(&config, "mode = \"enforce\"\nsettle = 0.1\n").unwrap();
    daemon.signal("HUP");
    daemon.until("it is mended", |status| status["fixed"] == 1 && status["config_error"].is_null());
    assert_ne!(fs::read_to_string(&path).unwrap(), BROKEN);
}

#[test]
fn the_configuration_is_checked_and_printed() {
    let dir = Dir::new();
    let own = dir.home().join(".config/tailor");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("config.toml"), "settle = \"90s\"\n[tools.bash]\nresult_chars_max = 7\n").unwrap();
    let run = |arguments: &[&str]| {
        let mut command = dir.command();
        command.args(arguments).env("TAILOR_RESULT_CHARS_MAX", "123");
        crate::support::run(&mut command, b"")
    };
    assert_eq!(run(&["config", "check"]).status, 0);
    let printed = run(&["config", "print", "--set", "turn_chars_max=9"]).text();
    for line in [
        "settle = \"90s\"",
        "result_chars_max = 123",
        "turn_chars_max = 9",
        "[tools.bash]",
        "mode = \"observe\"",
    ] {
        assert!(printed.lines().any(|found| found == line), "{line} is not in\n{printed}");
    }
    // The output is a valid configuration with the same settings.
    let again = dir.home().join("again.toml");
    fs::write(&again, &printed).unwrap();
    let reprinted = run(&["config", "print", "--config", again.to_str().unwrap()]).text();
    assert_eq!(reprinted.split_once('\n').unwrap().1, printed.split_once('\n').unwrap().1);
    // The schema has each of its keys.
    let schema: serde_json::Value = serde_json::from_str(&run(&["config", "schema"]).text()).unwrap();
    let top = printed.lines().take_while(|line| !line.starts_with('['));
    let missing = top.filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
    let missing: Vec<&str> = missing.filter(|key| !schema["properties"][*key].is_object()).collect();
    assert!(missing.is_empty() && printed.contains("\nresult_chars_max = "), "{missing:?}");
    fs::write(own.join("config.toml"), "mod = \"enforce\"\n").unwrap();
    let checked = run(&["config", "check"]);
    assert_eq!(checked.status, 2);
    assert!(
        checked.stderr.contains("line 1: unknown key `mod` (did you mean `mode`?)"),
        "{}",
        checked.stderr
    );
}

/// A new file changes nothing; all later errors in it are reported together.
#[test]
fn a_configuration_is_begun_and_all_its_errors_are_told_at_once() {
    let dir = Dir::new();
    let file = dir.home().join(".config/tailor/config.toml");
    let run = |arguments: &[&str]| crate::support::run(dir.command().args(arguments), b"");
    let defaults = run(&["config", "print"]).text().split_once('\n').unwrap().1.to_string();
    assert_eq!(run(&["config", "init"]).status, 0);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\n#mode = \"observe\"\n"), "{text}");
    assert_eq!(run(&["config", "init", "-"]).text(), text);
    let printed = run(&["config", "print"]).text();
    let keys =
        |text: &str| text.lines().filter(|line| line.contains(" = ")).map(String::from).collect::<Vec<_>>();
    assert_eq!(keys(&printed), keys(&defaults));
    fs::write(&file, "mine").unwrap();
    assert_eq!(run(&["config", "init"]).status, 2);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");

    fs::write(&file, "mod = \"enforce\"\nroots = []\n[stale]\nhead_char = 5\n").unwrap();
    let mut command = dir.command();
    let checked = crate::support::run(command.args(["config", "check"]).env("TAILOR_MODE", "on"), b"");
    let told: Vec<&str> = checked.stderr.lines().collect();
    assert!(checked.status == 2 && told.len() == 3 && checked.text().is_empty(), "{}", checked.stderr);
    assert!(told[0].contains("line 1: ") && told[1].contains("line 4: ") && told[2].contains("TAILOR_MODE"));
    fs::write(&file, "roots = [\"sessions\"]\n").unwrap();
    let relative = run(&["config", "check"]);
    assert!(relative.stderr.contains("`sessions` is relative"), "{}", relative.stderr);
    fs::write(&file, "").unwrap();
    let mut command = dir.command();
    let stray = crate::support::run(command.args(["config", "check"]).env("TAILOR_SETTEL", "1"), b"");
    assert!(stray.status == 1 && stray.text().is_empty(), "{}", stray.text());
}

/// A variable that may be another program's is only reported by `config`; one that looks mistyped is reported
/// everywhere.
#[test]
fn a_variable_without_a_meaning_is_told_of() {
    let dir = Dir::new();
    dir.write("s.jsonl", WHOLE);
    let run = |variable: &str, arguments: &[&str]| {
        crate::support::run(dir.command().args(arguments).env(variable, "1"), b"")
    };
    let told =
        |variable: &str, arguments: &[&str]| run(variable, arguments).stderr.contains("no such variable");
    assert_eq!(run("TAILOR_CORPUS", &["scan", "s.jsonl"]).stderr, "");
    assert!(told("TAILOR_SETTEL", &["scan", "s.jsonl"]) && told("TAILOR_CORPUS", &["config", "check"]));
    assert_eq!(run("TAILOR_CORPUS", &["config", "check"]).status, 1);
}

/// All commands share a configuration: `scan`, `fix` and the daemon find the same.
#[test]
fn the_configuration_is_everybodys() {
    const COMPACT: [&str; 6] = ["compact", "s.jsonl", "--keep", "2", "--with", "echo a summary"];
    let dir = Dir::new();
    let own = dir.home().join(".config/tailor");
    fs::create_dir_all(&own).unwrap();
    let configure = |text: &str| fs::write(own.join("config.toml"), text).unwrap();
    let path = dir.write("s.jsonl", conversation(6, false).join("\n") + "\n");
    make_old(&path);
    let codes = |more: &[&str]| dir.tailor(&[&["scan", "s.jsonl", "--json"], more].concat()).codes();
    assert_eq!(codes(&[]), [""; 0]);
    configure("result_chars_max = 300\n");
    assert_eq!(codes(&[]), ["S1", "S1"]);
    for (text, found) in [
        ("result_chars_max = 300\n[tools.bash]\nresult_chars_max = 0\n", 0),
        ("result_chars_max = 300\n[agents.claude-code]\nresult_chars_max = 0\n", 2),
        ("result_chars_max = 300\n[agents.pi]\nresult_chars_max = 0\n", 0),
        ("[agents.pi.tools.bash]\nresult_chars_max = 300\n", 2),
        ("result_chars_max = 300\n[tools]\nkeep = [\"bash\"]\n", 0),
        ("result_chars_max = 300\n[tools]\nonly = [\"grep\"]\n", 0),
    ] {
        configure(text);
        assert_eq!(codes(&[]).len(), found, "{text}");
        // A flag comes last, for each agent.
        assert_eq!(codes(&["--cut-results", "0", "--cut-tool-results", "bash=0"]), [""; 0], "{text}");
    }
    let named = dir.home().join("named.toml");
    fs::write(&named, "result_chars_max = 1000\nvault = \"~/originals\"\n").unwrap();
    let named = named.to_str().unwrap();
    assert_eq!(codes(&["--config", named]).len(), 2);
    let mut variable = dir.command();
    variable.args(["scan", "s.jsonl", "--json"]).env("TAILOR_RESULT_CHARS_MAX", "0");
    assert_eq!(crate::support::run(&mut variable, b"").codes(), [""; 0]);

    let text = fs::read(&path).unwrap();
    assert_eq!(dir.tailor(&["fix", "s.jsonl", "--config", named]).status, 0);
    assert_ne!(fs::read(&path).unwrap(), text);
    assert!(dir.home().join("originals/runs").exists());
    assert_eq!(dir.tailor(&["undo", "s.jsonl", "--config", named]).status, 0);
    assert_eq!(fs::read(&path).unwrap(), text);

    configure("settle = \"90s\"\n");
    fs::write(&path, conversation(6, false).join("\n") + "\n").unwrap();
    for command in [&["recover", "s.jsonl", "--level", "2", "--keep", "2"][..], &COMPACT] {
        let waits = dir.tailor(command);
        assert!(
            waits.status == 1 && waits.text().contains("waiting for 90 s without writes"),
            "{command:?} {}",
            waits.text()
        );
    }

    configure("result_char_max = 300\n");
    let wrong = dir.tailor(&["fix", "s.jsonl"]);
    assert_eq!(wrong.status, 2);
    assert!(wrong.stderr.contains("did you mean `result_chars_max`?"), "{}", wrong.stderr);
}

#[test]
fn two_thousand_sessions_at_once() {
    const SESSIONS: usize = 2_000;
    let dir = Dir::new();
    let limit = format!("result_chars_max={LIMIT}");
    let daemon = Daemon::start(&dir, &arguments(".", &limit));
    let broken = session(4).join("\n") + "\n";
    for n in 0..SESSIONS {
        let folder = dir.path(format!("project-{}", n % 20));
        fs::create_dir_all(&folder).unwrap();
        // Most are healthy, because repairs take time on the disk.
        let text = if n % 10 == 0 { &broken } else { WHOLE };
        fs::write(folder.join(format!("{n}.jsonl")), text).unwrap();
    }
    daemon.until_idle(SESSIONS);
    daemon
        .until("all are mended", |status| status["fixed"] == SESSIONS / 10 && status["findings_total"] == 0);
    let memory = fs::read_to_string(format!("/proc/{}/status", daemon.child.id())).unwrap();
    let resident = memory.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 64 * 1024, "{kib} KiB");
}

/// Includes files with remaining findings and files that are not recognised.
#[test]
fn sessions_that_have_not_changed_are_known_at_the_start() {
    for mode in ["observe", "enforce"] {
        let dir = Dir::new();
        for n in 0..20 {
            dir.write(format!("{n}.jsonl"), WHOLE);
        }
        dir.write("broken.jsonl", BROKEN);
        dir.write("other.jsonl", "{\"a\":1}\n");
        let mut seen = Vec::new();
        for _ in 0..3 {
            // More recent changes are not entered in the index.
            std::thread::sleep(Duration::from_millis(2_100));
            let daemon = Daemon::start(&dir, &["watch", ".", "--mode", mode, "--settle", "0.1"]);
            daemon.until("all are looked at", |status| status["looks"] == 22 && status["at_work"] == 0);
            let status = daemon.status().unwrap();
            seen.push(["read_bytes", "findings_total"].map(|what| status[what].as_u64().unwrap()));
            let _ = daemon.stop();
        }
        let findings = u64::from(mode == "observe");
        assert!(seen[0][0] > 20 * WHOLE.len() as u64, "{seen:?}");
        assert_eq!(seen[2], [0, findings], "{mode}: {seen:?}");
        // The next change is noticed as usual.
        let daemon = Daemon::start(&dir, &["watch", ".", "--mode", mode, "--settle", "0.1"]);
        daemon.until("all are looked at", |status| status["looks"] == 22);
        fs::write(dir.path("0.jsonl"), BROKEN).unwrap();
        daemon
            .until("the change is read", |status| status["read_bytes"].as_u64() >= Some(BROKEN.len() as u64));
    }
}

/// Counted in bytes and not in time: how much of a long session is read does not depend on its length.
#[test]
fn an_append_to_a_long_session_reads_what_was_appended() {
    // With some profiles old results become stale, which waits until the session has been quiet for long.
    for (mode, profile, late) in [
        ("observe", "default", 0),
        ("enforce", "default", 0),
        ("observe", "chatcli", 1),
        ("enforce", "agent-max", 1),
        ("enforce", "openclaw-5057", 1),
    ] {
        let dir = Dir::new();
        let path = dir.path("s.jsonl");
        let text = conversation(1_600, false).join("\n") + "\n";
        fs::write(&path, &text).unwrap();
        let set = format!("profile='{profile}'");
        // The window is wide, and what is cut is worth it all the same.
        let settings = [&*set, "window_tokens=1000000", "watch.rewrite_saved_bytes_min=1"];
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let mut arguments = vec!["watch", ".", "--mode", mode, "--settle", "0.1"];
        arguments.extend(settings);
        let daemon = Daemon::start(&dir, &arguments);
        daemon.until("it is looked at", |status| status["looks"] == 1);
        let count = |what: &str| daemon.status().unwrap()[what].as_u64().unwrap();
        let first = count("read_bytes");
        assert!(first >= text.len() as u64, "{first} of {}", text.len());
        let mut parent = "a1599".to_string();
        for n in 0..5 {
            let line = r#"{"type":"message","id":"ID","parentId":"PARENT","timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"ROLE","content":"more"}}"#;
            let role = if n % 2 == 0 { "user" } else { "assistant" };
            let id = format!("more{n}");
            append(&path, &line.replace("ID", &id).replace("PARENT", &parent).replace("ROLE", role));
            parent = id;
            daemon.until("it is looked at again", |status| status["same"] == n + 1);
        }
        let read = count("read_bytes") - first;
        assert!(read < 100_000, "{mode}, {profile}: {read} of {}", text.len());
        // A long result needs a look, and the resulting file is remembered.
        let long = "x".repeat(60_000);
        let call = r#"{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{}}],"stopReason":"toolUse"}"#;
        let result = format!(
            r#"{{"role":"toolResult","toolCallId":"c","toolName":"bash","isError":false,"content":[{{"type":"text","text":"{long}"}}]}}"#
        );
        let end = r#"{"role":"assistant","content":[{"type":"text","text":"done"}],"stopReason":"stop"}"#;
        for (n, message) in [call, &result, end].into_iter().enumerate() {
            let id = format!("cut{n}");
            append(
                &path,
                &format!(
                    r#"{{"type":"message","id":"{id}","parentId":"{parent}","timestamp":"2026-07-01T10:00:01.000Z","message":{message}}}"#
                ),
            );
            parent = id;
        }
        let done = if mode == "enforce" { "fixed" } else { "findings_total" };
        daemon.until("it is seen", |status| status[done] == 1 && status["waiting"] == late);
        let (before, same) = (count("read_bytes"), count("same"));
        append(
            &path,
            &format!(
                r#"{{"type":"message","id":"last","parentId":"{parent}","timestamp":"2026-07-01T10:00:01.000Z","message":{{"role":"user","content":"more"}}}}"#
            ),
        );
        daemon.until("it is looked at", |status| status["same"] == same + 1);
        let read = count("read_bytes") - before;
        assert!(read < 100_000, "{mode}, {profile}: {read} after that");
    }
}

/// The daemon's HTTP answer on a socket.
fn get(socket: &Path, path: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_and_health_are_served_and_a_taken_socket_stops_nothing() {
    let dir = Dir::new();
    let (socket, taken) = (dir.home().join("metrics.sock"), dir.home().join("taken"));
    fs::write(&taken, "somebody's").unwrap();
    let listen = format!("unix:{}", socket.display());
    let daemon = Daemon::start(&dir, &["watch", ".", "--listen", &listen, "--settle", "0.1"]);
    assert!(get(&socket, "/healthz").starts_with("HTTP/1.1 200 OK"));
    let metrics = get(&socket, "/metrics");
    assert!(metrics.contains("\ntailor_looks_total{user=\"bot\",outcome=\"fixed\"} 0\n"), "{metrics}");
    assert!(metrics.contains("\r\nContent-Type: text/plain; version=0.0.4"), "{metrics}");
    assert!(get(&socket, "/else").starts_with("HTTP/1.1 404"));
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    drop(daemon);

    let listen = format!("unix:{}", taken.display());
    let daemon = Daemon::start(&dir, &["watch", ".", "--listen", &listen, "--settle", "0.1"]);
    dir.write("s.jsonl", BROKEN);
    daemon.until("it goes on", |status| status["findings_total"] == 1);
    assert!(log(&dir).contains("could not serve metrics"), "{}", log(&dir));
    assert_eq!(fs::read_to_string(&taken).unwrap(), "somebody's");
}

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packages/monitoring/tailor.rules.yml");
const DASHBOARD: &str = include_str!("../packages/monitoring/dashboard.json");

/// The alerts and the dashboard only use existing metrics, and each panel uses one.
#[track_caller]
fn what_is_watched_is_served(metrics: &str) {
    let served = |name: &str| metrics.lines().any(|line| line.split([' ', '{']).next() == Some(name));
    let asked = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("tailor_")).map(String::from).collect()
    };
    let rules = fs::read_to_string(RULES).unwrap();
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut all = asked(&rules);
    assert!(all.len() > 5 && panels.len() > 5);
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let names = asked(target["expr"].as_str().unwrap());
            assert!(!names.is_empty(), "{panel}");
            all.extend(names);
        }
    }
    all.extend(asked(&dashboard["templating"].to_string()));
    let missing: Vec<&String> = all.iter().filter(|name| !served(name)).collect();
    assert!(missing.is_empty(), "{missing:?} not in\n{metrics}");
}

/// The basis of alerts. The warning that the API will refuse a session appears once, however often the session is
/// looked at.
#[test]
fn a_session_that_the_api_will_refuse_is_a_warning_once_and_counted_by_kind() {
    let dir = Dir::new();
    let socket = dir.home().join("metrics.sock");
    let listen = format!("unix:{}", socket.display());
    let path = dir.write("s.jsonl", BROKEN);
    let daemon = Daemon::start(&dir, &["watch", ".", "--listen", &listen, "--settle", "0.1"]);
    daemon.until("it is found", |status| status["findings_total"] == 1 && status["waiting"] == 0);
    for (id, parent) in [("late-1", "a3"), ("late-2", "late-1")] {
        let looks = daemon.status().unwrap()["looks"].as_u64().unwrap();
        append(&path, &too_long(id, parent));
        daemon.until("it is looked at again", |status| {
            status["looks"].as_u64() > Some(looks) && status["waiting"] == 0 && status["at_work"] == 0
        });
    }
    let log = log(&dir);
    let refused: Vec<&str> = log.lines().filter(|line| line.contains("will refuse")).collect();
    assert!(refused.len() == 1 && refused[0].contains(" WARN "), "{log}");
    let metrics = get(&socket, "/metrics").split_once("\r\n\r\n").unwrap().1.to_string();
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in\n{metrics}")).parse::<u64>().unwrap()
    };
    assert_eq!(value("tailor_findings{user=\"bot\",severity=\"error\",rule=\"P1\",agent=\"pi\"}"), 1);
    // The target and the commit are those of `tailor --version`.
    let build =
        metrics.lines().find_map(|line| line.strip_prefix("tailor_build_info{user=\"bot\",version=\""));
    let (version, build) = build.unwrap().split_once("\",target=\"").unwrap();
    let (target, build) = build.split_once("\",commit=\"").unwrap();
    let commit = build.strip_suffix("\"} 1").unwrap();
    let commit = if commit.is_empty() { String::new() } else { format!(", commit {commit}") };
    assert_eq!(dir.tailor(&["--version"]).text(), format!("tailor {version} ({target}{commit})\n"));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert!(value("tailor_last_success_timestamp_seconds{user=\"bot\"}").abs_diff(now) < 60);
    what_is_watched_is_served(&metrics);
    if Command::new("promtool").arg("--version").output().is_err() {
        return skipped("promtool is not installed: neither metrics nor alert rules were checked with it");
    }
    let checked = Command::new("promtool").args(["check", "rules", RULES]).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let checked =
        crate::support::run(Command::new("promtool").args(["check", "metrics"]), metrics.as_bytes());
    assert!(checked.status == 0 && checked.stderr.is_empty(), "{}", checked.stderr);
}

#[test]
fn the_service_manager_is_told() {
    let dir = Dir::new();
    let socket = dir.home().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut heard = String::new();
    let mut hear = |what: &str| {
        let mut buffer = [0; 4096];
        while !heard.lines().any(|line| line.starts_with(what)) {
            let got = manager.recv(&mut buffer).unwrap_or_else(|error| panic!("no {what}: {error}\n{heard}"));
            heard += std::str::from_utf8(&buffer[..got]).unwrap();
            heard.push('\n');
        }
        heard.clear();
    };
    let mut command = dir.command();
    command.args(["watch", "."]).env("NOTIFY_SOCKET", &socket).env("WATCHDOG_USEC", "200000");
    let daemon = Daemon::spawn(&dir, command);
    hear("READY=1");
    hear("WATCHDOG=1");
    hear("WATCHDOG=1");
    daemon.signal("HUP");
    hear("RELOADING=1");
    hear("READY=1");
    daemon.signal("TERM");
    hear("STOPPING=1");
}

/// With these settings, a session is looked at immediately, but only repaired after a long quiet time.
#[track_caller]
fn assert_mended_late(case: &str, settings: &[&str]) {
    let dir = Dir::new();
    let (case, path) = (root().join("fixtures/pi").join(case), dir.path("s.jsonl"));
    let mut arguments = vec!["watch", ".", "--mode", "enforce", "--settle", "0.1"];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let daemon = Daemon::start(&dir, &arguments);
    fs::copy(case.join("in.jsonl"), &path).unwrap();
    daemon.until("it is seen", |status| status["looks"] == 1);
    let early = daemon.status().unwrap();
    daemon.until("it is cut", |status| status["fixed"] == 1);
    assert_eq!(fs::read(&path).unwrap(), fs::read(case.join("out.jsonl")).unwrap());
    assert_eq!((&early["fixed"], &early["waiting"]), (&Value::from(0), &Value::from(1)), "{early:#?}");
}

#[test]
fn older_history_is_rewritten_only_after_a_long_quiet() {
    assert_mended_late(
        "bound-strip",
        &["thinking='strip'", "settle_stale=2", "memory_settle=0", "result_chars_max=200"],
    );
}

/// A file is looked at again once what it waits for has happened; without that it would take a minute, which is longer
/// than this test waits. The reported reason disappears with it.
#[test]
fn a_file_that_is_let_go_is_looked_at_at_once() {
    let dir = Dir::new();
    let living = Living::new();
    let (name, entry) = living.registered();
    dir.write(format!(".claude/sessions/{name}"), entry);
    let path = dir.write(".claude/projects/-w/5e.jsonl", claude());
    let daemon = Daemon::start(&dir, &["watch", ".", "--mode", "enforce", "--settle", "0.1"]);
    let waits = |why: &str| {
        daemon.until(why, |status| {
            let trouble = &status["troubles"][0];
            trouble["looked_seconds_ago"].is_u64()
                && trouble["reason"].as_str().is_some_and(|reason| reason.contains(why))
        });
    };
    waits("Claude Code is using it");
    drop(living);
    daemon.until("it is mended when Claude Code has ended", |status| status["fixed"] == 1);
    assert_ne!(fs::read_to_string(&path).unwrap(), claude());
    assert_eq!(daemon.status().unwrap()["troubles"], Value::Array(Vec::new()));

    let path = dir.path("s.jsonl");
    let mut writer = File::options().append(true).create_new(true).open(&path).unwrap();
    writer.write_all(BROKEN.as_bytes()).unwrap();
    make_old(&path);
    waits("has it open for writing");
    drop(writer);
    daemon.until("it is mended when it is closed", |status| status["fixed"] == 2);
}

/// What the model sees is only changed once the agent that may remember it has ended, and then at once.
#[test]
fn what_an_agent_may_remember_is_cut_when_it_has_ended() {
    let dir = Dir::new();
    let work = dir.home().join("work");
    fs::create_dir(&work).unwrap();
    let agent = Living::within(&work);
    let path = dir.write("s.jsonl", remembered(&work, "claude-opus-5-5", false));
    let settings = ["--mode", "enforce", "--settle", "0.1", "--set", "memory_settle=0"];
    let daemon = Daemon::start(&dir, &[&["watch", "."], &settings[..]].concat());
    daemon.until("it waits", |status| {
        status["troubles"][0]["reason"].as_str().is_some_and(|reason| reason.contains("in memory"))
    });
    let is_whole = || fs::read_to_string(&path).unwrap().contains(&"x".repeat(40_000));
    assert!(is_whole());
    drop(agent);
    daemon.until("it is cut", |_| !is_whole());
}

/// A repair that saves little waits, with a reason, until it is worth rewriting the whole file.
#[test]
fn a_file_is_rewritten_only_if_that_is_worth_it() {
    let dir = Dir::new();
    let config = dir.home().join("config.toml");
    let configure = |more: &str| {
        let shared = "mode = \"enforce\"\nsettle = 0.1\nresult_chars_max = 200\n";
        fs::write(&config, format!("{shared}{more}")).unwrap();
    };
    configure("");
    let opening = fs::read_to_string(root().join("fixtures/pi/s1-head-and-tail/in.jsonl")).unwrap();
    // The rest is sent as well: what a cut saves of that counts too.
    let more = r#"{"type":"message","id":"z","parentId":"a3","timestamp":"2026-07-01T10:00:09.000Z","message":{"role":"assistant","stopReason":"stop","content":[{"type":"text","text":""#;
    let text = format!("{opening}{more}{}\"}}]}}}}\n", "x".repeat(300_000));
    let path = dir.write("s.jsonl", &text);
    let socket = dir.home().join("metrics.sock");
    let listen = format!("unix:{}", socket.display());
    let arguments = ["watch", ".", "--config", config.to_str().unwrap(), "--listen", &listen];
    let daemon = Daemon::start(&dir, &arguments);
    daemon.until("it waits", |status| status["troubles"][0]["outcome"] == "deferred");
    let status = daemon.status().unwrap();
    let reason = status["troubles"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("[watch]") && reason.contains("`tailor fix`"), "{reason}");
    assert_eq!((&status["fixed"], &status["waiting"]), (&Value::from(0), &Value::from(0)), "{status:#}");
    assert!(get(&socket, "/metrics").contains("\ntailor_bytes_written_total{user=\"bot\"} 0\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    configure("[watch]\nrewrite_saved_bytes_min = 1\n");
    daemon.signal("HUP");
    daemon.until("it is worth it", |status| status["fixed"] == 1);
    let written =
        format!("\ntailor_bytes_written_total{{user=\"bot\"}} {}\n", fs::metadata(&path).unwrap().len());
    assert!(get(&socket, "/metrics").contains(&written));
}

#[test]
fn a_profile_ages_results_after_a_long_quiet() {
    assert_mended_late("s14-chatcli-two-turns-old", &["profile='chatcli'", "settle_stale=2"]);
}

#[test]
fn what_keeps_coming_back_is_left_alone_after_a_while_unless_it_is_an_error() {
    let dir = Dir::new();
    let (path, broken) = (dir.path("s.jsonl"), dir.path("broken.jsonl"));
    let original = fs::read(root().join("fixtures/pi/s1-head-and-tail/in.jsonl")).unwrap();
    let daemon = Daemon::start(&dir, &arguments(".", "result_chars_max=200"));
    // A program with the sessions in memory writes them back each time.
    for n in 1..=6 {
        for (session, text) in [(&path, &original[..]), (&broken, BROKEN.as_bytes())] {
            fs::write(session, text).unwrap();
            make_old(session);
        }
        daemon.until("both are mended", |status| status["fixed"] == 2 * n);
    }
    daemon.until("one is left alone", |status| status["tripped"] == 1);
    let log = log(&dir);
    assert!(log.contains("s.jsonl: left alone for 3600 s") && !log.contains("broken.jsonl: left"), "{log}");
}

/// Each turn the newest result is cut and older ones age, further up in the file.
#[test]
fn a_session_that_ages_as_it_grows_is_never_left_alone() {
    let dir = Dir::new();
    let path = dir.path("s.jsonl");
    let ages = [
        "settle_stale=0",
        "stale.shorten_turns=2",
        "stale.head_chars=60",
        "stale.tail_chars=20",
        "stale.chars_min=400",
    ];
    let ages = ages.iter().flat_map(|set| ["--set", set]);
    let daemon = Daemon::start(
        &dir,
        &arguments(".", "result_chars_max=300").into_iter().chain(ages).collect::<Vec<_>>(),
    );
    let lines: Vec<String> = conversation(10, false)
        .iter()
        .map(|line| line.replace("short", &"row of output\\n".repeat(100)))
        .collect();
    let (mut rest, mut turns) = (&lines[..], 0);
    while let Some(end) = rest.iter().position(|line| line.contains("\"stop\"")) {
        rest[..=end].iter().for_each(|line| append(&path, line));
        (rest, turns) = (&rest[end + 1..], turns + 1);
        daemon.until("the turn is mended", |status| {
            status["fixed"].as_u64().is_some_and(|fixed| fixed >= turns)
        });
    }
    assert_eq!((turns, &daemon.status().unwrap()["tripped"]), (10, &Value::from(0)), "{}", log(&dir));
    assert!(fs::read_to_string(&path).unwrap().matches("[tailor:").count() == 10);
}

/// The daemon reports as repaired what it has repaired; what remains is reported too, and is not an error.
#[test]
fn only_what_was_mended_is_said_to_be() {
    let dir = Dir::new();
    let fixture = fs::read_to_string(root().join("fixtures/claude-code/s6-progress/in.jsonl")).unwrap();
    let long = format!(r#""type":"tool_result","content":"{}""#, "x".repeat(900));
    let text = fixture.replace(r#""type":"tool_result","content":"a""#, &long);
    assert_ne!(text, fixture);
    let limit = format!("result_chars_max={LIMIT}");
    let daemon = Daemon::start(&dir, &arguments(".", &limit));
    let path = dir.write("s.jsonl", &text);
    daemon.until("it is mended", |status| status["fixed"] == 1 && status["waiting"] == 0);
    let progress = |text: &str| text.matches(r#""type":"progress""#).count();
    assert_eq!(progress(&fs::read_to_string(&path).unwrap()), progress(&text));
    let said = log(&dir);
    assert!(said.contains("s.jsonl: fixed S1: ") && said.contains("; left S6"), "{said}");
    assert_eq!(daemon.status().unwrap()["findings_total"], 1);
    assert_eq!(daemon.status().unwrap()["troubles"], Value::Array(Vec::new()));
    drop(daemon);

    // Once the fix is allowed, it is made and reported.
    fs::remove_file(dir.home().join("log")).unwrap();
    let mut allowed = arguments(".", &limit);
    allowed.extend(["--set", "allow=['S6']"]);
    let daemon = Daemon::start(&dir, &allowed);
    daemon.until("it is mended", |status| status["fixed"] == 1);
    let said = log(&dir);
    assert!(said.contains("s.jsonl: fixed S6: ") && !said.contains("; left "), "{said}");
}

#[test]
fn without_watches_a_root_is_walked() {
    let dir = Dir::new();
    let script = "echo 3 > /proc/sys/user/max_inotify_watches && exec \"$0\" \"$@\"";
    let mut probe = Command::new("unshare");
    probe.args(["-Ur", "sh", "-c", script, "true"]).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        return skipped("no watches left: unshare may not make user namespaces here");
    }
    for n in 0..6 {
        fs::create_dir(dir.path(format!("folder-{n}"))).unwrap();
    }
    let mut command = dir.command_of("unshare");
    let path: PathBuf = env!("CARGO_BIN_EXE_tailor").into();
    let found = std::env::var_os("PATH").unwrap_or_default();
    command.env("PATH", found).args(["-Ur", "sh", "-c", script]).arg(&path);
    command.args(["watch", ".", "--mode", "enforce", "--settle", "0.1", "--set", "rescan=2"]);
    let daemon = Daemon::spawn(&dir, command);
    daemon.until("it says so", |status| {
        status["roots"][0]["reason"].as_str().is_some_and(|reason| reason.contains("max_user_watches"))
    });
    let path = dir.write("folder-5/s.jsonl", BROKEN);
    until("it is found all the same", || fs::read_to_string(&path).unwrap().len() > BROKEN.len());
    let mut told = String::new();
    for line in log(&dir).lines().filter(|line| line.contains("walked periodically")) {
        writeln!(told, "{line}").unwrap();
    }
    assert_eq!(told.lines().count(), 1, "{told}");

    // The limit is raised, and lowered again.
    let limit = |watches: usize| {
        let script = format!("echo {watches} > /proc/sys/user/max_inotify_watches");
        let mut set = Command::new("nsenter");
        set.arg("-U").arg("-t").arg(daemon.child.id().to_string()).args(["sh", "-c", &script]);
        assert!(set.status().unwrap().success());
    };
    limit(1_000);
    daemon.until("it is watched", |status| status["roots"][0]["folders"] == 7);
    limit(3);
    fs::create_dir(dir.path("folder-6")).unwrap();
    daemon.until("it is walked again", |status| status["roots"][0]["watch_state"] == "polled");
    let path = dir.write("folder-6/s.jsonl", BROKEN);
    until_mended(&path);
}

/// A line that lay there for a second is kept, whatever becomes of the file, and what happened while no daemon ran as well.
#[test]
fn what_a_session_becomes_is_kept() {
    let dir = Dir::new();
    let path = dir.write("0d0f7b2c.jsonl", WHOLE);
    let ends = || {
        let listed = dir.tailor(&["keep", "list", "--json"]).json();
        listed
            .iter()
            .map(|one| (one["bytes"].as_u64(), one["end"].as_str().map(String::from)))
            .collect::<Vec<_>>()
    };
    let bytes = |text: &str| Some(text.len() as u64);
    let daemon = Daemon::start(&dir, &["watch", ".", "--keep"]);
    assert_eq!(daemon.status().unwrap()["keep_mode"], "on");
    until("it caught up", || ends() == [(bytes(WHOLE), None)]);
    let more = "{\"type\":\"more\"}\n";
    File::options().append(true).open(&path).unwrap().write_all(more.as_bytes()).unwrap();
    until("an append is kept", || ends() == [(bytes(&(WHOLE.to_string() + more)), None)]);
    fs::remove_file(&path).unwrap();
    until("the end is kept", || ends()[0].1.as_deref() == Some("deleted"));
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(dir.tailor(&["keep", "restore", "0d0f7b2c"]).status, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), WHOLE.to_string() + more);
    let daemon = Daemon::start(&dir, &["watch", ".", "--keep"]);
    until("it caught up again", || ends().len() == 2);
    drop(daemon);
    fs::write(&path, BROKEN).unwrap();
    let daemon = Daemon::start(&dir, &["watch", ".", "--keep=on"]);
    until("it saw what had happened", || ends().len() == 3);
    assert_eq!(ends()[1].1.as_deref(), Some("rewritten"));
    assert_eq!(daemon.stop(), Some(0));
}
