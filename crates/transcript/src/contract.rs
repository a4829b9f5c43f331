//! What each provider accepts as the history of a request, as data. Each API is one file; [`CONTRACTS`] lists them all.
//!
//! A contract knows no format, and a format no contract: an outline is the conversation as it would be sent, and [`judge`]
//! compares the two.

mod anthropic;
mod base;
mod bedrock;
mod chat;
mod deepseek;
mod gemini;
mod groq;
mod judge;
mod kimi;
mod llama_cpp;
mod mends;
mod minimax;
mod mistral;
mod ollama;
mod outline;
mod qwen;
mod recorded;
mod responses;
mod sglang;
pub mod trainer;
mod xai;
mod zai;

pub use base::{Clause, Contract, Letters, Sure, Term, Variant};
pub use judge::{Objection, Reaction, Verdict, judge};
pub use mends::{MENDS, Mends};
pub use recorded::{Recorded, recorded};

use alloc::vec::Vec;
use base::is_like;

/// All contracts. The names of their providers are unique.
pub const CONTRACTS: &[&Contract] = &[
    &anthropic::CONTRACT,
    &chat::CONTRACT,
    &responses::CONTRACT,
    &gemini::CONTRACT,
    &bedrock::CONTRACT,
    &mistral::CONTRACT,
    &deepseek::CONTRACT,
    &kimi::CONTRACT,
    &qwen::CONTRACT,
    &zai::CONTRACT,
    &minimax::CONTRACT,
    &xai::CONTRACT,
    &groq::CONTRACT,
    &sglang::CONTRACT,
    &llama_cpp::CONTRACT,
    &ollama::CONTRACT,
];

/// A contract, and the model that is to take the request, if it is known.
#[derive(Clone, Copy)]
pub struct Target<'t> {
    /// The contract.
    pub contract: &'static Contract,
    /// The model's name; empty if it is not known.
    pub model: &'t str,
}

impl<'t> Target<'t> {
    /// Reads `PROVIDER` or `PROVIDER/MODEL`. `None` if no contract has this provider.
    pub fn read(text: &'t str) -> Option<Self> {
        let (provider, model) = text.split_once('/').unwrap_or((text, ""));
        Some(Self { contract: of_provider(provider)?, model })
    }

    /// What holds for the model: its variant's clauses first, then those of the contract and of the one below it, each where
    /// none of its kind came before.
    pub fn clauses(&self) -> Vec<&'static Clause> {
        let is_meant = |variant: &&Variant| variant.models.iter().any(|model| self.model.starts_with(model));
        let variants = self.contract.variants.iter().filter(is_meant).flat_map(|variant| variant.clauses);
        let below = self.contract.over.into_iter().flat_map(|contract| contract.clauses);
        let mut clauses: Vec<&'static Clause> = Vec::new();
        for clause in variants.chain(self.contract.clauses).chain(below) {
            if clauses.iter().all(|own| !is_like(&own.term, &clause.term)) {
                clauses.push(clause);
            }
        }
        clauses
    }
}

/// The contract of a provider, by any of its names.
pub fn of_provider(name: &str) -> Option<&'static Contract> {
    let has = |own: &&str| own.eq_ignore_ascii_case(name);
    CONTRACTS.iter().copied().find(|contract| has(&contract.name) || contract.providers.iter().any(has))
}

/// The contract of whoever made a model.
pub(crate) fn of_model(name: &str) -> Option<&'static Contract> {
    // `anthropic/claude-x`: routers put the maker first.
    let name = name.rsplit('/').next().unwrap_or(name);
    let makes = |contract: &&&Contract| contract.models.iter().any(|model| name.starts_with(model));
    CONTRACTS.iter().find(makes).copied()
}

#[cfg(test)]
mod tests {
    use super::{CONTRACTS, Target, is_like, of_model, of_provider};
    use alloc::vec::Vec;

    #[test]
    fn the_table_is_whole_and_its_names_are_unique() {
        let mut names: Vec<&str> = Vec::new();
        for contract in CONTRACTS {
            assert!(!contract.title.is_empty(), "{}", contract.name);
            names.push(contract.name);
            names.extend(contract.providers);
            let below = contract.over.map_or(&[][..], |below| below.clauses);
            assert!(!contract.clauses.is_empty() || !below.is_empty(), "{} refuses nothing", contract.name);
            let variants = contract.variants.iter().map(|variant| variant.clauses);
            for clauses in variants.chain([contract.clauses]) {
                for (at, clause) in clauses.iter().enumerate() {
                    assert!(!clause.source.is_empty(), "{}: {:?} has no source", contract.name, clause.term);
                    let again = clauses[..at].iter().any(|own| is_like(&own.term, &clause.term));
                    assert!(!again, "{}: {:?} is there twice", contract.name, clause.term);
                }
            }
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn a_target_is_a_provider_and_perhaps_a_model() {
        assert_eq!(Target::read("OpenAI-Codex").unwrap().contract.name, "openai-responses");
        assert_eq!(Target::read("mistral/mistral-large").unwrap().model, "mistral-large");
        assert!(Target::read("nobody").is_none());
        assert_eq!(of_provider("google-vertex").unwrap().name, "gemini");
        assert_eq!(of_model("anthropic/claude-opus-5").unwrap().name, "anthropic");
    }

    #[test]
    fn a_model_may_differ_from_its_contract() {
        let about = |text: &str| {
            let clauses = Target::read(text).unwrap().clauses();
            clauses.iter().map(|clause| clause.term.about()).collect::<Vec<_>>()
        };
        let images = |text: &str| about(text).iter().filter(|about| about.ends_with("images")).count();
        assert_eq!((images("deepseek/deepseek-chat"), images("anthropic/claude-x")), (1, 1));
        let users = |text: &str| about(text).contains(&"no-user");
        assert!(users("llama.cpp/qwen3.6-35b") && !users("llama.cpp/gemma-4"));
    }
}
