//! A place that an error names is shown in the session: one story in each format that agents write, each of its messages
//! named in each notation, and the line that must come out.
//!
//! The numbers are counted here from the story, and not by the program's picture of a request.

use crate::stories::spell::{FileForm, FormatSpelling, ROWS, StoryEvent, StoryLine};
use crate::support::Dir;
use std::fmt::Write as _;
use transcript::Reading;
use transcript::request::{Blame, blame};

/// How an error names a message, whether instructions are counted, and whether results and calls are items of their own.
struct Notation {
    text: &'static str,
    counts_instructions: bool,
    results_alone: bool,
    calls_alone: bool,
}

const NOTATIONS: &[Notation] = &[
    Notation {
        text: "messages.#.content.@: x",
        counts_instructions: false,
        results_alone: false,
        calls_alone: false,
    },
    Notation {
        text: "contents[#].parts[@]: x",
        counts_instructions: false,
        results_alone: false,
        calls_alone: false,
    },
    Notation {
        text: "Invalid 'messages[#].content': x",
        counts_instructions: true,
        results_alone: true,
        calls_alone: false,
    },
    Notation {
        text: "the message at position # is wrong",
        counts_instructions: true,
        results_alone: true,
        calls_alone: false,
    },
    Notation {
        text: "Invalid 'input[#].id': x",
        counts_instructions: true,
        results_alone: true,
        calls_alone: true,
    },
];

/// Formats whose messages are sent as they stand in the file, and the one whose story begins with instructions.
const BARE: &[&str] = &[
    "ai-sdk-model",
    "anthropic",
    "autogen",
    "bedrock-converse",
    "gemini-contents",
    "langchain",
    "llamaindex",
    "openai-chat",
    "openai-responses",
    "pydantic-ai",
    "reasonix",
];
const INSTRUCTED: &str = "openai-chat";

fn story() -> Vec<StoryEvent> {
    let text = |text: &str| text.to_string();
    vec![
        StoryEvent::User(text("first question")),
        StoryEvent::Said(text("first answer")),
        StoryEvent::User(text("second question")),
        StoryEvent::Asked(vec![("toolu_00x", "ls"), ("toolu_00y", "ls")]),
        StoryEvent::Result("toolu_00x", text("a.txt")),
        StoryEvent::Result("toolu_00y", text("b.txt")),
        StoryEvent::Said(text("second answer")),
        StoryEvent::User(text("third question")),
        StoryEvent::Said(text("third answer")),
    ]
}

/// The number of each event's message in a request, and of its block.
fn numbers(story: &[StoryEvent], notation: &Notation, format: &str) -> Vec<(usize, usize)> {
    let is_bare = BARE.contains(&format);
    let mut next = usize::from(notation.counts_instructions && (!is_bare || format == INSTRUCTED));
    let mut before_is_result = false;
    story
        .iter()
        .map(|event| {
            let is_result = matches!(event, StoryEvent::Result(..));
            if is_result && before_is_result && !notation.results_alone && !is_bare {
                return (next - 1, 1);
            }
            before_is_result = is_result;
            let items = match event {
                StoryEvent::Asked(calls) if notation.calls_alone => calls.len(),
                _ => 1,
            };
            next += items;
            (next - items, 0)
        })
        .collect()
}

fn text_of(lines: &[StoryLine]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        writeln!(text, "{}", line.text).unwrap();
        text
    })
}

fn asked(text: &str, error: &str) -> Blame {
    blame(&Reading::new(&text.as_bytes()).unwrap(), error).unwrap().unwrap()
}

fn of_agents() -> impl Iterator<Item = &'static FormatSpelling> {
    ROWS.iter().filter(|row| !row.is_opaque && row.kind != FileForm::Conversations)
}

#[test]
fn each_message_is_found_by_each_notation() {
    let (mut wrong, mut all) = (String::new(), 0);
    for row in of_agents() {
        let (story, lines) = (story(), row.spell(&story()));
        let text = text_of(&lines);
        for notation in NOTATIONS {
            let numbers = numbers(&story, notation, row.name);
            for (event, (number, block)) in numbers.iter().enumerate() {
                let error = notation.text.replace('#', &number.to_string()).replace('@', &block.to_string());
                let found = asked(&text, &error);
                // The last record of a call has all of its results.
                let shown = if row.kind == FileForm::Upserts && event == 4 { 5 } else { event };
                let has = |line: &u64| lines[usize::try_from(*line).unwrap() - 1].events.contains(&shown);
                all += 1;
                if !found.at.iter().any(has) {
                    writeln!(
                        wrong,
                        "{}: {error}: {:?} of event {event}: {:?}",
                        row.name, found.at, found.what
                    )
                    .unwrap();
                }
            }
        }
    }
    let count = wrong.lines().count();
    eprintln!("{count} of {all} places are on other lines");
    assert!(wrong.is_empty(), "{count} of {all}:\n{wrong}");
}

/// A fault that no rule finds, in the eighth event.
fn faulty(row: &FormatSpelling) -> Option<(String, Vec<u64>)> {
    let mut story = story();
    story[7] = StoryEvent::Strange("third question".to_string());
    let lines = story.iter().all(|event| row.has(event)).then(|| row.spell(&story))?;
    let on = (1..).zip(&lines).filter(|(_, line)| line.events.contains(&7)).map(|(number, _)| number);
    Some((text_of(&lines), on.collect()))
}

#[test]
fn explain_names_the_line_also_where_no_rule_has_a_finding() {
    let dir = Dir::new();
    for row in of_agents() {
        // By such a part the first is not recognised, and the second sends no message of which it knows no part.
        let is_told = !["ai-sdk-model", "opencode"].contains(&row.name);
        let Some((text, on)) = faulty(row).filter(|_| is_told) else { continue };
        let file = dir.path(format!("{}.jsonl", row.name));
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        for notation in NOTATIONS {
            let (number, block) = numbers(&story(), notation, row.name)[7];
            let place = notation.text.replace('#', &number.to_string()).replace('@', &block.to_string());
            let error = format!(
                "400 {place}: Input tag 'hologram' found using 'type' does not match any of the expected tags"
            );
            let run = dir.tailor(&["explain", "--json", &error, file]);
            let answer: serde_json::Value = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
            let named: Vec<u64> = serde_json::from_value(answer["named_lines"].clone()).unwrap_or_default();
            assert!(named.iter().any(|line| on.contains(line)), "{error}: {named:?}, not {on:?}, of {file}");
        }
    }
}

#[test]
fn a_place_must_agree_with_the_role_and_the_id() {
    let dir = Dir::new();
    let row = ROWS.iter().find(|row| row.name == "claude-code").unwrap();
    let file = dir.path("s.jsonl");
    std::fs::write(&file, text_of(&row.spell(&story()))).unwrap();
    let file = file.to_str().unwrap();
    let said = |error: &str| dir.tailor(&["explain", error, file]).text();
    // The message before it is the user's.
    let near = said("messages.1: user messages must have non-empty content");
    assert!(
        near.contains("messages.1 is line 1 of the file: a user message") && !near.contains("differently"),
        "{near}"
    );
    let other = said("the message at position 1 with role 'tool' must not be empty");
    assert!(other.contains("speaks of role tool there, so it may count differently"), "{other}");
    let apart =
        said("messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_00y");
    assert!(apart.contains("on different lines; the id is surer"), "{apart}");
    let beyond = said("messages.44: user messages must have non-empty content");
    assert!(beyond.contains("messages.44 is not in the session: it has 8 messages now"), "{beyond}");
}
