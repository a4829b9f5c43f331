//! Alibaba's `DashScope`, which serves Qwen.

use super::base::{BASE, Clause, Contract, Term};
use super::chat;

pub(super) const CONTRACT: Contract = Contract {
    name: "qwen",
    title: "Qwen (DashScope)",
    providers: &["dashscope", "alibaba", "qwen-portal"],
    models: &["qwen"],
    clauses: &[
        Clause::reported(Term::NeedsUser, "langfuse #10513"),
        Clause::believed(Term::ArgumentsAreJson, "\"function.arguments\" must be JSON, code models"),
    ],
    over: Some(&chat::SHARED),
    ..BASE
};
