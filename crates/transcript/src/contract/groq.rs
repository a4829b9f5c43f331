//! Groq.

use super::base::{BASE, Clause, Contract, Term};
use super::chat;

pub(super) const CONTRACT: Contract = Contract {
    name: "groq",
    title: "Groq",
    clauses: &[Clause::believed(Term::ImageBytes(4 << 20), "Groq's page on images")],
    over: Some(&chat::SHARED),
    ..BASE
};
