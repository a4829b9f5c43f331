//! Where a transcript lies: its folder, held open, and its name in there.
//!
//! Everything that happens to a transcript or beside it goes through the held folder by a single name. So whoever
//! renames a folder on the way, or puts a link there, leads nobody elsewhere.

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where our own open files have a name.
const OPEN_FILES: &str = "/proc/self/fd";

/// Others may write, and nothing keeps them from renaming what is not theirs.
const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;

/// A folder that is held open, and the name of a file in it.
pub(crate) struct Place {
    folder: File,
    name: OsString,
    path: PathBuf,
}

impl Place {
    /// Holds the folder of a path that has no links in it. A link that somebody has put there since is an error.
    pub(crate) fn hold(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_os_string();
        let parent = path.parent().unwrap_or(Path::new("/"));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let open = |flags| match rustix::fs::openat2(CWD, parent, flags, Mode::empty(), resolve) {
            // Kernels before 5.6, and sandboxes that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => {
                rustix::fs::open(parent, flags | OFlags::NOFOLLOW, Mode::empty())
            }
            other => other,
        };
        let folder = match open(flags) {
            // Files in a folder that may not be listed can be read all the same.
            Err(Errno::ACCESS) => open(flags | OFlags::PATH)?,
            other => other?,
        };
        Ok(Self { folder: folder.into(), name, path: path.to_path_buf() })
    }

    /// The name of the transcript.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// The path of something in the folder, for messages only.
    pub(crate) fn path_of(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.path.with_file_name(name.as_ref())
    }

    /// Opens a file of this name; never a link.
    pub(crate) fn open(&self, name: impl AsRef<OsStr>, flags: OFlags) -> Result<File, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.folder, name.as_ref(), flags, Mode::empty())?.into())
    }

    /// Makes a file that nobody else may read.
    pub(crate) fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.folder, name.as_ref(), flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Makes a file in the folder that has no name yet, so that nothing is left of it if we die. Without `/proc`, in
    /// which the file is found when it gets its name, there is none.
    pub(crate) fn create_unnamed(&self) -> io::Result<File> {
        if !Path::new(OPEN_FILES).exists() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.folder, ".", flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Gives such a file a name.
    pub(crate) fn name_it(&self, file: &File, name: impl AsRef<OsStr>) -> io::Result<()> {
        let from = format!("{OPEN_FILES}/{}", file.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, from, &self.folder, name.as_ref(), AtFlags::SYMLINK_FOLLOW)?)
    }

    /// What stands under a name now; `None` if nothing does.
    pub(crate) fn look(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Metadata>> {
        match self.open(name, OFlags::PATH) {
            Ok(file) => file.metadata().map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Exchanges two names at once.
    pub(crate) fn exchange(&self, one: impl AsRef<OsStr>, other: impl AsRef<OsStr>) -> Result<(), Errno> {
        let (one, other) = (one.as_ref(), other.as_ref());
        rustix::fs::renameat_with(&self.folder, one, &self.folder, other, RenameFlags::EXCHANGE)
    }

    pub(crate) fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.folder, from.as_ref(), &self.folder, to.as_ref())?)
    }

    /// Gives a file one more name.
    pub(crate) fn link(&self, name: impl AsRef<OsStr>, new: impl AsRef<OsStr>) -> io::Result<()> {
        let flags = AtFlags::empty();
        Ok(rustix::fs::linkat(&self.folder, name.as_ref(), &self.folder, new.as_ref(), flags)?)
    }

    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, name.as_ref(), AtFlags::empty())?)
    }

    /// Makes the names in the folder last.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.folder.sync_all()
    }

    /// All names in the folder.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let entries = Dir::read_from(&self.folder)?;
        entries.map(|entry| Ok(OsStr::from_bytes(entry?.file_name().to_bytes()).to_os_string())).collect()
    }

    /// A folder on the way to the transcript that a third user may rename or replace: neither root nor the owner of
    /// the file, nor somebody of the file's group.
    pub(crate) fn loose_folder(&self, file: &Metadata) -> io::Result<Option<PathBuf>> {
        for folder in self.path.ancestors().skip(1) {
            let found = std::fs::symlink_metadata(folder)?;
            let (user, mode) = (found.uid(), found.mode());
            let group_may = mode & GROUP_WRITES != 0 && found.gid() != 0 && found.gid() != file.gid();
            let others_may = mode & STICKY == 0 && (mode & OTHERS_WRITE != 0 || group_may);
            if others_may || (user != 0 && user != file.uid()) {
                return Ok(Some(folder.to_path_buf()));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_that_has_become_a_link_is_not_entered() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("real/s.jsonl"), "x").unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        assert!(Place::hold(&root.join("real/s.jsonl")).is_ok());
        assert!(Place::hold(&root.join("link/s.jsonl")).is_err());
    }

    #[test]
    fn a_held_folder_stays_the_same_wherever_its_name_leads() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["a", "b"] {
            create_dir(root.join(name)).unwrap();
            std::fs::write(root.join(name).join("s.jsonl"), name).unwrap();
        }
        let place = Place::hold(&root.join("a/s.jsonl")).unwrap();
        std::fs::rename(root.join("a"), root.join("old")).unwrap();
        std::fs::rename(root.join("b"), root.join("a")).unwrap();
        place.create("t").unwrap();
        place.remove("s.jsonl").unwrap();
        assert!(root.join("old/t").exists() && root.join("a/s.jsonl").exists());
    }

    #[test]
    fn a_folder_that_a_third_user_may_rename_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        create_dir(root.join("f")).unwrap();
        let path = root.join("f/s.jsonl");
        std::fs::write(&path, "x").unwrap();
        let file = std::fs::metadata(&path).unwrap();
        let place = Place::hold(&path).unwrap();
        let loose = |mode| {
            set_permissions(root.join("f"), Permissions::from_mode(mode)).unwrap();
            place.loose_folder(&file).unwrap()
        };
        assert_eq!(loose(0o755), None);
        assert_eq!(loose(0o1777), None);
        assert_eq!(loose(0o777), Some(root.join("f")));
    }
}
