//! What agents reveal about being at work, and that `tailor fix` obeys it.

use crate::support::{BROKEN, Dir, FinishedRun, WHOLE, give_to_powerless, run, skipped};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, SystemTime};

/// A process that lives until the test ends.
pub(crate) struct Living(Child);

impl Living {
    pub(crate) fn new() -> Self {
        Self::within(Path::new("/"))
    }

    /// A process whose current folder is this one.
    pub(crate) fn within(folder: &Path) -> Self {
        Self(Command::new("sleep").arg("600").current_dir(folder).spawn().unwrap())
    }

    /// How Claude Code would register this process for the session [`claude`].
    pub(crate) fn registered(&self) -> (String, String) {
        let (pid, start) = (self.0.id(), self.start());
        let entry = json!({"pid": pid, "sessionId": "5e", "procStart": start, "status": "idle"});
        (format!("{pid}.json"), entry.to_string())
    }

    /// Its start time, as written in locks.
    fn start(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap()
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The id of a process that has ended.
fn dead() -> u32 {
    let living = Living::new();
    living.0.id()
}

/// Fixes a file, after a dry run that must leave no trace and predict the outcome.
#[track_caller]
fn fix(dir: &Dir, name: &str, arguments: &[&str]) -> FinishedRun {
    let fix = [&["fix", "--format", "json", name], arguments].concat();
    let before = dir.names();
    let dry = dir.tailor(&[&fix[..], &["--dry-run"]].concat()).file();
    assert_eq!(dir.names(), before);
    let run = dir.tailor(&fix);
    let told = |file: &Value| (file["outcome"].clone(), file["retry_seconds"].is_null());
    let (dry, real) = (told(&dry), told(&run.file()));
    assert_eq!((if dry.0 == "would-fix" { "fixed".into() } else { dry.0 }, dry.1), real);
    run
}

#[track_caller]
fn assert_deferred(run: &FinishedRun, reason: &str, path: &Path, before: &str) {
    let file = run.file();
    assert_eq!((run.status, &file["outcome"]), (1, &"deferred".into()), "{file}");
    let said = file["reason"].as_str().unwrap();
    assert!(said.contains(reason) && said.contains("; retry in "), "{said}");
    assert_eq!(fs::read_to_string(path).unwrap(), before);
}

#[track_caller]
fn assert_fixed(run: &FinishedRun, path: &Path, before: &str) {
    assert_eq!(run.file()["outcome"], "fixed", "{}", run.file());
    assert_ne!(fs::read_to_string(path).unwrap(), before);
}

/// Sets the time of the last write to so many seconds ago.
fn age(path: &Path, seconds: u64) {
    let then = SystemTime::now() - Duration::from_secs(seconds);
    File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

const SESSION: &str = "agents/main/sessions/s.jsonl";
const LOCK: &str = "agents/main/sessions/s.jsonl.lock";

fn lock(pid: u32, start: u64) -> Value {
    json!({"pid": pid, "createdAt": "2026-02-16T11:44:00.000Z", "maxHoldMs": 720_000, "starttime": start})
}

#[test]
fn a_lock_of_openclaws_that_is_held_defers() {
    let dir = Dir::new();
    let living = Living::new();
    let path = dir.write(SESSION, BROKEN);
    dir.write(LOCK, lock(living.0.id(), living.start()).to_string());
    let reason = format!("process {} has held OpenClaw's write lock for ", living.0.id());
    // A lock overrides what the user says about running agents.
    for settle in ["5", "0"] {
        assert_deferred(&fix(&dir, SESSION, &["--settle", settle]), &reason, &path, BROKEN);
    }
    assert_eq!(dir.names(), [SESSION, LOCK]);
    drop(living);
    assert_fixed(&fix(&dir, SESSION, &[]), &path, BROKEN);
    assert_eq!(dir.names(), [SESSION]);
}

#[test]
fn a_lock_of_openclaws_that_was_left_behind_is_removed() {
    let dir = Dir::new();
    let living = Living::new();
    for left in [lock(dead(), 1).to_string(), lock(living.0.id(), 1).to_string(), "{".into(), String::new()] {
        let path = dir.write(SESSION, BROKEN);
        dir.write(LOCK, &left);
        assert_fixed(&fix(&dir, SESSION, &[]), &path, BROKEN);
        assert_eq!(dir.names(), [SESSION], "{left}");
    }
}

/// From inside a container, outside processes are invisible, but that does not mean they are dead.
#[test]
fn a_lock_from_outside_of_our_container_holds_until_its_time_is_over() {
    let container = ["--map-root-user", "--fork", "--pid", "--mount-proc"];
    let inside = |dir: &Dir, program: &str, arguments: &[&str]| {
        run(dir.command_of("unshare").args(container).arg(program).args(arguments), b"")
    };
    let dir = Dir::new();
    let can = dir.command_of("unshare").args(container).arg("true").output();
    if !can.is_ok_and(|output| output.status.success()) {
        skipped("no pid namespace can be had here, so that nothing was run in a container");
        return;
    }
    let living = Living::new();
    let path = dir.write(SESSION, BROKEN);
    let mut held = lock(living.0.id(), living.start());
    held["createdAt"] = jiff::Timestamp::now().to_string().into();
    let lock = dir.write(LOCK, held.to_string());
    let fix = ["fix", "--format", "json", SESSION];
    let run = inside(&dir, env!("CARGO_BIN_EXE_tailor"), &fix);
    assert_deferred(&run, "counts as stale after 12 min", &path, BROKEN);
    assert_eq!(fs::read_to_string(&lock).unwrap(), held.to_string());
    held["createdAt"] = "2026-02-16T11:44:00.000Z".into();
    dir.write(LOCK, held.to_string());
    assert_fixed(&inside(&dir, env!("CARGO_BIN_EXE_tailor"), &fix), &path, BROKEN);
}

#[test]
fn a_lock_that_may_be_in_the_making_defers() {
    let dir = Dir::new();
    let path = dir.write(SESSION, BROKEN);
    let lock = dir.write(LOCK, "");
    age(&lock, 10);
    assert_deferred(&fix(&dir, SESSION, &["--settle", "0"]), "counts as stale after 30 s", &path, BROKEN);
    assert!(lock.exists());
}

#[test]
fn what_needs_no_mending_asks_nobody() {
    let dir = Dir::new();
    dir.write(SESSION, WHOLE);
    let lock = dir.write(LOCK, lock(dead(), 1).to_string());
    assert_eq!(fix(&dir, SESSION, &[]).file()["outcome"], "clean");
    assert!(lock.exists());
}

#[test]
fn a_run_in_progress_defers_for_ten_minutes() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    age(&path, 60);
    assert_deferred(
        &fix(&dir, "s.jsonl", &[]),
        "a turn is in progress: the model has not answered",
        &path,
        BROKEN,
    );
    // A tool call is open, and an earlier call lacks its result.
    let call = r#"{"type":"message","id":"a4","parentId":"a3","message":{"role":"assistant","content":[{"type":"toolCall","id":"d","name":"bash","arguments":{}}],"stopReason":"toolUse"}}"#;
    let text = format!("{BROKEN}{call}\n");
    dir.write("s.jsonl", &text);
    age(&path, 60);
    let run = fix(&dir, "s.jsonl", &[]);
    assert_deferred(&run, "a turn is in progress: a tool call has no result yet", &path, &text);
    assert!(run.file()["reason"].as_str().unwrap().contains("--settle 0"));
    assert_fixed(&fix(&dir, "s.jsonl", &["--settle", "0"]), &path, &text);
    dir.write("s.jsonl", &text);
    age(&path, 601);
    assert_fixed(&fix(&dir, "s.jsonl", &[]), &path, &text);
}

#[test]
fn a_run_that_ended_is_not_waited_for() {
    let dir = Dir::new();
    let said = r#"{"type":"message","id":"a4","parentId":"a3","message":{"role":"assistant","content":[],"stopReason":"stop"}}"#;
    let text = format!("{BROKEN}{said}\n");
    let path = dir.write("s.jsonl", &text);
    age(&path, 60);
    assert_fixed(&fix(&dir, "s.jsonl", &[]), &path, &text);
}

/// A Claude Code session in which the result of a call is lost.
pub(crate) fn claude() -> String {
    let line = |kind: &str, id: &str, parent: &str, message: &str| {
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"type":"{kind}","message":{message},"uuid":"{id}","sessionId":"5e"}}"#
        ) + "\n"
    };
    let call =
        r#"{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}"#;
    let asked = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#);
    [
        line("user", "u1", "null", &asked("go")),
        line("assistant", "u2", r#""u1""#, call),
        line("user", "u3", r#""u2""#, &asked("well?")),
    ]
    .concat()
}

#[test]
fn a_session_that_a_live_claude_code_has_open_defers() {
    let dir = Dir::new();
    let living = Living::new();
    let name = ".claude/projects/-w/5e.jsonl";
    let path = dir.write(name, claude());
    let register = |start: u64| {
        let entry = json!({"pid": living.0.id(), "sessionId": "5e", "procStart": start, "status": "idle"});
        dir.write(format!(".claude/sessions/{}.json", living.0.id()), entry.to_string());
    };
    register(living.start());
    let reason = format!("Claude Code is using it (process {}, idle); quit Claude Code first", living.0.id());
    assert_deferred(&fix(&dir, name, &["--settle", "0"]), &reason, &path, &claude());
    // The process id was reused.
    register(1);
    assert_fixed(&fix(&dir, name, &[]), &path, &claude());
}

#[test]
fn a_deferral_says_in_json_when_to_try_again() {
    let dir = Dir::new();
    let living = Living::new();
    let name = ".claude/projects/-w/5e.jsonl";
    dir.write(name, claude());
    let entry = json!({"pid": living.0.id(), "sessionId": "5e", "procStart": living.start()});
    let register = dir.write(".claude/sessions/1.json", entry.to_string());
    let retry = |settle: &str| fix(&dir, name, &["--settle", settle]).file()["retry_seconds"].clone();
    // A deferral until a process ends is retried after a minute.
    assert_eq!(retry("5"), 60);
    // If only time is needed, the deferral names the remaining time.
    age(&dir.path(name), 600);
    let rest = retry("3600").as_u64().unwrap();
    assert!((1..=3000).contains(&rest), "{rest}");
    let much = retry("86400").as_u64().unwrap();
    assert!((3001..=85_800).contains(&much), "{much}");
    fs::remove_file(register).unwrap();
    assert_eq!(retry("0"), Value::Null, "it was mended");
}

/// The transcripts may be in another place, behind a link.
#[test]
fn the_register_of_the_users_own_claude_code_is_found_behind_a_link() {
    let dir = Dir::new();
    let living = Living::new();
    let path = dir.write("store/-w/5e.jsonl", claude());
    let entry = json!({"pid": living.0.id(), "sessionId": "5e", "procStart": living.start()}).to_string();
    let config = dir.home().join("config");
    for root in [dir.home().join(".claude"), config.clone()] {
        fs::create_dir_all(root.join("sessions")).unwrap();
        fs::write(root.join("sessions/1.json"), &entry).unwrap();
        let mut command = dir.command();
        if root == config {
            command.env("CLAUDE_CONFIG_DIR", &config);
        }
        command.args(["fix", "--format", "json", "store/-w/5e.jsonl"]);
        assert_deferred(&run(&mut command, b""), "Claude Code is using it", &path, &claude());
        fs::remove_dir_all(root).unwrap();
    }
    assert_fixed(&fix(&dir, "store/-w/5e.jsonl", &[]), &path, &claude());
}

#[test]
fn a_file_in_an_openclaw_folder_leaves_nothing_behind() {
    let dir = Dir::new();
    let path = dir.write(SESSION, BROKEN);
    assert_fixed(&fix(&dir, SESSION, &[]), &path, BROKEN);
    assert_eq!(dir.names(), [SESSION]);
}

/// A pi session of a given model in this folder: a result that is too long, a side copy of one, and, if `broken`, a
/// result without a call.
pub(crate) fn remembered(folder: &Path, model: &str, broken: bool) -> String {
    let (long, side) = ("x".repeat(40_000), "y".repeat(9_000));
    let call = json!({"type": "toolCall", "id": "toolu_1", "name": "bash", "arguments": {}});
    let said = json!([{"type": "text", "text": "Done."}]);
    let result = |id: &str, text: &str, details: &str| {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": [{"type": "text", "text": text}],
               "details": {"full": details}, "isError": false})
    };
    let by = |content: &Value, stop: &str| json!({"role": "assistant", "content": content, "model": model, "stopReason": stop});
    let mut messages = vec![
        json!({"role": "user", "content": "go"}),
        by(&json!([call]), "toolUse"),
        result("toolu_1", &long, &side),
        by(&said, "stop"),
    ];
    if broken {
        messages.splice(1..1, [result("toolu_0", "whose?", "")]);
    }
    let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-07-01T10:00:00.000Z", "cwd": folder});
    let mut lines = vec![header];
    for message in messages {
        lines.push(line_of_pi(lines.len(), &message));
    }
    in_lines(&lines)
}

fn in_lines(records: &[Value]) -> String {
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

/// The line with this number, from 1.
fn line_of_pi(number: usize, message: &Value) -> Value {
    let parent = if number > 1 { Value::from(format!("e{}", number - 1)) } else { Value::Null };
    json!({"type": "message", "id": format!("e{number}"), "parentId": parent, "message": message})
}

/// The codes of the findings, each with what happens to it.
fn fixes(run: &FinishedRun) -> Vec<(String, String)> {
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_string();
    let file = run.file();
    let findings = file["findings"].as_array().unwrap();
    findings.iter().map(|finding| (text(finding, "code"), text(finding, "fix"))).collect()
}

#[test]
fn what_an_agent_may_remember_waits_and_the_rest_does_not() {
    let dir = Dir::new();
    let work = dir.home().join("work");
    fs::create_dir(&work).unwrap();
    let agent = Living::within(&work);
    let text = remembered(&work, "claude-opus-5-5", true);
    let path = dir.write("s.jsonl", &text);
    let waits = format!("process {} (sleep) may hold the session in memory", agent.0.id());
    // The error for which the API refuses the session, and what the model never sees.
    assert_fixed(&fix(&dir, "s.jsonl", &[]), &path, &text);
    let rest = fs::read_to_string(&path).unwrap();
    assert!(
        !rest.contains("whose?") && !rest.contains(&"y".repeat(9_000)) && rest.contains(&"x".repeat(40_000))
    );
    let run = fix(&dir, "s.jsonl", &[]);
    assert_deferred(&run, &waits, &path, &rest);
    assert_eq!(fixes(&run), [("S1".to_string(), "held".to_string())]);
    let dry = dir.tailor(&["fix", "--format", "json", "--dry-run", "s.jsonl"]);
    assert_deferred(&dry, &waits, &path, &rest);
    // If the user says that no agent is running, it happens at once.
    assert_fixed(&fix(&dir, "s.jsonl", &["--settle", "0"]), &path, &rest);
    // `undo` is also held back, because the model would see the text again.
    let cut = fs::read_to_string(&path).unwrap();
    let undo = |more: &[&str]| dir.tailor(&[&["undo", "--format", "json", "s.jsonl"], more].concat());
    assert_deferred(&undo(&[]), &waits, &path, &cut);
    assert_deferred(&undo(&["--dry-run"]), &waits, &path, &cut);
    drop(agent);
    // If some processes are invisible, one of them may still remember the session.
    let settled = ["--config", "c.toml"];
    dir.write("c.toml", "memory_settle = 0");
    assert_eq!(undo(&settled).file()["outcome"], "undone");
    assert_eq!(fs::read_to_string(&path).unwrap(), rest);
    assert_fixed(&fix(&dir, "s.jsonl", &settled), &path, &rest);
}

#[test]
fn a_session_waits_only_for_an_agent_that_remembers_and_a_model_that_binds() {
    let dir = Dir::new();
    let _agent = Living::within(&dir.files());
    for (model, config) in [("claude-opus-4-1", ""), ("claude-opus-5-5", "[agents.pi]\nreloads = true")] {
        let text = remembered(&dir.files(), model, false);
        let path = dir.write("s.jsonl", &text);
        dir.write("c.toml", config);
        assert_fixed(&fix(&dir, "s.jsonl", &["--config", "c.toml"]), &path, &text);
    }
}

#[test]
fn an_agent_that_cannot_be_seen_is_waited_for_until_it_has_been_quiet_for_long() {
    let dir = Dir::new();
    // The session's folder is in a container or on another machine.
    let text = remembered(Path::new("/not/here"), "claude-opus-5-5", false);
    let path = dir.write("s.jsonl", &text);
    age(&path, 3_600);
    let file = fix(&dir, "s.jsonl", &[]).file();
    assert_eq!(file["outcome"], "fixed", "what no model sees: {file}");
    let rest = fs::read_to_string(&path).unwrap();
    assert_deferred(&fix(&dir, "s.jsonl", &[]), "waiting for 24 h", &path, &rest);
    age(&path, 25 * 3_600);
    assert_fixed(&fix(&dir, "s.jsonl", &[]), &path, &rest);
}

#[test]
fn what_the_model_has_signed_over_is_not_put_back() {
    let dir = Dir::new();
    let text = remembered(Path::new("/not/here"), "claude-opus-5-5", false);
    let path = dir.write("s.jsonl", &text);
    assert_fixed(&fix(&dir, "s.jsonl", &["--settle", "0"]), &path, &text);
    let signed = json!([{"type": "thinking", "thinking": "Hm.", "thinkingSignature": "c2lnbmVkLTE="},
                        {"type": "text", "text": "Yes."}]);
    let model =
        json!({"role": "assistant", "content": signed, "model": "claude-opus-5-5", "stopReason": "stop"});
    let more = [line_of_pi(5, &json!({"role": "user", "content": "well?"})), line_of_pi(6, &model)];
    let more = in_lines(&more);
    let cut = fs::read_to_string(&path).unwrap();
    dir.write("s.jsonl", cut.clone() + &more);
    let undo = |more: &[&str]| {
        dir.tailor(&[&["undo", "--format", "json", "--settle", "0", "s.jsonl"], more].concat()).file()
    };
    let refused = undo(&[]);
    assert_eq!(refused["outcome"], "refused", "{refused}");
    let run = refused["reason"].as_str().unwrap().split("--run ").nth(1).unwrap().split(';').next().unwrap();
    // The solution that the message names.
    fix(&dir, "s.jsonl", &["--settle", "0", "--thinking", "strip"]);
    assert_eq!(undo(&["--run", run])["outcome"], "undone");
    let whole = fs::read_to_string(&path).unwrap();
    assert!(whole.starts_with(&text) && whole.contains("Yes.") && !whole.contains("c2lnbmVkLTE="));
}

#[test]
fn what_the_model_has_signed_over_is_put_back_all_the_same_if_asked_for_or_if_it_was_refused() {
    let signed = json!([{"type": "thinking", "thinking": "Hm.", "thinkingSignature": "c2lnbmVkLTE="},
                        {"type": "text", "text": "Yes."}]);
    let model =
        json!({"role": "assistant", "content": signed, "model": "claude-opus-5-5", "stopReason": "stop"});
    let error = json!({"role": "assistant", "content": [], "model": "claude-opus-5-5", "stopReason": "error",
                       "errorMessage": "400 Invalid `signature` in `thinking` block"});
    let asked = json!({"role": "user", "content": "well?"});
    for (messages, arguments) in
        [(vec![&asked, &model], &["--ignore-thinking"][..]), (vec![&asked, &model, &asked, &error], &[])]
    {
        let dir = Dir::new();
        let text = remembered(Path::new("/not/here"), "claude-opus-5-5", false);
        let path = dir.write("s.jsonl", &text);
        assert_fixed(&fix(&dir, "s.jsonl", &["--settle", "0"]), &path, &text);
        let more: Vec<Value> = (5..).zip(messages).map(|(n, message)| line_of_pi(n, message)).collect();
        let more = in_lines(&more);
        dir.write("s.jsonl", fs::read_to_string(&path).unwrap() + &more);
        let undo = ["undo", "--format", "json", "--settle", "0", "s.jsonl"];
        assert_eq!(dir.tailor(&[&undo[..], arguments].concat()).file()["outcome"], "undone");
        assert_eq!(fs::read_to_string(&path).unwrap(), text + &more);
    }
}

/// A Codex thread with a repeated result, which the API refuses.
fn codex() -> String {
    let line = |kind: &str, payload: &str| {
        format!(r#"{{"timestamp":"2026-08-01T10:00:01.000Z","type":"{kind}","payload":{payload}}}"#) + "\n"
    };
    let header = r#"{"id":"0198c0de-0000-7000-8000-000000000001","timestamp":"2026-08-01T10:00:00.000Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.118.0","source":"cli","model_provider":"openai"}"#;
    let asked = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"list files"}]}"#;
    let call = r#"{"type":"function_call","name":"ls","arguments":"{}","call_id":"call_A"}"#;
    let result =
        line("response_item", r#"{"type":"function_call_output","call_id":"call_A","output":"a.txt"}"#);
    let said = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One."}]}"#;
    let item = |payload: &str| line("response_item", payload);
    [line("session_meta", header), item(asked), item(call), result.clone(), result, item(said)].concat()
}

const ROLLOUT: &str = ".codex/sessions/2026/08/01/rollout-x.jsonl";

/// An ordinary user cannot see which files other users' processes have open, but the kernel shows whether anybody
/// writes.
#[test]
fn processes_of_others_hold_no_thread_of_codex_back() {
    let dir = Dir::new();
    for name in [ROLLOUT, "copy/rollout-x.jsonl"] {
        let path = dir.write(name, codex());
        path.ancestors().take_while(|above| *above != dir.files()).for_each(give_to_powerless);
        for settle in ["5", "0"] {
            let arguments = ["fix", "--format", "json", "--settle", settle, name];
            assert_fixed(&run(dir.powerless().args(arguments), b""), &path, &codex());
            fs::write(&path, codex()).unwrap();
            age(&path, 60);
        }
    }
}

#[test]
fn a_program_that_holds_a_file_open_for_writing_defers() {
    let dir = Dir::new();
    for (name, text) in [(ROLLOUT, codex()), ("s.jsonl", BROKEN.to_string())] {
        let path = dir.write(name, &text);
        let writer = File::options().append(true).open(&path).unwrap();
        let reason = format!("process {} ", std::process::id());
        let run = fix(&dir, name, &["--settle", "0"]);
        assert_deferred(&run, &reason, &path, &text);
        assert_deferred(&run, "has it open for writing", &path, &text);
        drop(writer);
        assert_fixed(&fix(&dir, name, &[]), &path, &text);
    }
}

/// A dry run also reports what prevents a replacement for good.
#[test]
fn a_file_with_two_names_is_refused_dry_or_not() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    fs::hard_link(&path, dir.path("other.jsonl")).unwrap();
    assert_eq!(fix(&dir, "s.jsonl", &[]).file()["outcome"], "refused");
}
