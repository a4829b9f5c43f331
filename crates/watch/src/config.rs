//! What the daemon is asked to do: plain data. Where it was written down is not known here.

use crate::ask::Listen;
use crate::queue::{Pace, Settle};
use keeper::{Keep, Options, Vault};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use transcript::Policy;

/// All of it.
#[derive(Clone, Debug)]
pub struct Config {
    /// What to look after.
    pub roots: Roots,
    /// Whether anything may be written.
    pub mode: Mode,
    /// What is asked for.
    pub policy: Policy,
    /// What is asked for in transcripts of single agents, by the name of their format.
    pub agents: BTreeMap<String, Policy>,
    /// How long a file must have been quiet before its newest part is trimmed and mended.
    pub settle: Duration,
    /// How long before anything rewrites older history, which prompt caches hold.
    pub settle_stale: Duration,
    /// How long between two walks through a root that find what events have missed.
    pub rescan: Duration,
    /// Where what is taken out is kept.
    pub vault: Vault,
    /// For how long.
    pub keep: Keep,
    /// Where metrics are served.
    pub listen: Option<Listen>,
    /// Where `tailor status` asks.
    pub socket: PathBuf,
    /// Where the daemon says which roots are its own.
    pub state: PathBuf,
}

/// What to look after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Where known agents keep their sessions, also those that come later.
    Known,
    /// These folders and files.
    These(Vec<PathBuf>),
}

/// Whether anything may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: findings and metrics only.
    #[default]
    Observe,
    /// Transcripts are mended.
    Enforce,
}

impl Mode {
    /// As written in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Enforce => "enforce",
        }
    }
}

impl Config {
    /// The times that the queue goes by.
    pub(crate) fn settle(&self) -> Settle {
        let policies = self.agents.values().chain([&self.policy]);
        let rewrites = self.mode == Mode::Enforce && policies.clone().any(Policy::rewrites_history);
        // Waiting for less than a rule that looks at the clock does itself would be in vain.
        let ttl = policies
            .map(|policy| policy.crowded.cache_ttl_ms * u64::from(policy.crowded.trim_percent > 0))
            .max();
        let stale = self.settle_stale.max(Duration::from_millis(ttl.unwrap_or(0)));
        let late = (rewrites && stale > self.settle).then_some(stale);
        Settle { soon: self.settle, late }
    }

    /// How to deal with a transcript of an agent.
    pub(crate) fn options(&self, agent: Option<&str>, pace: Pace, now_ms: u64) -> Options {
        let policy = agent.and_then(|agent| self.agents.get(agent)).unwrap_or(&self.policy);
        let late = self.settle().late.is_some();
        let mut policy = Policy { now_ms: Some(now_ms), ..policy.clone() };
        policy.hold_history = pace == Pace::Soon && late && policy.rewrites_history();
        let mode = match self.mode {
            Mode::Observe => keeper::Mode::Look,
            Mode::Enforce => keeper::Mode::Fix,
        };
        // What rewrites history waits in the queue.
        let (settle, settle_stale, vault) = (self.settle, Duration::ZERO, Some(self.vault.clone()));
        Options { policy, mode, settle, settle_stale, vault }
    }
}
