//! As whom a thread acts. What root does with a user's file it does as that user: the kernel checks each thread by its own
//! identity (`credentials(7)`), so nothing that the user puts in the way, and however quickly, leads further than the user could go.
//!
//! Threads that are started meanwhile act as the same user. Those that work for all (rayon's) are started before.

use crate::base::refusal::Refusal;
use crate::platform::handle::Handle;
use rustix::fs::{CWD, FileType, Gid, Mode, OFlags, Stat, Uid, fstat, openat, readlinkat};
use rustix::io::{Errno, Result};
use rustix::process::{getegid, geteuid, getgroups};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// More links on a path are a loop, as for the kernel.
const LINKS_MAX: usize = 40;
/// The group of those who are in none.
const NO_GROUP: u32 = 65534;
const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";
/// What `/proc` is, by its number (`linux/magic.h`). Some links there lead to what has no path.
const PROC: i64 = 0x9fa0;

/// What root is, once a thread has acted as somebody else.
static OURSELVES: OnceLock<Actor> = OnceLock::new();

/// Who acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    user: Uid,
    group: Gid,
    groups: Vec<Gid>,
}

/// Somebody acts, until it is dropped.
#[must_use]
pub(crate) struct Acting {
    before: Option<Actor>,
    _this_thread: PhantomData<*const ()>,
}

/// Where a path leads.
struct WalkedPath {
    file: OwnedFd,
    user: u32,
    group: u32,
    /// The links that were followed, with who made them.
    links: Vec<(PathBuf, u32)>,
    /// A folder in which others than root may rename or create files that are not theirs.
    of_others: Option<PathBuf>,
}

impl Actor {
    /// As whom this thread acts now.
    fn now() -> Result<Self> {
        Ok(Self { user: geteuid(), group: getegid(), groups: getgroups()? })
    }

    /// The user who owns something.
    fn owner(of: &WalkedPath) -> Self {
        if of.user == 0 {
            return Self { user: Uid::ROOT, group: Gid::ROOT, groups: Vec::new() };
        }
        let read =
            |list: &str| String::from_utf8_lossy(&std::fs::read(list).unwrap_or_default()).into_owned();
        let (group, groups) = groups_of(of.user, of.group, &read(USERS), &read(GROUPS));
        Self {
            user: Uid::from_raw(of.user),
            group: Gid::from_raw(group),
            groups: groups.into_iter().map(Gid::from_raw).collect(),
        }
    }

    /// Whether it is we, or the user as whom this thread acts.
    pub(crate) fn is_expected(&self) -> bool {
        self.user.is_root() || self.user == geteuid()
    }

    /// The number of the user.
    pub(crate) fn user(&self) -> u32 {
        self.user.as_raw()
    }

    /// Acts as this user from now on.
    pub(crate) fn act(&self) -> io::Result<Acting> {
        if geteuid() == self.user {
            return Ok(Acting::nobody_else());
        }
        // Their threads stay whoever starts them.
        rayon::current_num_threads();
        let before = Self::now()?;
        if before.user.is_root() {
            OURSELVES.get_or_init(|| before.clone());
        }
        // If it fails, dropping this undoes the half of it.
        let acting = Acting { before: Some(before), _this_thread: PhantomData };
        let root = OURSELVES.get().filter(|_| self.user.is_root());
        root.unwrap_or(self).assume()?;
        Ok(acting)
    }

    /// Groups are root's to set, so each change is one from root.
    fn assume(&self) -> Result<()> {
        set_thread_res_uid(None, Uid::ROOT, None)?;
        set_thread_groups(&self.groups)?;
        set_thread_res_gid(None, self.group, None)?;
        set_thread_res_uid(None, self.user, Uid::ROOT)
    }
}

impl Acting {
    /// Nothing changes.
    pub(crate) fn nobody_else() -> Self {
        Self { before: None, _this_thread: PhantomData }
    }

    /// Acts as ourselves again, for our own files and for what only root sees.
    pub(crate) fn ourselves() -> Self {
        let root = OURSELVES.get().filter(|_| !geteuid().is_root());
        // Without root's rights all that follows fails, and does no harm.
        root.and_then(|root| root.act().ok()).unwrap_or_else(Self::nobody_else)
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // It cannot fail: root's number is kept for it. If it did, the thread would have fewer rights than it should.
            let _ = before.assume();
        }
    }
}

/// Whether root can act as another user on this system.
pub(crate) const IS_KNOWN: bool = true;

/// Whether we are root, whoever this thread acts as.
pub(crate) fn are_root() -> bool {
    geteuid().is_root() || OURSELVES.get().is_some()
}

/// Whether root acts as another user now.
pub(crate) fn is_another() -> bool {
    OURSELVES.get().is_some() && !geteuid().is_root()
}

/// Acts as the owner of a file, if we are root and it is not ours. Refuses a path on which somebody else has put a link, and a
/// user whom we may not become. For root's own file `with_files_beside`, which SQLite creates, its folders must be root's too.
pub(crate) fn as_owner(
    path: &Path,
    with_files_beside: bool,
) -> io::Result<std::result::Result<Acting, Refusal>> {
    if !are_root() {
        return Ok(Ok(Acting::nobody_else()));
    }
    let own = Acting::ourselves();
    let found = WalkedPath::walk(path)?;
    if let Some(link) = found.link_of_others() {
        return Ok(Err(Refusal::AnothersLink(link.to_path_buf())));
    }
    if found.user == 0
        && with_files_beside
        && let Some(folder) = found.of_others
    {
        return Ok(Err(Refusal::LooseFolder(folder)));
    }
    let owner = Actor::owner(&found);
    // Before this one is taken up, the other one must be over.
    drop(own);
    Ok(owner.act().map_err(|_| Refusal::NotAsOwner(found.user)))
}

/// Whether this thread may open a file: root does not open what is another user's, but as that user.
pub(crate) fn may_open(file: &Metadata) -> bool {
    !geteuid().is_root() || file.uid() == 0
}

/// A folder that root works in, as far as it is there, with who works in it and the names of those that are missing, the last
/// one first. `None` if we are not root: then the kernel checks us as it is.
pub(crate) fn own_folder(path: &Path) -> io::Result<Option<(Handle, Actor, Vec<OsString>)>> {
    if !are_root() {
        return Ok(None);
    }
    let _own = Acting::ourselves();
    let (found, missing) = WalkedPath::walk_far(path)?;
    if let Some(link) = found.link_of_others() {
        return Err(io::Error::other(format!(
            "{} on its path is a symlink of another user's",
            link.display()
        )));
    }
    Ok(Some((found.folder()?.into(), Actor::owner(&found), missing)))
}

impl WalkedPath {
    /// Follows a path as the kernel does.
    fn walk(path: &Path) -> Result<Self> {
        let (walked, missing) = Self::walk_far(path)?;
        if missing.is_empty() { Ok(walked) } else { Err(Errno::NOENT) }
    }

    /// Follows a path as far as there is something. Returns what is not there, its end first.
    fn walk_far(path: &Path) -> Result<(Self, Vec<OsString>)> {
        let mut file = start(path)?;
        let (mut links, mut of_others, mut todo) = (Vec::new(), None, names(path));
        while let Some(name) = todo.pop() {
            let next = match openat(&file, &name, LOOK | OFlags::NOFOLLOW, Mode::empty()) {
                Err(Errno::NOENT) => {
                    todo.push(name);
                    break;
                }
                other => other?,
            };
            let found = fstat(&next)?;
            let kind = FileType::from_raw_mode(found.st_mode);
            if kind != FileType::Symlink {
                if kind == FileType::Directory && is_of_others(&found) {
                    of_others.get_or_insert(PathBuf::from(name));
                }
                file = next;
                continue;
            }
            if rustix::fs::fstatfs(&next)?.f_type as i64 == PROC {
                file = openat(&file, &name, LOOK, Mode::empty())?;
                continue;
            }
            if links.len() == LINKS_MAX {
                return Err(Errno::LOOP);
            }
            let target = PathBuf::from(OsString::from_vec(readlinkat(&next, "", Vec::new())?.into_bytes()));
            links.push((PathBuf::from(name), found.st_uid));
            if target.is_absolute() {
                file = start(&target)?;
            }
            todo.extend(names(&target));
        }
        let found = fstat(&file)?;
        Ok((Self { file, user: found.st_uid, group: found.st_gid, links, of_others }, todo))
    }

    /// A link that neither root nor the owner of the file has made.
    fn link_of_others(&self) -> Option<&Path> {
        let others = self.links.iter().find(|(_, user)| *user != 0 && *user != self.user);
        others.map(|(link, _)| link.as_path())
    }

    /// The folder that was found, to be worked in.
    fn folder(&self) -> Result<OwnedFd> {
        openat(&self.file, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }
}

/// Whether others than root may rename files in a folder. Where they may only create some (`/tmp`), the kernel keeps root from opening
/// those as its own.
fn is_of_others(folder: &Stat) -> bool {
    let mode = Mode::from_raw_mode(folder.st_mode);
    let group_may = mode.contains(Mode::WGRP) && folder.st_gid != 0;
    let others_may = (group_may || mode.contains(Mode::WOTH)) && !mode.contains(Mode::SVTX);
    others_may || folder.st_uid != 0
}

const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

fn start(path: &Path) -> Result<OwnedFd> {
    openat(CWD, if path.is_absolute() { "/" } else { "." }, LOOK | OFlags::DIRECTORY, Mode::empty())
}

/// The names in a path, the last one first.
fn names(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// The group and all groups of a user, by the system's own lists. One who is not in them has the group of the file, unless that
/// is another one's.
fn groups_of(user: u32, of_file: u32, users: &str, groups: &str) -> (u32, Vec<u32>) {
    let fields = |line: &'_ str| line.split(':').map(str::to_string).collect::<Vec<_>>();
    let number = |fields: &[String], at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok());
    let known = users.lines().map(fields).find(|fields| number(fields, 2) == Some(user));
    let Some((own, known)) = known.and_then(|known| Some((number(&known, 3)?, known))) else {
        let is_known = groups.lines().any(|line| number(&fields(line), 2) == Some(of_file));
        let own = if is_known || of_file == 0 { NO_GROUP } else { of_file };
        return (own, vec![own]);
    };
    let has = |fields: &Vec<String>| {
        fields.get(3).is_some_and(|members| members.split(',').any(|name| *name == known[0]))
    };
    let others = groups.lines().map(fields).filter(has).filter_map(|fields| number(&fields, 2));
    (own, std::iter::once(own).chain(others).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn groups_are_those_of_the_systems_lists() {
        const USERS: &str = "root:x:0:0::/root:/bin/sh\nada:x:7:70::/:\nodd\n";
        const GROUPS: &str = "root:x:0:\nada:x:70:\nmail:x:8:bob\ndevs:x:80:bob,ada\nadas:x:9:adas\n";
        assert_eq!(groups_of(7, 8, USERS, GROUPS), (70, vec![70, 80]));
        assert_eq!(groups_of(1234, 1234, USERS, GROUPS), (1234, vec![1234]));
        for of_others in [0, 8] {
            assert_eq!(groups_of(1234, of_others, USERS, GROUPS), (NO_GROUP, vec![NO_GROUP]));
        }
    }

    #[test]
    fn a_path_is_followed_as_the_kernel_does_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/f"), "").unwrap();
        symlink(root.join("a"), root.join("far")).unwrap();
        symlink("../far/b", root.join("a/near")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let walk = |path: &str| WalkedPath::walk(&root.join(path));
        let (found, same) = (walk("a/near/../b/./f").unwrap(), fstat(walk("a/b/f").unwrap().file).unwrap());
        assert_eq!(fstat(&found.file).unwrap().st_ino, same.st_ino);
        assert_eq!(
            found.links.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(),
            ["near", "far"].map(PathBuf::from)
        );
        assert_eq!(found.link_of_others(), None);
        for (path, errno) in [("loop", Errno::LOOP), ("a/none", Errno::NOENT), ("a/b/f/x", Errno::NOTDIR)] {
            assert_eq!(walk(path).err(), Some(errno), "{path}");
        }
        let (far, missing) = WalkedPath::walk_far(&root.join("far/x/y")).unwrap();
        assert_eq!(
            (missing, fstat(far.file).unwrap().st_ino),
            (vec!["y".into(), "x".into()], fstat(walk("a").unwrap().file).unwrap().st_ino)
        );
        assert!(WalkedPath::walk(Path::new("/proc/self/fd/0")).is_ok());
    }

    #[test]
    fn a_link_of_a_third_user_is_named() {
        let walk = |user| {
            let file = start(Path::new("/")).unwrap();
            WalkedPath {
                file,
                user,
                group: 0,
                links: vec![("l".into(), 0), ("m".into(), 7)],
                of_others: None,
            }
        };
        assert_eq!(walk(7).link_of_others(), None);
        assert_eq!(walk(8).link_of_others(), Some(Path::new("m")));
        assert_eq!(walk(0).link_of_others(), Some(Path::new("m")));
    }
}
