//! Leave to replace a file: what is asked before anything is written.

use crate::content::Content;
use crate::deferral::Deferral;
use crate::gate::{self, GateTarget, Pass};
use crate::options::{Mode, Options};
use crate::platform::{self, mounts};
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::stop::Stop;
use crate::writers;
use transcript::Facts;
use transcript::format::Gate;

/// What is asked before the gates of the format if the conversation changes: that waits for runs in every format.
pub(crate) const CONVERSATION_GATES: &[Gate] = &[Gate::RunInProgress];

/// Leave to replace the file, or why not. Asks `more` gates first.
pub(crate) fn may_write(
    snapshot: &Snapshot,
    facts: &Facts,
    options: &Options,
    more: &[Gate],
) -> Result<Pass, Stop> {
    if !platform::TRIED && !options.untried_systems {
        return Err(Refusal::UntriedSystem.into());
    }
    snapshot.refusal().map_or(Ok(()), Err)?;
    let gates = [more, facts.format.map_or(&[][..], |format| format.gates)].concat();
    let pass = gate::pass(&gates, &target(snapshot, facts, options.mode == Mode::Fix), options.settle)?;
    // Last, for it reads the mounts of all processes.
    mounts::refusal(&snapshot.path, &snapshot.file).map_or(Ok(pass), |refusal| Err(refusal.into()))
}

/// Whether the file could be replaced now. Nothing is written to find out.
pub(crate) fn could_write(
    snapshot: &Snapshot,
    facts: &Facts,
    options: &Options,
    more: &[Gate],
) -> Result<(), Stop> {
    if snapshot.is_locked() {
        return Err(Deferral::OtherTailor.into());
    }
    let _pass = may_write(snapshot, facts, options, more)?;
    writers::keep_out(&snapshot.path, &snapshot.file, &snapshot.metadata, writers::PATIENCE).map(drop)
}

/// Why an agent may hold a conversation in memory; `None` if none can, or nobody minds. A `settle` of 0 says that no agent
/// is running.
pub(crate) fn may_be_remembered(content: &Content, facts: &Facts, options: &Options) -> Option<Deferral> {
    if options.settle.is_zero() || options.policy.reloads(facts.format) {
        return None;
    }
    gate::memory::waits(&target(content, facts, false), options.memory_settle)
}

fn target<'a>(content: &'a Content, facts: &'a Facts, makes_locks: bool) -> GateTarget<'a> {
    let Content { path, file, metadata } = content;
    GateTarget { path, file, metadata, facts, makes_locks }
}
