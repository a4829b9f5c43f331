//! Where agents keep their sessions on this machine.

use std::path::{Path, PathBuf};
use transcript::format::{FORMATS, Root};

/// The folders of known agents that exist here.
pub fn known_roots() -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let roots = FORMATS.iter().flat_map(|format| format.roots);
    let mut folders: Vec<PathBuf> = roots.flat_map(|root| expand(root, home.as_deref())).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Where [`known_roots`] looks, whether it is there or not, the usual folders first. A `*` stands for any name.
pub fn searched_roots() -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let usual = FORMATS.iter().filter_map(|format| format.roots.first());
    let other = FORMATS.iter().flat_map(|format| format.roots.iter().skip(1));
    usual.chain(other).filter_map(|root| Some(base(root, home.as_deref())?.join(root.below))).collect()
}

/// Folders to watch for folders to appear that match a format's roots or these: the nearest existing parent of each missing one, and
/// each in which any name will do.
pub(crate) fn roots_above<'r>(more: impl Iterator<Item = &'r Root>, home: Option<&Path>) -> Vec<PathBuf> {
    let mut above = Vec::new();
    for root in FORMATS.iter().flat_map(|format| format.roots).chain(more) {
        let mut folders: Vec<PathBuf> = base(root, home).into_iter().collect();
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
    above
}

/// The existing folders that match a root.
pub(crate) fn expand(root: &Root, home: Option<&Path>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = base(root, home).into_iter().collect();
    for part in root.below.split('/') {
        folders = folders.into_iter().flat_map(|folder| step(&folder, part)).collect();
    }
    folders.retain(|folder| folder.is_dir());
    folders
}

/// Whether a folder below the user's own is that of an agent.
pub(crate) fn is_home(name: &str) -> bool {
    let mut roots = FORMATS.iter().flat_map(|format| format.roots);
    roots.any(|root| root.home.split('/').next() == Some(name))
}

/// The folder that a root begins with.
pub(crate) fn base(root: &Root, home: Option<&Path>) -> Option<PathBuf> {
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
