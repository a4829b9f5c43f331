//! Where a transcript lies: its folder, held open, and its name in there.

use crate::folder::Folder;
use crate::platform::files::{LOOK, open_folder};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Others may write, and nothing keeps them from renaming what is not theirs.
const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;

/// A folder that is held open, and the name of a file in it.
pub(crate) struct Place {
    folder: Folder,
    name: OsString,
}

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Place {
    /// Holds the folder of a path that has no links in it. A link that somebody has put there since is an error.
    pub(crate) fn hold(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_os_string();
        let parent = path.parent().unwrap_or(Path::new("/"));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = match open_folder(parent, flags) {
            // Files in a folder that may not be listed can be read all the same.
            Err(Errno::ACCESS) => open_folder(parent, flags | LOOK)?,
            other => other?,
        };
        Ok(Self { folder: Folder::held(File::from(folder), parent), name })
    }

    /// The name of the transcript.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// A folder on the way to the transcript that a third user may rename or replace: neither root nor the owner of
    /// the file, nor somebody of the file's group.
    pub(crate) fn loose_folder(&self, file: &Metadata) -> io::Result<Option<PathBuf>> {
        for folder in self.path().ancestors() {
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
