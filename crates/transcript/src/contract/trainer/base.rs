//! What a trainer asks of rows: clauses, each with its source and how sure it is.

use super::super::base::{Clause, is_like};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::iter::successors;

/// What a trainer accepts as a row. It is a constant in a file of its own; one line in [`super::TRAINERS`] registers it.
pub struct Trainer {
    /// Its name, as `--for` takes it.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// What it asks for.
    pub clauses: &'static [Clause<RowTerm>],
    /// The trainer whose clauses also hold, where this one has none of their kind.
    pub over: Option<&'static Self>,
}

impl Trainer {
    /// Its clauses, then those below it, each where none of its kind came before.
    pub fn all_clauses(&'static self) -> Vec<&'static Clause<RowTerm>> {
        let mut all: Vec<&'static Clause<RowTerm>> = Vec::new();
        for clause in successors(Some(self), |trainer| trainer.over).flat_map(|trainer| trainer.clauses) {
            if all.iter().all(|own| !is_like(&own.term, &clause.term)) {
                all.push(clause);
            }
        }
        all
    }
}

/// What holds for every trainer.
pub(super) const ROWS: Trainer = Trainer {
    name: "rows",
    title: "Every trainer",
    clauses: &[
        Clause::reported(
            RowTerm::List { or_text: false },
            "SWE-smith #58: a list that was written as a text",
        ),
        Clause::reported(RowTerm::NeedsModel, "LlamaFactory #9600, Simia #8: nothing to train on"),
        Clause::reported(RowTerm::Arguments, "benchflow #848, trl #4881: \"JSONDecodeError\""),
        Clause::believed(RowTerm::ToolsListed, "fine-tuning #23, SkyRL #1675: the template shows no tools"),
    ],
    over: None,
};

/// What a trainer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowTerm {
    /// A row has all columns of one of these sets.
    Columns(&'static [&'static [&'static str]]),
    /// A row has no column beside those of its set and these.
    NoOtherColumns(&'static [&'static str]),
    /// These columns hold texts, or lists of parts.
    Texts(&'static [&'static str]),
    /// A conversation is a list of objects and not empty; or a text that holds such a list.
    List {
        /// Whether such a text is taken.
        or_text: bool,
    },
    /// Who speaks: the field, and the names that it may have there. No names stand for any.
    Roles(&'static [(&'static str, &'static [&'static str])]),
    /// A message has no other fields.
    Fields(&'static [&'static str]),
    /// What is said stands in one of these fields.
    Said(&'static [&'static str], Content),
    /// A system message is the first.
    SystemFirst,
    /// The user speaks first, perhaps after a system message.
    BeginsWithUser,
    /// A message of the model is there.
    NeedsModel,
    /// The last message is the model's.
    EndsWithModel,
    /// After a system message, the user or a tool and the model take turns, and the model's turn is the last one.
    TakesTurns,
    /// `weight` is 0 or 1.
    Weights,
    /// Only the model's messages have a `weight`.
    WeightsOfModel,
    /// Arguments of calls are JSON.
    Arguments,
    /// A message that is a call is JSON.
    CallTexts,
    /// A row with calls lists its tools.
    ToolsListed,
    /// The answers of a pair are each one message of the model, in a list or not.
    OneAnswer {
        /// Whether in a list.
        in_list: bool,
    },
    /// The prompt of a pair does not end with the model's message.
    OpenPrompt,
    /// The rejected answer of a pair is there, and not the answer itself.
    OtherAnswer,
}

/// What has to be said in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The field is there.
    Field,
    /// The field is there, or calls of the model are.
    FieldOrCalls,
    /// There is something other than null in it, or calls of the model are there.
    ValueOrCalls,
    /// It is not empty, or calls of the model are there.
    TextOrCalls,
}

impl RowTerm {
    /// What it is about: stable, for programs.
    pub fn about(self) -> &'static str {
        match self {
            Self::Columns(_) => "columns",
            Self::NoOtherColumns(_) => "other-columns",
            Self::Texts(_) => "texts",
            Self::List { .. } => "list",
            Self::Roles(_) => "roles",
            Self::Fields(_) => "fields",
            Self::Said(..) => "content",
            Self::SystemFirst => "system-inside",
            Self::BeginsWithUser => "first-message",
            Self::NeedsModel => "no-assistant",
            Self::EndsWithModel => "last-message",
            Self::TakesTurns => "turns",
            Self::Weights => "weight",
            Self::WeightsOfModel => "weight-of-others",
            Self::Arguments => "arguments",
            Self::CallTexts => "calls",
            Self::ToolsListed => "tools",
            Self::OneAnswer { .. } => "answers",
            Self::OpenPrompt => "prompt",
            Self::OtherAnswer => "rejected",
        }
    }

    /// What the trainer asks for, for tables.
    pub fn words(self) -> String {
        match self {
            Self::Columns(sets) => format!("columns: {}", alternatives(sets)),
            Self::NoOtherColumns(others) => format!("no other columns but {}", quoted(others)),
            Self::Texts(columns) => format!("texts in {}", quoted(columns)),
            Self::List { or_text: false } => "a conversation is a list of objects, not empty".into(),
            Self::List { or_text: true } => {
                "a conversation is a list of objects, or a text of JSON that holds it".into()
            }
            Self::Roles(fields) => {
                let same = fields.chunk_by(|one, next| one.1 == next.1);
                format!("roles: {}", same.map(roles).collect::<Vec<_>>().join("; "))
            }
            Self::Fields(names) => format!("fields of a message: {}", quoted(names)),
            Self::Said(fields, content) => {
                let what = match content {
                    Content::Field => "is there",
                    Content::FieldOrCalls => "is there, or calls are",
                    Content::ValueOrCalls => "is not null, or calls are there",
                    Content::TextOrCalls => "is not empty, or calls are there",
                };
                format!("{} {what}", quoted(fields))
            }
            Self::SystemFirst => "a system message comes first only".into(),
            Self::BeginsWithUser => "the user begins".into(),
            Self::NeedsModel => "an assistant message".into(),
            Self::EndsWithModel => "an assistant message last".into(),
            Self::TakesTurns => "user or tool and model take turns, the model last".into(),
            Self::Weights => "`weight` 0 or 1".into(),
            Self::WeightsOfModel => "`weight` of assistant messages only".into(),
            Self::Arguments => "arguments of calls are JSON".into(),
            Self::CallTexts => "a message that is a call is JSON".into(),
            Self::ToolsListed => "`tools` lists the tools of a row with calls".into(),
            Self::OneAnswer { in_list: true } => {
                "answers of a pair: a list of one assistant message each".into()
            }
            Self::OneAnswer { in_list: false } => "answers of a pair: one assistant message each".into(),
            Self::OpenPrompt => "the prompt of a pair does not end with the assistant".into(),
            Self::OtherAnswer => "`rejected_response` is not null and not the answer itself".into(),
        }
    }
}

/// Names of roles, and the fields in which they may be.
fn roles(same: &[(&str, &[&str])]) -> String {
    let fields: Vec<&str> = same.iter().map(|own| own.0).collect();
    let names = same.first().map_or(&[][..], |own| own.1);
    format!("in {} {}", quoted(&fields), if names.is_empty() { "any".into() } else { quoted(names) })
}

/// Names in backticks.
fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Sets of columns, of which one is meant.
pub(super) fn alternatives(sets: &[&[&str]]) -> String {
    match sets {
        [] => String::new(),
        [only] => quoted(only),
        sets => sets.iter().map(|set| quoted(set)).collect::<Vec<_>>().join("; or "),
    }
}
