//! `--lines` of `scan` and `fix`: a data set as it flows by, each line a session of its own. Memory holds a few megabytes of
//! lines, however many there are.

use super::{failed, output_closed};
use crate::amount::{grouped, plural};
use crate::args::{DataSet, Shared};
use crate::output::Output;
use crate::packing::{Packed, Packing};
use crate::report::{FailPolicy, FindingReport};
use crate::say::hint;
use crate::status::Status;
use crate::terminal::json;
use rayon::prelude::*;
use serde::Serialize;
use std::io::{self, Read, Write};
use std::path::Path;
use transcript::row::{self, Outcome, Row};
use transcript::{Policy, scan};

/// How many bytes of lines are worked on at a time. A longer line is held whole.
const BLOCK_BYTES: usize = 8 << 20;

/// One line of `--findings`. Its columns are those of the Python module, and more.
#[derive(Serialize)]
struct FindingLine<'a> {
    row: u64,
    #[serde(flatten)]
    finding: &'a FindingReport,
}

/// A line that is no session.
#[derive(Serialize)]
struct NoSession<'a> {
    row: u64,
    code: Option<&'a str>,
    severity: &'a str,
    message: &'a str,
    fix: &'a str,
}

/// Where everything goes.
struct Outlets {
    /// The lines; `scan` passes none on.
    lines: Option<Packed<Output>>,
    quarantine: Option<Packed<Output>>,
    findings: Option<Packed<Output>>,
}

/// What went through.
#[derive(Default)]
struct Counts {
    rows: u64,
    fixed: u64,
    unreadable: u64,
    failing: u64,
    quarantined: u64,
}

/// Works on standard input until it ends.
pub(super) fn run(asked: &DataSet, shared: &Shared, judge: &FailPolicy<'_>, repairs: bool) -> Status {
    if shared.paths != [Path::new("-")] {
        return failed(&"--lines reads standard input: pass `-` as the only PATH");
    }
    let done = Packing::unpack(io::stdin().lock()).map_err(|error| format!("standard input: {error}"));
    let done = done.and_then(|(packing, stream)| {
        let outlets = Outlets::open(asked, packing, repairs)?;
        Flow { judge, repairs, outlets, counts: Counts::default() }.run(stream)
    });
    match done {
        Ok(counts) => counts.tell(repairs),
        Err(error) if error.is_empty() => output_closed("standard output", &io::ErrorKind::BrokenPipe.into()),
        Err(error) => failed(&error),
    }
}

impl Outlets {
    fn open(asked: &DataSet, packing: Packing, repairs: bool) -> Result<Self, String> {
        let told = |path: &Path, error: io::Error| format!("{}: could not write: {error}", path.display());
        let file = |path: &Path| {
            let out = Output::to_file(path).map_err(|error| told(path, error))?;
            Packing::of_name(path).pack(out).map_err(|error| told(path, error))
        };
        let stdout = |packing: Packing| packing.pack(Output::stdout()).map_err(|error| error.to_string());
        let findings = match &asked.findings {
            None if !repairs => Some(stdout(Packing::Plain)?),
            path => path.as_deref().map(file).transpose()?,
        };
        let lines = repairs.then(|| stdout(packing)).transpose()?;
        Ok(Self { lines, quarantine: asked.quarantine.as_deref().map(file).transpose()?, findings })
    }

    fn finish(self) -> io::Result<()> {
        let all = [self.findings, self.quarantine, self.lines];
        all.into_iter().flatten().try_for_each(|out| out.finish()?.finish())
    }
}

struct Flow<'a> {
    judge: &'a FailPolicy<'a>,
    repairs: bool,
    outlets: Outlets,
    counts: Counts,
}

impl Flow<'_> {
    /// An error is what is to be said; empty if nobody reads on.
    fn run(mut self, mut stream: impl Read) -> Result<Counts, String> {
        let mut policy = None;
        let (mut held, mut ended) = (Vec::new(), false);
        while !ended {
            let wanted = held.len() + BLOCK_BYTES;
            let more = stream.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut held);
            more.map_err(|error| format!("standard input: could not read it: {error}"))?;
            ended = held.len() < wanted;
            let whole = match memchr::memrchr(b'\n', &held) {
                _ if ended => held.len(),
                Some(at) => at + 1,
                None => continue,
            };
            let policy = policy.get_or_insert_with(|| self.policy(&held[..whole]));
            self.block(&held[..whole], policy).map_err(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => String::new(),
                _ => format!("could not write: {error}"),
            })?;
            held.drain(..whole);
        }
        self.outlets.finish().map_err(|error| format!("could not write: {error}"))?;
        Ok(self.counts)
    }

    /// What is asked for, and the format of the first lines for all: a damaged one does not say it.
    fn policy(&self, first: &[u8]) -> Policy {
        let format = scan::detect(&first).ok().flatten().map(|format| format.name);
        Policy { format, ..Policy::clone(self.judge.policies.all()) }
    }

    fn block(&mut self, text: &[u8], policy: &Policy) -> io::Result<()> {
        let lines = lines_of(text);
        let repairs = self.repairs;
        let one = |line: &&[u8]| {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            match text.trim_ascii().is_empty() {
                true => Row::left(Outcome::Clean, None, Vec::new()),
                false if repairs => row::repair(text, policy),
                false => row::check(text, policy).map_or_else(
                    |why| Row::left(Outcome::Unreadable, Some(why), Vec::new()),
                    |findings| Row::left(Outcome::Findings, None, findings),
                ),
            }
        };
        let rows: Vec<Row> = lines.par_iter().map(one).collect();
        lines.into_iter().zip(rows).try_for_each(|(line, row)| self.pass_on(line, row))
    }

    fn pass_on(&mut self, line: &[u8], row: Row) -> io::Result<()> {
        let Self { judge, outlets, counts, .. } = self;
        let number = counts.rows;
        let is_unreadable = row.outcome == Outcome::Unreadable;
        let fails = |finding| judge.shared.fails(finding, judge.fails_by_default);
        let is_bad = is_unreadable || row.remaining().iter().any(fails);
        let out = match &mut outlets.quarantine {
            Some(quarantine) if is_bad => {
                counts.quarantined += 1;
                quarantine.write_all(line)?;
                None
            }
            _ => outlets.lines.as_mut(),
        };
        if let Some(out) = out {
            match &row.text {
                Some(text) => {
                    out.write_all(text)?;
                    out.write_all(if line.ends_with(b"\n") { b"\n" } else { b"" })?;
                }
                None => out.write_all(line)?,
            }
        }
        counts.rows += 1;
        counts.fixed += u64::from(row.outcome == Outcome::Fixed);
        counts.unreadable += u64::from(is_unreadable);
        counts.failing += u64::from(is_bad);
        let Some(out) = &mut outlets.findings else { return Ok(()) };
        if let Some(message) = row.reason.as_deref().filter(|_| is_unreadable && row.findings.is_empty()) {
            let told = NoSession { row: number, code: None, severity: "error", message, fix: "none" };
            writeln!(out, "{}", json(&serde_json::to_string(&told)?))?;
        }
        for finding in row.findings {
            let finding = FindingReport::new(Path::new("-"), finding);
            let told = FindingLine { row: number, finding: &finding };
            writeln!(out, "{}", json(&serde_json::to_string(&told)?))?;
        }
        Ok(())
    }
}

/// The lines of a text, each with its end.
fn lines_of(text: &[u8]) -> Vec<&[u8]> {
    let (mut lines, mut start) = (Vec::new(), 0);
    for end in memchr::memchr_iter(b'\n', text).map(|at| at + 1) {
        lines.push(&text[start..end]);
        start = end;
    }
    lines.extend(Some(&text[start..]).filter(|rest| !rest.is_empty()));
    lines
}

impl Counts {
    /// Says it on standard error, and makes the exit code: by what was passed on, or else by what was found.
    fn tell(&self, repairs: bool) -> Status {
        let Self { rows, fixed, unreadable, failing, quarantined } = *self;
        let mut told = vec![plural(rows, "row")];
        let remain = "with problems that remain";
        let numbers =
            [(fixed, "fixed"), (unreadable, "unreadable"), (failing, remain), (quarantined, "quarantined")];
        told.extend(
            numbers
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{} {what}", grouped(*count))),
        );
        hint(&told.join(", "));
        let left = if repairs { failing - quarantined } else { failing };
        if left > 0 { Status::Findings } else { Status::Clean }
    }
}
