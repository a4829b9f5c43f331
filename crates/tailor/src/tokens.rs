//! How many tokens a text has.

use crate::args::Tokenizer;
use transcript::chunk::chars4;

/// What counts tokens.
pub(crate) type Counter = Box<dyn Fn(&str) -> u64>;

/// The counter of this name.
pub(crate) fn counter(tokenizer: Tokenizer) -> Result<Counter, String> {
    Ok(match tokenizer {
        Tokenizer::Chars4 => Box::new(chars4),
        Tokenizer::O200k => {
            let tokenizer =
                tiktoken_rs::o200k_base().map_err(|cause| format!("could not load o200k: {cause}"))?;
            // What looks like a control token is text in a transcript.
            Box::new(move |text| tokenizer.count_ordinary(text) as u64)
        }
    })
}

/// How it stands in JSON.
pub(crate) fn name(tokenizer: Tokenizer) -> &'static str {
    match tokenizer {
        Tokenizer::Chars4 => "chars4",
        Tokenizer::O200k => "o200k",
    }
}

#[cfg(test)]
mod tests {
    use super::counter;
    use crate::args::Tokenizer;

    #[test]
    fn tokens_are_those_of_the_vocabulary() {
        let count = counter(Tokenizer::O200k).unwrap();
        for (text, tokens) in
            [("", 0), ("hello world", 2), ("Hello, world!", 4), (" ", 1), ("The quick brown fox", 4)]
        {
            assert_eq!(count(text), tokens, "{text:?}");
        }
    }
}
