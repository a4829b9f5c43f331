//! `tailor top`: what fills a file and the context.

use super::progress::Progress;
use super::{BATCH_FILES, failed, gather, is_stream, nothing_found, output_closed};
use crate::amount::{grouped, percent};
use crate::amount::{plural, size};
use crate::args::Top;
use crate::place::shown;
use crate::say::eprint_message;
use crate::size_report::{LargeEntry, Session, Share, SizeReport, ToolShare, Totals, cap_shares, cap_tools};
use crate::status::Status;
use crate::table::{Line, TableWriter};
use crate::terminal;
use crate::tokens;
use keeper::{Error, Found, Policies, spool};
use rayon::prelude::*;
use spans::literal::decode;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;
use transcript::weight::{Weight, weigh};
use transcript::{Fault, Source, Span};

/// How much of an entry is shown with `--show-content`.
const CONTENT_BYTES: u64 = 600;
const CONTENT_CHARS: usize = 160;

pub(crate) fn run(top: &Top) -> Status {
    let policies = match top.config.load() {
        Ok(config) => config.policies(),
        Err(error) => return failed(&error),
    };
    let done = match is_stream(&top.paths) {
        Ok(true) => stream(top, &policies),
        Ok(false) => files(top, &policies),
        Err(error) => return failed(&error),
    };
    done.unwrap_or_else(|error| output_closed("standard output", &error))
}

fn files(top: &Top, policies: &Policies) -> io::Result<Status> {
    let files = gather(&top.paths);
    if files.is_empty() {
        return Ok(nothing_found(&top.paths));
    }
    let mut teller = TopPrinter::new(top, files.len() > 1);
    let progress = Progress::new(&files);
    for batch in files.chunks(BATCH_FILES) {
        let work = |found: &Result<Found, Error>| {
            let named = found.as_ref().is_ok_and(|found| found.root.is_none());
            let weighed = found.as_ref().map_or_else(SizeReport::failed, |found| one(found, top, policies));
            progress.done(found);
            (weighed, named)
        };
        let weighed: Vec<(SizeReport, bool)> = batch.par_iter().map(work).collect();
        progress
            .behind(|| weighed.into_iter().try_for_each(|(weighed, named)| teller.file(weighed, named)))?;
    }
    progress.end();
    teller.finish()
}

fn stream(top: &Top, policies: &Policies) -> io::Result<Status> {
    let path = Path::new("-");
    let weigh = |source: &dyn Source| weigh_source(path, source, top, policies);
    let weighed = spool(io::stdin().lock(), weigh).unwrap_or_else(|stop| SizeReport::stopped(path, &stop));
    let mut teller = TopPrinter::new(top, false);
    teller.file(weighed, true)?;
    teller.finish()
}

fn one(found: &Found, top: &Top, policies: &Policies) -> SizeReport {
    let weigh = |source: &dyn Source| weigh_source(&found.path, source, top, policies);
    keeper::read(&found.path, found.root.as_deref(), weigh)
        .unwrap_or_else(|stop| SizeReport::stopped(&found.path, &stop))
}

fn weigh_source(
    path: &Path,
    source: &dyn Source,
    top: &Top,
    policies: &Policies,
) -> Result<SizeReport, Fault> {
    let mut weight = weigh(source, top.rows(), &mut tokens::of_model)?;
    let asked = policies.of(weight.facts.format).window_tokens;
    weight.context_tokens.window = asked.or(weight.context_tokens.window);
    let contents = if top.show_content { contents(source, &weight)? } else { Vec::new() };
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

/// Says what was weighed.
struct TopPrinter<'a> {
    top: &'a Top,
    /// There are several files: what is told of each is little.
    many: bool,
    canvas: TableWriter,
    out: BufWriter<io::StdoutLock<'static>>,
    totals: Totals,
    status: Status,
    started: Instant,
}

impl<'a> TopPrinter<'a> {
    fn new(top: &'a Top, many: bool) -> Self {
        Self {
            top,
            many,
            canvas: TableWriter::of_stdout(),
            out: BufWriter::new(io::stdout().lock()),
            totals: Totals::default(),
            status: Status::Clean,
            started: Instant::now(),
        }
    }

    fn file(&mut self, weighed: SizeReport, named: bool) -> io::Result<()> {
        let bad = match weighed.outcome {
            "error" | "refused" => true,
            "unsupported" => named,
            _ => false,
        };
        self.status = self.status.max(if bad { Status::Error } else { Status::Clean });
        self.totals.add(&weighed);
        if self.top.json {
            let line = serde_json::to_string(&weighed.capped(self.top.rows()))?;
            return writeln!(self.out, "{}", terminal::json(&line));
        }
        match &weighed.reason {
            Some(reason) if weighed.outcome == "error" => eprint_message(reason),
            Some(reason) if bad => {
                let path = shown(Path::new(&weighed.path));
                eprint_message(&format!("{path}: {}: {reason}", weighed.outcome));
            }
            Some(_) => {}
            None if self.many => {}
            None => self.whole(&weighed)?,
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<Status> {
        if self.top.json {
            let line = serde_json::to_string(&self.totals.summary(self.started.elapsed(), self.top.rows()))?;
            writeln!(self.out, "{}", terminal::json(&line))?;
        } else if self.many && self.totals.weighed > 0 {
            self.overall()?;
        }
        self.out.flush()?;
        Ok(self.status)
    }

    /// All about one file.
    fn whole(&mut self, weighed: &SizeReport) -> io::Result<()> {
        let compactions: u32 = weighed.turns.iter().map(|turn| turn.compactions).sum();
        writeln!(
            self.out,
            "{}: {}, {}, {} lines, {}, {}",
            self.canvas.spell(&shown(Path::new(&weighed.path))),
            weighed.format.unwrap_or_default(),
            size(weighed.bytes),
            grouped(weighed.lines),
            plural(weighed.turns.len() as u64, "turn"),
            plural(u64::from(compactions), "compaction"),
        )?;
        writeln!(self.out, "{}", self.canvas.wrap(&in_short(weighed)))?;
        self.context(weighed)?;
        let (bytes, rows) = (weighed.bytes, self.top.rows());
        self.shares(&format!("File: {}", size(bytes)), &weighed.standings, bytes, standing)?;
        self.shares("What its bytes are", &by_size(&weighed.parts), bytes, part)?;
        self.tools("Tools: calls, results and copies", &cap_tools(weighed.tools.clone(), rows), bytes)?;
        let kinds = cap_shares(weighed.kinds.clone(), rows);
        self.shares("Kinds of entries", &kinds, bytes, str::to_string)?;
        self.shares("Fields", &cap_shares(weighed.fields.clone(), rows), bytes, field)?;
        self.turns(weighed)?;
        self.largest(weighed)?;
        self.odds(
            &weighed.images,
            weighed.duplicates.count,
            weighed.duplicates.bytes,
            weighed.duplicates.at_least,
        )
    }

    fn context(&mut self, weighed: &SizeReport) -> io::Result<()> {
        let context = weighed.context;
        let about = if context.exact { "" } else { "about " };
        let full = match self.top.window(context.window_tokens) {
            0 => String::new(),
            window => format!(" of {} ({})", grouped(window), percent(context.tokens, window)),
        };
        writeln!(self.out, "\nContext: {about}{} tokens{full}", grouped(context.tokens))?;
        let mut rows = Vec::new();
        for share in by_tokens(&weighed.parts).iter().filter(|share| share.tokens > 0) {
            rows.push(Line {
                name: part(&share.name),
                columns: vec![grouped(share.tokens)],
                part: share.tokens,
            });
            if share.name == "results" {
                rows.extend(self.result_rows(&weighed.tools));
            }
        }
        let in_file: u64 = weighed.parts.iter().map(|share| share.tokens).sum();
        if context.tokens > in_file {
            let tokens = context.tokens - in_file;
            let name = "added by the agent: instructions, tools".to_string();
            rows.push(Line { name, columns: vec![grouped(tokens)], part: tokens });
        }
        write!(self.out, "{}", self.canvas.table(&rows, context.tokens))?;
        match (context.counted_tokens, context.counted_line) {
            (Some(_), Some(line)) if context.exact => {
                writeln!(self.out, "  counted by the provider at line {line}")
            }
            (Some(tokens), Some(line)) => writeln!(
                self.out,
                "  the provider counted {} at line {line}; what came or went since is estimated",
                grouped(tokens)
            ),
            _ => writeln!(self.out, "  estimated: the file holds no usable count by the provider"),
        }?;
        Ok(())
    }

    /// The tools whose results fill the context.
    fn result_rows(&self, tools: &[ToolShare]) -> Vec<Line> {
        let mut tools: Vec<&ToolShare> = tools.iter().filter(|tool| tool.result_tokens > 0).collect();
        tools.sort_by_key(|tool| std::cmp::Reverse(tool.result_tokens));
        let rows = tools.iter().take(self.top.rows());
        rows.map(|tool| Line {
            name: format!("  of {}", tool_name(&tool.name)),
            columns: vec![grouped(tool.result_tokens)],
            part: tool.result_tokens,
        })
        .collect()
    }

    fn shares(
        &mut self,
        title: &str,
        shares: &[Share],
        whole: u64,
        name: impl Fn(&str) -> String,
    ) -> io::Result<()> {
        let rows = shares.iter().filter(|share| share.bytes > 0).map(|share| Line {
            name: name(&share.name),
            columns: vec![size(share.bytes)],
            part: share.bytes,
        });
        let rows: Vec<Line> = rows.collect();
        if rows.is_empty() {
            return Ok(());
        }
        write!(self.out, "\n{title}\n{}", self.canvas.table(&rows, whole))
    }

    fn tools(&mut self, title: &str, tools: &[ToolShare], whole: u64) -> io::Result<()> {
        let rows = tools.iter().filter(|tool| tool.bytes > 0).map(|tool| Line {
            name: tool_name(&tool.name),
            columns: vec![plural(tool.calls, "call"), size(tool.bytes)],
            part: tool.bytes,
        });
        let rows: Vec<Line> = rows.collect();
        if rows.is_empty() {
            return Ok(());
        }
        write!(self.out, "\n{title}\n{}", self.canvas.table(&rows, whole))
    }

    /// The turns that take the most room.
    fn turns(&mut self, weighed: &SizeReport) -> io::Result<()> {
        let mut turns: Vec<_> = weighed.turns.iter().enumerate().collect();
        if turns.len() < 2 {
            return Ok(());
        }
        turns.sort_by_key(|(n, turn)| (std::cmp::Reverse(turn.bytes), *n));
        let rows = turns.iter().take(self.top.rows()).map(|(n, turn)| Line {
            name: format!("turn {} at line {}", n + 1, grouped(turn.line)),
            columns: vec![size(turn.bytes)],
            part: turn.bytes,
        });
        let rows: Vec<Line> = rows.collect();
        write!(self.out, "\nLargest turns\n{}", self.canvas.table(&rows, weighed.bytes))
    }

    fn largest(&mut self, weighed: &SizeReport) -> io::Result<()> {
        let rows = weighed.largest.iter().map(|entry| Line {
            name: format!("line {}: {}", grouped(entry.line), entry_name(entry)),
            columns: vec![standing_word(entry.standing).to_string(), size(entry.bytes)],
            part: entry.bytes,
        });
        let rows: Vec<Line> = rows.collect();
        write!(self.out, "\nLargest entries\n{}", self.canvas.table(&rows, weighed.bytes))?;
        for entry in &weighed.largest {
            if let Some(content) = &entry.content {
                writeln!(self.out, "  line {}: {}", grouped(entry.line), self.canvas.spell(content))?;
            }
        }
        Ok(())
    }

    /// Images and duplicates, if there are any.
    fn odds(&mut self, images: &Share, twice: u64, bytes: u64, at_least: bool) -> io::Result<()> {
        if images.count + twice > 0 {
            writeln!(self.out)?;
        }
        if images.count > 0 {
            writeln!(self.out, "Images: {}, {}", grouped(images.count), size(images.bytes))?;
        }
        if twice > 0 {
            let at_least = if at_least { "at least " } else { "" };
            let texts = plural(twice, "text");
            writeln!(
                self.out,
                "Duplicates: {at_least}{texts} stored more than once, {} wasted",
                size(bytes)
            )?;
        }
        Ok(())
    }

    /// The sessions that fill most of their models' windows, or, without a window, those with most tokens.
    fn fullest(&self, rows: usize) -> Vec<(Vec<String>, String)> {
        let window = |s: &Session| self.top.window(s.window_tokens);
        let fullness = |s: &Session| u128::from(s.tokens) * 1_000_000 / u128::from(window(s).max(1));
        let row = |s: Session| {
            let tokens = grouped(s.tokens);
            let columns = match window(&s) {
                0 => vec![tokens],
                window => vec![percent(s.tokens, window), format!("{tokens} of {}", grouped(window))],
            };
            (columns, shown(Path::new(&s.path)))
        };
        self.totals.first(rows, fullness).into_iter().map(row).collect()
    }

    /// All about many files.
    fn overall(&mut self) -> io::Result<()> {
        let rows = self.top.rows();
        let summary = self.totals.summary(self.started.elapsed(), rows);
        let bytes = summary.bytes;
        let not = match summary.unsupported {
            0 => String::new(),
            1 => ", 1 not a transcript".to_string(),
            count => format!(", {count} not transcripts"),
        };
        writeln!(self.out, "{}, {}{not}", plural(summary.weighed, "session"), size(bytes))?;
        let row = |s: Session| (vec![percent(s.bytes, bytes), size(s.bytes)], shown(Path::new(&s.path)));
        let sessions: Vec<_> = self.totals.first(rows, |s| s.bytes).into_iter().map(row).collect();
        write!(self.out, "\nLargest sessions\n{}", self.canvas.paths(&sessions))?;
        write!(self.out, "\nFullest contexts, tokens\n{}", self.canvas.paths(&self.fullest(rows)))?;
        self.shares("Files", &summary.standings, bytes, standing)?;
        self.shares("What their bytes are", &by_size(&summary.parts), bytes, part)?;
        self.tools("Tools: calls, results and copies", &cap_tools(summary.tools, rows), bytes)?;
        self.shares("Kinds of entries", &cap_shares(summary.kinds, rows), bytes, str::to_string)?;
        self.shares("Fields", &cap_shares(summary.fields, rows), bytes, field)?;
        self.odds(
            &summary.images,
            summary.duplicates.count,
            summary.duplicates.bytes,
            summary.duplicates.at_least,
        )?;
        writeln!(self.out, "\nFor one session, run: tailor top FILE. To see what can be removed: tailor scan")
    }
}

/// What an operator wants to know first.
fn in_short(weighed: &SizeReport) -> String {
    let mut parts = Vec::new();
    let context = weighed.context.tokens;
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

fn by_size(shares: &[Share]) -> Vec<Share> {
    let mut shares = shares.to_vec();
    shares.sort_by_key(|share| std::cmp::Reverse(share.bytes));
    shares
}

fn by_tokens(shares: &[Share]) -> Vec<Share> {
    let mut shares = shares.to_vec();
    shares.sort_by_key(|share| std::cmp::Reverse(share.tokens));
    shares
}

fn standing(name: &str) -> String {
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

fn standing_word(name: &str) -> &str {
    match name {
        "context" => "in context",
        "compacted" => "compacted",
        "off-branch" => "off branch",
        "unsent" => "never sent",
        other => other,
    }
}

fn part(name: &str) -> String {
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

fn field(name: &str) -> String {
    if name.is_empty() { "(short fields of the entry)".to_string() } else { name.to_string() }
}

fn tool_name(name: &str) -> String {
    if name.is_empty() { "(no name)".to_string() } else { name.to_string() }
}

fn entry_name(entry: &LargeEntry) -> String {
    match entry.part {
        "results" | "side-copies" | "images" if !entry.tool.is_empty() => format!("result of {}", entry.tool),
        "calls" => format!("call of {}", tool_name(&entry.tool)),
        "envelope" | "bookkeeping" => entry.kind.clone(),
        other => part(other),
    }
}
