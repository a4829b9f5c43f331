//! Exit codes, and the only place that knows them.

use std::process::ExitCode;

/// How the program ends. The worst of all files counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// Nothing to report, or all of it fixed.
    #[default]
    Clean = 0,
    /// Findings at or above `--fail-on` remain.
    Findings = 1,
    /// Something could not be done.
    Error = 2,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status as u8)
    }
}
