//! What a command-line program needs: its streams, signals, modes of files, and other programs.

use crate::platform::identity::FileId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::Builder;

/// The system-wide configuration.
pub const SYSTEM_CONFIG: Option<&str> = Some("/etc/tailor/config.toml");

/// Signals that end a program which does not listen.
pub const ENDS: &[i32] = &[SIGHUP, SIGINT, SIGTERM];

/// Our standard stream that is this file, however the file was named (`/dev/stdout`). Writing continues at its current
/// position. Replacing the file would lose a log that a shell appends to.
#[must_use]
pub fn own_stream(there: &Metadata) -> Option<File> {
    let streams = [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
    let same = |file: &File| {
        file.metadata().is_ok_and(|own| FileId::from_metadata(&own) == FileId::from_metadata(there))
    };
    streams.into_iter().flatten().map(File::from).find(same)
}

/// Gives a file that only its owner can read the permissions of the file that it replaces.
///
/// # Errors
///
/// Those of the system.
pub fn share_like(file: &File, there: &Metadata) -> io::Result<()> {
    file.set_permissions(there.permissions())
}

/// Makes a file readable only by its owner.
///
/// # Errors
///
/// Those of the system.
pub fn make_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Replaces this process by another program. Returns only on failure.
#[must_use]
pub fn give_way_to(mut program: Command) -> io::Error {
    program.exec()
}

/// Keeps a program running when a terminal is closed or its process group is interrupted.
pub fn set_apart(program: &mut Command) {
    program.process_group(0);
}

/// Calls `came` for each signal that asks us to end; does nothing if that is impossible.
pub fn on_interrupt(mut came: impl FnMut(i32) + Send + 'static) {
    let listen = move || {
        // Signals are only caught once the thread runs. Otherwise they would be lost if no thread can be started.
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
        signals.forever().for_each(&mut came);
    };
    let _ = Builder::new().name("signals".to_string()).spawn(listen);
}
