//! Folders to files, and what the name of a file says.

use crate::ask::error::Error;
use crate::disk::folder::Folder;
use crate::jobs::stored;
use crate::places::found::FoundFile;
use crate::places::roots::is_home;
use crate::places::store;
use crate::platform::OFlags;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// Files that end in `.jsonl` and lie in agents' folders, but are not transcripts.
const NOT_TRANSCRIPTS: &[&str] = &[".trajectory.jsonl", "resume-head.jsonl"];

/// How the names of transcripts end that their agent has compressed.
const PACKED_END: &str = ".jsonl.zst";

/// How deep folders may be nested below a root.
pub const DEPTH_MAX: usize = 32;

/// Names of files that say what is to be left out of their folder. One of the first name decides before all of the second one.
const IGNORE_FILES: [&str; 2] = [".ignore", ".gitignore"];
/// Longer ones are not obeyed.
const IGNORE_BYTES_MAX: u64 = 1 << 20;

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

    /// What is found below a folder.
    fn walk(&self, root: &Path) -> Vec<Result<FoundFile, Error>> {
        let ignores = self.ignored && !is_at_home(root);
        let (globs, mut inside) = (self.globs_below(root), Ignored::default());
        let walk = WalkDir::new(root).max_depth(DEPTH_MAX).sort_by_file_name().into_iter();
        let mut is_ignored = |entry: &DirEntry| ignores && (is_hidden(entry) || inside.leave_out(entry));
        let mut is_left = |entry: &DirEntry| !match_any(&globs, entry.path()) && !is_ignored(entry);
        let entries = walk.filter_entry(|entry| entry.depth() == 0 || is_left(entry));
        let mut found: Vec<_> = entries.flat_map(|entry| below(root, entry)).collect();
        found.extend(inside.not_obeyed.into_iter().map(Err));
        found
    }

    fn globs_below(&self, root: &Path) -> Vec<FolderGlobs> {
        let own = root.canonicalize().ok().filter(|_| !self.globs.is_empty());
        // They have been checked.
        let own = own.and_then(|root| FolderGlobs::new(&root, &self.globs).ok());
        own.into_iter().chain(self.elsewhere.clone()).collect()
    }
}

/// What the ignore files on the way to where a walk is leave out.
#[derive(Default)]
struct Ignored {
    /// The folders around it, the innermost one last, with the globs of each of [`IGNORE_FILES`].
    folders: Vec<(PathBuf, [Gitignore; 2])>,
    not_obeyed: Vec<Error>,
}

impl Ignored {
    /// Whether an entry is left out. The folders around it have been asked about before.
    fn leave_out(&mut self, entry: &DirEntry) -> bool {
        let (path, is_folder) = (entry.path(), entry.file_type().is_dir());
        let Some(parent) = path.parent() else { return false };
        self.folders.retain(|(folder, _)| parent.starts_with(folder));
        if self.folders.last().is_none_or(|(folder, _)| folder != parent) {
            let globs = IGNORE_FILES.map(|name| self.read(parent, name));
            self.folders.push((parent.to_path_buf(), globs));
        }
        for name in 0..IGNORE_FILES.len() {
            for (folder, globs) in self.folders.iter().rev() {
                match globs[name].matched(path.strip_prefix(folder).unwrap_or(path), is_folder) {
                    Match::None => {}
                    decided => return decided.is_ignore(),
                }
            }
        }
        false
    }

    fn read(&mut self, folder: &Path, name: &str) -> Gitignore {
        globs_in(folder, name).unwrap_or_else(|cause| {
            self.not_obeyed.push(Error::new(&folder.join(name), "obey this ignore file", cause));
            Gitignore::empty()
        })
    }
}

fn match_any(globs: &[FolderGlobs], path: &Path) -> bool {
    globs.iter().any(|globs| globs.match_path(path))
}

/// The globs of an ignore file. A link is not followed: Git does not follow one either (`gitignore(5)`).
fn globs_in(folder: &Path, name: &str) -> io::Result<Gitignore> {
    let file = Folder::at(folder)?.map(|folder| folder.open_file(name, OFlags::RDONLY)).transpose()?;
    let Some(file) = file.flatten() else { return Ok(Gitignore::empty()) };
    let mut text = Vec::new();
    file.take(IGNORE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > IGNORE_BYTES_MAX {
        return Err(io::Error::other(format!("it is longer than {IGNORE_BYTES_MAX} bytes")));
    }
    let mut globs = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(&text).trim_start_matches('\u{feff}').lines() {
        // Like Git, we pass over a line that is no glob.
        let _ = globs.add_line(None, line);
    }
    globs.build().map_err(io::Error::other)
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
            all.extend(left_out.walk(path));
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
