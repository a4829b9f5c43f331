//! L1: a file that is larger than the check allows.

use super::over_limit::{SOURCE, WHY, over};
use super::{Cover, Help, Rule, about_place};
use crate::format::Format;
use crate::found::Found;
use crate::session::Session;
use spans::source::Fault;

pub(super) struct OversizedFile;

impl Rule for OversizedFile {
    fn code(&self) -> &'static str {
        "L1"
    }

    fn name(&self) -> &'static str {
        "oversized-file"
    }

    fn help(&self) -> Help {
        Help {
            what: "The file is larger than --max-file-size.",
            why: WHY,
            fix: "`fix` shortens what is too long by its own limits; `scan` says how much that saves. A session that stays too large is \
                  better closed and begun anew.",
            source: SOURCE,
        }
    }

    fn cover(&self, _format: &dyn Format) -> Cover {
        Cover::Reported
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        let (limit, bytes) = (session.policy.budget.file_bytes_max, session.transcript.bytes);
        if let Some((severity, message)) = over(session, limit, bytes, "file of", "bytes") {
            out.push(about_place(&OversizedFile, 1, severity, message));
        }
        Ok(())
    }
}
