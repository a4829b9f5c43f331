//! `tailor fix`: what is wrong, mended.

use super::{Telling, asked_rules, deaf, diff, failed, finish, is_stream, over_files};
use crate::args::Fix;
use crate::output::is_stdout;
use crate::printer::Printer;
use crate::report::{FileReport, Judge};
use crate::say::talk;
use crate::status::Status;
use keeper::{
    Ending, Found, Mode, Options, Outcome, Refusal, Vault, known_roots, maintain_shown, settle_all, spool,
};
use std::cell::RefCell;
use std::io::{self, BufWriter, Write};
use std::path::{self, Component, Path, PathBuf};
use transcript::plan::Plan;
use transcript::{Mended, Rendered, Repair, Source, Span, mend};

pub(crate) fn run(fix: &Fix) -> Status {
    let asked = match fix.asked() {
        Ok(asked) => asked,
        Err(error) => return failed(&error),
    };
    let judge = match Judge::new(&fix.shared, &asked.options.policy) {
        Ok(judge) => judge,
        Err(error) => return failed(&error),
    };
    match is_stream(&fix.shared.paths) {
        Ok(false) => {}
        Ok(true) => return stream(fix, &asked.options, &judge),
        Err(error) => return failed(&error),
    }
    if let Some(vault) =
        asked.options.vault.as_ref().filter(|_| asked.options.mode == Mode::Fix && fix.out.is_none())
    {
        settle(&fix.shared.paths, vault);
    }
    let telling = Telling::of(&fix.shared.results, &asked.options.policy);
    let status =
        over_files(&fix.shared.paths, &telling, |found| Some(one(fix, &asked.options, &judge, found)));
    if let Some(Err(error)) = asked.options.vault.map(|vault| vault.gc_if_due(asked.keep)) {
        talk(&error.to_string());
    }
    status
}

/// Finishes what interrupted runs left. What cannot be finished is reported and stops nothing.
fn settle(paths: &[PathBuf], vault: &Vault) {
    let roots = if paths.is_empty() { known_roots() } else { paths.to_vec() };
    for error in roots.iter().flat_map(|path| settle_all(path, vault)) {
        talk(&error.to_string());
    }
}

fn one(fix: &Fix, options: &Options, judge: &Judge<'_>, found: &Found) -> FileReport {
    let copying = fix
        .out
        .as_ref()
        .map(|out| Options { mode: Mode::CopyTo(copy_path(out, fix, found)), ..options.clone() });
    let changes = RefCell::new(Vec::new());
    let show = |source: &dyn Source, plan: &Plan| {
        if fix.diff {
            changes.replace(diff::describe(&found.path, source, plan, fix.show_content)?);
        }
        Ok(())
    };
    match maintain_shown(&found.path, found.root.as_deref(), copying.as_ref().unwrap_or(options), &show) {
        Ok(outcome) => {
            let is_changed = !outcome.plan.is_empty();
            let mut report = FileReport::new(&found.path, found.root.is_none(), outcome, judge);
            report.diff = if is_changed { changes.into_inner() } else { Vec::new() };
            report
        }
        Err(error) => FileReport::failed_at(&found.path, &error),
    }
}

/// Where in the folder of copies a file goes: where it lies below the folder that was asked for. Of several folders the
/// whole path is kept, because each may hold a file of the same name.
fn copy_path(out: &Path, fix: &Fix, found: &Found) -> PathBuf {
    if fix.shared.paths.len() != 1 {
        let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_));
        let named = found.path.components().any(|part| part == Component::ParentDir);
        let whole = if named { path::absolute(&found.path).unwrap_or_default() } else { found.path.clone() };
        return out.join(whole.components().filter(is_name).collect::<PathBuf>());
    }
    let below = found.root.as_ref().and_then(|root| found.path.strip_prefix(root).ok());
    out.join(below.unwrap_or_else(|| Path::new(found.path.file_name().unwrap_or_default())))
}

/// Standard input to standard output; what is said about it goes to standard error.
fn stream(fix: &Fix, options: &Options, judge: &Judge<'_>) -> Status {
    let results = &fix.shared.results;
    let printer = match &results.output {
        Some(file) if is_stdout(file) => {
            Err("-: could not write results: standard output carries the transcript, \
                                              and results go to standard error (leave out -o, or name a file)"
                .to_string())
        }
        Some(file) => Printer::to_file(results.format, file),
        None => Ok(Printer::beside_a_transcript(results.format)),
    };
    let mut printer = match printer {
        Ok(printer) => printer.by(asked_rules(&options.policy)),
        Err(error) => return failed(&error),
    };
    let mut mended = BufWriter::new(io::stdout().lock());
    let mut done: io::Result<()> = Ok(());
    let spooled = spool(io::stdin().lock(), |source| {
        let Mended { before, repair } = mend(source, options.policy.choose(source)?)?;
        let mut outcome =
            if source.is_empty() { Outcome::empty() } else { Outcome::looked(before, source.len()) };
        let plan = match repair {
            Ok(Repair { plan, after }) => {
                if !plan.is_empty() {
                    (outcome.ending, outcome.after, outcome.bytes_after) =
                        (Ending::Fixed, after, plan.length_after());
                }
                plan
            }
            Err(worse) => {
                outcome.ending = Ending::Refused(Refusal::Worse(worse));
                Plan::unchanged(source.len())
            }
        };
        if let Some(vault) = options.vault.as_ref().filter(|_| !plan.texts().is_empty()) {
            match vault.keep_stream(source, &plan, options.policy.all().spill.as_ref())? {
                Ok(run) => outcome.run = Some(run.name().to_string()),
                Err(error) => {
                    done = printer.file(&FileReport::failed(&error));
                    return Ok(());
                }
            }
        }
        let mut report = FileReport::new(Path::new("-"), true, outcome, judge);
        if fix.diff {
            report.diff = diff::describe(Path::new("-"), source, &plan, fix.show_content)?;
        }
        let rendered = Rendered::new(source, &plan);
        if !fix.dry_run {
            rendered.pieces(Span::new(0, rendered.len()), &mut |bytes| {
                done = mended.write_all(bytes);
                done.is_ok()
            })?;
        }
        if done.is_ok() {
            done = mended.flush().and_then(|()| printer.file(&report));
        }
        Ok(())
    });
    if let Err(error) = spooled {
        done = done.and_then(|()| printer.file(&FileReport::failed(&error)));
    }
    match done {
        Ok(()) => finish(printer),
        Err(error) => deaf("standard output", &error),
    }
}
