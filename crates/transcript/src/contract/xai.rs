//! xAI.

use super::base::{BASE, Clause, Contract, Term};
use super::chat;

pub(super) const CONTRACT: Contract = Contract {
    name: "xai",
    title: "xAI (Grok)",
    models: &["grok"],
    clauses: &[
        Clause::reported(Term::NoEmptyMessage, "\"Each message must have at least one content element\""),
        Clause::known(Term::Images(&["image/png", "image/jpeg"]), "xai_sdk"),
    ],
    over: Some(&chat::SHARED),
    ..BASE
};
