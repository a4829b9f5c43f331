//! Fine-tuning at `OpenAI`: the checks of its cookbook, and the types of its API.

use super::super::base::Clause;
use super::base::{Content, ROWS, RowTerm, Trainer};

const COOKBOOK: &str = "openai-cookbook Chat_finetuning_data_prep; openai-openapi f85dbe2";

pub(super) const TRAINER: Trainer = Trainer {
    name: "openai-finetune",
    title: "OpenAI fine-tuning",
    clauses: &[
        Clause::known(
            RowTerm::Columns(&[
                &["messages"],
                &["input.messages", "preferred_output", "non_preferred_output"],
            ]),
            COOKBOOK,
        ),
        Clause::known(
            RowTerm::Roles(&[("role", &["system", "developer", "user", "assistant", "tool", "function"])]),
            COOKBOOK,
        ),
        // The cookbook knows no tools yet, and refuses what the API's types have: only those are taken from the types.
        Clause::known(
            RowTerm::Fields(&[
                "role",
                "content",
                "name",
                "weight",
                "tool_calls",
                "tool_call_id",
                "function_call",
                "refusal",
                "audio",
            ]),
            COOKBOOK,
        ),
        Clause::known(RowTerm::Said(&["content"], Content::TextOrCalls), COOKBOOK),
        Clause::known(RowTerm::NeedsModel, COOKBOOK),
        Clause::reported(RowTerm::EndsWithModel, "clone-factory #3: the last message is the assistant's"),
        Clause::known(
            RowTerm::Weights,
            "openai-openapi f85dbe2: FineTuneChatCompletionRequestAssistantMessage",
        ),
        Clause::believed(
            RowTerm::WeightsOfModel,
            "openai-openapi f85dbe2 has it there alone; the cookbook takes it anywhere",
        ),
        Clause::reported(RowTerm::OneAnswer { in_list: true }, "OpenAI's guide to DPO"),
        Clause::reported(RowTerm::OpenPrompt, "OpenAI's guide to DPO"),
    ],
    over: Some(&ROWS),
};
