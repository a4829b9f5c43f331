//! Windows: no descriptors, modes or signals of Unix, and no program takes the place of another.

use crate::status::Status;
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

/// Anybody may make a folder below `C:\`, so none is trusted for all users.
pub(crate) const SYSTEM_CONFIG: Option<&str> = None;

/// What the system calls `CREATE_NEW_PROCESS_GROUP`, and a console of its own that is not shown.
const APART: u32 = 0x0000_0200 | 0x0800_0000;

/// How often somebody looks whether Ctrl-C was pressed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// This very program: as long as it runs its file cannot be replaced.
#[cfg(feature = "images")]
pub(crate) fn own_program() -> io::Result<std::path::PathBuf> {
    std::env::current_exe()
}

/// Standard streams have no names here.
pub(crate) fn own_stream(_: &Metadata) -> Option<File> {
    None
}

/// Makes a file that nobody else may read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    keeper::create_private(path)
}

/// The new file keeps its access list, which is for its owner alone.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(crate) fn share_like(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// It was made like that.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(crate) fn make_private(_: &File) -> io::Result<()> {
    Ok(())
}

/// Runs another program, and ends as it does.
#[expect(clippy::exit, reason = "its exit code is ours")]
pub(crate) fn give_way_to(mut program: Command) -> io::Result<Status> {
    let ended = program.status()?;
    exit(ended.code().unwrap_or(Status::Error as i32))
}

/// Lets a program go on when a console is closed or its group is interrupted.
pub(crate) fn set_apart(program: &mut Command) {
    program.creation_flags(APART);
}

/// Listens for Ctrl-C, from now on; does nothing where that is impossible. A second one ends the program at once.
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
pub(crate) fn log_to_journal() -> bool {
    false
}
