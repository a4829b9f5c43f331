//! Numbers in a session by which its agent itself judges how full the context is, and refuses it.

use super::Session;
use crate::model::entry::{Kind, Role};
use crate::model::finding::Op;
use alloc::vec::Vec;
use spans::json::{self, Value};
use spans::source::Fault;

/// Steps that set them to 0 in these messages of the model, because they count what is gone.
pub(crate) fn resets(session: &Session<'_>, entries: impl Iterator<Item = u32>) -> Result<Vec<Op>, Fault> {
    let mut steps = Vec::new();
    let Some(gauges) = session.format.gauges else { return Ok(steps) };
    for entry in entries.filter(|&entry| session.kind(entry) == Kind::Message(Role::Assistant)) {
        let Some(doc) = json::parse(session.source, session.entry(entry).span)? else { continue };
        gauges(&doc, &mut |number: Value<'_>| {
            if number.whole().is_some_and(|count| count > 0) {
                steps.push(Op::Replace { at: number.span(), with: b"0".to_vec() });
            }
        });
    }
    Ok(steps)
}
