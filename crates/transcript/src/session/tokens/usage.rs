//! The numbers of tokens that providers report and agents write down, under the names that agents give them.

use spans::json::Value;

/// What an entry says about the request that it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Tokens read and written; 0 if it does not say.
    pub(crate) tokens: u64,
    /// The model's context window; 0 if it does not say.
    pub(crate) window: u64,
}

/// Where the numbers stand: the names that lead to an object.
const PLACES: &[&[&str]] = &[
    // Claude Code, pi and OpenClaw.
    &["message", "usage"],
    // Codex: of the last request. The sum over all requests stands beside it and says nothing about the context.
    &["payload", "info", "last_token_usage"],
    // Qwen Code.
    &["usageMetadata"],
    // Gemini CLI.
    &["tokens"],
    // Kimi Code.
    &["event", "usage"],
    &["usage"],
    &["metadata", "usage"],
    // Copilot: of one request, in a record beside the message.
    &["data", "usage"],
    // OpenCode: of a message. Its parts repeat it behind results that it does not count.
    &["data", "tokens"],
];

/// Where the window stands.
const WINDOWS: &[&[&str]] = &[
    // Codex: beside each count, and where a turn begins.
    &["payload", "info", "model_context_window"],
    &["payload", "model_context_window"],
    // Qwen Code: beside each count.
    &["contextWindowSize"],
    // Copilot: what a prompt may have.
    &["data", "usage", "maxPromptTokens"],
];

/// Names of a sum of everything.
const TOTALS: [&str; 4] = ["total_tokens", "totalTokens", "totalTokenCount", "total"];

/// Names of parts of what was read, which do not overlap: Anthropic's, pi's, Kimi Code's and Copilot's. What else may be there
/// (`cached_input_tokens`, `reasoning_output_tokens`) is contained in one of these.
const READ: [&str; 10] = [
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "input",
    "cacheRead",
    "cacheWrite",
    "inputOther",
    "inputCacheRead",
    "inputCacheCreation",
    "inputTokens",
];
/// Names of the numbers of what was written.
const WRITTEN: [&str; 3] = ["output_tokens", "output", "outputTokens"];

/// Reads the numbers of an entry.
pub(crate) fn usage(root: Value<'_>) -> Option<Usage> {
    if root.get("store").is_some() && root.get("table").is_some_and(|table| table.is("part")) {
        return None;
    }
    // Copilot's subagents, compactions and titles have requests of their own.
    let is_of_conversation =
        |usage: Value<'_>| usage.get("interactionType").is_none_or(|kind| kind.is("conversation-agent"));
    if !root.get("data").and_then(|data| data.get("usage")).is_none_or(is_of_conversation) {
        return None;
    }
    let at = |names: &[&str]| names.iter().try_fold(root, |value, name| value.get(name));
    // Kimi CLI counts the whole context, and Copilot does when it ends.
    let flat =
        [(&["token_count"][..], "role", "_usage"), (&["data", "currentTokens"], "type", "session.shutdown")]
            .iter()
            .filter(|(_, key, kind)| root.get(key).is_some_and(|value| value.is(kind)))
            .find_map(|(names, _, _)| at(names)?.whole());
    let tokens = flat.or_else(|| PLACES.iter().filter_map(|names| at(names)).map(sum).find(|sum| *sum > 0));
    let window = WINDOWS.iter().find_map(|names| at(names)?.whole());
    let usage = Usage { tokens: tokens.unwrap_or(0), window: window.unwrap_or(0) };
    (usage != Usage::default()).then_some(usage)
}

fn sum(usage: Value<'_>) -> u64 {
    let whole = |value: Option<Value<'_>>| value.and_then(Value::whole).unwrap_or(0);
    let total = usage.pick(TOTALS).map(whole).into_iter().max().unwrap_or(0);
    if total > 0 {
        return total;
    }
    let read = usage.pick(READ).map(whole).into_iter().fold(0, u64::saturating_add);
    // No request reads nothing: who was not told what was read writes 0, and so does a recovery (`Format::gauges`).
    let written = usage.pick(WRITTEN).map(whole).into_iter().filter(|_| read > 0);
    written.fold(read, u64::saturating_add)
}
