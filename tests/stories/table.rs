//! The stories.

use super::spell::{Picture, StoryEvent};
use super::{Story, StoryDamage};

fn user(text: &str) -> StoryEvent {
    StoryEvent::User(text.into())
}

fn said(text: &str) -> StoryEvent {
    StoryEvent::Said(text.into())
}

fn asked(calls: &[(&'static str, &'static str)]) -> StoryEvent {
    StoryEvent::Asked(calls.to_vec())
}

fn result(id: &'static str, text: &str) -> StoryEvent {
    StoryEvent::Result(id, text.into())
}

/// What happens after a call and its result, by which the format is recognised.
fn behind_a_pair(more: Vec<StoryEvent>) -> Vec<StoryEvent> {
    [listed(), more].concat()
}

/// This many short lines, all different.
fn rows(count: usize) -> String {
    let rows: Vec<String> = (1..=count).map(|n| format!("row {n:03} done\\n")).collect();
    rows.concat()
}

/// A call of `ls` and its result.
fn listed() -> Vec<StoryEvent> {
    vec![user("list files"), asked(&[("call_A", "ls")]), result("call_A", "a.txt"), said("One file.")]
}

/// Formats whose lines are whole conversations.
const ROWS_OF_DATASETS: &str = "anthropic-dataset gemini-dataset openai-dataset sharegpt";

const SAID_TWICE: &str = "what the user says is written twice";
const ONE_OF_A_KIND: &str = "a line has one finding of this kind";
const EACH_VERSION: &str = "each version of the record has the results so far";
const WITHOUT_KIND: &str = "what a user says is a text, or pictures, whose kind is not named";
const WITH_ITS_CALL: &str = "a result is in the record of its call";
const UNKNOWN_ROW: &str = "nobody knows what a row of a dataset should say";
const MAY_SEND: &str = "whoever has the file may be about to send the result";
const ANSWERED_WHEN_READ: &str = "what reads it answers the call itself, or the call holds its result";
const IN_ITS_RECORD: &str = "call and result cannot be told from the others in their record";

/// Where a lost result of event 1 is not put in, or not there.
const LOST: &[(&str, &str, &str)] = &[
    (
        "ai-sdk-model autogen langchain llamaindex openai-chat openai-responses reasonix",
        "P1@1=asks",
        MAY_SEND,
    ),
    ("atif gemini-cli gemini-contents kimi-code opencode", "P1@1=reported", ANSWERED_WHEN_READ),
    ("anthropic-dataset gemini-dataset openai-dataset", "P1@1=reported", UNKNOWN_ROW),
    (
        "anthropic bedrock-converse droid pydantic-ai",
        "P1@1+2=mended",
        "the result goes into the message that follows",
    ),
    ("picoclaw vibe", "P1@1=held", "its agent counts the lines"),
    ("sharegpt", "", "calls have no ids"),
];

/// The same for two results.
const LOST_BOTH: &[(&str, &str, &str)] = &[
    (
        "ai-sdk-model autogen langchain llamaindex openai-chat openai-responses reasonix",
        "P1@1=asks P1@1=asks",
        MAY_SEND,
    ),
    ("atif gemini-cli gemini-contents kimi-code opencode", "P1@1=reported P1@1=reported", ANSWERED_WHEN_READ),
    ("anthropic-dataset gemini-dataset openai-dataset", "P1@1=reported P1@1=reported", UNKNOWN_ROW),
    (
        "anthropic bedrock-converse droid pydantic-ai",
        "P1@1+2=mended P1@1+2=mended",
        "the result goes into the message that follows",
    ),
    ("picoclaw vibe", "P1@1=held P1@1=held", "its agent counts the lines"),
    ("sharegpt", "", "calls have no ids"),
];

const STORY: Story =
    Story { name: "", arguments: "", tells: Vec::new(), damage: StoryDamage::None, shows: "", but: &[] };

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
        from_b3_nul_tail(),
        from_ok_characters_of_all_kinds(),
        from_ok_result_at_the_limit(),
        from_ok_tool_that_is_kept(),
        from_s14_cleared(),
        from_p1_lost_both(),
        from_p2_no_call_allowed(),
        from_ok_several_turns(),
        from_p10_name_too_long(),
        from_m1_empty_reply(),
        from_s4_mislabelled(),
        from_s4_too_large_in_a_result_only_images(),
        from_s1_bound_keep(),
        from_v2_unknown_part(),
        from_e1_refused_block(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn from_v2_unknown_part() -> Vec<Story> {
    vec![Story {
        name: "v2-unknown-part",
        arguments: "--only content",
        tells: behind_a_pair(vec![StoryEvent::Strange("look".into())]),
        shows: "V2@4=reported",
        but: &[
            ("ai-sdk-model", "-", "by such a part the file is not recognised"),
            ("autogen", "-", WITHOUT_KIND),
        ],
        ..STORY
    }]
}

/// With the error of an API that does not know a part.
const REFUSED: &str = "--only content --ignore V2 --allow E1 --error \
    messages.2.content.1:~Input~tag~'hologram'~does~not~match~any~of~the~expected~tags";

fn from_e1_refused_block() -> Vec<Story> {
    vec![Story {
        name: "e1-refused-block",
        arguments: REFUSED,
        tells: behind_a_pair(vec![StoryEvent::Strange("look".into())]),
        shows: "E1@4=mended",
        but: &[
            ("ai-sdk-model", "-", "by such a part the file is not recognised"),
            ("ai-sdk-ui atif opencode", "", WITH_ITS_CALL),
            ("autogen", "-", WITHOUT_KIND),
            ("copilot-cli", "", "what is attached is not in the message"),
        ],
        ..STORY
    }]
}

fn from_ok_nothing_wrong() -> Vec<Story> {
    vec![
        Story { name: "ok-nothing-wrong", tells: listed(), ..STORY },
        Story { name: "ok-crlf", tells: listed(), damage: StoryDamage::Crlf, ..STORY },
        Story {
            name: "b1-no-final-newline",
            tells: listed(),
            damage: StoryDamage::Open,
            shows: "B1@last=mended",
            ..STORY
        },
        Story {
            name: "b1-torn-line",
            tells: listed(),
            damage: StoryDamage::Torn,
            shows: "B1@last=mended",
            ..STORY
        },
        Story {
            name: "b2-two-on-a-line",
            tells: listed(),
            damage: StoryDamage::Glued(2),
            shows: "B2@2=mended",
            but: &[("picoclaw", "B2@2=held", "its agent counts the lines")],
            ..STORY
        },
        Story {
            name: "b9-b3-junk-and-nul-run",
            tells: listed(),
            damage: StoryDamage::Junk(1, 2),
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
            damage: StoryDamage::Bom,
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
                    SAID_TWICE,
                ),
                (
                    "ai-sdk-ui atif claude-stream-json gemini-cli goose-legacy kimi-cli-wire kiro opencode",
                    "B5@0=mended B11@2=reported B6@3=mended B8@4=mended",
                    "names and values of the result are not taken apart",
                ),
                (ROWS_OF_DATASETS, "-", "a raw tab hides the rest of a line, which is a whole conversation"),
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
                    ROWS_OF_DATASETS,
                    "L1@first=reported L5@first=reported L2@2=reported L3@2=reported",
                    "a row has no turns",
                ),
                ("cursor vscode-chat", "-", "no results are written down"),
            ],
            ..STORY
        },
        Story {
            name: "s1-long-result",
            arguments: "--cut-results 200",
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
            arguments: "--cut-turns 5000",
            tells: vec![
                user("read"),
                asked(&[("call_A", "read"), ("call_B", "read")]),
                result("call_A", &rows(200)),
                result("call_B", &rows(300)),
                said("Read."),
            ],
            shows: "S2@3=mended",
            but: &[(ROWS_OF_DATASETS, "", "a row has no turns")],
            ..STORY
        },
    ]
}

fn from_s3_long_user_text() -> Vec<Story> {
    vec![
        Story {
            name: "s3-long-user-text",
            arguments: "--max-summary-chars 200",
            tells: vec![
                user(&rows(30)),
                asked(&[("call_A", "ls")]),
                result("call_A", "a.txt"),
                said("One file."),
            ],
            shows: "S3@0=reported",
            but: &[(ROWS_OF_DATASETS, "", "nobody goes on with a row of a dataset")],
            ..STORY
        },
        Story {
            name: "s14-two-ages",
            arguments: "--stale-shorten-turns 2 --stale-clear-turns 4 --stale-min-chars 400 --stale-head-chars 120 --stale-tail-chars 60",
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
            but: &[(ROWS_OF_DATASETS, "", "a row has no turns")],
            ..STORY
        },
        Story {
            name: "s15-s16-crowded-and-long-reply",
            arguments: "--window-tokens 1000 --crowded-trim-percent 10 --crowded-max-chars 150 --crowded-end-chars 40 --crowded-keep-assistants 1 --cut-replies 150",
            tells: vec![
                user("list files"),
                asked(&[("call_A", "ls")]),
                result("call_A", &rows(40)),
                said(&rows(20)),
                user("thanks"),
                said("Bye."),
            ],
            shows: "S15@2=mended S16@3=mended",
            but: &[(ROWS_OF_DATASETS, "", "nobody goes on with a row of a dataset")],
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
            but: LOST,
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
            but: LOST,
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
                    "ai-sdk-model anthropic bedrock-converse gemini-contents autogen langchain llamaindex openai-chat openai-responses reasonix pydantic-ai",
                    "P2@1=asks",
                    "whoever has the file may put in the call",
                ),
                ("ai-sdk-ui atif gemini-cli opencode", "-", WITH_ITS_CALL),
                ("anthropic-dataset gemini-dataset openai-dataset", "P2@1=held", UNKNOWN_ROW),
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
                    "claude-code codex openai-responses copilot-cli kimi-code",
                    "",
                    "calls find their results by id wherever they are",
                ),
                ("ai-sdk-ui atif gemini-cli opencode", "-", WITH_ITS_CALL),
                (ROWS_OF_DATASETS, "P4@3=reported", "nothing moves within a row of a dataset"),
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
                    "ai-sdk-model anthropic bedrock-converse gemini-contents autogen langchain llamaindex openai-chat openai-responses reasonix pydantic-ai",
                    "P5@2=asks",
                    "whoever has the file may want both",
                ),
                ("ai-sdk-ui atif gemini-cli opencode", "-", WITH_ITS_CALL),
                ("anthropic-dataset gemini-dataset openai-dataset", "P5@2=held", UNKNOWN_ROW),
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
                    "ai-sdk-ui anthropic-dataset atif gemini-cli gemini-dataset openai-dataset opencode",
                    "P6@5=held",
                    IN_ITS_RECORD,
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
                    "ai-sdk-ui anthropic-dataset atif openai-dataset opencode",
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
                    "claude-code codex openai-responses copilot-cli kimi-code",
                    "",
                    "calls find their results by id wherever they are",
                ),
                ("ai-sdk-ui atif gemini-cli opencode", "-", WITH_ITS_CALL),
                (ROWS_OF_DATASETS, "P8@1=reported", "nothing moves within a row of a dataset"),
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
            but: &[(ROWS_OF_DATASETS, "", "the order in a row of a dataset is not looked at")],
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

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const GIF: &str = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";

/// A picture that is what it claims to be, and one that is not.
const PICTURE: Picture = ("image/png", PNG);
const MISLABELLED: Picture = ("image/png", GIF);

fn shown(text: &str, picture: Picture) -> StoryEvent {
    StoryEvent::Shown(text.into(), picture)
}

fn seen(id: &'static str, text: &str, picture: Picture) -> StoryEvent {
    StoryEvent::Seen(id, text.into(), picture)
}

fn thought(text: &str) -> StoryEvent {
    StoryEvent::Thought(text.into())
}

fn from_b3_nul_tail() -> Vec<Story> {
    vec![
        Story {
            name: "b3-nul-tail",
            tells: listed(),
            damage: StoryDamage::Tail,
            shows: "B3@nul=mended",
            ..STORY
        },
        Story { name: "ok-empty-line", tells: listed(), damage: StoryDamage::Blank(2), ..STORY },
        Story {
            name: "b4-not-utf8-in-a-result",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls")]),
                result("call_A", "a\u{f8ff}.txt"),
                said("One."),
            ],
            shows: "B4@2=mended",
            but: &[("cursor vscode-chat", "-", "no results are written down")],
            ..STORY
        },
        Story {
            name: "b5-half-pairs",
            tells: behind_a_pair(vec![
                user("list \\ud83d files"),
                said("\\ude00 none"),
                user("sure?"),
                said("Sure."),
            ]),
            shows: "B5@4=asks B5@5=asks",
            but: &[
                ("codex", "B5@4=asks B5@4=asks B5@5=asks", SAID_TWICE),
                (ROWS_OF_DATASETS, "B5@4=asks", ONE_OF_A_KIND),
            ],
            ..STORY
        },
        Story {
            name: "b6-line-separators",
            tells: behind_a_pair(vec![user("list\u{2029}files"), said("a.txt\u{2028}b.txt")]),
            shows: "B6@4=asks B6@5=asks",
            but: &[
                ("codex", "B6@4=asks B6@4=asks B6@5=asks", SAID_TWICE),
                (ROWS_OF_DATASETS, "B6@4=asks", ONE_OF_A_KIND),
            ],
            ..STORY
        },
        Story {
            name: "b11-nul-in-a-result",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls")]),
                result("call_A", "a\\u0000.txt"),
                said("One."),
            ],
            shows: "B11@2=asks",
            but: &[
                (
                    "ai-sdk-ui anthropic-dataset atif claude-stream-json gemini-cli gemini-dataset goose-legacy kimi-cli-wire kiro openai-dataset opencode sharegpt",
                    "B11@2=reported",
                    "names and values of the result are not taken apart",
                ),
                ("cursor vscode-chat", "-", "no results are written down"),
            ],
            ..STORY
        },
    ]
}

fn from_ok_characters_of_all_kinds() -> Vec<Story> {
    vec![Story {
        name: "ok-characters-of-all-kinds",
        tells: vec![
            user("\\ud83d\\ude00 \u{1f600} \u{65e5}\u{672c} \u{df} \\u00e9 \\\\ \\\" \\t \\n"),
            asked(&[("call_A", "ls")]),
            result("call_A", "\u{e9}\u{301}.txt\\n\\u001b[1mb\\u001b[0m"),
            said("\u{200d}\u{feff}\u{202e}."),
        ],
        ..STORY
    }]
}

fn from_ok_result_at_the_limit() -> Vec<Story> {
    vec![
        Story {
            name: "ok-result-at-the-limit",
            arguments: "--cut-results 520",
            tells: vec![
                user("build"),
                asked(&[("call_A", "make")]),
                result("call_A", &rows(40)),
                said("Built."),
            ],
            but: &[("sharegpt", "-", "the tags around a result count as well")],
            ..STORY
        },
        Story {
            name: "s1-two-of-three-results",
            arguments: "--cut-results 200",
            tells: vec![
                user("build"),
                asked(&[("call_A", "make"), ("call_B", "ls"), ("call_C", "make")]),
                result("call_A", &rows(40)),
                result("call_B", "a.txt"),
                result("call_C", &rows(50)),
                said("Built."),
            ],
            shows: "S1@2=mended S1@4=mended",
            but: &[("gemini-cli", "S1@2=mended S1@3=mended S1@4=mended S1@4=mended", EACH_VERSION)],
            ..STORY
        },
        Story {
            name: "s1-wide-characters",
            arguments: "--cut-results 200",
            tells: vec![
                user("build"),
                asked(&[("call_A", "make")]),
                result("call_A", &"\u{65e5}\u{672c}\u{1f600} \\u00e9\\n".repeat(60)),
                said("Built."),
            ],
            shows: "S1@2=mended",
            ..STORY
        },
        Story {
            name: "s1-limit-of-one-tool",
            arguments: "--cut-tool-results read=200",
            tells: vec![
                user("build"),
                asked(&[("call_A", "make"), ("call_B", "read")]),
                result("call_A", &rows(40)),
                result("call_B", &rows(40)),
                said("Built."),
            ],
            shows: "S1@3=mended",
            but: &[("sharegpt", "", "results do not name their tool")],
            ..STORY
        },
    ]
}

fn from_ok_tool_that_is_kept() -> Vec<Story> {
    vec![
        Story {
            name: "ok-tool-that-is-kept",
            arguments: "--cut-results 200 --keep-tool make",
            tells: vec![
                user("build"),
                asked(&[("call_A", "make")]),
                result("call_A", &rows(40)),
                said("Built."),
            ],
            but: &[("sharegpt", "-", "results do not name their tool")],
            ..STORY
        },
        Story {
            name: "ok-turn-under-the-limit",
            arguments: "--cut-turns 5000",
            tells: vec![
                user("read"),
                asked(&[("call_A", "read"), ("call_B", "read")]),
                result("call_A", &rows(100)),
                result("call_B", &rows(150)),
                said("Read."),
                user("again"),
                asked(&[("call_C", "read")]),
                result("call_C", &rows(150)),
                said("Read."),
            ],
            ..STORY
        },
        Story {
            name: "ok-turns-of-one-prompt",
            arguments: "--cut-turns 5000",
            tells: vec![
                user("read"),
                asked(&[("call_A", "read")]),
                result("call_A", &rows(250)),
                asked(&[("call_B", "read")]),
                result("call_B", &rows(250)),
                asked(&[("call_C", "read")]),
                result("call_C", &rows(250)),
                said("Read."),
            ],
            ..STORY
        },
        Story {
            name: "s16-long-reply",
            arguments: "--cut-replies 150",
            tells: behind_a_pair(vec![
                user("hi"),
                said(&rows(20)),
                user("thanks"),
                said("Bye."),
                user("go"),
                said("Gone."),
            ]),
            shows: "S16@5=mended",
            but: &[(ROWS_OF_DATASETS, "", "nobody goes on with a row of a dataset")],
            ..STORY
        },
    ]
}

fn from_s14_cleared() -> Vec<Story> {
    vec![
        Story {
            name: "s14-cleared",
            arguments: "--stale-clear-turns 2 --stale-min-chars 400",
            tells: vec![
                user("go"),
                asked(&[("call_A", "fetch")]),
                result("call_A", &rows(60)),
                said("a"),
                user("b"),
                said("b"),
                user("c"),
                asked(&[("call_B", "fetch")]),
                result("call_B", &rows(60)),
                said("c"),
            ],
            shows: "S14@2=mended",
            but: &[(ROWS_OF_DATASETS, "", "a row has no turns")],
            ..STORY
        },
        Story {
            name: "l3-two-results",
            arguments: "--max-result-chars=100",
            tells: vec![
                user("build"),
                asked(&[("call_A", "make"), ("call_B", "ls"), ("call_C", "make")]),
                result("call_A", &rows(40)),
                result("call_B", "a.txt"),
                result("call_C", &rows(50)),
                said("Built."),
            ],
            shows: "L3@2=reported L3@4=reported",
            but: &[("gemini-cli", "L3@2=reported L3@3=reported L3@4=reported L3@4=reported", EACH_VERSION)],
            ..STORY
        },
    ]
}

fn from_p1_lost_both() -> Vec<Story> {
    vec![
        Story {
            name: "p1-lost-both",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls"), ("call_B", "pwd")]),
                user("well?"),
                said("None."),
            ],
            shows: "P1@1=mended P1@1=mended",
            but: LOST_BOTH,
            ..STORY
        },
        Story {
            name: "p1-lost-allowed",
            arguments: "--allow P1",
            tells: vec![user("list"), asked(&[("call_A", "ls")]), user("well?"), said("Nothing.")],
            shows: "P1@1=mended",
            but: &[
                ("atif gemini-cli gemini-contents kimi-code opencode", "P1@1=reported", ANSWERED_WHEN_READ),
                ("anthropic-dataset gemini-dataset openai-dataset", "P1@1=reported", UNKNOWN_ROW),
                (
                    "anthropic bedrock-converse droid pydantic-ai",
                    "P1@1+2=mended",
                    "the result goes into the message that follows",
                ),
                ("picoclaw vibe", "P1@1=held", "its agent counts the lines"),
                ("sharegpt", "", "calls have no ids"),
            ],
            ..STORY
        },
        Story {
            name: "p1-lost-in-an-earlier-turn",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls")]),
                user("well?"),
                said("Nothing."),
                user("again"),
                asked(&[("call_B", "ls")]),
                result("call_B", "a.txt"),
                said("One."),
            ],
            shows: "P1@1=mended",
            but: LOST,
            ..STORY
        },
    ]
}

fn from_p2_no_call_allowed() -> Vec<Story> {
    vec![
        Story {
            name: "p2-no-call-allowed",
            arguments: "--allow P2",
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
                ("ai-sdk-ui atif gemini-cli opencode", "-", WITH_ITS_CALL),
                ("anthropic-dataset gemini-dataset openai-dataset", "P2@1=held", UNKNOWN_ROW),
                ("droid kimi-code picoclaw vibe", "P2@1=held", "lines may not go"),
                ("sharegpt", "-", "calls have no ids"),
            ],
            ..STORY
        },
        Story {
            name: "p5-twice-allowed",
            arguments: "--allow P5",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls")]),
                result("call_A", "a.txt"),
                result("call_A", "a.txt"),
                said("One file."),
            ],
            shows: "P5@3=mended",
            but: &[
                ("ai-sdk-ui atif gemini-cli opencode", "-", WITH_ITS_CALL),
                ("anthropic-dataset gemini-dataset openai-dataset", "P5@3=held", UNKNOWN_ROW),
                ("droid kimi-code picoclaw vibe", "P5@3=held", "lines may not go"),
                ("sharegpt", "-", "calls have no ids"),
            ],
            ..STORY
        },
        Story {
            name: "ok-results-in-another-order",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls"), ("call_B", "pwd")]),
                result("call_B", "/w"),
                result("call_A", "a.txt"),
                said("One file."),
            ],
            ..STORY
        },
    ]
}

fn from_ok_several_turns() -> Vec<Story> {
    vec![
        Story {
            name: "ok-several-turns",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls"), ("call_B", "pwd")]),
                result("call_A", "a.txt"),
                result("call_B", "/w"),
                asked(&[("call_C", "cat")]),
                result("call_C", "word"),
                said("One file."),
                user("thanks"),
                said("Any time."),
                user("again"),
                asked(&[("call_D", "ls")]),
                result("call_D", "a.txt"),
                said("Still one."),
            ],
            ..STORY
        },
        Story {
            name: "p9-no-arguments",
            tells: vec![
                user("list files"),
                asked(&[("call_A", "ls")]),
                result("call_A", "a.txt"),
                said("One."),
                user("again"),
                asked(&[("call_B", "ls")]),
                result("call_B", "a.txt"),
                said("Still one."),
            ],
            damage: StoryDamage::Bare(1),
            shows: "P9@1=mended",
            but: &[
                (
                    "codex copilot-cli gemini-cli gemini-contents gemini-dataset opencode qwen-code",
                    "-",
                    "whoever reads a call without arguments takes it for one with none",
                ),
                ("kimi-code", "-", "nobody knows how its loader reads such a call"),
                ("anthropic-dataset openai-dataset", "P9@1=mended P9@5=mended", "both calls are in one row"),
                ("sharegpt", "-", "calls are not taken apart"),
            ],
            ..STORY
        },
    ]
}

fn from_p10_name_too_long() -> Vec<Story> {
    vec![
        Story {
            name: "p10-name-too-long",
            tells: vec![
                user("list files"),
                asked(&[(
                    "call_A",
                    "a_tool_with_a_name_of_more_than_one_hundred_and_twenty_eight_characters_which_no_provider_of_any_model_takes_in_any_of_its_requests_",
                )]),
                result("call_A", "a.txt"),
                said("One file."),
            ],
            shows: "P10@1=reported",
            but: &[
                ("opencode", "P10@1=mended", "the owner of a database refuses the session for ever over it"),
                ("gemini-cli", "-", "one of two is in a version of the record that goes"),
                ("sharegpt", "-", "calls are not taken apart"),
            ],
            ..STORY
        },
        Story {
            name: "p6-same-id-in-one-message",
            tells: vec![
                user("list"),
                asked(&[("call_A", "ls"), ("call_A", "ls")]),
                result("call_A", "a.txt"),
                said("One."),
            ],
            shows: "P6@1=mended",
            but: &[
                (
                    "ai-sdk-ui anthropic-dataset gemini-dataset openai-dataset opencode",
                    "P6@1=held",
                    IN_ITS_RECORD,
                ),
                ("gemini-cli", "P6@2=held", IN_ITS_RECORD),
                (
                    "claude-code codex openai-responses kimi-code",
                    "P6@1=asks",
                    "each call has a line of its own, as if there were two requests",
                ),
                ("sharegpt", "-", "calls have no ids"),
            ],
            ..STORY
        },
    ]
}

fn from_m1_empty_reply() -> Vec<Story> {
    vec![
        Story {
            name: "m1-empty-reply",
            tells: behind_a_pair(vec![user("list"), said(""), user("well?"), said("None.")]),
            shows: "M1@5=mended M7@6=reported",
            but: &[
                (
                    "ai-sdk-ui atif copilot-cli kimi-code opencode pydantic-ai",
                    "M7@6=reported",
                    "an empty message is left out when it is sent",
                ),
                ("droid picoclaw vibe", "M1@5=held M7@6=reported", "lines may not go"),
                (
                    "ai-sdk-model anthropic bedrock-converse gemini-cli gemini-contents autogen langchain llamaindex openai-chat openai-responses reasonix",
                    "M1@5=asks M7@6=reported",
                    "whoever has the file may put in the words",
                ),
                ("anthropic-dataset gemini-dataset openai-dataset", "M1@5=reported", UNKNOWN_ROW),
                ("claude-code", "M1@5=mended", "two messages of the user are sent as one"),
                ("kimi-cli", "M2@5=mended M7@6=reported", "there is thinking beside the empty text"),
                ("sharegpt", "", "texts are not taken apart"),
            ],
            ..STORY
        },
        Story {
            name: "m1-empty-reply-allowed",
            arguments: "--allow M1 --allow M2",
            tells: behind_a_pair(vec![user("list"), said(""), user("well?"), said("None.")]),
            shows: "M1@5=mended M7@6=reported",
            but: &[
                (
                    "ai-sdk-ui atif copilot-cli kimi-code opencode pydantic-ai",
                    "M7@6=reported",
                    "an empty message is left out when it is sent",
                ),
                ("droid picoclaw vibe", "M1@5=held M7@6=reported", "lines may not go"),
                ("anthropic-dataset gemini-dataset openai-dataset", "M1@5=reported", UNKNOWN_ROW),
                ("claude-code", "M1@5=mended", "two messages of the user are sent as one"),
                ("kimi-cli", "M2@5=mended M7@6=reported", "there is thinking beside the empty text"),
                ("sharegpt", "", "texts are not taken apart"),
            ],
            ..STORY
        },
        Story {
            name: "d3-answered-twice",
            tells: behind_a_pair(vec![
                user("go on"),
                said("Done."),
                said("Done."),
                user("thanks"),
                said("Bye."),
            ]),
            shows: "",
            but: &[(ROWS_OF_DATASETS, "D3@6=reported", "who learns from a row expects turns that alternate")],
            ..STORY
        },
    ]
}

fn from_s4_mislabelled() -> Vec<Story> {
    vec![
        Story {
            name: "s4-mislabelled",
            tells: behind_a_pair(vec![
                shown("look", MISLABELLED),
                said("A cat."),
                user("go on"),
                said("Done."),
            ]),
            shows: "S4@4=mended",
            ..STORY
        },
        Story {
            name: "s4-mislabelled-in-a-result",
            tells: vec![
                user("look"),
                asked(&[("call_A", "view")]),
                seen("call_A", "seen", MISLABELLED),
                said("A cat."),
                user("go on"),
                said("Done."),
            ],
            shows: "S4@2=mended",
            ..STORY
        },
        Story {
            name: "s4-too-large",
            arguments: "--image-max-size 50",
            tells: behind_a_pair(vec![shown("look", PICTURE), said("A cat."), user("go on"), said("Done.")]),
            shows: "S4@4=asks",
            but: &[(
                "copilot-cli",
                "S4@4=held",
                "only a picture is read there, so no words can stand in its place",
            )],
            ..STORY
        },
        Story {
            name: "s4-too-large-only-images",
            arguments: "--only images --image-max-size 50",
            tells: behind_a_pair(vec![shown("look", PICTURE), said("A cat."), user("go on"), said("Done.")]),
            shows: "S4@4=mended",
            but: &[(
                "copilot-cli",
                "S4@4=held",
                "only a picture is read there, so no words can stand in its place",
            )],
            ..STORY
        },
    ]
}

fn from_s4_too_large_in_a_result_only_images() -> Vec<Story> {
    vec![
        Story {
            name: "s4-too-large-in-a-result-only-images",
            arguments: "--only images --image-max-size 50",
            tells: vec![
                user("look"),
                asked(&[("call_A", "view")]),
                seen("call_A", "seen", PICTURE),
                said("A cat."),
                user("go on"),
                said("Done."),
            ],
            shows: "S4@2=mended",
            but: &[(
                "copilot-cli",
                "S4@2=held",
                "only a picture is read there, so no words can stand in its place",
            )],
            ..STORY
        },
        Story {
            name: "s4-too-many",
            arguments: "--only images --image-max-count 2",
            tells: behind_a_pair(vec![
                shown("one", PICTURE),
                said("A cat."),
                shown("two", PICTURE),
                said("A cat."),
                shown("three", PICTURE),
                said("A cat."),
                user("go on"),
                said("Done."),
            ]),
            shows: "S4@4=mended",
            but: &[(
                "copilot-cli",
                "S4@4=held",
                "only a picture is read there, so no words can stand in its place",
            )],
            ..STORY
        },
        Story {
            name: "ok-pictures",
            tells: behind_a_pair(vec![shown("look", PICTURE), said("A cat."), user("go on"), said("Done.")]),
            ..STORY
        },
    ]
}

/// A long result before thinking that is signed over it.
fn bound() -> Vec<StoryEvent> {
    vec![
        user("build"),
        asked(&[("call_A", "make")]),
        result("call_A", &rows(40)),
        thought("Built."),
        user("and?"),
        said("Fine."),
    ]
}

fn from_s1_bound_keep() -> Vec<Story> {
    vec![
        Story {
            name: "s1-bound-keep",
            arguments: "--cut-results 200",
            tells: bound(),
            shows: "S1@2=held",
            ..STORY
        },
        Story {
            name: "s1-m4-bound-strip",
            arguments: "--cut-results 200 --thinking strip",
            tells: bound(),
            shows: "S1@2=mended M4@3=mended",
            but: &[("anthropic-dataset copilot-cli", "S1@2=held", "its thinking cannot be taken out")],
            ..STORY
        },
        Story {
            name: "s1-bound-ignore",
            arguments: "--cut-results 200 --thinking ignore",
            tells: bound(),
            shows: "S1@2=mended",
            ..STORY
        },
        Story {
            name: "s1-behind-thinking",
            arguments: "--cut-results 200",
            tells: vec![
                user("hi"),
                thought("Hello."),
                user("build"),
                asked(&[("call_A", "make")]),
                result("call_A", &rows(40)),
                said("Built."),
                user("and?"),
                said("Fine."),
            ],
            shows: "S1@4=mended",
            ..STORY
        },
    ]
}
