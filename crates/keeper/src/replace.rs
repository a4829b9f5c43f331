//! How a transcript is replaced.

use crate::error::Error;
use crate::outcome::Deferral;
use crate::snapshot::Snapshot;
use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use transcript::plan::{Piece, Plan};

/// What is to be replaced by what.
pub(crate) struct Target<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) plan: &'a Plan,
    pub(crate) backup: bool,
}

/// Replaces a file by what the plan makes of it:
///
/// 1. Write the new text to a temporary file in the same folder, under a name that no agent looks for; give it
///    the mode, owner and times of the old file; fsync.
/// 2. Keep the old file under a second name, if asked to.
/// 3. Is the path still the file that was read, byte for byte as far as its identity tells? If not, give up.
/// 4. Rename the temporary file over the path.
/// 5. fsync the folder.
///
/// A crash at any step leaves the old bytes or the new ones at the path. What another program appends between
/// 3 and 4 is only in the copy that step 2 keeps: the lease that closes this gap belongs between them.
pub(crate) fn replace(target: &Target<'_>) -> Result<Result<String, Deferral>, Error> {
    let path = &target.snapshot.path;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let run = run_name(target);
    let temporary = folder.join(format!(".tailor-{run}.tmp"));
    let guard = render(target, &temporary)?;
    let backup = target.backup.then(|| keep_old(path, folder, &run)).transpose()?;
    if !target.snapshot.is_current()? {
        if let Some(backup) = backup {
            let _ = std::fs::remove_file(backup);
        }
        return Ok(Err(Deferral::Changed));
    }
    std::fs::rename(&temporary, path).map_err(|cause| Error::new(path, "replace the file", cause))?;
    guard.disarm();
    sync_folder(folder)?;
    Ok(Ok(run))
}

/// The same for the same file and plan, different for different ones.
fn run_name(target: &Target<'_>) -> String {
    let metadata = &target.snapshot.metadata;
    format!("{:x}-{:x}-{:x}", metadata.ino(), metadata.mtime(), target.plan.length_after())
}

/// Removes a temporary file unless told that it is none any more.
struct Temporary<'a>(Option<&'a Path>);

impl Temporary<'_> {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn render<'t>(target: &Target<'_>, temporary: &'t Path) -> Result<Temporary<'t>, Error> {
    let fail = |cause| Error::new(&target.snapshot.path, "write the new text beside it", cause);
    // A leftover of a run that was killed has the same name only if it would have had the same content.
    let _ = std::fs::remove_file(temporary);
    let mut file = create(temporary).map_err(fail)?;
    let guard = Temporary(Some(temporary));
    write_pieces(&target.snapshot.file, target.plan, &mut file).map_err(fail)?;
    like_old(target.snapshot, &file).map_err(fail)?;
    file.sync_all().map_err(fail)?;
    Ok(guard)
}

fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?))
}

fn write_pieces(original: &File, plan: &Plan, out: &mut File) -> io::Result<()> {
    for piece in plan.pieces() {
        match piece {
            Piece::New(bytes) => out.write_all(&bytes)?,
            Piece::Kept(span) | Piece::Moved(span) => {
                // The kernel copies, without our memory.
                let mut from = original;
                from.seek(SeekFrom::Start(span.start))?;
                let copied = io::copy(&mut from.take(span.len()), out)?;
                if copied < span.len() {
                    return Err(io::Error::other("the file shrank meanwhile"));
                }
            }
        }
    }
    Ok(())
}

/// Gives the new file the owner, mode and times of the old one: pickers sort by them, retention deletes by them.
fn like_old(snapshot: &Snapshot, file: &File) -> io::Result<()> {
    let old = &snapshot.metadata;
    let new = file.metadata()?;
    if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
        std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(std::fs::Permissions::from_mode(old.mode() & 0o7777))?;
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time(old.atime(), old.atime_nsec()),
        last_modification: time(old.mtime(), old.mtime_nsec()),
    };
    Ok(rustix::fs::futimens(file, &times)?)
}

/// Gives the old file a second name that survives the rename. It costs no space of its own while nothing
/// changes, and no time at all.
fn keep_old(path: &Path, folder: &Path, run: &str) -> Result<PathBuf, Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let backup = folder.join(format!(".{name}.{run}.tailor-bak"));
    let fail = |cause| Error::new(path, "keep the old file (--no-backup does without)", cause);
    match std::fs::hard_link(path, &backup) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(fail),
    }?;
    let _ = AtFlags::empty();
    Ok(backup)
}

fn sync_folder(folder: &Path) -> Result<(), Error> {
    let sync = || File::open(folder)?.sync_all();
    sync().map_err(|cause| Error::new(folder, "make the new name last", cause))
}

/// Writes what the plan makes of a file to a new one, which must not exist.
pub(crate) fn copy_to(snapshot: &Snapshot, plan: &Plan, path: &Path) -> Result<(), Error> {
    let fail = |cause| Error::new(path, "write the mended copy", cause);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    let mut file = create(path).map_err(fail)?;
    let guard = Temporary(Some(path));
    write_pieces(&snapshot.file, plan, &mut file).map_err(fail)?;
    file.sync_all().map_err(fail)?;
    guard.disarm();
    Ok(())
}
