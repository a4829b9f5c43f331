//! docs/contracts.md and `tailor scan --for`.

use crate::support::{as_written, root};
use std::fmt::Write;
use transcript::Reading;
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

#[test]
fn the_page_lists_each_contract() {
    let path = root().join("docs/contracts.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mark = "<!-- generated -->\n";
    let (above, _) = page.split_once(mark).unwrap();
    let mut shared = String::new();
    let sections: String = CONTRACTS.iter().map(|contract| section(contract, &mut shared)).collect();
    as_written(&path, &format!("{above}{mark}{shared}{sections}"));
}

/// What a provider objects to in a session: group, what it is about, line.
fn objections(text: &str, provider: &str) -> Vec<(&'static str, &'static str, u64)> {
    let target = Target::read(provider).unwrap();
    let verdict = judge(&Reading::new(&text.as_bytes()).unwrap(), &target).unwrap().unwrap();
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
