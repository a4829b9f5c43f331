//! `MiniMax`.

use super::base::{BASE, Clause, Contract, Term};
use super::chat;

pub(super) const CONTRACT: Contract = Contract {
    name: "minimax",
    title: "MiniMax",
    providers: &["minimax-cn"],
    models: &["MiniMax", "minimax"],
    clauses: &[Clause::reported(
        Term::ArgumentsAreJson,
        "code 2013: \"invalid function arguments json string, tool_call_id: X\"",
    )],
    over: Some(&chat::SHARED),
    ..BASE
};
