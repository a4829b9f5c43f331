//! Files that are one JSON array of messages, or one object with such an array: what is done to the lines of a session is done to
//! the messages of the same session as a document.

use crate::corpus::splice;
use crate::fixtures::Fixture;
use crate::support::Dir;
use serde_json::Value;
use std::sync::Arc;
use transcript::format::{FORMATS, Format};
use transcript::judge::{Judge, Judgement};
use transcript::rule::RULES;
use transcript::{Policy, Situation, examine, mend};

/// Ways to write messages as one document.
const SHAPES: &[(&str, &str, &str)] = &[
    ("[", ",", "]"),
    ("[\n  ", ",\n  ", "\n]\n"),
    ("{\"model\":\"m\",\"messages\":[\n", " ,\n", "],\n\"tools\":[]}\n"),
];

/// Whole lines of bare messages, and nothing else.
fn messages(text: &[u8]) -> Option<Vec<&str>> {
    let lines: Vec<&str> = str::from_utf8(text).ok()?.lines().collect();
    let are_whole =
        lines.iter().all(|line| serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object()));
    are_whole.then_some(lines)
}

/// The messages in a document.
fn listed(document: &[u8]) -> Vec<Value> {
    let whole: Value = serde_json::from_slice(document).unwrap();
    let list = whole.get("messages").unwrap_or(&whole);
    list.as_array().unwrap().clone()
}

fn mended(text: &[u8], policy: &Policy) -> Option<Vec<u8>> {
    let plan = mend(&text, policy).unwrap().repair.ok()?.plan;
    Some(splice(text, plan.edits()))
}

#[test]
fn a_document_is_mended_as_its_messages_are_as_lines() {
    let (mut compared, mut changed) = (0, 0);
    let bare = |name: &str| FORMATS.iter().any(|format| format.name == name && format.is_bare());
    for fixture in Fixture::all() {
        if !bare(fixture.name.split('/').next().unwrap()) {
            continue;
        }
        let Some(lines) = messages(&fixture.input) else { continue };
        for allow in [&[][..], RULES] {
            let mut policy = Policy::default();
            policy.selection.allow = allow.iter().map(|rule| rule.code().to_string()).collect();
            let Some(after) = mended(&fixture.input, &policy) else { continue };
            let expected: Vec<Value> = str::from_utf8(&after)
                .unwrap()
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            for (begin, between, end) in SHAPES {
                let document = format!("{begin}{}{end}", lines.join(between));
                let after =
                    mended(document.as_bytes(), &policy).unwrap_or_else(|| panic!("{}", fixture.name));
                assert_eq!(listed(&after), expected, "{}", fixture.name);
                compared += 1;
                changed += usize::from(after != document.as_bytes());
            }
        }
    }
    assert!(compared > 150 && changed > 60, "{compared} compared, {changed} changed");
}

/// An agent's own records are in lines, and what holds them as a document is not its file.
#[test]
fn records_of_agents_are_no_document() {
    let of_agents = |name: &str| FORMATS.iter().any(|format| format.name == name && !format.is_bare());
    let mut count = 0;
    for fixture in Fixture::all() {
        if of_agents(fixture.name.split('/').next().unwrap())
            && let Some(lines) = messages(&fixture.input)
        {
            let document = format!("[\n{}\n]\n", lines.join(",\n"));
            let found = examine(&document.as_bytes(), &Policy::default()).unwrap().facts;
            assert!(found.format.is_none_or(Format::is_bare), "{}", fixture.name);
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn a_document_is_mended_in_place_and_comes_back() {
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#;
    let long = format!(r#"{{"role":"tool","tool_call_id":"c","content":"{}"}}"#, "a line\\n".repeat(9000));
    let text = format!("[\n  {{\"role\":\"user\",\"content\":\"go\"}},\n  {call},\n  {long}\n]");
    let dir = Dir::new();
    let path = dir.write("history.json", &text);
    let run = dir.tailor(&["fix", "--json", "--settle", "0", "history.json"]);
    assert_eq!((run.status, &run.file()["findings"][0]["line"]), (0, &Value::from(4)), "{}", run.text());
    let after = std::fs::read(&path).unwrap();
    assert!(after.len() < 40_000 && listed(&after).len() == 3);
    assert_eq!(dir.tailor(&["undo", "--settle", "0", "history.json"]).status, 0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    // What is told of its weight is told of its messages.
    let weight = dir.tailor(&["top", "--json", "history.json"]).json();
    assert_eq!(weight[0]["standings"][0]["count"], 3, "{weight:?}");
}

/// A message on a line of its own is seen as a line first.
#[test]
fn what_is_weighed_of_a_document_is_weighed_once() {
    let dir = Dir::new();
    let message = r#"{"role":"user","content":"one message and no other"}"#;
    dir.write("document.json", format!("[\n{message}\n]\n"));
    let weight = dir.tailor(&["top", "--json", "document.json"]).json().remove(0);
    let context = &weight["standings"][0];
    assert_eq!((&context["count"], &context["bytes"]), (&Value::from(1), &Value::from(message.len())));
    let parts = weight["parts"].as_array().unwrap();
    let user = parts.iter().find(|part| part["name"] == "user").unwrap();
    assert_eq!(user["count"], 1, "{parts:?}");
}

/// What follows a document makes it none.
#[test]
fn a_line_behind_a_document_is_looked_at() {
    let text = "[\n{\"role\":\"user\",\"content\":\"go\"}\n]\n".to_string();
    let (policy, situation) = (Arc::new(Policy::default()), Situation::default());
    let (mut judge, found) = Judge::new(&text.as_bytes(), &policy, &situation).unwrap();
    assert!(found.facts.is_document && found.facts.format.is_some());
    let text = text + "{\"role\":\"assistant\",\"content\":\"done\"}\n";
    assert!(matches!(judge.append(&text.as_bytes()).unwrap(), Judgement::Look(_)));
}

#[test]
fn compacted_and_recovered_documents_stay_documents() {
    let turn = |n: usize| {
        format!(
            "{{\"role\":\"user\",\"content\":\"question {n}\"}},\n{{\"role\":\"assistant\",\"content\":\"{}\"}}",
            "word ".repeat(400)
        )
    };
    let text = format!("{{\"messages\": [\n{}\n]}}\n", (0..40).map(turn).collect::<Vec<_>>().join(",\n"));
    let dir = Dir::new();
    let path = dir.write("history.json", &text);
    for arguments in [
        &["recover", "--settle", "0", "--level", "2", "--keep", "6", "history.json"][..],
        &["compact", "--settle", "0", "--keep", "6", "--with", "echo What was said before.", "history.json"],
    ] {
        let run = dir.tailor(arguments);
        assert_eq!(run.status, 0, "{}", run.text());
        let left = listed(&std::fs::read(&path).unwrap());
        assert!((6..=8).contains(&left.len()), "{arguments:?}: {}", left.len());
        assert_eq!(dir.tailor(&["undo", "--settle", "0", "history.json"]).status, 0);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}
