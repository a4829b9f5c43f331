//! Where the daemon's log goes: to the journal with all its fields, or to standard error.

use crate::args::LogFormat;
use crate::system::log_to_journal;
use std::io::stderr;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry};

/// Begins to log. That nobody reads standard error any more is no error: telling of it there would be the end of the
/// daemon.
pub(crate) fn begin(format: Option<LogFormat>) {
    if format.is_none() && log_to_journal() {
        return;
    }
    // A second logger cannot be, and there is none before.
    let _ = match format {
        Some(LogFormat::Json) => {
            let json = fmt::layer().json().flatten_event(true).with_target(false).with_writer(stderr);
            let json = json.log_internal_errors(false);
            registry().with(LevelFilter::INFO).with(json).try_init()
        }
        Some(LogFormat::Plain) | None => {
            // The message says all that people want to know; the fields are for programs.
            let message = format::debug_fn(|writer, field, value| {
                if field.name() == "message" { write!(writer, "{value:?}") } else { Ok(()) }
            });
            let plain = fmt::layer().with_ansi(false).with_target(false).fmt_fields(message);
            let plain = plain.with_writer(stderr).log_internal_errors(false);
            registry().with(LevelFilter::INFO).with(plain).try_init()
        }
    };
}
