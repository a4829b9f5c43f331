//! Which roots there are, whose they are, and how they stand.

use super::Daemon;
use super::report::{name, plain};
use crate::config::Roots;
use crate::event::RootState;
use crate::instance::{Claim, Taken, claim};
use crate::queue::RootId;
use crate::root_discovery::RootDiscovery;
use crate::root_watcher::{RootWatch, Task};
use keeper::known_roots;
use std::path::{Path, PathBuf};
use tracing::{error, info, warn};

/// A root that is watched.
pub(super) struct Watched {
    pub(super) id: RootId,
    pub(super) path: PathBuf,
    pub(super) state: Option<RootState>,
    pub(super) folders: usize,
    claim: Claim,
    /// Closed when it is dropped.
    watch: RootWatch,
}

impl Daemon {
    fn wanted(&self) -> Vec<PathBuf> {
        let mut wanted = match &self.config.roots {
            Roots::Known => known_roots(),
            Roots::These(paths) => paths.clone(),
        };
        for path in &mut wanted {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
        each_once(wanted)
    }

    /// Watches each root that is not watched yet. Returns why some could not be.
    pub(super) fn open_roots(&mut self) -> Vec<Taken> {
        let mut refused = Vec::new();
        let before = std::mem::take(&mut self.taken);
        for path in self.wanted() {
            if self.roots.iter().any(|root| root.path == path) {
                continue;
            }
            match claim(&self.config.state, &path) {
                Ok(claim) => self.open_root(path, claim),
                Err(taken) => {
                    let why = plain(&taken.to_string());
                    if before.get(&path) != Some(&why) {
                        let root = name(&path);
                        error!(event = "root", root, state = "taken", reason = why, "{root}: {why}");
                    }
                    self.taken.insert(path, why);
                    refused.push(taken);
                }
            }
        }
        self.metrics.roots.set(i64::try_from(self.roots.len()).unwrap_or(i64::MAX));
        refused
    }

    /// Looks out for folders of agents that are not there yet, unless it is known what to look after.
    pub(super) fn discover_roots(&mut self) {
        self.discovery = None;
        if self.config.roots == Roots::Known {
            match RootDiscovery::spawn(self.events.clone()) {
                Ok(discovery) => self.discovery = Some(discovery),
                Err(cause) => {
                    error!(event = "trouble", reason = %cause, "could not watch for new agents: {cause}");
                }
            }
        }
    }

    fn open_root(&mut self, path: PathBuf, claim: Claim) {
        let id = self.roots_opened;
        self.roots_opened += 1;
        let task = Task {
            id,
            root: path.clone(),
            rescan: self.config.rescan,
            settle: self.looker.enforces().then(|| self.config.vault.clone()),
            out: self.events.clone(),
        };
        match RootWatch::spawn(task) {
            Ok(watch) => self.roots.push(Watched { id, path, state: None, folders: 0, claim, watch }),
            Err(cause) => {
                error!(event = "root", root = %path.display(), "{}: could not watch the root: {cause}", path.display());
            }
        }
    }

    /// Takes up new roots, lets go of old ones, and looks at all that stay from the start.
    pub(super) fn reopen_roots(&mut self) {
        let wanted = self.wanted();
        for root in std::mem::take(&mut self.roots) {
            if wanted.contains(&root.path) {
                // Who claimed it keeps it.
                drop(root.watch);
                self.queue.renumber(root.id, self.roots_opened);
                self.open_root(root.path, root.claim);
            } else {
                self.queue.drop_root(root.id);
                info!(event = "root", root = %root.path.display(), "no longer watched");
            }
        }
        drop(self.open_roots());
        self.discover_roots();
        self.told.retain(|path, _| self.queue.knows(path));
        self.too_long.retain(|path, _| self.queue.knows(path));
    }

    /// Says how a root stands, when that has changed.
    pub(super) fn root_stands(&mut self, id: RootId, state: RootState, folders: usize) {
        let Some(root) = self.roots.iter_mut().find(|root| root.id == id) else { return };
        root.folders = folders;
        if root.state.as_ref() != Some(&state) {
            tell(&root.path, &state, folders);
            root.state = Some(state);
        }
        let watched = self.roots.iter().filter(|root| root.state == Some(RootState::Watched)).count();
        let folders: usize = self.roots.iter().map(|root| root.folders).sum();
        self.metrics.roots_watched.set(i64::try_from(watched).unwrap_or(i64::MAX));
        self.metrics.folders.set(i64::try_from(folders).unwrap_or(i64::MAX));
    }

    pub(super) fn name_of(&self, id: RootId) -> String {
        let root = self.roots.iter().find(|root| root.id == id);
        root.map(|root| name(&root.path)).unwrap_or_default()
    }
}

/// Each folder once, under its own name if that is among the paths: an agent's older homes may be links to the newer
/// one. What lies inside another root is looked after with it.
fn each_once(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut found: Vec<(PathBuf, PathBuf)> = paths.into_iter().map(|path| (real(&path), path)).collect();
    found.sort_by(|(one, path), (other, by)| (one, path != one, path).cmp(&(other, by != other, by)));
    found.dedup_by(|(one, _), (other, _)| one == other);
    let all: Vec<PathBuf> = found.iter().map(|(real, _)| real.clone()).collect();
    let inside = |path: &PathBuf| all.iter().any(|other| other != path && path.starts_with(other));
    found.into_iter().filter(|(real, _)| !inside(real)).map(|(_, path)| path).collect()
}

fn tell(path: &Path, state: &RootState, folders: usize) {
    let root = name(path);
    match state {
        RootState::Watched => info!(event = "root", root, state = "watched", folders, "{root}: watched"),
        RootState::Polled(why) => {
            warn!(event = "root", root, state = "polled", reason = why, "{root}: walked periodically: {why}");
        }
        RootState::Missing => {
            warn!(event = "root", root, state = "missing", "{root}: does not exist yet; waiting for it");
        }
        RootState::Unreadable(why) => {
            error!(
                event = "root",
                root,
                state = "unreadable",
                reason = why,
                "{root}: could not read the root: {why}"
            );
        }
    }
}
