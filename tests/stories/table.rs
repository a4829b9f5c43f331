//! The stories.

use super::spell::Event;
use super::{Damage, Story};

fn user(text: &str) -> Event {
    Event::User(text.into())
}

fn said(text: &str) -> Event {
    Event::Said(text.into())
}

fn asked(calls: &[(&'static str, &'static str)]) -> Event {
    Event::Asked(calls.to_vec())
}

fn result(id: &'static str, text: &str) -> Event {
    Event::Result(id, text.into())
}

/// This many short lines, all different.
fn rows(count: usize) -> String {
    let rows: Vec<String> = (1..=count).map(|n| format!("row {n:03} done\\n")).collect();
    rows.concat()
}

/// A call of `ls` and its result.
fn listed() -> Vec<Event> {
    vec![user("list files"), asked(&[("call_A", "ls")]), result("call_A", "a.txt"), said("One file.")]
}

const STORY: Story =
    Story { name: "", arguments: "", tells: Vec::new(), damage: Damage::None, shows: "", but: &[] };

/// All stories.
pub(crate) fn stories() -> Vec<Story> {
    [
        from_ok_nothing_wrong(),
        from_b5_b6_b8_b11_odd_characters(),
        from_l1_l2_l3_l4_l5_limits(),
        from_s3_long_user_text(),
        from_p1_lost_result(),
        from_p2_no_call(),
        from_p5_invented_then_real(),
        from_p6_p10_p11_calls(),
        from_m7_said_again(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn from_ok_nothing_wrong() -> Vec<Story> {
    vec![
        Story { name: "ok-nothing-wrong", tells: listed(), ..STORY },
        Story { name: "ok-crlf", tells: listed(), damage: Damage::Crlf, ..STORY },
        Story {
            name: "b1-no-final-newline",
            tells: listed(),
            damage: Damage::Open,
            shows: "B1@last=mended",
            ..STORY
        },
        Story {
            name: "b1-torn-line",
            tells: listed(),
            damage: Damage::Torn,
            shows: "B1@last=mended",
            ..STORY
        },
        Story {
            name: "b2-two-on-a-line",
            tells: listed(),
            damage: Damage::Glued(2),
            shows: "B2@2=mended",
            but: &[("picoclaw", "B2@2=held", "its agent counts the lines")],
            ..STORY
        },
        Story {
            name: "b9-b3-junk-and-nul-run",
            tells: listed(),
            damage: Damage::Junk(1, 2),
            shows: "B9@junk=mended B3@nul=mended",
            but: &[("picoclaw", "B9@junk=held B3@nul=held", "its agent counts the lines")],
            ..STORY
        },
        Story {
            name: "b4-not-utf8",
            tells: vec![
                user("list files"),
                asked(&[("call_A", "ls")]),
                result("call_A", "a.txt"),
                said("One \u{f8ff} file."),
            ],
            shows: "B4@3=mended",
            ..STORY
        },
        Story {
            name: "b7-byte-order-mark",
            tells: listed(),
            damage: Damage::Bom,
            shows: "B7@first=mended",
            ..STORY
        },
    ]
}

fn from_b5_b6_b8_b11_odd_characters() -> Vec<Story> {
    vec![
        Story {
            name: "b5-b6-b8-b11-odd-characters",
            arguments: "--allow B5 --allow B6 --allow B11",
            tells: vec![
                user("list\\ud83d files"),
                asked(&[("call_A", "ls")]),
                result("call_A", "a\\u0000.txt"),
                said("One\u{2028}file."),
                user("and\tnow?"),
            ],
            shows: "B5@0=mended B11@2=mended B6@3=mended B8@4=mended",
            but: &[
                (
                    "codex",
                    "B5@0=mended B5@0=mended B11@2=mended B6@3=mended B8@4=mended B8@4=mended",
                    "what the user says is written twice",
                ),
                (
                    "ai-sdk-ui gemini-cli goose-legacy kimi-cli-wire kiro opencode",
                    "B5@0=mended B11@2=reported B6@3=mended B8@4=mended",
                    "names and values of the result are not taken apart",
                ),
                (
                    "anthropic-dataset gemini-dataset openai-dataset sharegpt",
                    "-",
                    "a raw tab hides the rest of a line, which is a whole conversation",
                ),
                ("cursor vscode-chat", "-", "no results are written down"),
            ],
            ..STORY
        },
        Story {
            name: "b5-lone-surrogate",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls")]),
                result("call_A", "half \\ud83d"),
                said("One."),
            ],
            shows: "B5@2=asks",
            but: &[("cursor vscode-chat", "-", "no results are written down")],
            ..STORY
        },
    ]
}

fn from_l1_l2_l3_l4_l5_limits() -> Vec<Story> {
    vec![
        Story {
            name: "l1-l2-l3-l4-l5-limits",
            arguments: "--max-file-size=100B --max-line-size=1500B --max-result-chars=3 --max-turn-chars=4 --max-context-tokens=1",
            tells: vec![
                user("list files"),
                asked(&[("call_A", "ls")]),
                result("call_A", &rows(130)),
                said("One file."),
            ],
            shows: "L1@first=reported L5@first=reported L4@1=reported L2@2=reported L3@2=reported",
            but: &[
                (
                    "anthropic-dataset gemini-dataset openai-dataset sharegpt",
                    "L1@first=reported L5@first=reported L2@2=reported L3@2=reported",
                    "a row has no turns",
                ),
                ("cursor vscode-chat", "-", "no results are written down"),
            ],
            ..STORY
        },
        Story {
            name: "s1-long-result",
            arguments: "--result-chars-max 200",
            tells: vec![
                user("build"),
                asked(&[("call_A", "make")]),
                result("call_A", &rows(40)),
                said("Built."),
            ],
            shows: "S1@2=mended",
            ..STORY
        },
        Story {
            name: "s2-largest-of-a-turn",
            arguments: "--turn-chars-max 5000",
            tells: vec![
                user("read"),
                asked(&[("call_A", "read"), ("call_B", "read")]),
                result("call_A", &rows(200)),
                result("call_B", &rows(300)),
                said("Read."),
            ],
            shows: "S2@3=mended",
            but: &[("anthropic-dataset gemini-dataset openai-dataset sharegpt", "", "a row has no turns")],
            ..STORY
        },
    ]
}

fn from_s3_long_user_text() -> Vec<Story> {
    vec![
        Story {
            name: "s3-long-user-text",
            arguments: "--summary-chars-max 200",
            tells: vec![
                user(&rows(30)),
                asked(&[("call_A", "ls")]),
                result("call_A", "a.txt"),
                said("One file."),
            ],
            shows: "S3@0=reported",
            but: &[(
                "anthropic-dataset gemini-dataset openai-dataset sharegpt",
                "",
                "nobody goes on with a row of a dataset",
            )],
            ..STORY
        },
        Story {
            name: "s14-two-ages",
            arguments: "--stale-shorten-turns 2 --stale-clear-turns 4 --stale-chars-min 400 --stale-head-chars 120 --stale-tail-chars 60",
            tells: vec![
                user("go"),
                asked(&[("call_A", "fetch")]),
                result("call_A", &rows(60)),
                asked(&[("call_B", "fetch")]),
                result("call_B", &rows(60)),
                said("a"),
                user("b"),
                said("b"),
                user("c"),
                said("c"),
                user("d"),
                said("d"),
            ],
            shows: "S14@2=mended S14@4=mended",
            but: &[("anthropic-dataset gemini-dataset openai-dataset sharegpt", "", "a row has no turns")],
            ..STORY
        },
        Story {
            name: "s15-s16-crowded-and-long-reply",
            arguments: "--window-tokens 1000 --crowded-trim-percent 10 --crowded-chars-max 150 --crowded-end-chars 40 --crowded-keep-assistants 1 --reply-chars-max 150",
            tells: vec![
                user("list files"),
                asked(&[("call_A", "ls")]),
                result("call_A", &rows(40)),
                said(&rows(20)),
                user("thanks"),
                said("Bye."),
            ],
            shows: "S15@2=mended S16@3=mended",
            but: &[(
                "anthropic-dataset gemini-dataset openai-dataset sharegpt",
                "",
                "nobody goes on with a row of a dataset",
            )],
            ..STORY
        },
    ]
}

fn from_p1_lost_result() -> Vec<Story> {
    vec![
        Story {
            name: "p1-lost-result",
            tells: vec![user("list"), asked(&[("call_A", "ls")]), user("well?"), said("Nothing.")],
            shows: "P1@1=mended",
            but: &[
                (
                    "ai-sdk-model openai-chat reasonix",
                    "P1@1=asks",
                    "whoever has the file may be about to send the result",
                ),
                (
                    "ai-sdk-ui gemini-cli gemini-contents kimi-code opencode",
                    "P1@1=reported",
                    "what reads it answers the call itself, or the call holds its result",
                ),
                (
                    "anthropic-dataset gemini-dataset openai-dataset",
                    "P1@1=reported",
                    "nobody knows what a row of a dataset should say",
                ),
                ("anthropic droid", "P1@1+2=mended", "the result goes into the message that follows"),
                ("picoclaw vibe", "P1@1=held", "its agent counts the lines"),
                ("sharegpt", "", "calls have no ids"),
            ],
            ..STORY
        },
        Story {
            name: "p1-lost-one-of-two",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls"), ("call_B", "pwd")]),
                result("call_A", "a.txt"),
                user("well?"),
                said("One."),
            ],
            shows: "P1@1=mended",
            but: &[
                (
                    "ai-sdk-model openai-chat reasonix",
                    "P1@1=asks",
                    "whoever has the file may be about to send the result",
                ),
                (
                    "ai-sdk-ui gemini-cli gemini-contents kimi-code opencode",
                    "P1@1=reported",
                    "what reads it answers the call itself, or the call holds its result",
                ),
                (
                    "anthropic-dataset gemini-dataset openai-dataset",
                    "P1@1=reported",
                    "nobody knows what a row of a dataset should say",
                ),
                ("anthropic droid", "P1@1+2=mended", "the result goes into the message that follows"),
                ("picoclaw vibe", "P1@1=held", "its agent counts the lines"),
                ("sharegpt", "", "calls have no ids"),
            ],
            ..STORY
        },
    ]
}

fn from_p2_no_call() -> Vec<Story> {
    vec![
        Story {
            name: "p2-no-call",
            tells: vec![
                user("list"),
                result("call_X", "whose?"),
                said("Fine."),
                user("go"),
                asked(&[("call_A", "ls")]),
                result("call_A", "a.txt"),
                said("Done."),
            ],
            shows: "P2@1=mended",
            but: &[
                (
                    "ai-sdk-model anthropic gemini-contents openai-chat reasonix",
                    "P2@1=asks",
                    "whoever has the file may put in the call",
                ),
                ("ai-sdk-ui gemini-cli opencode", "-", "a result is in the record of its call"),
                (
                    "anthropic-dataset gemini-dataset openai-dataset",
                    "P2@1=held",
                    "nobody knows what a row of a dataset should say",
                ),
                ("droid kimi-code picoclaw vibe", "P2@1=held", "lines may not go"),
                ("sharegpt", "-", "calls have no ids"),
            ],
            ..STORY
        },
        Story {
            name: "p4-user-between",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls")]),
                user("well?"),
                result("call_A", "a.txt"),
                said("One."),
            ],
            shows: "P4@3=mended",
            but: &[
                (
                    "claude-code codex copilot-cli kimi-code",
                    "",
                    "calls find their results by id wherever they are",
                ),
                ("ai-sdk-ui gemini-cli opencode", "-", "a result is in the record of its call"),
                (
                    "anthropic-dataset gemini-dataset openai-dataset sharegpt",
                    "P4@3=reported",
                    "nothing moves within a row of a dataset",
                ),
                ("droid picoclaw", "P4@3=held", "lines may not move"),
            ],
            ..STORY
        },
    ]
}

fn from_p5_invented_then_real() -> Vec<Story> {
    vec![
        Story {
            name: "p5-invented-then-real",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls")]),
                result("call_A", "[Tool result unavailable — call was interrupted or lost]"),
                result("call_A", "a.txt"),
                said("One file."),
            ],
            shows: "P5@2=mended",
            but: &[
                (
                    "ai-sdk-model anthropic gemini-contents openai-chat reasonix",
                    "P5@2=asks",
                    "whoever has the file may want both",
                ),
                ("ai-sdk-ui gemini-cli opencode", "-", "a result is in the record of its call"),
                (
                    "anthropic-dataset gemini-dataset openai-dataset",
                    "P5@2=held",
                    "nobody knows what a row of a dataset should say",
                ),
                ("droid kimi-code picoclaw vibe", "P5@2=held", "lines may not go"),
                ("sharegpt", "-", "calls have no ids"),
            ],
            ..STORY
        },
        Story {
            name: "p6-reused-id",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls")]),
                result("call_A", "a.txt"),
                said("One."),
                user("again"),
                asked(&[("call_A", "ls")]),
                result("call_A", "b.txt"),
                said("Two."),
            ],
            shows: "P6@5=asks",
            but: &[
                (
                    "ai-sdk-ui anthropic-dataset gemini-cli gemini-dataset openai-dataset opencode",
                    "P6@5=held",
                    "call and result cannot be told from the others in their record",
                ),
                ("sharegpt", "-", "calls have no ids"),
            ],
            ..STORY
        },
    ]
}

fn from_p6_p10_p11_calls() -> Vec<Story> {
    vec![
        Story {
            name: "p6-p10-p11-calls",
            arguments: "--allow P6",
            tells: vec![
                user("list files"),
                asked(&[("call_A", "ls")]),
                result("call_A", "a.txt"),
                said("One file."),
                user("and now?"),
                asked(&[("call_A", "ls ")]),
                result("call_A", "b.txt"),
                said("Another."),
                user("and then?"),
                asked(&[("", "ls")]),
            ],
            shows: "P6@5+6=mended P10@5=mended P11@9=reported",
            but: &[
                (
                    "ai-sdk-ui anthropic-dataset openai-dataset opencode",
                    "P6@5=held P10@5=mended P11@9=reported",
                    "as in the story of the reused id",
                ),
                (
                    "gemini-cli",
                    "P6@5=held P10@5=mended P10@5=mended",
                    "Gemini calls need no id, and the call is written twice",
                ),
                ("gemini-dataset", "P6@5=held P10@5=mended", "Gemini calls need no id"),
                ("gemini-contents", "P6@5+6=mended P10@5=mended", "Gemini calls need no id"),
                ("sharegpt", "-", "calls have no ids"),
            ],
            ..STORY
        },
        Story {
            name: "p8-result-before-call",
            tells: vec![
                user("list"),
                result("call_A", "a.txt"),
                asked(&[("call_A", "ls")]),
                user("well?"),
                said("One."),
            ],
            shows: "P8@1=mended",
            but: &[
                (
                    "claude-code codex copilot-cli kimi-code",
                    "",
                    "calls find their results by id wherever they are",
                ),
                ("ai-sdk-ui gemini-cli opencode", "-", "a result is in the record of its call"),
                (
                    "anthropic-dataset gemini-dataset openai-dataset sharegpt",
                    "P8@1=reported",
                    "nothing moves within a row of a dataset",
                ),
                ("droid picoclaw", "P8@1=held", "lines may not move"),
            ],
            ..STORY
        },
    ]
}

fn from_m7_said_again() -> Vec<Story> {
    vec![
        Story {
            name: "m7-said-again",
            tells: vec![
                user("go on"),
                user("go on"),
                asked(&[("call_A", "ls")]),
                result("call_A", "a.txt"),
                said("One file."),
            ],
            shows: "M7@1=reported",
            but: &[(
                "anthropic-dataset gemini-dataset openai-dataset sharegpt",
                "",
                "the order in a row of a dataset is not looked at",
            )],
            ..STORY
        },
        Story {
            name: "m8-no-user",
            tells: vec![asked(&[("call_A", "ls")]), result("call_A", "a.txt"), said("One file.")],
            shows: "M8@0=reported",
            but: &[(
                "anthropic-dataset openai-dataset sharegpt",
                "",
                "only Gemini wants a user in every row",
            )],
            ..STORY
        },
        Story {
            name: "ok-pending",
            tells: vec![user("list files"), asked(&[("call_A", "ls")])],
            but: &[("kimi-cli", "-", "without a settle time nobody is at work; a fixture has one")],
            ..STORY
        },
    ]
}
