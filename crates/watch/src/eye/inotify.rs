//! What the kernel tells about folders, and where it cannot.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How much is read at a time.
const BUFFER_BYTES: usize = 64 * 1024;

/// Something that the kernel told.
pub(super) enum Happened {
    /// To a file, or to what was one.
    File(PathBuf),
    /// Somebody who had a file open for writing has closed it.
    Closed(PathBuf),
    /// A folder came.
    Folder(PathBuf),
    /// The root itself went away.
    RootGone,
    /// The kernel had more to tell than it could keep.
    Lost,
}

/// Watches on all folders of a root.
pub(super) struct Watch {
    inotify: OwnedFd,
    root: i32,
    /// Where each watched folder is, and in which walk it was last seen.
    folders: HashMap<i32, (PathBuf, u32)>,
    buffer: Vec<MaybeUninit<u8>>,
}

impl Watch {
    pub(super) fn new(root: &Path) -> Result<Self, Errno> {
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // The root itself may be a link; what is below may not.
        let descriptor = add_watch(&inotify, root, of_interest())?;
        let folders = HashMap::from([(descriptor, (root.to_path_buf(), 0))]);
        let buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        Ok(Self { inotify, root: descriptor, folders, buffer })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    pub(super) fn folders(&self) -> usize {
        self.folders.len()
    }

    /// Watches one more folder, or one that was moved. Fails only if there can be no more watches.
    pub(super) fn add(&mut self, path: &Path, walk: u32) -> Result<(), Errno> {
        let root = &mut self.folders.get_mut(&self.root);
        if let Some((_, seen)) = root.as_mut().filter(|(root, _)| root == path) {
            *seen = walk;
            return Ok(());
        }
        match add_watch(&self.inotify, path, of_interest() | WatchFlags::DONT_FOLLOW) {
            Ok(descriptor) => {
                self.folders.insert(descriptor, (path.to_path_buf(), walk));
                Ok(())
            }
            Err(errno @ (Errno::NOSPC | Errno::NOMEM)) => Err(errno),
            // It is gone, or cannot be read, which who lists it will say.
            Err(_) => Ok(()),
        }
    }

    /// Lets go of folders that a complete walk has not seen.
    pub(super) fn forget_others(&mut self, walk: u32) {
        let inotify = &self.inotify;
        self.folders.retain(|descriptor, (_, seen)| {
            let stays = *seen == walk;
            if !stays {
                // One that is gone already has no watch.
                let _ = remove_watch(inotify, *descriptor);
            }
            stays
        });
    }

    /// What has happened, each thing once.
    pub(super) fn read(&mut self) -> Vec<Happened> {
        let mut happened = Vec::new();
        let (mut files, mut closed) = (HashSet::new(), HashSet::new());
        let mut reader = Reader::new(&self.inotify, &mut self.buffer);
        while let Ok(event) = reader.next() {
            let flags = event.events();
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                happened.push(Happened::Lost);
            } else if flags.contains(ReadFlags::IGNORED) {
                self.folders.remove(&event.wd());
            } else if flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT) {
                if event.wd() == self.root {
                    happened.push(Happened::RootGone);
                }
            } else if let (Some((folder, _)), Some(name)) = (self.folders.get(&event.wd()), event.file_name())
            {
                let path = folder.join(OsStr::from_bytes(name.to_bytes()));
                if flags.contains(ReadFlags::CLOSE_WRITE) {
                    if closed.insert(path.clone()) {
                        happened.push(Happened::Closed(path));
                    }
                } else if !flags.contains(ReadFlags::ISDIR) {
                    if files.insert(path.clone()) {
                        happened.push(Happened::File(path));
                    }
                } else if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                    happened.push(Happened::Folder(path));
                }
            }
            if reader.is_buffer_empty() {
                break;
            }
        }
        happened
    }
}

fn of_interest() -> WatchFlags {
    WatchFlags::MODIFY
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::CREATE
        | WatchFlags::MOVED_TO
        | WatchFlags::MOVED_FROM
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR
        | WatchFlags::EXCL_UNLINK
}

/// Why there is no watch, and what helps.
pub(crate) fn no_watch(errno: Errno) -> String {
    match errno {
        Errno::NOSPC => {
            "the kernel's limit of watches is reached (sysctl fs.inotify.max_user_watches raises it)".to_string()
        }
        Errno::MFILE => {
            "the kernel's limit of inotify instances is reached (sysctl fs.inotify.max_user_instances raises it)"
                .to_string()
        }
        errno => format!("it cannot be watched: {errno}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_said_with_a_way_out() {
        assert!(no_watch(Errno::NOSPC).contains("max_user_watches"));
        assert!(no_watch(Errno::MFILE).contains("max_user_instances"));
    }
}
