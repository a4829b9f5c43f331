//! What a check is asked for: limits of its own, where its results go, and what makes it fail.

use crate::names::severities;
use crate::say::is_verbose;
use crate::value::{count, size};
use clap::{Args as ClapArgs, ValueEnum};
use std::path::PathBuf;
use transcript::Severity;
use transcript::policy::Budget;
use transcript::rule;

/// Limits of `scan` alone. Nothing is cut for the sake of them.
#[derive(ClapArgs)]
#[command(next_help_heading = "What a check allows (anything, unless asked for)")]
pub(crate) struct Allowed {
    /// Largest file (L1), such as 500kB or 2M.
    #[arg(long, hide_short_help = true, value_name = "SIZE", value_parser = size)]
    max_file_size: Option<u64>,
    /// Longest line (L2).
    #[arg(long, hide_short_help = true, value_name = "SIZE", value_parser = size)]
    max_line_size: Option<u64>,
    /// Longest text of a tool result (L3).
    #[arg(long, hide_short_help = true, value_name = "CHARS", value_parser = count)]
    max_result_chars: Option<u64>,
    /// Most characters in the results of one model message (L4).
    #[arg(long, hide_short_help = true, value_name = "CHARS", value_parser = count)]
    max_turn_chars: Option<u64>,
    /// Largest context (L5); `window` is each session's own context window.
    #[arg(long, hide_short_help = true, value_name = "TOKENS|window", value_parser = context_max)]
    max_context_tokens: Option<ContextMax>,
    /// How far above these limits is only a note; beyond that, it is an error.
    #[arg(long, hide_short_help = true, value_name = "PERCENT", default_value = "0%", value_parser = percent)]
    tolerance: u64,
}

/// How large a context may be.
#[derive(Clone, Copy, Debug)]
enum ContextMax {
    Tokens(u64),
    Window,
}

impl Allowed {
    pub(crate) fn budget(&self) -> Budget {
        let (context_tokens_max, context_fits_window) = match self.max_context_tokens {
            Some(ContextMax::Tokens(tokens)) => (tokens, false),
            asked => (0, asked.is_some()),
        };
        Budget {
            file_bytes_max: self.max_file_size.unwrap_or(0),
            line_bytes_max: self.max_line_size.unwrap_or(0),
            result_chars_max: self.max_result_chars.unwrap_or(0),
            turn_chars_max: self.max_turn_chars.unwrap_or(0),
            context_tokens_max,
            context_fits_window,
            tolerance_percent: self.tolerance,
        }
    }
}

/// The option without which this rule never finds anything.
pub(super) fn limit_missing(code: &str, budget: &Budget) -> Option<&'static str> {
    let limit = rule::find(code)?.limit()?;
    (!(limit.is_set)(budget)).then_some(limit.option)
}

/// Where results go, and what of them counts.
#[derive(ClapArgs)]
#[command(next_help_heading = "Results")]
pub(crate) struct ResultArgs {
    /// Format of the results.
    #[arg(long, value_enum, default_value_t = ReportFormat::Human)]
    format: ReportFormat,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write the results to this file at the end.
    ///
    /// Instead of to standard output, which is `-`.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Ignore the findings listed in this file; `--format json -o FILE` writes one.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Exit with 0 even if there are findings; errors still exit with 2.
    #[arg(long, hide_short_help = true)]
    pub(crate) exit_zero: bool,
    /// Ignore files that are not transcripts instead of failing.
    #[arg(long, hide_short_help = true)]
    pub(crate) if_any: bool,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

impl ResultArgs {
    pub(crate) fn format(&self) -> ReportFormat {
        if self.json { ReportFormat::Json } else { self.format }
    }
}

/// Which findings are listed, and how. What is not listed counts all the same.
#[derive(ClapArgs, Clone, Default)]
#[command(next_help_heading = "Results")]
pub(crate) struct Listing {
    /// `all` lists each finding by itself, and each file that is not a transcript.
    #[arg(long, value_enum, default_value_t = ShowFindings::Folded, hide_short_help = true)]
    show: ShowFindings,
    /// List only findings of this severity or worse.
    ///
    /// [default: note; of `scan` without a PATH: warning]
    #[arg(long, value_name = "note|warning|error", value_parser = severities(), hide_possible_values = true)]
    min_severity: Option<Severity>,
    /// List how many findings there are of each rule, instead of the findings.
    #[arg(long, hide_short_help = true)]
    pub(crate) statistics: bool,
    #[arg(skip)]
    pub(crate) layout: FileLayout,
}

/// How files are listed, which the command decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FileLayout {
    /// As they come.
    #[default]
    AsFound,
    /// Those with errors first, after all were looked at.
    Sorted,
    /// Sorted, for all sessions of all agents: many notes would hide what matters and are left to a number.
    Overview,
    /// One line for each file that would be changed, those with errors first, before somebody is asked.
    Question,
}

/// How findings are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ShowFindings {
    /// One line for each rule and file.
    #[default]
    Folded,
    /// One line for each finding, and for each file that is not a transcript.
    All,
}

impl Listing {
    /// Whether a finding of this severity is listed, which may make the run fail.
    pub(crate) fn lists(&self, severity: Severity, fails: bool) -> bool {
        match self.min_severity {
            Some(least) => severity >= least,
            None => !self.leaves_notes_out() || fails || severity > Severity::Note,
        }
    }

    /// Whether notes are only counted, although the user did not ask for that.
    pub(crate) fn leaves_notes_out(&self) -> bool {
        self.layout == FileLayout::Overview && self.min_severity.is_none() && !self.shows_all()
    }

    /// Whether every finding is listed by itself.
    pub(crate) fn shows_all(&self) -> bool {
        self.show == ShowFindings::All || is_verbose()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Text for people.
    Human,
    /// One JSON object for each file, and one with totals.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit XML, with a test case for each file.
    Junit,
    /// GitHub Actions annotations, and a step summary.
    Github,
    /// A Code Quality report for GitLab.
    Gitlab,
}

fn context_max(text: &str) -> Result<ContextMax, String> {
    match text {
        "window" => Ok(ContextMax::Window),
        _ => count(text).map(ContextMax::Tokens).map_err(|_| {
            "neither a number of tokens nor `window`, each session's own context window".to_string()
        }),
    }
}

/// A percentage, with or without its sign.
fn percent(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    number.parse().map_err(|_| "not a whole number of percent, such as 10%".to_string())
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_tolerance_is_in_percent() {
        assert_eq!([percent("10%"), percent("10"), percent("0 %")], [Ok(10), Ok(10), Ok(0)]);
        assert!(["", "%", "-1%", "1.5%", "ten"].iter().all(|text| percent(text).is_err()));
    }
}
