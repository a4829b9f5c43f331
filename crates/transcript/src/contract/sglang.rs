//! `SGLang`.

use super::base::{BASE, Clause, Contract, Term};
use super::chat;

pub(super) const CONTRACT: Contract = Contract {
    name: "sglang",
    title: "SGLang",
    clauses: &[Clause::known(Term::ArgumentsAreObject, "sglang 0.5.23: \"must be a JSON object\"")],
    over: Some(&chat::SHARED),
    ..BASE
};
