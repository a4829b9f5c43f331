//! A compaction of one file: what the agent would write itself, put in like any other change.
//!
//! Who wrote the summary is not known here.

use crate::ask::error::Error;
use crate::ask::outcome::{Ending, Outcome};
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::jobs::carry::{Drawn, Next, carry, sealed};
use crate::jobs::leave::{CONVERSATION_GATES, could_write};
use crate::options::Options;
use crate::swap::snapshot::{Snapshot, as_owner};
use crate::vault::Purpose;
use std::path::Path;
use transcript::compact::{self, CompactRequest, Shares, Stay};
use transcript::{Case, examine};

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
    let request = CompactRequest { stay, summary: Some(summary), message_chars_max: 0 };
    let (outcome, shares) = carry(path, root, options, &|content, situation| {
        let done = content.read_whole(&options.policy, |reading, policy| {
            compact::compact(reading, Case { policy, situation }, &request)
        })?;
        let next = match done.repair {
            Ok(repair) => Next::change(repair, Some(Purpose::Compact)),
            Err(unable) => Next::End(Ending::Refused(Refusal::Unable(unable))),
        };
        Ok(Drawn { before: done.before, next, seen: Some(done.shares) })
    })?;
    Ok(Compacting { outcome, shares: shares.unwrap_or_default() })
}

/// Why a compaction would not succeed now, if so. Summaries cost money, so this is checked before one is requested.
///
/// # Errors
///
/// When the file cannot be read.
pub fn closed(path: &Path, options: &Options) -> Result<Option<Ending>, Error> {
    if let Some(ending) = sealed(path) {
        return Ok(Some(ending));
    }
    let could = || -> Result<(), Stop> {
        let _acting = as_owner(path)?;
        let snapshot = Snapshot::open(path, None)?;
        let found = snapshot.read(|source| examine(source, options.case(source)?))?;
        could_write(&snapshot, &found.facts, options, CONVERSATION_GATES)
    };
    could().err().map(Ending::from_stop).transpose()
}
