//! `tailor fix`: repairs transcripts.

use super::{
    CommandError, CommandResult, OutputOptions, asked_rules, diff, finish, is_stream, lines, output_closed,
    over_files,
};
use crate::amount::plural;
use crate::args::{FileLayout, FixArgs, FixInputs, ReportFormat};
use crate::output::is_stdout;
use crate::printer::Printer;
use crate::report::{FailPolicy, FileReport};
use crate::say::eprint_message;
use crate::sessions::roots;
use crate::status::ExitStatus;
use keeper::{FoundFile, Mode, Options, Vault, finish_all, has_ended, maintain_shown, maintain_stream};
use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::path::{self, Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use transcript::plan::Plan;
use transcript::{Fault, Severity, Source};

/// How often `--wait` checks whether the program that uses a file is gone. A deferral that names a longer time than
/// `POLL_MAX` waits for that time.
const POLL: Duration = Duration::from_secs(5);
const POLL_MAX: Duration = Duration::from_secs(60);

/// How often to check whether a process is gone.
const BLINK: Duration = Duration::from_millis(200);

pub(crate) fn run(fix: &FixArgs) -> CommandResult {
    let asked = fix.asked()?;
    let judge = FailPolicy::new(&fix.shared, &asked.options, Severity::Warning)?;
    if fix.data_set.lines {
        return lines::run(&fix.data_set, &fix.shared, &judge, !fix.dry_run);
    }
    if is_stream(&fix.shared.paths)? {
        return stream(fix, &asked.options, &judge);
    }
    if let Some(path) = fix.shared.results.output.as_ref().filter(|path| wants_copy(fix, path)) {
        return Err(format!(
            "nothing was changed: --output is for the report, and {} looks like a session; --copy-to DIR writes repaired copies",
            path.display()
        )
        .into());
    }
    let asks = fix.shared.paths.is_empty() && !(fix.all || fix.dry_run || fix.copy_to.is_some());
    let wanted = if asks { ask(fix, &asked, &judge)? } else { Wanted::All };
    let until = fix.wait.and_then(|wait| Instant::now().checked_add(wait));
    if let Some(pid) = fix.after.filter(|pid| !ends(*pid, until)) {
        return Err(format!("nothing was changed: process {pid} has not ended").into());
    }
    if let Some(vault) =
        asked.options.vault.as_ref().filter(|_| asked.options.mode == Mode::Fix && fix.copy_to.is_none())
    {
        settle(&fix.shared.paths, vault);
    }
    let output = OutputOptions::new(&fix.shared.results, &asked.options.policy);
    let repair = fixing(fix, &asked, &judge, until);
    let status = over_files(&fix.shared.paths, &asked.files.left_out, &output, |found| {
        if wanted.holds(&found.path) { repair(found) } else { None }
    })?;
    if let Some(Err(error)) = asked.options.vault.as_ref().map(|vault| vault.gc_if_due(asked.keep)) {
        eprint_message(&error.to_string());
    }
    Ok(status)
}

/// Which sessions are to be repaired.
enum Wanted {
    All,
    These(HashSet<PathBuf>),
}

impl Wanted {
    fn holds(&self, path: &Path) -> bool {
        match self {
            Self::All => true,
            Self::These(paths) => paths.contains(path),
        }
    }
}

/// Whether somebody seems to take `--output` for the place of the repaired session. A report for people is no such file.
fn wants_copy(fix: &FixArgs, output: &Path) -> bool {
    output.extension().is_some_and(|end| end == "jsonl") && fix.shared.results.format() == ReportFormat::Human
}

/// Lists what a repair of all known sessions would change, and asks which of them to repair. It is an error if it is none.
fn ask(fix: &FixArgs, asked: &FixInputs, judge: &FailPolicy<'_>) -> Result<Wanted, CommandError> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(CommandError::from(
            "no PATH: this would repair the sessions of all agents. Name files or folders, or pass --all; \
             `tailor fix --dry-run` shows what would change",
        ));
    }
    let (sessions, broken) = (AtomicUsize::new(0), Mutex::new(HashSet::new()));
    let options = Options { mode: Mode::DryRun, ..asked.options.clone() };
    let dry = FixInputs { options, ..asked.clone() };
    let output =
        OutputOptions::new(&fix.shared.results, &asked.options.policy).laid_out(FileLayout::Question);
    let look = fixing(fix, &dry, judge, None);
    let status = over_files(&[], &asked.files.left_out, &output, |found| {
        let report = look(found)?;
        let would_fix = report.outcome == "would-fix";
        let is_broken = report.findings().iter().any(|finding| finding.severity == Severity::Error);
        sessions.fetch_add(usize::from(would_fix), Ordering::Relaxed);
        if would_fix && is_broken {
            broken.lock().unwrap_or_else(PoisonError::into_inner).insert(found.path.clone());
        }
        Some(report)
    })?;
    let sessions = sessions.into_inner();
    if sessions == 0 {
        return Err(CommandError::Told(status));
    }
    let broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
    match answer_to(&question(sessions, broken.len())).as_str() {
        "b" | "broken" => Ok(Wanted::These(broken)),
        "y" | "yes" | "a" | "all" => Ok(Wanted::All),
        _ => {
            eprint_message("nothing was changed");
            Err(CommandError::Told(ExitStatus::Findings))
        }
    }
}

/// Asks which sessions to repair, some or all of them if only some are broken.
fn question(sessions: usize, broken: usize) -> String {
    if broken == 0 || broken == sessions {
        let sessions = plural(sessions as u64, "session");
        return format!("Repair {sessions} ({broken} broken) in place? Each can be undone. [y/N] ");
    }
    format!("Repair in place [b] the {broken} broken, [a] all {sessions}, [N] none? Each can be undone. ")
}

/// What is typed after a question, in small letters; empty if nothing can be read.
fn answer_to(question: &str) -> String {
    let mut answer = String::new();
    let read = io::stderr().write_all(question.as_bytes()).and_then(|()| io::stdin().read_line(&mut answer));
    if read.is_ok() { answer.trim().to_lowercase() } else { String::new() }
}

/// Finishes interrupted runs. Errors are reported and do not stop anything.
fn settle(paths: &[PathBuf], vault: &Vault) {
    for error in roots(paths).iter().flat_map(|path| finish_all(path, vault)) {
        eprint_message(&error.to_string());
    }
}

/// Waits for the end of a process. Returns whether it ended in time.
fn ends(pid: u32, until: Option<Instant>) -> bool {
    while until.is_none_or(|until| Instant::now() < until) {
        if has_ended(pid) {
            return true;
        }
        sleep(BLINK);
    }
    false
}

/// Repairs a file. Retries it as long as it is deferred, until this time.
fn fixing(
    fix: &FixArgs,
    asked: &FixInputs,
    judge: &FailPolicy<'_>,
    until: Option<Instant>,
) -> impl Fn(&FoundFile) -> Option<FileReport> + Sync {
    move |found| {
        let own = asked.files.ignores.options(&found.path, &asked.options);
        let options = own.as_ref().unwrap_or(&asked.options);
        let copying = fix
            .copy_to
            .as_ref()
            .map(|out| Options { mode: Mode::CopyTo(copy_path(out, fix, found)), ..options.clone() });
        let options = copying.as_ref().unwrap_or(options);
        let copy = match &options.mode {
            Mode::CopyTo(copy) => Some(copy.as_path()),
            _ => None,
        };
        let show = |source: &dyn Source, plan: &Plan| changes(fix, &found.path, source, plan);
        loop {
            let report = match maintain_shown(&found.path, found.root.as_deref(), options, show) {
                Ok((outcome, changes)) => {
                    let diff = changes.filter(|_| !outcome.plan.is_empty()).unwrap_or_default();
                    FileReport::new(&found.path, found.root.is_none(), outcome, judge)
                        .with_diff(diff)
                        .in_copy(copy)
                }
                Err(error) => FileReport::failed_at(&found.path, &error),
            };
            let left = until.map(|until| until.saturating_duration_since(Instant::now())).unwrap_or_default();
            match report.retry_after() {
                Some(after) if !left.is_zero() && (after <= left || after <= POLL_MAX) => {
                    sleep(after.min(POLL).min(left));
                }
                _ => return Some(report),
            }
        }
    }
}

/// The lines of `--diff`, if it is given.
fn changes(fix: &FixArgs, path: &Path, source: &dyn Source, plan: &Plan) -> Result<Vec<String>, Fault> {
    if fix.diff { diff::describe(path, source, plan, fix.show_content) } else { Ok(Vec::new()) }
}

/// The path of a file's copy: its path below the folder that the user named. If there are several folders, the whole
/// path is kept, because each may hold a file of the same name.
fn copy_path(out: &Path, fix: &FixArgs, found: &FoundFile) -> PathBuf {
    if fix.shared.paths.len() != 1 {
        let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_));
        let named = found.path.components().any(|part| part == Component::ParentDir);
        let whole = if named { path::absolute(&found.path).unwrap_or_default() } else { found.path.clone() };
        return out.join(whole.components().filter(is_name).collect::<PathBuf>());
    }
    let below = found.root.as_ref().and_then(|root| found.path.strip_prefix(root).ok());
    out.join(below.unwrap_or_else(|| Path::new(found.path.file_name().unwrap_or_default())))
}

/// Repairs standard input to standard output; messages go to standard error.
fn stream(fix: &FixArgs, options: &Options, judge: &FailPolicy<'_>) -> CommandResult {
    let results = &fix.shared.results;
    let printer = match &results.output {
        Some(file) if is_stdout(file) => {
            Err("-: could not write results: standard output carries the transcript, \
                                              and results go to standard error (leave out -o, or name a file)"
                .to_string())
        }
        Some(file) => Printer::to_file(results.format(), results.listing.clone(), file),
        None => Ok(Printer::beside_a_transcript(results.format(), results.listing.clone())),
    };
    let mut printer = printer?.by(asked_rules(&options.policy));
    let show = |source: &dyn Source, plan: &Plan| changes(fix, Path::new("-"), source, plan);
    let done = match maintain_stream(io::stdin().lock(), options, show) {
        Ok(mut stream) => {
            let diff = stream.shown.take().unwrap_or_default();
            let written = if fix.dry_run { Ok(()) } else { stream.write(io::stdout().lock()) };
            let report = FileReport::new(Path::new("-"), true, stream.outcome, judge).with_diff(diff);
            written.and_then(|()| printer.file(report))
        }
        Err(error) => printer.file(FileReport::failed(&error)),
    };
    done.map_err(|error| output_closed("standard output", &error))?;
    finish(printer)
}
