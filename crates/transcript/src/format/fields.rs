//! The fields of bare messages: those of an API, which a format lists, and those that gateways and programs add, which are here.
//!
//! None of the latter says which messages are sent, or in which order. Any other field may, so it is noted (V2), and repairs
//! near it wait.

use crate::model::damaged_name::most_like;
use crate::model::draft::Draft;
use crate::model::entry::ContentIssueKind;
use spans::json::Value;

/// Fields that messages have in one dialect.
struct Dialect {
    /// Who adds them.
    #[cfg_attr(not(test), expect(dead_code, reason = "says where the names are from"))]
    of: &'static str,
    names: &'static [&'static str],
}

/// Read in the code of the packages named with a version; the others by the provider's documentation.
const DIALECTS: &[Dialect] = &[
    Dialect { of: "OpenRouter, vLLM", names: &["reasoning", "reasoning_details"] },
    // `Message` and the types of requests.
    Dialect {
        of: "LiteLLM 1.110.2",
        names: &[
            "reasoning_content",
            "reasoning_items",
            "thinking_blocks",
            "provider_specific_fields",
            "images",
            "is_error",
        ],
    },
    Dialect { of: "AG2 0.11.5, AutoGen before 0.4", names: &["tool_responses"] },
    // Its signatures of thoughts are in calls and here.
    Dialect { of: "Google's door for OpenAI's API", names: &["extra_content"] },
    Dialect { of: "gateways to Anthropic", names: &["cache_control", "context_management", "stop_details"] },
    Dialect { of: "openai 3.57.0, parsed answers", names: &["parsed"] },
    Dialect { of: "DeepSeek, Moonshot: an answer to go on with", names: &["prefix", "partial"] },
    Dialect { of: "tuning", names: &["weight"] },
    Dialect { of: "Ollama", names: &["thinking", "tool_name"] },
    Dialect {
        of: "programs that keep a response or a time beside its message",
        names: &[
            "id",
            "name",
            "model",
            "timestamp",
            "created_at",
            "createdAt",
            "usage",
            "finish_reason",
            "logprobs",
            "metadata",
            "status",
        ],
    },
];

/// Fields by which a line is no bare message, but an event, a record around a message, or of a program with lines of its own.
pub(super) const OF_RECORDS: &[&str] =
    &["type", "kind", "event", "message", "messages", "data", "payload", "parts", "uuid", "parentUuid"];

/// All fields of a message that are known, if the API has these.
pub(super) fn known(own: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    own.iter().chain(DIALECTS.iter().flat_map(|dialect| dialect.names)).copied()
}

/// Whether a message has no field that is not known.
pub(super) fn are_known(own: &'static [&'static str], message: Value<'_>) -> bool {
    message.fields().all(|(key, _)| known(own).any(|name| key.is(name)))
}

/// Notes the fields of a message that are not known. A damaged name is not another one.
pub(crate) fn note_unknown(own: &'static [&'static str], message: Value<'_>, draft: &mut Draft<'_>) {
    if own.is_empty() {
        return;
    }
    for (key, _) in message.fields() {
        if !known(own).any(|name| key.is(name)) && most_like(key, &mut known(own)).is_none() {
            draft.issue(ContentIssueKind::UnknownField, key.span());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DIALECTS;
    use alloc::vec::Vec;

    #[test]
    fn a_field_is_listed_once_with_who_adds_it() {
        let mut names: Vec<&str> = DIALECTS.iter().flat_map(|dialect| dialect.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(DIALECTS.iter().all(|dialect| !dialect.of.is_empty()));
    }
}
