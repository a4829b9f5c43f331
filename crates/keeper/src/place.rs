//! Where a transcript is: its folder, held open, and its name in that folder.

use crate::folder::Folder;
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Deref;
use std::path::Path;

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
    /// Opens the folder of a path that has no links in it. A link that has appeared in it since is an error.
    pub(crate) fn hold(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_os_string();
        let parent = path.parent().unwrap_or(Path::new("/"));
        Ok(Self { folder: Folder::without_links(parent)?, name })
    }

    /// The name of the transcript.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::create_dir;
    use std::os::unix::fs::symlink;

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
}
