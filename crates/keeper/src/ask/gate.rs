//! Whether the agent that owns a file may be at work on it right now.
//!
//! First, every file must have been quiet for a while. Then come the gates that its format declares: each asks one agent's
//! locks, leases or registers, and has a file in this folder. Where the agent expects other programs to take its lock, the
//! gate takes it, and it is given back when the [`Pass`] is dropped.
//!
//! A gate cannot see a program that follows no protocol. For those there is `writers`, and the care that `replace` takes.

mod claude;
mod codex;
mod copilot;
mod grok;
pub(crate) mod memory;
mod openclaw;
mod qwen;
mod target;

pub(crate) use target::GateTarget;
pub use target::quiet_for;

use crate::ask::deferral::Deferral;
use crate::ask::running::AgentLife;
use crate::ask::stop::Stop;
use crate::platform::{System, This};
use std::time::{Duration, SystemTime};
use target::{HeldLock, open_unless};
use transcript::Facts;
use transcript::format::Gate;

/// How long a conversation that waits for a tool or the model must have been quiet to count as abandoned.
const RUN_SETTLE: Duration = Duration::from_secs(10 * 60);

/// Permission to write, until it is dropped. Holds the agents' locks.
#[derive(Default)]
pub(crate) struct Pass {
    held: Vec<Box<dyn HeldLock>>,
}

impl Pass {
    /// Why a new text of another length is refused; `None` if it may have any.
    pub(crate) fn keeps_length(&self) -> Option<&'static str> {
        self.held.iter().find_map(|held| held.keeps_length())
    }

    /// Whether it holds a lock of an agent.
    pub(crate) fn holds_lock(&self) -> bool {
        !self.held.is_empty()
    }
}

/// Asks all gates. A `settle` of 0 means that no agent is running, so ages do not matter; locks and registers are obeyed
/// all the same.
pub(crate) fn pass(gates: &[Gate], target: &GateTarget<'_>, settle: Duration) -> Result<Pass, Stop> {
    let quiet = quiet_for(target.metadata, SystemTime::now());
    if quiet < settle {
        return Err(Deferral::Growing { quiet, settle }.into());
    }
    let may_run = quiet < RUN_SETTLE && !settle.is_zero();
    if !This::shows_files() && !settle.is_zero() {
        runs(target.facts, quiet).map_or(Ok(()), Err)?;
    }
    let mut pass = Pass::default();
    for gate in gates {
        pass.held.extend(match gate {
            Gate::RunInProgress => open_unless(run(target.facts, quiet, settle)),
            Gate::Idle => open_unless(may_run.then_some(Deferral::MayRun { quiet, wanted: RUN_SETTLE })),
            Gate::GrokLock => grok::ask(target),
            Gate::OpenClawLock => openclaw::ask(target),
            Gate::ClaudeRegistry => claude::ask(target),
            Gate::CodexWriter => codex::ask(target, (!settle.is_zero()).then_some(quiet)),
            Gate::CopilotInUse => copilot::ask(target),
            Gate::QwenLease => qwen::ask(target),
        }?);
    }
    Ok(pass)
}

/// Why to wait for an agent that runs, where the system does not say which files it has open.
fn runs(facts: &Facts, quiet: Duration) -> Option<Deferral> {
    // Claude Code's register says who uses a session.
    let format = facts.format.filter(|format| !format.gates_know_memory)?;
    match AgentLife::of_format(format) {
        AgentLife::MayRun if quiet < RUN_SETTLE => Some(Deferral::MayRun { quiet, wanted: RUN_SETTLE }),
        life => life.deferral(),
    }
}

/// Why to wait for a conversation that waits for a tool or the model. OpenClaw holds no lock between the prompt and the
/// answer, but ends the turn if the file was replaced meanwhile (`run/attempt.session-lock.ts`). Only the transcript itself
/// shows that a turn is under way.
pub(crate) fn run(facts: &Facts, quiet: Duration, settle: Duration) -> Option<Deferral> {
    let awaits = facts.awaits?;
    let young = quiet < RUN_SETTLE && !settle.is_zero();
    young.then_some(Deferral::Running { awaits, quiet, wanted: RUN_SETTLE })
}

#[cfg(test)]
mod tests {
    use super::target::tests::GateCase;
    use super::*;
    use transcript::Awaits;

    #[test]
    fn quiet_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let case = GateCase::new(dir.path().join("s.jsonl"), "x");
        let hour = Duration::from_secs(60 * 60);
        let Err(Stop::Deferred(Deferral::Growing { settle, .. })) = pass(&[], &case.target(), hour) else {
            panic!("it was written just now");
        };
        assert_eq!(settle, hour);
        assert!(pass(&[], &case.target(), Duration::ZERO).is_ok());
    }

    #[test]
    fn a_run_is_over_after_a_while_or_when_somebody_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut case = GateCase::new(dir.path().join("s.jsonl"), "x");
        let (short, long, settle) =
            (Duration::from_secs(9), RUN_SETTLE + Duration::from_secs(1), Duration::from_secs(5));
        assert_eq!(run(&case.facts, short, settle), None);
        case.facts.awaits = Some(Awaits::Tool);
        assert!(matches!(run(&case.facts, short, settle), Some(Deferral::Running { .. })));
        assert_eq!(run(&case.facts, long, settle), None);
        assert_eq!(run(&case.facts, short, Duration::ZERO), None);
    }

    #[test]
    fn every_deferral_says_when_to_try_again() {
        let secs = Duration::from_secs;
        let said = [
            (Deferral::Growing { quiet: secs(1), settle: secs(5) }, "retry in 4 s"),
            (
                Deferral::MayRun { quiet: secs(3), wanted: RUN_SETTLE },
                "modified 3 s ago; waiting for 10 min without writes, because this agent leaves no sign that it is \
                 running (level archive); pass --settle 0 if no agent is running; retry in 10 min",
            ),
            (Deferral::Changed, "retry in 1 s"),
            (
                Deferral::RecentHistory { quiet: secs(60), wanted: secs(3_600) },
                "modified 60 s ago, waiting for 60 min without writes (pass --settle-stale 0 to change it now); retry in 59 min",
            ),
            (
                Deferral::Running { awaits: Awaits::Model, quiet: secs(30), wanted: RUN_SETTLE },
                "(modified 30 s ago); pass --settle 0 if no agent is running; retry in 10 min",
            ),
            (Deferral::Locked { pid: 7, age: secs(20) }, "retry in 20 s"),
            (Deferral::Locked { pid: 7, age: secs(4_000) }, "for 67 min; retry in 60 s"),
            (Deferral::Locked { pid: 7, age: secs(0) }, "retry in 1 s"),
            (
                Deferral::Doubtful { age: secs(10), grace: secs(30) },
                "stale after 30 s, and is 10 s old; retry in 20 s",
            ),
            (
                Deferral::Compacting { age: secs(10), grace: secs(300) },
                "stale after 5 min, and is 10 s old; retry in 5 min",
            ),
            (
                Deferral::InUse { agent: "Copilot", pid: 7, status: None },
                "(process 7); quit Copilot first; retry in 60 s",
            ),
            (Deferral::Busy { agent: "Codex", lock: "maintenance lock" }, "retry in 60 s"),
            (Deferral::Open { pid: 7, name: "codex".into() }, "quit codex first; retry in 60 s"),
            (
                Deferral::Unseen { processes: 2, quiet: secs(86_400), wanted: secs(7 * 86_400) },
                "retry in 6 days",
            ),
            (Deferral::Unprovable { agent: "Qwen Code" }, "retry in 60 s"),
        ];
        for (deferral, end) in said {
            assert!(deferral.to_string().ends_with(end), "{deferral}");
        }
    }
}
