//! Replaces `println`, `print` and `eprintln`. The standard ones panic when the reader has gone, as in `| head`. With
//! these, the rest of the output is dropped, and the exit code reports it. They have the same names so that nobody uses
//! the standard ones by mistake; clippy forbids those by their full paths.

use crate::status::ExitStatus;
use crate::terminal::{Screen, json, plain};
use anstream::ColorChoice;
use serde::Serialize;
use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

macro_rules! print {
    ($($text:tt)*) => {
        $crate::say::out(format_args!($($text)*))
    };
}

macro_rules! println {
    () => {
        $crate::say::out(format_args!("\n"))
    };
    ($($text:tt)*) => {
        $crate::say::out(format_args!("{}\n", format_args!($($text)*)))
    };
}

macro_rules! eprintln {
    ($($text:tt)*) => {
        $crate::say::error(format_args!($($text)*))
    };
}

/// Whether writing to standard output has failed.
static LOST: AtomicBool = AtomicBool::new(false);

/// Nobody wants to hear more than is asked for.
static QUIET: AtomicBool = AtomicBool::new(false);
/// Somebody wants to hear all of it.
static VERBOSE: AtomicBool = AtomicBool::new(false);

/// Takes note of how to speak, before anything is said.
pub(crate) fn begin(quiet: bool, verbose: bool, color: clap::ColorChoice) {
    QUIET.store(quiet, Ordering::Relaxed);
    VERBOSE.store(verbose, Ordering::Relaxed);
    let choice = match color {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    };
    choice.write_global();
}

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

pub(crate) fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// Prints a part of what was asked for. That it cannot be written is said once, unless nobody listens.
pub(crate) fn out(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    let Err(error) = out.write_fmt(text).and_then(|()| out.flush()) else { return };
    if !LOST.swap(true, Ordering::Relaxed) && error.kind() != io::ErrorKind::BrokenPipe {
        eprint_message(&format!("standard output: could not write results: {error}"));
    }
}

/// Prints a line to standard error. Failures are ignored, because there is nowhere to report them.
pub(crate) fn error(text: Arguments<'_>) {
    let mut out = io::stderr().lock();
    let _ = out.write_fmt(text).and_then(|()| out.write_all(b"\n"));
}

/// Prints a message to standard error.
pub(crate) fn eprint_message(text: &str) {
    let screen = Screen::of_stderr();
    error(format_args!("{}", screen.fit(&format!("tailor: {}", plain(text)))));
}

/// Says what only helps: what to do next, how it goes.
pub(crate) fn hint(text: &str) {
    if !is_quiet() {
        eprint_message(text);
    }
}

/// Prints an object of `--json`.
pub(crate) fn print_json(line: &impl Serialize) -> ExitStatus {
    match serde_json::to_string(line) {
        Ok(line) => {
            println!("{}", json(&line));
            ExitStatus::Clean
        }
        Err(cause) => {
            eprint_message(&format!("standard output: could not write results: {cause}"));
            ExitStatus::Error
        }
    }
}

/// How the program ends, if what it printed counts as well.
pub(crate) fn exit_status(status: ExitStatus) -> ExitStatus {
    if LOST.load(Ordering::Relaxed) { status.max(ExitStatus::Error) } else { status }
}
