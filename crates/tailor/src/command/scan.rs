//! `tailor scan`: reports what is wrong.

use super::{OutputOptions, failed, finish, is_stream, lines, output_closed, over_files, roots};
use crate::args::{FileLayout, ReportFormat, ScanArgs};
use crate::report::{FailPolicy, FileReport};
use crate::status::ExitStatus;
use keeper::{FoundFile, Options, Verdicts, maintain, maintain_stream};
use std::io;
use std::path::Path;
use transcript::Severity;

pub(crate) fn run(scan: &ScanArgs) -> ExitStatus {
    let (options, cache) = match scan.asked() {
        Ok(asked) => asked,
        Err(error) => return failed(&error),
    };
    let judge = match FailPolicy::new(&scan.shared, &options.policy, Severity::Error) {
        Ok(judge) => judge,
        Err(error) => return failed(&error),
    };
    if scan.data_set.lines {
        return lines::run(&scan.data_set, &scan.shared, &judge, false);
    }
    match is_stream(&scan.shared.paths) {
        Ok(false) => {}
        Ok(true) => return stream(scan, &options, &judge),
        Err(error) => return failed(&error),
    }
    // Without an index, all files are read.
    let verdicts =
        cache.and_then(|folder| Verdicts::open(&folder, &options, &roots(&scan.shared.paths)).ok());
    let look = |found: &FoundFile| match &verdicts {
        Some(verdicts) => verdicts.maintain(&found.path, found.root.as_deref(), &options),
        None => maintain(&found.path, found.root.as_deref(), &options),
    };
    // Programs that read other formats want all results.
    let is_overview = scan.shared.paths.is_empty() && scan.shared.results.format() == ReportFormat::Human;
    let layout = if is_overview { FileLayout::Overview } else { FileLayout::Sorted };
    let output = OutputOptions::new(&scan.shared.results, &options.policy).laid_out(layout);
    over_files(&scan.shared.paths, &output, |found| {
        Some(match look(found) {
            Ok(outcome) => FileReport::new(&found.path, found.root.is_none(), outcome, &judge),
            Err(error) => FileReport::failed_at(&found.path, &error),
        })
    })
}

fn stream(scan: &ScanArgs, options: &Options, judge: &FailPolicy<'_>) -> ExitStatus {
    let mut printer = match OutputOptions::new(&scan.shared.results, &options.policy).printer() {
        Ok(printer) => printer,
        Err(error) => return failed(&error),
    };
    let report = match maintain_stream(io::stdin().lock(), options, |_, _| Ok(())) {
        Ok(stream) => FileReport::new(Path::new("-"), true, stream.outcome, judge),
        Err(error) => FileReport::failed(&error),
    };
    match printer.file(report) {
        Ok(()) => finish(printer),
        Err(error) => output_closed(&printer.name(), &error),
    }
}
