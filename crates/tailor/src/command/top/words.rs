//! What `top` calls things.

use crate::amount::{grouped, percent};
use crate::size_report::{LargeEntry, Share, SizeReport};

/// `1,210 lines`.
pub(super) fn lines_of(count: u64) -> String {
    format!("{} line{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// What an operator wants to know first.
pub(super) fn in_short(weighed: &SizeReport) -> String {
    let mut parts = Vec::new();
    let context = weighed.context_tokens_max();
    if let Some(most) = by_tokens(&weighed.parts).first().filter(|share| share.tokens > 0) {
        let tool = weighed.tools.iter().max_by_key(|tool| tool.result_tokens);
        let tool = tool.filter(|tool| most.name == "results" && !tool.name.is_empty());
        let of = tool.map(|tool| format!(", mostly from {}", tool.name)).unwrap_or_default();
        parts.push(format!("{} of the context is {}{of}", percent(most.tokens, context), part(&most.name)));
    }
    let others = weighed.standings.iter().filter(|share| share.name != "context");
    if let Some(most) = others.max_by_key(|share| share.bytes).filter(|share| share.bytes * 4 > weighed.bytes)
    {
        parts.push(format!("{} of the file is {}", percent(most.bytes, weighed.bytes), standing(&most.name)));
    }
    let side = weighed.parts.iter().find(|share| share.name == "side-copies");
    if let Some(side) = side.filter(|side| side.bytes * 10 > weighed.bytes) {
        parts.push(format!(
            "{} of the file is copies of results, not sent",
            percent(side.bytes, weighed.bytes)
        ));
    }
    if parts.is_empty() { "Nothing stands out.".to_string() } else { format!("{}.", parts.join("; ")) }
}

pub(super) fn by_size(shares: &[Share]) -> Vec<Share> {
    let mut shares = shares.to_vec();
    shares.sort_by_key(|share| std::cmp::Reverse(share.bytes));
    shares
}

pub(super) fn by_tokens(shares: &[Share]) -> Vec<Share> {
    let mut shares = shares.to_vec();
    shares.sort_by_key(|share| std::cmp::Reverse(share.tokens));
    shares
}

pub(super) fn standing(name: &str) -> String {
    match name {
        "context" => "entries in the context",
        "compacted" => "before the last compaction",
        "off-branch" => "off the live branch",
        "unsent" => "bookkeeping, never sent",
        "no-entry" => "line breaks and damage",
        other => other,
    }
    .to_string()
}

pub(super) fn standing_word(name: &str) -> &str {
    match name {
        "context" => "in context",
        "compacted" => "compacted",
        "off-branch" => "off branch",
        "unsent" => "never sent",
        other => other,
    }
}

pub(super) fn part(name: &str) -> String {
    match name {
        "results" => "tool results",
        "calls" => "tool calls",
        "assistant" => "assistant text",
        "user" => "user text",
        "notes" => "summaries and notes",
        "side-copies" => "copies of results, not sent",
        "bookkeeping" => "bookkeeping, never sent",
        "envelope" => "ids, times, settings",
        other => other,
    }
    .to_string()
}

pub(super) fn field(name: &str) -> String {
    if name.is_empty() { "(short fields of the entry)".to_string() } else { name.to_string() }
}

pub(super) fn tool_name(name: &str) -> String {
    if name.is_empty() { "(no name)".to_string() } else { name.to_string() }
}

pub(super) fn entry_name(entry: &LargeEntry) -> String {
    match entry.part {
        "results" | "side-copies" | "images" if !entry.tool.is_empty() => format!("result of {}", entry.tool),
        "calls" => format!("call of {}", tool_name(&entry.tool)),
        "envelope" | "bookkeeping" => entry.kind.clone(),
        other => part(other),
    }
}
