//! Folders to files, and what the name of a file says.

use crate::ask::error::Error;
use crate::jobs::stored;
use crate::places::found::FoundFile;
use crate::places::roots::is_home;
use crate::places::store;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, WalkBuilder};
use std::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};

/// Files that end in `.jsonl` and lie in agents' folders, but are not transcripts.
const NOT_TRANSCRIPTS: &[&str] = &[".trajectory.jsonl", "resume-head.jsonl"];

/// How the names of transcripts end that their agent has compressed.
const PACKED_END: &str = ".jsonl.zst";

/// How deep folders may be nested below a root.
pub const DEPTH_MAX: usize = 32;

/// What is left out below a folder. A path that is named is not.
#[derive(Clone, Debug, Default)]
pub struct LeftOut {
    /// Files and folders that match one of these globs, in the notation of `.gitignore`.
    pub globs: Vec<String>,
    /// Also what `.gitignore` and `.ignore` name in the folder and below it, and hidden folders other than those of agents.
    pub ignored: bool,
    /// Files and folders that match globs of another folder.
    pub elsewhere: Option<FolderGlobs>,
}

/// Globs in the notation of `.gitignore`, for what lies below a folder.
#[derive(Clone, Debug)]
pub struct FolderGlobs {
    folder: PathBuf,
    globs: Gitignore,
}

impl FolderGlobs {
    /// An error if a glob cannot be read.
    pub fn new(folder: &Path, globs: &[String]) -> Result<Self, String> {
        let mut all = GitignoreBuilder::new(folder);
        all.allow_unclosed_class(false);
        for glob in globs {
            all.add_line(None, glob).map_err(|error| error.to_string())?;
        }
        let globs = all.build().map_err(|error| error.to_string())?;
        Ok(Self { folder: folder.to_path_buf(), globs })
    }

    /// Whether a path below the folder matches, or a folder around it.
    pub fn match_path(&self, path: &Path) -> bool {
        let (folder, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Ok(whole) = folder.canonicalize().map(|folder| folder.join(name)) else { return false };
        let below = whole.strip_prefix(&self.folder);
        below.is_ok_and(|below| self.globs.matched_path_or_any_parents(below, whole.is_dir()).is_ignore())
    }
}

impl LeftOut {
    /// Whether nothing is left out.
    pub fn is_nothing(&self) -> bool {
        self.globs.is_empty() && !self.ignored && self.elsewhere.is_none()
    }

    fn walk(&self, root: &Path) -> ignore::Walk {
        let mut walk = WalkBuilder::new(root);
        walk.standard_filters(false).max_depth(Some(DEPTH_MAX)).sort_by_file_name(Ord::cmp);
        let ignores = self.ignored && !is_at_home(root);
        if ignores {
            walk.ignore(true).git_ignore(true).require_git(false);
        }
        let globs = self.globs_below(root);
        walk.filter_entry(move |entry| {
            let is_out = |globs: &FolderGlobs| entry.depth() > 0 && globs.match_path(entry.path());
            !(ignores && is_hidden(entry) || globs.iter().any(is_out))
        });
        walk.build()
    }

    fn globs_below(&self, root: &Path) -> Vec<FolderGlobs> {
        let own = root.canonicalize().ok().filter(|_| !self.globs.is_empty());
        // They have been checked.
        let own = own.and_then(|root| FolderGlobs::new(&root, &self.globs).ok());
        own.into_iter().chain(self.elsewhere.clone()).collect()
    }
}

/// Whether a folder is that of an agent, or below it. Some people keep it in a repository, and their sessions out of it.
fn is_at_home(path: &Path) -> bool {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    path.iter().any(|part| is_home(&part.to_string_lossy()))
}

/// Whether a folder below another one is hidden, and not the home of an agent.
fn is_hidden(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    entry.depth() > 0 && name.starts_with('.') && !is_home(&name)
}

/// The files below some paths, in the order of their names; a path itself if it is not a folder. Links are not followed. In
/// the place of a store are the sessions in it. What cannot be read is reported among the files.
pub fn find(paths: &[impl AsRef<Path>]) -> Vec<Result<FoundFile, Error>> {
    find_without(paths, &LeftOut::default())
}

/// Like [`find`], but for what is left out.
pub fn find_without(paths: &[impl AsRef<Path>], left_out: &LeftOut) -> Vec<Result<FoundFile, Error>> {
    let mut all = Vec::new();
    for path in paths.iter().map(AsRef::as_ref) {
        if path.is_dir() {
            all.extend(left_out.walk(path).flat_map(|entry| below(path, entry)));
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
fn below(root: &Path, entry: Result<DirEntry, ignore::Error>) -> Vec<Result<FoundFile, Error>> {
    let is = |entry: &DirEntry, kind: fn(&FileType) -> bool| entry.file_type().is_some_and(|own| kind(&own));
    match entry {
        Ok(entry) if is(&entry, FileType::is_dir) => Vec::new(),
        Ok(entry) if is(&entry, FileType::is_file) && store::is_read(entry.path()) => {
            stored::sessions(entry.path(), Some(root))
        }
        // Pipes and links are among them, to be refused by name.
        Ok(entry) if is_candidate(entry.path()) || is_packed_candidate(entry.path()) => {
            vec![Ok(FoundFile::file(entry.path(), Some(root)))]
        }
        Ok(_) => Vec::new(),
        Err(error) => {
            let at = path_of(&error).unwrap_or(root).to_path_buf();
            // As a whole it names the path once more.
            let whole = error.to_string();
            let cause = error.into_io_error().and_then(inner).unwrap_or_else(|| io::Error::other(whole));
            vec![Err(Error::new(&at, "read the folder", cause))]
        }
    }
}

/// The error of the system, without the path.
fn inner(error: io::Error) -> Option<io::Error> {
    error.downcast::<walkdir::Error>().map_or_else(Some, walkdir::Error::into_io_error)
}

/// The path that could not be read.
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
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
