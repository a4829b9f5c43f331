//! Not a rule: reports entries that are in the file but not loaded, with one finding per file.

use super::base::{FindingSink, Rule, about};
use crate::model::finding::{Finding, Fix, Guard, Op, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec::Vec;
use hashbrown::HashSet;

/// Dead weight from this size on is worth a warning.
const WARNING_BYTES: u64 = 10 << 20;

/// Reports those of these entries that may be removed, as one finding; nothing if there are none.
pub(super) fn report(
    rule: &'static Rule,
    session: &Session<'_>,
    entries: impl Iterator<Item = u32>,
    message: &str,
    out: &mut FindingSink<'_>,
) {
    let entries: Vec<u32> = entries.collect();
    let Some(&first) = entries.first() else { return };
    let targets: HashSet<u32> =
        session.live.iter().chain(&session.leaf).filter_map(|&entry| session.target(entry)).collect();
    let may_go = |entry: &u32| !targets.contains(entry) && may_go(session, *entry);
    let going: Vec<u32> = entries.into_iter().filter(may_go).collect();
    let bytes: u64 = going.iter().map(|&entry| session.transcript.own_bytes(entry) + 1).sum();
    let severity = if bytes >= WARNING_BYTES { Severity::Warning } else { Severity::Note };
    let ops: Vec<Op> = going.into_iter().map(Op::DropEntry).collect();
    out.push(Finding {
        saves_bytes: Some(bytes),
        fix: if ops.is_empty() { Fix::NONE } else { Fix::guarded(Guard::History, ops) },
        ..about(rule, session, first, severity, message.to_string())
    });
}

/// Whether nothing needs an entry: neither another entry, nor the agent, which may append children to it.
fn may_go(session: &Session<'_>, entry: u32) -> bool {
    !session.is_newest(entry)
        && !session.is_pending(entry)
        && !session.shares_its_id(entry)
        && !session.is_labelled(entry)
}
