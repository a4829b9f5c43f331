//! Answers for what a system does not have or cannot know, chosen so that nothing is written too early.

/// A thread cannot act as somebody else.
pub(crate) mod acting {
    use crate::base::refusal::Refusal;
    use crate::platform::handle::Handle;
    use crate::platform::metadata::Metadata;
    use std::ffi::OsString;
    use std::io;
    use std::path::Path;

    /// Whether root can act as another user on this system. If not, it leaves that user's files alone.
    pub(crate) const IS_KNOWN: bool = false;

    /// Somebody else.
    #[derive(Clone, Debug)]
    pub(crate) enum Actor {}

    impl Actor {
        pub(crate) fn is_expected(&self) -> bool {
            match *self {}
        }

        pub(crate) fn user(&self) -> u32 {
            match *self {}
        }

        pub(crate) fn act(&self) -> io::Result<Acting> {
            match *self {}
        }
    }

    /// We, always.
    #[must_use]
    pub(crate) struct Acting;

    impl Acting {
        pub(crate) fn nobody_else() -> Self {
            Self
        }

        pub(crate) fn ourselves() -> Self {
            Self
        }
    }

    pub(crate) fn are_root() -> bool {
        false
    }

    pub(crate) fn is_another() -> bool {
        false
    }

    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(crate) fn as_owner(_: &Path, _: bool) -> io::Result<Result<Acting, Refusal>> {
        Ok(Ok(Acting))
    }

    pub(crate) fn may_open(_: &Metadata) -> bool {
        true
    }

    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(crate) fn own_folder(_: &Path) -> io::Result<Option<(Handle, Actor, Vec<OsString>)>> {
        Ok(None)
    }
}

/// The C library decides how memory is had.
pub(crate) mod memory {
    /// Does nothing.
    pub fn give_back() {}

    /// How much memory this process may use is not known.
    pub(crate) fn limit() -> Option<u64> {
        None
    }
}

/// Where the holes of a file are is not known, and bytes are copied one by one.
pub(crate) mod holes {
    use std::fs::File;
    use std::io::{self, ErrorKind};

    pub(crate) fn data_from(_: &File, _: u64) -> Option<u64> {
        None
    }

    pub(crate) fn hole_from(_: &File, _: u64) -> Option<u64> {
        None
    }

    /// # Errors
    ///
    /// Always.
    pub(crate) fn copy_range(_: &File, _: u64, _: &File, _: u64) -> io::Result<u64> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// Mounts are unknown.
pub(crate) mod mounts {
    use crate::base::refusal::Refusal;
    use std::fs::File;
    use std::path::Path;

    pub(crate) fn refusal(_: &Path, _: &File) -> Option<Refusal> {
        None
    }
}

/// Unknown: when a process started, where it works, and which files it has open.
pub(crate) mod process {
    use crate::platform::metadata::Metadata;
    use std::io::{self, ErrorKind};

    pub(crate) fn start(_: u32) -> Option<u64> {
        None
    }

    pub(crate) fn boot_id() -> Option<String> {
        None
    }

    pub(crate) fn pid_namespace() -> Option<u64> {
        None
    }

    pub(crate) fn sees_all() -> bool {
        false
    }

    /// The id of the process that has locked a file.
    pub fn lock_holder(_: &std::fs::File) -> Option<String> {
        None
    }

    pub(crate) fn working_folder(_: u32) -> io::Result<Metadata> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(crate) fn unseen<User>(_: User) -> usize {
        1
    }

    pub(crate) fn is_of<User>(_: u32, _: User) -> bool {
        true
    }
}
