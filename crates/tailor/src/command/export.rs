//! `tailor export`: a session from a database as lines of JSON, as it is stored.

use super::CommandResult;
use crate::args::ExportArgs;

#[cfg(not(feature = "stores"))]
pub(crate) fn run(_: &ExportArgs) -> CommandResult {
    Err(crate::value::not_built_in("stores").into())
}

#[cfg(feature = "stores")]
pub(crate) fn run(asked: &ExportArgs) -> CommandResult {
    use super::output_closed;
    use crate::amount::plural;
    use crate::place::portable_text;
    use crate::say::eprint_message;
    use crate::sessions::{describe_error, no_such_session};
    use crate::status::ExitStatus;
    use keeper::{Stop, is_stored};
    use std::io;

    /// How many rows that could not be read are named.
    const NAMED: usize = 10;

    let path = asked.path.display();
    let export = keeper::export(&asked.path).map_err(|stop| match stop {
        Stop::Failed(error) => describe_error(&asked.path, &error),
        reason => format!("{path}: could not export it: {reason}"),
    })?;
    let export = export.ok_or_else(|| {
        if asked.path.symlink_metadata().is_err() && !is_stored(&asked.path) {
            return no_such_session(&asked.path);
        }
        format!(
            "{path}: could not export it: it is no session in a database that Tailor reads (tailor scan FILE lists \
             those in a database)"
        )
    })?;
    let mut out = Counted { out: io::stdout().lock(), bytes: 0, lines: 0 };
    export.write(&mut out).map_err(|error| output_closed("standard output", &error))?;
    let Counted { bytes, lines, .. } = out;
    if asked.json {
        let path = portable_text(&asked.path);
        let (remarks, lost) = (export.remark.as_slice(), export.lost.as_slice());
        let line = serde_json::to_string(&Exported { path, bytes, lines, remarks, lost });
        eprintln!("{}", line.unwrap_or_default());
        return Ok(if lost.is_empty() { ExitStatus::Clean } else { ExitStatus::Findings });
    }
    if let Some(remark) = &export.remark {
        eprint_message(&format!("{path}: {remark}"));
    }
    if export.lost.is_empty() {
        return Ok(ExitStatus::Clean);
    }
    let lost = plural(export.lost.len() as u64, "row");
    eprint_message(&format!("{path}: {lost} could not be read as the agent would have it:"));
    export.lost.iter().take(NAMED).for_each(|why| eprint_message(&format!("  {why}")));
    Ok(ExitStatus::Findings)
}

/// What `--json` prints to standard error, because standard output is the session's.
#[cfg(feature = "stores")]
#[derive(serde::Serialize)]
#[serde(tag = "type", rename = "export")]
struct Exported<'a> {
    path: String,
    bytes: u64,
    lines: u64,
    remarks: &'a [String],
    lost: &'a [String],
}

/// Counts what is written.
#[cfg(feature = "stores")]
struct Counted<W> {
    out: W,
    bytes: u64,
    lines: u64,
}

#[cfg(feature = "stores")]
impl<W: std::io::Write> std::io::Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.bytes += count as u64;
        self.lines += memchr::memchr_iter(b'\n', &bytes[..count]).count() as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
