//! Why work on a file ended early.

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::base::refusal::Refusal;
use std::fmt;
use transcript::{Fault, compact};

/// Why work on a file ended early.
#[derive(Debug)]
pub enum Stop {
    /// Not now; try again later.
    Deferred(Deferral),
    /// Not at all; time changes nothing.
    Refused(Refusal),
    /// The disk or the system failed.
    Failed(Error),
}

impl From<Deferral> for Stop {
    fn from(reason: Deferral) -> Self {
        Self::Deferred(reason)
    }
}

impl From<Refusal> for Stop {
    fn from(reason: Refusal) -> Self {
        Self::Refused(reason)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        if error.is_withheld() { Deferral::Withheld.into() } else { Self::Failed(error) }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deferred(reason) => reason.fmt(f),
            Self::Refused(reason) => reason.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// Why work on a text ended early: a [`Stop`], or a fault, which says only where the text could not be read. The caller that
/// opened the file knows the cause and turns a fault into a stop.
pub enum Halt {
    /// The text could not be read.
    Fault(Fault),
    /// Anything else.
    Stop(Stop),
}

impl Halt {
    /// The stop, with the error for a fault.
    pub(crate) fn stop(self, error: impl FnOnce(Fault) -> Error) -> Stop {
        match self {
            Self::Fault(fault) => error(fault).into(),
            Self::Stop(stop) => stop,
        }
    }
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<compact::NotDrawn> for Halt {
    fn from(stop: compact::NotDrawn) -> Self {
        match stop {
            compact::NotDrawn::Unable(unable) => Refusal::Unable(unable).into(),
            compact::NotDrawn::Fault(fault) => fault.into(),
        }
    }
}

impl<S: Into<Stop>> From<S> for Halt {
    fn from(stop: S) -> Self {
        Self::Stop(stop.into())
    }
}
