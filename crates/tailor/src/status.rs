//! Exit codes. Nothing else knows them.

use keeper::{Ending, Refusal};
use std::process::ExitCode;

/// How the program ends. The worst status of all files counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExitStatus {
    /// Nothing to report, or all of it fixed.
    #[default]
    Clean = 0,
    /// Findings at or above `--fail-on` remain.
    Findings = 1,
    /// An error occurred.
    Error = 2,
}

impl ExitStatus {
    /// The status after a change to one file. It is 1 if the file was not changed although nothing is wrong with it.
    pub(crate) fn of_change(ending: &Ending) -> Self {
        match ending {
            Ending::Clean | Ending::Fixed | Ending::WouldFix | Ending::Undone | Ending::WouldUndo => {
                Self::Clean
            }
            Ending::Deferred(_)
            | Ending::Refused(
                Refusal::Unable(_)
                | Refusal::NotTooLong(_)
                | Refusal::Short(_)
                | Refusal::StillTooLong { .. }
                | Refusal::GivenUp(_),
            ) => Self::Findings,
            Ending::Findings | Ending::Refused(_) | Ending::Unsupported(_) => Self::Error,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status as u8)
    }
}
