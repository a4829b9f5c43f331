//! The table of all settings.

use super::{Flag, Kind, Scope, Setting};

const LIMITS: &str = "Limits (0 switches one off)";
const AGES: &str = "Old results (off unless asked for)";

/// Rows: where the key may be written, the key, the kind of value with its places in the settings; then, of a flag, its
/// heading, its name, what its value is called, and its help.
macro_rules! rows {
    (@kind Number $($($place:ident).+),+) => { Kind::Number(&[$(|settings| &mut settings.$($place).+),+]) };
    (@kind $kind:ident $($place:ident).+) => { Kind::$kind(|settings| &mut settings.$($place).+) };
    (@kind $kind:ident) => { Kind::$kind };
    (@flag) => { None };
    (@flag $heading:ident $name:literal $unit:literal $help:literal) => {
        Some(Flag { name: $name, unit: $unit, help: $help, heading: $heading })
    };
    ($($scope:ident $key:literal $kind:ident $(($($places:tt)+))?
        $(, $heading:ident $name:literal $unit:literal $help:literal)?;)+) => {
        &[$(Setting {
            key: $key,
            scope: Scope::$scope,
            kind: rows!(@kind $kind $($($places)+)?),
            flag: rows!(@flag $($heading $name $unit $help)?),
        }),+]
    };
}

/// In the order in which values take effect, so that a profile comes before the limits that change it; flags are listed
/// in this order too.
pub(crate) static SETTINGS: &[Setting] = rows! {
    All "mode" Mode;
    All "roots" Paths(roots);
    All "vault" Path(vault);
    All "listen" Listen(listen);
    All "metrics_textfile" Path(metrics_textfile);
    All "socket" Path(socket);
    All "settle" Time(settle);
    All "settle_stale" Time(settle_stale);
    All "memory_settle" Time(memory_settle);
    All "rescan" Time(rescan);
    All "recover" Truth(recover);
    All "watch.rewrite_saved_bytes_min" Size(worth.saved_bytes_min);
    All "watch.rewrite_saved_percent_min" Number(worth.saved_percent_min);
    All "watch.rewrite_context_percent_min" Number(worth.context_percent_min);
    All "originals.keep.days" Days(keep.age);
    All "originals.keep.bytes" Size(keep.bytes);
    All "agents" Agents;
    Agent "reloads" Truth(reloads);
    Each "profile" Profile, LIMITS "profile" "NAME"
        "The limits of another system, by name (see `tailor explain NAME`); single ones can be changed below";
    Each "result_chars_max" Number(policy.result_chars_max), LIMITS "result-chars-max" "CHARS"
        "Longest text of a tool result (32,000)";
    Flag "tools.NAME.result_chars_max" ToolLimit, LIMITS "tool-result-chars-max" "TOOL=CHARS"
        "Another limit for the results of one tool";
    Flag "tools.keep" Names(policy.tools_keep), LIMITS "keep-tool" "TOOL" "Never cut results of this tool";
    Flag "tools.only" Names(policy.tools_only), LIMITS "only-tool" "TOOL" "Cut results of this tool only";
    Each "turn_chars_max" Number(policy.turn_chars_max), LIMITS "turn-chars-max" "CHARS"
        "Longest sum of the results that answer one message of the model (200,000)";
    Each "summary_chars_max" Number(policy.summary_chars_max), LIMITS "summary-chars-max" "CHARS"
        "Longest message that a summariser can take (100,000)";
    Each "window_tokens" Number(policy.window_tokens), LIMITS "window-tokens" "TOKENS"
        "The model's context window (200,000)";
    Each "side_chars_max" Number(policy.side_chars_max), LIMITS "side-chars-max" "CHARS"
        "Longest string in copies of results that the model never sees (8,000)";
    Each "image_bytes_max" Number(policy.images.bytes_max), LIMITS "image-bytes-max" "BYTES"
        "Longest base64 of an image (5,242,880)";
    Each "image_pixels_max" Number(policy.images.pixels_max), LIMITS "image-pixels-max" "PIXELS"
        "Longest side of an image in pixels (8,000; 2,000 beyond 20 images)";
    Each "images_max" Number(policy.images.count_max), LIMITS "images-max" "COUNT"
        "Most images in context (100)";
    Each "images" Images, LIMITS "images" "IMAGES"
        "What becomes of an image that is too large, where S4 is allowed: a line of text takes its place (the \
            default), or it is made small";
    Each "stale.shorten_turns" Number(policy.stale.shorten_at), AGES "stale-shorten-turns" "TURNS"
        "Shorten results that are this many turns old (S14)";
    Each "stale.head_chars" Number(policy.stale.head_chars), AGES "stale-head-chars" "CHARS"
        "How much of them stays at the beginning (2,000)";
    Each "stale.tail_chars" Number(policy.stale.tail_chars), AGES "stale-tail-chars" "CHARS"
        "How much of them stays at the end (500)";
    Each "stale.clear_turns" Number(policy.stale.clear_at), AGES "stale-clear-turns" "TURNS"
        "Leave one line of results that are this many turns old (S14)";
    Each "stale.chars_min" Number(policy.stale.chars_min), AGES "stale-chars-min" "CHARS"
        "Results that were shorter than this do not age (3,000)";
    Each "stale.keep" Names(policy.stale.tools_keep), AGES "stale-keep-tool" "TOOL"
        "Results of this tool do not age";
    Each "crowded.trim_percent" Number(policy.crowded.trim_percent), AGES "crowded-trim-percent" "PERCENT"
        "Trim older results when so much of the window is full (S15)";
    Each "crowded.chars_max" Number(policy.crowded.trim_chars_max), AGES "crowded-chars-max" "CHARS"
        "Results longer than this are trimmed then";
    Each "crowded.end_chars" Number(policy.crowded.head_chars, policy.crowded.tail_chars),
        AGES "crowded-end-chars" "CHARS"
        "How much of them stays at each end";
    Each "crowded.clear_percent" Number(policy.crowded.clear_percent), AGES "crowded-clear-percent" "PERCENT"
        "Leave one line of the oldest results when so much of the window is full (S15)";
    Each "crowded.clear_chars_min" Number(policy.crowded.clear_chars_min), AGES "crowded-clear-chars-min" "CHARS"
        "Unless what could be cleared is less than this together";
    Each "crowded.keep_assistants" Number(policy.crowded.keep_assistants), AGES "crowded-keep-assistants" "COUNT"
        "How many of the newest messages of the model, with what follows, stay as they are";
    Each "crowded.cache_ttl" Millis(policy.crowded.cache_ttl_ms), AGES "crowded-cache-ttl" "SECONDS"
        "Not before the model's last message is so old that no prompt cache holds it";
    Each "reply_chars_max" Number(policy.reply_chars_max), LIMITS "reply-chars-max" "CHARS"
        "Longest text of one message of the model that is in context (any; 5,000 for `recover`)";
    Each "thinking" Thinking, LIMITS "thinking" "THINKING"
        "Where a change would come before signed thinking: keep the thinking and hold the change back (the \
            default, but for `recover` and `compact`), strip the thinking, or ignore it";
    Each "select" Codes(policy.selection.select);
    Each "ignore" Codes(policy.selection.ignore);
    Each "allow" Codes(policy.selection.allow);
    Each "tools" Tools;
};
