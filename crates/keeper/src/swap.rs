//! A file replaced by a [`NewText`], until the recipe in `replace` takes one itself.

use crate::error::Error;
use crate::new_text::NewText;
use crate::outcome::Deferral;
use crate::snapshot::Snapshot;
use rustix::fs::{Mode, OFlags, Timespec, Timestamps};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Writes the text beside the file, makes it last, and renames it over the file if that is still the one that was
/// read.
pub(crate) fn swap(snapshot: &Snapshot, text: &dyn NewText) -> Result<Result<(), Deferral>, Error> {
    let path = &snapshot.path;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let temporary =
        folder.join(format!(".tailor-undo-{}-{}.tmp", std::process::id(), snapshot.metadata.ino()));
    let done = write(snapshot, text, &temporary)
        .map_err(|cause| Error::new(path, "write the old text beside it", cause))
        .and_then(|()| {
            if !snapshot.is_current()? {
                return Ok(Err(Deferral::Changed));
            }
            let renamed = std::fs::rename(&temporary, path).and_then(|()| File::open(folder)?.sync_all());
            renamed.map(Ok).map_err(|cause| Error::new(path, "replace the file", cause))
        });
    if !matches!(done, Ok(Ok(()))) {
        let _ = std::fs::remove_file(&temporary);
    }
    done
}

fn write(snapshot: &Snapshot, text: &dyn NewText, temporary: &Path) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut file = File::from(rustix::fs::open(temporary, flags, Mode::RUSR | Mode::WUSR)?);
    text.write(&snapshot.file, &mut file)?;
    let (old, new) = (&snapshot.metadata, file.metadata()?);
    if new.len() != text.length() {
        return Err(io::Error::other("it is not as long as it should be"));
    }
    if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
        std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time(old.atime(), old.atime_nsec()),
        last_modification: time(old.mtime(), old.mtime_nsec()),
    };
    rustix::fs::futimens(&file, &times)?;
    file.sync_all()
}
