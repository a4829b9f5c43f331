//! Folders of the vault. Each is held open, and everything in it is opened by a single name relative to it, so no symbolic
//! link on the way is ever followed.

use crate::step::{Step, before};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Mode of folders: only their owner gets in.
const FOLDER: Mode = Mode::RWXU;

/// Mode of files.
const FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Prefix of the names of files that are still being written.
const UNFINISHED: &str = ".tmp-";

/// An open folder.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    file: Arc<File>,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder by its path; `None` if there is none.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        Self::open_at(rustix::fs::CWD, path, path, OFlags::empty())
    }

    fn open_at(at: impl AsFd, name: &Path, path: &Path, more: OFlags) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
        let file = existing(rustix::fs::openat(at, name, flags, Mode::empty()))?;
        Ok(file.map(|file| Self { file: Arc::new(file), path: path.to_path_buf() }))
    }

    /// Opens a folder by its path. Creates it and its parents if they are missing, and makes their names durable.
    pub(super) fn make(path: &Path) -> io::Result<Self> {
        if let Some(folder) = Self::open(path)? {
            return Ok(folder);
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(ErrorKind::NotFound.into());
        };
        Self::make(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })?.make_child(name)
    }

    /// Opens a folder in this one; `None` if there is none.
    pub(super) fn child(&self, name: impl AsRef<Path>) -> io::Result<Option<Self>> {
        let name = name.as_ref();
        Self::open_at(&*self.file, name, &self.path.join(name), OFlags::NOFOLLOW)
    }

    /// Opens a folder in this one. Creates it if it is missing, and makes its name durable.
    pub(super) fn make_child(&self, name: impl AsRef<Path>) -> io::Result<Self> {
        let name = name.as_ref();
        if let Some(child) = self.child(name)? {
            return Ok(child);
        }
        match rustix::fs::mkdirat(&self.file, name, FOLDER) {
            Ok(()) => self.sync()?,
            Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        self.child(name)?.ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// The path of something in this folder.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a regular file for reading; `None` if there is none.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<File>> {
        self.open_file(name, OFlags::RDONLY)
    }

    /// Opens a regular file for reading and writing; `None` if there is none.
    pub(super) fn update(&self, name: &str) -> io::Result<Option<File>> {
        self.open_file(name, OFlags::RDWR)
    }

    fn open_file(&self, name: &str, access: OFlags) -> io::Result<Option<File>> {
        // Opening a named pipe without `NONBLOCK` would wait forever.
        let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let Some(file) = existing(rustix::fs::openat(&self.file, name, flags, Mode::empty()))? else {
            return Ok(None);
        };
        if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(io::Error::other("it is not a file")) }
    }

    /// Opens the file that all runs share as a lock, and creates it if there is none.
    pub(super) fn shared(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.file, name, flags, FILE)?.into())
    }

    /// Creates a file, which must not exist, under a name that marks it as unfinished.
    pub(super) fn begin(&self, name: &str) -> io::Result<Unfinished> {
        let name = format!("{UNFINISHED}{name}");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = Arc::new(rustix::fs::openat(&self.file, &*name, flags, FILE)?.into());
        Ok(Unfinished { folder: self.clone(), name, file, placed: false })
    }

    /// Whether a name is that of an unfinished file.
    pub(super) fn is_unfinished(name: &str) -> bool {
        name.starts_with(UNFINISHED)
    }

    /// All names in the folder that are UTF-8 (ours are ASCII), sorted.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.file)? {
            if let Ok(name) = entry?.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_string());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Whether something of that name exists.
    pub(super) fn has(&self, name: &str) -> io::Result<bool> {
        match rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.file, from, &self.file, to)?)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.file, name, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub(super) fn remove_child(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.file, name, AtFlags::REMOVEDIR)?)
    }

    /// Makes the names in the folder durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// A file that is being written. It is removed unless it is placed.
pub(super) struct Unfinished {
    pub(super) folder: Folder,
    name: String,
    pub(super) file: Arc<File>,
    placed: bool,
}

impl Unfinished {
    /// Gives the file its final name, and replaces any file of that name.
    pub(super) fn place(mut self, name: &str) -> io::Result<()> {
        self.folder.rename(&self.name, name)?;
        self.placed = true;
        Ok(())
    }
}

/// What was opened; `None` if it does not exist.
fn existing(opened: rustix::io::Result<OwnedFd>) -> io::Result<Option<File>> {
    match opened {
        Ok(file) => Ok(Some(file.into())),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.placed && before(Step::Clean).is_ok() {
            let _ = self.folder.remove(&self.name);
        }
    }
}
