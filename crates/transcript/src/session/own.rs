//! What Tailor has written into a session: messages that stand for others, and markers where something was cut.

use super::Session;
use crate::format::EntryPart;
use spans::json;
use spans::source::Fault;

/// The beginning of both.
pub(crate) const BEGIN: &[u8] = b"[tailor: ";

/// Whether an entry is a message that Tailor put in the place of older ones, in a format that compacts so.
pub(crate) fn stands_for_others(session: &Session<'_>, entry: u32) -> Result<bool, Fault> {
    if session.shape.compacts != super::Compacts::InPlace {
        return Ok(false);
    }
    let Some(doc) = json::parse(session.source, session.entry(entry).span)? else { return Ok(false) };
    let mut own = None;
    (session.format.parts)(&doc, &mut |part| {
        if let EntryPart::Text(text) = part {
            own.get_or_insert(text.prefix().starts_with(BEGIN));
        }
    });
    Ok(own == Some(true))
}
