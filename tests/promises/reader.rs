//! A second opinion: what is in a transcript, read with `serde_json` and the agents' own rules, without any code of the
//! crate under test.

use super::story::Dialect;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// An object of the file.
#[derive(Clone, Debug)]
pub(crate) struct FileObject {
    /// Line, from 1.
    pub line: u64,
    /// It is alone on its line, so that agents can read it.
    pub alone: bool,
    pub value: Value,
}

/// The whole objects at the beginning of a line, and whether nothing else is on it.
pub(crate) struct Parsed {
    pub objects: Vec<Value>,
    pub whole: bool,
}

/// Reads one line. Lone surrogates, which `serde_json` refuses, and bytes that are not UTF-8 are replaced as readers
/// do.
pub(crate) fn parse(line: &[u8]) -> Parsed {
    parse_with(line, '\u{fffd}')
}

/// The same, with another replacement for lone surrogates.
fn parse_with(line: &[u8], lone: char) -> Parsed {
    let text = String::from_utf8_lossy(line);
    let text = without_lone_surrogates(text.trim_matches([' ', '\t', '\r']), lone);
    let mut objects = Vec::new();
    for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        match value {
            Ok(value @ Value::Object(_)) => objects.push(value),
            _ => return Parsed { objects, whole: false },
        }
    }
    Parsed { objects, whole: true }
}

/// All lines, without their ends and without a byte order mark.
pub(crate) fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
}

/// All objects that agents read, and those that a repair may make readable: on lines that hold nothing else.
pub(crate) fn rows(bytes: &[u8]) -> Vec<FileObject> {
    rows_of(bytes, false, '\u{fffd}')
}

/// Replaces a lone surrogate if it must stay visible.
pub(crate) const LONE: char = '\u{fdd0}';

/// Rows in which lone surrogates stay visible.
pub(crate) fn rows_with_lone(bytes: &[u8]) -> Vec<FileObject> {
    rows_of(bytes, false, LONE)
}

/// These rows, and the whole objects before a torn end.
pub(crate) fn rows_before_tear(bytes: &[u8]) -> Vec<FileObject> {
    rows_of(bytes, true, '\u{fffd}')
}

fn rows_of(bytes: &[u8], before_tear: bool, lone: char) -> Vec<FileObject> {
    let mut rows = Vec::new();
    let lines = lines(bytes);
    let last = lines.len() as u64;
    for (line, text) in (1..).zip(lines) {
        let parsed = parse_with(text, lone);
        let torn = before_tear && line == last && !bytes.ends_with(b"\n");
        if parsed.whole || torn {
            let alone = parsed.whole && parsed.objects.len() == 1;
            rows.extend(parsed.objects.into_iter().map(|value| FileObject { line, alone, value }));
        }
    }
    rows
}

/// Replaces `\ud800`–`\udfff` without their other half.
fn without_lone_surrogates(text: &str, by: char) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match (surrogate(escape), escape.get(6..).and_then(surrogate)) {
            (Some(0xd800..0xdc00), Some(0xdc00..)) => 12,
            (Some(_), _) => {
                out.push(by);
                rest = &escape[6..];
                continue;
            }
            _ => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    out + rest
}

fn surrogate(escape: &str) -> Option<u32> {
    let hex = escape.strip_prefix("\\u")?.get(..4)?;
    let code = u32::from_str_radix(hex, 16).ok()?;
    (0xd800..0xe000).contains(&code).then_some(code)
}

fn says(value: &Value, key: &str, text: &str) -> bool {
    value[key].as_str() == Some(text)
}

/// The blocks of a content value.
pub(crate) fn blocks(content: &Value) -> &[Value] {
    content.as_array().map_or(&[], Vec::as_slice)
}

/// The message inside an entry; the entry itself if it has no envelope.
pub(crate) fn message(dialect: Dialect, row: &Value) -> &Value {
    match dialect {
        Dialect::Pi | Dialect::PiFlat | Dialect::ClaudeCode => &row["message"],
        Dialect::OpenAiChat | Dialect::Anthropic => row,
    }
}

/// Whether there are lines that are not whole objects, or whose names cannot be read.
pub(crate) fn is_broken(bytes: &[u8]) -> bool {
    let broken = |line: &[u8]| {
        let parsed = parse(line);
        let marred = |row: &Value| is_marred(row) || is_marred(&row["message"]) || texts_are_marred(row);
        !parsed.whole || parsed.objects.iter().any(marred)
    };
    bytes.starts_with(b"\xef\xbb\xbf") || !bytes.ends_with(b"\n") || lines(bytes).into_iter().any(broken)
}

/// Whether a name or the role was overwritten with something that is in no name.
pub(crate) fn is_marred(row: &Value) -> bool {
    let keys = row.as_object().into_iter().flatten();
    keys.clone().any(|(key, _)| is_odd(key)) || row["role"].as_str().is_some_and(is_odd)
}

/// The same for a text block in the row.
fn texts_are_marred(row: &Value) -> bool {
    let said = row.get("message").unwrap_or(row);
    let mut names = blocks(&said["content"]).iter().filter_map(Value::as_object).flatten();
    names.any(|(key, _)| is_odd(key))
}

/// Whether no program uses such a name.
pub(crate) fn is_odd(name: &str) -> bool {
    name.chars().any(|c| !c.is_alphanumeric() && !"_-. $:/@".contains(c))
}

/// All user texts, sorted.
pub(crate) fn user_texts(dialect: Dialect, bytes: &[u8]) -> Vec<String> {
    let (mut texts, mut seen) = (Vec::new(), BTreeSet::new());
    for line in lines(bytes) {
        // Includes whole objects before a torn one.
        for object in parse(line).objects {
            // Of an entry that was written twice, one copy is enough.
            let id = object["id"].as_str().or(object["uuid"].as_str());
            let content = message(dialect, &object)["content"].to_string();
            if id.is_some_and(|id| !seen.insert((id.to_string(), content))) {
                continue;
            }
            let message = message(dialect, &object);
            if !says(message, "role", "user") {
                continue;
            }
            texts.extend(message["content"].as_str().map(str::to_string));
            let said = blocks(&message["content"]).iter().filter(|block| !says(block, "type", "tool_result"));
            texts.extend(said.filter_map(|block| block["text"].as_str()).map(str::to_string));
        }
    }
    // White space is not content, and may be removed.
    texts.retain(|text| !text.trim().is_empty());
    texts.sort_unstable();
    texts
}

/// An item of the live branch that matters for pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spoken {
    /// Index of the row.
    pub row: usize,
    pub line: u64,
    pub kind: Speaker,
    /// Ids of complete calls, and of incomplete ones.
    pub calls: Vec<String>,
    pub partial: Vec<String>,
    /// Ids of the calls that are answered here.
    pub results: Vec<String>,
    /// The turn was interrupted.
    pub aborted: bool,
    /// Messages with the same group are one.
    pub group: String,
    pub in_context: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// Not part of the conversation.
    #[default]
    Quiet,
    Assistant,
    /// A user, or instructions.
    User,
    /// Only results.
    Tool,
    /// A text that a program added.
    Note,
    Boundary,
}

/// The live branch as the agent loads it.
pub(crate) fn live(dialect: Dialect, rows: &[FileObject]) -> Vec<Spoken> {
    match dialect {
        Dialect::Pi | Dialect::PiFlat => pi(rows),
        Dialect::ClaudeCode => claude(rows),
        Dialect::OpenAiChat | Dialect::Anthropic => {
            (0..rows.len()).map(|row| Spoken { in_context: true, ..spoken(dialect, rows, row) }).collect()
        }
    }
}

fn strings<'v>(values: impl Iterator<Item = &'v Value>) -> Vec<String> {
    values.filter_map(Value::as_str).filter(|text| !text.is_empty()).map(str::to_string).collect()
}

fn spoken(dialect: Dialect, rows: &[FileObject], at: usize) -> Spoken {
    let row = &rows[at];
    let value = &row.value;
    let message = message(dialect, value);
    let content = blocks(&message["content"]);
    let of_type = |kind: &'static str| content.iter().filter(move |block| says(block, "type", kind));
    let mut spoken =
        Spoken { row: at, line: row.line, group: format!("line {}", row.line), ..Spoken::default() };
    match dialect {
        Dialect::Pi | Dialect::PiFlat => {
            let unfinished = |block: &&Value| block.get("partialJson").is_some();
            spoken.calls = strings(of_type("toolCall").filter(|b| !unfinished(b)).map(|b| &b["id"]));
            spoken.partial = strings(of_type("toolCall").filter(unfinished).map(|b| &b["id"]));
            spoken.results = strings([&message["toolCallId"]].into_iter());
            spoken.aborted = says(message, "stopReason", "aborted") || says(message, "stopReason", "error");
        }
        Dialect::ClaudeCode | Dialect::Anthropic => {
            let unfinished = |block: &&Value| block.get("input").is_none();
            spoken.calls = strings(of_type("tool_use").filter(|b| !unfinished(b)).map(|b| &b["id"]));
            spoken.partial = strings(of_type("tool_use").filter(unfinished).map(|b| &b["id"]));
            spoken.results = strings(of_type("tool_result").map(|b| &b["tool_use_id"]));
            spoken.aborted = value["isApiErrorMessage"] == true;
            if let (Dialect::ClaudeCode, Some(id)) = (dialect, message["id"].as_str()) {
                spoken.group = format!("message {id}");
            }
        }
        Dialect::OpenAiChat => {
            spoken.calls = strings(blocks(&message["tool_calls"]).iter().map(|call| &call["id"]));
            spoken.results = strings([&message["tool_call_id"]].into_iter());
        }
    }
    spoken.kind = kind(dialect, value, message, &spoken);
    spoken
}

fn kind(dialect: Dialect, value: &Value, message: &Value, spoken: &Spoken) -> Speaker {
    if dialect == Dialect::ClaudeCode {
        return match value["type"].as_str() {
            Some("assistant") => Speaker::Assistant,
            Some("user") if value["isCompactSummary"] == true => Speaker::Note,
            Some("user") if pure(message, spoken) => Speaker::Tool,
            Some("user") => Speaker::User,
            Some("system") if says(value, "subtype", "compact_boundary") => Speaker::Boundary,
            _ => Speaker::Quiet,
        };
    }
    match (value["type"].as_str(), message["role"].as_str()) {
        (Some("compaction"), _) => Speaker::Boundary,
        (Some("custom_message"), _) => Speaker::Note,
        (_, Some("assistant")) => Speaker::Assistant,
        (_, Some("tool" | "toolResult")) => Speaker::Tool,
        (_, Some("user")) if pure(message, spoken) => Speaker::Tool,
        (_, Some("user" | "system")) => Speaker::User,
        _ => Speaker::Quiet,
    }
}

fn pure(message: &Value, spoken: &Spoken) -> bool {
    !spoken.results.is_empty() && blocks(&message["content"]).len() == spoken.results.len()
}

/// pi: the last entry of the file is the leaf; its ancestors are the branch.
fn pi(rows: &[FileObject]) -> Vec<Spoken> {
    let by_id: BTreeMap<&str, usize> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| !says(&row.value, "type", "session"))
        .filter_map(|(at, row)| Some((row.value["id"].as_str()?, at)))
        .collect();
    let mut path = Vec::new();
    if by_id.is_empty() {
        path.extend((0..rows.len()).filter(|&at| !says(&rows[at].value, "type", "session")));
    } else {
        let (mut last, mut before) = (None, Vec::new());
        let mut newest = None;
        for (at, row) in rows.iter().enumerate().filter(|(_, row)| !says(&row.value, "type", "session")) {
            let named = row.value["id"].as_str().is_some();
            // In OpenClaw, rows without a parent belong to the row before.
            before.push((at, newest));
            newest = if named { Some(at) } else { newest };
            if says(&row.value, "type", "leaf") {
                last = row.value["targetId"].as_str().and_then(|id| by_id.get(id)).copied();
            } else if named && !says(&row.value, "appendMode", "side") {
                last = Some(at);
            }
        }
        let (mut next, mut seen) = (last, BTreeSet::new());
        while let Some(at) = next.filter(|&at| seen.insert(at)) {
            path.push(at);
            next = match rows[at].value.get("parentId") {
                Some(parent) => parent.as_str().and_then(|id| by_id.get(id)).copied(),
                None => before.iter().find(|(row, _)| *row == at).and_then(|(_, before)| *before),
            };
        }
        path.reverse();
    }
    let mut live: Vec<Spoken> = path.iter().map(|&at| spoken(Dialect::Pi, rows, at)).collect();
    let boundary = live.iter().rposition(|spoken| spoken.kind == Speaker::Boundary);
    let from = boundary.map_or(0, |boundary| {
        let compaction = &rows[path[boundary]].value;
        let kept = compaction["firstKeptEntryId"].as_str().and_then(|id| by_id.get(id)).copied();
        let counted = compaction["firstKeptEntryIndex"].as_u64();
        let alone = || (0..rows.len()).filter(|&at| rows[at].alone);
        let kept = kept.or(counted.and_then(|count| alone().nth(count as usize)));
        let place = path.iter().position(|&at| Some(at) == kept);
        place.map_or(boundary, |place| place.min(boundary))
    });
    live[from..].iter_mut().for_each(|spoken| spoken.in_context = true);
    live
}

/// Claude Code's rows that are part of its tree.
struct Chain<'r> {
    rows: &'r [FileObject],
    by_id: BTreeMap<&'r str, usize>,
}

impl<'r> Chain<'r> {
    fn new(rows: &'r [FileObject]) -> Self {
        const TYPES: [&str; 5] = ["user", "assistant", "progress", "system", "attachment"];
        let chained = rows
            .iter()
            .enumerate()
            .filter(|(_, row)| TYPES.iter().any(|kind| says(&row.value, "type", kind)));
        Self {
            rows,
            by_id: chained.filter_map(|(at, row)| Some((row.value["uuid"].as_str()?, at))).collect(),
        }
    }

    fn parent(&self, at: usize) -> Option<usize> {
        self.by_id.get(self.rows[at].value["parentUuid"].as_str()?).copied()
    }

    /// From an entry to its root.
    fn ancestors(&self, from: usize) -> Vec<usize> {
        let (mut path, mut seen, mut next) = (Vec::new(), BTreeSet::new(), Some(from));
        while let Some(at) = next.filter(|&at| seen.insert(at)) {
            path.push(at);
            next = self.parent(at);
        }
        path
    }

    fn said(&self, at: usize) -> bool {
        ["user", "assistant"].iter().any(|kind| says(&self.rows[at].value, "type", kind))
    }

    /// The leaf, chosen like the Agent SDK does.
    fn leaf(&self) -> Option<usize> {
        let parents: BTreeSet<usize> = self.by_id.values().filter_map(|&at| self.parent(at)).collect();
        let terminals = self.by_id.values().copied().filter(|at| !parents.contains(at));
        let leaves: Vec<usize> =
            terminals.filter_map(|at| self.ancestors(at).into_iter().find(|&at| self.said(at))).collect();
        let main = |at: &usize| {
            let value = &self.rows[*at].value;
            value["isSidechain"] != true && value["isMeta"] != true && value.get("teamName").is_none()
        };
        leaves.iter().copied().filter(main).max().or(leaves.iter().copied().max())
    }

    /// The entries that a compaction carried over.
    fn preserved(&self, boundary: usize) -> BTreeSet<usize> {
        let kept = &self.rows[boundary].value["compactMetadata"]["preservedSegment"];
        let end = |key: &str| self.by_id.get(kept[key].as_str()?).copied();
        let (Some(head), Some(tail)) = (end("headUuid"), end("tailUuid")) else { return BTreeSet::new() };
        let path = self.ancestors(tail);
        let from = path.iter().position(|&at| at == head);
        from.map_or_else(BTreeSet::new, |from| self.gathered(&path[..=from]))
    }

    /// An entry of the branch, the other blocks of its message, and the results whose parents are among those.
    fn gathered(&self, path: &[usize]) -> BTreeSet<usize> {
        let all = || self.by_id.values().copied();
        let group = |at: usize| self.rows[at].value["message"]["id"].as_str();
        let groups: BTreeSet<&str> = path.iter().filter_map(|&at| group(at)).collect();
        let mut live: BTreeSet<usize> = path.iter().copied().collect();
        live.extend(all().filter(|&at| group(at).is_some_and(|group| groups.contains(group))));
        let calls = |at: usize| {
            let spoken = spoken(Dialect::ClaudeCode, self.rows, at);
            !spoken.calls.is_empty() || !spoken.partial.is_empty()
        };
        let calling: BTreeSet<&str> =
            live.iter().filter(|&&at| calls(at)).filter_map(|&at| group(at)).collect();
        let results = all().filter(|&at| {
            let parent = self.parent(at).filter(|parent| live.contains(parent));
            let answers = |at: usize| calls(at) || group(at).is_some_and(|group| calling.contains(group));
            spoken(Dialect::ClaudeCode, self.rows, at).kind == Speaker::Tool && parent.is_some_and(answers)
        });
        let results: Vec<usize> = results.collect();
        live.extend(results);
        self.with_strays(live)
    }

    /// The same, with the first result of each call that has none among them, wherever it hangs: Claude Code 2.1.332 sends it.
    fn with_strays(&self, mut live: BTreeSet<usize>) -> BTreeSet<usize> {
        let word = |at: &usize| spoken(Dialect::ClaudeCode, self.rows, *at);
        let mut open: BTreeSet<String> = live.iter().flat_map(|at| word(at).calls).collect();
        for id in live.iter().flat_map(|at| word(at).results) {
            open.remove(&id);
        }
        let beside: BTreeSet<usize> = self.by_id.values().copied().filter(|at| !live.contains(at)).collect();
        for at in beside {
            let stray = word(&at);
            if stray.kind == Speaker::Tool && stray.results.iter().filter(|id| open.remove(*id)).count() > 0 {
                live.insert(at);
            }
        }
        live
    }
}

fn claude(rows: &[FileObject]) -> Vec<Spoken> {
    let chain = Chain::new(rows);
    let Some(leaf) = chain.leaf() else { return Vec::new() };
    let gathered = chain.gathered(&chain.ancestors(leaf)).into_iter();
    let told = by_links(rows, gathered.map(|at| spoken(Dialect::ClaudeCode, rows, at)).collect());
    // The path ends at the compaction, wherever the lines are.
    let boundary = told.iter().rposition(|spoken| spoken.kind == Speaker::Boundary);
    let kept = boundary.map_or_else(BTreeSet::new, |boundary| chain.preserved(told[boundary].row));
    let sent: BTreeSet<usize> = told[boundary.unwrap_or(0)..].iter().map(|spoken| spoken.row).collect();
    let live: BTreeSet<usize> = told.iter().map(|spoken| spoken.row).chain(kept.iter().copied()).collect();
    let word = |at: usize| Spoken {
        in_context: sent.contains(&at) || kept.contains(&at),
        ..spoken(Dialect::ClaudeCode, rows, at)
    };
    // The links tell who speaks last, because lines may have been swapped.
    by_links(rows, live.into_iter().map(word).collect())
}

/// The same in the order of the links, which is that of the conversation and not of the lines.
fn by_links(rows: &[FileObject], mut live: Vec<Spoken>) -> Vec<Spoken> {
    let chain = Chain::new(rows);
    let path = chain.leaf().map_or_else(Vec::new, |leaf| chain.ancestors(leaf));
    let group = |at: usize| rows[at].value["message"]["id"].as_str();
    let place = |at: usize| path.iter().rev().position(|&own| own == at);
    // An item that is not on the path itself belongs to its message, or after its parent.
    let beside = |at: usize| {
        let same = path.iter().rev().position(|&own| group(at).is_some() && group(own) == group(at));
        same.or_else(|| chain.ancestors(at).into_iter().find_map(place))
    };
    live.sort_by_key(|spoken| {
        let at = spoken.row;
        (place(at).or_else(|| beside(at)), place(at).is_none(), at)
    });
    live
}

/// The id that the agent's next entry would have as its parent.
pub(crate) fn leaf(dialect: Dialect, rows: &[FileObject]) -> Option<String> {
    match dialect {
        Dialect::Pi => {
            let entries = rows.iter().filter(|row| !says(&row.value, "type", "session"));
            entries.filter_map(|row| row.value["id"].as_str()).next_back().map(str::to_string)
        }
        Dialect::ClaudeCode => {
            let chain = Chain::new(rows);
            chain.leaf().and_then(|at| rows[at].value["uuid"].as_str()).map(str::to_string)
        }
        Dialect::PiFlat | Dialect::OpenAiChat | Dialect::Anthropic => None,
    }
}
