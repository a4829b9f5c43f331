//! Anthropic Messages.

use super::base::{BASE, Clause, Contract, Letters, Term};

pub(super) const CONTRACT: Contract = Contract {
    name: "anthropic",
    title: "Anthropic Messages",
    providers: &["claude", "google-vertex-anthropic", "vertex-anthropic", "anthropic-vertex"],
    models: &["claude"],
    clauses: &[
        // Clients cut at 64; the API's own limit is not known.
        Clause::known(Term::CallIds(Letters::word(usize::MAX)), "litellm 1.110.2, pi-ai 0.74.2"),
        Clause::known(Term::ToolNames(Letters::word(128)), "litellm 1.110.2"),
        Clause::known(Term::ArgumentsAreObject, "anthropic 2.14.0, tried with its types"),
        Clause::known(Term::NoBlankText, "litellm 1.110.2, pydantic-ai 2.68.0"),
        Clause::reported(Term::NoEmptyMessage, "\"user messages must have non-empty content\""),
        Clause::reported(Term::CallsAnswered, "\"`tool_use` ids were found without `tool_result` blocks\""),
        Clause::reported(
            Term::ResultsHaveCalls,
            "\"unexpected `tool_use_id` found in `tool_result` blocks\"",
        ),
        Clause::known(Term::UniqueCallIds, "litellm 1.110.2: \"`tool_use` ids must be unique\""),
        Clause::believed(Term::BeginsWithUser, "Bedrock takes a leading assistant message from Claude"),
        Clause::known(
            Term::Images(&["image/jpeg", "image/png", "image/gif", "image/webp"]),
            "anthropic 2.14.0; \"Could not process image\"",
        ),
        Clause::reported(
            Term::ImageBytes(5 << 20),
            "\"image exceeds 5 MB maximum: N bytes > 5242880 bytes\"",
        ),
        Clause::known(Term::RequestBytes(32 << 20), "Anthropic's page on errors: request_too_large"),
    ],
    ..BASE
};
