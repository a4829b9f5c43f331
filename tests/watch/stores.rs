//! Sessions in a database, which another process writes by SQL: it stands for the owner of the store.

use super::{Daemon, log, until};
use crate::support::{Dir, skipped};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// As OpenClaw 2026.9.6 has them, as far as Tailor needs them.
const SCHEMA: &[&str] = &[
    "PRAGMA journal_mode = WAL",
    "PRAGMA wal_autocheckpoint = 0",
    "CREATE TABLE schema_meta (meta_key TEXT NOT NULL PRIMARY KEY, role TEXT NOT NULL, schema_version INTEGER NOT NULL) STRICT",
    "INSERT INTO schema_meta VALUES ('primary', 'agent', 23)",
    "CREATE TABLE session_windows (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, updated_at INTEGER NOT NULL, \
     transcript_updated_at INTEGER DEFAULT NULL, transcript_observed_at INTEGER DEFAULT NULL) STRICT",
    "CREATE TABLE transcript_rewrite_watermarks (session_id TEXT NOT NULL PRIMARY KEY, generation TEXT NOT NULL, \
     updated_at INTEGER NOT NULL) STRICT",
    "CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL, \
     event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT, PRIMARY KEY (session_id, seq)) STRICT",
];

/// Runs a statement a line, and answers with its rows or its error.
const OWNER: &str = "import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=5)
for line in sys.stdin:
    try: said = db.execute(json.loads(line)).fetchall()
    except sqlite3.Error as error: said = str(error)
    print(json.dumps(said), flush=True)";

struct Owner {
    child: Child,
    said: Box<dyn BufRead>,
    path: PathBuf,
}

impl Owner {
    /// Begins a store; `None` if there is no Python here.
    fn begin(path: &Path) -> Option<Self> {
        let mut command = Command::new("python3");
        command.args(["-c", OWNER]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut child) = command.spawn() else {
            skipped("the daemon beside stores: python3 is not installed");
            return None;
        };
        let said = Box::new(BufReader::new(child.stdout.take().unwrap()));
        let mut owner = Self { child, said, path: path.to_path_buf() };
        for statement in SCHEMA {
            owner.run(statement);
        }
        Some(owner)
    }

    #[track_caller]
    fn run(&mut self, statement: &str) -> Value {
        writeln!(self.child.stdin.as_ref().unwrap(), "{}", json!(statement)).unwrap();
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        assert!(said.is_array(), "{statement:.60}: {said}");
        said
    }

    /// A session with a result that is too long, last written at this time.
    fn write(&mut self, session: &str, at: u128) {
        let window =
            format!("INSERT INTO session_windows VALUES ('{session}', 'k-{session}', {at}, {at}, NULL)");
        self.run("BEGIN");
        self.run(&window);
        self.run(&format!("INSERT INTO transcript_rewrite_watermarks VALUES ('{session}', 'g1', 0)"));
        for (seq, event) in events(session).into_iter().enumerate() {
            let bytes = event.len();
            self.run(&format!(
                "INSERT INTO transcript_events VALUES ('{session}', {seq}, '{event}', 0, NULL, {bytes}, NULL)"
            ));
        }
        self.run("COMMIT");
    }

    fn touch(&mut self, session: &str) {
        let now = now();
        self.run(&format!(
            "UPDATE session_windows SET transcript_updated_at = {now} WHERE session_id = '{session}'"
        ));
    }

    fn is_cut(&mut self, session: &str) -> bool {
        let cut = format!(
            "SELECT count(*) FROM transcript_events WHERE session_id = '{session}' AND event_json LIKE '%[tailor: %'"
        );
        self.run(&cut)[0][0] != 0
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

fn events(session: &str) -> Vec<String> {
    let entry = |n: usize, message: Value| {
        let parent = (n > 1).then(|| format!("e{}", n - 1));
        let timestamp = format!("2026-11-22T17:39:{n:02}.000Z");
        json!({"type": "message", "id": format!("e{n}"), "parentId": parent, "timestamp": timestamp, "message": message})
    };
    let long = "a row of secret output\n".repeat(3_000);
    let block = |text: &str| json!([{"type": "text", "text": text}]);
    let call = json!([{"type": "toolCall", "id": "c1", "name": "ls", "arguments": {}}]);
    let all = [
        json!({"type": "session", "version": 4, "id": session, "timestamp": "2026-11-22T17:39:00.000Z", "cwd": "/w"}),
        entry(1, json!({"role": "user", "content": "list files"})),
        entry(2, json!({"role": "assistant", "content": call, "stopReason": "toolUse"})),
        entry(
            3,
            json!({"role": "toolResult", "toolCallId": "c1", "toolName": "ls", "content": block(&long), "isError": false}),
        ),
        entry(4, json!({"role": "assistant", "content": block("Many."), "stopReason": "stop"})),
        entry(5, json!({"role": "user", "content": "thanks"})),
    ];
    all.iter().map(Value::to_string).collect()
}

const STORE: &str = "openclaw-agent.sqlite";
const ENFORCE: &[&str] = &["watch", ".", "--mode", "enforce", "--settle", "0.2"];

#[test]
fn sessions_in_a_database_are_seen_also_in_its_log_and_left_alone() {
    let dir = Dir::new();
    let path = dir.path(STORE);
    let Some(mut owner) = Owner::begin(&path) else { return };
    owner.write("s1", 9_000);
    let observe = "stores.mode=\"observe\"";
    let options = ["--mode", "enforce", "--set", observe, "--settle", "0.1", "--log-format", "json"];
    let daemon = Daemon::start(&dir, &[&["watch", "."], &options[..]].concat());
    daemon.until("it is looked at", |status| status["findings_total"] == 1 && status["files"] == 2);
    let before = fs::read(&path).unwrap();
    owner.write("s2", 9_000);
    daemon.until("what is in the log is seen", |status| {
        status["findings_total"] == 2 && status["files"] == 3 && status["looks"] == 2
    });
    assert_eq!(fs::read(&path).unwrap(), before, "this test writes past the log");
    owner.touch("s1");
    daemon.until("only what was written is looked at again", |status| status["looks"] == 3);
    owner.run("DELETE FROM transcript_events WHERE session_id = 's1'");
    daemon.until("a session is gone", |status| status["findings_total"] == 1 && status["files"] == 2);
    assert!(!owner.is_cut("s2"), "it was told to look only");
    let log = log(&dir);
    let line = log.lines().find(|line| line.contains(r#""event":"findings""#)).unwrap();
    assert!(line.contains("openclaw-agent.sqlite#s1") && line.contains(r#""agent":"#), "{line}");
    assert!(!log.contains("secret"), "{log}");
    for name in ["-wal", "-shm", ""] {
        fs::remove_file(dir.path(format!("{STORE}{name}"))).unwrap();
    }
    daemon.until("the database is gone", |status| status["findings_total"] == 0 && status["files"] == 0);
    assert_eq!(daemon.stop(), Some(0));
}

/// No walk happens within the time of this test: the kernel reports the file.
#[test]
fn a_database_that_an_agent_makes_later_is_found_at_once() {
    let dir = Dir::new();
    let path = dir.home().join(".openclaw/agents/main/agent").join(STORE);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let daemon = Daemon::start(&dir, &["watch", "--settle", "0.1", "--set", "rescan=0"]);
    let Some(mut owner) = Owner::begin(&path) else { return };
    owner.write("s1", 9_000);
    daemon.until("it is looked at", |status| status["findings_total"] == 1);
}

#[test]
fn a_database_that_is_named_is_watched_where_it_is() {
    let dir = Dir::new();
    let path = dir.path("deep/copy.db");
    fs::create_dir(dir.path("deep")).unwrap();
    let Some(mut owner) = Owner::begin(&path) else { return };
    owner.write("s1", 9_000);
    let daemon = Daemon::start(&dir, &["watch", "deep/copy.db", "--settle", "0.1"]);
    daemon.until("it is looked at", |status| status["findings_total"] == 1);
    daemon.until("it is watched", |status| status["roots"][0]["watch_state"] == "watched");
    owner.write("s2", 9_000);
    daemon.until("the other one is seen", |status| status["findings_total"] == 2);
    assert!(!owner.is_cut("s1") && !owner.is_cut("s2"));
    drop(owner);
    for name in ["-wal", "-shm", ""] {
        fs::remove_file(dir.path(format!("deep/copy.db{name}"))).unwrap();
    }
    daemon.until("it is missed", |status| status["roots"][0]["watch_state"] == "missing");
    let mut owner = Owner::begin(&path).unwrap();
    owner.write("s3", 9_000);
    daemon.until("it is back", |status| status["findings_total"] == 1 && status["files"] == 2);
}

#[test]
fn each_session_is_mended_once_it_is_quiet_however_busy_its_database_is() {
    let dir = Dir::new();
    let Some(mut owner) = Owner::begin(&dir.path(STORE)) else { return };
    owner.write("busy", now());
    let daemon =
        Daemon::start(&dir, &ENFORCE.iter().map(|a| if *a == "0.2" { "3" } else { a }).collect::<Vec<_>>());
    owner.write("quiet", 9_000);
    let deadline = Instant::now() + super::PATIENCE;
    while !owner.is_cut("quiet") {
        assert!(Instant::now() < deadline, "in vain: {}", log(&dir));
        owner.touch("busy");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!owner.is_cut("busy"), "it was being written to");
    until("it is quiet", || owner.is_cut("busy"));
    daemon.until("all is done", |status| status["findings_total"] == 0 && status["fixed"] == 2);
    assert_eq!(daemon.stop(), Some(0));
    let undo = |session: &str| {
        let path = format!("{STORE}#{session}");
        crate::support::run(dir.command().args(["undo", &path, "--settle", "0"]), b"")
    };
    for session in ["busy", "quiet"] {
        let run = undo(session);
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert!(run.text().contains(" of text\n"), "rows may be packed: {}", run.text());
        let rows =
            format!("SELECT event_json FROM transcript_events WHERE session_id = '{session}' ORDER BY seq");
        let rows: Vec<String> = serde_json::from_value::<Vec<[String; 1]>>(owner.run(&rows))
            .unwrap()
            .into_iter()
            .map(|[row]| row)
            .collect();
        assert!(rows == events(session), "{session}");
    }
}

#[test]
fn a_database_that_is_locked_is_tried_again() {
    let dir = Dir::new();
    let Some(mut owner) = Owner::begin(&dir.path(STORE)) else { return };
    owner.write("s1", 9_000);
    owner.run("BEGIN IMMEDIATE");
    let daemon = Daemon::start(&dir, ENFORCE);
    daemon.until("it has to wait", |status| {
        status["troubles"][0]["outcome"] == "deferred"
            && status["troubles"][0]["reason"].as_str().is_some_and(|why| why.contains("database"))
    });
    assert!(!owner.is_cut("s1"));
    owner.run("COMMIT");
    until("it is mended", || owner.is_cut("s1"));
    assert_eq!(daemon.stop(), Some(0));
}

/// Ticks of a processor that a process has used.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn of_many_sessions_only_those_that_were_written_to_are_read_and_nothing_when_all_is_quiet() {
    let dir = Dir::new();
    let path = dir.path(STORE);
    let Some(mut owner) = Owner::begin(&path) else { return };
    owner.write("first", 9_000);
    for statement in [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO session_windows \
         SELECT 's' || i, 'k' || i, 9000, 9000, NULL FROM n",
        "INSERT INTO transcript_events SELECT w.session_id, e.seq, CASE e.seq WHEN 0 THEN replace(e.event_json, '\"first\"', \
         '\"' || w.session_id || '\"') ELSE e.event_json END, 0, NULL, NULL, NULL FROM session_windows AS w, transcript_events AS e \
         WHERE w.session_id <> 'first' AND e.seq < 2",
    ] {
        owner.run(statement);
    }
    let daemon = Daemon::start(&dir, &["watch", ".", "--settle", "0.1"]);
    let deadline = Instant::now() + Duration::from_secs(120);
    while daemon.status().is_none_or(|status| status["looks"] != 2_001 || status["waiting"] != 0) {
        assert!(Instant::now() < deadline, "{:?}", daemon.status());
    }
    for n in 1..=3 {
        owner.touch("s7");
        daemon.until("one is read again", |status| status["looks"] == 2_001 + n && status["at_work"] == 0);
    }
    let (before, pid) = (ticks(daemon.child.id()), daemon.child.id());
    std::thread::sleep(Duration::from_secs(3));
    let used = ticks(pid) - before;
    assert!(used <= 3, "{used} ticks of a processor while nothing happened");
    assert_eq!(daemon.status().unwrap()["looks"], 2_004);
    assert_eq!(owner.path, path);
}

/// A session that grows towards what its owner loads dies soon, unless a daemon shortens it.
#[test]
fn doctor_calls_no_session_dying_that_a_daemon_repairs() {
    let dir = Dir::new();
    let path = dir.path(STORE);
    let Some(mut owner) = Owner::begin(&path) else { return };
    owner.write("s1", 9_000);
    owner.run("CREATE TABLE session_nodes (session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL, entry_json TEXT NOT NULL) STRICT");
    owner.run("INSERT INTO session_nodes VALUES ('k-s1', 's1', '{\"contextTokens\":20000}')");
    let state = || {
        let mut doctor = dir.command();
        doctor.args(["doctor", "--json", STORE]).env("XDG_RUNTIME_DIR", dir.home());
        let said = crate::support::run(&mut doctor, b"").text();
        let line: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
        line["state"].as_str().unwrap().to_string()
    };
    assert_eq!(state(), "dying");
    for (mode, said) in [("observe", "dying"), ("enforce", "ok")] {
        let daemon = Daemon::start(&dir, &["watch", ".", "--mode", mode, "--settle", "0.2"]);
        daemon.until("it is watched", |status| status["roots"][0]["watch_state"] == "watched");
        daemon
            .until("it is looked at", |status| status["looks"].as_u64() > Some(0) && status["waiting"] == 0);
        assert_eq!(state(), said, "{mode}");
        assert_eq!(daemon.stop(), Some(0));
        assert_eq!(state(), "dying");
    }
}

/// The owner writes for longer than anybody waits, then ends: what is in its way is put off by name, and nothing is lost.
#[test]
fn a_fix_beside_a_busy_database_is_deferred_and_lands_once_it_may() {
    let dir = Dir::new();
    let path = dir.path("openclaw-agent.sqlite");
    let Some(mut owner) = Owner::begin(&path) else { return };
    owner.write("s1", now() - 60_000);
    let late = "INSERT INTO transcript_events VALUES ('s1', 90, '{\"type\":\"custom\",\"id\":\"late\",\"parentId\":\"e5\"}', 0, NULL, NULL, NULL)";
    owner.run("BEGIN IMMEDIATE");
    owner.run(late);
    let all = "SELECT * FROM transcript_events ORDER BY session_id, seq";
    let before = owner.run(all);
    let session = format!("{}#s1", path.display());
    let fix = |wait: &str| ["fix", "--settle", "0", "--json", "--wait", wait, &session].map(str::to_string);
    let began = Instant::now();
    let said = dir.tailor(&fix("3s").each_ref().map(String::as_str));
    let line: Value = serde_json::from_str(said.text().lines().next().unwrap()).unwrap();
    assert!(said.status == 1 && began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(line["outcome"], "deferred", "{line}");
    assert!(line["reason"].as_str().unwrap().contains("has locked its database"), "{line}");
    assert_eq!(owner.run(all), before);
    let mut waits = dir.command();
    let waits = waits.args(fix("90s")).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(owner.run(all), before);
    owner.run("COMMIT");
    let done = waits.wait_with_output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    let line: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!(line["outcome"], "fixed", "{said}");
    let after = owner.run(all);
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    assert_eq!(before.len(), after.len());
    assert_eq!(before.iter().zip(after).filter(|(old, new)| old != new).count(), 1, "one long result");
    assert!(owner.is_cut("s1"));
}
