//! Why a request failed, according to the provider's error text: whether the context was too long, the body too large,
//! or a proxy refused it. And what to do about an answer that was cut off.
//!
//! This module only classifies error texts; [`crate::recover`] acts on them.
//!
//! ```
//! use transcript::overflow::{Cause, classify};
//! assert_eq!(classify("400 prompt is too long: 211884 tokens > 200000 maximum"), Cause::ContextOverflow);
//! assert_eq!(classify("413 Request Entity Too Large"), Cause::PayloadTooLarge);
//! assert_eq!(classify("HTTP 403: cloudflare challenge"), Cause::ProxyRejection);
//! assert_eq!(classify("401 invalid x-api-key"), Cause::Other);
//! ```

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The conversation has more tokens than the model's window: a shorter one helps.
    ContextOverflow,
    /// The request has more bytes than a server accepts, usually because of images: a shorter one helps, however many
    /// tokens it has.
    PayloadTooLarge,
    /// A proxy or firewall refused the request before it reached the model. It may have been too large.
    ProxyRejection,
    /// The answer ended at the limit of output tokens: see [`escalate`].
    OutputCutOff,
    /// A thinking signature does not fit what comes before it (M4), or was never valid (M3).
    InvalidThinking,
    /// Anything else: a shorter conversation does not help.
    Other,
}

impl Cause {
    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::ContextOverflow => "context-overflow",
            Self::PayloadTooLarge => "payload-too-large",
            Self::ProxyRejection => "proxy-rejection",
            Self::OutputCutOff => "output-cut-off",
            Self::InvalidThinking => "invalid-thinking",
            Self::Other => "other",
        }
    }

    /// Whether a shorter conversation helps.
    pub fn is_cured_by_less(self) -> bool {
        matches!(self, Self::ContextOverflow | Self::PayloadTooLarge)
    }
}

/// What providers say if the context is too long. The first six and the last are ChatCLI's (`context_recovery.go`); the
/// others were seen in users' reports and in pi-ai's table of providers.
const OVERFLOW: &[&str] = &[
    "context length",
    "maximum context",
    "prompt is too long",
    "input too long",
    "input is too long",
    "request too large",
    "context_length_exceeded",
    "model_context_window_exceeded",
    "context window",
    "context overflow",
    "context limits",
    "available context size",
    "auto-compaction could not recover",
    "input token count",
    "maximum prompt length",
    "reduce the length of the messages",
    "exceeded model token limit",
    "too large for model",
    "exceeds the limit of ",
];

/// Texts that also occur in other errors, so errors about rates are excluded first: ChatCLI's "too long" and "token
/// limit".
const LOOSE: &[&str] = &["too long", "token limit", "too many tokens"];

/// Texts of errors about requests per minute.
const RATES: &[&str] = &[
    "rate limit",
    "rate_limit",
    "tokens per min",
    "requests per min",
    "too many requests",
    "throttl",
    "quota",
];

/// What servers say if the body is too large (ChatCLI's `IsPayloadTooLargeError`; `request_too_large` is Anthropic's
/// type for more than 32 MB).
const PAYLOAD: &[&str] = &[
    "payload too large",
    "request entity too large",
    "body too large",
    "content too large",
    "request body exceeded",
    "maximum request size",
    "request header fields too large",
    "request_too_large",
];

/// HTTP status codes of a request that is too large.
const PAYLOAD_CODES: &[&str] = &["413", "431"];

/// Texts that, together with a refusal, mean a proxy or firewall (ChatCLI's `IsProxyWAFRejection`).
const PROXY: &[&str] = &[
    "firewall",
    "waf",
    "security policy",
    "security rule",
    "blocked by",
    "cloudflare",
    "cf-ray",
    "mod_security",
    "akamai",
    "proxy denied",
    "policy violation",
    "request blocked",
    "invalid character '<'",
    "deserialization failed",
    "failed to decode response body",
];

/// Classifies the text of an error, in any case.
///
/// A refusal by a proxy counts first, because a firewall's page may contain any text; then errors that only the size of
/// a body explains; then tokens. HTTP status codes only count as whole words: 413 is not in `205413 tokens`. Errors
/// about rates belong to none of these, even if they mention tokens.
///
/// ```
/// use transcript::overflow::{Cause, classify};
/// assert_eq!(classify("maximum context length is 8192 tokens"), Cause::ContextOverflow);
/// assert_eq!(classify("403 forbidden — blocked by firewall"), Cause::ProxyRejection);
/// assert_eq!(classify("403 Forbidden: invalid_api_key"), Cause::Other);
/// assert_eq!(classify("on tokens per minute (TPM): Limit 8000, Requested 12043"), Cause::ContextOverflow);
/// assert_eq!(classify("429 rate limit: reduce max_tokens, 8,000 output tokens would be exceeded"), Cause::Other);
/// ```
pub fn classify(error: &str) -> Cause {
    let text = error.to_lowercase();
    let any = |patterns: &[&str]| patterns.iter().any(|pattern| text.contains(pattern));
    let code = |codes: &[&str]| codes.iter().any(|code| has_word(&text, code));
    let loose = || any(LOOSE) || (text.contains("max_tokens") && text.contains("exceed"));
    if (code(&["403"]) || text.contains("forbidden")) && any(PROXY) {
        Cause::ProxyRejection
    } else if is_over_minute(error) {
        Cause::ContextOverflow
    } else if any(PAYLOAD) {
        Cause::PayloadTooLarge
    } else if any(OVERFLOW) {
        Cause::ContextOverflow
    } else if code(PAYLOAD_CODES) {
        Cause::PayloadTooLarge
    } else if loose() && !any(RATES) && !code(&["429"]) {
        Cause::ContextOverflow
    } else if text.contains("signature") && text.contains("thinking") {
        Cause::InvalidThinking
    } else {
        Cause::Other
    }
}

/// Whether one request has more tokens than a minute may have, so that waiting does not help: "tokens per minute (TPM):
/// Limit 8000, Requested 12043" (Groq, `OpenAI`). Where others used the limit up, the request alone is below it.
pub(crate) fn is_over_minute(error: &str) -> bool {
    let (limit, requested) = (number_after(error, &[MINUTE_LIMIT]), number_after(error, &[MINUTE_REQUESTED]));
    error.to_lowercase().contains("tokens per min")
        && limit.zip(requested).is_some_and(|(most, own)| own > most)
}

const MINUTE_LIMIT: &str = "): limit ";
const MINUTE_REQUESTED: &str = ", requested ";

/// Whether a number is in a text, and not as part of a longer word.
fn has_word(text: &str, number: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(number).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + number.len()..]);
        !part(before.chars().next_back()) && !part(after.chars().next())
    })
}

/// The context window that an error text names.
///
/// ```
/// use transcript::overflow::window_named;
/// assert_eq!(window_named("prompt is too long: 211884 tokens > 200000 maximum"), Some(200_000));
/// assert_eq!(window_named("This model's maximum context length is 8,192 tokens. You requested 9000"), Some(8_192));
/// assert_eq!(window_named("the input token count (1,200,000) exceeds the maximum number of tokens allowed (1048576)"), Some(1_048_576));
/// assert_eq!(window_named("prompt is too long"), None);
/// ```
pub fn window_named(error: &str) -> Option<u64> {
    const BEFORE: &[&str] = &[
        "tokens > ",
        "exceeded model token limit: ",
        "maximum context length is ",
        "maximum context length of ",
        "maximum number of tokens allowed (",
        "maximum prompt length is ",
        "context window of ",
        "available context size (",
        "exceeds the limit of ",
    ];
    let minute = is_over_minute(error).then(|| number_after(error, &[MINUTE_LIMIT])).flatten();
    minute.or_else(|| number_after(error, BEFORE))
}

/// How many tokens the refused request had, if the error text says so.
///
/// ```
/// use transcript::overflow::tokens_named;
/// assert_eq!(tokens_named("prompt is too long: 211884 tokens > 200000 maximum"), Some(211_884));
/// assert_eq!(tokens_named("maximum context length is 8,192 tokens. However, you requested 9,000 tokens"), Some(9_000));
/// assert_eq!(tokens_named("This model's maximum context length is 8192 tokens"), None);
/// ```
pub fn tokens_named(error: &str) -> Option<u64> {
    const BEFORE: &[&str] = &[
        "prompt is too long: ",
        "messages resulted in ",
        "you requested ",
        "you requested about ",
        "input token count (",
        "input token count of ",
        "request contains ",
        "(requested: ",
        "context limit: ",
        "the request (",
        MINUTE_REQUESTED,
    ];
    number_after(error, BEFORE)
}

/// The first number that directly follows one of these texts.
fn number_after(error: &str, before: &[&str]) -> Option<u64> {
    let text = error.to_lowercase();
    let number = |before: &&str| {
        let (_, rest) = text.split_once(*before)?;
        let digits = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(|c| *c != ',');
        digits.collect::<String>().parse().ok().filter(|tokens| *tokens > 0)
    };
    before.iter().find_map(number)
}

/// How many bytes the next request may have after one of `rejected` bytes was too large: three quarters of them; 4 MB
/// if that number is unknown (ChatCLI).
///
/// ```
/// assert_eq!(transcript::overflow::payload_bytes_next(Some(8_000_000)), 6_000_000);
/// assert_eq!(transcript::overflow::payload_bytes_next(None), 4_000_000);
/// ```
pub fn payload_bytes_next(rejected: Option<u64>) -> u64 {
    const UNKNOWN_BYTES: u64 = 4_000_000;
    rejected.map_or(UNKNOWN_BYTES, |bytes| bytes - bytes.div_ceil(4))
}

/// Whether a stop reason means that the answer was cut off at the limit of output tokens.
///
/// ```
/// use transcript::overflow::is_cut_off;
/// assert!(is_cut_off("max_tokens") && is_cut_off("length") && is_cut_off("MAX_TOKENS"));
/// assert!(!is_cut_off("end_turn"));
/// ```
pub fn is_cut_off(stop_reason: &str) -> bool {
    ["max_tokens", "length", "max_output_tokens", "model_length"]
        .iter()
        .any(|reason| stop_reason.eq_ignore_ascii_case(reason))
}

/// The message to a model whose answer was cut off, to be sent after the partial answer.
pub const CONTINUE: &str = "Your answer was cut off at the limit of output tokens. Go on exactly where it stopped, \
     without repeating anything and without an introduction.";

/// What to request after an answer was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escalation {
    /// The next limit of output tokens.
    pub tokens_max: u64,
    /// The message to send after the partial answer.
    pub message: &'static str,
}

/// The limit of output tokens that is assumed if none was set (ChatCLI).
pub const OUTPUT_TOKENS: u64 = 4_096;

/// How many times a limit is doubled before giving up (ChatCLI).
pub const ESCALATIONS_MAX: u32 = 2;

/// The next step after an answer was cut off at `tokens` (0 for the default of 4,096): twice as many tokens, but no
/// more than `provider_max` (0 if unknown). `done` is how many such answers came before it in a row. `None` if that is
/// no more than before, or after two steps.
///
/// ```
/// use transcript::overflow::escalate;
/// assert_eq!(escalate(4_096, 0, 0).unwrap().tokens_max, 8_192);
/// assert_eq!(escalate(6_000, 8_192, 1).unwrap().tokens_max, 8_192);
/// assert_eq!(escalate(8_192, 8_192, 0), None);
/// assert_eq!(escalate(4_096, 0, 2), None);
/// ```
pub fn escalate(tokens: u64, provider_max: u64, done: u32) -> Option<Escalation> {
    let tokens = if tokens == 0 { OUTPUT_TOKENS } else { tokens };
    let most = if provider_max == 0 { u64::MAX } else { provider_max };
    let tokens_max = tokens.saturating_mul(2).min(most);
    (tokens_max > tokens && done < ESCALATIONS_MAX).then_some(Escalation { tokens_max, message: CONTINUE })
}

#[cfg(test)]
mod tests;
