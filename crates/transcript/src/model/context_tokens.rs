//! How many tokens the context has, and what that goes by. How they are counted: [`crate::session::tokens`].

use crate::model::policy::{Policy, WINDOW_TOKENS};
use serde::{Deserialize, Serialize};

/// A number that the provider reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Tokens read and written: what is not in the file (instructions, tool definitions) is in it.
    pub tokens: u64,
    /// The line that says so.
    pub line: u64,
}

/// How many tokens the context has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextTokens {
    /// What the model would be sent next.
    pub tokens: u64,
    /// The same without the numbers in the file.
    pub estimated: u64,
    /// The number that `tokens` goes by.
    pub counted: Option<Counted>,
    /// The model's context window, if the file or the model's name tells.
    pub window: Option<u64>,
}

impl ContextTokens {
    /// The window that a context is judged against: one that was asked for, or else what the file says, or else the
    /// default.
    pub fn window(&self, policy: &Policy) -> u64 {
        policy.window_tokens.or(self.window).unwrap_or(WINDOW_TOKENS)
    }

    /// The provider has counted all of it: nothing came or went since.
    pub fn is_exact(&self) -> bool {
        self.counted.is_some_and(|counted| counted.tokens == self.tokens)
    }
}
