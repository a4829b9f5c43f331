//! `tailor compact`: replaces older messages by a summary that the user's command writes.

use super::chunk::{ChunkPrinter, unread};
use super::{CommandError, CommandResult, one_session, output_closed};
use crate::amount::{plural, size};
use crate::args::{CompactArgs, Json};
use crate::place::shown;
use crate::remedy;
use crate::report::Changed;
use crate::say::{eprint_message, print_json};
use crate::sessions::describe_error;
use crate::status::ExitStatus;
use crate::terminal::{Screen, plain};
use crate::tokens;
use crate::value::Tokenizer;
use keeper::{Compacting, Ending, Options, Refusal, Stop};
use serde::Serialize;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use transcript::Reading;
use transcript::chunk::{Chunk, ChunkBounds, ChunkTotals, chunks};
use transcript::compact::{Shares, Stay, Unable, divide};

/// Longest answer that is accepted from a command: a summary should be short.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Largest sum of answers: the summary itself must not become too long.
const SUMMARY_BYTES_MAX: usize = 4 << 20;

/// The `type` of its line of JSON.
const KIND: &str = "compaction";

pub(crate) fn run(asked: &CompactArgs) -> CommandResult {
    let options = asked.options()?;
    one_session(&asked.path, "compact it")?;
    let divided = keeper::read(&asked.path, None, |source| {
        divide(&Reading::new(source)?, options.case(source)?, Stay::Last(asked.keep))
    });
    let shares = match divided {
        Err(Stop::Refused(why @ Refusal::Unable(_))) if why != Refusal::Unable(Unable::UnknownFormat) => {
            let ending = Ending::Refused(why);
            return Ok(
                CompactLine::ended(asked, &ending, 0, Shares::default()).print(asked.change.json, &ending)
            );
        }
        other => other.map_err(|stop| unread(&asked.path, &stop))?,
    };
    let count = tokens::counter(asked.limits.tokenizer);
    let limits = asked.limits.limits(&count);
    let closed =
        keeper::closed(&asked.path, &options).map_err(|error| describe_error(&asked.path, &error))?;
    if asked.dry_run {
        return dry_run(asked, &limits, shares, &closed.unwrap_or(Ending::WouldFix));
    }
    if let Some(ending) = closed {
        return Ok(CompactLine::ended(asked, &ending, 0, shares).print(asked.change.json, &ending));
    }
    let total = each_chunk(&asked.path, &limits, shares, &mut |_| true)?.chunks;
    let mut answers =
        CommandAnswers { command: asked.with.as_deref().unwrap_or_default(), total, done: Vec::new() };
    let mut failure = None;
    each_chunk(&asked.path, &limits, shares, &mut |chunk| {
        failure = answers.ask(chunk).err();
        failure.is_none()
    })?;
    if let Some(why) = failure {
        let (path, number) = (asked.path.display(), answers.done.len() + 1);
        return Err(CommandError::from(format!(
            "{path}: could not summarise chunk {number} of {total}: {why} (the file is unchanged)"
        )));
    }
    put_in(asked, &options, shares, &answers)
}

/// Calls the function for each chunk of what is to be left out.
fn each_chunk(
    path: &Path,
    limits: &ChunkBounds<'_>,
    shares: Shares,
    each: &mut dyn FnMut(&Chunk) -> bool,
) -> Result<ChunkTotals, String> {
    let read =
        keeper::read(path, None, |source| chunks(&Reading::new(source)?, limits, Some(shares.from), each));
    read.map_err(|stop| unread(path, &stop))
}

fn put_in(
    asked: &CompactArgs,
    options: &Options,
    shares: Shares,
    answers: &CommandAnswers<'_>,
) -> CommandResult {
    let stay = Stay::From { at: shares.from, left_out: shares.left_out };
    let summary = answers.done.join("\n\n");
    if summary.len() > SUMMARY_BYTES_MAX {
        let (path, bytes) = (asked.path.display(), summary.len());
        return Err(CommandError::from(format!(
            "{path}: could not take the summary: it has {bytes} bytes (the file is unchanged)"
        )));
    }
    let done = keeper::compact(&asked.path, None, options, stay, &summary)?;
    let Compacting { outcome, shares: now } = done;
    let change = Changed::new(KIND, &asked.path, &outcome);
    let report = CompactLine::new(change, answers.total, now);
    Ok(report.print(asked.change.json, &outcome.ending))
}

fn dry_run(asked: &CompactArgs, limits: &ChunkBounds<'_>, shares: Shares, ending: &Ending) -> CommandResult {
    if asked.change.json.is_json() {
        let mut printer = ChunkPrinter::new(asked.limits.tokenizer);
        let totals = each_chunk(&asked.path, limits, shares, &mut |chunk| printer.chunk(chunk).is_ok())?;
        if let Err(error) = printer.finish(&totals) {
            return Err(output_closed("standard output", &error));
        }
        return Ok(CompactLine::ended(asked, ending, totals.chunks, shares).print(asked.change.json, ending));
    }
    let mut number = 0;
    let about = if asked.limits.tokenizer == Tokenizer::Chars4 { "about " } else { "" };
    let totals = each_chunk(&asked.path, limits, shares, &mut |chunk| {
        number += 1;
        let line =
            |message: Option<&transcript::chunk::ChunkMessage>| message.map_or(0, |message| message.line);
        let lines = format!("lines {} to {}", line(chunk.messages.first()), line(chunk.messages.last()));
        let messages = plural(chunk.messages.len() as u64, "message");
        let sizes = format!("{} characters, {about}{} tokens", chunk.chars, chunk.tokens);
        println!("chunk {number}: {lines}, {messages}, {sizes}");
        true
    })?;
    if totals.left_out > 0 {
        eprint_message(&format!(
            "{} are over the budget and in no chunk",
            plural(totals.left_out, "older message")
        ));
    }
    Ok(CompactLine::ended(asked, ending, totals.chunks, shares).print(asked.change.json, ending))
}

/// The answers of the command so far.
struct CommandAnswers<'a> {
    command: &'a str,
    total: u64,
    done: Vec<String>,
}

impl CommandAnswers<'_> {
    fn ask(&mut self, chunk: &Chunk) -> Result<(), String> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", self.command])
            .env("TAILOR_CHUNK", (self.done.len() + 1).to_string())
            .env("TAILOR_CHUNKS", self.total.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|cause| format!("the command could not be run: {cause}"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let mut answer = Vec::new();
        let text = chunk.text();
        let read = std::thread::scope(|scope| {
            let write = move || {
                // The command need not read all of its input.
                let _: Option<io::Result<()>> = stdin.map(|mut stdin| stdin.write_all(text.as_bytes()));
            };
            std::thread::Builder::new().spawn_scoped(scope, write)?;
            let Some(mut stdout) = stdout else { return Ok(()) };
            let read = stdout.by_ref().take(ANSWER_BYTES_MAX + 1).read_to_end(&mut answer);
            // Closes the pipe, so that a command that never stops writing fails.
            drop(stdout);
            read.map(|_| ())
        });
        let status = child.wait().map_err(|cause| cause.to_string())?;
        read.map_err(|cause| cause.to_string())?;
        if answer.len() as u64 > ANSWER_BYTES_MAX {
            return Err(format!("the command printed more than {ANSWER_BYTES_MAX} bytes"));
        }
        if !status.success() {
            return Err(format!("the command failed ({status})"));
        }
        let answer = String::from_utf8_lossy(&answer).trim().to_string();
        if answer.is_empty() {
            return Err("the command printed nothing".to_string());
        }
        self.done.push(answer);
        Ok(())
    }
}

/// The line of `--json`.
#[derive(Serialize)]
struct CompactLine {
    #[serde(flatten)]
    change: Changed,
    chunks: u64,
    kept: u64,
    left_out: u64,
}

impl CompactLine {
    fn new(change: Changed, chunks: u64, shares: Shares) -> Self {
        Self { change, chunks, kept: shares.kept, left_out: shares.left_out }
    }

    /// An ending before anything was to be changed.
    fn ended(asked: &CompactArgs, ending: &Ending, chunks: u64, shares: Shares) -> Self {
        Self::new(Changed::ended(KIND, &asked.path, ending), chunks, shares)
    }

    /// Says what was done, and gives the exit code.
    fn print(&self, json: Json, ending: &Ending) -> ExitStatus {
        let printed = if json.is_json() {
            print_json(self)
        } else {
            let screen = Screen::of_stdout();
            self.sentence(ending).lines().for_each(|line| println!("{}", screen.fit(line)));
            ExitStatus::Clean
        };
        ExitStatus::of_change(ending).max(printed)
    }

    fn sentence(&self, ending: &Ending) -> String {
        let path = plain(&shown(Path::new(&self.change.path)));
        let shares = || {
            let (kept, gone) = (plural(self.kept, "message"), self.left_out);
            format!("{kept} in context, {gone} left out in {}", plural(self.chunks, "chunk"))
        };
        match (ending, &self.change.reason) {
            (Ending::Fixed, _) => {
                let (before, after) = (self.change.bytes, self.change.bytes_after);
                let (before, after) = (size(before.unwrap_or(0)), size(after.unwrap_or(0)));
                let undo = remedy::undo(Path::new(&self.change.path));
                let resume =
                    self.change.resume.as_deref().map(|command| format!("\n{}", remedy::resume(command)));
                let (shares, resume) = (shares(), resume.unwrap_or_default());
                format!("{path}: compacted: {before} → {after}, {shares}. {undo}{resume}")
            }
            (Ending::WouldFix, _) => format!("{path}: would compact: {}", shares()),
            (_, Some(reason)) => format!("{path}: {}: {reason}", self.change.outcome),
            (_, None) => format!("{path}: {}", self.change.outcome),
        }
    }
}
