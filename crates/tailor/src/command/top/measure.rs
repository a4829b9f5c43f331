//! Weighs one transcript.

use crate::size_report::SizeReport;
use crate::tokens;
use keeper::{FoundFile, Policies};
use spans::literal::decode;
use std::path::Path;
use transcript::weight::{Weight, weigh};
use transcript::{Fault, Source, Span};

/// How much of an entry is shown with `--show-content`.
const CONTENT_BYTES: u64 = 600;
const CONTENT_CHARS: usize = 160;

/// What fills a file.
pub(super) fn one(found: &FoundFile, largest: usize, show_content: bool, policies: &Policies) -> SizeReport {
    let weigh = |source: &dyn Source| weigh_source(&found.path, source, largest, show_content, policies);
    keeper::read(&found.path, found.root.as_deref(), weigh)
        .unwrap_or_else(|stop| SizeReport::stopped(&found.path, &stop))
}

/// What fills a transcript.
pub(super) fn weigh_source(
    path: &Path,
    source: &dyn Source,
    largest: usize,
    show_content: bool,
    policies: &Policies,
) -> Result<SizeReport, Fault> {
    let mut weight = weigh(source, largest, &mut tokens::of_model)?;
    let asked = policies.for_format(weight.facts.format).window_tokens;
    weight.context_tokens.window = asked.or(weight.context_tokens.window);
    let contents = if show_content { contents(source, &weight)? } else { Vec::new() };
    Ok(SizeReport::new(path, &weight, contents))
}

/// How the largest entries begin.
pub(crate) fn contents(source: &dyn Source, weight: &Weight) -> Result<Vec<Option<String>>, Fault> {
    let begin = |text: Span| -> Result<Option<String>, Fault> {
        let end = text.end.min(text.start + CONTENT_BYTES);
        let raw = spans::source::read_span(source, Span::new(text.start, end))?;
        let text = decode(raw.strip_prefix(b"\"").unwrap_or(&raw));
        Ok(Some(String::from_utf8_lossy(&text).chars().take(CONTENT_CHARS).collect()))
    };
    weight.largest.iter().map(|large| begin(large.text)).collect()
}
