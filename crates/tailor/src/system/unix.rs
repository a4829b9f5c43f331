//! Unix: descriptors, modes, signals, and replacing a process.

use crate::status::ExitStatus;
use keeper::FileId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread::Builder;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt;

/// The system-wide configuration.
pub(crate) const SYSTEM_CONFIG: Option<&str> = Some("/etc/tailor/config.toml");

/// Signals that end a program which does not listen.
#[cfg(feature = "interactive")]
pub(crate) const ENDS: &[i32] = &[signal_hook::consts::SIGHUP, SIGINT, SIGTERM];

/// This very program. Not by its name where that is to be had: that may be another program after an update.
#[cfg(feature = "images")]
pub(crate) fn own_program() -> io::Result<std::path::PathBuf> {
    const RUNNING: &str = "/proc/self/exe";
    if cfg!(target_os = "linux") { Ok(RUNNING.into()) } else { std::env::current_exe() }
}

/// Our standard stream that is this file, however the file was named (`/dev/stdout`). Writing continues at its current
/// position. Replacing the file would lose a log that a shell appends to.
pub(crate) fn own_stream(there: &Metadata) -> Option<File> {
    let streams = [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
    let same = |file: &File| {
        file.metadata().is_ok_and(|own| FileId::from_metadata(&own) == FileId::from_metadata(there))
    };
    streams.into_iter().flatten().map(File::from).find(same)
}

/// Creates a file that only its owner can read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Gives a file created by `create_private` the permissions of the file that it replaces.
pub(crate) fn share_like(file: &File, there: &Metadata) -> io::Result<()> {
    file.set_permissions(there.permissions())
}

/// Makes a file readable only by its owner.
pub(crate) fn make_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Replaces this process by another program. Returns only on failure.
pub(crate) fn give_way_to(mut program: Command) -> io::Result<ExitStatus> {
    Err(program.exec())
}

/// Keeps a program running when a terminal is closed or its process group is interrupted.
pub(crate) fn set_apart(program: &mut Command) {
    program.process_group(0);
}

/// Calls `came` for each signal that asks us to end; does nothing if that is impossible.
pub(crate) fn on_interrupt(mut came: impl FnMut(i32) + Send + 'static) {
    let listen = move || {
        // Signals are only caught once the thread runs. Otherwise they would be lost if no thread can be started.
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
        signals.forever().for_each(&mut came);
    };
    let _ = Builder::new().name("signals".to_string()).spawn(listen);
}

/// Logs to the journal with all fields, if that is where standard error goes; `false` if not.
pub(crate) fn log_to_journal(level: LevelFilter) -> bool {
    let is_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let Some(journal) = is_journal.then(tracing_journald::layer).and_then(Result::ok) else { return false };
    let journal = journal.with_field_prefix(Some("TAILOR".to_string()));
    // A second logger cannot be, and there is none before.
    let _ = registry().with(level).with(journal).try_init();
    true
}
