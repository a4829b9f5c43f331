//! What a text is about, in the forms in which users pass it. The collection is in `tests/errors/`.

use super::{Blame, FAMILIES, find, read};
use alloc::vec::Vec;

#[track_caller]
fn is(text: &str, code: &str) {
    let found = find(text);
    assert!(found.is_some_and(|found| found.codes.contains(&code)), "{text}: {found:?}");
}

/// Texts from users' reports and providers' documentation, and the rules they are about.
#[test]
fn each_row_of_the_table_is_known() {
    for (texts, codes) in [
        (
            "`tool_use` ids were found without `tool_result`|tool use concurrency issues|must be followed by tool messages|insufficient tool messages|No tool output found for function call",
            "P1 P4 P7",
        ),
        (
            "unexpected `tool_use_id` found in `tool_result`|No tool call found for function call output|tool id(call_1) not found (2013)|tool_call_id is not found|must be a response to a preceding message with 'tool_calls'",
            "P2 P3",
        ),
        ("each tool_use must have a single result", "P5"),
        ("`tool_use` ids must be unique|Duplicate value for tool_call_id", "P6"),
        ("Duplicate value for 'tool_call_id' of 'call_a' in message with role 'tool'", "P5 P6"),
        ("Duplicate item found with id fc_1. Remove duplicate items from your input and try again.", "P5 P6"),
        ("Expected toolResult blocks at messages.4.content for the following Ids: a, but found: b", "P7"),
        (
            "tool_use.input: Field required|Input should be a valid dictionary|invalid function arguments json string",
            "P9",
        ),
        (".name': string does not match pattern", "P10"),
        (
            "tool_use.id: String should match pattern|call_id': string too long|must be a-z, A-Z, 0-9, with a length of 9|tool call id is invalid",
            "P11",
        ),
        (
            "text content blocks must be non-empty|text content blocks must contain non-whitespace text|role 'assistant' must not be empty|Improperly formed request|cache_control cannot be set for empty text blocks",
            "M2",
        ),
        (
            "`thinking` blocks in the latest assistant message cannot be modified|Invalid `signature` in `thinking`|final block in an assistant message cannot be `thinking`",
            "M3",
        ),
        ("bound to a different conversation|prefix_mismatch_behavior", "M4"),
        (
            "without its required following item|without its required 'reasoning' item|Item with id 'rs_1' not found|encrypted content gAAA could not be verified|array too long. Expected an array with maximum length 0",
            "M5",
        ),
        ("Corrupted thought signature|missing a thought_signature", "M6"),
        ("roles must alternate|incorrect role information", "M7"),
        ("does not support assistant message prefill|No user query found", "M8"),
        ("prompt injection patterns detected|blocked by content filtering", "M9"),
        (
            "prompt is too long|Context overflow|Summary unavailable due to context limits|Auto-compaction could not recover",
            "S1 S2 S3",
        ),
        (
            "image dimensions exceed|many-image requests|exceeds 5 MB maximum|request_too_large|413|Request Entity Too Large|media_unstrippable",
            "S4",
        ),
        (
            "Invalid string length|Cannot create a string longer than 0x1fffffe8|heap out of memory|token too long",
            "S10",
        ),
        (
            "Unexpected end of JSON|Unterminated string|Expected ':' before value|Extra data: line 1 column",
            "B1 B2 B6 B8",
        ),
        ("did not contain valid UTF-8|no low surrogate in string|surrogates not allowed", "B4 B5"),
        ("session file changed while embedded prompt lock was released", "C1"),
        ("session file locked (timeout", "C3"),
        ("No space left on device|ENOSPC", "C4"),
        ("expected ordinal 24775, got 24774|missing an ordinal", "T7"),
        ("Session 4f2a not found on disk|No conversation found|No saved session found", "B1 B10 S11 C8 C9"),
    ] {
        for text in texts.split('|') {
            codes.split(' ').for_each(|code| is(text, code));
        }
    }
}

#[test]
fn ids_numbers_quotes_and_what_stands_around_do_not_matter() {
    for (text, code) in [
        (
            r#"API Error: 400 {"type":"error","error":{"type":"invalid_request_error","message":"messages.12: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01A, toolu_02B. Each `tool_use` block must…"}}"#,
            "P1",
        ),
        (
            "Error: 400 An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_X",
            "P1",
        ),
        ("messages.7.content.413: unexpected tool_use_id found in tool_result blocks: toolu_413", "P2"),
        ("Messages with role 'tool' must be a response to a preceeding message with 'tool_calls'", "P2"),
        (
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set …",
            "M4",
        ),
        ("Invalid \\\"signature\\\" in \\\"thinking\\\" block", "M3"),
        (
            "messages.3: all messages must have non-empty content except for the optional final assistant message",
            "M1",
        ),
        ("the message at position 88 with role 'assistant' must not be empty", "M1"),
        ("MESSAGES: TEXT CONTENT\n BLOCKS MUST BE  NON-EMPTY", "M2"),
        (
            "messages.9.content.2.image.source.base64: image exceeds 5 MB maximum: 7340032 bytes > 5242880 bytes",
            "S4",
        ),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
            "S1",
        ),
        ("Your input exceeds the context window of this model.", "S1"),
        ("SyntaxError: Bad control character in string literal in JSON at position 211", "B8"),
        ("SyntaxError: Unexpected token } in JSON at position 12", "B2"),
        ("SyntaxError: Unexpected token 'a', \"{\"a\":a}\" is not valid JSON", "B9"),
        ("Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON", "B9"),
        ("messages.3.role: Field required", "B9"),
        ("messages.3.content.0.tool_use.input: Field required", "P9"),
        ("messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", "P11"),
        ("messages.1.content.1.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", "P10"),
        ("String should match pattern '^[a-zA-Z0-9_-]+$'", "P11"),
        ("String should match pattern '^[a-zA-Z0-9_-]+$'", "P10"),
        (
            "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
            "M8",
        ),
        ("nginx: 413 Request Entity Too Large", "S4"),
        ("prompt is too long: 211884 tokens > 200000 maximum", "S1"),
        ("Item 'rs_0a1b' of type 'reasoning' was provided without its required following item.", "M5"),
        ("Invalid 'input[646].name': string does not match pattern '^[a-zA-Z0-9_-]+$'", "P10"),
        ("Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64", "P11"),
        (
            "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
            "P1",
        ),
    ] {
        is(text, code);
    }
}

#[test]
fn what_is_not_known_is_not_guessed() {
    for text in ["", "P1", "hello", "request id 84130", "req_4139", "Unexpected token '}'"] {
        assert!(find(text).is_none(), "{text}: {:?}", find(text));
    }
}

/// Without a file, an explanation only names what exists: a command to repair, or advice.
#[test]
fn each_family_has_something_to_do() {
    let mut names = Vec::new();
    for family in FAMILIES {
        assert!(!family.fix.is_empty() || !family.advice.is_empty(), "{family:?}");
        assert_eq!(family.codes.is_empty(), family.blame != Blame::Session, "{family:?}");
        assert!(!family.source.is_empty() && !names.contains(&family.name), "{family:?}");
        assert_eq!(family.shown.is_empty(), family.command.is_empty(), "{family:?}");
        names.push(family.name);
        // Codes are names here, because rules stand on a higher floor.
        let codes = family.codes.iter().filter(|code| crate::rule::find(code).is_none());
        codes.for_each(|code| assert!(code.starts_with('C'), "{code}"));
    }
}

/// A pattern that begins like one of an earlier family would never decide, and one in the wrong spelling never fits.
#[test]
fn patterns_are_spelled_as_texts_are_folded() {
    for pattern in FAMILIES.iter().flat_map(|family| family.says.iter().chain(family.hints)) {
        let folded = super::pattern::folded(pattern);
        let plain = pattern.replace('*', "");
        assert_eq!(folded, plain.replace("  ", " "), "{pattern}");
    }
}

/// The root of the place says whose fault it is, whatever the words are.
#[test]
fn the_root_of_a_place_decides() {
    for (text, blame) in [
        ("tools.3.custom.input_schema: Extra inputs are not permitted", Blame::Elsewhere),
        ("messages.3.content.0.text.x: Extra inputs are not permitted", Blame::Session),
        ("context_management: Extra inputs are not permitted", Blame::Elsewhere),
    ] {
        assert_eq!(find(text).map(|family| family.blame), Some(blame), "{text}");
    }
}

#[test]
fn a_role_is_told() {
    for (text, role) in [
        ("the message at position 1 with role 'user' must not be empty", Some("user")),
        ("'messages.2' : for 'role:assistant' the following", Some("assistant")),
        ("messages.332: user messages must have non-empty content", Some("user")),
        ("messages.3: x", None),
    ] {
        assert_eq!(read(text).role, role, "{text}");
    }
}

/// Who is not let in was not read, and a server that fails by itself has not looked at the session.
#[test]
fn the_status_rules_out_what_it_does_not_fit() {
    for (text, name) in [
        ("429: Allocated token quota for the client is exceeded", Some("rate")),
        ("HTTP 401: the message is empty", Some("login")),
        ("HTTP 500: the context window", None),
        (
            "HTTP 500: messages.3.content.0: unexpected `tool_use_id` found in `tool_result` blocks",
            Some("no-call"),
        ),
        ("HTTP 400: upstream error", None),
        ("tokens per minute (TPM): Limit 8000, Used 7000, Requested 2043", Some("rate")),
        ("tokens per minute (TPM): Limit 8000, Requested 12043", Some("minute-limit")),
    ] {
        assert_eq!(find(text).map(|family| family.name), name, "{text}");
    }
}

/// What stands around an error is no word of it: an address, a file of a trace, a kind, a polite request, the time.
#[test]
fn what_stands_around_decides_nothing() {
    for (text, name) in [
        ("https://a.example/chat/completions not found, verify your API base", Some("model")),
        ("KeyError: 'x' File \"/x/chat_template.py\", line 57", None),
        ("{'message': 'Empty y', 'type': 'invalid_parameter_error'}", None),
        ("Unable to process input image. Please retry", Some("image")),
        ("Failed to connect to API: 400 Bad Request {}", None),
        ("context deadline exceeded", Some("deadline")),
        (r#"{"message":"Provider returned error","raw":"{\"message\":\"at most 1 image\"}"}"#, Some("image")),
        ("Error during compaction: the response did not contain valid text content", Some("overload")),
        ("an address /v1 of ws://x", None),
    ] {
        assert_eq!(find(text).map(|family| family.name), name, "{text}");
    }
}

/// Where the place says that a setting is refused, no other family is asked, even one that says nothing.
#[test]
fn a_setting_is_told_by_its_place() {
    for (text, name) in [
        ("Unknown name \"const\" at 'tools[0].function_declarations[4]': Cannot find field", Some("setting")),
        ("stop: Input should be a valid list", Some("setting")),
        ("body.messages.2.assistant.refusal: Extra inputs are not permitted", Some("field")),
        ("messages.0.content.0.type: Input should be 'text'", Some("block")),
        ("messages.0.role: Input should be 'user'", Some("role-order")),
        ("{\"message\":\"invalid request body\",\"code\":\"x\"}", None),
        ("{\"field\":\"input.56.type\",\"message\":\"Invalid input type 'x'\"}", Some("block")),
    ] {
        assert_eq!(find(text).map(|family| family.name), name, "{text}");
    }
}

/// What a text says is not read from the names of the fields around it.
#[test]
fn keys_of_an_envelope_are_no_words() {
    let text = r#"{"type":"error","error":{"type":"X","message":"Request is missing x-header"}}"#;
    assert_eq!(find(text).map(|family| family.name), None);
    let text = r#"{"message":"400","code":"unexpected","param":"400"}"#;
    assert!(find(text).is_none());
}
