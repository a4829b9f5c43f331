//! Not a rule: how to remove results, entries and blocks.

use super::base::Cover;
use super::counted::records_stay;
use crate::format::{Format, ResultPlace, Results};
use crate::model::entry::{Kind, Role};
use crate::model::finding::{Fix, Guard, Held, Op};
use crate::session::Session;
use alloc::vec;
use alloc::vec::Vec;
use spans::json;
use spans::source::{Fault, Span};

/// Removes an entry.
pub(super) fn take_out(session: &Session<'_>, entry: u32) -> Fix {
    if session.shares_its_id(entry) || session.is_labelled(entry) {
        return Fix::held(Held::Referenced);
    }
    let ops = vec![Op::DropEntry(entry)];
    if session.format.answer != ResultPlace::Line {
        Fix::guarded(Guard::ChangesLineCount, ops)
    } else if session.is_newest(entry) && session.entry(entry).id.is_some() {
        Fix::guarded(Guard::NewestEntry, ops)
    } else {
        Fix::safe(ops)
    }
}

/// Removes blocks from an entry's content, and the entry if nothing else is in it.
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

/// Removes blocks from lists that keep other blocks, in a line that is a whole conversation.
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

/// Makes a safe fix a guarded one.
pub(super) fn only_if_asked(fix: Fix, why: Guard) -> Fix {
    match fix.safety {
        crate::model::finding::Safety::Safe => Fix::guarded(why, fix.ops),
        _ => fix,
    }
}

/// What a rule does in a format if it removes results, by their lines or from a line.
pub(super) fn cover_of_removed_results(format: &Format) -> Cover {
    match format.results {
        Results::Lines if records_stay(format) => Cover::Reported,
        Results::Lines | Results::Blocks => Cover::Fixed,
        Results::InConversation => Cover::Reported,
        Results::WithCall | Results::Unpaired | Results::Unread => Cover::Never,
    }
}

/// The results to remove, each with the fix that removes it from its entry together with the entry's others. A fix is
/// planned once per entry, which may hold thousands of results.
pub(super) fn removals<'s>(
    session: &'s Session<'_>,
    goes: &'s dyn Fn(usize) -> bool,
) -> impl Iterator<Item = (usize, Fix)> + 's {
    let mut last: Option<(u32, Fix)> = None;
    (0..session.answers.len()).filter(|&result| goes(result)).map(move |result| {
        let entry = session.result(result).entry;
        let (_, fix) = last.take().filter(|(of, _)| *of == entry).unwrap_or_else(|| {
            let together: Vec<usize> =
                session.transcript.results_of(entry).filter(|&other| goes(other)).collect();
            (entry, drop_results(session, entry, &together))
        });
        last = Some((entry, fix.clone()));
        (result, fix)
    })
}

/// Removes results from an entry, and the entry if nothing else is left. The results are in order.
fn drop_results(session: &Session<'_>, entry: u32, results: &[usize]) -> Fix {
    let Kind::Message(role) = session.kind(entry) else {
        // The entry is a whole conversation, and the result only part of one of its messages.
        return Fix::held(Held::Tangled);
    };
    let block_of = |result: usize| session.result(result).block;
    let mut blocks: Vec<Span> = results.iter().map(|&result| block_of(result)).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let mut own = session.transcript.results_of(entry);
    if results.iter().any(|&result| session.is_in_record_of_call(result)) {
        let goes = |result: usize| results.binary_search(&result).is_ok();
        if own.any(|other| !goes(other) && blocks.binary_search(&block_of(other)).is_ok()) {
            return Fix::held(Held::Tangled);
        }
        let emptied = blocks.into_iter().map(|at| Op::Replace { at, with: b"[]".to_vec() });
        return Fix::safe(emptied.collect());
    }
    let whole = results.iter().any(|&result| session.result(result).whole);
    let alone = whole || (role == Role::Tool && results.len() == own.len());
    // Users may rewind to a record by its id, so an emptied record stays.
    if !alone || session.shape.emptied_records_stay {
        return Fix::safe(blocks.into_iter().map(|block| Op::DropBlock { entry, block }).collect());
    }
    if session.shares_its_id(entry) || session.is_labelled(entry) {
        return Fix::held(Held::Referenced);
    }
    let ops = vec![Op::DropEntry(entry)];
    if session.format.answer != ResultPlace::Line {
        return Fix::guarded(Guard::ChangesLineCount, ops);
    }
    let is_newest = session.is_newest(entry) && session.entry(entry).id.is_some();
    if is_newest { Fix::guarded(Guard::NewestEntry, ops) } else { Fix::safe(ops) }
}
