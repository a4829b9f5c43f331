//! `tailor top`: what fills a file and the context. On a terminal it is walked through with keys, elsewhere it is printed.

#[cfg(feature = "interactive")]
mod interactive;
#[cfg(feature = "interactive")]
mod level;
pub(super) mod measure;
#[cfg(feature = "interactive")]
mod view;
mod words;

use super::progress::Progress;
use super::{BATCH_FILES, CommandResult, databases, is_stream, nothing_found, output_closed, roots};
use crate::amount::{grouped, percent};
use crate::amount::{plural, size};
use crate::args::TopArgs;
use crate::place::shown;
use crate::say::{eprint_message, is_quiet};
use crate::size_report::{SessionSize, Share, SizeReport, SizeTotals, ToolShare, cap_shares, cap_tools};
use crate::status::ExitStatus;
use crate::table::{TableRow, TableWriter};
use crate::terminal;
use keeper::{Error, FoundFile, Policies, find, spool};
use measure::{one, weigh_source};
use rayon::prelude::*;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use transcript::Source;
use words::{
    by_size, by_tokens, entry_name, field, in_short, lines_of, part, standing, standing_word, tool_name,
};

pub(crate) fn run(top: &TopArgs) -> CommandResult {
    let config = top.config.load()?;
    if wants_keys(top) {
        #[cfg(feature = "interactive")]
        return interactive::run(top, &config);
        #[cfg(not(feature = "interactive"))]
        eprint_message(&format!("tables, not keys: {}", crate::value::not_built_in("interactive")));
    }
    let policies = config.policies();
    if is_stream(&top.paths)? { stream(top, &policies) } else { files(top, &policies) }
}

/// Whether to run interactively: on a terminal, unless tables were asked for. A path that does not exist is an error that
/// the tables report.
fn wants_keys(top: &TopArgs) -> bool {
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok() || keeper::is_stored(path);
    let asks_for_tables =
        top.plain || top.json.is_json() || top.rows.is_some() || !top.paths.iter().all(is_there);
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !asks_for_tables && !is_dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
}

fn files(top: &TopArgs, policies: &Policies) -> CommandResult {
    let files = find(&roots(&top.paths));
    if files.is_empty() {
        return Err(nothing_found(&top.paths));
    }
    let mut teller = TopPrinter::new(top, files.len() > 1);
    let progress = Progress::new(&files);
    for batch in files.chunks(BATCH_FILES) {
        let work = |found: &Result<FoundFile, Error>| {
            let named = found.as_ref().is_ok_and(|found| found.root.is_none());
            let weighed = found
                .as_ref()
                .map_or_else(SizeReport::failed, |found| one(found, top.rows(), top.show_content, policies));
            progress.done(found);
            (weighed, named)
        };
        let weighed: Vec<(SizeReport, bool)> = batch.par_iter().map(work).collect();
        progress
            .behind(|| weighed.into_iter().try_for_each(|(weighed, named)| teller.file(weighed, named)))
            .map_err(|error| output_closed("standard output", &error))?;
    }
    progress.end();
    teller.finish(&files).map_err(|error| output_closed("standard output", &error))
}

fn stream(top: &TopArgs, policies: &Policies) -> CommandResult {
    let path = Path::new("-");
    let weigh = |source: &dyn Source| weigh_source(path, source, top.rows(), top.show_content, policies);
    let weighed = spool(io::stdin().lock(), weigh).unwrap_or_else(|stop| SizeReport::stopped(path, &stop));
    let mut teller = TopPrinter::new(top, false);
    let done = teller.file(weighed, true).and_then(|()| teller.finish(&[]));
    done.map_err(|error| output_closed("standard output", &error))
}

/// Prints what was weighed.
struct TopPrinter<'a> {
    top: &'a TopArgs,
    /// There are several files, so little is printed about each.
    many: bool,
    canvas: TableWriter,
    out: BufWriter<io::StdoutLock<'static>>,
    totals: SizeTotals,
    status: ExitStatus,
    started: Instant,
}

impl<'a> TopPrinter<'a> {
    fn new(top: &'a TopArgs, many: bool) -> Self {
        Self {
            top,
            many,
            canvas: TableWriter::of_stdout(),
            out: BufWriter::new(io::stdout().lock()),
            totals: SizeTotals::default(),
            status: ExitStatus::Clean,
            started: Instant::now(),
        }
    }

    fn file(&mut self, weighed: SizeReport, named: bool) -> io::Result<()> {
        let bad = match weighed.outcome {
            "error" | "refused" => true,
            "unsupported" => named,
            _ => false,
        };
        self.status = self.status.max(if bad { ExitStatus::Error } else { ExitStatus::Clean });
        self.totals.add(&weighed);
        if self.top.json.is_json() {
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

    fn finish(mut self, files: &[Result<FoundFile, Error>]) -> io::Result<ExitStatus> {
        let paths = files.iter().flatten().map(|found| found.path.as_path());
        let measured = databases::measure(paths, &self.top.paths);
        if self.top.json.is_json() {
            databases::json(&measured, &mut self.out)?;
            let line = serde_json::to_string(&self.totals.summary(self.started.elapsed(), self.top.rows()))?;
            writeln!(self.out, "{}", terminal::json(&line))?;
        } else {
            if self.many && self.totals.weighed > 0 {
                self.overall()?;
            }
            databases::print(&measured, &mut self.out)?;
        }
        self.out.flush()?;
        Ok(self.status)
    }

    /// Prints everything about one file.
    fn whole(&mut self, weighed: &SizeReport) -> io::Result<()> {
        let compactions: u32 = weighed.turns.iter().map(|turn| turn.compactions).sum();
        writeln!(
            self.out,
            "{}: {}, {}, {}, {}, {}",
            self.canvas.spell(&shown(Path::new(&weighed.path))),
            weighed.format.unwrap_or_default(),
            size(weighed.bytes),
            lines_of(weighed.lines),
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
            rows.push(TableRow {
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
            rows.push(TableRow { name, columns: vec![grouped(tokens)], part: tokens });
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

    /// Rows of the tools whose results fill the context.
    fn result_rows(&self, tools: &[ToolShare]) -> Vec<TableRow> {
        let mut tools: Vec<&ToolShare> = tools.iter().filter(|tool| tool.result_tokens > 0).collect();
        tools.sort_by_key(|tool| std::cmp::Reverse(tool.result_tokens));
        let rows = tools.iter().take(self.top.rows());
        rows.map(|tool| TableRow {
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
        let rows = shares.iter().filter(|share| share.bytes > 0).map(|share| TableRow {
            name: name(&share.name),
            columns: vec![size(share.bytes)],
            part: share.bytes,
        });
        let rows: Vec<TableRow> = rows.collect();
        if rows.is_empty() {
            return Ok(());
        }
        write!(self.out, "\n{title}\n{}", self.canvas.table(&rows, whole))
    }

    fn tools(&mut self, title: &str, tools: &[ToolShare], whole: u64) -> io::Result<()> {
        let rows = tools.iter().filter(|tool| tool.bytes > 0).map(|tool| TableRow {
            name: tool_name(&tool.name),
            columns: vec![plural(tool.calls, "call"), size(tool.bytes)],
            part: tool.bytes,
        });
        let rows: Vec<TableRow> = rows.collect();
        if rows.is_empty() {
            return Ok(());
        }
        write!(self.out, "\n{title}\n{}", self.canvas.table(&rows, whole))
    }

    /// Prints the turns that take the most room.
    fn turns(&mut self, weighed: &SizeReport) -> io::Result<()> {
        let mut turns: Vec<_> = weighed.turns.iter().enumerate().collect();
        if turns.len() < 2 {
            return Ok(());
        }
        turns.sort_by_key(|(n, turn)| (std::cmp::Reverse(turn.bytes), *n));
        let rows = turns.iter().take(self.top.rows()).map(|(n, turn)| TableRow {
            name: format!("turn {} at line {}", n + 1, grouped(turn.line)),
            columns: vec![size(turn.bytes)],
            part: turn.bytes,
        });
        let rows: Vec<TableRow> = rows.collect();
        write!(self.out, "\nLargest turns\n{}", self.canvas.table(&rows, weighed.bytes))
    }

    fn largest(&mut self, weighed: &SizeReport) -> io::Result<()> {
        let rows = weighed.largest.iter().map(|entry| TableRow {
            name: format!("line {}: {}", grouped(entry.line), entry_name(entry)),
            columns: vec![standing_word(entry.standing).to_string(), size(entry.bytes)],
            part: entry.bytes,
        });
        let rows: Vec<TableRow> = rows.collect();
        write!(self.out, "\nLargest entries\n{}", self.canvas.table(&rows, weighed.bytes))?;
        for entry in &weighed.largest {
            if let Some(content) = &entry.content {
                writeln!(self.out, "  line {}: {}", grouped(entry.line), self.canvas.spell(content))?;
            }
        }
        Ok(())
    }

    /// Prints images and duplicates, if there are any.
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

    /// The sessions that fill most of their models' windows; if no window is known, those with the most tokens.
    fn fullest(&self, rows: usize) -> Vec<(Vec<String>, String)> {
        let window = |s: &SessionSize| self.top.window(s.window_tokens);
        let fullness = |s: &SessionSize| u128::from(s.tokens) * 1_000_000 / u128::from(window(s).max(1));
        let row = |s: SessionSize| {
            let tokens = grouped(s.tokens);
            let columns = match window(&s) {
                0 => vec![tokens],
                window => vec![percent(s.tokens, window), format!("{tokens} of {}", grouped(window))],
            };
            (columns, shown(Path::new(&s.path)))
        };
        self.totals.first(rows, fullness).into_iter().map(row).collect()
    }

    /// Prints everything about many files.
    fn overall(&mut self) -> io::Result<()> {
        let rows = self.top.rows();
        let summary = self.totals.summary(self.started.elapsed(), rows);
        let bytes = summary.bytes;
        let not = match summary.unsupported {
            0 => String::new(),
            1 => ", 1 not a transcript".to_string(),
            count => format!(", {count} not transcripts"),
        };
        if !is_quiet() {
            writeln!(self.out, "{}, {}{not}\n", plural(summary.weighed, "session"), size(bytes))?;
        }
        let row = |s: SessionSize| (vec![percent(s.bytes, bytes), size(s.bytes)], shown(Path::new(&s.path)));
        let sessions: Vec<_> = self.totals.first(rows, |s| s.bytes).into_iter().map(row).collect();
        write!(self.out, "Largest sessions\n{}", self.canvas.paths(&sessions))?;
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
        if is_quiet() {
            return Ok(());
        }
        writeln!(self.out, "\nFor one session, run: tailor top FILE. To see what can be removed: tailor scan")
    }
}
