//! Folders of the vault: each is held open, and what is in it is reached by a single name from there, so that no
//! link on the way is ever followed. What the files hold is not known here.

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Folders are for their owner alone.
const FOLDER: Mode = Mode::RWXU;

/// Files too.
const FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Names of files that are being written begin like this.
const UNFINISHED: &str = ".tmp-";

/// An open folder.
pub(super) struct Folder {
    file: File,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder by its path; `None` if there is none.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => Ok(Some(Self { file: file.into(), path: path.to_path_buf() })),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a folder by its path and makes it if there is none.
    pub(super) fn make(path: &Path) -> io::Result<Self> {
        if let Some(folder) = Self::open(path)? {
            return Ok(folder);
        }
        DirBuilder::new().recursive(true).mode(FOLDER.bits()).create(path)?;
        let made = Self::open(path)?.ok_or(ErrorKind::NotFound)?;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            File::open(parent)?.sync_all()?;
        }
        Ok(made)
    }

    /// Opens a folder in this one; `None` if there is none.
    pub(super) fn child(&self, name: &str) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.file, name, flags, Mode::empty()) {
            Ok(file) => Ok(Some(Self { file: file.into(), path: self.path.join(name) })),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a folder in this one and makes it if there is none.
    pub(super) fn make_child(&self, name: &str) -> io::Result<Self> {
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

    /// Where something in this folder lies.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a regular file for reading; `None` if there is none.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<File>> {
        // Without waiting: a named pipe would block here for ever.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.file, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(io::Error::other("it is not a file")) }
    }

    /// Makes a file that must not exist.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.file, name, flags, FILE)?.into())
    }

    /// Opens a file that all runs share, to lock it.
    pub(super) fn shared(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.file, name, flags, FILE)?.into())
    }

    /// Begins a file under a name that says that it is not whole yet.
    pub(super) fn begin(&self, name: &str) -> io::Result<Unfinished<'_>> {
        let name = format!("{UNFINISHED}{name}");
        let file = self.create(&name)?;
        Ok(Unfinished { folder: self, name, file, placed: false })
    }

    /// Whether a name is that of a file that was not finished.
    pub(super) fn is_unfinished(name: &str) -> bool {
        name.starts_with(UNFINISHED)
    }

    /// All names in the folder, sorted. None of ours is other than ASCII.
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

    /// Whether there is something of that name.
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

    /// Removes a folder if it is empty, and says whether it was.
    pub(super) fn remove_child(&self, name: &str) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.file, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::NOTEMPTY | rustix::io::Errno::EXIST) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Makes the names in it last.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// A file that is being written. It goes if it is not placed.
pub(super) struct Unfinished<'f> {
    folder: &'f Folder,
    name: String,
    pub(super) file: File,
    placed: bool,
}

impl Unfinished<'_> {
    /// Gives the file its name, in the place of whatever had it.
    pub(super) fn place(mut self, folder: &Folder, name: &str) -> io::Result<()> {
        rustix::fs::renameat(&self.folder.file, &self.name, &folder.file, name)?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.placed {
            let _ = self.folder.remove(&self.name);
        }
    }
}
