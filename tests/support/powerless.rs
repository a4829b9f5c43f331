//! The program without root's rights.

use super::Dir;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

impl Dir {
    /// The program as a user who is bound by permissions: root becomes nobody, who can reach all files here.
    pub(crate) fn powerless(&self) -> Command {
        self.powerless_under(&[])
    }

    /// The same, started by another program (`prlimit`) with these arguments.
    pub(crate) fn powerless_under(&self, starter: &[&str]) -> Command {
        let start = |program: &Path| match starter.split_first() {
            None => self.command_of(program),
            Some((starter, arguments)) => {
                let mut command = self.command_of(starter);
                command.env("PATH", "/usr/bin:/bin").args(arguments).arg(program);
                command
            }
        };
        if !is_root() {
            return start(Path::new(env!("CARGO_BIN_EXE_tailor")));
        }
        let program = self.temporary.path().join("tailor");
        // Another process copies the program. If this process held the copy open for writing, a child that another test
        // starts could inherit the descriptor, and then the copy could not be run ("text file busy").
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_tailor")).arg(&program).status().unwrap();
        assert!(copied.success());
        let open = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        open(self.temporary.path(), 0o755);
        open(&program, 0o755);
        open(&self.temporary.path().join("tmp"), 0o777);
        open(&self.home(), 0o777);
        let mut command = start(&program);
        command.uid(NOBODY).gid(NOBODY);
        command
    }
}

impl Dir {
    /// Gives the folder of files and all that is in it to a user, as root.
    pub(crate) fn give_files_to(&self, user: u32, group: u32) {
        fs::set_permissions(self.temporary.path(), Permissions::from_mode(0o755)).unwrap();
        for name in self.names().iter().map(|name| self.path(name)).chain([self.files()]) {
            for path in name.ancestors().take_while(|path| path.starts_with(self.files())) {
                lchown(path, Some(user), Some(group)).unwrap();
            }
        }
    }
}

/// Gives a file to the user of [`Dir::powerless`].
pub(crate) fn give_to_powerless(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

/// The id of a user without rights.
pub(crate) const NOBODY: u32 = 65534;

/// Whether no permission binds us.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
