//! A file that is one JSON array of messages, or one object with such an array: each message is an entry in a list, as in an agent's
//! record that holds a list of records. The document itself is the entry that holds it.

use super::scan::{Entries, RecordPlace, Scanned, Seen, Visitor};
use crate::format::{self, Format, Head};
use crate::model::draft::Draft;
use crate::model::entry::Kind;
use crate::model::transcript::Transcript;
use alloc::vec::Vec;
use memchr::memchr_iter;
use spans::json::{self, Doc, Value, ValueKind as Json};
use spans::source::{Fault, Source};

/// Fields of a request, or of what a program keeps of one, that hold its messages; and of an ATIF trajectory.
const LISTS: &[&str] = &["messages", "contents", "steps"];

/// Reads a document, which is taken for a format if one is told. Nothing of it is read if it is in none. A visitor has seen
/// what its lines are alone, and forgets that.
pub(super) fn read(
    source: &dyn Source,
    document: &Doc,
    told: Option<&'static Format>,
    mut visitor: Option<&mut dyn Visitor>,
) -> Result<Scanned, Fault> {
    let mut read = Scanned::default();
    read.transcript.bytes = source.len();
    read.transcript.is_document = true;
    let mut place = LineCounter::default();
    let list = list(document);
    let messages: Vec<Value<'_>> = list.into_iter().flat_map(Value::items).filter(is_object).collect();
    read.votes = votes(source, &messages)?;
    read.format = told.or_else(|| read.votes.format().filter(|format| format.is_bare()));
    if let Some(visitor) = &mut visitor {
        visitor.end_line(0, false);
        read.transcript.keep_marks();
    }
    if let Some(format) = read.format {
        let transcript = &mut read.transcript;
        hold(document, list, transcript, &mut visitor);
        let mut entries = Entries { format, transcript, seen: &mut Seen::default(), visitor };
        for message in messages {
            let span = message.span();
            let line = place.line_of(source, span.start)?;
            if let Some(mut doc) = json::parse(source, span)? {
                entries.read(&mut doc, RecordPlace { line, span, glued: false, listed: true });
            }
        }
        entries.end_line();
    }
    read.transcript.lines = place.line_of(source, source.len().saturating_sub(1))?;
    Ok(read)
}

/// Whether it is an object on one line: a row of data, which others may follow.
pub(super) fn is_row(source: &dyn Source, document: &Doc) -> Result<bool, Fault> {
    let Some(root) = document.root().filter(is_object) else { return Ok(false) };
    let mut place = LineCounter::default();
    Ok(place.line_of(source, root.span().start)? == place.line_of(source, root.span().end)?)
}

fn is_object(value: &Value<'_>) -> bool {
    value.kind() == Json::Object
}

/// The list of messages in a document.
fn list(document: &Doc) -> Option<Value<'_>> {
    let root = document.root()?;
    if root.kind() == Json::Array { Some(root) } else { LISTS.iter().find_map(|name| root.get(name)) }
}

/// The votes on the first messages.
fn votes(source: &dyn Source, messages: &[Value<'_>]) -> Result<Head, Fault> {
    let (mut docs, mut nodes) = (Vec::new(), 0);
    for message in messages {
        if format::is_head(docs.len(), nodes) {
            break;
        }
        let doc = json::parse(source, message.span())?.unwrap_or_default();
        nodes += doc.size();
        docs.push(doc);
    }
    Ok(Head::from_docs(&mut docs.iter(), 0))
}

/// Adds the entry that holds the list.
fn hold(
    document: &Doc,
    list: Option<Value<'_>>,
    transcript: &mut Transcript,
    visitor: &mut Option<&mut dyn Visitor>,
) {
    let span = document.root().map(Value::span).unwrap_or_default();
    let mut draft = Draft::new(transcript, 1, span, false);
    draft.entry.kind = Kind::Header;
    draft.finish();
    if let Some(visitor) = visitor {
        visitor.entry(transcript, document.root(), list);
    }
}

/// Counts line breaks.
#[derive(Default)]
struct LineCounter {
    at: u64,
    breaks: u64,
}

impl LineCounter {
    /// The line of an offset, from 1, which is not before the one that was asked for last.
    fn line_of(&mut self, source: &dyn Source, offset: u64) -> Result<u64, Fault> {
        let mut room = [0; 4096];
        while self.at < offset {
            let wanted = (offset - self.at).min(room.len() as u64) as usize;
            source.fill(self.at, &mut room[..wanted])?;
            self.breaks += memchr_iter(b'\n', &room[..wanted]).count() as u64;
            self.at += wanted as u64;
        }
        Ok(self.breaks + 1)
    }
}
