//! `tailor chunk`: prints the context in chunks that a summariser can take.

use super::{CommandError, CommandResult, one_session, output_closed};
use crate::args::ChunkArgs as Asked;
use crate::say::eprint_message;
use crate::sessions::describe_error;
use crate::status::ExitStatus;
use crate::terminal::json;
use crate::tokens;
use crate::value::Tokenizer;
use keeper::{Refusal, Stop, Unsupported, spool};
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use transcript::Reading;
use transcript::chunk::{Chunk, ChunkMessage, ChunkTotals, chunks};
use transcript::compact::Unable;
use transcript::format::{Format, SupportLevel};

pub(crate) fn run(asked: &Asked) -> CommandResult {
    one_session(&asked.path, "read the conversation")?;
    let count = tokens::counter(asked.limits.tokenizer);
    let limits = asked.limits.limits(&count);
    let mut printer = ChunkPrinter::new(asked.limits.tokenizer);
    let mut format = None;
    let cut = |source: &dyn transcript::Source| {
        let reading = Reading::new(source)?;
        let totals = chunks(&reading, &limits, None, &mut |chunk| printer.chunk(chunk).is_ok())?;
        if is_empty(&totals) {
            format = reading.scanned.format;
        }
        Ok::<_, transcript::compact::NotDrawn>(totals)
    };
    let done = if asked.path == Path::new("-") {
        spool(io::stdin().lock(), cut)
    } else {
        keeper::read(&asked.path, None, cut)
    };
    let totals = done.map_err(|stop| unread(&asked.path, &stop))?;
    if is_empty(&totals) {
        explain_none(&asked.path, format)?;
    }
    printer.finish(&totals).map_err(|error| output_closed("standard output", &error))?;
    Ok(ExitStatus::Clean)
}

fn is_empty(totals: &ChunkTotals) -> bool {
    totals.messages + totals.left_out == 0
}

/// Explains why there are no messages; an error if they cannot be read.
fn explain_none(path: &Path, format: Option<&Format>) -> Result<(), CommandError> {
    let path = path.display();
    if let Some(SupportLevel::ReadOnly(why)) = format.map(|format| format.level) {
        return Err(format!("{path}: could not read the conversation: {why}").into());
    }
    eprint_message(&format!(
        "{path}: no message is in context, or its lines are not those of one conversation"
    ));
    Ok(())
}

/// Says in a sentence why a conversation was not read.
pub(super) fn unread(path: &Path, stop: &Stop) -> String {
    let why = match stop {
        Stop::Failed(error) => return describe_error(path, error),
        Stop::Refused(Refusal::Unable(Unable::UnknownFormat)) => Unsupported::UnknownFormat.to_string(),
        reason => reason.to_string(),
    };
    format!("{}: could not read the conversation: {why}", path.display())
}

/// Prints chunks as lines of JSON, each as soon as it is ready.
pub(super) struct ChunkPrinter {
    out: BufWriter<io::StdoutLock<'static>>,
    tokenizer: Tokenizer,
    number: u64,
    done: io::Result<()>,
}

#[derive(Serialize)]
struct ChunkLine<'c> {
    #[serde(rename = "type")]
    kind: &'static str,
    chunk: u64,
    chars: u64,
    tokens: u64,
    messages: Vec<MessageLine<'c>>,
}

#[derive(Serialize)]
struct MessageLine<'c> {
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<&'c str>,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'c str>,
    chars: u64,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted_chars: Option<u64>,
    #[serde(skip_serializing_if = "is_one")]
    stands_for: u64,
    text: &'c str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

#[derive(Serialize)]
struct TotalsLine {
    #[serde(rename = "type")]
    kind: &'static str,
    chunks: u64,
    messages_total: u64,
    replaced: u64,
    left_out: u64,
    chars: u64,
    tokens: u64,
    tokenizer: &'static str,
    /// Whether tokens are estimated.
    estimated: bool,
}

impl<'c> MessageLine<'c> {
    fn new(message: &'c ChunkMessage) -> Self {
        Self {
            line: message.line,
            entry: message.entry.as_deref(),
            role: message.role,
            tool: message.tool.as_deref(),
            chars: message.chars,
            tokens: message.tokens,
            omitted_chars: message.omitted_chars,
            stands_for: message.stands_for,
            text: &message.text,
        }
    }
}

impl ChunkPrinter {
    pub(super) fn new(tokenizer: Tokenizer) -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), tokenizer, number: 0, done: Ok(()) }
    }

    /// Prints a chunk. An error means that output was closed, and is remembered.
    pub(super) fn chunk(&mut self, chunk: &Chunk) -> Result<(), ()> {
        self.number += 1;
        let messages = chunk.messages.iter().map(MessageLine::new).collect();
        let (chars, tokens) = (chunk.chars, chunk.tokens);
        let line = ChunkLine { kind: "chunk", chunk: self.number, chars, tokens, messages };
        self.done = self.line(&line);
        if self.done.is_ok() { Ok(()) } else { Err(()) }
    }

    fn totals(&mut self, totals: &ChunkTotals) -> io::Result<()> {
        self.line(&TotalsLine {
            kind: "chunk-summary",
            chunks: totals.chunks,
            messages_total: totals.messages,
            replaced: totals.replaced,
            left_out: totals.left_out,
            chars: totals.chars,
            tokens: totals.tokens,
            tokenizer: tokens::name(self.tokenizer),
            estimated: self.tokenizer == Tokenizer::Chars4,
        })
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        writeln!(self.out, "{}", json(&serde_json::to_string(line)?))?;
        self.out.flush()
    }

    /// Prints the totals, and returns the first error.
    pub(super) fn finish(mut self, totals: &ChunkTotals) -> io::Result<()> {
        let said = self.totals(totals);
        self.done.and(said)
    }
}
