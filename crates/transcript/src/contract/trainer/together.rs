//! Fine-tuning at Together: `check_file` of its client up to 2.10. From 3 on the client leaves these checks to the server.

use super::super::base::Clause;
use super::base::{Content, ROWS, RowTerm, Trainer};

const TRIED: &str = "together 2.10.0 check_file, tried";

/// What the page says and `check_file` does not look at.
const PAGE: &str = "docs.together.ai, data preparation";

pub(super) const TRAINER: Trainer = Trainer {
    name: "together",
    title: "Together fine-tuning",
    clauses: &[
        Clause::known(
            RowTerm::Columns(&[
                &["messages"],
                &["input.messages", "preferred_output", "non_preferred_output"],
                &["prompt", "completion"],
                &["text"],
            ]),
            TRIED,
        ),
        Clause::known(RowTerm::NoOtherColumns(&["tools"]), TRIED),
        Clause::known(RowTerm::Texts(&["prompt", "completion", "text"]), TRIED),
        Clause::known(RowTerm::List { or_text: false }, TRIED),
        Clause::known(RowTerm::Roles(&[("role", &["system", "user", "assistant", "tool"])]), TRIED),
        Clause::known(RowTerm::Said(&["content"], Content::FieldOrCalls), TRIED),
        Clause::known(RowTerm::NeedsModel, TRIED),
        Clause::known(RowTerm::Weights, TRIED),
        Clause::known(RowTerm::OneAnswer { in_list: true }, TRIED),
        Clause::known(RowTerm::OpenPrompt, TRIED),
        Clause::reported(RowTerm::BeginsWithUser, PAGE),
        Clause::reported(RowTerm::TakesTurns, PAGE),
    ],
    over: Some(&ROWS),
};
