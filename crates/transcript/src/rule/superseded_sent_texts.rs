//! S22: texts of results as they were sent, in records that are not read any more.

use super::base::{Cover, Feature, FindingSink, Group, Help, Repeats, Rule, RuleInfo, about};
use crate::model::entry::Service;
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::session::Session;
use alloc::format;
use alloc::vec::Vec;
use hashbrown::HashSet;
use spans::json::{self, Value, ValueKind};
use spans::marker;
use spans::source::{Fault, Span, read_span};

/// From this size on it is worth a warning.
const WARNING_BYTES: u64 = 1 << 20;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S22",
        name: "superseded-sent-texts",
        help: Help {
            what: "OpenClaw notes after each batch of tools what it sent of every result so far (`openclaw.cache-ttl`), for the \
                   prompt cache, and reads only the newest of these notes. It also ignores what it notes of a result that has \
                   changed since.",
            why: "Each note repeats the texts of those before: 12 batches with 1.7 MB of results came to 10.9 MB that are never sent. \
                  They count against what OpenClaw loads of a session (S23), and still hold what was cut from a result.",
            fix: "What notes that are not read hold of results is taken out, and of a result that has changed its text; the rest of \
                  each note stays. Always safe: OpenClaw writes such notes itself, and sends a result without one as it is stored.",
            source: "OpenClaw 2026.9.6, restoreCacheTtlToolResultProjections",
        },
        groups: &[Group::DeadWeight],
        model_sees: false,
        recovers: true,
        wakes: &[Feature::Snapshot],
        repeats: Repeats::Once,
        ..RuleInfo::BASE
    },
    cover: |format| if format.keeps_sent_texts { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let Spare { first, notes, bytes, all } = ops(session)?;
    if all.is_empty() {
        return Ok(());
    }
    let severity = if bytes >= WARNING_BYTES { Severity::Warning } else { Severity::Note };
    let noun = if notes == 1 { "note" } else { "notes" };
    let message = format!(
        "texts of {bytes} bytes that were sent, in {notes} {noun} that the agent does not read any more"
    );
    out.push(Finding {
        saves_bytes: Some(bytes),
        fix: Fix::safe(all),
        ..about(&RULE, session, first, severity, message)
    });
    Ok(())
}

/// Texts that are not read.
#[derive(Default)]
pub(super) struct Spare {
    first: u32,
    /// How many records they are in, and how many bytes they have.
    notes: u64,
    pub(super) bytes: u64,
    /// Steps that take them out.
    pub(super) all: Vec<Op>,
}

/// Finds the texts that are not read.
pub(super) fn ops(session: &Session<'_>) -> Result<Spare, Fault> {
    let mut spare = Spare::default();
    let notes = || session.transcript.unusual().filter(|(_, entry)| entry.service == Service::SentTexts);
    if notes().next().is_none() {
        return Ok(spare);
    }
    let changed = changed_results(session)?;
    let newest = newest(session)?;
    for (entry, found) in notes() {
        // On another branch it may be the newest one, if the user goes back there.
        let is_superseded = session.is_live(entry) && newest != Some(entry);
        if !is_superseded && changed.is_empty() {
            continue;
        }
        let Some(doc) = json::parse(session.source, found.span)? else { continue };
        let Some(data) = doc.get("data") else { continue };
        let Some(items) = data.get("frozenToolResults") else { continue };
        let goes = |item: &Value<'_>| is_superseded || is_about(*item, &changed);
        // An invalid note stays invalid, or it would be read instead of an older one.
        let spans: Vec<Span> = if is_superseded && is_valid(data) {
            all_items(items).into_iter().collect()
        } else {
            items.items().filter(goes).filter_map(texts).collect()
        };
        if spans.is_empty() {
            continue;
        }
        if spare.notes == 0 {
            spare.first = entry;
        }
        spare.notes += 1;
        spare.bytes += spans.iter().map(|at| at.len()).sum::<u64>();
        spare.all.extend(spans.into_iter().map(|at| Op::Replace { at, with: Vec::new() }));
    }
    Ok(spare)
}

/// The record that is read: the newest valid one after the last reset.
fn newest(session: &Session<'_>) -> Result<Option<u32>, Fault> {
    for &entry in session.live.iter().rev() {
        match session.entry(entry).service {
            Service::Reset => return Ok(None),
            Service::SentTexts => {
                let doc = json::parse(session.source, session.entry(entry).span)?;
                if doc.as_ref().and_then(|doc| doc.get("data")).is_some_and(is_valid) {
                    return Ok(Some(entry));
                }
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Whether OpenClaw takes this for a note (`cacheTtlProjectionSnapshotSchema`).
fn is_valid(data: Value<'_>) -> bool {
    let pruned = |item: Value<'_>| {
        let [key, mode, placeholder] = item.pick(["key", "mode", "placeholder"]);
        let is = |name| mode.is_some_and(|mode| mode.is(name));
        key.is_some_and(is_text) && (is("soft") || is("hard") && placeholder.is_some_and(is_text))
    };
    let sent = |item: Value<'_>| {
        let [key, hash, texts] = item.pick(["key", "sourceHash", "texts"]);
        key.is_some_and(is_text) && hash.is_some_and(is_text) && texts.is_none_or(are_texts)
    };
    let [before, ambiguous, items] =
        data.pick(["prunedToolResults", "ambiguousToolResultBaseKeys", "frozenToolResults"]);
    before.is_some_and(|list| is_list_of(list, pruned))
        && ambiguous.is_none_or(are_texts)
        && items.is_none_or(|list| is_list_of(list, sent))
}

fn is_text(value: Value<'_>) -> bool {
    value.kind() == ValueKind::String
}

fn are_texts(value: Value<'_>) -> bool {
    is_list_of(value, is_text)
}

fn is_list_of(value: Value<'_>, item: impl Fn(Value<'_>) -> bool) -> bool {
    value.kind() == ValueKind::Array && value.items().all(item)
}

/// All that is in a list; `None` if it is empty. Without texts an item is still some hundred bytes, and each note has one for each
/// result before it: after sixty turns these were two thirds of what OpenClaw loads.
fn all_items(items: Value<'_>) -> Option<Span> {
    let (first, last) = (items.items().next()?, items.items().last()?);
    Some(Span::new(first.span().start, last.span().end))
}

/// The texts of an item with their name and the comma before it; `None` if it has none.
fn texts(item: Value<'_>) -> Option<Span> {
    let mut before = None;
    for (key, value) in item.fields() {
        if key.is("texts") {
            return Some(Span::new(before?, value.span().end));
        }
        before = Some(value.span().end);
    }
    None
}

/// The ids of the calls whose results hold a cut of ours: what was noted of them is not read, because its hash differs.
fn changed_results(session: &Session<'_>) -> Result<HashSet<Vec<u8>>, Fault> {
    let mut changed = HashSet::new();
    for (index, result) in session.transcript.results.iter().enumerate() {
        for text in session.transcript.bodies_of(index).iter().filter(|text| !text.is_unmarked()) {
            if marker::may_hold(&read_span(session.source, text.inner)?) {
                changed.insert(plain(session.transcript.id_text(result.call)));
            }
        }
    }
    Ok(changed)
}

/// Whether an item is about one of these calls: its key is `tool:ID:TIME`, where the id may lack all signs.
fn is_about(item: Value<'_>, calls: &HashSet<Vec<u8>>) -> bool {
    let Some(key) = item.get("key").and_then(Value::text) else { return false };
    let id = key.strip_prefix(b"tool:").and_then(|key| Some(&key[..memchr::memrchr(b':', key)?]));
    id.is_some_and(|id| calls.contains(&plain(id)))
}

fn plain(id: &[u8]) -> Vec<u8> {
    id.iter().copied().filter(u8::is_ascii_alphanumeric).collect()
}
