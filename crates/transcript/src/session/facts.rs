//! What is in a transcript, in numbers.

use super::failure::Failure;
use super::view::Awaits;
use crate::format::{Format, Head};
use crate::read::scan::Scanned;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// What is in a transcript.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Who writes such files; `None` if unknown.
    pub format: Option<&'static Format>,
    /// The file is one JSON object or array, and of no known format.
    pub is_document: bool,
    /// Length in bytes.
    pub bytes: u64,
    /// Lines, the last one also without a line break.
    pub lines: u64,
    /// Objects.
    pub entries: usize,
    /// Tool calls.
    pub calls: usize,
    /// Tool results.
    pub results: usize,
    /// What the end of the conversation waits for; `None` if for nothing but a person.
    pub awaits: Option<Awaits>,
    /// How the last turn failed, if it did and the format keeps that.
    pub failed: Option<Failure>,
    /// In about how many turns its agent will not load all of the conversation any more; 0 if it does not now. `None` if it
    /// loads all of any session, what it loads is not known, or that is far off.
    pub turns_left: Option<u64>,
    /// The votes on the format.
    pub(crate) votes: Head,
}

impl Facts {
    /// The facts that a scan gives. The fields before the votes need a session.
    pub(crate) fn from_scan(Scanned { format, transcript, votes, .. }: &Scanned) -> Self {
        Self {
            format: *format,
            is_document: transcript.is_document,
            bytes: transcript.bytes,
            lines: transcript.lines,
            entries: transcript.entries.len(),
            calls: transcript.calls.len(),
            results: transcript.results.len(),
            awaits: None,
            failed: None,
            turns_left: None,
            votes: *votes,
        }
    }

    /// By what the format was recognised, or why none was, in a few words; empty if nothing is like a known format.
    pub fn recognised(&self) -> String {
        self.votes.why(self.format)
    }
}
