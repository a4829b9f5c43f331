//! Folders to files.

use crate::error::Error;
use crate::packed;
use std::io;
use std::path::{Path, PathBuf};
use transcript::format::{FORMATS, Root};
use walkdir::WalkDir;

/// A file to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// The folder that was asked for; `None` if the file itself was.
    pub root: Option<PathBuf>,
}

/// Files that end in `.jsonl` and lie in agents' folders, but are not transcripts.
const NOT_TRANSCRIPTS: &[&str] = &[".trajectory.jsonl"];

/// How deep folders may be nested below a root.
pub const DEPTH_MAX: usize = 32;

/// The files below a path, in the order of their names; the path itself if it is no folder. Links are not
/// followed. What cannot be read is reported among the files.
pub fn find(path: &Path) -> Vec<Result<Found, Error>> {
    if !path.is_dir() {
        return vec![Ok(Found { path: path.to_path_buf(), root: None })];
    }
    let walk = WalkDir::new(path).max_depth(DEPTH_MAX).sort_by_file_name().into_iter();
    walk.filter_map(|entry| match entry {
        // Pipes and links are among them, to be refused by name.
        Ok(entry) => (!entry.file_type().is_dir())
            .then(|| entry.into_path())
            .filter(|path| is_candidate(path) || packed::is_candidate(path))
            .map(|file| Ok(Found { path: file, root: Some(path.to_path_buf()) })),
        Err(error) => {
            let at = error.path().unwrap_or(path).to_path_buf();
            // As a whole it names the path once more.
            let whole = error.to_string();
            let cause = error.into_io_error().unwrap_or_else(|| io::Error::other(whole));
            Some(Err(Error::new(&at, "look into the folder", cause)))
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

/// The folders of known agents that exist here.
pub fn known_roots() -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let roots = FORMATS.iter().flat_map(|format| format.roots());
    let mut folders: Vec<PathBuf> = roots.flat_map(|root| expand(root, home.as_deref())).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Where such folders may yet come: of what is missing the nearest folder above that is there, and each in which any
/// name will do.
pub fn known_roots_above() -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let mut above = Vec::new();
    for root in FORMATS.iter().flat_map(|format| format.roots()) {
        let mut folders: Vec<PathBuf> = base(root, home.as_deref()).into_iter().collect();
        for part in root.below.split('/').map(Some).chain([None]) {
            for folder in &folders {
                let there = folder.ancestors().find(|above| above.is_dir());
                let grows = part == Some("*") || there != Some(folder);
                above.extend(there.filter(|_| grows).map(Path::to_path_buf));
            }
            let Some(part) = part else { break };
            folders = folders.into_iter().flat_map(|folder| step(&folder, part)).collect();
        }
    }
    above.sort();
    above.dedup();
    above
}

pub(crate) fn expand(root: &Root, home: Option<&Path>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = base(root, home).into_iter().collect();
    for part in root.below.split('/') {
        folders = folders.into_iter().flat_map(|folder| step(&folder, part)).collect();
    }
    folders.retain(|folder| folder.is_dir());
    folders
}

fn base(root: &Root, home: Option<&Path>) -> Option<PathBuf> {
    let moved = root.env.and_then(std::env::var_os).filter(|value| !value.is_empty()).map(PathBuf::from);
    moved.or_else(|| home.map(|home| home.join(root.home)))
}

fn step(folder: &Path, part: &str) -> Vec<PathBuf> {
    if part != "*" {
        return vec![folder.join(part)];
    }
    let inside = std::fs::read_dir(folder).into_iter().flatten().flatten();
    inside.map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink()).collect()
}
