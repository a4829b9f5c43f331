//! Which formats may be taken for a plainer one. The promises of the crate `transcript` share this file.

/// Formats whose files may hold lines of a plainer one, or of which such lines are left once those are gone that tell
/// them apart: the plain lines say nothing against them.
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
