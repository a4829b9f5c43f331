//! A compaction of one file: what the agent would write itself, put in like any other change.
//!
//! Who wrote the summary is not known here.

use crate::outcome::Ending;
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::{CONVERSATION_GATES, Drawn, Error, Job, Options, Outcome, Purpose, carry, in_the_way, sealed};
use std::cell::Cell;
use std::path::Path;
use transcript::compact::{self, Request, Shares, Stay};
use transcript::examine;

/// How a conversation was compacted.
pub struct Compacting {
    /// What was done.
    pub outcome: Outcome,
    /// How the conversation was divided.
    pub shares: Shares,
}

/// Compacts the conversation in a file: what is older than `stay` gives way to the summary. A conversation that waits
/// for a tool or for the model is deferred, in every format.
///
/// # Errors
///
/// When the file cannot be read or written. Then it is as it was.
pub fn compact(
    path: &Path,
    root: Option<&Path>,
    options: &Options,
    stay: Stay,
    summary: &str,
) -> Result<Compacting, Error> {
    let request = Request { stay, summary: Some(summary), message_chars_max: 0 };
    let shares = Cell::new(Shares::default());
    let outcome = carry(path, root, options, &|snapshot, policies| {
        let done = snapshot.read(|source| compact::compact(source, policies.choose(source)?, &request))?;
        shares.set(done.shares);
        let job = done.repair.map(|repair| Job { purpose: Some(Purpose::Compact), ..repair.into() });
        let job = job.map_err(|unable| Ending::Refused(Refusal::Unable(unable)));
        Ok(Drawn { before: done.before, job })
    })?;
    Ok(Compacting { outcome, shares: shares.get() })
}

/// How a compaction would end if it were tried now, if not well: summaries cost money, and need not be asked for in vain.
///
/// # Errors
///
/// When the file cannot be read.
pub fn closed(path: &Path, options: &Options) -> Result<Option<Ending>, Error> {
    if let Some(ending) = sealed(path) {
        return Ok(Some(ending));
    }
    let snapshot = match Snapshot::open(path, None)? {
        Ok(snapshot) => snapshot,
        Err(refusal) => return Ok(Some(Ending::Refused(refusal))),
    };
    let facts = snapshot.read(|source| examine(source, options.policy.choose(source)?))?.facts;
    Ok(in_the_way(&snapshot, &facts, options, CONVERSATION_GATES)?.map(Ending::from))
}
