//! TRL: how its functions for data recognise a row. Who may speak is left to the chat template, but for images.

use super::super::base::Clause;
use super::base::{ROWS, RowTerm, Trainer};

const TRIED: &str = "trl 1.16.0 data_utils, tried";

pub(super) const TRAINER: Trainer = Trainer {
    name: "trl",
    title: "TRL",
    clauses: &[
        Clause::known(
            RowTerm::Columns(&[
                &["messages"],
                &["prompt", "completion"],
                &["chosen", "rejected"],
                &["prompt"],
                &["text"],
            ]),
            TRIED,
        ),
        Clause::known(RowTerm::List { or_text: false }, TRIED),
        // Of rows without images, the chat template decides.
        Clause::reported(RowTerm::Roles(&[("role", &["system", "user", "assistant", "tool"])]), TRIED),
    ],
    over: Some(&ROWS),
};
