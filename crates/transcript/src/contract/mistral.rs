//! Mistral: the validator of mistral-common, which the API's errors quote.

use super::base::{BASE, Clause, Contract, Letters, Term};
use super::chat;

pub(super) const CONTRACT: Contract = Contract {
    name: "mistral",
    title: "Mistral",
    providers: &["mistralai", "mistral-conversations"],
    models: &["mistral", "devstral", "codestral", "magistral", "ministral", "pixtral"],
    clauses: &[
        // By tokenizer: 9 letters and digits up to v7, anything from v11 on. Which model has which is not known.
        Clause::reported(Term::CallIds(Letters::exactly(9)), "mistral-common 1.13.1, v3 and v7"),
        Clause::known(Term::ToolNames(Letters::word(64)), "mistral-common 1.13.1, tried"),
        Clause::known(Term::CallsAnswered, "mistral-common 1.13.1, tried"),
        Clause::known(Term::ResultsHaveCalls, "mistral-common 1.13.1, tried"),
        Clause::known(Term::NoEmptyMessage, "mistral-common 1.13.1, tried"),
        Clause::known(Term::NoSystemInside, "mistral-common 1.13.1, tried"),
        Clause::reported(Term::NoUserAfterResult, "code 3230: \"Unexpected role 'user' after role 'tool'\""),
        Clause::known(Term::NoImagesInResults, "mistral-common 1.13.1, before v15"),
    ],
    over: Some(&chat::SHARED),
    ..BASE
};
