//! Files that are not transcripts: only their number matters, unless they make the run fail.

use crate::amount::{grouped, plural};
use crate::report::FileReport;
use crate::status::ExitStatus;

/// How many of those that the user named are listed.
const NAMED_MAX: usize = 3;

/// Files that are not transcripts and have no result of their own.
#[derive(Default)]
pub(super) struct Strangers {
    /// Found in folders, or named with `--if-any`.
    ignored: u64,
    /// Named by the user.
    named: u64,
    /// The first of all, for formats in which everything is about a file.
    first: Option<String>,
    /// The first of those that were named.
    names: Vec<String>,
    /// The only one that was named is reported like any other file.
    only: Option<FileReport>,
    fails: bool,
}

impl Strangers {
    pub(super) fn add(&mut self, report: FileReport) {
        self.first.get_or_insert_with(|| report.path.clone());
        if report.is_ignored() {
            self.ignored += 1;
            return;
        }
        self.named += 1;
        self.fails |= report.status == ExitStatus::Error;
        if self.names.len() < NAMED_MAX {
            self.names.push(report.path.clone());
        }
        self.only = (self.named == 1).then_some(report);
    }

    /// The one that is to be reported like any other file.
    pub(super) fn take_only(&mut self) -> Option<FileReport> {
        let only = self.only.take()?;
        self.named = 0;
        Some(only)
    }

    /// Whether they make the run fail.
    pub(super) fn fail(&self) -> bool {
        self.fails && self.named > 0
    }

    /// Those that the user named, in one sentence.
    pub(super) fn named(&self) -> Option<String> {
        let more = self.named.saturating_sub(self.names.len() as u64);
        let more = if more > 0 { format!(" and {} more", grouped(more)) } else { String::new() };
        let way_out = if self.fails { "; --if-any ignores them" } else { "" };
        (self.named > 0).then(|| {
            let (are, names) = (are(self.named), self.names.join(", "));
            format!("{are}: {names}{more} (--show all lists each{way_out})")
        })
    }

    /// All of them, in one sentence: those that were named, if there are any.
    pub(super) fn all(&self) -> Option<String> {
        let ignored = || (self.ignored > 0).then(|| format!("{} (--show all lists them)", are(self.ignored)));
        self.named().or_else(ignored)
    }

    pub(super) fn first(&self) -> &str {
        self.first.as_deref().unwrap_or_default()
    }
}

fn are(count: u64) -> String {
    let what = if count == 1 { "is not a transcript" } else { "are not transcripts" };
    format!("{} {what}", plural(count, "file"))
}
