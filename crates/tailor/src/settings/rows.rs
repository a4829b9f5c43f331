//! The table of all settings.

use super::kind::SettingKind;
use super::setting::{Flag, Scope, Setting};

/// Flags of the daemon have no heading.
const DAEMON: Option<&str> = None;
const LIMITS: Option<&str> = Some("Limits (0 switches one off)");
const AGES: Option<&str> = Some("Old results (by age: off unless asked for)");

/// Rows: where the key may be written, the key, the kind of value with its places in the settings; then the heading,
/// the name and the value's name of its flag, if it has one; then the help.
macro_rules! rows {
    (@kind Number $($($place:ident).+),+) => { SettingKind::Number(&[$(|settings| &mut settings.$($place).+),+]) };
    (@kind $kind:ident $($place:ident).+) => { SettingKind::$kind(|settings| &mut settings.$($place).+) };
    (@kind $kind:ident) => { SettingKind::$kind };
    (@flag) => { None };
    (@flag $heading:ident $name:literal $unit:literal) => {
        Some(Flag { name: $name, unit: $unit, heading: $heading })
    };
    ($($scope:ident $key:literal $kind:ident $(($($places:tt)+))?
        $(, $heading:ident $name:literal $unit:literal)? $help:literal;)+) => {
        &[$(Setting {
            key: $key,
            scope: Scope::$scope,
            kind: rows!(@kind $kind $($($places)+)?),
            flag: rows!(@flag $($heading $name $unit)?),
            help: $help,
        }),+]
    };
}

/// In the order in which values take effect: a profile comes before the limits that may override it. Flags are listed
/// in this order too.
pub(crate) static SETTINGS: &[Setting] = rows! {
    All "mode" Mode(mode), DAEMON "mode" "observe|enforce"
        "Whether to repair transcripts (enforce) or only report (observe)";
    All "stores.mode" OtherMode(stores)
        "The same for sessions in databases, if that differs: they are repaired as far as that is safe while their programs run";
    All "settle" Time(settle), DAEMON "settle" "DURATION"
        "How long a file must be without writes before it is repaired";
    All "listen" Listen(listen), DAEMON "listen" "ADDRESS"
        "Where to serve metrics: 127.0.0.1:PORT or unix:PATH";
    All "metrics_textfile" Path(metrics_textfile), DAEMON "metrics-textfile" "FILE"
        "Where to write metrics for a collector that reads files, such as `node_exporter`: a path ending in .prom";
    All "socket" Path(socket), DAEMON "socket" "FILE" "The socket that `tailor status` connects to";
    All "vault" Path(vault), DAEMON "vault" "DIR" "The folder of originals";
    All "roots" Paths(roots) "Files and folders to watch; by default the folders of known agents";
    All "settle_stale" Time(settle_stale)
        "How long a file must be without writes before anything rewrites history that a prompt cache may hold";
    All "memory_settle" Time(memory_settle)
        "How long a file must be without writes before an agent that is not visible is assumed to hold the session in \
            memory no longer";
    All "rescan" Time(rescan) "How long until everything that is watched is walked through again; 0 for never";
    All "recover" Truth(recover) "Whether the daemon shortens sessions that the API refuses as too long";
    All "watch.rewrite_saved_bytes_min" Size(worth.saved_bytes_min)
        "Rewrite a file if that saves at least this many bytes";
    All "watch.rewrite_saved_percent_min" Number(worth.saved_percent_min)
        "Rewrite a file if that saves at least this percentage of it, or of what the model is sent";
    All "watch.rewrite_context_percent_min" Number(worth.context_percent_min)
        "Rewrite a file if its context fills at least this percentage of `window_tokens`";
    All "originals.keep.days" Days(keep.age) "Days to keep originals; 0 for no limit";
    All "originals.keep.bytes" Size(keep.bytes) "Bytes of originals to keep; 0 for no limit";
    All "keep.mode" Switch(keeping), DAEMON "keep" "on|off"
        "Whether the daemon keeps what sessions become, for `tailor keep`";
    All "keep.folder" Path(archive) "The folder of what is kept";
    All "keep.days" Days(keep_limits.age) "Days to keep what a session was before it was changed or deleted; 0 for no limit";
    All "keep.bytes" Size(keep_limits.bytes)
        "Bytes to keep of that: the oldest goes first, and the last of a deleted session goes last; 0 for no limit";
    All "cache" Truth(cache)
        "Whether `scan` and the daemon skip files that have not changed since they were last read";
    All "agents" Agents "A table of settings for one agent";
    Agent "reloads" Truth(reloads)
        "The agent reloads the file for each turn, so a repair need not wait for it to end";
    Each "profile" Profile, LIMITS "profile" "NAME"
        "The limits of another system, by name (see `tailor explain NAME`); limits given besides it win";
    Each "result_chars_max" Number(policy.result_chars_max), LIMITS "cut-results" "CHARS"
        "Longest text of a tool result";
    Flag "tools.NAME.result_chars_max" ToolLimit, LIMITS "cut-tool-results" "TOOL=CHARS"
        "Longest text of a result of this tool";
    Flag "tools.keep" Names(policy.tools_keep), LIMITS "keep-tool" "TOOL" "Never cut results of this tool";
    Flag "tools.only" Names(policy.tools_only), LIMITS "only-tool" "TOOL" "Cut only results of this tool";
    Each "turn_chars_max" Number(policy.turn_chars_max), LIMITS "cut-turns" "CHARS"
        "Most characters in the results of one model message";
    Each "summary_chars_max" Number(policy.summary_chars_max), LIMITS "max-summary-chars" "CHARS"
        "Longest message that fits a summariser";
    Each "window_tokens" Asked(policy.window_tokens), LIMITS "window-tokens" "TOKENS"
        "The model's context window (by default what the file says or the model has; 200,000 if neither is known)";
    Each "side_chars_max" Number(policy.side_chars_max), LIMITS "cut-copies" "CHARS"
        "Longest string in copies of results that are never sent to the model";
    Each "image_bytes_max" Size(policy.images.bytes_max), LIMITS "image-max-size" "SIZE"
        "Longest base64 of an image";
    Each "image_pixels_max" Number(policy.images.pixels_max), LIMITS "image-max-pixels" "PIXELS"
        "Longest side of an image in pixels [default: 8,000; beyond 20 images: 2,000]";
    Each "images_max" Number(policy.images.count_max), LIMITS "image-max-count" "COUNT"
        "Most images in context";
    Each "images" Images, LIMITS "images" "IMAGES"
        "What to do with an image that is too large, where --allow S4 (unsendable-image) is given: replace it with a \
            line of text, or scale it down [default: stub]";
    Each "stale.shorten_turns" Number(policy.stale.shorten_at), AGES "stale-shorten-turns" "TURNS"
        "Shorten results that are this many turns old";
    Each "stale.head_chars" Number(policy.stale.head_chars), AGES "stale-head-chars" "CHARS"
        "Characters to keep at the beginning of a shortened result";
    Each "stale.tail_chars" Number(policy.stale.tail_chars), AGES "stale-tail-chars" "CHARS"
        "Characters to keep at the end of a shortened result";
    Each "stale.clear_turns" Number(policy.stale.clear_at), AGES "stale-clear-turns" "TURNS"
        "Reduce results that are this many turns old to one line";
    Each "stale.chars_min" Number(policy.stale.chars_min), AGES "stale-min-chars" "CHARS"
        "Never shorten or clear old results below this length";
    Each "stale.keep" Names(policy.stale.tools_keep), AGES "stale-keep-tool" "TOOL"
        "Never shorten or clear old results of this tool";
    Each "crowded.trim_percent" Number(policy.crowded.trim_percent), AGES "crowded-trim-percent" "PERCENT"
        "Trim older results when this much of the window is full, or when the model refused it as too long; 0 for never";
    Each "crowded.chars_max" Number(policy.crowded.trim_chars_max), AGES "crowded-max-chars" "CHARS"
        "Longest result that is not trimmed then; 0 for about a quarter of its limit, or of what its agent cuts at";
    Each "crowded.end_chars" Number(policy.crowded.head_chars, policy.crowded.tail_chars),
        AGES "crowded-end-chars" "CHARS"
        "Characters to keep at each end of a trimmed result";
    Each "crowded.clear_percent" Number(policy.crowded.clear_percent), AGES "crowded-clear-percent" "PERCENT"
        "Reduce the oldest results to one line when this much of the window is full; below `trim_percent`: trim and reduce only as many as it takes to get there";
    Each "crowded.clear_chars_min" Number(policy.crowded.clear_chars_min), AGES "crowded-clear-min-chars" "CHARS"
        "Skip clearing if it would free fewer than this many characters";
    Each "crowded.keep_assistants" Number(policy.crowded.keep_assistants), AGES "crowded-keep-assistants" "COUNT"
        "How many of the newest model messages, with what follows them, stay as they are";
    Each "crowded.cache_ttl" Millis(policy.crowded.cache_ttl_ms), AGES "crowded-cache-ttl" "DURATION"
        "Wait until the last model message is this old, so that no prompt cache holds it";
    Each "reply_chars_max" Number(policy.reply_chars_max), LIMITS "cut-replies" "CHARS"
        "Longest text of one model message in context [default: no limit; of `recover`: 5,000]";
    Each "thinking" Thinking, LIMITS "thinking" "THINKING"
        "What to do if a change would come before signed thinking: keep the thinking and skip the change, strip the \
            thinking, or ignore it [default: keep; of `recover` and `compact`: strip]";
    Each "select" Codes(policy.selection.select) "Only these rules";
    Each "ignore" Codes(policy.selection.ignore) "Skip these rules";
    Repository "exclude" Globs(exclude) "Of `scan` and `fix`: leave out files and folders that match, as in .gitignore";
    Repository "per-file-ignores" GlobCodes(file_ignores)
        "Of `scan` and `fix`: a table of globs, each with the rules to skip in the files that match";
    Each "allow" Codes(policy.selection.allow) "Also make the guarded fixes of these rules";
    All "secrets.mode" SecretMode
        "Whether `fix` and the daemon take out secrets, in files and in databases that they may write to: `off` or `mask`; nothing keeps the originals";
    All "secrets.patterns" OwnSecrets
        "A table of your own kinds of secrets: a name, and what such a secret begins with; letters, digits, dots, hyphens and underscores follow";
    Each "tools" Tools "A table for each tool with its own `result_chars_max`; `keep` and `only` list tools";
};
