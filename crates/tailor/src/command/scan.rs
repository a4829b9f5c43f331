//! `tailor scan`: reports what is wrong.

use super::{
    CommandResult, OutputOptions, accepts, finish, is_stream, lines, output_closed, over_files, roots,
};
use crate::args::{FileLayout, ReportFormat, ScanArgs, ScanInputs};
use crate::report::{FailPolicy, FileReport};
use keeper::{FoundFile, Options, Verdicts, maintain, maintain_stream};
use std::io;
use std::path::Path;
use transcript::Severity;

pub(crate) fn run(scan: &ScanArgs) -> CommandResult {
    if let Some(target) = &scan.target {
        return accepts::run(&scan.shared.paths, target, scan.shared.results.format() == ReportFormat::Json);
    }
    let ScanInputs { options, cache, files } = scan.asked()?;
    let judge = FailPolicy::new(&scan.shared, &options, Severity::Error)?;
    if scan.data_set.lines {
        return lines::run(&scan.data_set, &scan.shared, &judge, false);
    }
    if is_stream(&scan.shared.paths)? {
        return stream(scan, &options, &judge);
    }
    // Without an index, all files are read.
    let verdicts =
        cache.and_then(|folder| Verdicts::open(&folder, &options, &roots(&scan.shared.paths)).ok());
    let look = |found: &FoundFile| {
        let (path, root) = (&found.path, found.root.as_deref());
        match (files.ignores.options(path, &options), &verdicts) {
            // The index is of the options for all files.
            (Some(own), _) => maintain(path, root, &own),
            (None, Some(verdicts)) => verdicts.maintain(path, root, &options),
            (None, None) => maintain(path, root, &options),
        }
    };
    // Programs that read other formats want all results.
    let is_overview = scan.shared.paths.is_empty() && scan.shared.results.format() == ReportFormat::Human;
    let layout = if is_overview { FileLayout::Overview } else { FileLayout::Sorted };
    let output = OutputOptions::new(&scan.shared.results, &options.policy).laid_out(layout);
    over_files(&scan.shared.paths, &files.left_out, &output, |found| {
        Some(match look(found) {
            Ok(outcome) => FileReport::new(&found.path, found.root.is_none(), outcome, &judge),
            Err(error) => FileReport::failed_at(&found.path, &error),
        })
    })
}

fn stream(scan: &ScanArgs, options: &Options, judge: &FailPolicy<'_>) -> CommandResult {
    let mut printer = OutputOptions::new(&scan.shared.results, &options.policy).printer()?;
    let report = match maintain_stream(io::stdin().lock(), options, |_, _| Ok(())) {
        Ok(stream) => FileReport::new(Path::new("-"), true, stream.outcome, judge),
        Err(error) => FileReport::failed(&error),
    };
    printer.file(report).map_err(|error| output_closed(&printer.name(), &error))?;
    finish(printer)
}
