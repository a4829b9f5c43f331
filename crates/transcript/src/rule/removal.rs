//! Not a rule: how entries and blocks are taken out.

use crate::finding::{Fix, Guard, Held, Op};
use crate::format::Answer;
use crate::session::Session;
use alloc::vec;
use alloc::vec::Vec;
use spans::json;
use spans::source::{Fault, Span};

/// Takes an entry out.
pub(super) fn take_out(session: &Session<'_>, entry: u32) -> Fix {
    if session.shares_its_id(entry) || session.is_labelled(entry) {
        return Fix::held(Held::Referenced);
    }
    let ops = vec![Op::DropEntry(entry)];
    if session.format.answer() != Answer::Line {
        Fix::guarded(Guard::ChangesLineCount, ops)
    } else if session.is_newest(entry) && session.entry(entry).id.is_some() {
        Fix::guarded(Guard::NewestEntry, ops)
    } else {
        Fix::safe(ops)
    }
}

/// Takes blocks of an entry's content out, and the entry with them if nothing else is in it.
pub(super) fn take_out_blocks(session: &Session<'_>, entry: u32, blocks: &[Span]) -> Result<Fix, Fault> {
    if session.is_whole_conversation(entry) {
        return take_out_spare_blocks(session, entry, blocks);
    }
    let doc = json::parse(session.source, session.entry(entry).span)?;
    let arrays = doc.as_ref().and_then(json::Doc::root).into_iter().flat_map(json::Value::descendants);
    let holds = |array: &json::Value<'_>| array.items().any(|item| blocks.contains(&item.span()));
    let all =
        arrays.into_iter().filter(holds).all(|array| array.items().all(|item| blocks.contains(&item.span())));
    if all {
        return Ok(take_out(session, entry));
    }
    Ok(Fix::safe(drop_blocks(entry, blocks)))
}

/// Takes blocks out where something else is left in their list: of a line that is a whole conversation.
fn take_out_spare_blocks(session: &Session<'_>, entry: u32, blocks: &[Span]) -> Result<Fix, Fault> {
    let doc = json::parse(session.source, session.entry(entry).span)?;
    let mut spare = Vec::new();
    for list in doc.as_ref().and_then(json::Doc::root).into_iter().flat_map(json::Value::descendants) {
        let (own, others): (Vec<Span>, Vec<Span>) =
            list.items().map(json::Value::span).partition(|span| blocks.contains(span));
        if !others.is_empty() {
            spare.extend(own);
        }
    }
    Ok(if spare.is_empty() { Fix::NONE } else { Fix::safe(drop_blocks(entry, &spare)) })
}

pub(super) fn drop_blocks(entry: u32, blocks: &[Span]) -> Vec<Op> {
    blocks.iter().map(|&block| Op::DropBlock { entry, block }).collect()
}

/// The same fix, made only when asked for.
pub(super) fn only_if_asked(fix: Fix, why: Guard) -> Fix {
    match fix.safety {
        crate::finding::Safety::Safe => Fix::guarded(why, fix.ops),
        _ => fix,
    }
}
