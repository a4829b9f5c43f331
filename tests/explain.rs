//! `tailor explain` with errors: what they are about, which lines cause them, and what repairs them.

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
        "messages.1 is line 3 of the file",
        "toolu_A is on line 3",
        "line 3: P1",
        &format!("To repair it, run: tailor fix --select P1 {file}"),
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    // Without a file, it explains the error in general.
    let said = dir.tailor(&["explain", text]).text();
    assert!(said.contains("P1 call-without-result") && said.contains("tailor fix FILE"), "{said}");
}

#[test]
fn a_guarded_repair_is_named_with_what_allows_it() {
    let (dir, file) = (Dir::new(), fixture("openai-chat/p1-lost-result"));
    let text =
        "The following tool_call_ids did not have response messages: x; must be followed by tool messages";
    let said = dir.tailor(&["explain", text, &file]).text();
    assert!(said.contains("To repair it, run: tailor fix --select P1 --allow P1 "), "{said}");
}

#[test]
fn a_code_is_looked_for_in_a_file() {
    let (dir, file) = (Dir::new(), fixture("pi/p1-lost-result"));
    let said = dir.tailor(&["explain", "P1", &file]).text();
    assert!(said.contains("Why: ") && said.contains("line 3: P1"), "{said}");
    let said = dir.tailor(&["explain", "P5", &file]).text();
    assert!(said.contains("P5 is not found in this file."), "{said}");
}

#[test]
fn what_is_not_known_is_said_not_to_be() {
    let (dir, file) = (Dir::new(), fixture("pi/p1-lost-result"));
    let run = dir.tailor(&["explain", "the moon is in the wrong house", &file]);
    let talk = &run.stderr;
    assert_eq!(run.status, 2);
    assert!(
        talk.contains("I don't recognise this error message") && run.text().contains("line 3: P1"),
        "{talk}"
    );
    // Without a file, it says what can be passed, and what to do.
    let run = dir.tailor(&["explain", "the moon is in the wrong house"]);
    assert!(run.status == 2 && run.text().is_empty() && !run.stderr.contains("the file"), "{}", run.stderr);
    assert!(run.stderr.contains("`tailor scan FILE`") && !run.stderr.contains("chatcli"), "{}", run.stderr);
    let run = dir.tailor(&["explain", "nonsense"]);
    let talk = &run.stderr;
    assert!(run.status == 2 && talk.contains("no such rule"), "{talk}");
    let run = dir.tailor(&["explain", "messages.0: roles must alternate", "/nowhere/s.jsonl"]);
    let talk = &run.stderr;
    assert!(run.status == 2 && talk.contains("/nowhere/s.jsonl"), "{talk}");
}

/// An apostrophe in an error leaves a quote open in the shell, and users swap the arguments.
#[test]
fn the_error_may_come_from_standard_input_and_the_file_first() {
    let (dir, file) = (Dir::new(), fixture("pi/p1-lost-result"));
    let text = "messages.1: 'tool_use' ids were found without `tool_result` blocks: toolu_A\n";
    let asked = dir.tailor(&["explain", text, &file]).text();
    assert!(asked.contains("toolu_A is on line 3"), "{asked}");
    assert_eq!(dir.pipe(text.as_bytes(), &["explain", "-", &file]).text(), asked);
    assert_eq!(dir.tailor(&["explain", &file, text]).text(), asked);
}

/// In double quotes, a shell would run text in backticks.
#[test]
fn examples_of_the_help_can_be_pasted() {
    let dir = Dir::new();
    let commands = dir.tailor(&["help"]).text();
    let (commands, _) = commands.split_once("\nOptions:\n").unwrap();
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    assert!(names.clone().count() > 20, "{commands}");
    for name in names {
        let help = dir.tailor(&["help", name]).text();
        for example in help.lines().filter(|line| line.starts_with("  tailor ")) {
            let quoted = example.split('\'').step_by(2).any(|part| part.contains('`'));
            assert!(!quoted, "{example}");
        }
    }
}

/// Every proposed command can be pasted, whatever the file's name is.
#[test]
fn the_path_is_quoted_where_it_has_to_be() {
    let dir = Dir::new();
    dir.write("a b.jsonl", std::fs::read(fixture("pi/p1-lost-result")).unwrap());
    for (text, command) in [
        ("`tool_use` ids were found without `tool_result` blocks", "tailor fix --select P1 'a b.jsonl'\n"),
        (
            "prompt is too long: 210000 tokens > 200000 maximum",
            "tailor recover --error 'prompt is too long: 210000 tokens > 200000 maximum' 'a b.jsonl'\n",
        ),
    ] {
        let said = dir.tailor(&["explain", text, "a b.jsonl"]).text();
        assert!(said.contains(command), "{said}");
    }
}

/// For an unknown error, no cause is named and no repair proposed.
#[test]
fn an_unknown_error_proposes_nothing() {
    let dir = Dir::new();
    for (text, file, has) in [
        ("foo bar", "claude-code/s6-progress", "No errors found."),
        ("418 teapot", "pi/s1-head-and-tail", "No errors found."),
        ("foo bar", "pi/p1-lost-result", "errors that a scan finds:\n  line 3: P1 "),
        ("", "pi/p1-lost-result", "errors that a scan finds:\n  line 3: P1 "),
    ] {
        let run = dir.tailor(&["explain", text, &fixture(file)]);
        let said = run.text();
        assert_eq!(run.status, 2);
        assert!(
            said.contains(has) && !said.contains("To repair it") && !said.contains("S6"),
            "{text}: {said}"
        );
    }
}

#[test]
fn what_is_not_found_in_a_file_is_said_not_to_be() {
    let (dir, file) = (Dir::new(), fixture("pi/p1-lost-result"));
    let said = dir.tailor(&["explain", "messages: text content blocks must be non-empty", &file]).text();
    assert!(said.contains("Not found in this file: M1 empty-turn, M2 empty-text.\n"), "{said}");
    assert!(!said.contains("tailor fix"), "{said}");
    // An id that is not in the file proves nothing, but is worth reporting.
    let text = "tool_use ids were found without tool_result blocks: toolu_A, toolu_01, call_abc (call_id)";
    let said = dir.tailor(&["explain", text, &file]).text();
    for part in ["toolu_A is on line 3\n", "toolu_01 is not in this file\n", "call_abc is not in this file\n"]
    {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert!(!said.contains("call_id is"), "{said}");
}

/// A repair that changes nothing is not proposed, nor one for a finding that is only reported.
#[test]
fn what_settles_it_does_so() {
    let dir = Dir::new();
    let said = |text: &str, file: &str| dir.tailor(&["explain", text, &fixture(file)]).text();
    let doubled = said("Duplicate value for 'tool_call_id' of 'c1'", "openai-chat/p5-invented-then-real");
    assert!(doubled.contains("P5 duplicate-result, P6 ") && doubled.contains("--allow P5 "), "{doubled}");
    let blocked = said("Output blocked by content filtering policy", "pi/m9-blocked");
    assert!(blocked.contains(": M9 ") && blocked.contains("Tailor only reports this."), "{blocked}");
}

#[test]
fn a_session_that_is_too_long_is_to_be_recovered() {
    let (dir, text) = (Dir::new(), "prompt is too long: 210000 tokens > 200000 maximum");
    let short = fixture("pi/p1-lost-result");
    let said = dir.tailor(&["explain", text, &short]).text();
    assert!(
        said.contains(&format!("tailor recover --error '{text}' {short}\n")) && !said.contains("tailor fix"),
        "{said}"
    );
    let long = dir.path("long.jsonl").to_str().unwrap().to_string();
    let one = std::fs::read_to_string(fixture("pi/s1-head-and-tail")).unwrap();
    dir.write("long.jsonl", one.replace("row 01", &"x".repeat(40_000)));
    let said = dir.tailor(&["explain", text, &long]).text();
    assert!(
        said.contains("tailor recover ")
            && said.contains("To shorten only long results, run: tailor fix --select S1 "),
        "{said}"
    );
}

/// Waiting does not help a request that is larger than a minute's limit by itself.
#[test]
fn a_request_over_the_limit_of_a_minute_is_to_be_shortened() {
    let dir = Dir::new();
    let said = |used: &str| {
        let text = format!(
            "413 Request too large for model `gpt-oss` on tokens per minute (TPM): Limit 8000,{used}, please reduce"
        );
        dir.tailor(&["explain", &text]).text()
    };
    let alone = said(" Requested 12043");
    assert!(alone.contains("tailor recover") && !alone.contains("nothing to do"), "{alone}");
    let shared = said(" Used 7000, Requested 2043");
    assert!(shared.contains("Wait,") && shared.contains("nothing to do"), "{shared}");
}

/// Errors that are not about a file have no rule.
#[test]
fn a_class_without_a_rule_is_not_called_one() {
    let dir = Dir::new();
    for (text, rules, has) in [
        ("ENOSPC: no space left on device", "Rules: B1 torn-line\n", "The disk was full"),
        (
            "No conversation found with session ID: 5",
            "Rules: B1 torn-line, B3 nul-bytes, B10 misplaced-header, S11 ",
            "deleted",
        ),
        ("session file locked (timeout 10000ms)", "", "waits for a lock"),
        ("API Error: Repeated 529 Overloaded errors", "", "The session has nothing to do with it."),
        ("API Error: Request timed out.", "", "The session has nothing to do with it."),
        ("API Error (Connection error.)", "", "The session has nothing to do with it."),
        ("500 {\"message\":\"Internal server error\"}", "", "The session has nothing to do with it."),
    ] {
        let said = dir.tailor(&["explain", text]).text();
        assert!(said.contains(rules) && said.contains(has), "{said}");
        assert_eq!(said.contains("Rules:"), !rules.is_empty(), "{said}");
        assert!(!["C3", "C4", "C8", "C9"].iter().any(|code| said.contains(code)), "{said}");
    }
}
