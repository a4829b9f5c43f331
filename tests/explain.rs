//! `tailor explain` of errors: what they are about, which lines, and what settles it.

use crate::support::{Dir, root};

fn fixture(name: &str) -> String {
    root().join("fixtures").join(name).join("in.jsonl").to_str().unwrap().to_string()
}

#[test]
fn an_error_is_about_lines_and_a_command_settles_it() {
    let (dir, file) = (Dir::new(), fixture("pi/p1-lost-result"));
    let text =
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_A";
    let run = dir.tailor(&["explain", text, &file]);
    let said = run.text();
    assert_eq!(run.status, 0);
    for part in [
        "P1 call-without-result",
        "messages.1 is about line 3",
        "toolu_A is on line 3",
        "line 3: P1",
        &format!("Settle it: tailor fix {file}"),
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    // Without a file it says what can be said.
    let said = dir.tailor(&["explain", text]).text();
    assert!(said.contains("P1 call-without-result") && said.contains("tailor fix FILE"), "{said}");
}

#[test]
fn a_guarded_repair_is_named_with_what_allows_it() {
    let (dir, file) = (Dir::new(), fixture("openai-chat/p1-lost-result"));
    let text =
        "The following tool_call_ids did not have response messages: x; must be followed by tool messages";
    let said = dir.tailor(&["explain", text, &file]).text();
    assert!(said.contains("Settle it: tailor fix --allow P1 "), "{said}");
}

#[test]
fn a_code_is_looked_for_in_a_file() {
    let (dir, file) = (Dir::new(), fixture("pi/p1-lost-result"));
    let said = dir.tailor(&["explain", "P1", &file]).text();
    assert!(said.contains("Why: ") && said.contains("line 3: P1"), "{said}");
    let said = dir.tailor(&["explain", "P5", &file]).text();
    assert!(said.contains("No finding of P5 is in it."), "{said}");
}

#[test]
fn what_is_not_known_is_said_not_to_be() {
    let (dir, file) = (Dir::new(), fixture("pi/p1-lost-result"));
    let run = dir.tailor(&["explain", "the moon is in the wrong house", &file]);
    let talk = &run.stderr;
    assert_eq!(run.status, 2);
    assert!(talk.contains("not known") && run.text().contains("line 3: P1"), "{talk}");
    // Without a file, what can be asked, and what to do.
    let run = dir.tailor(&["explain", "the moon is in the wrong house"]);
    assert!(run.status == 2 && run.text().is_empty() && !run.stderr.contains("the file"), "{}", run.stderr);
    for way in ["a rule's code", "a profile (default, ", "text of an error", "`tailor scan FILE`"] {
        assert!(run.stderr.contains(way), "{way} is not in {}", run.stderr);
    }
    let run = dir.tailor(&["explain", "nonsense"]);
    let talk = &run.stderr;
    assert!(run.status == 2 && talk.contains("no such rule"), "{talk}");
    let run = dir.tailor(&["explain", "messages.0: roles must alternate", "/nowhere/s.jsonl"]);
    let talk = &run.stderr;
    assert!(run.status == 2 && talk.contains("/nowhere/s.jsonl"), "{talk}");
}
