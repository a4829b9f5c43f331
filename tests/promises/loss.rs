//! What a repair may remove and what not, computed from the rows alone.

use super::oracle::refusals;
use super::reader::{FileObject, blocks, is_marred, is_odd, lines, live, message, parse, rows_before_tear};
use super::story::Dialect;
use serde_json::{Value, json};
use spans::literal::Unit;
use std::collections::{BTreeMap, BTreeSet};
use transcript::policy::{Policy, SignedThinking};

/// Whether the content of a record that the agent would send is not under its name.
fn holds_nothing(dialect: Dialect, row: &Value) -> bool {
    let kind = row["type"].as_str().unwrap_or_default();
    let said = message(dialect, row);
    match dialect {
        Dialect::Pi | Dialect::PiFlat if kind == "custom_message" => row["content"].is_null(),
        Dialect::ClaudeCode if kind == "assistant" => said["content"].is_null(),
        _ => said["role"] == "assistant" && said["content"].is_null() && said["tool_calls"].is_null(),
    }
}

/// An object without everything that may change. `None` if a repair may remove it.
fn skeleton(dialect: Dialect, row: &Value, policy: &Policy, thinking_goes: bool) -> Option<Value> {
    // An overwritten name may be restored.
    if holds_nothing(dialect, row) || is_marred(message(dialect, row)) {
        return None;
    }
    let mut left = row.clone();
    for key in ["parentId", "parentUuid", "firstKeptEntryId", "firstKeptEntryIndex", "toolUseResult"] {
        if let Some(value) = left.get_mut(key) {
            *value = Value::Null;
        }
    }
    let aborted = row["isApiErrorMessage"] == true || row["message"]["stopReason"] == "aborted";
    let spoken = match dialect {
        Dialect::Pi | Dialect::PiFlat | Dialect::ClaudeCode => left.get_mut("message"),
        Dialect::OpenAiChat | Dialect::Anthropic => Some(&mut left),
    };
    let Some(spoken) = spoken else { return Some(left) };
    if spoken["role"] == "toolResult" || spoken["role"] == "tool" {
        return None;
    }
    if spoken["role"] == "user" && spoken["content"].is_string() {
        spoken["content"] = json!([{"type": "text", "text": spoken["content"]}]);
    }
    // What the newest answer was counted at is no longer true of a shorter context, and Claude Code goes by it.
    if let (Dialect::ClaudeCode, Some(count)) = (dialect, spoken.pointer_mut("/usage/input_tokens")) {
        *count = Value::Null;
    }
    // A turn without a call may lose its stop reason for tools.
    if ["toolUse", "stop"].contains(&spoken["stopReason"].as_str().unwrap_or_default()) {
        spoken["stopReason"] = Value::Null;
    }
    for key in ["content", "tool_calls"] {
        let Some(items) = spoken.get_mut(key).and_then(Value::as_array_mut) else { continue };
        items.iter_mut().for_each(name_again);
        let mut seen: Vec<Value> = Vec::new();
        let empty = items.is_empty();
        items.retain(|block| {
            let twice = block.get("id").is_some() && seen.contains(block);
            seen.push(block.clone());
            let partial = block.get("partialJson").is_some()
                || (block["type"] == "tool_use" && block.get("input").is_none());
            let text = block["text"].as_str().map(str::trim);
            let blank = text == Some("") || (block["type"] == "text" && block.get("text").is_none());
            let gone = block["type"] == "tool_result"
                || blank
                || twice
                || (aborted && partial)
                || (thinking_goes && block["type"] == "thinking");
            !gone
        });
        if items.is_empty() && (!empty || key == "content") {
            return None;
        }
        // A missing value may have become an empty object.
        for block in items.iter_mut() {
            let empty = |value: &Value| value.is_null() || *value == json!({}) || *value == json!("{}");
            let holder = if block["function"].is_object() { &mut block["function"] } else { block };
            let Some(holder) = holder.as_object_mut() else { continue };
            holder.retain(|key, value| !(["arguments", "input"].contains(&key.as_str()) && empty(value)));
        }
        // The second of two calls with one id may be renamed, if that is allowed.
        for block in items.iter_mut().filter(|_| policy.selection.allow.iter().any(|code| code == "P6")) {
            let own = block["id"].as_str().and_then(|id| id.split_once("__")).map(|(id, _)| id.to_string());
            if let Some(own) = own {
                block["id"] = own.into();
            }
        }
    }
    Some(left)
}

/// Restores an overwritten name in a block.
fn name_again(block: &mut Value) {
    let name = match block["type"].as_str() {
        Some("text") => "text",
        Some("tool_use") => "input",
        _ => "arguments",
    };
    let holder = if block["function"].is_object() { &mut block["function"] } else { block };
    let Some(holder) = holder.as_object_mut() else { return };
    let marred = holder.keys().find(|key| is_odd(key)).cloned();
    if let Some(value) = marred.and_then(|key| holder.remove(&key)) {
        holder.insert(name.into(), value);
    }
}

/// Whether each named parent comes before its child.
fn hangs_together(bytes: &[u8]) -> bool {
    let mut ids = BTreeSet::new();
    rows_before_tear(bytes).iter().all(|row| {
        let of = |keys: [&str; 2]| keys.iter().find_map(|key| row.value[*key].as_str().map(String::from));
        let hangs = of(["parentId", "parentUuid"]).is_none_or(|parent| ids.contains(&parent));
        ids.extend(of(["id", "uuid"]));
        hangs
    })
}

/// Whether a row is a compaction that was removed because the policy allows it: `after` has another one from the same
/// place.
fn outdone(after: &[u8], policy: &Policy) -> impl Fn(&Value) -> bool {
    let asked = policy.selection.allow.iter().any(|code| code == "T3");
    let mut kept: Vec<Value> = rows_before_tear(after).into_iter().map(|row| row.value).collect();
    kept.retain(|row| asked && row["type"] == "compaction" && row["parentId"].is_string());
    move |row| {
        let gone = row["type"] == "compaction" && kept.iter().all(|kept| kept["id"] != row["id"]);
        gone && kept.iter().any(|kept| kept["parentId"] == row["parentId"])
    }
}

/// All keys of objects in a value.
fn names_of(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| {
            names.insert(name.clone());
            names_of(value, names);
        }),
        Value::Array(values) => values.iter().for_each(|value| names_of(value, names)),
        _ => {}
    }
}

/// A value in which each key that differs in one character from exactly one of `names` is replaced by it.
fn with_names(value: &Value, names: &BTreeSet<String>) -> Value {
    match value {
        Value::Object(object) => {
            let renamed = object.iter().map(|(name, value)| {
                let mut near = names.iter().filter(|known| !names.contains(name) && is_near(name, known));
                let known = near.next().filter(|_| near.next().is_none()).unwrap_or(name);
                (known.clone(), with_names(value, names))
            });
            Value::Object(renamed.collect())
        }
        Value::Array(values) => values.iter().map(|value| with_names(value, names)).collect(),
        other => other.clone(),
    }
}

fn is_near(old: &str, new: &str) -> bool {
    let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
    old.len() == new.len() && old.iter().zip(&new).filter(|(one, other)| one != other).count() == 1
}

/// Objects of `before` that are missing in `after` although no rule may remove them, and the other way round.
pub(crate) fn difference(dialect: Dialect, before: &[u8], after: &[u8], policy: &Policy) -> Vec<String> {
    let mut count: BTreeMap<String, i64> = BTreeMap::new();
    let outdone = outdone(after, policy);
    let mut names = BTreeSet::new();
    rows_before_tear(after).iter().for_each(|row| names_of(&row.value, &mut names));
    // What the provider refuses anyway has no valid signature that a repair could break, nor has thinking whose
    // signature covers lost lines.
    let is_broken = !refusals(dialect, before).is_empty() || !hangs_together(before);
    let thinking_goes = policy.thinking == SignedThinking::Strip || is_broken;
    for (bytes, step) in [(before, 1), (after, -1)] {
        let rows = rows_before_tear(bytes).into_iter().filter(|row| !outdone(&row.value));
        let rows =
            rows.filter_map(|row| skeleton(dialect, &with_names(&row.value, &names), policy, thinking_goes));
        let mut seen = BTreeSet::new();
        for left in rows {
            let text = left.to_string();
            // Of an entry that was written twice, one copy is enough.
            let named = ["id", "uuid"].iter().any(|key| left["type"] != "session" && left[*key].is_string());
            if !named || seen.insert(text.clone()) {
                *count.entry(text).or_default() += step;
            }
        }
    }
    // Lines that could not be read before may show more afterwards.
    let broken = super::reader::is_broken(before);
    let unlike = count.into_iter().filter(|(_, count)| *count > 0 || (*count < 0 && !broken));
    unlike.map(|(left, count)| format!("{count:+} {left}")).collect()
}

/// The results of a transcript: for each call id, their texts.
fn results(dialect: Dialect, rows: &[FileObject]) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut results: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for row in rows {
        let message = message(dialect, &row.value);
        let mut note = |id: &Value, content: &Value| {
            let alone = content.as_str().into_iter();
            let texts = alone.chain(blocks(content).iter().filter_map(|block| block["text"].as_str()));
            if let Some(id) = id.as_str() {
                results.entry(id.to_string()).or_default().push(texts.map(str::to_string).collect());
            }
        };
        for key in ["toolCallId", "tool_call_id"] {
            note(&message[key], &message["content"]);
        }
        for block in blocks(&message["content"]) {
            note(&block["tool_use_id"], &block["content"]);
        }
    }
    results
}

/// How many calls have each id. One that is not on the live branch, or was interrupted, counts twice, so that it is
/// never the certain half of a pair.
fn calls(dialect: Dialect, rows: &[FileObject]) -> BTreeMap<String, usize> {
    let mut calls = BTreeMap::new();
    for row in rows {
        let message = message(dialect, &row.value);
        for block in blocks(&message["content"]).iter().chain(blocks(&message["tool_calls"])) {
            if let Some(id) = block["id"].as_str() {
                *calls.entry(id.to_string()).or_default() += 2;
            }
        }
    }
    for spoken in live(dialect, rows).iter().filter(|spoken| !spoken.aborted) {
        for id in &spoken.calls {
            calls.entry(id.clone()).and_modify(|count| *count -= 1);
        }
    }
    calls
}

/// Results that are missing or not shortened correctly, although each is the only one of the only call with its id, and
/// both are on the live branch.
pub(crate) fn lost_results(dialect: Dialect, before: &[u8], after: &[u8], policy: &Policy) -> Vec<String> {
    let (old_rows, new_rows) = (rows_before_tear(before), rows_before_tear(after));
    let (old, new) = (results(dialect, &old_rows), results(dialect, &new_rows));
    let calls = calls(dialect, &old_rows);
    let unread = unread(before);
    let uncovered = results(dialect, &rows_before_tear(&uncover(before)));
    let answered: Vec<String> = live(dialect, &old_rows).into_iter().flat_map(|s| s.results).collect();
    let mut lost = Vec::new();
    for (id, old) in old {
        let ([old], Some(1)) = (&old[..], calls.get(&id)) else { continue };
        if !answered.contains(&id) {
            continue;
        }
        let new = new.get(&id).map_or(&[][..], Vec::as_slice);
        // A line that became readable may hold another result. Then this was not the only one, but one of them must
        // stay.
        let several = uncovered.get(&id).map_or(&[][..], Vec::as_slice);
        if several.len() > 1 || unread.contains(&format!("\"{id}\"")) {
            let stays = |old: &Vec<String>| new.iter().any(|new| differences(old, new, policy).is_empty());
            if !stays(old) && !several.iter().any(stays) {
                lost.push(format!("{id}: neither this nor one of {} is among {}", several.len(), new.len()));
            }
            continue;
        }
        match new {
            [new] => {
                lost.extend(differences(old, new, policy).into_iter().map(|what| format!("{id}: {what}")))
            }
            _ => lost.push(format!("{id}: {} results", new.len())),
        }
    }
    lost
}

/// The lines that agents cannot read.
fn unread(bytes: &[u8]) -> String {
    let lines = lines(bytes).into_iter().filter(|line| !parse(line).whole);
    lines.map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n")
}

/// The bytes without what prevents whole records from being read.
fn uncover(bytes: &[u8]) -> Vec<u8> {
    let text = bytes.iter().copied().filter(|&byte| byte != 0).collect::<Vec<u8>>();
    text.split(|&byte| byte == b'\n')
        .map(|line| line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line))
        .collect::<Vec<_>>()
        .join(&b'\n')
}

/// The texts of a result that are neither unchanged nor cut correctly.
fn differences(old: &[String], new: &[String], policy: &Policy) -> Vec<String> {
    let limit = policy.result_chars_max;
    // Without a limit of its own, a result is only cut because of its age.
    let limit = if limit == 0 { u64::MAX } else { limit };
    // White space is not content, and may be removed where there is content.
    let says =
        |texts: &[String]| -> Vec<String> { texts.iter().filter(|text| !is_blank(text)).cloned().collect() };
    let (old, new) =
        if old.len() == new.len() { (old.to_vec(), new.to_vec()) } else { (says(old), says(new)) };
    if old.len() != new.len() {
        return vec!["has other texts".to_string()];
    }
    let stays =
        |old: &str, new: &str| (is_blank(old) && is_blank(new)) || is_cut_of(old, new, limit, policy.unit);
    let wrong = old.iter().zip(&new).filter(|(old, new)| !stays(old, new));
    wrong.map(|(old, new)| format!("{old:?} became {new:?}")).collect()
}

/// Whether a tool's result is empty. A note says so in results that were empty.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty() || text == "(no output)"
}

fn length(text: &str, unit: Unit) -> usize {
    match unit {
        Unit::Chars => text.chars().count(),
        Unit::Utf16 => text.encode_utf16().count(),
        Unit::Bytes => text.len(),
    }
}

/// Our marker at the beginning of a text: what was omitted, the total, and the marker's length.
fn marker(text: &str) -> Option<(usize, usize, usize)> {
    let (line, _) = text.strip_prefix("[tailor: ")?.split_once(']')?;
    let (said, id) = line.split_once("; full text: tailor show ")?;
    let (counts, _note) = said.split_once(" chars omitted")?;
    let (gone, total) = counts.split_once(" of ")?;
    let hex = id.len() >= 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then_some((gone.parse().ok()?, total.parse().ok()?, line.len() + 10))
}

/// Whether `new` is `old`, or its beginning and its end with one marker between them whose numbers are right.
fn is_cut_of(old: &str, new: &str, limit: u64, unit: Unit) -> bool {
    // A marker of ours counts the text and line breaks around it; any other is a quotation.
    let own = |(at, _)| {
        marker(&old[at..]).is_some_and(|(gone, total, bytes)| {
            let around = length(old, unit) - bytes;
            (total..=total + 2).contains(&(gone + around))
        })
    };
    let marked_before = old.match_indices("[tailor: ").any(own);
    let cut_at = |at: usize| {
        let Some((gone, total, bytes)) = marker(&new[at..]) else { return false };
        let head = &new[..at];
        let tail = &new[at + bytes..];
        let heads = [head, head.strip_suffix('\n').unwrap_or(head)];
        let tails = [tail, tail.strip_prefix('\n').unwrap_or(tail)];
        heads.iter().any(|head| {
            tails.iter().any(|tail| {
                let kept = length(head, unit) + length(tail, unit);
                old.starts_with(head)
                    && old.ends_with(tail)
                    && head.len() + tail.len() <= old.len()
                    && kept as u64 <= limit
                    && (marked_before || (total == length(old, unit) && gone == total - kept))
            })
        })
    };
    old == new || new.match_indices("[tailor: ").any(|(at, _)| cut_at(at))
}

/// The texts of results that stand for lost ones, in stories and after repairs.
const INVENTED: [&str; 2] = ["[tailor: tool result missing", "[openclaw] missing tool result"];

/// A lower bound for how much of a result's texts remains, without our markers and the line breaks that may surround
/// them.
fn kept(texts: &[String], unit: Unit) -> u64 {
    let of = |text: &String| {
        // An added result for a lost one has no weight.
        if INVENTED.iter().any(|invented| text.starts_with(invented)) || is_blank(text) {
            return 0;
        }
        let markers = text.match_indices("[tailor: ").filter_map(|(at, _)| marker(&text[at..]));
        let whole = length(text, unit);
        markers.fold(whole, |left, (_, _, bytes)| left.saturating_sub(bytes + 2)) as u64
    };
    texts.iter().map(of).sum()
}

/// Turns whose results are together longer than the policy allows: the ids of their calls. Only results on the live
/// branch count that are the only ones of the only call with their id. Which id stands for a turn does not matter.
pub(crate) fn long_turns(dialect: Dialect, bytes: &[u8], policy: &Policy) -> Vec<Vec<String>> {
    let rows = rows_before_tear(bytes);
    let (results, calls) = (results(dialect, &rows), calls(dialect, &rows));
    let live = live(dialect, &rows);
    let answered: BTreeSet<String> = live.iter().flat_map(|spoken| spoken.results.clone()).collect();
    let mut turns: BTreeMap<String, (u64, Vec<String>)> = BTreeMap::new();
    for spoken in live.into_iter().filter(|spoken| !spoken.aborted) {
        for id in spoken.calls {
            let turn = turns.entry(spoken.group.clone()).or_default();
            let only = results.get(&id).filter(|_| answered.contains(&id)).map(Vec::as_slice);
            if let (Some([texts]), Some(1)) = (only, calls.get(&id)) {
                turn.0 += kept(texts, policy.unit);
            }
            turn.1.push(id);
        }
    }
    let over = turns.into_values().filter(|(length, _)| *length > policy.turn_chars_max);
    over.map(|(_, ids)| ids).collect()
}
