//! Counts tokens with public tokenisers.

use crate::value::Tokenizer;
use transcript::chunk::chars4;
use transcript::weight::CountTokens;

/// A function that counts tokens.
pub(crate) type Counter = fn(&str) -> u64;

/// The function of a tokeniser.
pub(crate) fn counter(tokenizer: Tokenizer) -> Counter {
    match tokenizer {
        Tokenizer::Chars4 => chars4,
        Tokenizer::O200k => o200k,
    }
}

/// Its name in JSON.
pub(crate) fn name(tokenizer: Tokenizer) -> &'static str {
    match tokenizer {
        Tokenizer::Chars4 => "chars4",
        Tokenizer::O200k => "o200k",
    }
}

/// The tokeniser of a model, by the model's name in transcripts; `None` if it is not public or not built in.
pub(crate) fn of_model(model: &[u8]) -> Option<CountTokens> {
    let name = String::from_utf8_lossy(model).to_ascii_lowercase();
    let name = name.rsplit('/').next().unwrap_or_default();
    let known = cfg!(feature = "tokens") && O200K.iter().any(|family| name.starts_with(family));
    known.then_some(|text| o200k(&String::from_utf8_lossy(text)))
}

/// Prefixes of models that use `o200k_base` (<https://github.com/openai/tiktoken>, `model.py`).
const O200K: &[&str] =
    &["gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "chatgpt-4o", "codex-", "o1", "o3", "o4-mini"];

#[cfg(feature = "tokens")]
fn o200k(text: &str) -> u64 {
    // In a transcript, text that looks like a control token is plain text.
    tiktoken_rs::o200k_base_singleton().count_ordinary(text) as u64
}

/// Never called: an estimate must not be presented as a count.
#[cfg(not(feature = "tokens"))]
fn o200k(text: &str) -> u64 {
    chars4(text)
}

#[cfg(all(test, feature = "tokens"))]
mod tests {
    use super::{o200k, of_model};

    #[test]
    fn tokens_are_those_of_the_vocabulary() {
        for (text, tokens) in
            [("", 0), ("hello world", 2), ("Hello, world!", 4), (" ", 1), ("The quick brown fox", 4)]
        {
            assert_eq!(o200k(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn what_looks_like_a_control_token_is_text() {
        assert!(o200k("<|endoftext|>") > 1);
    }

    #[test]
    fn a_model_is_known_by_its_family() {
        for known in ["gpt-5-codex", "gpt-4o", "openai/gpt-4.1-mini", "o3"] {
            assert!(of_model(known.as_bytes()).is_some(), "{known}");
        }
        for unknown in ["claude-opus-4-5", "gpt-4", "", "gemini-2.5-pro", "my-o1"] {
            assert!(of_model(unknown.as_bytes()).is_none(), "{unknown}");
        }
    }
}
