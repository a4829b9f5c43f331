//! What is the case with a session while it is looked at: what its text does not say, and a policy does not want. Plain data.

use crate::model::policy::{Policy, SignedThinking};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// What the caller knows of a session and of the moment. By default nothing: the text is whole, nobody is at work on it, and
/// anything may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    /// Whether fixes that rewrite older history wait, because the session was used recently and a prompt cache may hold
    /// that history. Their findings are reported, and the fixes held back.
    pub hold_history: bool,
    /// Whether visible text stays as it is in a session whose model binds its thinking: a process may hold the
    /// conversation in memory. Errors for which the session is refused are repaired anyway.
    pub hold_remembered: bool,
    /// Why only texts of settled results of earlier turns are shortened, and nothing else is changed: the agent may be at work on
    /// the session. `None` if that is not so.
    pub settled_only: Option<&'static str>,
    /// Why no entry comes or moves, although entries may change and go: each is a row of a database. `None` if that is not so.
    pub rows_only: Option<&'static str>,
    /// Records of a database that the agent cannot read or use, and what else is stored there tells of them.
    pub known_records: KnownRecords,
    /// How much of the session its agent loads; `None` if that is all of it, or not known.
    pub load: Option<LoadLimit>,
    /// The current time, in milliseconds since 1970; `None` if the age of a prompt cache does not matter.
    pub now_ms: Option<u64>,
    /// Whether no agent works on the session any more: nothing will answer the calls of the newest turn.
    pub agent_gone: bool,
    /// The API's error, for rules about what the file alone does not show.
    pub error: Option<String>,
}

/// How much an agent loads of the live branch of a session, from the newest entry back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadLimit {
    /// The context window from which the limit follows, as the session records it.
    pub window_tokens: u64,
    /// Most bytes, with a line break after each entry and with the header.
    pub bytes_max: u64,
    /// Most entries.
    pub entries_max: u64,
    /// The longest result that the agent itself keeps, in characters.
    pub result_chars_max: u64,
}

/// Lines as they are, and what is known of each. One that is whole but of no use has a space after its record.
pub type KnownRecords = BTreeMap<Vec<u8>, KnownRecord>;

/// What is known of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownRecord {
    /// Why the agent cannot read or use it.
    pub reason: Option<String>,
    /// What takes its place.
    pub replacement: Option<Vec<u8>>,
}

static ORDINARY: Situation = Situation {
    hold_history: false,
    hold_remembered: false,
    settled_only: None,
    rows_only: None,
    known_records: KnownRecords::new(),
    load: None,
    now_ms: None,
    agent_gone: false,
    error: None,
};

/// A policy, and the situation in which it is followed. A policy alone stands for one of which nothing is known.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// What the user wants.
    pub policy: &'a Policy,
    /// What is the case.
    pub situation: &'a Situation,
}

impl<'a> From<&'a Policy> for Case<'a> {
    fn from(policy: &'a Policy) -> Self {
        Self { policy, situation: &ORDINARY }
    }
}

impl Case<'_> {
    /// What to do with edits before signed thinking as long as history is held.
    pub(crate) fn thinking(self) -> SignedThinking {
        let holds = self.situation.hold_history || self.situation.settled_only.is_some();
        if holds { SignedThinking::Keep } else { self.policy.thinking }
    }
}
