//! Folders to files, and what the name of a file says.

use crate::ask::error::Error;
use crate::jobs::stored;
use crate::places::found::FoundFile;
use crate::places::store;
use std::io;
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// Files that end in `.jsonl` and lie in agents' folders, but are not transcripts.
const NOT_TRANSCRIPTS: &[&str] = &[".trajectory.jsonl", "resume-head.jsonl"];

/// How the names of transcripts end that their agent has compressed.
const PACKED_END: &str = ".jsonl.zst";

/// How deep folders may be nested below a root.
pub const DEPTH_MAX: usize = 32;

/// The files below some paths, in the order of their names; a path itself if it is not a folder. Links are not followed. In
/// the place of a store are the sessions in it. What cannot be read is reported among the files.
pub fn find(paths: &[impl AsRef<Path>]) -> Vec<Result<FoundFile, Error>> {
    let mut all = Vec::new();
    for path in paths.iter().map(AsRef::as_ref) {
        if path.is_dir() {
            let walk = WalkDir::new(path).max_depth(DEPTH_MAX).sort_by_file_name();
            all.extend(walk.into_iter().flat_map(|entry| below(path, entry)));
        } else if store::may_be_read(path) && path.is_file() {
            all.extend(stored::sessions(path, None));
        } else {
            let written = store::split(path).and_then(|(file, session)| stored::written(file, session));
            all.push(Ok(FoundFile { path: path.to_path_buf(), root: None, written }));
        }
    }
    all
}

/// What an entry of a folder below `root` stands for.
fn below(root: &Path, entry: walkdir::Result<DirEntry>) -> Vec<Result<FoundFile, Error>> {
    match entry {
        Ok(entry) if entry.file_type().is_dir() => Vec::new(),
        Ok(entry) if entry.file_type().is_file() && store::is_read(entry.path()) => {
            stored::sessions(entry.path(), Some(root))
        }
        // Pipes and links are among them, to be refused by name.
        Ok(entry) if is_candidate(entry.path()) || is_packed_candidate(entry.path()) => {
            vec![Ok(FoundFile::file(entry.path(), Some(root)))]
        }
        Ok(_) => Vec::new(),
        Err(error) => {
            let at = error.path().unwrap_or(root).to_path_buf();
            // As a whole it names the path once more.
            let whole = error.to_string();
            let cause = error.into_io_error().unwrap_or_else(|| io::Error::other(whole));
            vec![Err(Error::new(&at, "read the folder", cause))]
        }
    }
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
