//! Turns the configuration into options for looks.

use crate::config::{Config, WatchMode};
use crate::daemon::queue::{Pace, Settle};
use keeper::Options;
use std::time::Duration;
use transcript::policy::SignedThinking;
use transcript::{Policy, Situation};

/// How long a session must have been quiet before it is recovered.
const RESCUE_SETTLE: Duration = Duration::from_secs(60);

impl Config {
    /// Whether anything may be written.
    pub(crate) fn writes(&self) -> bool {
        [self.mode, self.stores].contains(&WatchMode::Enforce)
    }

    /// The settle times of the queue.
    pub(crate) fn settle(&self) -> Settle {
        let rewrites = self.policy.each().any(Policy::rewrites_history);
        // Waiting for less time than the rule itself requires would be useless.
        let crowded =
            self.policy.each().map(|policy| policy.crowded).filter(|crowded| crowded.trim_percent > 0);
        let ttl = crowded.map(|crowded| Duration::from_millis(crowded.cache_ttl_ms)).max();
        let stale = self.settle_stale.max(ttl.unwrap_or_default());
        let late = (rewrites && stale > self.settle).then_some(stale);
        Settle { soon: self.settle, late }
    }

    /// How to recover a session that is too long, if the configuration asks for it: as `tailor recover` would. The
    /// agent gets some time to recover by itself.
    pub(crate) fn rescue(&self) -> Option<Options> {
        let policy = self.policy.map(|policy| {
            if policy.thinking == SignedThinking::Keep {
                policy.thinking = SignedThinking::Strip;
            }
        });
        let settle = self.settle.max(RESCUE_SETTLE);
        let options = Options { policy, settle, worth: None, ..self.options(self.mode, Pace::Late) };
        (self.recover && self.mode == WatchMode::Enforce).then_some(options)
    }

    /// How to treat a transcript. Rules that rewrite history which the agent has sent many times wait until no prompt
    /// cache holds it any more. Until then appends are judged alone, without a look at the whole file.
    pub(crate) fn options(&self, mode: WatchMode, pace: Pace) -> Options {
        let waits = pace == Pace::Soon && self.settle().late.is_some();
        let policy = if waits { self.policy.map(Policy::leave_history) } else { self.policy.clone() };
        let situation = Situation { hold_history: waits, ..Situation::default() };
        let mode = match mode {
            WatchMode::Observe => keeper::Mode::Look,
            WatchMode::Enforce => keeper::Mode::Fix,
        };
        // The queue waits before history is rewritten.
        let (settle, settle_stale, vault) = (self.settle, Duration::ZERO, Some(self.vault.clone()));
        let Self { memory_settle, worth, .. } = *self;
        let worth = Some(worth);
        Options {
            policy,
            situation,
            mode,
            settle,
            settle_stale,
            memory_settle,
            beside_only: true,
            vault,
            worth,
        }
    }
}
