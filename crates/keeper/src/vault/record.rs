//! What a run took out and where: a line of JSON, and behind it the bytes that are in no kept text, compressed
//! together. Whether the file still holds what the run wrote is not known here.

use super::Failure;
use super::pack::compressor;
use super::texts::copy;
use blake3::{Hash, Hasher};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use transcript::plan::{Edit, Piece, Plan};
use transcript::{Fault, Rendered, Source, Span};

/// The version of the format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// Longest header that is read.
const HEADER_BYTES_MAX: u64 = 1 << 30;

/// How many bytes around a place are part of what tells it from another.
pub(crate) const CONTEXT_BYTES: u64 = 32;

/// Hex digits of the hash over a place and its context.
const CHECK_DIGITS: usize = 16;

/// How far a run has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its originals are kept. Whether the file was replaced then only the file tells.
    Kept,
    /// The file was replaced.
    Landed,
    /// It was undone.
    Undone,
}

impl State {
    pub(super) const ALL: [Self; 3] = [Self::Kept, Self::Landed, Self::Undone];

    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Kept => ".kept",
            Self::Landed => ".undo",
            Self::Undone => ".undone",
        }
    }
}

/// One run over one file.
#[derive(Clone, Debug)]
pub struct Record {
    pub(crate) header: Header,
    pub(crate) state: State,
    /// Length of its own file.
    pub(crate) size: u64,
}

/// The first line of a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    version: u32,
    path: Name,
    pub(crate) run: String,
    pub(crate) time: String,
    pub(crate) bytes_before: u64,
    pub(crate) bytes_after: u64,
    /// Whether the old text ended with a line break, or was empty.
    pub(crate) ends_line: bool,
    /// The run that this one undid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undoes: Option<String>,
    /// What the run was for, if it was more than mending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) purpose: Option<Purpose>,
    pub(crate) edits: Vec<Change>,
    /// All texts that markers of this run name.
    pub(crate) texts: Vec<Digest>,
}

/// What a run was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A recovery of this level, from 1 to 3.
    Recover(u8),
    /// A compaction.
    Compact,
}

/// A path, which need not be text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

/// The hash of a text, in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Digest(pub(crate) Hash);

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = blake3::HexError;

    fn try_from(hex: String) -> Result<Self, Self::Error> {
        Hash::from_hex(hex).map(Self)
    }
}

/// One place that a run changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    /// Where the new bytes stand in the new text.
    pub(crate) at: u64,
    /// How many they are.
    pub(crate) length: u64,
    /// Hash of them and what stands around them.
    pub(crate) check: String,
    /// What stood there before, in order.
    pub(crate) old: Vec<Old>,
}

/// Bytes that a run took out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Old {
    /// They are part of a text.
    Text { text: Digest, from: u64, to: u64 },
    /// They are in the record, at this place behind the header.
    Inline { inline: (u64, u64) },
    /// They are not kept: a run that undoes another takes out nothing but what that one wrote.
    Gone { gone: u64 },
}

impl Old {
    fn len(&self) -> Option<u64> {
        match self {
            Self::Text { from, to, .. } | Self::Inline { inline: (from, to) } => to.checked_sub(*from),
            Self::Gone { gone } => Some(*gone),
        }
    }
}

impl Change {
    /// How many bytes stood there before.
    pub(crate) fn length_before(&self) -> u64 {
        self.old.iter().filter_map(Old::len).sum()
    }

    /// How many bytes in front of the place and behind it its check covers, in a text of this length.
    pub(crate) fn context(&self, length: u64) -> (u64, u64) {
        let behind = length.saturating_sub(self.at.saturating_add(self.length));
        (self.at.min(CONTEXT_BYTES), behind.min(CONTEXT_BYTES))
    }
}

/// What is known of a run before it has a name.
pub(super) struct Draft {
    pub(super) bytes_before: u64,
    pub(super) bytes_after: u64,
    pub(super) ends_line: bool,
    pub(super) undoes: Option<String>,
    pub(super) purpose: Option<Purpose>,
    pub(super) edits: Vec<Change>,
    pub(super) texts: Vec<Hash>,
    /// What goes behind the header, as places in the old text.
    pub(super) inline: Vec<Span>,
}

impl Draft {
    /// What a plan is going to change. `hashes` are those of its texts.
    pub(super) fn of(source: &dyn Source, plan: &Plan, hashes: &[Hash]) -> Result<Self, Fault> {
        let new = Rendered::new(source, plan);
        let within = kept_spans(plan.texts(), hashes);
        let (mut edits, mut inline, mut done) = (Vec::new(), Vec::new(), 0);
        let (mut at, mut before) = (0, 0);
        for Edit { at: old, with } in plan.edits() {
            at += old.start - before;
            let length = with.iter().map(Piece::len).sum();
            let mut change = Change { at, length, check: String::new(), old: Vec::new() };
            let (front, behind) = change.context(new.len());
            change.check = check(&new, Span::new(at, at + length), front, behind)?;
            change.old = split(*old, &within, &mut inline, &mut done);
            edits.push(change);
            at += length;
            before = old.end;
        }
        Ok(Self {
            bytes_before: source.len(),
            bytes_after: new.len(),
            ends_line: ends_line(source)?,
            undoes: None,
            purpose: None,
            edits,
            texts: hashes.to_vec(),
            inline,
        })
    }
}

fn ends_line(source: &dyn Source) -> Result<bool, Fault> {
    let mut last = [b'\n'];
    if let Some(at) = source.len().checked_sub(1) {
        source.read(at, &mut last)?;
    }
    Ok(last == *b"\n")
}

/// Where in the old text the bytes of kept texts stand: place, text, and offset in it, sorted.
fn kept_spans(texts: &[Vec<Piece>], hashes: &[Hash]) -> Vec<(Span, Hash, u64)> {
    let mut spans = Vec::new();
    for (text, hash) in texts.iter().zip(hashes) {
        let mut offset = 0;
        for piece in text {
            if let Piece::Kept(span) | Piece::Moved(span) = piece {
                spans.push((*span, *hash, offset));
            }
            offset += piece.len();
        }
    }
    spans.sort_by_key(|(span, ..)| (span.start, std::cmp::Reverse(span.end)));
    spans
}

/// Where the bytes of a span are to be found later.
fn split(old: Span, within: &[(Span, Hash, u64)], inline: &mut Vec<Span>, done: &mut u64) -> Vec<Old> {
    let mut parts = Vec::new();
    let mut alone = |from: u64, to: u64, parts: &mut Vec<Old>| {
        if from < to {
            inline.push(Span::new(from, to));
            parts.push(Old::Inline { inline: (*done, *done + to - from) });
            *done += to - from;
        }
    };
    let mut at = old.start;
    for (span, text, offset) in within {
        let (from, to) = (span.start.max(at), span.end.min(old.end));
        if from < to {
            alone(at, from, &mut parts);
            let (start, end) = (offset + from - span.start, offset + to - span.start);
            parts.push(Old::Text { text: Digest(*text), from: start, to: end });
            at = to;
        }
    }
    alone(at, old.end, &mut parts);
    parts
}

/// The hash over a place and so many bytes in front of it and behind it.
pub(crate) fn check(source: &dyn Source, place: Span, front: u64, behind: u64) -> Result<String, Fault> {
    let mut hasher = Hasher::new();
    source.pieces(Span::new(place.start - front, place.end + behind), &mut |bytes| {
        hasher.update(bytes);
        true
    })?;
    Ok(hasher.finalize().to_hex()[..CHECK_DIGITS].to_string())
}

impl Header {
    pub(super) fn new(draft: Draft, path: &Path, run: &str, time: jiff::Timestamp) -> Self {
        let bytes = path.as_os_str().as_bytes();
        let path = String::from_utf8(bytes.to_vec()).map_or_else(|_| Name::Bytes(bytes.to_vec()), Name::Text);
        let Draft { bytes_before, bytes_after, ends_line, undoes, purpose, edits, texts, inline: _ } = draft;
        let (run, time) = (run.to_string(), time.to_string());
        let texts = texts.into_iter().map(Digest).collect();
        let version = VERSION;
        Self { version, path, run, time, bytes_before, bytes_after, ends_line, undoes, purpose, edits, texts }
    }

    pub(crate) fn path(&self) -> PathBuf {
        match &self.path {
            Name::Text(text) => text.into(),
            Name::Bytes(bytes) => std::ffi::OsStr::from_bytes(bytes).into(),
        }
    }

    /// Whether places are in order and within the texts that they are about.
    fn is_sound(&self) -> bool {
        let (mut after, mut before) = (0_u64, 0_u64);
        for change in &self.edits {
            let Some(kept) = change.at.checked_sub(after) else { return false };
            let old = change.old.iter().try_fold(0_u64, |sum, old| sum.checked_add(old.len()?));
            let ends = (
                change.at.checked_add(change.length),
                old.and_then(|old| before.checked_add(kept)?.checked_add(old)),
            );
            let (Some(end), Some(old)) = ends else { return false };
            (after, before) = (end, old);
        }
        let rest = self.bytes_after.checked_sub(after);
        rest.is_some() && rest == self.bytes_before.checked_sub(before)
    }
}

/// Writes a record: the header and the bytes behind it are one stream.
pub(super) fn write(
    file: &File,
    header: &Header,
    source: &dyn Source,
    inline: &[Span],
) -> Result<(), Failure> {
    let mut out = compressor(file, None)?;
    serde_json::to_writer(&mut out, header).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    for span in inline {
        copy(source, *span, &mut |bytes| out.write_all(bytes))?;
    }
    out.finish()?;
    Ok(())
}

/// The bytes behind the header of a record.
pub(crate) type Body = BufReader<zstd::stream::read::Decoder<'static, BufReader<File>>>;

/// Reads the header of a record and leaves the rest to be read.
pub(super) fn read(file: File) -> io::Result<(Header, Body)> {
    let broken = |why: String| io::Error::new(ErrorKind::InvalidData, why);
    let mut body = BufReader::new(zstd::stream::read::Decoder::new(file)?);
    let mut line = Vec::new();
    body.by_ref().take(HEADER_BYTES_MAX).read_until(b'\n', &mut line)?;
    let header: Header = serde_json::from_slice(&line).map_err(|error| broken(error.to_string()))?;
    if header.version != VERSION {
        return Err(broken(format!("its version is {}, and only {VERSION} is known", header.version)));
    }
    if !header.is_sound() {
        return Err(broken("its places contradict each other".into()));
    }
    Ok((header, body))
}

impl Record {
    /// Name of the run.
    pub fn run(&self) -> &str {
        &self.header.run
    }

    /// When it was, as in `2026-11-21T16:01:02.123Z`.
    pub fn time(&self) -> &str {
        &self.header.time
    }

    /// Which file it changed.
    pub fn path(&self) -> PathBuf {
        self.header.path()
    }

    /// How many places it changed.
    pub fn edits(&self) -> usize {
        self.header.edits.len()
    }

    /// Length of the file before.
    pub fn bytes_before(&self) -> u64 {
        self.header.bytes_before
    }

    /// Length of the file afterwards.
    pub fn bytes_after(&self) -> u64 {
        self.header.bytes_after
    }

    /// The run that this one undid, if it did nothing else.
    pub fn undoes(&self) -> Option<&str> {
        self.header.undoes.as_deref()
    }

    /// What it was for, if it was more than mending.
    pub fn purpose(&self) -> Option<Purpose> {
        self.header.purpose
    }

    /// How far it has got.
    pub fn state(&self) -> State {
        self.state
    }
}
