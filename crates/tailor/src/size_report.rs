//! What fills transcripts, as plain data: the lines of `top --json`, and what a report is made of.

use crate::place::portable_text;
use crate::sessions::describe_error;
use keeper::{Error, Stop};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;
use transcript::weight::{Amount, Large, NamedAmount, ToolRow, Turn, Weight};

/// One line of `top --json`.
#[derive(Serialize)]
pub(crate) struct SizeReport {
    #[serde(rename = "type")]
    kind: &'static str,
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    pub(crate) outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    pub(crate) entries: usize,
    pub(crate) context: ContextSize,
    pub(crate) standings: Vec<Share>,
    pub(crate) parts: Vec<Share>,
    pub(crate) tools: Vec<ToolShare>,
    pub(crate) kinds: Vec<Share>,
    pub(crate) fields: Vec<Share>,
    pub(crate) turns: Vec<TurnShare>,
    pub(crate) largest: Vec<LargeEntry>,
    pub(crate) images: Share,
    pub(crate) duplicates: Twice,
}

/// The live context.
#[derive(Clone, Copy, Default, Serialize)]
pub(crate) struct ContextSize {
    pub(crate) bytes: u64,
    pub(crate) tokens: u64,
    /// The provider counted all of it; otherwise some or all is estimated.
    pub(crate) exact: bool,
    /// The model's window, if the configuration, the file or the model's name tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window_tokens: Option<u64>,
    /// What the provider counted last, and the line that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counted_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counted_line: Option<u64>,
}

/// How much there is of something.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Share {
    pub(crate) name: Cow<'static, str>,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) tokens: u64,
}

/// How much belongs to calls of one tool.
#[derive(Clone, Default, Serialize)]
pub(crate) struct ToolShare {
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
    pub(crate) tokens: u64,
    pub(crate) call_bytes: u64,
    pub(crate) result_bytes: u64,
    pub(crate) image_bytes: u64,
    pub(crate) side_bytes: u64,
    pub(crate) call_tokens: u64,
    pub(crate) result_tokens: u64,
    pub(crate) image_tokens: u64,
}

/// One turn.
#[derive(Clone, Default, Serialize)]
pub(crate) struct TurnShare {
    pub(crate) line: u64,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) tokens: u64,
    pub(crate) context_tokens: u64,
    pub(crate) compactions: u32,
    pub(crate) cuts: u32,
}

/// One of the largest entries.
#[derive(Clone, Default, Serialize)]
pub(crate) struct LargeEntry {
    pub(crate) line: u64,
    /// Its turn, as an index.
    #[cfg(feature = "interactive")]
    #[serde(skip)]
    pub(crate) turn: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) entry: String,
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) tool: String,
    pub(crate) standing: &'static str,
    pub(crate) part: &'static str,
    /// Its bytes by what they are.
    #[cfg(feature = "interactive")]
    #[serde(skip)]
    pub(crate) parts: Vec<(&'static str, u64)>,
    pub(crate) bytes: u64,
    pub(crate) tokens: u64,
    /// How its longest text begins, if content is to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
}

/// Texts that are there more than once.
#[derive(Clone, Copy, Default, Serialize)]
pub(crate) struct Twice {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Shorter texts were not compared.
    pub(crate) bytes_min: u64,
    /// There may be more.
    pub(crate) at_least: bool,
}

impl Share {
    fn new(name: impl Into<Cow<'static, str>>, amount: Amount) -> Self {
        Self { name: name.into(), count: amount.count, bytes: amount.bytes, tokens: amount.tokens }
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.tokens += other.tokens;
    }
}

impl ToolShare {
    fn new(tool: &ToolRow) -> Self {
        let all = tool.amount();
        Self {
            name: tool.name.clone(),
            calls: all.count,
            bytes: all.bytes,
            tokens: all.tokens,
            call_bytes: tool.calls.bytes,
            result_bytes: tool.results.bytes,
            image_bytes: tool.images.bytes,
            side_bytes: tool.sides.bytes,
            call_tokens: tool.calls.tokens,
            result_tokens: tool.results.tokens,
            image_tokens: tool.images.tokens,
        }
    }

    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.tokens += other.tokens;
        self.call_bytes += other.call_bytes;
        self.result_bytes += other.result_bytes;
        self.image_bytes += other.image_bytes;
        self.side_bytes += other.side_bytes;
        self.call_tokens += other.call_tokens;
        self.result_tokens += other.result_tokens;
        self.image_tokens += other.image_tokens;
    }
}

impl TurnShare {
    fn new(turn: &Turn) -> Self {
        Self {
            line: turn.line,
            entries: turn.amount.count,
            bytes: turn.amount.bytes,
            tokens: turn.amount.tokens,
            context_tokens: turn.context_tokens,
            compactions: turn.compactions,
            cuts: turn.cuts,
        }
    }
}

impl LargeEntry {
    fn new(large: &Large, content: Option<String>) -> Self {
        Self {
            line: large.line,
            #[cfg(feature = "interactive")]
            turn: large.turn as usize,
            entry: large.id.clone(),
            kind: large.kind.clone(),
            tool: large.tool.clone(),
            standing: large.standing.name(),
            part: large.part.name(),
            #[cfg(feature = "interactive")]
            parts: parts_of(large),
            bytes: large.amount.bytes,
            tokens: large.amount.tokens,
            content,
        }
    }
}

/// The bytes of an entry by what they are.
#[cfg(feature = "interactive")]
fn parts_of(large: &Large) -> Vec<(&'static str, u64)> {
    let parts = transcript::weight::Category::ALL.iter().map(|part| part.name()).zip(large.parts);
    parts.filter(|(_, bytes)| *bytes > 0).collect()
}

/// What stands for all rows behind the last that is told.
pub(crate) const OTHERS: &str = "(others)";

/// The first `max` rows, and one for all others. Sums stay.
fn cap<T>(mut rows: Vec<T>, max: usize, add: impl Fn(&mut T, &T), name: impl Fn(&mut T)) -> Vec<T> {
    if rows.len() > max + 1 {
        let mut others = rows.split_off(max).into_iter();
        if let Some(mut first) = others.next() {
            others.for_each(|other| add(&mut first, &other));
            name(&mut first);
            rows.push(first);
        }
    }
    rows
}

/// The first rows of a table.
pub(crate) fn cap_shares(rows: Vec<Share>, max: usize) -> Vec<Share> {
    cap(rows, max, Share::add, |row| row.name = OTHERS.into())
}

/// The first rows of a table of tools.
pub(crate) fn cap_tools(rows: Vec<ToolShare>, max: usize) -> Vec<ToolShare> {
    cap(rows, max, ToolShare::add, |row| row.name = OTHERS.to_string())
}

impl SizeReport {
    /// What parts of the context are parts of: what the provider counted may be less than what is estimated of them.
    pub(crate) fn context_tokens_max(&self) -> u64 {
        let parts: u64 = self.parts.iter().map(|share| share.tokens).sum();
        self.context.tokens.max(parts)
    }

    fn without(path: &Path, outcome: &'static str, reason: Option<String>) -> Self {
        Self {
            kind: "top-file",
            path: portable_text(path),
            format: None,
            model: None,
            outcome,
            reason,
            bytes: 0,
            lines: 0,
            entries: 0,
            context: ContextSize::default(),
            standings: Vec::new(),
            parts: Vec::new(),
            tools: Vec::new(),
            kinds: Vec::new(),
            fields: Vec::new(),
            turns: Vec::new(),
            largest: Vec::new(),
            images: Share::default(),
            duplicates: Twice::default(),
        }
    }

    pub(crate) fn failed(error: &Error) -> Self {
        Self::without(error.path(), "error", Some(describe_error(error.path(), error)))
    }

    pub(crate) fn stopped(path: &Path, stop: &Stop) -> Self {
        match stop {
            Stop::Failed(error) => Self::failed(error),
            reason => Self::without(path, "refused", Some(reason.to_string())),
        }
    }

    /// What was weighed. `contents` are how the largest entries begin.
    pub(crate) fn new(path: &Path, weight: &Weight, contents: Vec<Option<String>>) -> Self {
        let facts = weight.facts;
        let mut weighed = Self::without(path, "weighed", None);
        weighed.bytes = facts.bytes;
        let Some(format) = facts.format else {
            weighed.outcome = "unsupported";
            weighed.reason = Some(keeper::Unsupported::UnknownFormat.to_string());
            return weighed;
        };
        let shares =
            |all: &[NamedAmount]| all.iter().map(|row| Share::new(row.name.clone(), row.amount)).collect();
        let (context, tokens) = (weight.context(), weight.context_tokens);
        weighed.format = Some(format.name);
        weighed.model = Some(weight.model.clone()).filter(|model| !model.is_empty());
        weighed.lines = facts.lines;
        weighed.entries = facts.entries;
        weighed.context = ContextSize {
            bytes: context.bytes,
            tokens: tokens.tokens,
            exact: tokens.is_exact(),
            window_tokens: tokens.window,
            counted_tokens: tokens.counted.map(|counted| counted.tokens),
            counted_line: tokens.counted.map(|counted| counted.line),
        };
        weighed.standings = weight.standings.iter().map(|(s, a)| Share::new(s.name(), *a)).collect();
        weighed.parts = weight.parts.iter().map(|(p, a)| Share::new(p.name(), *a)).collect();
        weighed.tools = weight.tools.iter().map(ToolShare::new).collect();
        weighed.kinds = shares(&weight.kinds);
        weighed.fields = shares(&weight.fields);
        weighed.turns = weight.turns.iter().map(TurnShare::new).collect();
        let contents = contents.into_iter().chain(std::iter::repeat(None));
        weighed.largest =
            weight.largest.iter().zip(contents).map(|(l, text)| LargeEntry::new(l, text)).collect();
        weighed.images = Share::new("images", weight.images);
        weighed.duplicates = Twice {
            count: weight.duplicates.again.count,
            bytes: weight.duplicates.again.bytes,
            bytes_min: weight.duplicates.bytes_min,
            at_least: weight.duplicates.at_least,
        };
        weighed
    }

    /// The report with at most so many rows a table.
    pub(crate) fn capped(mut self, rows: usize) -> Self {
        self.tools = cap_tools(self.tools, rows);
        self.kinds = cap_shares(self.kinds, rows);
        self.fields = cap_shares(self.fields, rows);
        self
    }
}

/// Many files together.
#[derive(Default)]
pub(crate) struct SizeTotals {
    files: u64,
    pub(crate) weighed: u64,
    unsupported: u64,
    refused: u64,
    errors: u64,
    bytes: u64,
    context: ContextSize,
    standings: Vec<Share>,
    parts: Vec<Share>,
    tools: HashMap<String, ToolShare>,
    kinds: HashMap<String, Share>,
    fields: HashMap<String, Share>,
    images: Share,
    duplicates: Twice,
    sessions: Vec<SessionSize>,
}

/// One of many files.
#[derive(Clone)]
pub(crate) struct SessionSize {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// In the live context.
    pub(crate) tokens: u64,
    /// The model's window, if the configuration, the file or the model's name tells.
    pub(crate) window_tokens: Option<u64>,
}

/// The last line of `top --json`.
#[derive(Serialize)]
pub(crate) struct Summary {
    #[serde(rename = "type")]
    kind: &'static str,
    files: u64,
    pub(crate) weighed: u64,
    pub(crate) unsupported: u64,
    refused: u64,
    errors: u64,
    pub(crate) bytes: u64,
    context: ContextSize,
    pub(crate) standings: Vec<Share>,
    pub(crate) parts: Vec<Share>,
    pub(crate) tools: Vec<ToolShare>,
    pub(crate) kinds: Vec<Share>,
    pub(crate) fields: Vec<Share>,
    pub(crate) images: Share,
    pub(crate) duplicates: Twice,
    seconds: f64,
}

impl SizeTotals {
    /// Adds a file.
    pub(crate) fn add(&mut self, file: &SizeReport) {
        self.files += 1;
        self.unsupported += u64::from(file.outcome == "unsupported");
        self.refused += u64::from(file.outcome == "refused");
        self.errors += u64::from(file.outcome == "error");
        if file.outcome != "weighed" {
            return;
        }
        self.weighed += 1;
        self.bytes += file.bytes;
        self.context.bytes += file.context.bytes;
        self.context.tokens += file.context.tokens;
        self.context.exact = file.context.exact && (self.context.exact || self.weighed == 1);
        add_in_order(&mut self.standings, &file.standings);
        add_in_order(&mut self.parts, &file.parts);
        for tool in &file.tools {
            self.tools.entry(tool.name.clone()).or_default().add(tool);
        }
        for (all, rows) in [(&mut self.kinds, &file.kinds), (&mut self.fields, &file.fields)] {
            for row in rows {
                all.entry(row.name.to_string()).or_default().add(row);
            }
        }
        self.images.add(&file.images);
        self.duplicates.count += file.duplicates.count;
        self.duplicates.bytes += file.duplicates.bytes;
        self.duplicates.bytes_min = self.duplicates.bytes_min.max(file.duplicates.bytes_min);
        self.duplicates.at_least |= file.duplicates.at_least;
        let ContextSize { tokens, window_tokens, .. } = file.context;
        self.sessions.push(SessionSize { path: file.path.clone(), bytes: file.bytes, tokens, window_tokens });
    }

    /// The first sessions by what `key` says of them; the largest first.
    pub(crate) fn first<K: Ord>(&self, rows: usize, key: impl Fn(&SessionSize) -> K) -> Vec<SessionSize> {
        let mut sessions = self.sessions.clone();
        sessions.sort_by(|a, b| (key(b), &a.path).cmp(&(key(a), &b.path)));
        sessions.truncate(rows);
        sessions
    }

    /// The totals, with so many rows a table.
    pub(crate) fn summary(&self, took: Duration, rows: usize) -> Summary {
        let named = |(name, row): (&String, &Share)| Share { name: name.clone().into(), ..row.clone() };
        let shares = |all: &HashMap<String, Share>| {
            let mut all: Vec<Share> = all.iter().map(named).collect();
            all.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
            cap_shares(all, rows)
        };
        let named = |(name, row): (&String, &ToolShare)| ToolShare { name: name.clone(), ..row.clone() };
        let mut tools: Vec<ToolShare> = self.tools.iter().map(named).collect();
        tools.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
        Summary {
            kind: "top-summary",
            files: self.files,
            weighed: self.weighed,
            unsupported: self.unsupported,
            refused: self.refused,
            errors: self.errors,
            bytes: self.bytes,
            context: self.context,
            standings: self.standings.clone(),
            parts: self.parts.clone(),
            tools: cap_tools(tools, rows),
            kinds: shares(&self.kinds),
            fields: shares(&self.fields),
            images: Share { name: "images".into(), ..self.images.clone() },
            duplicates: self.duplicates,
            seconds: (took.as_secs_f64() * 1000.0).round() / 1000.0,
        }
    }
}

/// Adds rows that come in the same order everywhere.
fn add_in_order(to: &mut Vec<Share>, rows: &[Share]) {
    if to.is_empty() {
        to.extend_from_slice(rows);
    } else {
        to.iter_mut().zip(rows).for_each(|(known, row)| known.add(row));
    }
}

#[cfg(test)]
mod tests {
    use super::{Amount, Path, Share, SizeReport};

    #[test]
    fn no_part_is_more_than_the_whole_context() {
        let mut weighed = SizeReport::without(Path::new("s.jsonl"), "weighed", None);
        let part = |name: &'static str, tokens| Share::new(name, Amount { tokens, ..Amount::default() });
        weighed.parts = vec![part("results", 1_270), part("user", 30)];
        weighed.context.tokens = 1_000;
        assert_eq!(weighed.context_tokens_max(), 1_300);
        // What agents add is in no part.
        weighed.context.tokens = 2_000;
        assert_eq!(weighed.context_tokens_max(), 2_000);
    }
}
