//! Error texts of providers, in a table.

use super::{Cause, classify, escalate};

use alloc::format;

#[track_caller]
fn all(cause: Cause, errors: &[&str]) {
    for error in errors {
        assert_eq!(classify(error), cause, "{error}");
        assert_eq!(classify(&error.to_uppercase()), cause, "{error}");
    }
}

/// ChatCLI's eight patterns, each in a sentence, and what providers say.
#[test]
fn a_context_that_is_too_long() {
    all(
        Cause::ContextOverflow,
        &[
            "the context length was reached",
            "your message is too long",
            "This model's maximum context length is 8192 tokens",
            "400 prompt is too long: 205413 tokens > 200000 maximum",
            "Request too large for gpt-4o in organization o on tokens per min (TPM): Limit 30000, Requested 41000",
            "max_tokens would exceed the model's limit",
            "input too long",
            "the token limit was hit",
            "{\"error\":{\"code\":\"context_length_exceeded\"}}",
            "Your input exceeds the context window of this model",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
            "Please reduce the length of the messages or completion",
            "the request exceeds the available context size, try increasing it",
            "prompt token count of 140000 exceeds the limit of 128000",
            "Your request exceeded model token limit: 262144",
            "Input is too long for requested model.",
            "model_context_window_exceeded",
            "Context overflow: estimated context size exceeds safe threshold during tool loop.",
            "Summary unavailable due to context limits. Older messages were truncated.",
        ],
    );
}

/// ChatCLI's nine patterns, and Anthropic's own type.
#[test]
fn a_body_that_is_too_large() {
    all(
        Cause::PayloadTooLarge,
        &[
            "HTTP 413",
            "status 431",
            "payload too large",
            "<html><head><title>413 Request Entity Too Large</title>",
            "body too large",
            "content too large",
            "request body exceeded 20 MB",
            "over the maximum request size",
            "Request Header Fields Too Large",
            "413 {\"error\":{\"type\":\"request_too_large\",\"message\":\"Request exceeds the maximum size\"}}",
        ],
    );
}

/// The cases of ChatCLI's own test, and each of its words beside a refusal.
#[test]
fn a_proxy_that_refused() {
    all(
        Cause::ProxyRejection,
        &[
            "403 forbidden \u{2014} blocked by firewall",
            "HTTP 403: cloudflare challenge",
            "bedrock: 403, deserialization failed, invalid character '<' looking for beginning of value",
            "StatusCode: 403, invalid character '<'",
        ],
    );
    for word in super::PROXY {
        assert_eq!(classify(&format!("Forbidden: {word}")), Cause::ProxyRejection, "{word}");
        assert_ne!(classify(word), Cause::ProxyRejection, "{word} alone");
    }
}

#[test]
fn what_less_would_not_cure() {
    all(
        Cause::Other,
        &[
            "",
            "403 Forbidden: invalid_api_key",
            "failed to decode response body",
            "529 overloaded_error",
            "400 `tool_use` ids were found without `tool_result` blocks immediately after: toolu_413x",
            "429 this request would exceed your rate limit of 40,000 input tokens; reduce max_tokens",
            "ThrottlingException: Too many tokens, please wait before trying again.",
            "429 the token limit of the minute is used up",
        ],
    );
}

#[test]
fn thinking_that_is_not_valid() {
    all(
        Cause::InvalidThinking,
        &[
            "invalid signature in thinking block 4130",
            "400 messages.19.content.0: Invalid `signature` in `thinking` block (what came before it has changed)",
            "Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
        ],
    );
    assert_eq!(classify("400 thinking: budget_tokens must be at least 1024"), Cause::Other);
    assert_eq!(classify("403 SignatureDoesNotMatch"), Cause::Other);
}

#[test]
fn limits_of_output_double_twice_and_stop_at_the_providers() {
    let next = |tokens, most, done| escalate(tokens, most, done).map(|next| next.tokens_max);
    assert_eq!(
        [next(0, 0, 0), next(8192, 0, 1), next(8192, 10_000, 0)],
        [Some(8192), Some(16_384), Some(10_000)]
    );
    assert_eq!([next(8192, 0, 2), next(8192, 8192, 0), next(u64::MAX, 0, 0)], [None; 3]);
}
