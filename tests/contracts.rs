//! docs/contracts.md and `tailor scan --for`: sessions for providers, rows for trainers.

use crate::support::{Dir, as_written, root};
use std::fmt::Write;
use transcript::Reading;
use transcript::contract::trainer::{self, TRAINERS, Trainer, judge_row};
use transcript::contract::{CONTRACTS, Clause, Contract, Reaction, Target, judge};

/// A contract as a section of the page. What it shares with others stands once, in a section of its own.
fn section(contract: &Contract, shared: &mut String) -> String {
    let names: Vec<String> = contract.providers.iter().map(|name| format!("`{name}`")).collect();
    let mut text = format!("\n## `{}`: {}\n\n", contract.name, contract.title);
    let mut told = Vec::new();
    if !names.is_empty() {
        told.push(format!("Also {}.", names.join(", ")));
    }
    if let Some(below) = contract.over {
        told.push(format!("Beside what `{}` refuses:", below.name));
        if shared.is_empty() {
            *shared = section(below, &mut String::new());
        }
    }
    if !told.is_empty() {
        write!(text, "{}\n\n", told.join(" ")).unwrap();
    }
    text.push_str("| accepts | known from |\n|---|---|\n");
    let mut row = |clause: &Clause, models: &str| {
        let (words, sure, source) = (clause.term.words(), clause.sure.word(), clause.source);
        writeln!(text, "| {models}{words} | {sure}: {source} |").unwrap();
    };
    contract.clauses.iter().for_each(|clause| row(clause, ""));
    for variant in contract.variants {
        let models = format!("`{}…`: ", variant.models[0]);
        variant.clauses.iter().for_each(|clause| row(clause, &models));
    }
    text
}

/// What a trainer asks for as a section of the page, or what all of them do. What is known from one source is one row.
fn rows_section(trainer: &Trainer) -> String {
    let mut text =
        format!("\n## `{}`: {}\n\n| accepts | known from |\n|---|---|\n", trainer.name, trainer.title);
    for same in trainer.clauses.chunk_by(|one, next| (one.sure, one.source) == (next.sure, next.source)) {
        let words: Vec<String> = same.iter().map(|clause| clause.term.words()).collect();
        writeln!(text, "| {} | {}: {} |", words.join("<br>"), same[0].sure.word(), same[0].source).unwrap();
    }
    text
}

/// Trainers, after what holds for all of them.
fn rows_sections() -> String {
    let of_all = TRAINERS[0].over.into_iter().chain(TRAINERS.iter().copied());
    of_all.map(rows_section).collect()
}

#[test]
fn the_page_lists_each_contract() {
    let path = root().join("docs/contracts.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mark = "<!-- generated -->\n";
    let (above, _) = page.split_once(mark).unwrap();
    let mut shared = String::new();
    let sections: String = CONTRACTS.iter().map(|contract| section(contract, &mut shared)).collect();
    as_written(&path, &format!("{above}{mark}{shared}{sections}{ROWS}{}", rows_sections()));
}

const ROWS: &str = "\n# What trainers accept as a row\n\n`tailor scan --for TRAINER FILE` names the rows that a trainer would refuse or drop, and where in them the reason is.\n";

/// What a provider objects to in a session: group, what it is about, line.
fn objections(text: &str, provider: &str) -> Vec<(&'static str, &'static str, u64)> {
    let target = Target::read(provider).unwrap();
    let verdict = judge(&Reading::new(&text.as_bytes()).unwrap(), &target).unwrap();
    let verdict = verdict.unwrap_or_else(|| panic!("no session: {text}"));
    verdict.objections.iter().map(|own| (own.reaction.word(), own.about, own.line)).collect()
}

const CALL: &str = r#"{"role":"user","content":"go"}
{"role":"assistant","content":null,"tool_calls":[{"id":"functions.ls:0","type":"function","function":{"name":"ls","arguments":"ARGUMENTS"}}]}
{"role":"tool","tool_call_id":"functions.ls:0","content":"a.txt"}
{"role":"user","content":"and now?"}
"#;

#[test]
fn a_session_that_one_provider_wrote_another_refuses() {
    let whole = CALL.replace("ARGUMENTS", "{}");
    assert_eq!(objections(&whole, "openai-chat"), []);
    assert_eq!(objections(&whole, "kimi"), [("may-be-refused", "reasoning", 2)]);
    assert_eq!(objections(&whole, "anthropic"), [("refused", "call-ids", 2)]);
    assert_eq!(objections(&whole, "gemini"), [("may-be-refused", "earlier-call-signatures", 2)]);
    let mistral = [("may-be-refused", "call-ids", 2), ("may-be-refused", "user-after-result", 4)];
    assert_eq!(objections(&whole, "mistral"), mistral);
    // Since the user last spoke there is no call.
    let open = whole.lines().take(3).collect::<Vec<_>>().join("\n");
    assert_eq!(objections(&open, "gemini"), [("refused", "call-signatures", 2)]);
}

#[test]
fn arguments_are_judged_as_the_provider_reads_them() {
    for (arguments, refused_by) in [
        ("{}", &[][..]),
        (r#"{\"a\":1}"#, &[][..]),
        ("[]", &["gemini", "bedrock", "sglang"][..]),
        (r#"{\"a\":"#, &["gemini", "bedrock", "sglang", "ollama"]),
    ] {
        let text = CALL.replace("ARGUMENTS", arguments);
        for provider in ["gemini", "bedrock", "sglang", "ollama", "openai", "openai-chat"] {
            let found = objections(&text, provider)
                .iter()
                .any(|(group, about, _)| *about == "arguments" && *group == "refused");
            assert_eq!(found, refused_by.contains(&provider), "{arguments} for {provider}");
        }
    }
}

const CODEX: &str = r#"{"timestamp":"2026-11-01T10:00:00.000Z","type":"session_meta","payload":{"id":"0199a213-81c0-7800-8aa1-bbab2a035a53","timestamp":"2026-11-01T10:00:00.000Z","cwd":"/w","originator":"codex","cli_version":"0.169.0","model_provider":"openai"}}
{"timestamp":"2026-11-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}
{"timestamp":"2026-11-01T10:00:02.000Z","type":"response_item","payload":{"type":"message","id":"ID","role":"assistant","content":[{"type":"output_text","text":"ok"}]}}
"#;

#[test]
fn the_id_of_an_item_begins_with_its_kind() {
    for (id, refused) in
        [("msg_1", false), ("review_rollout_user", true), (&*format!("msg_{}", "a".repeat(61)), true)]
    {
        let found = objections(&CODEX.replace("ID", id), "codex");
        assert_eq!(found.contains(&("may-be-refused", "item-ids", 3)), refused, "{id}: {found:?}");
    }
}

#[test]
fn arguments_that_are_no_json_by_design_are_no_objection() {
    let call = |kind: &str, key: &str| {
        let head = CODEX.lines().take(2).collect::<Vec<_>>().join("\n");
        let call = format!(
            r#"{{"timestamp":"2026-11-01T10:00:02.000Z","type":"response_item","payload":{{"type":"{kind}","call_id":"c1","name":"apply_patch","{key}":"*** Begin Patch"}}}}"#
        );
        let output = format!(
            r#"{{"timestamp":"2026-11-01T10:00:03.000Z","type":"response_item","payload":{{"type":"{kind}_output","call_id":"c1","output":"ok"}}}}"#
        );
        objections(&[head, call, output, String::new()].join("\n"), "anthropic")
    };
    assert_eq!(call("custom_tool_call", "input"), []);
    assert_eq!(call("function_call", "arguments"), [("refused", "arguments", 3)]);
}

#[test]
fn an_image_that_is_none_is_not_what_pi_takes_out_for_text_models() {
    let session = r#"{"type":"session","version":3,"id":"s","cwd":"/w"}
{"type":"message","id":"aaaa1","parentId":null,"message":{"role":"user","content":[{"type":"text","text":"go"},{"type":"image","data":"PGh0bWw+","mimeType":"image/png"}]}}
"#;
    assert_eq!(objections(session, "anthropic"), [("refused", "images", 2)]);
    assert_eq!(objections(session, "deepseek"), [("mended", "no-images", 2)]);
}

#[test]
fn who_answered_is_told_and_what_it_signed_is_lost() {
    let session = r#"{"type":"session","version":3,"id":"s","cwd":"/w"}
{"type":"message","id":"aaaa1","parentId":null,"message":{"role":"user","content":"go"}}
{"type":"message","id":"aaaa2","parentId":"aaaa1","message":{"role":"assistant","provider":"anthropic","model":"claude-opus-4-6","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"c2lnbmF0dXJl"},{"type":"text","text":"one"}],"stopReason":"stop"}}
{"type":"message","id":"aaaa3","parentId":"aaaa2","message":{"role":"user","content":"on"}}
{"type":"message","id":"aaaa4","parentId":"aaaa3","message":{"role":"assistant","provider":"openai","model":"gpt-5","content":[{"type":"text","text":"two"}],"stopReason":"stop"}}
"#;
    assert_eq!(objections(session, "anthropic"), []);
    assert_eq!(objections(session, "openai"), [("lost", "thinking", 3)]);
    let target = Target::read("gemini").unwrap();
    let verdict = judge(&Reading::new(&session.as_bytes()).unwrap(), &target).unwrap().unwrap();
    let who: Vec<_> =
        verdict.recorded.iter().map(|own| (own.provider.as_str(), own.contract, own.lines)).collect();
    let wanted = [("anthropic", Some("anthropic"), [3, 3]), ("openai", Some("openai-responses"), [5, 5])];
    assert_eq!(who, wanted);
    assert!(verdict.objections.iter().all(|own| own.reaction == Reaction::Loses));
}

#[test]
fn what_the_agent_leaves_out_is_no_objection() {
    let bare = r#"{"role":"user","content":"go"}
{"role":"assistant","content":[{"type":"text","text":" "}]}
{"role":"user","content":"go"}
"#;
    let wanted = [("refused", "blank-text", 2), ("may-be-refused", "empty-message", 2)];
    assert_eq!(objections(bare, "anthropic"), wanted);
    let pi = r#"{"type":"session","version":3,"id":"s","cwd":"/w"}
{"type":"message","id":"aaaa1","parentId":null,"message":{"role":"user","content":"go"}}
{"type":"message","id":"aaaa2","parentId":"aaaa1","message":{"role":"assistant","content":[{"type":"text","text":" "}],"stopReason":"stop"}}
"#;
    assert_eq!(objections(pi, "anthropic"), [("mended", "blank-text", 3), ("mended", "empty-message", 3)]);
}

const USER: &str = r#"{"role":"user","content":"go"}"#;
const ASKS: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#;
const GIVES: &str = r#"{"role":"tool","tool_call_id":"a","content":"a.txt"}"#;
const SAYS: &str = r#"{"role":"assistant","content":"ok"}"#;
const RULES: &str = r#"{"role":"system","content":"be brief"}"#;
const SHOWS: &str = r#"{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lGODlhAQABAAAAACw="}}]}"#;

#[test]
fn pairs_order_and_names_are_judged() {
    let dotted = ASKS.replace("\"ls\"", "\"fs.ls\"");
    let long = ASKS.replace("\"ls\"", &format!("{:?}", "l".repeat(65)));
    let twice =
        ASKS.replace("]}", r#",{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#);
    for (lines, provider, wanted) in [
        (&[USER, ASKS, USER][..], "anthropic", ("may-be-refused", "open-call", 2)),
        (&[USER, GIVES, SAYS], "anthropic", ("may-be-refused", "lone-result", 2)),
        (&[USER, ASKS, GIVES, GIVES, SAYS], "openai-chat", ("may-be-refused", "lone-result", 4)),
        (&[USER, ASKS, GIVES, ASKS, GIVES], "anthropic", ("refused", "repeated-call-id", 4)),
        (&[USER, &twice, GIVES, GIVES], "anthropic", ("refused", "repeated-call-id", 2)),
        (&[USER, &dotted, GIVES], "anthropic", ("refused", "tool-names", 2)),
        (&[USER, &long, GIVES], "openai-chat", ("refused", "tool-names", 2)),
        (&[ASKS, GIVES, USER], "gemini", ("may-be-refused", "first-message", 1)),
        (&[USER, USER], "gemini", ("may-be-refused", "same-role-again", 2)),
        (&[USER, SAYS, RULES, USER], "mistral", ("refused", "system-inside", 3)),
        (&[RULES, ASKS, GIVES], "qwen", ("may-be-refused", "no-user", 1)),
        (&[USER, ASKS, SHOWS], "openai-chat", ("refused", "images-in-results", 3)),
        (&[USER, ASKS, SHOWS], "xai", ("refused", "images", 3)),
    ] {
        let text = [&lines.join("\n"), "\n"].concat();
        let found = objections(&text, provider);
        assert!(found.contains(&wanted), "{provider} {wanted:?}: {found:?}\n{text}");
        let about = |line: &[&str]| objections(&[&line.join("\n"), "\n"].concat(), provider);
        assert!(about(&[RULES, USER, SAYS]).is_empty() && about(&[USER, SAYS]).is_empty(), "{provider}");
    }
}

#[test]
fn a_call_that_the_agent_answers_itself_is_not_open() {
    let pi = r#"{"type":"session","version":3,"id":"s","cwd":"/w"}
{"type":"message","id":"aaaa1","parentId":null,"message":{"role":"user","content":"go"}}
{"type":"message","id":"aaaa2","parentId":"aaaa1","message":{"role":"assistant","content":[{"type":"toolCall","id":"toolu_1","name":"ls","arguments":{}}],"stopReason":"toolUse"}}
{"type":"message","id":"aaaa3","parentId":"aaaa2","message":{"role":"user","content":"on"}}
"#;
    assert_eq!(objections(pi, "anthropic"), []);
}

#[test]
fn scan_for_a_provider_prints_the_groups_and_fails_if_one_is_certain() {
    let dir = Dir::new();
    let file = dir.path("s.jsonl");
    std::fs::write(&file, CALL.replace("ARGUMENTS", "[]")).unwrap();
    let file = file.to_str().unwrap();
    let refused = dir.tailor(&["scan", "--for", "anthropic/claude-opus-5", file]);
    assert_eq!(refused.status, 1, "{}", refused.stderr);
    let text = refused.text();
    assert!(text.contains("Anthropic Messages would refuse this session (4 messages)"), "{text}");
    assert!(text.contains("    line 2: arguments that are no JSON object ["), "{text}");
    let chat = dir.tailor(&["scan", "--for", "openai-chat", "--json", file]);
    let line: serde_json::Value = serde_json::from_str(&chat.text()).unwrap();
    assert_eq!((chat.status, &line["verdict"]), (0, &"no-objection".into()));
    let unknown = dir.tailor(&["scan", "--for", "nobody", file]);
    assert!(
        unknown.status == 2 && unknown.stderr.contains("known are anthropic, openai-chat"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn what_is_too_large_is_refused() {
    let image = |bytes: usize| {
        let data = ["R0lGODlhAQABAAAAACw=", &"A".repeat(bytes - 20)].concat();
        let image = format!(r#"{{"type":"image_url","image_url":{{"url":"data:image/gif;base64,{data}"}}}}"#);
        format!("{{\"role\":\"user\",\"content\":[{image}]}}\n{SAYS}\n")
    };
    assert_eq!(objections(&image(5 << 20), "anthropic"), []);
    assert_eq!(objections(&image((5 << 20) + 1), "anthropic"), [("may-be-refused", "image-size", 1)]);
    let long = |bytes: usize| format!("{USER}\n{}\n", SAYS.replace("ok", &"a".repeat(bytes)));
    assert_eq!(objections(&long(31 << 20), "anthropic"), []);
    assert_eq!(objections(&long(33 << 20), "anthropic"), [("refused", "request-size", 1)]);
}

#[test]
fn a_message_that_the_agent_wrote_itself_is_nobodys_answer() {
    let row = |id: &str, parent: &str, role: &str, model: &str| {
        let message = match role {
            "user" => r#"{"role":"user","content":"go"}"#.to_string(),
            _ => format!(
                r#"{{"id":"m{id}","type":"message","role":"assistant","model":"{model}","content":[{{"type":"text","text":"ok"}}]}}"#
            ),
        };
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"type":"{role}","message":{message},"uuid":"{id}","timestamp":"2026-11-01T10:00:00.000Z","sessionId":"s","version":"2.1.330","cwd":"/w"}}"#
        )
    };
    let rows = [
        row("a", "null", "user", ""),
        row("b", "\"a\"", "assistant", "claude-opus-4-6"),
        row("c", "\"b\"", "user", ""),
        row("d", "\"c\"", "assistant", "<synthetic>"),
    ];
    let text = [rows.join("\n"), "\n".to_string()].concat();
    let target = Target::read("anthropic").unwrap();
    let verdict = judge(&Reading::new(&text.as_bytes()).unwrap(), &target).unwrap().unwrap();
    let who: Vec<_> = verdict.recorded.iter().map(|own| (own.model.as_str(), own.lines)).collect();
    assert_eq!(who, [("claude-opus-4-6", [2, 2])]);
}

const PAIR: &str = r#""preferred_output":[{"role":"assistant","content":"a"}],"non_preferred_output":[{"role":"assistant","content":"b"}]"#;

/// A row of messages.
fn row_of(messages: &[&str]) -> String {
    format!("{{\"messages\":[{}]}}", messages.join(","))
}

/// A message of `ShareGPT`.
fn turn(from: &str, value: &str) -> String {
    format!(r#"{{"from":"{from}","value":"{value}"}}"#)
}

/// A row of `ShareGPT`.
fn shared(turns: &[String]) -> String {
    format!("{{\"conversations\":[{}]}}", turns.join(","))
}

/// A row that is a pair of answers.
fn pair_to(messages: &[&str]) -> String {
    format!("{{\"input\":{},{PAIR}}}", row_of(messages))
}

/// The row with what a column holds as a text.
fn as_text(row: &str, column: &str) -> String {
    let row: serde_json::Value = serde_json::from_str(row).unwrap();
    serde_json::json!({column: row[column].to_string()}).to_string()
}

/// A message with a field before the others.
fn with_field(message: &str, field: &str) -> String {
    message.replace("{\"role\"", &format!("{{{field},\"role\""))
}

/// Group, what it is about, and the place in the row.
type Wanted = (&'static str, &'static str, &'static str);

#[track_caller]
fn objects(cases: &[(String, &str, Wanted)]) {
    for (row, trainer, wanted) in cases {
        let found = judge_row(row.as_bytes(), trainer::find(trainer).unwrap());
        let told: Vec<_> =
            found.iter().map(|own| (own.reaction.word(), own.about, own.place.as_str())).collect();
        assert!(told.contains(wanted), "{trainer} {wanted:?}: {told:?}\n{row}");
    }
}

#[test]
fn trainers_that_are_hosted_object_and_say_where() {
    let odd = ASKS.replace("\"{}\"", "\"{\"");
    let says = |role: &str| format!("{{\"role\":\"{role}\",\"content\":\"x\"}}");
    let last = "[{\"role\":\"assistant\",\"content\":\"b\"}]";
    let [human, gpt] = [turn("human", "hi"), turn("gpt", "ok")];
    objects(&[
        (shared(&[human.clone(), gpt.clone()]), "openai-finetune", ("refused", "columns", "")),
        (row_of(&[USER]), "openai-finetune", ("refused", "no-assistant", "messages")),
        (
            row_of(&[USER, SAYS, USER]),
            "openai-finetune",
            ("may-be-refused", "last-message", "messages[2].role"),
        ),
        (row_of(&[&says("narrator"), SAYS]), "openai-finetune", ("refused", "roles", "messages[0].role")),
        (
            row_of(&[USER, &with_field(SAYS, "\"weight\":2")]),
            "openai-finetune",
            ("refused", "weight", "messages[1].weight"),
        ),
        (
            row_of(&[&with_field(USER, "\"weight\":1"), SAYS]),
            "openai-finetune",
            ("may-be-refused", "weight-of-others", "messages[0].weight"),
        ),
        (
            row_of(&[USER, &with_field(SAYS, "\"id\":1")]),
            "openai-finetune",
            ("refused", "fields", "messages[1].id"),
        ),
        (
            row_of(&[r#"{"role":"user","content":""}"#, SAYS]),
            "openai-finetune",
            ("refused", "content", "messages[0].content"),
        ),
        (row_of(&[USER, ASKS, GIVES, SAYS]), "openai-finetune", ("may-be-refused", "tools", "messages[1]")),
        (
            row_of(&[USER, &odd, GIVES, SAYS]),
            "openai-finetune",
            ("may-be-refused", "arguments", "messages[1].tool_calls[0].function.arguments"),
        ),
        (pair_to(&[USER, SAYS]), "together", ("refused", "prompt", "input.messages[1].role")),
        (pair_to(&[USER]).replace(last, "[]"), "together", ("refused", "list", "non_preferred_output")),
        (
            pair_to(&[USER]).replace("[{\"role\":\"assistant\",\"content\":\"b\"}]", "\"b\""),
            "together",
            ("refused", "answers", "non_preferred_output"),
        ),
        (
            row_of(&[USER, SAYS]).replace("{\"messages\"", "{\"id\":1,\"messages\""),
            "together",
            ("refused", "other-columns", "id"),
        ),
        (r#"{"prompt":[1],"completion":"a"}"#.into(), "together", ("refused", "texts", "prompt")),
        (row_of(&[SAYS]), "together", ("may-be-refused", "first-message", "messages[0].role")),
        (row_of(&[USER, RULES, SAYS]), "fireworks", ("refused", "system-inside", "messages[1].role")),
    ]);
}

#[test]
fn trainers_that_run_anywhere_object_and_say_where() {
    let odd = ASKS.replace("\"{}\"", "\"{\"");
    let [human, gpt, calls] = [turn("human", "hi"), turn("gpt", "ok"), turn("function_call", "ls")];
    let ranked = r#"{"conversations":[{"from":"human","value":"hi"}],"chosen":{"from":"human","value":"a"},"rejected":{"from":"gpt","value":"b"}}"#;
    objects(&[
        (
            shared(&[human.clone(), human.clone(), gpt.clone()]),
            "llamafactory",
            ("refused", "turns", "conversations[1].from"),
        ),
        (
            shared(&[human.clone(), gpt.clone(), human.clone()]),
            "llamafactory",
            ("refused", "turns", "conversations[2].from"),
        ),
        (
            shared(&[human.clone(), calls.clone()]),
            "llamafactory",
            ("may-be-refused", "calls", "conversations[1]"),
        ),
        (
            shared(&[human.clone(), gpt.clone()]).replace("human", "hummany"),
            "llamafactory",
            ("refused", "roles", "conversations[0].from"),
        ),
        (ranked.into(), "llamafactory", ("refused", "answers", "chosen")),
        (as_text(&row_of(&[USER, SAYS]), "messages"), "trl", ("refused", "list", "messages")),
        (as_text(&row_of(&[USER, SAYS]), "messages"), "verl", ("refused", "list", "messages")),
        (r#"{"messages":"['a']"}"#.into(), "axolotl", ("refused", "list", "messages")),
        (
            row_of(&[USER, &odd, GIVES, SAYS]),
            "axolotl",
            ("refused", "arguments", "messages[1].tool_calls[0].function.arguments"),
        ),
        (
            r#"{"messages":[{"role":"assistant"}]}"#.into(),
            "verl",
            ("refused", "content", "messages[0].content"),
        ),
        (r#"{"messages":[{"content":"a"}]}"#.into(), "verl", ("refused", "roles", "messages[0]")),
        (
            row_of(&[USER, r#"{"role":"assistant","content":null}"#]),
            "swift",
            ("refused", "content", "messages[1].content"),
        ),
        (
            row_of(&[USER, SAYS]).replace("]}", "],\"rejected_response\":\"ok\"}"),
            "swift",
            ("refused", "rejected", "rejected_response"),
        ),
        ("[1]".into(), "trl", ("refused", "row", "")),
    ]);
}

#[test]
fn what_a_trainer_takes_is_no_objection() {
    let tools = r#"{"tools":[{"type":"function","function":{"name":"ls"}}],"messages""#;
    let chat =
        [row_of(&[RULES, USER, SAYS]), row_of(&[USER, ASKS, GIVES, SAYS]).replace("{\"messages\"", tools)];
    let share =
        r#"{"conversations":[{"from":"human","value":"hi"},{"from":"gpt","value":"ok"}]}"#.to_string();
    let pair = format!("{{\"input\":{},{PAIR}}}", row_of(&[USER]));
    let both = r#"{"chosen":[{"role":"user","content":"hi"},{"role":"assistant","content":"a"}],"rejected":[{"role":"user","content":"hi"},{"role":"assistant","content":"b"}]}"#;
    let written = serde_json::json!({"messages": format!("[{USER},{SAYS}]")}).to_string();
    for trainer in TRAINERS {
        let mut rows = chat.to_vec();
        match trainer.name {
            "openai-finetune" | "together" | "fireworks" => rows.push(pair.clone()),
            "trl" => rows.push(both.to_string()),
            "llamafactory" => rows.push(share.clone()),
            "axolotl" | "swift" => rows.extend([share.clone(), written.clone()]),
            _ => {}
        }
        for row in rows {
            assert_eq!(judge_row(row.as_bytes(), trainer), [], "{}: {row}", trainer.name);
        }
    }
}

#[test]
fn scan_for_a_trainer_names_rows_and_columns() {
    let dir = Dir::new();
    let file = dir.path("rows.jsonl");
    let rows = [row_of(&[USER, SAYS]), row_of(&[USER]), String::new(), row_of(&[USER])];
    std::fs::write(&file, [rows.join("\n"), "\n".into()].concat()).unwrap();
    let scan = |words: &[&str]| dir.tailor(&[&["scan", "--for"], words, &[file.to_str().unwrap()]].concat());
    let told = scan(&["openai-finetune"]);
    let text = told.text();
    assert_eq!(told.status, 1, "{text}");
    assert!(text.contains("OpenAI fine-tuning would refuse or drop 2 of 3 rows"), "{text}");
    assert!(text.contains("    rows 2, 4: messages: no assistant message ["), "{text}");
    let line: serde_json::Value = serde_json::from_str(&scan(&["verl", "--json"]).text()).unwrap();
    let wanted = serde_json::json!({"group": "may-be-refused", "about": "no-assistant", "rows": [2, 4]});
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(&line["row_objections"][0][key], value, "{line}");
    }
    assert_eq!(
        (&line["type"], &line["verdict"], &line["rows_total"]),
        (&"rows".into(), &"may-be-refused".into(), &3.into())
    );
    // A provider of the same name judges sessions; rows are its trainer's.
    assert!(scan(&["together"]).text().contains("Together fine-tuning"));
    assert!(scan(&["anthropic"]).stderr.contains("not those of one session"));
    std::fs::write(&file, [USER, SAYS, ""].join("\n")).unwrap();
    assert!(scan(&["together"]).text().contains("OpenAI Chat Completions has no known objection"));
    std::fs::write(&file, format!("[\n{},\n{}]\n", row_of(&[USER, SAYS]), row_of(&[USER]))).unwrap();
    assert!(scan(&["openai-finetune"]).text().contains("    row 2: messages: no assistant message ["));
    std::fs::write(&file, format!("[\n{},\n{}", row_of(&[USER, SAYS]), row_of(&[USER]))).unwrap();
    assert!(scan(&["trl"]).stderr.contains("an array that is torn or too long"));
}
