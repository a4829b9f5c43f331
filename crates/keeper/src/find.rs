//! Folders to files, and what the name of a file says.

use crate::error::Error;
use crate::found::FoundFile;
use crate::{store, stored};
use std::io;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Files that end in `.jsonl` and lie in agents' folders, but are not transcripts.
const NOT_TRANSCRIPTS: &[&str] = &[".trajectory.jsonl", "resume-head.jsonl"];

/// How the names of transcripts end that their agent has compressed.
const PACKED_END: &str = ".jsonl.zst";

/// How deep folders may be nested below a root.
pub const DEPTH_MAX: usize = 32;

/// The files below a path, in the order of their names; the path itself if it is not a folder. Links are not
/// followed. In the place of a store are the sessions in it. What cannot be read is reported among the files.
pub fn find(path: &Path) -> Vec<Result<FoundFile, Error>> {
    if store::may_be_read(path) && path.is_file() {
        return stored::sessions(path, None);
    }
    if let Some((file, session)) = store::split(path) {
        let written = stored::written(file, session);
        return vec![Ok(FoundFile { written, ..FoundFile::file(path, None) })];
    }
    if !path.is_dir() {
        return vec![Ok(FoundFile::file(path, None))];
    }
    let walk = WalkDir::new(path).max_depth(DEPTH_MAX).sort_by_file_name().into_iter();
    walk.flat_map(|entry| match entry {
        Ok(entry) if entry.file_type().is_file() && store::is_read(entry.path()) => {
            stored::sessions(entry.path(), Some(path))
        }
        // Pipes and links are among them, to be refused by name.
        Ok(entry) => (!entry.file_type().is_dir())
            .then(|| entry.into_path())
            .filter(|path| is_candidate(path) || is_packed_candidate(path))
            .map(|file| Ok(FoundFile::file(&file, Some(path))))
            .into_iter()
            .collect(),
        Err(error) => {
            let at = error.path().unwrap_or(path).to_path_buf();
            // As a whole it names the path once more.
            let whole = error.to_string();
            let cause = error.into_io_error().unwrap_or_else(|| io::Error::other(whole));
            vec![Err(Error::new(&at, "read the folder", cause))]
        }
    })
    .collect()
}

/// Whether a file is called as transcripts are, and not as what lies beside them.
pub fn is_candidate(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".jsonl")
        && !name.starts_with('.')
        && !name.contains(".checkpoint.")
        && !NOT_TRANSCRIPTS.iter().any(|ending| name.ends_with(ending))
}

/// The path of the plain transcript of a compressed one, whether it exists or not; `None` for other files.
pub(crate) fn plain(path: &Path) -> Option<PathBuf> {
    let name =
        path.file_name()?.to_str().filter(|name| name.ends_with(PACKED_END) && !name.starts_with('.'))?;
    Some(path.with_file_name(name.strip_suffix(".zst")?))
}

/// Whether a file is a compressed transcript without a plain one beside it.
fn is_packed_candidate(path: &Path) -> bool {
    plain(path).is_some_and(|plain| !plain.exists())
}
