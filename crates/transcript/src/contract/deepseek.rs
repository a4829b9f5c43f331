//! `DeepSeek` Chat.

use super::base::{BASE, Clause, Contract, Term};
use super::chat;

pub(super) const CONTRACT: Contract = Contract {
    name: "deepseek",
    title: "DeepSeek",
    models: &["deepseek"],
    clauses: &[
        Clause::reported(Term::NoImages, "\"unknown variant `image_url`, expected `text`\": text models"),
        Clause::reported(
            Term::ReasoningWithCalls,
            "\"The `reasoning_content` in the thinking mode must be passed back\"; an empty one is accepted",
        ),
    ],
    over: Some(&chat::SHARED),
    ..BASE
};
