//! `println`, `print` and `eprintln` of our own. The standard library's panic where nobody reads any more, as behind
//! `| head`; these end quietly: the rest goes nowhere, and the exit code tells. They have the same names, so that no
//! other can be taken by mistake; clippy forbids the standard ones by their long names.

use crate::status::Status;
use crate::terminal::{Screen, plain};
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

/// Something could not be written to standard output.
static LOST: AtomicBool = AtomicBool::new(false);

/// Prints a part of what was asked for. That it cannot be written is said once, unless nobody listens.
pub(crate) fn out(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    let Err(error) = out.write_fmt(text).and_then(|()| out.flush()) else { return };
    if !LOST.swap(true, Ordering::Relaxed) && error.kind() != io::ErrorKind::BrokenPipe {
        eprint_message(&format!("standard output: could not write results: {error}"));
    }
}

/// Prints a line that is not a result. If nobody listens there either, there is nobody to tell.
pub(crate) fn error(text: Arguments<'_>) {
    let mut out = io::stderr().lock();
    let _ = out.write_fmt(text).and_then(|()| out.write_all(b"\n"));
}

/// Says something that is not a result.
pub(crate) fn eprint_message(text: &str) {
    let screen = Screen::of_stderr();
    error(format_args!("{}", screen.fit(&format!("tailor: {}", plain(text)))));
}

/// How the program ends, if what it printed counts as well.
pub(crate) fn exit_status(status: Status) -> Status {
    if LOST.load(Ordering::Relaxed) { status.max(Status::Error) } else { status }
}
