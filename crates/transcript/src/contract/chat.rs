//! `OpenAI` Chat Completions, and what providers who copy it share.

use super::base::{BASE, Clause, Contract, Letters, Term};

pub(super) const CONTRACT: Contract = Contract {
    name: "openai-chat",
    title: "OpenAI Chat Completions",
    providers: &["openai-completions", "azure-chat", "together", "fireworks", "cloudflare"],
    clauses: &[
        // pi cuts at 40, Kimi Code at 64: they disagree.
        Clause::believed(
            Term::CallIds(Letters::any(40)),
            "pi-ai 0.74.2; \"string too long … maximum length 40\"",
        ),
        Clause::known(Term::NoImagesInResults, "openai-openapi f85dbe2, tried with its schema"),
        Clause::believed(
            Term::Images(&["image/jpeg", "image/png", "image/gif", "image/webp"]),
            "OpenAI's page on images",
        ),
    ],
    over: Some(&SHARED),
    ..BASE
};

/// What holds wherever the messages of Chat Completions are read.
pub(super) const SHARED: Contract = Contract {
    name: "chat",
    title: "Every API of this shape",
    clauses: &[
        Clause::known(Term::ToolNames(Letters::word(64)), "openai-openapi f85dbe2"),
        Clause::known(Term::NoEmptyMessage, "openai-openapi f85dbe2, pydantic-ai 2.68.0"),
        Clause::reported(
            Term::CallsAnswered,
            "\"must be followed by tool messages responding to each 'tool_call_id'\"",
        ),
        Clause::reported(
            Term::ResultsHaveCalls,
            "\"'tool' must be a response to a preceding message with 'tool_calls'\"",
        ),
    ],
    ..BASE
};
