//! `--format json`: one object per line, one for each file and one with totals.

use super::shape::{FilePrinter, ScanTotals};
use crate::report::FileReport;
use crate::terminal::json;
use std::io::{self, Write};

pub(super) struct JsonPrinter;

impl FilePrinter for JsonPrinter {
    fn file(&mut self, report: &FileReport, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", json(&serde_json::to_string(report)?))
    }

    fn finish(&mut self, totals: &ScanTotals, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", serde_json::to_string(totals)?)
    }
}
