//! LLaMA-Factory: the converters of its data sets, with the tags that they have by default. A row that they do not like is skipped:
//! "Invalid role tag", "Invalid message count", and in the end "Cannot find valid samples".

use super::super::base::Clause;
use super::base::{Content, ROWS, RowTerm, Trainer};

const TRIED: &str = "llamafactory 0.9.5 converter, tried";

pub(super) const TRAINER: Trainer = Trainer {
    name: "llamafactory",
    title: "LLaMA-Factory",
    clauses: &[
        // `dataset_info.json` may name any column.
        Clause::believed(
            RowTerm::Columns(&[
                &["conversations"],
                &["messages"],
                &["conversations", "chosen", "rejected"],
                &["instruction"],
                &["prompt"],
            ]),
            TRIED,
        ),
        Clause::known(RowTerm::List { or_text: false }, TRIED),
        // `role` needs tags in `dataset_info.json`, as does `tool` in it.
        Clause::known(
            RowTerm::Roles(&[
                ("from", &["system", "human", "gpt", "observation", "function_call"]),
                ("role", &["system", "user", "assistant", "tool", "observation", "function_call"]),
            ]),
            TRIED,
        ),
        Clause::known(RowTerm::Said(&["value", "content"], Content::Field), TRIED),
        Clause::known(RowTerm::TakesTurns, TRIED),
        Clause::known(RowTerm::OneAnswer { in_list: false }, TRIED),
        Clause::reported(
            RowTerm::CallTexts,
            "its FunctionFormatter: \"Invalid JSON format in function message\"",
        ),
    ],
    over: Some(&ROWS),
};
