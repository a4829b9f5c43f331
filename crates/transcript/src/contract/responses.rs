//! `OpenAI` Responses, and Codex's door to it.

use super::base::{BASE, Clause, Contract, Letters, Term};

pub(super) const CONTRACT: Contract = Contract {
    name: "openai-responses",
    title: "OpenAI Responses",
    providers: &["openai", "openai-codex", "codex", "azure", "azure-openai-responses"],
    models: &["gpt-", "o1", "o3", "o4"],
    clauses: &[
        Clause::known(Term::CallIds(Letters::any(64)), "openai-openapi f85dbe2"),
        Clause::reported(
            Term::ItemIds(&[
                ("message", "msg"),
                ("reasoning", "rs"),
                ("function_call", "fc"),
                ("custom_tool_call", "ctc"),
                ("custom_tool_call_output", "ctco"),
                ("function_call_output", "fco"),
                ("web_search_call", "ws"),
            ]),
            "codex #27928, #40039: \"Expected an ID that begins with 'msg'\"",
        ),
        Clause::known(Term::ToolNames(Letters::word(128)), "openai-openapi f85dbe2"),
        Clause::reported(Term::CallsAnswered, "\"No tool output found for function call X\""),
        Clause::reported(
            Term::ResultsHaveCalls,
            "\"No tool call found for function call output with call_id X\"",
        ),
        Clause::reported(
            Term::Images(&["image/jpeg", "image/png", "image/gif", "image/webp"]),
            "\"Expected a base64-encoded data URL with an image MIME type\"",
        ),
        Clause::known(Term::ImageBytes(20_971_520), "openai-openapi f85dbe2"),
    ],
    ..BASE
};
