//! Allows one daemon per root: a file names the root, and is locked as long as its daemon lives.

use keeper::{Folder, lock_holder};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The claim to a root, until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    _file: File,
    /// The folder itself, locked, which also stops a Tailor of another user, whose state is elsewhere. `None` if the
    /// folder does not exist yet.
    _folder: Option<File>,
}

/// Why a root cannot be claimed.
#[derive(Debug)]
pub(crate) enum NotClaimed {
    /// Another Tailor has the root, or one above or below it.
    By { root: PathBuf, pid: String },
    /// Whether another Tailor has it is unknown.
    Unknown { path: PathBuf, cause: io::Error },
}

impl fmt::Display for NotClaimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::By { root, pid } => {
                write!(f, "another tailor watches {} already (process {pid})", root.display())
            }
            Self::Unknown { path, cause } => {
                write!(f, "{}: could not claim the root: {cause}", path.display())
            }
        }
    }
}

const ENDING: &str = ".pid";

/// Longest claim file that is read.
const BYTES_MAX: u64 = 8 * 1024;

/// Claims a root for this process.
pub(crate) fn claim(state: &Path, root: &Path) -> Result<Claim, NotClaimed> {
    let unknown = |cause| NotClaimed::Unknown { path: state.to_path_buf(), cause };
    let folder = Folder::make_as_owner(state).map_err(unknown)?;
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let name = format!("{}{ENDING}", &blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex()[..16]);
    // Each locks before it looks, so two that start at the same moment on nested roots see each other.
    let mut own = folder.open_or_create(&name).map_err(unknown)?;
    if flock(&own, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(read(&mut own).unwrap_or_else(|| NotClaimed::By { root, pid: "unknown".to_string() }));
    }
    let text = format!("{}\n{}\n", std::process::id(), root.display());
    let written = own.set_len(0).and_then(|()| own.seek(SeekFrom::Start(0)));
    written.and_then(|_| own.write_all(text.as_bytes())).map_err(unknown)?;
    let names = folder.names().map_err(unknown)?;
    for other in names.iter().filter(|other| **other != name && other.ends_with(ENDING)) {
        let Ok(mut file) = folder.open_or_create(other) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
            continue;
        }
        match read(&mut file) {
            // Our own roots may be nested.
            Some(NotClaimed::By { pid, .. }) if pid == std::process::id().to_string() => {}
            Some(NotClaimed::By { root: theirs, pid })
                if theirs.starts_with(&root) || root.starts_with(&theirs) =>
            {
                return Err(NotClaimed::By { root: theirs, pid });
            }
            _ => {}
        }
    }
    Ok(Claim { _file: own, _folder: lock_folder(&root)? })
}

/// Locks a folder, if it is one. On file systems without locks for folders, other claims are not noticed.
fn lock_folder(root: &Path) -> Result<Option<File>, NotClaimed> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = rustix::fs::open(root, flags, Mode::empty()).map(File::from) else { return Ok(None) };
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let pid = lock_holder(&folder);
            Err(NotClaimed::By {
                root: root.to_path_buf(),
                pid: pid.unwrap_or_else(|| "unknown".to_string()),
            })
        }
        Err(_) => Ok(None),
        Ok(()) => Ok(Some(folder)),
    }
}

fn read(file: &mut File) -> Option<NotClaimed> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    let (pid, root) = text.split_once('\n')?;
    Some(NotClaimed::By { root: PathBuf::from(root.trim_end_matches('\n')), pid: pid.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_had_once_and_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let (state, root) = (dir.path().join("state"), dir.path().join("root"));
        std::fs::create_dir(&root).unwrap();
        let claimed = claim(&state, &root).unwrap();
        let refused = claim(&state, &root).unwrap_err().to_string();
        assert!(refused.contains(&format!("(process {})", std::process::id())), "{refused}");
        // Another user's state folder.
        let elsewhere = dir.path().join("elsewhere");
        let refused = claim(&elsewhere, &root).unwrap_err().to_string();
        assert!(refused.contains(&format!("(process {})", std::process::id())), "{refused}");
        drop(claimed);
        drop(claim(&elsewhere, &root).unwrap());
        claim(&state, &root).unwrap();
        let missing = dir.path().join("missing");
        claim(&state, &missing).unwrap();
    }
}
