//! Moonshot's Kimi.

use super::base::{BASE, Clause, Contract, Letters, Term};
use super::chat;

pub(super) const CONTRACT: Contract = Contract {
    name: "kimi",
    title: "Moonshot (Kimi)",
    providers: &["moonshot", "moonshotai", "moonshotai-cn", "kimi-coding"],
    models: &["kimi", "moonshot"],
    clauses: &[
        Clause::known(Term::CallIds(Letters::any(64)), "kimi-code d723cc4"),
        Clause::reported(Term::ArgumentsAreJson, "kimi-cli #2165, #1171"),
        Clause::reported(
            Term::ReasoningWithCalls,
            "\"reasoning_content is missing in assistant tool call message at index N\"; one space is accepted",
        ),
    ],
    over: Some(&chat::SHARED),
    ..BASE
};
