//! `tailor watch` beside programs that write, killed, reloaded and misled. Nothing here waits for time to pass: what is
//! waited for is a state, with a deadline.

use crate::support::{BROKEN, Dir, WHOLE, make_old, root, skipped};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const LIMIT: usize = 300;

/// Waits until it is so.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A daemon that ends with its test.
struct Daemon<'a> {
    dir: &'a Dir,
    child: Child,
}

impl<'a> Daemon<'a> {
    /// Starts it and waits until it answers.
    #[track_caller]
    fn start(dir: &'a Dir, arguments: &[&str]) -> Self {
        let mut command = dir.command();
        command.args(arguments);
        Self::of(dir, command)
    }

    #[track_caller]
    fn of(dir: &'a Dir, mut command: Command) -> Self {
        let log = File::options().create(true).append(true).open(dir.home().join("log")).unwrap();
        command.env("XDG_RUNTIME_DIR", dir.home()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let daemon = Self { dir, child: command.spawn().unwrap() };
        until("it answers", || daemon.status().is_some());
        daemon
    }

    fn status(&self) -> Option<Value> {
        let mut command = self.dir.command();
        command.args(["status", "--format", "json"]).env("XDG_RUNTIME_DIR", self.dir.home());
        let run = crate::support::run(&mut command, b"");
        let status = run.json().pop()?;
        (status["pid"] == self.child.id()).then_some(status)
    }

    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        let mut last = None;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            last = self.status();
            if last.as_ref().is_some_and(&is_so) {
                return;
            }
        }
        let log: Vec<String> = log(self.dir).lines().rev().take(30).map(String::from).collect();
        panic!("in vain: {what}\n{last:#?}\n{}", log.join("\n"));
    }

    /// Waits until all it knows has been looked at and nothing is left to do.
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

    /// Ends it, and gives its exit code.
    fn stop(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn log(dir: &Dir) -> String {
    fs::read_to_string(dir.home().join("log")).unwrap_or_default()
}

/// The lines of a session as pi appends them: turns of a question, a call, its result and an answer. Each third result
/// is too long, and each fourth turn has a result that nobody asked for.
fn session(turns: usize) -> Vec<String> {
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
        if n % 4 == 3 {
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
            // Whatever it is doing at this moment.
            drop(daemon);
            daemon = Daemon::start(&dir, &arguments);
        }
    }
    daemon.until_idle(1);
    let text = fs::read_to_string(&path).unwrap();
    let wanted = ids(&lines.join("\n")).into_iter().filter(|id| !id.starts_with("orphan"));
    assert_eq!(ids(&text), wanted.collect::<Vec<String>>());
    assert_eq!(daemon.stop(), Some(0));
    let scan =
        dir.tailor(&["scan", "sessions", "--result-chars-max", &LIMIT.to_string(), "--format", "json"]);
    assert_eq!(scan.file()["outcome"], "clean", "{}", scan.text());
    assert_eq!(names(&root), ["s.jsonl"], "something is left beside it");

    let mut undone = 0;
    while dir.tailor(&["undo", "sessions/s.jsonl", "--settle", "0"]).status == 0 {
        undone += 1;
    }
    assert!(undone >= 2, "{undone} runs\n{}", log(&dir));
    assert_eq!(fs::read_to_string(&path).unwrap(), lines.join("\n") + "\n");
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
    daemon.until("it is looked at", |status| status["findings"] == 1);
    append(&path, r#"{"type":"custom","id":"x","parentId":"a3","timestamp":"2026-07-01T10:00:04.000Z"}"#);
    daemon.until("it is looked at again", |status| status["looks"] == 2);
    assert_eq!(daemon.stop(), Some(0));
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.ino(), &fs::read_to_string(&path).unwrap()[..BROKEN.len()]), (before.ino(), BROKEN));
    assert_eq!(dir.names(), ["s.jsonl"]);
    assert!(!dir.home().join(".state/tailor/runs").exists(), "it has kept something");
    let log = log(&dir);
    assert!(
        log.contains(r#""event":"findings""#) && log.contains(r#""reason":"P1""#) && !log.contains("well?"),
        "{log}"
    );
}

#[test]
fn roots_and_folders_may_come_later_and_be_replaced() {
    let dir = Dir::new();
    let broken = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, BROKEN).unwrap();
        make_old(path);
    };
    let mended = |path: &Path| {
        until("it is mended", || fs::read_to_string(path).is_ok_and(|text| text.len() > BROKEN.len()));
    };
    let arguments = ["watch", "later/on", "--mode", "enforce", "--settle", "0.1"];
    let daemon = Daemon::start(&dir, &arguments);
    daemon.until("it waits", |status| status["roots"][0]["state"] == "missing");
    for name in ["one.jsonl", "deep/er/two.jsonl", "deep/er/still/three.jsonl"] {
        let path = dir.path("later/on").join(name);
        broken(&path);
        mended(&path);
    }
    daemon.until("it is watched", |status| status["roots"][0]["folders"] == 4);
    // Another folder takes the place of the first.
    fs::rename(dir.path("later/on"), dir.path("gone")).unwrap();
    let path = dir.path("later/on/four.jsonl");
    broken(&path);
    mended(&path);
    daemon.until("the others are forgotten", |status| status["files"] == 1);

    // Nobody else may look after what is inside it, or after what it is in.
    for root in ["later/on", "later", "later/on/deep"] {
        let second = dir.tailor(&["watch", root]);
        assert_eq!(second.status, 2, "{}", second.stderr);
        let who = format!("(process {})", daemon.child.id());
        assert!(second.stderr.contains(&who), "{}", second.stderr);
    }
    assert_eq!(daemon.stop(), Some(0));
    assert!(!dir.home().join("tailor/status.sock").exists());
}

#[test]
fn a_wrong_configuration_changes_nothing_and_a_right_one_does() {
    let dir = Dir::new();
    let config = dir.home().join("config.toml");
    let path = dir.write("s.jsonl", BROKEN);
    fs::write(&config, "mode = \"observe\"\nsettle = 0.1\n").unwrap();
    let daemon = Daemon::start(&dir, &["watch", ".", "--config", config.to_str().unwrap()]);
    daemon.until("it is looked at", |status| status["findings"] == 1);

    fs::write(&config, "mode = \"enforce\"\nsettel = 0.1\n").unwrap();
    daemon.signal("HUP");
    daemon.until("it is refused", |status| {
        status["config_error"].as_str().is_some_and(|error| error.contains("did you mean `settle`?"))
    });
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
    // What is printed is a configuration that says the same.
    let again = dir.home().join("again.toml");
    fs::write(&again, &printed).unwrap();
    let reprinted = run(&["config", "print", "--config", again.to_str().unwrap()]).text();
    assert_eq!(reprinted.split_once('\n').unwrap().1, printed.split_once('\n').unwrap().1);
    fs::write(own.join("config.toml"), "mod = \"enforce\"\n").unwrap();
    let checked = run(&["config", "check"]);
    assert_eq!(checked.status, 2);
    assert!(
        checked.stderr.contains("line 1: unknown key `mod` (did you mean `mode`?)"),
        "{}",
        checked.stderr
    );
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
        // Most are well; what mending costs is the disk's affair.
        let text = if n % 10 == 0 { &broken } else { WHOLE };
        fs::write(folder.join(format!("{n}.jsonl")), text).unwrap();
    }
    daemon.until_idle(SESSIONS);
    daemon.until("all are mended", |status| status["fixed"] == SESSIONS / 10 && status["findings"] == 0);
    let memory = fs::read_to_string(format!("/proc/{}/status", daemon.child.id())).unwrap();
    let resident = memory.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 64 * 1024, "{kib} KiB");
}

/// What the daemon says over HTTP on a socket.
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
    assert!(metrics.contains("\ntailor_looks_total{outcome=\"fixed\"} 0\n"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"));
    assert!(get(&socket, "/else").starts_with("HTTP/1.1 404"));
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    drop(daemon);

    let listen = format!("unix:{}", taken.display());
    let daemon = Daemon::start(&dir, &["watch", ".", "--listen", &listen, "--settle", "0.1"]);
    dir.write("s.jsonl", BROKEN);
    daemon.until("it goes on", |status| status["findings"] == 1);
    assert!(log(&dir).contains("could not serve metrics"), "{}", log(&dir));
    assert_eq!(fs::read_to_string(&taken).unwrap(), "somebody's");
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
    let daemon = Daemon::of(&dir, command);
    hear("READY=1");
    hear("WATCHDOG=1");
    hear("WATCHDOG=1");
    daemon.signal("HUP");
    hear("RELOADING=1");
    hear("READY=1");
    daemon.signal("TERM");
    hear("STOPPING=1");
}

#[test]
fn older_history_is_rewritten_only_after_a_long_quiet() {
    let dir = Dir::new();
    let case = root().join("fixtures/pi/m4-strip");
    let (limit, path) = ("result_chars_max=200", dir.path("s.jsonl"));
    let strip = ["--set", "thinking='strip'", "--set", "settle_stale=2", "--set", limit];
    let daemon =
        Daemon::start(&dir, &[&["watch", ".", "--mode", "enforce", "--settle", "0.1"], &strip[..]].concat());
    fs::copy(case.join("in.jsonl"), &path).unwrap();
    daemon.until("it is seen", |status| status["looks"] == 1);
    let early = daemon.status().unwrap();
    daemon.until("it is cut", |status| status["fixed"] == 1);
    assert_eq!(fs::read(&path).unwrap(), fs::read(case.join("out.jsonl")).unwrap());
    assert_eq!((&early["fixed"], &early["waiting"]), (&Value::from(0), &Value::from(1)), "{early:#?}");
}

#[test]
fn a_profile_ages_results_after_a_long_quiet() {
    let dir = Dir::new();
    let case = root().join("fixtures/pi/s14-chatcli-two-turns-old");
    let path = dir.path("s.jsonl");
    let set = ["--set", "profile='chatcli'", "--set", "settle_stale=2"];
    let daemon =
        Daemon::start(&dir, &[&["watch", ".", "--mode", "enforce", "--settle", "0.1"], &set[..]].concat());
    fs::copy(case.join("in.jsonl"), &path).unwrap();
    daemon.until("it is seen", |status| status["looks"] == 1);
    let early = daemon.status().unwrap();
    daemon.until("it is cut", |status| status["fixed"] == 1);
    assert_eq!(fs::read(&path).unwrap(), fs::read(case.join("out.jsonl")).unwrap());
    assert_eq!((&early["fixed"], &early["waiting"]), (&Value::from(0), &Value::from(1)), "{early:#?}");
}

#[test]
fn what_keeps_coming_back_is_left_alone_after_a_while() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    let arguments = ["watch", ".", "--mode", "enforce", "--settle", "0.1"];
    let daemon = Daemon::start(&dir, &arguments);
    // A program that holds its session in memory writes it back each time.
    for n in 1..=6 {
        daemon.until("it is mended", |status| status["fixed"] == n);
        if n < 6 {
            fs::write(&path, BROKEN).unwrap();
            make_old(&path);
        }
    }
    daemon.until("it is left alone", |status| status["tripped"] == 1);
    assert!(log(&dir).contains("left alone for 3600 s"), "{}", log(&dir));
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
    command.args(["watch", ".", "--mode", "enforce", "--settle", "0.1"]);
    let daemon = Daemon::of(&dir, command);
    daemon.until("it says so", |status| {
        status["roots"][0]["reason"].as_str().is_some_and(|reason| reason.contains("max_user_watches"))
    });
    let path = dir.write("folder-5/s.jsonl", BROKEN);
    until("it is found all the same", || fs::read_to_string(&path).unwrap().len() > BROKEN.len());
    let mut told = String::new();
    for line in log(&dir).lines().filter(|line| line.contains("walked again and again")) {
        writeln!(told, "{line}").unwrap();
    }
    assert_eq!(told.lines().count(), 1, "{told}");
}
