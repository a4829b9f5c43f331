//! Fine-tuning at Fireworks: its pages. The check is its server's, and could not be run.

use super::super::base::Clause;
use super::base::{Content, ROWS, RowTerm, Trainer};

const PAGE: &str = "docs.fireworks.ai, fine-tuning-models and dpo-fine-tuning";

pub(super) const TRAINER: Trainer = Trainer {
    name: "fireworks",
    title: "Fireworks fine-tuning",
    clauses: &[
        Clause::known(
            RowTerm::Columns(&[
                &["messages"],
                &["input.messages", "preferred_output", "non_preferred_output"],
            ]),
            PAGE,
        ),
        // Its page takes what OpenAI takes, and shows tools.
        Clause::known(RowTerm::Roles(&[("role", &["system", "user", "assistant", "tool"])]), PAGE),
        Clause::known(RowTerm::Said(&["content"], Content::ValueOrCalls), PAGE),
        Clause::known(RowTerm::SystemFirst, PAGE),
        Clause::known(RowTerm::Weights, PAGE),
        Clause::reported(RowTerm::OneAnswer { in_list: true }, PAGE),
    ],
    over: Some(&ROWS),
};
