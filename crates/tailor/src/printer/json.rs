//! `--format json`: one object per line, one for each file and one with totals.

use super::shape::{Shape, Totals};
use crate::report::FileReport;
use crate::terminal::json;
use std::io::{self, Write};

pub(super) struct Lines;

impl Shape for Lines {
    fn file(&mut self, report: &FileReport, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", json(&serde_json::to_string(report)?))
    }

    fn finish(&mut self, totals: &Totals, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", serde_json::to_string(totals)?)
    }
}
