//! The command line: what may be written, and what it means as a policy. No file is touched here.

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use keeper::{Mode, Options};
use std::path::PathBuf;
use std::time::Duration;
use transcript::policy::{Policy, Selection, SignedThinking};
use transcript::rule;
use transcript::{Finding, Severity};

/// Keeps AI agents' session transcripts healthy: checks them, trims them to fit, mends what is broken, and
/// never loses a line.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 nothing to report, 1 findings remain, 2 an error.\n\
    Start with `tailor scan`: it only reads, and looks where your agents keep their sessions.")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Checks transcripts and says what is wrong. Changes nothing.
    #[command(after_help = "Examples:\n  tailor scan\n  tailor scan ~/.claude/projects --fail-on error\n  \
        tailor scan session.jsonl --format json | jq .findings")]
    Scan(Scan),
    /// Mends transcripts in place, as far as that is safe.
    #[command(after_help = "Examples:\n  tailor fix session.jsonl --dry-run\n  tailor fix session.jsonl\n  \
        tailor fix - < session.jsonl > mended.jsonl\n  tailor fix ~/.openclaw --out /tmp/mended")]
    Fix(Fix),
    /// Says what a rule means.
    #[command(
        after_help = "Examples:\n  tailor explain P1\n  tailor explain oversized-result\n  tailor explain"
    )]
    Explain(Explain),
}

#[derive(ClapArgs)]
pub(crate) struct Scan {
    #[command(flatten)]
    pub(crate) shared: Shared,
}

#[derive(ClapArgs)]
pub(crate) struct Fix {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Say what would be changed, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Show each change; what was taken out only with --show-content.
    #[arg(long)]
    pub(crate) diff: bool,
    /// Show text from the transcript in --diff.
    #[arg(long, requires = "diff")]
    pub(crate) show_content: bool,
    /// Write mended copies into this folder and leave the originals alone.
    #[arg(long, value_name = "DIR", conflicts_with = "dry_run")]
    pub(crate) out: Option<PathBuf>,
    /// Also make guarded fixes of these rules (see `tailor explain CODE`).
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = code)]
    pub(crate) allow: Vec<String>,
    /// Seconds for which a file must have been quiet before it is replaced.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) settle: Duration,
}

#[derive(ClapArgs)]
pub(crate) struct Explain {
    /// Code or name of a rule; all of them if there is none.
    pub(crate) code: Option<String>,
}

/// What `scan` and `fix` have in common.
#[derive(ClapArgs)]
pub(crate) struct Shared {
    /// Files or folders; `-` is standard input. Without one, the folders of known agents.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// How to print results.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
    /// Only these rules.
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = code)]
    pub(crate) select: Vec<String>,
    /// Not these rules.
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = code)]
    pub(crate) ignore: Vec<String>,
    /// Exit with 1 if findings of this severity or worse, or of this rule, remain.
    #[arg(long, value_name = "note|warning|error|CODE", value_delimiter = ',', default_value = "warning", value_parser = fail_on)]
    pub(crate) fail_on: Vec<FailOn>,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// The limits of the policy. 0 switches one off.
#[derive(ClapArgs)]
#[command(next_help_heading = "Limits (0 switches one off)")]
pub(crate) struct Limits {
    /// Longest text of a tool result.
    #[arg(long, value_name = "CHARS", default_value_t = Policy::default().result_chars_max)]
    pub(crate) result_chars_max: u64,
    /// Another limit for the results of one tool.
    #[arg(long, value_name = "TOOL=CHARS", value_parser = tool_limit)]
    pub(crate) tool_result_chars_max: Vec<(String, u64)>,
    /// Never cut results of this tool.
    #[arg(long, value_name = "TOOL")]
    pub(crate) keep_tool: Vec<String>,
    /// Cut results of this tool only.
    #[arg(long, value_name = "TOOL")]
    pub(crate) only_tool: Vec<String>,
    /// Longest sum of the results that answer one message of the model.
    #[arg(long, value_name = "CHARS", default_value_t = Policy::default().turn_chars_max)]
    pub(crate) turn_chars_max: u64,
    /// Longest message that a summariser can take.
    #[arg(long, value_name = "CHARS", default_value_t = Policy::default().summary_chars_max)]
    pub(crate) summary_chars_max: u64,
    /// The model's context window.
    #[arg(long, value_name = "TOKENS", default_value_t = Policy::default().window_tokens)]
    pub(crate) window_tokens: u64,
    /// Longest string in copies of results that the model never sees.
    #[arg(long, value_name = "CHARS", default_value_t = Policy::default().side_chars_max)]
    pub(crate) side_chars_max: u64,
    /// Where a change would come before signed thinking: keep the thinking and hold the change back, strip the
    /// thinking, or ignore it.
    #[arg(long, value_enum, default_value_t = Thinking::Keep)]
    pub(crate) thinking: Thinking,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A line a finding.
    Human,
    /// A JSON object a file, and one with totals.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Thinking {
    Keep,
    Strip,
    Ignore,
}

/// What makes the exit code 1.
#[derive(Clone, Debug)]
pub(crate) enum FailOn {
    Severity(Severity),
    Code(String),
}

impl Shared {
    pub(crate) fn policy(&self, allow: &[String]) -> Policy {
        let limits = &self.limits;
        Policy {
            result_chars_max: limits.result_chars_max,
            tool_chars_max: limits.tool_result_chars_max.clone(),
            tools_keep: limits.keep_tool.clone(),
            tools_only: limits.only_tool.clone(),
            turn_chars_max: limits.turn_chars_max,
            summary_chars_max: limits.summary_chars_max,
            window_tokens: limits.window_tokens,
            side_chars_max: limits.side_chars_max,
            thinking: match limits.thinking {
                Thinking::Keep => SignedThinking::Keep,
                Thinking::Strip => SignedThinking::Strip,
                Thinking::Ignore => SignedThinking::Ignore,
            },
            selection: Selection {
                select: self.select.clone(),
                ignore: self.ignore.clone(),
                allow: allow.to_vec(),
            },
            ..Policy::default()
        }
    }

    /// Whether a finding makes the exit code 1.
    pub(crate) fn fails(&self, finding: &Finding) -> bool {
        self.fail_on.iter().any(|on| match on {
            FailOn::Severity(severity) => finding.severity >= *severity,
            FailOn::Code(code) => finding.rule.code() == code,
        })
    }
}

impl Scan {
    pub(crate) fn options(&self) -> Options {
        let policy = self.shared.policy(&[]);
        Options { policy, mode: Mode::Look, settle: Duration::ZERO }
    }
}

impl Fix {
    /// The mode is that of files that are mended in place.
    pub(crate) fn options(&self) -> Options {
        Options {
            policy: self.shared.policy(&self.allow),
            mode: if self.dry_run { Mode::DryRun } else { Mode::Fix },
            settle: self.settle,
        }
    }
}

fn code(text: &str) -> Result<String, String> {
    if let Some(rule) = rule::find(text) {
        return Ok(rule.code().to_string());
    }
    let codes: Vec<&str> = rule::RULES.iter().map(|rule| rule.code()).collect();
    Err(format!("no such rule; there are {} (tailor explain lists them)", codes.join(", ")))
}

fn fail_on(text: &str) -> Result<FailOn, String> {
    match text {
        "note" => Ok(FailOn::Severity(Severity::Note)),
        "warning" => Ok(FailOn::Severity(Severity::Warning)),
        "error" => Ok(FailOn::Severity(Severity::Error)),
        other => code(other)
            .map(FailOn::Code)
            .map_err(|error| format!("neither note, warning or error, and {error}")),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn tool_limit(text: &str) -> Result<(String, u64), String> {
    let (tool, chars) = text.split_once('=').ok_or("not of the form TOOL=CHARS")?;
    Ok((tool.to_string(), chars.parse().map_err(|_| format!("`{chars}` is not a number of characters"))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_sound() {
        Args::command().debug_assert();
    }
}
