//! ms-swift: its preprocessor of messages. A row that it does not like is deleted: "There are errors in the dataset, the data will be
//! deleted".

use super::super::base::Clause;
use super::base::{Content, ROWS, RowTerm, Trainer};

const TRIED: &str = "ms-swift 4.6.0 MessagesPreprocessor, tried";

const NAMES: &[&str] = &[
    "system",
    "user",
    "human",
    "assistant",
    "gpt",
    "bot",
    "tool",
    "tool_call",
    "tool_response",
    "function_call",
    "function-call",
    "function_response",
    "function-response",
    "observation",
    "observations",
];

pub(super) const TRAINER: Trainer = Trainer {
    name: "swift",
    title: "ms-swift",
    clauses: &[
        // `columns` may name others.
        Clause::believed(
            RowTerm::Columns(&[
                &["messages"],
                &["conversations"],
                &["conversation"],
                &["instruction"],
                &["query"],
                &["prompt"],
                &["response"],
                &["text"],
            ]),
            TRIED,
        ),
        Clause::known(RowTerm::List { or_text: true }, TRIED),
        Clause::known(RowTerm::Roles(&[("role", NAMES), ("from", NAMES)]), TRIED),
        Clause::known(RowTerm::Said(&["content", "value"], Content::ValueOrCalls), TRIED),
        Clause::known(RowTerm::OtherAnswer, TRIED),
    ],
    over: Some(&ROWS),
};
