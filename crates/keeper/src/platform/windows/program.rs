//! What a command-line program needs. There are no Unix descriptors, modes or signals, and a process cannot be replaced.

use signal_hook::consts::SIGINT;
use signal_hook::flag::{register, register_conditional_default};
use std::fs::{File, Metadata};
use std::io;
use std::os::windows::process::CommandExt;
use std::process::{Command, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, sleep};
use std::time::Duration;

/// Anybody may create a folder below `C:\`, so there is no trusted system-wide configuration.
pub const SYSTEM_CONFIG: Option<&str> = None;

/// Signals that end a program which does not listen.
pub const ENDS: &[i32] = &[SIGINT];

/// `CREATE_NEW_PROCESS_GROUP` and `CREATE_NO_WINDOW`.
const APART: u32 = 0x0000_0200 | 0x0800_0000;

/// How often somebody looks whether Ctrl-C was pressed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Standard streams have no names here.
#[must_use]
pub fn own_stream(_: &Metadata) -> Option<File> {
    None
}

/// The new file keeps its access list, which only allows its owner.
///
/// # Errors
///
/// None.
pub fn share_like(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// The file was created private.
///
/// # Errors
///
/// None.
pub fn make_private(_: &File) -> io::Result<()> {
    Ok(())
}

/// Runs another program, and ends with its exit code. Returns only on failure.
#[expect(clippy::exit, reason = "its exit code is ours")]
#[must_use]
pub fn give_way_to(mut program: Command) -> io::Error {
    match program.status() {
        Ok(ended) => exit(ended.code().unwrap_or_default()),
        Err(cause) => cause,
    }
}

/// Keeps a program running when a console is closed or its group is interrupted.
pub fn set_apart(program: &mut Command) {
    program.creation_flags(APART);
}

/// Calls `came` for Ctrl-C; does nothing if that is impossible. A second one ends the program at once.
pub fn on_interrupt(mut came: impl FnMut(i32) + Send + 'static) {
    let pressed = Arc::new(AtomicBool::new(false));
    let registered =
        register_conditional_default(SIGINT, pressed.clone()).and_then(|_| register(SIGINT, pressed.clone()));
    if registered.is_err() {
        return;
    }
    let wait = move || {
        while !pressed.load(Ordering::SeqCst) {
            sleep(LOOK_EVERY);
        }
        came(SIGINT);
    };
    let _ = Builder::new().name("signals".to_string()).spawn(wait);
}
