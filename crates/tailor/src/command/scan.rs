//! `tailor scan`: what is wrong.

use super::{deaf, failed, is_stream, over_files};
use crate::args::Scan;
use crate::printer::Printer;
use crate::report::FileReport;
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
    if is_stream(&scan.shared.paths) {
        return stream(scan, &options);
    }
    over_files(&scan.shared.paths, scan.shared.format, |found| {
        match maintain(&found.path, found.root.as_deref(), &options) {
            Ok(outcome) => Some(FileReport::new(&found.path, found.root.is_none(), &outcome, &scan.shared)),
            Err(error) => Some(FileReport::failed(&error)),
        }
    })
}

fn stream(scan: &Scan, options: &Options) -> Status {
    let mut printer = Printer::new(scan.shared.format, false);
    let mut report = None;
    let spooled = spool(io::stdin().lock(), |source| {
        let outcome = Outcome::looked(examine(source, options.policy.choose(source)?)?, source.len());
        report = Some(FileReport::new(Path::new("-"), true, &outcome, &scan.shared));
        Ok(())
    });
    let report = match (spooled, report) {
        (Err(error), _) => FileReport::failed(&error),
        (Ok(()), Some(report)) => report,
        (Ok(()), None) => return Status::Error,
    };
    printer.file(&report).and_then(|()| printer.finish()).unwrap_or_else(|error| deaf(&error))
}
