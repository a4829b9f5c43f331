//! What to do with a file, and how to go about it.

use crate::ask::error::Error;
use crate::ask::worth::Worth;
use crate::base::policies::Policies;
use crate::vault::Vault;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use transcript::{Case, Fault, Situation, Source};

/// What to do with a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Read it and say what is wrong.
    #[default]
    Look,
    /// Also draw the plan, check it and see whether the file could be replaced now, but write nothing.
    DryRun,
    /// Mend it in place.
    Fix,
    /// Leave it alone and write the mended text, or the same text if there is nothing to mend, to this new file.
    CopyTo(PathBuf),
}

/// How to go about it. The default looks, with the default policy, and waits for nothing.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The policies.
    pub policy: Policies,
    /// What is the case with the sessions, as far as the caller knows.
    pub situation: Situation,
    /// What to do.
    pub mode: Mode,
    /// How long a file must have been quiet before it is replaced.
    pub settle: Duration,
    /// How long before anything in it that rewrites older history is: prompt caches may hold that.
    pub settle_stale: Duration,
    /// How long a session must have been quiet before no agent that cannot be seen is taken to remember it.
    pub memory_settle: Duration,
    /// Whether a session in a store is only changed as far as that goes beside its owner, even if the owner is stopped: to change
    /// more, it is kept from starting for a moment.
    pub beside_only: bool,
    /// Where originals are kept. [`Mode::Fix`] needs one.
    pub vault: Option<Vault>,
    /// What makes it worth rewriting a whole file. Nothing: any repair does.
    pub worth: Option<Worth>,
}

impl Options {
    /// By which policy a transcript is looked at, and in which situation.
    ///
    /// # Errors
    ///
    /// When the source cannot be read.
    pub fn case<'a>(&'a self, source: &dyn Source) -> Result<Case<'a>, Fault> {
        Ok(Case { policy: self.policy.choose(source)?, situation: &self.situation })
    }

    /// The vault, or an error that says where the originals of a file could go.
    pub(crate) fn vault(&self, path: &Path) -> Result<&Vault, Error> {
        self.vault.as_ref().ok_or_else(|| {
            Error::new(path, "keep the originals", io::Error::other("there is no vault"))
                .with_way_out("pass --vault DIR")
        })
    }
}
