//! `tailor scan`: what is wrong.

use super::{Telling, deaf, failed, finish, is_stream, over_files};
use crate::args::Scan;
use crate::report::{FileReport, Judge};
use crate::status::Status;
use keeper::{Options, Outcome, maintain, spool};
use std::io;
use std::path::Path;
use transcript::examine;

pub(crate) fn run(scan: &Scan) -> Status {
    let options = match scan.options() {
        Ok(options) => options,
        Err(error) => return failed(&error),
    };
    let judge = match Judge::new(&scan.shared) {
        Ok(judge) => judge,
        Err(error) => return failed(&error),
    };
    if is_stream(&scan.shared.paths) {
        return stream(scan, &options, &judge);
    }
    over_files(&scan.shared.paths, &Telling::of(&scan.shared.results), |found| {
        match maintain(&found.path, found.root.as_deref(), &options) {
            Ok(outcome) => Some(FileReport::new(&found.path, found.root.is_none(), outcome, &judge)),
            Err(error) => Some(FileReport::failed(&error)),
        }
    })
}

fn stream(scan: &Scan, options: &Options, judge: &Judge<'_>) -> Status {
    let mut printer = match Telling::of(&scan.shared.results).printer() {
        Ok(printer) => printer,
        Err(error) => return failed(&error),
    };
    let mut report = None;
    let spooled = spool(io::stdin().lock(), |source| {
        let outcome = Outcome::looked(examine(source, options.policy.choose(source)?)?, source.len());
        report = Some(FileReport::new(Path::new("-"), true, outcome, judge));
        Ok(())
    });
    let report = match (spooled, report) {
        (Err(error), _) => FileReport::failed(&error),
        (Ok(()), Some(report)) => report,
        (Ok(()), None) => return Status::Error,
    };
    match printer.file(&report) {
        Ok(()) => finish(printer),
        Err(error) => deaf(&printer.name(), &error),
    }
}
