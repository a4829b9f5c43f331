//! The transcripts in a folder, in the order of their names.

use std::fs;
use std::path::{Path, PathBuf};

/// Adds all below a folder.
pub(crate) fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut inside: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    inside.sort();
    for path in inside {
        if path.is_dir() {
            gather(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(path);
        }
    }
}
