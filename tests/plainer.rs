//! Which formats may be taken for a plainer one. The crate `transcript` uses this file for its promises as well.

/// Formats whose files may have lines of a plainer format, or only such lines once the lines that identify the format
/// are lost. The plain lines do not contradict the plainer format.
const PLAINER: &[(&str, &[&str])] = &[
    (
        "openai-chat",
        &["kimi-cli", "vibe", "picoclaw", "nanobot", "hermes", "reasonix", "anthropic", "ai-sdk-model"],
    ),
    ("openai-dataset", &["anthropic-dataset"]),
];

pub(crate) fn is_plainer(plain: &str, than: &str) -> bool {
    PLAINER.iter().any(|(own, others)| *own == plain && others.contains(&than))
}
