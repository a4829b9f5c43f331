//! How many tokens the context has, and what that number is based on. How they are counted: [`crate::session::tokens`].

use crate::model::policy::{Policy, WINDOW_TOKENS};
use serde::{Deserialize, Serialize};

/// A number that the provider reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedTokens {
    /// Tokens read and written, including what is not in the file (instructions, tool definitions).
    pub tokens: u64,
    /// The line that reports it.
    pub line: u64,
}

/// How many tokens the context has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextTokens {
    /// What the model would be sent next.
    pub tokens: u64,
    /// The number of tokens estimated without any number in the file.
    pub estimated: u64,
    /// The number that `tokens` is based on.
    pub counted: Option<ReportedTokens>,
    /// The model's context window, if the file or the model's name tells it.
    pub window: Option<u64>,
}

impl ContextTokens {
    /// The window to compare the context with: the policy's, or else the file's, or else the default.
    pub fn window(&self, policy: &Policy) -> u64 {
        policy.window_tokens.or(self.window).unwrap_or(WINDOW_TOKENS)
    }

    /// This count with no more than these tokens added.
    pub(crate) fn with_at_most(self, more: u64) -> Self {
        Self { tokens: self.tokens.saturating_add(more), ..self }
    }

    /// Whether the provider has counted all of it: nothing was added or removed since.
    pub fn is_exact(&self) -> bool {
        self.counted.is_some_and(|counted| counted.tokens == self.tokens)
    }
}

/// The rates by which the texts of a session are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rates {
    pub(crate) base: u64,
    pub(crate) char: u64,
    /// 0 if thinking is not sent, or not stored in signed blocks.
    pub(crate) thinking: u64,
}

/// What is known of the tokens in a context.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) rates: Rates,
    /// The window of the last model, known by its name.
    pub(crate) model_window: Option<u64>,
    /// The window that the agent's configuration states for it, and a hash of the name that it goes by.
    pub(crate) stated: Option<(u64, u64)>,
    /// The window that a record or an error names.
    pub(crate) window: Option<u64>,
    /// The window is from an error, which counts as long as the error is the last answer.
    pub(crate) window_in_error: bool,
    /// The provider's newest number.
    pub(crate) number: Option<NewestNumber>,
    /// All that the model sees, in thousandths of a token.
    pub(crate) sum: u64,
    /// The part of it that came after the newest number.
    pub(crate) since: u64,
    /// The cost of entries that will be in context once a message follows them.
    pub(crate) waiting: u64,
    /// If that number is less than half of the texts up to it: those that came with the two requests before it, in thousandths
    /// of a token. `None` if it is not, or there were no two.
    pub(crate) recent: Option<u64>,
    /// How many tokens are gone that the newest number still counts; `None` if the number says nothing about what is
    /// there now.
    pub(crate) gone: Option<u64>,
    /// How many tokens will be gone that the next number still counts, unless it is lower; `None` if only a look can tell.
    pub(crate) gone_next: Option<u64>,
    /// How many bytes the file may grow before the newest number is too far from its end to be found.
    pub(crate) left: u64,
}

/// A number that the provider reported.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NewestNumber {
    pub(crate) tokens: u64,
    pub(crate) line: u64,
    /// The group id that the lines of its message share.
    pub(crate) group: Option<u64>,
}
