//! A folder that is held open. Everything in it is reached by a single name relative to it, and a link with such a name
//! is never followed. So renaming a folder on the path, or putting a link there, cannot redirect us.

use crate::base::step::{Step, before};
use crate::platform::acting::{self, Acting, Actor};
use crate::platform::folder::{self as system, Handle};
use crate::platform::metadata::{self, Metadata};
use crate::platform::{OFlags, System, This, files};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Prefix of the names of files that are still being written.
const UNFINISHED: &str = ".tmp-";

/// An open folder.
#[derive(Clone, Debug)]
pub struct Folder {
    handle: Arc<Handle>,
    /// Who works in it, if we are root: its owner. Everybody else works as what they are.
    actor: Option<Arc<Actor>>,
    /// For messages only.
    path: PathBuf,
}

impl Folder {
    fn held(handle: Handle, path: &Path) -> Self {
        Self { handle: Arc::new(handle), actor: None, path: path.to_path_buf() }
    }

    /// As whom root works in it, until that is dropped.
    fn act(&self) -> io::Result<Acting> {
        self.actor.as_ref().map_or_else(|| Ok(Acting::nobody_else()), |actor| actor.act())
    }

    /// Opens a folder of ours by its path; `None` if there is none.
    pub(crate) fn at(path: &Path) -> io::Result<Option<Self>> {
        match acting::own_folder(path)? {
            Some((.., missing)) if !missing.is_empty() => Ok(None),
            Some((handle, actor, _)) => {
                Ok(Some(Self { actor: Some(Arc::new(actor)), ..Self::held(handle, path) }))
            }
            None => Ok(existing(system::at(path))?.map(|handle| Self::held(handle, path))),
        }
    }

    /// Opens a folder of ours by its path. Creates it and its parents if they are missing, and makes their names durable. What root
    /// writes does not go into the folder of a user whom it does not concern.
    pub(crate) fn make(path: &Path) -> io::Result<Self> {
        Self::make_if(path, Actor::is_expected)
    }

    /// Like `make`, but in the folder of a user it is made, and worked in, as that user.
    ///
    /// # Errors
    ///
    /// If it cannot be made or opened, or if a link of another user is on its path.
    pub fn make_as_owner(path: &Path) -> io::Result<Self> {
        Self::make_if(path, |_| true)
    }

    fn make_if(path: &Path, may: fn(&Actor) -> bool) -> io::Result<Self> {
        if let Some((handle, actor, missing)) = acting::own_folder(path)? {
            if !may(&actor) {
                return Err(io::Error::other(format!("it lies in a folder of user {}", actor.user())));
            }
            let found = path.ancestors().nth(missing.len()).unwrap_or(path);
            let found = Self { actor: Some(Arc::new(actor)), ..Self::held(handle, found) };
            return missing.iter().rev().try_fold(found, |folder, name| folder.make_child(name));
        }
        if let Some(folder) = Self::at(path)? {
            return Ok(folder);
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(ErrorKind::NotFound.into());
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        Self::make_if(parent, may)?.make_child(name)
    }

    /// Opens a folder in this one; `None` if there is none.
    pub(crate) fn child(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Self>> {
        let (path, _acting) = (self.path_of(&name), self.act()?);
        let child = existing(system::child(&self.handle, name.as_ref()))?;
        Ok(child.map(|handle| Self { actor: self.actor.clone(), ..Self::held(handle, &path) }))
    }

    /// Opens a folder in this one. Creates it, for its owner alone, if it is missing, and makes its name durable.
    pub(crate) fn make_child(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        if let Some(child) = self.child(name)? {
            return Ok(child);
        }
        let _acting = self.act()?;
        match system::make(&self.handle, name) {
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {}
            made => made.and_then(|()| self.sync())?,
        }
        self.child(name)?.ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// The folder itself.
    pub(crate) fn file(&self) -> &File {
        system::file(&self.handle)
    }

    /// The path of the folder, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of something in the folder, for messages.
    pub(crate) fn path_of(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.path.join(name.as_ref())
    }

    /// Opens a file of this name; never a link.
    pub(crate) fn open(&self, name: impl AsRef<OsStr>, flags: OFlags) -> io::Result<File> {
        let _acting = self.act()?;
        system::open(&self.handle, name.as_ref(), flags)
    }

    /// Opens a regular file; `None` if there is none.
    pub(crate) fn open_file(&self, name: impl AsRef<OsStr>, access: OFlags) -> io::Result<Option<File>> {
        // Opening a named pipe without `NONBLOCK` would wait forever.
        let Some(file) = existing(self.open(name, access | OFlags::NONBLOCK))? else { return Ok(None) };
        if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(io::Error::other("it is not a file")) }
    }

    /// Opens a regular file for reading and writing. Creates it, for its owner alone, if it is missing.
    ///
    /// # Errors
    ///
    /// If it is a link or anything else that is no file, or cannot be opened.
    pub fn open_or_create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.open_file(name, OFlags::RDWR | OFlags::CREATE)?.ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Creates a file that only its owner can read.
    pub(crate) fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.open(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    /// Makes such a file that shares the blocks of another one, if that can be.
    pub(crate) fn clone_of(&self, file: &File, name: &OsStr) -> io::Result<File> {
        let _acting = self.act()?;
        This::clone_file(file, &self.handle, name)
    }

    /// Makes such a file under a name that marks it as unfinished.
    pub(crate) fn begin(&self, name: &str) -> io::Result<Unfinished> {
        let name = format!("{UNFINISHED}{name}");
        let file = Arc::new(self.create(&name)?);
        Ok(Unfinished { folder: self.clone(), name, file, placed: false })
    }

    /// Whether a name is that of an unfinished file.
    pub(crate) fn is_unfinished(name: &str) -> bool {
        name.starts_with(UNFINISHED)
    }

    /// Makes a file in the folder that has no name yet, so that nothing is left of it if we die.
    pub(crate) fn create_unnamed(&self) -> io::Result<File> {
        let _acting = self.act()?;
        files::create_unnamed(&self.handle)
    }

    /// Gives such a file a name.
    pub(crate) fn name_it(&self, file: &File, name: impl AsRef<OsStr>) -> io::Result<()> {
        let _acting = self.act()?;
        files::name_it(file, &self.handle, name.as_ref())
    }

    /// The metadata of what has this name now; `None` if nothing does.
    pub(crate) fn metadata_of(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Metadata>> {
        existing(self.open(name, files::LOOK))?.map(|file| metadata::of_file(&file)).transpose()
    }

    /// All names in the folder that are UTF-8 (ours are ASCII), sorted.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let _acting = self.act()?;
        let mut names = system::names(&self.handle)?;
        names.sort();
        Ok(names)
    }

    /// Exchanges two names atomically; `false` if the system or the file system cannot.
    pub(crate) fn exchange(&self, one: impl AsRef<OsStr>, other: impl AsRef<OsStr>) -> io::Result<bool> {
        #[cfg(test)]
        if crate::base::step::fault::system().names != crate::base::step::fault::NameCalls::Exchanged {
            return Ok(false);
        }
        let _acting = self.act()?;
        This::exchange(&self.handle, one.as_ref(), other.as_ref())
    }

    pub(crate) fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let _acting = self.act()?;
        system::rename(&self.handle, from.as_ref(), to.as_ref())
    }

    /// Moves a file to another folder; an error if that is on another volume, or not ours.
    pub(crate) fn move_to(&self, name: impl AsRef<OsStr>, folder: &Self, new: &str) -> io::Result<()> {
        let _acting = self.act()?;
        system::move_to(&self.handle, name.as_ref(), &folder.handle, new.as_ref())
    }

    /// Gives a file one more name; an error of [`has_no_links`] if it can have only one.
    pub(crate) fn link(&self, name: impl AsRef<OsStr>, new: impl AsRef<OsStr>) -> io::Result<()> {
        #[cfg(test)]
        if crate::base::step::fault::system().names == crate::base::step::fault::NameCalls::Single {
            return Err(ErrorKind::Unsupported.into());
        }
        if !This::gives_second_names() {
            return Err(ErrorKind::Unsupported.into());
        }
        let _acting = self.act()?;
        system::link(&self.handle, name.as_ref(), new.as_ref())
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// If it cannot be removed.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let _acting = self.act()?;
        system::remove(&self.handle, name.as_ref())
    }

    /// Removes an empty folder.
    pub(crate) fn remove_child(&self, name: &str) -> io::Result<()> {
        let _acting = self.act()?;
        system::remove_child(&self.handle, name.as_ref())
    }

    /// Makes the names in the folder durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        system::sync(&self.handle)
    }
}

/// The folder of a path, as far as the path says.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether nothing is at a path. What cannot be looked at may be there.
pub fn is_missing(path: &Path) -> bool {
    matches!(path.try_exists(), Ok(false))
}

/// Does something by a path below a folder of ours. As root we do it as the owner of the folder, so a link leads no further than the
/// owner could go.
///
/// # Errors
///
/// Those of `work`; or a link of another user is on the path of the folder.
pub fn as_owner_of<T>(folder: &Path, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let owner = acting::own_folder(folder)?;
    let _acting = owner.map(|(_, actor, _)| actor.act()).transpose()?;
    work()
}

/// Where a transcript is: its folder, and its name in that.
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
        Ok(Self { folder: Folder::held(system::without_links(parent)?, parent), name })
    }

    /// The name of the transcript.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }
}

/// A file that is being written. It is removed unless it is placed.
pub(crate) struct Unfinished {
    pub(crate) folder: Folder,
    name: String,
    pub(crate) file: Arc<File>,
    placed: bool,
}

impl Unfinished {
    /// Gives the file its final name, and replaces any file of that name.
    pub(crate) fn place(mut self, name: &str) -> io::Result<()> {
        self.folder.rename(&self.name, name)?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.placed && before(Step::Clean).is_ok() {
            let _ = self.folder.remove(&self.name);
        }
    }
}

/// Whether a file can have one name only, by the error of [`Folder::link`].
pub(crate) fn has_no_links(cause: &io::Error) -> bool {
    cause.kind() == ErrorKind::Unsupported || system::has_no_links(cause)
}

/// What was opened; `None` if it does not exist.
fn existing<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
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
