//! A generation: what a session was, as long as it only grew.

use super::chunks::Part;
use crate::disk::path;
use crate::platform::attributes::Attributes;
use crate::platform::identity::Stamp;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How far apart the moments are for which it is known how long a generation was.
const MARKS_MILLIS: i64 = 10 * 60 * 1000;

/// What became of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The file is gone.
    Deleted,
    /// The file is there, with nothing in it.
    Emptied,
    /// Only its beginning is there.
    Truncated,
    /// Another text is there.
    Rewritten,
    /// Tailor put another text there; `tailor undo` takes that back too.
    Mended,
}

impl End {
    /// As it is said.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Emptied => "emptied",
            Self::Truncated => "truncated",
            Self::Rewritten => "rewritten",
            Self::Mended => "mended by tailor",
        }
    }
}

/// What a session was, as long as it only grew. Times are in milliseconds since 1970.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Generation {
    /// Where the session lies, without links.
    #[serde(with = "path")]
    pub path: PathBuf,
    pub(super) id: String,
    /// When it was first seen.
    pub began: i64,
    /// When it was last seen.
    pub at: i64,
    /// How long it is.
    pub bytes: u64,
    /// When it ended, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<(i64, End)>,
    /// BLAKE3 hash of its text, in hex.
    pub(super) hash: String,
    pub(crate) attributes: Attributes,
    /// The file when it was read; `None` if it was being written to.
    pub(super) stamp: Option<Stamp>,
    /// How long it was when.
    #[serde(default)]
    pub(super) grown: Vec<(i64, u64)>,
    /// The parts before are those of the state before this one.
    #[serde(default)]
    pub(super) from: u64,
    pub(super) parts: Vec<Part>,
}

impl Generation {
    /// How long it was at a time; `None` if it was not there then.
    pub fn bytes_at(&self, time: i64) -> Option<u64> {
        let is_there = self.began <= time && self.ended.is_none_or(|(ended, _)| time < ended);
        let known = self.grown.iter().rev().find(|(at, _)| *at <= time).map(|(_, bytes)| *bytes);
        is_there.then(|| if time >= self.at { self.bytes } else { known.unwrap_or(0) })
    }

    /// Notes how long it is now.
    pub(super) fn mark(&mut self) {
        if self.grown.last().is_none_or(|(last, _)| self.at - last >= MARKS_MILLIS) {
            self.grown.push((self.at, self.bytes));
        }
    }

    /// Whether its parts make all of it.
    pub(super) fn is_whole(&self) -> bool {
        self.parts.iter().map(|part| part.bytes).sum::<u64>() == self.bytes
    }

    /// How many parts make this many bytes; `None` if that is within one.
    pub(super) fn parts_to(&self, bytes: u64) -> Option<usize> {
        let mut at = 0;
        let ends = self.parts.iter().map(|part| {
            at += part.bytes;
            at
        });
        [0].into_iter().chain(ends).position(|end| end == bytes)
    }

    /// This state with the parts that only the one before names; `None` if that does not fit.
    pub(super) fn after(mut self, before: Option<&Self>) -> Option<Self> {
        if self.from > 0 {
            let before = before?;
            let parts = before.parts.get(..before.parts_to(self.from)?)?;
            self.parts = [parts, &self.parts].concat();
            self.grown = [&before.grown[..], &self.grown].concat();
            self.from = 0;
            self.mark();
        }
        self.is_whole().then_some(self)
    }
}
