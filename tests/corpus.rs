//! Promises, checked on all transcripts below `$TAILOR_CORPUS`.
//!
//! The checks do not use Tailor's own code: edits are applied by hand, and a few lines of code build branches and count
//! calls the way the agents do on loading.

use crate::folder::real_files;
use crate::support::{Dir, FinishedRun};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use transcript::judge::{Judge, Judgement};
use transcript::plan::Edit;
use transcript::profile::{PROFILES, Profile};
use transcript::{Case, Examination, Piece, Policy, Situation, Span, examine, mend};

#[test]
fn promises_hold_on_real_transcripts() {
    let Some(files) = real_files() else { return };
    let (mut known, mut changed, mut wrong) = (0, 0, Vec::new());
    for path in files {
        match check(&path) {
            Ok(None) => {}
            Ok(Some(edits)) => (known, changed) = (known + 1, changed + usize::from(edits > 0)),
            Err(why) => wrong.push(format!("{}: {why}", path.display())),
        }
    }
    eprintln!("{known} transcripts of known formats, {changed} of them mended, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(known > 0, "no file is of a known format");
}

/// At most this many lines of a file are appended one by one to the lines before them.
const APPENDS_MAX: usize = 300;

/// One in so many appends that need no look is looked at anyway.
const LOOK_EVERY: usize = 16;

/// How many bytes may be looked at for one file.
const LOOKED_BYTES_MAX: usize = 32 << 20;

#[test]
fn appends_to_real_transcripts_are_judged_as_looks_would() {
    let Some(files) = real_files() else { return };
    let (mut counts, mut weights, mut wrong) = (BTreeMap::new(), Vec::new(), Vec::new());
    // As the daemon looks at recent appends.
    let in_use = |profile: &Profile| {
        let mut policy = profile.policy();
        policy.leave_history();
        Arc::new(policy)
    };
    let policies: Vec<Arc<Policy>> = PROFILES.iter().map(in_use).collect();
    for (path, policy) in files.into_iter().zip(policies.iter().cycle()) {
        let bytes = fs::read(&path).unwrap();
        match append_lines(&bytes, policy, &mut counts) {
            Ok(weight) => weights.extend(weight),
            Err(why) => wrong.push(format!("{}: {why}", path.display())),
        }
    }
    weights.sort_unstable();
    eprintln!("a judge takes {:?} bytes, {:?} at most", weights.get(weights.len() / 2), weights.last());
    for (format, counts) in &counts {
        let sum: usize = counts.values().sum();
        eprintln!("{format}: of {sum} lines {counts:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Appends the lines of the second half one by one, and counts how each was judged. Returns how much is remembered.
fn append_lines(
    bytes: &[u8],
    policy: &Arc<Policy>,
    counts: &mut BTreeMap<&'static str, BTreeMap<String, usize>>,
) -> Result<Option<usize>, String> {
    let ends: Vec<usize> = (1..=bytes.len()).filter(|&at| bytes[at - 1] == b'\n').collect();
    let Some((&middle, later)) = ends[ends.len() / 2..].split_first() else { return Ok(None) };
    let holding = Situation { hold_history: true, ..Situation::default() };
    let look =
        |end: usize| Judge::new(&&bytes[..end], policy, &holding).map_err(|fault| format!("{fault:?}"));
    let (mut judge, mut report) = look(middle)?;
    let Some(format) = report.facts.format else { return Ok(None) };
    let weight = judge.weight();
    let counts = counts.entry(format.name).or_default();
    let (mut looked, last) = (middle, later.len().min(APPENDS_MAX));
    for (n, &end) in (1..).zip(&later[..last]) {
        let judgement = judge.append(&&bytes[..end]).map_err(|fault| format!("{fault:?}"))?;
        *counts.entry(format!("{judgement:?}")).or_default() += 1;
        if looked > LOOKED_BYTES_MAX {
            break;
        }
        if judgement != Judgement::Same {
            looked += end;
            (judge, report) = look(end)?;
        } else if n % LOOK_EVERY == 0 || n == last {
            looked += end;
            let now = examine(&&bytes[..end], Case { policy, situation: &holding })
                .map_err(|fault| format!("{fault:?}"))?;
            let same =
                (told(&report), format!("{:?}", judge.facts())) == (told(&now), format!("{:?}", now.facts));
            let counted = judge.counted().is_none_or(|counted| counted == (now.messages, now.context_tokens));
            expect(same && counted, || {
                format!("line {} of {}: not the same", ends.len() / 2 + n + 1, ends.len())
            })?;
        }
    }
    Ok(Some(weight))
}

/// What is wrong according to a look, and what repairing it would save.
fn told(found: &Examination) -> String {
    let findings = found.findings.iter();
    let all: Vec<_> = findings
        .map(|f| (f.rule.code(), f.line, f.severity, &f.labels, f.chars, &f.message, f.fix.safety))
        .collect();
    format!("{all:?} {}", i128::from(found.facts.bytes) - i128::from(found.bytes_after))
}

/// The number of edits; `None` if the format is unknown.
fn check(path: &Path) -> Result<Option<usize>, String> {
    let dir = Dir::new();
    let before = fs::read(path).unwrap();
    let copy = dir.write("s.jsonl", &before);
    let scan = dir.tailor(&["scan", "--format", "json", "s.jsonl"]);
    let file = scan.file();
    if file["outcome"] == "unsupported" {
        return Ok(None);
    }
    expect(scan.status < 2 && file["outcome"] != "error", || format!("scan: {file}"))?;

    // As with `--settle 0` below.
    let situation = Situation { agent_gone: true, ..Situation::default() };
    let case = Case { policy: &Policy::default(), situation: &situation };
    let mended = mend(&&before[..], case).map_err(|fault| format!("{fault:?}"))?;
    let plan = match mended.repair {
        Ok(repair) => repair.plan,
        Err(worse) => return refused(&dir, &before, &worse.to_string()),
    };
    let wanted = splice(&before, plan.edits());
    let kept: Vec<Span> = plan
        .pieces()
        .into_iter()
        .filter_map(|piece| if let Piece::Kept(span) = piece { Some(span) } else { None })
        .collect();
    expect(kept == between(before.len() as u64, plan.edits()), || {
        "what is kept is not all that is not edited".into()
    })?;

    let first = fix(&dir);
    expect(first.status < 2, || format!("fix: {}", first.file()))?;
    let after = fs::read(&copy).unwrap();
    if first.file()["outcome"] == "refused" {
        // A refusal must not change the file.
        expect(after == before, || format!("refused, and yet it was changed: {}", first.file()))?;
        return Ok(Some(0));
    }
    expect(after == wanted, || "fix wrote something else than its plan".into())?;
    let second = fix(&dir);
    let outcome = second.file()["outcome"].clone();
    expect(fs::read(&copy).unwrap() == after, || "a second fix changes something".into())?;
    expect(outcome == "clean" || outcome == "findings", || {
        format!("the outcome of a second fix is {outcome}")
    })?;

    lines_stay(&before, &after, plan.edits())?;
    let excused = held_back(&second);
    match file["format"].as_str().unwrap_or_default() {
        "pi" => pi(&after, &excused)?,
        "claude-code" => claude(&after, &excused)?,
        _ => {}
    }
    Ok(Some(plan.edits().len()))
}

/// Every repair was refused: then nothing is changed, and the run says why.
fn refused(dir: &Dir, before: &[u8], why: &str) -> Result<Option<usize>, String> {
    let file = fix(dir).file();
    let said = file["outcome"] == "refused" && file["reason"].as_str().unwrap().contains(why);
    expect(said, || format!("{why}, but fix says {file}"))?;
    expect(fs::read(dir.path("s.jsonl")).unwrap() == before, || format!("{why}, and yet it was changed"))?;
    eprintln!("refused: {why}");
    Ok(Some(0))
}

fn fix(dir: &Dir) -> FinishedRun {
    dir.tailor(&["fix", "--settle", "0", "--format", "json", "s.jsonl"])
}

fn expect(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

pub(crate) fn splice(bytes: &[u8], edits: &[Edit]) -> Vec<u8> {
    let cut = |span: Span| &bytes[span.start as usize..span.end as usize];
    let mut out = Vec::new();
    let mut at = 0;
    for edit in edits {
        assert!(at <= edit.at.start, "edits are sorted and disjoint");
        out.extend_from_slice(cut(Span::new(at, edit.at.start)));
        for piece in &edit.with {
            match piece {
                Piece::New(new) => out.extend_from_slice(new),
                Piece::Kept(span) | Piece::Moved(span) => out.extend_from_slice(cut(*span)),
            }
        }
        at = edit.at.end;
    }
    out.extend_from_slice(cut(Span::new(at, bytes.len() as u64)));
    out
}

/// The ranges between edits.
fn between(length: u64, edits: &[Edit]) -> Vec<Span> {
    let starts = std::iter::once(0).chain(edits.iter().map(|edit| edit.at.end));
    let ends = edits.iter().map(|edit| edit.at.start).chain([length]);
    starts.zip(ends).map(|(start, end)| Span::new(start, end)).filter(|span| !span.is_empty()).collect()
}

/// Every complete line of JSON without an edit is still there, unchanged and in order.
fn lines_stay(before: &[u8], after: &[u8], edits: &[Edit]) -> Result<(), String> {
    let mut later = after.split(|&b| b == b'\n');
    let mut start = 0;
    for (n, line) in before.split_inclusive(|&b| b == b'\n').enumerate() {
        let Some(text) = line.strip_suffix(b"\n") else { break };
        let (from, to) = (start as u64, (start + text.len()) as u64);
        start += line.len();
        let inside = |edit: &Edit| edit.at.start < to && edit.at.end > from;
        if edits.iter().any(inside) || serde_json::from_slice::<IgnoredAny>(text).is_err() {
            continue;
        }
        expect(later.any(|other| other == text), || format!("line {} is lost", n + 1))?;
    }
    Ok(())
}

/// Calls with findings that were not repaired, each with a reason.
fn held_back(run: &FinishedRun) -> BTreeSet<String> {
    let file = run.file();
    let findings = file["findings"].as_array().unwrap().iter();
    let about_pairs = findings.filter(|finding| finding["code"].as_str().unwrap().starts_with('P'));
    about_pairs.filter_map(|finding| Some(finding["call"].as_str()?.to_string())).collect()
}

/// The objects of a file as an agent reads them: lines that do not parse are left out.
fn objects(bytes: &[u8]) -> Vec<Value> {
    let parse = |line: &[u8]| {
        serde_json::from_slice(line).ok().or_else(|| {
            // `serde_json` refuses lone surrogates, which JavaScript accepts.
            let mut text = String::from_utf8_lossy(line).into_owned();
            while let Some(at) = text.find(r"\ud").or_else(|| text.find(r"\uD")) {
                text.get(at + 2..at + 6)?;
                text.replace_range(at + 2..at + 6, "0020");
            }
            serde_json::from_str(&text).ok()
        })
    };
    bytes.split(|&b| b == b'\n').filter_map(parse).filter(Value::is_object).collect()
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value[key].as_str().filter(|text| !text.is_empty())
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

/// The path from the root to a leaf, as far as parents exist and none repeats.
fn branch(leaf: Option<usize>, parent: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
    let (mut path, mut seen, mut next) = (Vec::new(), BTreeSet::new(), leaf);
    while let Some(at) = next.filter(|&at| seen.insert(at)) {
        path.push(at);
        next = parent(at);
    }
    path.reverse();
    path
}

/// What follows a call without a result, in model order.
enum AfterCall {
    Speech,
    Compaction,
    Nothing,
}

fn judge(call: &str, results: usize, next: &AfterCall, excused: &BTreeSet<String>) -> Result<(), String> {
    let legal =
        results == 1 || (results == 0 && !matches!(next, AfterCall::Speech)) || excused.contains(call);
    expect(legal, || format!("call {call} has {results} results"))
}

/// pi: the last entry is the leaf; each call on its branch has one result before its id is used again.
fn pi(bytes: &[u8], excused: &BTreeSet<String>) -> Result<(), String> {
    let lines = objects(bytes);
    let entries: Vec<&Value> = lines.iter().filter(|line| line["type"] != "session").collect();
    let by_id: BTreeMap<&str, usize> =
        entries.iter().enumerate().filter_map(|(n, entry)| Some((text(entry, "id")?, n))).collect();
    let mut leaf = None;
    for (n, entry) in entries.iter().enumerate() {
        if entry["type"] == "leaf" {
            leaf = text(entry, "targetId").and_then(|id| by_id.get(id).copied());
        } else if text(entry, "id").is_some() && entry["appendMode"] != "side" {
            leaf = Some(n);
        }
    }
    let parent = |at: usize| match entries[at].get("parentId") {
        Some(id) => by_id.get(id.as_str()?).copied(),
        None => (0..at).rev().find(|&before| text(entries[before], "id").is_some()),
    };
    let path = if by_id.is_empty() { (0..entries.len()).collect() } else { branch(leaf, parent) };
    let path: Vec<&Value> = path.into_iter().map(|at| entries[at]).collect();
    for (place, entry) in path.iter().enumerate() {
        if ["aborted", "error"].iter().any(|stop| entry["message"]["stopReason"] == *stop) {
            continue;
        }
        let later = &path[place + 1..];
        for call in pi_calls(entry) {
            let until = later.iter().position(|other| pi_calls(other).contains(&call)).unwrap_or(later.len());
            let results = later[..until].iter().filter(|other| answered_by(other) == Some(call)).count();
            judge(call, results, &pi_next(later), excused)?;
        }
    }
    Ok(())
}

fn pi_calls(entry: &Value) -> Vec<&str> {
    let message = &entry["message"];
    let of_model = message["role"] == "assistant";
    let calls = blocks(&message["content"]).filter(|block| of_model && block["type"] == "toolCall");
    calls.filter_map(|block| text(block, "id")).collect()
}

fn answered_by(entry: &Value) -> Option<&str> {
    let message = &entry["message"];
    if message["role"] == "toolResult" { text(message, "toolCallId") } else { None }
}

fn pi_next(later: &[&Value]) -> AfterCall {
    let speech = |entry: &&Value| ["user", "assistant"].iter().any(|role| entry["message"]["role"] == *role);
    let next = later.iter().find(|entry| entry["type"] == "compaction" || speech(entry));
    match next {
        None => AfterCall::Nothing,
        Some(entry) if entry["type"] == "compaction" => AfterCall::Compaction,
        Some(_) => AfterCall::Speech,
    }
}

/// Claude Code, by the rules of its SDK: the last leaf of the main conversation, its ancestors, and the other blocks of
/// their messages. The result of a call may be anywhere.
fn claude(bytes: &[u8], excused: &BTreeSet<String>) -> Result<(), String> {
    const CHAIN: &[&str] = &["user", "assistant", "progress", "system", "attachment"];
    let objects = objects(bytes);
    let links = objects
        .iter()
        .filter(|line| CHAIN.iter().any(|kind| line["type"] == *kind) && line["uuid"].is_string());
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    let all: Vec<&Value> = links.collect();
    for (n, line) in all.iter().enumerate() {
        by_id.insert(line["uuid"].as_str().unwrap(), n);
    }
    let valid: BTreeSet<usize> = by_id.values().copied().collect();
    let parent = |at: usize| by_id.get(all[at]["parentUuid"].as_str()?).copied();
    let parents: BTreeSet<usize> = valid.iter().filter_map(|&at| parent(at)).collect();
    let said = |at: usize| all[at]["type"] == "user" || all[at]["type"] == "assistant";
    let main = |at: usize| {
        let set = |key: &str| all[at][key] == true;
        !set("isSidechain") && !set("isMeta") && all[at]["teamName"].is_null()
    };
    let leaf = valid
        .difference(&parents)
        .filter_map(|&terminal| branch(Some(terminal), parent).into_iter().rev().find(|&at| said(at)))
        .max_by_key(|&at| (main(at), at));
    let mut live: BTreeSet<usize> = branch(leaf, parent).into_iter().collect();
    let message = |at: usize| text(&all[at]["message"], "id");
    let messages: BTreeSet<&str> = live.iter().filter_map(|&at| message(at)).collect();
    live.extend(valid.iter().filter(|&&at| message(at).is_some_and(|id| messages.contains(id))));
    let live_lines: Vec<usize> = live.iter().copied().collect();
    for &at in &live_lines {
        if all[at]["isApiErrorMessage"] == true {
            continue;
        }
        for call in claude_calls(all[at]) {
            let answers = valid.iter().filter(|&&line| claude_results(all[line]).contains(&call));
            let (near, far): (Vec<usize>, Vec<usize>) = answers
                .copied()
                .partition(|&line| live.contains(&line) || parent(line).is_some_and(|up| live.contains(&up)));
            let results = if near.is_empty() { far.len().min(1) } else { near.len() };
            let later = live_lines.iter().filter(|&&line| line > at && message(line) != message(at));
            judge(call, results, &claude_next(later.map(|&line| all[line])), excused)?;
        }
    }
    Ok(())
}

fn claude_calls(line: &Value) -> Vec<&str> {
    let of_model = line["type"] == "assistant";
    let calls = blocks(&line["message"]["content"]).filter(|block| of_model && block["type"] == "tool_use");
    calls.filter_map(|block| text(block, "id")).collect()
}

fn claude_results(line: &Value) -> Vec<&str> {
    let results = blocks(&line["message"]["content"]).filter(|block| block["type"] == "tool_result");
    results.filter_map(|block| text(block, "tool_use_id")).collect()
}

fn claude_next<'v>(mut later: impl Iterator<Item = &'v Value>) -> AfterCall {
    let boundary = |line: &Value| line["subtype"] == "compact_boundary";
    // A line with nothing but results is not a message.
    let speech = |line: &Value| {
        let results = line["type"] == "user" && !claude_results(line).is_empty();
        (line["type"] == "user" || line["type"] == "assistant") && !results
    };
    match later.find(|line| boundary(line) || speech(line)) {
        None => AfterCall::Nothing,
        Some(line) if boundary(line) => AfterCall::Compaction,
        Some(_) => AfterCall::Speech,
    }
}
