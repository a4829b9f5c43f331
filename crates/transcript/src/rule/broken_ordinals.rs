//! T7: ordinals that do not count on.

use super::{Cover, Help, Rule, about};
use crate::entry::{Quirk, QuirkKind};
use crate::finding::Severity;
use crate::format::Format;
use crate::found::Found;
use crate::session::Session;
use alloc::string::ToString;
use spans::source::Fault;

pub(super) struct BrokenOrdinals;

impl Rule for BrokenOrdinals {
    fn code(&self) -> &'static str {
        "T7"
    }

    fn name(&self) -> &'static str {
        "broken-ordinals"
    }

    fn help(&self) -> Help {
        Help {
            what: "The ordinal of a record is not that of the one before and one more.",
            why: "\"expected ordinal 24775, got 24774\": Codex does not resume the thread, or shows an old part of it.",
            fix: "None: Codex's database counts these records too. Stop Codex, keep a copy, and take out only a \
                  `thread_settings_applied` that repeats the ordinal before it; do not number anew.",
            source: "codex #41079, #35746, #40630",
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.content().ordinals { Cover::Reported } else { Cover::Never }
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        let breaks = |quirk: &&Quirk| quirk.kind == QuirkKind::Ordinal;
        // One finding for all: behind one that is wrong mostly all are.
        if let Some(first) = session.transcript.quirks().iter().find(breaks) {
            let message = "the ordinal does not count on from the record before".to_string();
            out.push(about(&BrokenOrdinals, session, first.entry, Severity::Warning, message));
        }
        Ok(())
    }
}
