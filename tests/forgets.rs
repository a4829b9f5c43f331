//! Sessions of which the agent sends only a part, because a link is broken; and what is said of an error that stays.

use crate::doctor::paste;
use crate::fixtures::Fixture;
use crate::support::{Dir, make_old};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

const ID: &str = "5f0c1a2e-0000-4000-8000-000000000001";

/// A pi session whose third message of six is lost, in the home folder.
fn session(dir: &Dir) -> PathBuf {
    let said = |n: u32, role: &str, more: &str| {
        format!(
            "{{\"type\":\"message\",\"id\":\"m{n}\",\"parentId\":{},\"timestamp\":\"2026-07-01T10:00:0{n}.000Z\",\"message\":\
             {{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"words {n}\"}}]{more},\"timestamp\":178290000{n}000}}}}\n",
            if n == 1 { "null".to_string() } else { format!("\"m{}\"", n - 1) }
        )
    };
    let model = ",\"model\":\"claude-opus-4-5\",\"stopReason\":\"stop\"";
    let header = format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{ID}\",\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"cwd\":\"/w\"}}\n"
    );
    let messages = (1..=6).filter(|&n| n != 3);
    let lines = messages.map(|n| if n % 2 == 1 { said(n, "user", "") } else { said(n, "assistant", model) });
    let name = format!(".pi/agent/sessions/--w--/2026-07-01T10-00-00-000Z_{ID}.jsonl");
    let path = dir.write(dir.home().join(name), header + &lines.collect::<String>());
    make_old(&path);
    path
}

#[test]
fn a_session_of_which_a_part_is_sent_is_an_error_on_every_screen() {
    let dir = Dir::new();
    let path = session(&dir);
    let path = path.to_str().unwrap();
    let listed = dir.tailor(&["doctor", "--json"]).json().remove(0);
    assert_eq!((&listed["state"], &listed["codes"]), (&"forgets".into(), &serde_json::json!(["T1"])));
    let messages = ["messages_total", "messages_in_context", "messages_in_context_after"];
    assert_eq!(messages.map(|name| listed[name].as_u64()), [Some(5), Some(3), Some(5)]);
    let says = |arguments: &[&str], words: &[&str]| {
        let run = dir.tailor(arguments);
        let all = (run.text() + &run.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.iter().all(|word| all.contains(word)), "{arguments:?}: {all}");
        run.status
    };
    let brought = "3 of 5 messages are sent; the repair brings 2 back";
    assert_eq!(says(&["doctor"], &["forgets 2", brought, "tailor fix ~/.pi/"]), 0);
    assert_eq!(
        says(&["scan", path], &["error T1", "the agent sees 3 of 5 messages; the repair brings 2 back"]),
        1
    );
    let event = serde_json::json!({ "session_id": "s", "transcript_path": path, "cwd": "/w" }).to_string();
    let said: Value = serde_json::from_slice(&dir.pipe(event.as_bytes(), &["hook", "start"]).stdout).unwrap();
    let warning = said["systemMessage"].as_str().unwrap();
    assert!(warning.contains(&format!("pi forgets messages of this session: {brought}")), "{warning}");
    let report = dir.tailor(&["report", "--json", path]).json();
    let row = report.iter().find(|row| row["messages_in_context_after"] == 5);
    assert!(row.is_some_and(|row| row["state"] == "forgets"), "{report:?}");
    assert_eq!(says(&["resume", "pi", "--no-start"], &["+2 messages"]), 0);
    assert_eq!(dir.tailor(&["doctor", "--json"]).json()[0]["state"], "ok");
}

/// The errors of each file below a folder: the name of the file, and the code with the command that is named.
fn errors(dir: &Dir, path: &str) -> BTreeMap<String, Vec<(String, Option<String>)>> {
    let mut found: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for file in dir.tailor(&["scan", "--json", path]).json().iter().filter(|line| line["type"] == "file") {
        let all = file["findings"].as_array().into_iter().flatten();
        for error in all.filter(|finding| finding["severity"] == "error") {
            let next = error["next"].as_str().map(str::to_string);
            let name = file["path"].as_str().unwrap().to_string();
            found.entry(name).or_default().push((error["code"].as_str().unwrap().to_string(), next));
        }
    }
    found
}

/// The command that `fix` names for an error that stays.
fn next_command(said: &str, code: &str) -> Option<String> {
    let begins = format!("{code} stays: ");
    let named = said.lines().find_map(|line| line.trim().strip_prefix(&begins))?;
    named.starts_with("tailor ").then(|| named.to_string())
}

#[test]
fn an_error_that_stays_names_what_mends_it() {
    let dir = Dir::new();
    for (n, case) in Fixture::all().into_iter().enumerate() {
        make_old(&dir.write(format!("all/{n}-{}.jsonl", case.name.replace('/', "-")), &case.input));
    }
    let all = dir.path("all");
    dir.tailor(&["fix", "--settle", "0", all.to_str().unwrap()]);
    let (mut wrong, mut tried) = (Vec::new(), BTreeSet::new());
    for (file, left) in errors(&dir, all.to_str().unwrap()) {
        let was = fs::read(dir.path(&file)).unwrap();
        for (code, command) in left.iter().cloned().collect::<BTreeSet<_>>() {
            let Some(command) = command else { continue };
            // One of a kind: the code, and the command without the file.
            if !tried.insert((code.clone(), command.split('/').next().unwrap_or_default().to_string())) {
                continue;
            }
            // Of a stream there is no file to name.
            let piped = dir.pipe(&was, &["fix", "-"]);
            assert!(!piped.stderr.contains("stays: "), "{}", piped.stderr);
            make_old(&dir.path(&file));
            let mut done = paste(&dir, &command);
            // Only a try can tell that more has to be allowed.
            if let Some(next) = next_command(&done.text(), &code) {
                done = paste(&dir, &next);
            }
            let count =
                |errors: &[(String, Option<String>)]| errors.iter().filter(|error| error.0 == code).count();
            let now = errors(&dir, &file).remove(&file).unwrap_or_default();
            // Only a try can tell that a repair would make something worse.
            let admits = ["stays: no command repairs it", "[report only]"];
            let admits = done
                .text()
                .lines()
                .any(|line| line.contains(&code) && admits.iter().any(|end| line.ends_with(end)));
            if count(&now) >= count(&left) && !admits {
                wrong.push(format!("{file}: {code}: {command}: {}{}", done.text(), done.stderr));
            }
            fs::write(dir.path(&file), &was).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried.len() > 10, "{tried:?}");
}
