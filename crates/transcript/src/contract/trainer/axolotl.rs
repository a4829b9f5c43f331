//! Axolotl: its strategy `chat_template`, with the names that it has by default.

use super::super::base::Clause;
use super::base::{ROWS, RowTerm, Trainer};

const SOURCE: &str = "axolotl 0.19.0 prompt_strategies/chat_template";

pub(super) const TRAINER: Trainer = Trainer {
    name: "axolotl",
    title: "Axolotl",
    clauses: &[
        // `field_messages` may name any column.
        Clause::believed(
            RowTerm::Columns(&[
                &["messages"],
                &["conversations"],
                &["chosen", "rejected"],
                &["instruction"],
                &["prompt"],
                &["text"],
            ]),
            SOURCE,
        ),
        Clause::known(RowTerm::List { or_text: true }, SOURCE),
        // Other names go to the chat template as they are.
        Clause::believed(
            RowTerm::Roles(&[
                ("role", &["system", "user", "human", "assistant", "gpt", "tool"]),
                ("from", &["system", "user", "human", "assistant", "gpt", "tool"]),
            ]),
            SOURCE,
        ),
        Clause::known(RowTerm::NeedsModel, "axolotl 0.19.0: \"Dropped N samples with no trainable tokens\""),
        Clause::known(RowTerm::Arguments, SOURCE),
    ],
    over: Some(&ROWS),
};
