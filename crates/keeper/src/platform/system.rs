//! What a system does for a file that is replaced while other programs write to it. Each system implements [`System`] for its
//! `This`, so that the compiler holds all of them to the same calls. The defaults are the answers of a system that has
//! nothing of the kind.

use super::handle::Handle;
use super::seen::Holder;
use crate::platform::identity::FileId;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

/// What a lease keeps out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseKind {
    /// Programs that open the file for writing.
    Read,
    /// Programs that open the file at all.
    Write,
    /// Nobody: the lease is given back.
    None,
}

/// The calls in which systems differ most, and on which the guarantee for the lines of others rests.
pub(crate) trait System {
    /// Keeps writers out: takes a lease on an open file, or gives it back.
    fn lease(_: &File, _: LeaseKind) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Whether we have a lease that nobody waits for.
    fn has_lease(_: &File) -> bool {
        false
    }

    /// Whether it shows who has a file open. If not, only the list of programs says whether an agent runs.
    fn shows_files() -> bool {
        false
    }

    /// Whether a file may have a second name, and one that is open be replaced.
    fn gives_second_names() -> bool {
        true
    }

    /// Exchanges two names in a folder atomically; `false` if the system or the file system cannot.
    fn exchange(_: &Handle, _: &OsStr, _: &OsStr) -> io::Result<bool> {
        Ok(false)
    }

    /// The processes that have a file open, as far as they are visible.
    fn holders(_: &File, _: FileId) -> Vec<Holder> {
        Vec::new()
    }

    /// The processes that have the file at a path open, which is not opened for that.
    #[cfg_attr(not(feature = "stores"), expect(dead_code, reason = "only databases must not be opened"))]
    fn holders_at(_: &Path, _: FileId) -> Vec<Holder> {
        Vec::new()
    }

    /// Makes a file durable.
    fn sync(file: &File) -> io::Result<()>;

    /// Reserves disk space for that many bytes from an offset on, if that makes writing them cheaper. The file does not become
    /// longer.
    #[cfg_attr(
        not(feature = "stores"),
        expect(dead_code, reason = "only copies of rows are written piece by piece")
    )]
    fn reserve_space(_: &File, _: u64, _: u64) {}

    /// Makes a file of this name for its owner alone that shares the blocks of another one. After an error there is no such file.
    fn clone_file(_: &File, _: &Handle, _: &OsStr) -> io::Result<File> {
        Err(ErrorKind::Unsupported.into())
    }
}
