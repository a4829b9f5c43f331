//! Windows: no Unix descriptors, modes or signals, and a process cannot be replaced.

use crate::status::ExitStatus;
use signal_hook::consts::SIGINT;
use signal_hook::flag::{register, register_conditional_default};
use std::fs::{File, Metadata};
use std::io;
use std::os::windows::process::CommandExt;
use std::path::Path;
use std::process::{Command, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, sleep};
use std::time::Duration;

/// Anybody may create a folder below `C:\`, so there is no trusted system-wide configuration.
pub(crate) const SYSTEM_CONFIG: Option<&str> = None;

/// `CREATE_NEW_PROCESS_GROUP` and `CREATE_NO_WINDOW`.
const APART: u32 = 0x0000_0200 | 0x0800_0000;

/// Signals that end a program which does not listen.
#[cfg(feature = "interactive")]
pub(crate) const ENDS: &[i32] = &[SIGINT];

/// How often somebody looks whether Ctrl-C was pressed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The path of this program. Its file cannot be replaced while it runs.
#[cfg(feature = "images")]
pub(crate) fn own_program() -> io::Result<std::path::PathBuf> {
    std::env::current_exe()
}

/// Standard streams have no names here.
pub(crate) fn own_stream(_: &Metadata) -> Option<File> {
    None
}

/// Creates a file that only its owner can read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    keeper::create_private(path)
}

/// The new file keeps its access list, which only allows its owner.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(crate) fn share_like(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// The file was created private.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(crate) fn make_private(_: &File) -> io::Result<()> {
    Ok(())
}

/// Runs another program, and returns its status.
#[expect(clippy::exit, reason = "its exit code is ours")]
pub(crate) fn give_way_to(mut program: Command) -> io::Result<ExitStatus> {
    let ended = program.status()?;
    exit(ended.code().unwrap_or(ExitStatus::Error as i32))
}

/// Keeps a program running when a console is closed or its group is interrupted.
pub(crate) fn set_apart(program: &mut Command) {
    program.creation_flags(APART);
}

/// Calls `came` for Ctrl-C; does nothing if that is impossible. A second one ends the program at once.
pub(crate) fn on_interrupt(mut came: impl FnMut(i32) + Send + 'static) {
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

/// There is no journal.
pub(crate) fn log_to_journal(_: tracing_subscriber::filter::LevelFilter) -> bool {
    false
}
