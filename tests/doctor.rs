//! `tailor doctor`, `tailor resume`, ids in place of paths, and `explain` without a file: what users with a broken
//! session need, in a home folder with sessions of several agents.

use crate::people::on_terminal;
use crate::support::{BROKEN, Dir, FinishedRun, WHOLE, differs, list, root, run};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const PI_BROKEN: &str = "0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f";
const PI_WHOLE: &str = "0d0f9999-1a2b-4c3d-8e4f-5a6b7c8d9e0f";
const CLAUDE: &str = "7e57c1a0-1a2b-4c3d-8e4f-5a6b7c8d9e0f";
const CODEX: &str = "c0dec0de-1a2b-4c3d-8e4f-5a6b7c8d9e0f";

/// A Claude Code session in which a tool's result is lost.
pub(crate) fn claude(folder: &str) -> String {
    let line = |id: &str, parent: &str, kind: &str, message: &str| {
        let parent = if parent.is_empty() { "null".to_string() } else { format!("\"{parent}\"") };
        format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"{id}\",\"parentUuid\":{parent},\"sessionId\":\"{CLAUDE}\",\"cwd\":\"{folder}\",\
             \"isSidechain\":false,\"version\":\"2.1.0\",\"timestamp\":\"2026-07-01T10:00:0{}.000Z\",\"message\":{message}}}\n",
            id.len()
        )
    };
    [
        line("a", "", "user", "{\"role\":\"user\",\"content\":\"fix the login form of the shop\"}"),
        line(
            "bb",
            "a",
            "assistant",
            "{\"id\":\"m1\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[{\"type\":\"tool_use\",\"id\":\
             \"toolu_A\",\"name\":\"Bash\",\"input\":{}}],\"stop_reason\":\"tool_use\"}",
        ),
        line("ccc", "bb", "user", "{\"role\":\"user\",\"content\":\"well?\"}"),
        line(
            "dddd",
            "ccc",
            "assistant",
            "{\"id\":\"m2\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[{\"type\":\"text\",\"text\":\"Done.\"}],\
             \"stop_reason\":\"end_turn\"}",
        ),
    ]
    .concat()
}

/// A Codex session whose context is larger than the window, by the provider's count.
fn too_long() -> String {
    let line = |kind: &str, payload: &str| {
        format!("{{\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n")
    };
    let said = |role: &str, kind: &str, text: &str| {
        format!(
            "{{\"type\":\"message\",\"role\":\"{role}\",\"content\":[{{\"type\":\"{kind}\",\"text\":\"{text}\"}}]}}"
        )
    };
    let count = "{\"type\":\"token_count\",\"info\":{\"total_token_usage\":{\"total_tokens\":999},\"last_token_usage\":\
                 {\"input_tokens\":234000,\"cached_input_tokens\":0,\"output_tokens\":743,\"reasoning_output_tokens\":0,\
                 \"total_tokens\":234743},\"model_context_window\":200000}}";
    [
        line(
            "session_meta",
            &format!("{{\"id\":\"{CODEX}\",\"cwd\":\"/w/long\",\"cli_version\":\"0.118.0\"}}"),
        ),
        line("response_item", &said("user", "input_text", "list files")),
        line("response_item", &said("assistant", "output_text", "None.")),
        line("event_msg", count),
    ]
    .concat()
}

/// Writes a file of this age below the home folder.
fn put(dir: &Dir, name: &str, text: &str, hours: u64) -> PathBuf {
    let path = dir.home().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    let then = SystemTime::now() - Duration::from_secs(hours * 3_600 + 30);
    File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
    path
}

/// A home folder with a session of each kind.
pub(crate) fn home() -> Dir {
    let dir = Dir::new();
    let pi = |id: &str| format!(".pi/agent/sessions/--w--/2026-07-01T10-00-00-000Z_{id}.jsonl");
    put(&dir, &pi(PI_BROKEN), BROKEN, 5);
    put(&dir, &pi(PI_WHOLE), WHOLE, 2);
    let project = dir.home().join("shop");
    fs::create_dir(&project).unwrap();
    put(&dir, &format!(".claude/projects/-w-shop/{CLAUDE}.jsonl"), &claude(project.to_str().unwrap()), 3);
    put(&dir, &format!(".claude/projects/-w-shop/{CLAUDE}/subagents/agent-a1.jsonl"), &claude("/w"), 1);
    let rollout = format!(".codex/sessions/2026/07/01/rollout-2026-07-01T10-00-00-{CODEX}.jsonl");
    put(&dir, &rollout, &too_long(), 49);
    dir
}

/// The sessions that `doctor --json` lists, without the totals.
fn sessions(dir: &Dir, more: &[&str]) -> Vec<Value> {
    let run = dir.tailor(&[&["doctor", "--json"], more].concat());
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    let mut lines = run.json();
    assert_eq!(lines.pop().unwrap()["type"], "doctor-summary");
    lines
}

fn field<'v>(sessions: &'v [Value], name: &str) -> Vec<&'v str> {
    sessions.iter().map(|session| session[name].as_str().unwrap_or("-")).collect()
}

/// Runs a pasted command line.
pub(crate) fn paste(dir: &Dir, line: &str) -> FinishedRun {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_tailor"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    run(dir.command_of("/bin/sh").args(["-c", line]).env("PATH", path), b"")
}

/// What `doctor --json` reports about missing sessions: agent, problem and ids.
fn strays(dir: &Dir, more: &[&str]) -> Vec<[String; 3]> {
    let all = sessions(dir, more).into_iter().filter(|line| line["type"] == "stray");
    all.map(|line| ["agent", "lacks", "id"].map(|key| line[key].as_str().unwrap().to_string())).collect()
}

#[test]
fn sessions_that_an_agent_has_lost_are_told() {
    let id = |n: u8| format!("0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e{n:02}");
    let dir = Dir::new();
    // OpenClaw: in the list and on disk, only in the list, only on disk, and in the list under another file name.
    let openclaw = ".openclaw/agents/main/sessions";
    for name in [id(1), id(3), format!("{}-topic-7", id(4))] {
        put(&dir, &format!("{openclaw}/{name}.jsonl"), WHOLE, 2);
    }
    let file = dir.home().join(format!("{openclaw}/{}-topic-7.jsonl", id(4)));
    let list = serde_json::json!({
        "agent:main:main": {"sessionId": id(1)}, "agent:main:a": {"sessionId": id(2)},
        "agent:main:b": {"sessionId": id(4), "sessionFile": file}, "agent:main:new": {"updatedAt": 1},
    });
    fs::write(dir.home().join(openclaw).join("sessions.json"), list.to_string()).unwrap();
    // Codex: in the database, in its log, and in neither; and one that was written just now.
    for (n, hours) in [(1, 2), (2, 2), (3, 2)] {
        let rollout = format!(".codex/sessions/2026/07/01/rollout-2026-07-01T10-00-00-{}.jsonl", id(n));
        put(&dir, &rollout, &too_long(), hours);
    }
    let now = dir.home().join(format!(".codex/sessions/rollout-2026-07-01T10-00-00-{}.jsonl", id(4)));
    fs::write(now, too_long()).unwrap();
    fs::write(dir.home().join(".codex/state_5.sqlite"), format!("SQLite format 3\0\u{1}{}/w", id(1)))
        .unwrap();
    fs::write(dir.home().join(".codex/state_5.sqlite-wal"), format!("-{}", id(2))).unwrap();
    // Claude Code: healthy, only a folder, a folder whose transcript has moved, and only titles.
    let claude_at = |project: &str, n: u8| format!(".claude/projects/{project}/{}", id(n));
    put(&dir, &(claude_at("-w", 1) + ".jsonl"), &claude("/w"), 2);
    fs::create_dir_all(dir.home().join(claude_at("-w", 1))).unwrap();
    fs::create_dir_all(dir.home().join(claude_at("-w", 2) + "/tool-results")).unwrap();
    fs::create_dir_all(dir.home().join(claude_at("-w", 3))).unwrap();
    put(&dir, &(claude_at("-v", 3) + ".jsonl"), &claude("/v"), 2);
    let title =
        format!("{{\"type\":\"custom-title\",\"customTitle\":\"shop\",\"sessionId\":\"{}\"}}\n", id(5));
    put(&dir, &(claude_at("-w", 5) + ".jsonl"), &title, 2);
    let snapshot = format!(
        "{{\"type\":\"file-history-snapshot\",\"messageId\":\"{}\",\"snapshot\":{{}},\"isSnapshotUpdate\":false}}\n",
        id(6)
    );
    put(&dir, &(claude_at("-w", 6) + ".jsonl"), &snapshot, 2);

    let told = [
        ("Claude Code", "no transcript", 2),
        ("Claude Code", "no messages", 5),
        ("Claude Code", "no messages", 6),
        ("Codex", "not in index", 3),
        ("OpenClaw", "no transcript", 2),
        ("OpenClaw", "not in index", 3),
    ];
    let told = told.map(|(agent, lacks, n)| [agent.to_string(), lacks.to_string(), id(n)]);
    for _ in 0..2 {
        assert_eq!(strays(&dir, &[]), told);
    }
    assert_eq!(strays(&dir, &["--agent", "codex"]), told[3..4]);
    let below = dir.home().join(openclaw);
    assert_eq!(strays(&dir, &[below.to_str().unwrap()]), told[4..]);
    let text = dir.tailor(&["doctor"]).text();
    for words in [
        format!("Codex does not list 1 session ({}): codex resume ID finds one and adds it.", id(3)),
        format!("Claude Code has left no message in 2 sessions ({}, {}):", id(5), id(6)),
        "openclaw sessions cleanup --all-agents --fix-missing".to_string(),
    ] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&words), "{words}: {text}");
    }
}

#[test]
fn sessions_are_listed_newest_first_with_what_is_wrong() {
    let dir = home();
    let found = sessions(&dir, &[]);
    assert_eq!(field(&found, "agent"), ["pi", "Claude Code", "pi", "Codex"]);
    assert_eq!(field(&found, "state"), ["ok", "broken", "broken", "too long"]);
    assert_eq!(field(&found, "id"), [PI_WHOLE, CLAUDE, PI_BROKEN, CODEX]);
    assert_eq!(found[1]["codes"], serde_json::json!(["P1"]));
    assert_eq!(
        (found[3]["tokens"].as_u64(), found[3]["window_tokens"].as_u64()),
        (Some(234_743), Some(200_000))
    );
    assert_eq!(found[1]["resume"], format!("claude --resume {CLAUDE}"));
    // Titles are only for the user's terminal.
    assert!(found.iter().all(|session| session.get("title").is_none()), "{found:?}");
    let titles = sessions(&dir, &["--titles"]);
    assert_eq!(field(&titles, "title"), ["go", "fix the login form of the shop", "go", "list files"]);
}

#[test]
fn what_is_listed_can_be_narrowed() {
    let dir = home();
    assert_eq!(field(&sessions(&dir, &["--broken"]), "id"), [CLAUDE, PI_BROKEN, CODEX]);
    for name in ["claude", "Claude Code", "claude-code"] {
        assert_eq!(field(&sessions(&dir, &["--agent", name]), "id"), [CLAUDE], "{name}");
    }
    assert_eq!(field(&sessions(&dir, &["--project", "long"]), "id"), [CODEX]);
    let below = dir.home().join(".codex");
    assert_eq!(field(&sessions(&dir, &[below.to_str().unwrap()]), "id"), [CODEX]);
}

/// Each reason for an empty list has its own message.
#[test]
fn an_empty_list_says_why() {
    let dir = home();
    assert_eq!(field(&sessions(&dir, &[&PI_BROKEN[..8]]), "id"), [PI_BROKEN]);
    for (arguments, said) in [
        (&["--broken", PI_WHOLE][..], "Nothing is broken among 1 session.\n"),
        (&["--agent", "gemini"], "None of 4 sessions matches --agent and --project.\n"),
        (&["--broken", "--project", "/nowhere"], "None of 4 sessions matches --agent and --project.\n"),
    ] {
        let run = dir.tailor(&[&["doctor"], arguments].concat());
        assert_eq!((run.status, run.text().as_str(), run.stderr.as_str()), (0, said, ""), "{arguments:?}");
    }
    for (arguments, said) in [
        (&["--agent", "pie"][..], "no agent is called pie (claude, "),
        (&["feedface"], "feedface: no file or session id of this name"),
        (&["nope/"], "nope: no file or session id of this name"),
    ] {
        let run = dir.tailor(&[&["doctor"], arguments].concat());
        assert!(run.status == 2 && run.text().is_empty(), "{arguments:?}: {}", run.text());
        let talk = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(talk.contains(said), "{arguments:?}: {talk}");
    }
    let run = Dir::new().tailor(&["doctor"]);
    assert!(run.status == 0 && run.text().starts_with("No agent sessions found in "), "{}", run.text());
    assert!(run.text().contains("/.claude/projects"), "{}", run.text());
}

/// A pi session that ends with this error.
fn failed(said: &str) -> String {
    let error = serde_json::json!({"type": "message", "id": "z", "parentId": "a1", "timestamp": "2026-07-01T10:00:09.000Z",
        "message": {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": said}});
    format!("{WHOLE}{error}\n")
}

#[test]
fn what_cannot_be_read_is_listed_and_ends_with_2() {
    let dir = home();
    let pi = |n: u8| {
        format!(
            ".pi/agent/sessions/--w--/2026-07-01T10-00-00-000Z_0d0f7777-1a2b-4c3d-8e4f-5a6b7c8d9e{n:02}.jsonl"
        )
    };
    let header = WHOLE.lines().next().unwrap().to_string() + "\n";
    put(&dir, &pi(1), &header, 1);
    put(&dir, &pi(1).replace(".jsonl", ".backup.jsonl"), WHOLE, 9);
    put(&dir, &pi(2), &"\0".repeat(5_000), 2);
    put(&dir, &pi(3), "", 3);
    let run = dir.tailor(&["doctor", "--json"]);
    assert_eq!(run.status, 2, "{}", run.stderr);
    let all = run.json();
    let empty: Vec<&str> = all
        .iter()
        .filter(|line| line["state"] == "empty")
        .map(|line| line["reason"].as_str().unwrap())
        .collect();
    assert!(empty.len() == 3 && empty[0].contains("another file has this id: ~/.pi/"), "{empty:?}");
    assert!(empty[1].starts_with("5,000 NUL bytes") && empty[2].starts_with("no bytes"), "{empty:?}");
    // What was begun just now has its first message still to come.
    let young = home();
    put(&young, &pi(1), &header, 0);
    File::options()
        .write(true)
        .open(young.home().join(pi(1)))
        .unwrap()
        .set_modified(SystemTime::now())
        .unwrap();
    assert_eq!(young.tailor(&["doctor"]).status, 0);
    #[cfg(feature = "stores")]
    {
        let damaged = format!("SQLite format 3\0{}", "X".repeat(9_000));
        put(&young, ".openclaw/agents/main/agent/openclaw-agent.sqlite", &damaged, 1);
        let run = young.tailor(&["doctor"]);
        assert!(run.status == 2 && run.text().contains("unreadable"), "{}", run.text());
        // An id is looked up in databases before the threads are prepared.
        let run = young.tailor(&["scan", PI_WHOLE]);
        assert!(run.status == 0, "{}", run.stderr);
    }
}

/// A call of pi's and its result, which go on after the whole session.
fn pi_result(text: &str) -> String {
    let record = |id: &str, parent: &str, message: serde_json::Value| {
        serde_json::json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-07-01T10:00:02.000Z", "message": message})
            .to_string()
            + "\n"
    };
    let call = serde_json::json!({"role": "assistant", "content": [{"type": "toolCall", "id": "t", "name": "ls", "arguments": {}}]});
    let result = serde_json::json!({"role": "toolResult", "toolCallId": "t", "toolName": "ls", "isError": false,
        "content": [{"type": "text", "text": text}]});
    record("c1", "a1", call) + &record("r1", "c1", result)
}

#[test]
fn what_the_provider_refused_is_explained() {
    let dir = Dir::new();
    let at = |n: u8| {
        format!(
            ".pi/agent/sessions/--w--/2026-07-01T10-00-00-000Z_0d0f6666-1a2b-4c3d-8e4f-5a6b7c8d9e{n:02}.jsonl"
        )
    };
    put(&dir, &at(1), &failed("400 `temperature` may only be set to 1 when thinking is enabled"), 1);
    let refused = failed("400 messages.1: something that nobody has seen yet")
        .replace("\"parentId\":\"a1\"", "\"parentId\":\"r1\"");
    put(
        &dir,
        &at(2),
        &refused.replacen(WHOLE, &(WHOLE.to_string() + &pi_result(&"a row\n".repeat(900))), 1),
        2,
    );
    put(&dir, &at(3), &failed("529 overloaded_error: Overloaded"), 3);
    put(&dir, &at(4), &failed("429 rate_limit_error"), 4);
    let found = sessions(&dir, &[]);
    assert_eq!(field(&found, "state"), ["ok", "refused", "ok", "ok"]);
    let command = found[1]["command"].as_str().unwrap();
    assert!(command.starts_with("tailor explain ~/.pi/"), "{command}");
    // What was sent then is no longer in the file: the answer says nothing of it any more.
    let fixed =
        dir.tailor(&["fix", "--settle", "0", "--cut-results", "20", "0d0f6666-1a2b-4c3d-8e4f-5a6b7c8d9e02"]);
    assert_eq!(fixed.status, 0, "{} {}", fixed.text(), fixed.stderr);
    assert_eq!(field(&sessions(&dir, &[]), "state"), ["ok"; 4]);
    assert_eq!(dir.tailor(&["undo", "--settle", "0", "0d0f6666-1a2b-4c3d-8e4f-5a6b7c8d9e02"]).status, 0);
    assert_eq!(field(&sessions(&dir, &[]), "state"), ["ok", "refused", "ok", "ok"]);
    let run = paste(&dir, command);
    assert!(run.stderr.contains("I don't recognise this error message"), "{} {}", run.text(), run.stderr);
    let run = dir.tailor(&["explain", "0d0f6666-1a2b-4c3d-8e4f-5a6b7c8d9e04"]);
    assert!(run.text().contains("The session has nothing to do with it"), "{}", run.text());
}

#[test]
fn an_error_that_nobody_knows_ends_with_what_is_stuck() {
    let dir = home();
    let run = dir.tailor(&["explain", "wibble", "wobble", "frobnicated"]);
    assert_eq!(run.status, 2);
    assert!(run.text().starts_with("Of 4 sessions here, these are stuck:"), "{}", run.text());
    assert!(run.text().contains("tailor fix --select P1 ~/.claude/"), "{}", run.text());
    // One word is a code with a slip.
    assert_eq!(dir.tailor(&["explain", "wibble"]).text(), "");
}

#[test]
fn the_id_in_an_error_is_the_session() {
    let dir = home();
    let id = |n: u8| format!("7e57aaaa-1a2b-4c3d-8e4f-5a6b7c8d9e{n:02}");
    let at = |n: u8| format!(".claude/projects/-w-shop/{}.jsonl", id(n));
    let whole = claude("/w");
    let (first, rest) = whole.split_once('\n').unwrap();
    put(&dir, &at(1), &format!("{}\n{rest}", &first[..60]), 9);
    put(&dir, &at(2), &"\0".repeat(99), 9);
    let run = dir.tailor(&["explain", "No", "conversation", "found", "with", "session", "ID:", &id(1)]);
    assert!(run.text().contains("To repair it, run: tailor fix"), "{}", run.text());
    for (n, said) in
        [(1, "To repair it, run: tailor fix"), (2, "99 NUL bytes"), (3, "No session here is called")]
    {
        let run = dir.tailor(&["explain", &format!("No conversation found with session ID: {}", id(n))]);
        assert!(run.text().contains(said), "{n}: {} {}", run.text(), run.stderr);
        assert!(!run.text().contains("Not found in this file"), "{}", run.text());
    }
}

#[test]
fn the_command_repairs_that_session_and_no_other() {
    let dir = home();
    let before = sessions(&dir, &[]);
    for n in [1, 2] {
        let command = before[n]["command"].as_str().unwrap();
        assert!(command.starts_with("tailor fix --select P1 ~/."), "{command}");
        assert_eq!(paste(&dir, command).status, 0);
    }
    assert_eq!(field(&sessions(&dir, &[]), "state").iter().filter(|state| **state == "broken").count(), 0);
    let recover = before[3]["command"].as_str().unwrap();
    assert!(recover.starts_with("tailor recover ~/.codex/"), "{recover}");
}

#[test]
fn nothing_is_changed_but_the_index() {
    let dir = home();
    let all = || {
        let mut names = Vec::new();
        list(&dir.home(), &dir.home(), &mut names);
        names.retain(|name| !name.starts_with(".cache/tailor/verdicts-"));
        names.sort();
        let text = |name: String| (fs::read(dir.home().join(&name)).unwrap(), name);
        names.into_iter().map(text).collect::<Vec<_>>()
    };
    let before = all();
    for arguments in [&["doctor"][..], &["ls"], &[], &["explain", "prompt is too long"]] {
        assert_eq!(dir.tailor(arguments).status, 0, "{arguments:?}");
    }
    assert!(before == all());
}

#[test]
fn alone_it_is_short_and_has_all_that_are_stuck() {
    let dir = home();
    for n in 0..20 {
        put(
            &dir,
            &format!(
                ".pi/agent/sessions/--w--/2026-07-02T10-00-00-000Z_{n:08}-0000-4000-8000-000000000000.jsonl"
            ),
            WHOLE,
            1,
        );
    }
    let run = dir.tailor::<&str>(&[]);
    let said = run.text();
    assert_eq!(run.status, 0);
    let rows = said
        .lines()
        .filter(|line| [" ok ", " broken: ", " too long "].iter().any(|state| line.contains(state)));
    assert_eq!(rows.filter(|line| !line.contains("sessions")).count(), 13, "{said}");
    assert!(said.contains("24 sessions: 2 broken, 1 too long, 21 ok."), "{said}");
    assert!(said.contains("tailor doctor") && said.contains("tailor recover ~/.codex/"), "{said}");
    // Without sessions, nothing is wrong.
    let run = Dir::new().tailor::<&str>(&[]);
    assert!(run.status == 0 && run.text().contains("No agent sessions found"), "{}", run.text());
}

/// Command names that users are likely to try first.
#[test]
fn other_names_of_commands_are_known() {
    let dir = home();
    for (name, other) in [("doctor", "ls"), ("scan", "check"), ("undo", "restore")] {
        let [one, two] = [name, other].map(|name| dir.tailor(&[name, "--help"]).text());
        assert!(
            !one.is_empty() && one == two.replace(&format!("tailor {other} "), &format!("tailor {name} ")),
            "{two}"
        );
    }
}

#[test]
fn a_session_that_grows_is_in_use() {
    let dir = home();
    let path = put(
        &dir,
        ".pi/agent/sessions/--w--/2026-07-03T10-00-00-000Z_aaaaaaaa-0000-4000-8000-000000000000.jsonl",
        WHOLE,
        0,
    );
    File::options().write(true).open(path).unwrap().set_modified(SystemTime::now()).unwrap();
    assert_eq!(field(&sessions(&dir, &[]), "state")[0], "in use");
}

#[test]
fn an_id_or_how_it_begins_names_a_session() {
    let dir = home();
    let run = dir.tailor(&["scan", &PI_BROKEN[..8], "--format", "json"]);
    assert_eq!(run.codes(), ["P1"]);
    let run = dir.tailor(&["fix", CLAUDE, "--dry-run"]);
    assert!(run.text().contains(CLAUDE) && run.text().contains("P1 "), "{}{}", run.text(), run.stderr);
    // Both of pi's ids begin with this.
    let run = dir.tailor(&["scan", "0d0f"]);
    assert!(
        run.status == 2 && run.stderr.contains("more than one session id starts with 0d0f"),
        "{}",
        run.stderr
    );
    let run = dir.tailor(&["scan", "feedface"]);
    assert!(
        run.status == 2 && run.stderr.contains("feedface: no file or session id of this name"),
        "{}",
        run.stderr
    );
    // A word is not the beginning of an id.
    put(&dir, ".gemini/tmp/w/chats/session-2026-07-01T10-00-0d0f7b2c.jsonl", "{}\n", 1);
    put(&dir, ".gemini/tmp/w/chats/session-2026-07-02T10-00-0d0f7b2d.jsonl", "{}\n", 1);
    let run = dir.tailor(&["scan", "session"]);
    assert!(run.status == 2 && !run.stderr.contains("more than one"), "{}", run.stderr);
    // A file with that name takes precedence.
    dir.write("7e57c1a0", WHOLE);
    assert_eq!(dir.tailor(&["scan", "7e57c1a0", "--format", "json"]).codes(), [""; 0]);
}

#[test]
fn an_error_finds_its_session() {
    let dir = home();
    let text =
        "API Error: 400 messages.1: `tool_use` ids were found without `tool_result` blocks immediately after";
    // The newest of two sessions with the same defect.
    let run = dir.tailor(&["explain", text]);
    let said = run.text();
    assert_eq!(run.status, 0);
    let command =
        format!("To repair it, run: tailor fix --select P1 ~/.claude/projects/-w-shop/{CLAUDE}.jsonl\n");
    for part in [
        "Claude Code \"fix the login form of the shop\", 3 h ago",
        "line 2: P1 ",
        &command,
        "Quit Claude Code",
        &format!("cd ~/shop && claude --resume {CLAUDE}"),
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    // The session that has the id, although it is older.
    put(
        &dir,
        &format!(".claude/projects/-w-shop/{}.jsonl", CLAUDE.replace("7e57", "7e58")),
        &claude("/w").replace("toolu_A", "toolu_B"),
        9,
    );
    let said = dir.tailor(&["explain", &format!("{text}: toolu_B")]).text();
    assert!(said.contains("/7e58c1a0") && said.contains("toolu_B is on line 2"), "{said}");
    // In a folder.
    let said = dir.tailor(&["explain", text, dir.home().join(".pi").to_str().unwrap()]).text();
    assert!(said.contains("pi \"go\"") && said.contains(PI_BROKEN), "{said}");
    // Says that no session has the defect, and gives general advice.
    let said = dir.tailor(&["explain", "messages: text content blocks must be non-empty"]).text();
    assert!(
        said.contains("None of 5 sessions here has this error") && said.contains("tailor fix FILE"),
        "{said}"
    );
}

/// After the repair, the same error still leads to the same session, and not to another one with such a defect.
#[test]
fn an_error_that_names_a_call_is_about_the_session_that_holds_it() {
    let dir = home();
    let text = |id: &str| {
        format!(
            "400 messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: {id}"
        )
    };
    put(
        &dir,
        &format!(".claude/projects/-w-shop/{}.jsonl", CLAUDE.replace("7e57", "7e58")),
        &claude("/w/gone").replace("toolu_A", "toolu_B"),
        9,
    );
    // A newer session in which a user asks about the error is not the one.
    let asked = claude("/w").replace("toolu_A", "toolu_C").replace("well?", "what is toolu_B?");
    put(&dir, &format!(".claude/projects/-w-shop/{}.jsonl", CLAUDE.replace("7e57", "7e59")), &asked, 1);
    let said = dir.tailor(&["explain", &text("toolu_B")]).text();
    let (_, command) = said.split_once("To repair it, run: ").unwrap();
    assert!(
        command.contains("/7e58c1a0") && said.contains("The call is in this session, of 6 sessions"),
        "{said}"
    );
    // The command must not change to a folder that does not exist.
    assert!(command.contains("go on with: claude --resume 7e58"), "{said}");
    assert_eq!(paste(&dir, command.lines().next().unwrap()).status, 0);
    let said = dir.tailor(&["explain", &text("toolu_B")]).text();
    for part in
        ["/7e58c1a0", "Tailor finds nothing wrong with it any more.\n", "Go on with: claude --resume 7e58"]
    {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert!(!said.contains("tailor fix"), "{said}");
    let said = dir.tailor(&["explain", &text("toolu_Z")]).text();
    assert!(said.contains("None of 6 sessions here holds toolu_Z.") && !said.contains(".jsonl"), "{said}");
}

/// That a session is too long is no proof that the user's error is about it.
#[test]
fn the_session_of_an_error_about_length_is_named_for_a_reason() {
    let dir = home();
    let path = format!(".codex/sessions/2026/07/01/rollout-2026-07-01T10-00-00-{CODEX}.jsonl");
    let larger = too_long().replace("234743", "272495").replace("200000", "272000");
    for (session, error, which) in [
        (
            &too_long(),
            "prompt is too long: 234743 tokens > 200000 maximum",
            "The newest session with this error",
        ),
        (&too_long(), "prompt is too long: 900000 tokens > 200000 maximum", "Most likely this session"),
        (&too_long(), "prompt is too long", "Most likely this session"),
        (&larger, "prompt is too long: 250000 tokens > 200000 maximum", "Most likely this session"),
    ] {
        put(&dir, &path, session, 4);
        let said = dir.tailor(&["explain", error]).text();
        assert!(said.contains(&format!("{which}, of 4 sessions: Codex")), "{error}: {said}");
    }
}

/// Of two sessions that nearly fill their windows, the error's window decides, even for the older session.
#[test]
fn the_numbers_of_an_error_decide_between_sessions() {
    let dir = home();
    let rollout = |id: &str| format!(".codex/sessions/2026/07/01/rollout-2026-07-01T10-00-00-{id}.jsonl");
    let other = "c0dec0de-0000-4c3d-8e4f-5a6b7c8d9e0f";
    put(&dir, &rollout(CODEX), &crate::support::codex_session(185_000, 200_000), 4);
    put(&dir, &rollout(other), &crate::support::codex_session(280_000, 300_000), 3);
    let said = dir.tailor(&["explain", "prompt is too long: 211884 tokens > 200000 maximum"]).text();
    assert!(said.contains("Most likely this session") && said.contains(CODEX), "{said}");
    let said = dir.tailor(&["explain", "prompt is too long"]).text();
    assert!(said.contains(other), "{said}");
}

/// A proposed command works in every folder.
#[test]
fn a_command_does_not_depend_on_where_it_was_asked_for() {
    let dir = home();
    let list = run(dir.command().args(["doctor", "--json"]).current_dir(dir.home()), b"");
    let command = list.json()[1]["command"].as_str().unwrap().to_string();
    assert_eq!(command, format!("tailor fix --select P1 ~/.claude/projects/-w-shop/{CLAUDE}.jsonl"));
    assert_eq!(paste(&dir, &command).status, 0);
}

#[test]
fn an_error_about_length_leads_to_recover() {
    let dir = home();
    let said = dir.tailor(&["explain", "prompt is too long: 234743 tokens > 200000 maximum"]).text();
    for part in [
        "Codex \"list files\"",
        "context: 234,743 of 200,000 tokens (117%)",
        "To make it fit, run: tailor recover ~/.codex/",
        &format!("codex resume {CODEX}"),
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert!(!said.contains("tailor fix"), "{said}");
    // If no context is over its window, one that nearly fills it is likely meant, and the command passes the error on.
    let nearly = too_long().replace("234743", "184743").replace("234000", "184000");
    put(&dir, &format!(".codex/sessions/2026/07/01/rollout-2026-07-01T10-00-00-{CODEX}.jsonl"), &nearly, 4);
    let said = dir.tailor(&["explain", "prompt is too long"]).text();
    for part in
        ["Most likely this session, of 4 sessions: Codex", "tailor recover --error 'prompt is too long' ~/"]
    {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

#[test]
fn an_error_that_is_not_about_the_session_says_so() {
    let dir = home();
    for text in ["529 overloaded_error: Overloaded", "Your credit balance is too low to access the API"] {
        let run = dir.tailor(&["explain", text]);
        let said = run.text();
        assert!(run.status == 0 && said.contains("The session has nothing to do with it."), "{said}");
        assert!(!said.contains("tailor fix") && !said.contains("jsonl"), "{said}");
    }
}

/// An agent that records how it was started.
fn fake(dir: &Dir, name: &str) -> PathBuf {
    let folder = dir.home().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join(name);
    fs::write(&program, "#!/bin/sh\necho \"$0 $* in $(pwd)\" > \"$HOME/started\"\nexit 7\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn resume_repairs_and_starts_the_agent() {
    let dir = home();
    let path = format!("{}:/usr/bin:/bin", fake(&dir, "claude").display());
    let resume =
        |arguments: &[&str]| run(dir.command().arg("resume").args(arguments).env("PATH", &path), b"");
    let done = resume(&["claude"]);
    // The exit code is the agent's.
    assert_eq!(done.status, 7, "{}", done.stderr);
    assert!(done.stderr.contains(". Undo: tailor undo ~/.claude/"), "{}", done.stderr);
    let started = fs::read_to_string(dir.home().join("started")).unwrap();
    assert!(
        started.contains(&format!("claude --resume {CLAUDE} in ")) && started.trim_end().ends_with("/shop"),
        "{started}"
    );
    assert_eq!(field(&sessions(&dir, &["--agent", "claude"]), "state"), ["ok"]);
    // By id, and without starting the agent.
    let said = dir.tailor(&["resume", "pi", &PI_BROKEN[..8], "--no-start"]);
    assert_eq!((said.status, said.text()), (0, format!("pi --session {PI_BROKEN}\n")));
    for (arguments, part) in [
        (
            &["nobody"][..],
            "nobody: neither a session's id nor an agent that Tailor can resume; there are pi, Claude Code",
        ),
        (&["nobody", PI_BROKEN], "neither a session's id nor an agent"),
        (&["0d0f"], "more than one session"),
        (&["qwen"], "has no session here"),
        (&["pi", "0d0f"], "more than one session"),
        (&["pi", "beef"], "has no session with the id beef"),
    ] {
        let done = resume(arguments);
        assert!(done.status == 2 && done.stderr.contains(part), "{arguments:?}: {}", done.stderr);
    }
}

#[test]
fn resume_prefers_the_project_around_it_and_finds_the_agent_of_an_id() {
    let dir = home();
    let said = dir.tailor(&["resume", &PI_BROKEN[..8], "--no-start"]);
    assert_eq!((said.status, said.text()), (0, format!("pi --session {PI_BROKEN}\n")), "{}", said.stderr);
    // An older session of the folder where one is, or of one around it, comes before the newest.
    let old = "01d01d01-1a2b-4c3d-8e4f-5a6b7c8d9e0f";
    let here = dir.home().join("old/project");
    fs::create_dir_all(here.join("src")).unwrap();
    let text = claude(here.to_str().unwrap()).replace(CLAUDE, old);
    put(&dir, &format!(".claude/projects/-w-old/{old}.jsonl"), &text, 90);
    let of_home = "02d02d02-1a2b-4c3d-8e4f-5a6b7c8d9e0f";
    let text = claude(dir.home().to_str().unwrap()).replace(CLAUDE, of_home);
    put(&dir, &format!(".claude/projects/-w-home/{of_home}.jsonl"), &text, 80);
    let resume = |folder: PathBuf| {
        let mut command = dir.command();
        let done = run(command.current_dir(folder).args(["resume", "claude", "--no-start"]), b"");
        assert_eq!(done.status, 0, "{}", done.stderr);
        done.text() + &done.stderr
    };
    for folder in [here.clone(), here.join("src")] {
        let said = resume(folder);
        assert!(said.contains(&format!("claude --resume {old}")), "{said}");
        assert!(said.contains("Claude Code in "), "{said}");
    }
    let said = resume(dir.home().join("old"));
    assert!(said.contains(CLAUDE) && said.contains("Claude Code in ~/shop, "), "{said}");
    // The home folder is around everything.
    assert!(resume(dir.home()).contains(of_home));
}

#[test]
fn what_no_agent_loads_is_counted_and_the_command_frees_as_much() {
    let dir = home();
    let message = |id: &str, parent: &str, role: &str, words: usize| {
        let text = "word ".repeat(words);
        let end = if role == "user" { "" } else { ",\"stopReason\":\"stop\"" };
        format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":\"{parent}\",\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"message\":{{\"role\":\
             \"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]{end}}}}}\n"
        )
    };
    let rows = [
        WHOLE.to_string(),
        message("b1", "a1", "assistant", 1),
        message("left", "b1", "user", 300_000),
        message("left2", "left", "assistant", 3),
        message("c1", "b1", "user", 3),
        message("c2", "c1", "assistant", 3),
    ];
    let path = put(&dir, ".pi/agent/sessions/--w--/2026-07-01T10-00-00-000Z_dead.jsonl", &rows.concat(), 9);
    let told = dir.tailor(&["doctor", "--json"]).json().pop().unwrap();
    let before = fs::metadata(&path).unwrap().len();
    let said = dir.tailor(&["doctor"]).text();
    assert!(
        said.contains(" is history that no agent loads any more:\n      tailor fix --only dead-weight\n"),
        "{said}"
    );
    assert_eq!(said.lines().filter(|line| line.contains("1.5 MB of 1.5 MB")).count(), 1, "{said}");
    let below = dir.tailor(&["doctor", path.to_str().unwrap()]).text();
    assert!(below.contains("tailor fix --only dead-weight ~/.pi/"), "{below}");
    assert!(!dir.tailor(&["doctor", "--agent", "claude"]).text().contains("dead-weight"));
    let done = dir.tailor(&["fix", "--only", "dead-weight", path.to_str().unwrap()]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let saved = before - fs::metadata(&path).unwrap().len();
    assert_eq!(told["dead_weight_bytes"], saved, "{}", done.text());
}

#[test]
fn a_session_in_use_is_not_resumed() {
    let dir = home();
    let path = dir.home().join(format!(".claude/projects/-w-shop/{CLAUDE}.jsonl"));
    File::options().write(true).open(&path).unwrap().set_modified(SystemTime::now()).unwrap();
    let programs = format!("{}:/usr/bin:/bin", fake(&dir, "claude").display());
    let done = run(dir.command().args(["resume", "claude"]).env("PATH", programs), b"");
    assert!(done.status == 1 && done.stderr.contains("not repaired"), "{}", done.stderr);
    assert!(!dir.home().join("started").exists());
}

/// A pi session whose estimate is above what the API counts, and whose last request was refused.
fn refused(dir: &Dir, hours: u64) -> PathBuf {
    const ID: &str = "0d0f7b2c-9999-4c3d-8e4f-5a6b7c8d9e0f";
    let time = "\"timestamp\":\"2026-07-01T10:00:00.000Z\"";
    let mut text = format!("{{\"type\":\"session\",\"version\":3,\"id\":\"{ID}\",{time},\"cwd\":\"/w\"}}\n");
    let mut last = "null".to_string();
    let mut say = |id: String, message: String| {
        let line = format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{last},{time},\"message\":{message}}}\n"
        );
        text.push_str(&line);
        last = format!("\"{id}\"");
    };
    for n in 0..100 {
        let asked = format!("question {n} {}", "a row of the log. ".repeat(700));
        say(format!("{n:04x}0000"), format!("{{\"role\":\"user\",\"content\":\"{asked}\"}}"));
        let answer = format!("[{{\"type\":\"text\",\"text\":\"answer {n}\"}}]");
        say(
            format!("{n:04x}0001"),
            format!("{{\"role\":\"assistant\",\"content\":{answer},\"stopReason\":\"stop\"}}"),
        );
    }
    say(
        "ffff0000".to_string(),
        format!(
            "{{\"role\":\"assistant\",\"content\":[],\"stopReason\":\"error\",\"errorMessage\":\"{REFUSED}\"}}"
        ),
    );
    put(dir, &format!(".pi/agent/sessions/--w--/2026-07-01T10-00-00-000Z_{ID}.jsonl"), &text, hours)
}

const REFUSED: &str = "prompt is too long: 250000 tokens > 200000 maximum";

#[test]
fn what_was_recovered_is_no_longer_too_long() {
    let dir = Dir::new();
    let path = refused(&dir, 1);
    let path = path.to_str().unwrap();
    let before = sessions(&dir, &[path]);
    assert_eq!(field(&before, "state"), ["too long"], "{before:?}");
    let done = dir.tailor(&["recover", path, "--settle", "0"]);
    assert_eq!(done.status, 0, "{}{}", done.text(), done.stderr);
    assert!(done.text().contains("recovered: 250,000 → "), "{}", done.text());
    let now = sessions(&dir, &[path]);
    assert_eq!(field(&now, "state"), ["ok"], "{now:?}");
    // The message has the number that other commands print.
    let tokens = grouped(now[0]["tokens"].as_u64().unwrap());
    assert!(done.text().contains(&tokens), "{tokens} is not in {}", done.text());
    assert!(done.text().contains("Undo: tailor undo "), "{}", done.text());
    assert!(done.text().contains("Resume: pi --session 0d0f7b2c-9999-"), "{}", done.text());
    let text = fs::read_to_string(path).unwrap();
    for error in [None, Some(REFUSED), Some("400 prompt is too long: 250000 tokens > 200000 maximum")] {
        let mut words = vec!["recover", path, "--settle", "0"];
        words.extend(error.iter().flat_map(|error| ["--error", error]));
        let again = dir.tailor(&words);
        assert_eq!(again.status, 0, "{}", again.text());
        assert!(
            again.text().contains("not too long: ") && again.text().contains(&tokens),
            "{}",
            again.text()
        );
        assert!(again.stderr.contains("older than the last recovery"), "{}", again.stderr);
    }
    assert_eq!(fs::read_to_string(path).unwrap(), text);
    let said = dir.tailor(&["explain", REFUSED]).text();
    assert!(said.contains("shortened since") && said.contains("pi --session 0d0f7b2c-9999-"), "{said}");
    assert!(!said.contains("tailor recover"), "{said}");
    // Undo restores it.
    assert_eq!(dir.tailor(&["undo", path, "--settle", "0"]).status, 0);
    assert_eq!(field(&sessions(&dir, &[path]), "state"), ["too long"]);
}

fn grouped(number: u64) -> String {
    format!("{},{:03}", number / 1_000, number % 1_000)
}

#[test]
fn resume_recovers_what_is_too_long() {
    let dir = Dir::new();
    let path = refused(&dir, 1);
    let said = dir.tailor(&["resume", "pi", "--no-start"]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    assert!(said.stderr.contains("recovered: 250,000 → "), "{}", said.stderr);
    assert_eq!(field(&sessions(&dir, &[path.to_str().unwrap()]), "state"), ["ok"]);
}

/// A session that cannot reach the target, but fits its window.
#[test]
fn resume_starts_what_fits_and_recover_calls_it_not_too_long() {
    let dir = Dir::new();
    let rollout = format!(".codex/sessions/2026/07/01/rollout-2026-07-01T10-00-00-{CODEX}.jsonl");
    let session = crate::support::codex_session(205_000, 200_000);
    let (talk, count) = session.trim_end().rsplit_once('\n').unwrap();
    let said = talk.lines().last().unwrap();
    // Only one of the messages is longer than messages may be.
    let short = said.replace("words", &"an answer. ".repeat(130));
    let long = said.replace("words", &"an answer. ".repeat(6_000));
    let text = [talk, &long, &vec![&short[..]; 400].join("\n"), count, ""].join("\n");
    put(&dir, &rollout, &text, 4);
    let said = dir.tailor(&["resume", "codex", "--no-start"]);
    assert!(said.stderr.contains("still over the target"), "{}", said.stderr);
    assert_eq!((said.status, said.text().contains("codex resume ")), (0, true), "{}", said.stderr);
    let again = run(dir.command().args(["recover", &rollout]).current_dir(dir.home()), b"");
    assert!(again.status == 0 && again.text().contains("not too long: "), "{}{}", again.text(), again.stderr);
}

#[test]
fn resume_says_what_it_repaired_and_that_an_agent_is_not_there() {
    let dir = home();
    let empty = dir.home().join("empty");
    fs::create_dir(&empty).unwrap();
    let done = run(dir.command().args(["resume", "claude"]).env("PATH", &empty), b"");
    assert_eq!(done.status, 2, "{}", done.stderr);
    assert!(done.stderr.contains("repaired 1 problem (P1 "), "{}", done.stderr);
    let command = format!("&& claude --resume {CLAUDE}");
    assert!(done.stderr.contains("claude is not in PATH; run it yourself: cd "), "{}", done.stderr);
    assert!(done.stderr.contains(&command), "{}", done.stderr);
}

/// `tests/screens/` holds what terminals show; `UPDATE=1` rewrites it.
#[test]
fn the_list_fits_the_terminal() {
    let mut wrong = Vec::new();
    for columns in [80, 120] {
        for (colour, settings) in [("plain", Some("1")), ("colour", None)] {
            let dir = home();
            let mut command = dir.command();
            command.arg("doctor").env("TERM", "xterm").envs(settings.map(|set| ("NO_COLOR", set)));
            let seen = on_terminal(columns, command).replace('\u{1b}', "␛");
            let path = root().join(format!("tests/screens/doctor-{columns}-{colour}.txt"));
            wrong.extend(differs(&path, &seen));
            // Commands are not wrapped, so that they can be pasted.
            let rows = seen.lines().filter(|line| colour == "plain" && !line.contains("tailor "));
            assert!(rows.into_iter().all(|line| line.chars().count() <= usize::from(columns)), "{seen}");
        }
    }
    assert!(wrong.is_empty(), "other than expected:\n{}", wrong.join("\n"));
}
