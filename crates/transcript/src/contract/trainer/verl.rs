//! verl: its data set of turns, which gives each message to the chat template by itself.

use super::super::base::Clause;
use super::base::{Content, ROWS, RowTerm, Trainer};

const SOURCE: &str = "verl 0.9.1 MultiTurnSFTDataset";

pub(super) const TRAINER: Trainer = Trainer {
    name: "verl",
    title: "verl",
    clauses: &[
        // `messages_key` may name another column, and reinforcement learning has `prompt`.
        Clause::believed(RowTerm::Columns(&[&["messages"], &["prompt"]]), SOURCE),
        Clause::known(RowTerm::List { or_text: false }, SOURCE),
        Clause::known(RowTerm::Roles(&[("role", &[])]), SOURCE),
        Clause::known(RowTerm::Said(&["content"], Content::Field), SOURCE),
    ],
    over: Some(&ROWS),
};
