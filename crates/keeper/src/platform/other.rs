//! Every other Unix, macOS among them: what POSIX has. There are no leases, names are not exchanged, and `ps` says which programs run.

pub(crate) use super::nothing::{acting, holes, memory, mounts};

/// This system.
pub(crate) struct This;

impl super::system::System for This {
    fn sync(file: &std::fs::File) -> std::io::Result<()> {
        super::writing::sync(file)
    }
}

/// Temporary files have a name, and names are exchanged in two steps.
pub(crate) mod files {
    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io::{self, ErrorKind};
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// How a file or folder is opened to find out what it is.
    pub(crate) const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

    pub(crate) fn create_unnamed(_: &File) -> io::Result<File> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(crate) fn name_it(_: &File, _: &File, _: &OsStr) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(crate) fn temporary_folder() -> std::path::PathBuf {
        std::env::temp_dir()
    }

    pub(crate) fn temporary() -> io::Result<File> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (pid, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!(".tailor-{pid}-{count}"));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?.into();
        std::fs::remove_file(path)?;
        Ok(file)
    }

    pub(crate) fn open_folder(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty())
    }

    pub(crate) fn give_back_memory(_: &File) {}

    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(crate) fn copy_flags(_: &File, _: &File) -> io::Result<()> {
        Ok(())
    }
}

/// Network file systems are not recognised. There are no leases that could deceive us.
pub(crate) mod network {
    use std::fs::File;
    use std::path::Path;

    /// The kind of network file system of a file or folder; always `None`, because it is unknown.
    pub fn network(_: &Path) -> Option<&'static str> {
        None
    }

    pub(crate) fn holds(_: &File) -> bool {
        false
    }
}

/// A process is alive unless there is none to send a signal to.
pub(crate) mod process {
    pub use crate::platform::nothing::process::lock_holder;
    pub(crate) use crate::platform::nothing::process::{
        boot_id, is_of, pid_namespace, sees_all, start, unseen, working_folder,
    };
    use crate::platform::seen::{ListedProcess, ProcessState};
    pub(crate) use crate::platform::unix::ps::listed;
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    pub(crate) fn life(pid: u32, _: Option<u64>) -> ProcessState {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let there = number.is_some_and(|number| test_kill_process(number) != Err(Errno::SRCH));
        if there { ProcessState::Alive } else { ProcessState::Dead }
    }

    pub(crate) fn all() -> impl Iterator<Item = u32> {
        listed().into_iter().map(|process| process.pid)
    }

    /// The name of its program.
    pub(crate) fn name(pid: u32) -> String {
        ListedProcess::name(&listed(), pid)
    }

    pub(crate) fn ancestors(pid: u32) -> Vec<u32> {
        ListedProcess::ancestors(&listed(), pid)
    }
}
