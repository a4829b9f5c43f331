//! llama.cpp's server, which renders the model's own template: the model's name tells what that refuses.

use super::base::{BASE, Clause, Contract, Term, Variant};
use super::chat;

pub(super) const CONTRACT: Contract = Contract {
    name: "llama.cpp",
    title: "llama.cpp",
    providers: &["llamacpp", "llama-cpp", "lmstudio"],
    clauses: &[Clause::reported(
        Term::ArgumentsAreJson,
        "llama.cpp #25510: \"Failed to parse tool call arguments\"",
    )],
    over: Some(&chat::SHARED),
    variants: &[
        Variant {
            models: &["qwen3.5", "qwen3.6", "Qwen3.5", "Qwen3.6"],
            clauses: &[
                Clause::reported(Term::NeedsUser, "\"No user query found in messages.\""),
                Clause::reported(Term::NoSystemInside, "its template, as reported"),
            ],
        },
        Variant {
            models: &["gemma-3", "gemma3"],
            clauses: &[Clause::known(Term::Alternates, "llama.cpp 85c9a50: its template")],
        },
    ],
    ..BASE
};
