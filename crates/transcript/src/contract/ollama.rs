//! Ollama's door of Chat Completions.

use super::base::{BASE, Clause, Contract, Term};
use super::chat;

pub(super) const CONTRACT: Contract = Contract {
    name: "ollama",
    title: "Ollama",
    clauses: &[
        Clause::known(Term::ArgumentsAreJson, "ollama fb30760: \"invalid tool call arguments\""),
        Clause::known(Term::Images(&["image/jpeg", "image/png", "image/webp"]), "ollama fb30760"),
    ],
    over: Some(&chat::SHARED),
    ..BASE
};
