//! Real transcripts, and what is said where there are none.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The transcripts below `$TAILOR_CORPUS`, in the order of their names.
pub(crate) fn real_files() -> Option<Vec<PathBuf>> {
    let Some(folder) = std::env::var_os("TAILOR_CORPUS") else {
        skipped("TAILOR_CORPUS names no folder of transcripts");
        return None;
    };
    let mut files = Vec::new();
    gather(Path::new(&folder), &mut files);
    assert!(!files.is_empty(), "{} holds no .jsonl file", Path::new(&folder).display());
    Some(files)
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
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

/// Prints what this machine cannot test, bypassing the harness, which hides the output of tests that pass.
pub(crate) fn skipped(what: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}
