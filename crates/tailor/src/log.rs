//! Sends the daemon's log to the journal with all fields, or to standard error.

use crate::args::LogFormat;
use crate::say::{is_quiet, is_verbose};
use crate::terminal::{json, plain};
use std::io::{self, Write, stderr};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry};

/// Starts logging. Errors while writing to standard error are ignored: reporting them there would end the daemon.
pub(crate) fn begin(format: Option<LogFormat>) {
    if format.is_none() && log_to_journal(level()) {
        return;
    }
    let level = level();
    // A second logger cannot be, and there is none before.
    let _ = match format {
        Some(LogFormat::Json) => {
            let layer =
                fmt::layer().json().flatten_event(true).with_target(false).with_writer(|| Escaped(json));
            let layer = layer.log_internal_errors(false);
            registry().with(level).with(layer).try_init()
        }
        Some(LogFormat::Plain) | None => {
            // The message has all that people need; the fields are for programs.
            let message = format::debug_fn(|writer, field, value| {
                if field.name() == "message" { write!(writer, "{value:?}") } else { Ok(()) }
            });
            let layer = fmt::layer().with_ansi(false).with_target(false).fmt_fields(message);
            let layer = layer.with_writer(|| Escaped(plain)).log_internal_errors(false);
            registry().with(level).with(layer).try_init()
        }
    };
}

/// What is worth a line, as far as the user says.
fn level() -> LevelFilter {
    match (is_quiet(), is_verbose()) {
        (true, _) => LevelFilter::WARN,
        (_, true) => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    }
}

/// Logs to the journal with all fields, if that is where standard error goes; `false` if not.
fn log_to_journal(level: LevelFilter) -> bool {
    let is_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let Some(journal) = is_journal.then(tracing_journald::layer).and_then(Result::ok) else { return false };
    let journal = journal.with_field_prefix(Some("TAILOR".to_string()));
    // A second logger cannot be, and there is none before.
    let _ = registry().with(level).with(journal).try_init();
    true
}

/// Standard error for lines of the log, each of which comes in one piece. Nothing in them moves a cursor or misleads, whatever names
/// they hold.
struct Escaped(fn(&str) -> String);

impl Write for Escaped {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line));
        stderr().lock().write_all((self.0(&text) + "\n").as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        stderr().flush()
    }
}
