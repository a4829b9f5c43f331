//! The roots: which there are, which daemon has them, and their state.

use super::Daemon;
use super::report::name;
use crate::config::Roots;
use crate::daemon::event::RootState;
use crate::daemon::instance::{Claim, NotClaimed, claim};
use crate::daemon::queue::RootId;
use crate::daemon::root_discovery::RootDiscovery;
use crate::daemon::root_watcher::{RootWatch, WatchTask};
use keeper::{known_roots, known_stores, plain};
use std::path::{Path, PathBuf};
use tracing::{error, info, warn};

/// A root that is watched.
pub(super) struct Watched {
    pub(super) id: RootId,
    pub(super) path: PathBuf,
    pub(super) state: Option<RootState>,
    pub(super) folders: usize,
    claim: Claim,
    /// Stops watching when dropped.
    watch: RootWatch,
}

impl Daemon {
    fn wanted(&self) -> Vec<PathBuf> {
        let mut wanted = match &self.config.roots {
            Roots::Known => known_roots().into_iter().chain(known_stores()).collect(),
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
    pub(super) fn open_roots(&mut self) -> Vec<NotClaimed> {
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
                        error!(event = "root", root, watch_state = "taken", reason = why, "{root}: {why}");
                    }
                    self.taken.insert(path, why);
                    refused.push(taken);
                }
            }
        }
        self.metrics.roots.set(i64::try_from(self.roots.len()).unwrap_or(i64::MAX));
        refused
    }

    /// Watches for folders of agents that do not exist yet, unless the roots are configured.
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
        let task = WatchTask {
            id,
            root: path.clone(),
            rescan: self.config.rescan,
            vault: self.looker.enforces().then(|| self.config.vault.clone()),
            out: self.events.clone(),
        };
        match RootWatch::spawn(task) {
            Ok(watch) => self.roots.push(Watched { id, path, state: None, folders: 0, claim, watch }),
            Err(cause) => {
                error!(event = "root", root = %path.display(), "{}: could not watch the root: {cause}", path.display());
            }
        }
    }

    /// Adds new roots, removes old ones, and walks all others again.
    pub(super) fn reopen_roots(&mut self) {
        let wanted = self.wanted();
        for root in std::mem::take(&mut self.roots) {
            if wanted.contains(&root.path) {
                // The root is opened again under its claim.
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
        self.forget_gone();
    }

    /// Logs the state of a root, if it has changed.
    pub(super) fn root_stands(&mut self, id: RootId, state: RootState, folders: usize) {
        let Some(root) = self.roots.iter_mut().find(|root| root.id == id) else { return };
        root.folders = folders;
        if root.state.as_ref() != Some(&state) {
            log_state(&root.path, &state, folders);
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

/// Removes duplicate folders, preferring a folder's real name to a link: an agent's older home may be a link to the
/// newer one. A root inside another root is watched with it.
fn each_once(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut found: Vec<(PathBuf, PathBuf)> = paths.into_iter().map(|path| (real(&path), path)).collect();
    found.sort_by(|(one, path), (other, by)| (one, path != one, path).cmp(&(other, by != other, by)));
    found.dedup_by(|(one, _), (other, _)| one == other);
    let all: Vec<PathBuf> = found.iter().map(|(real, _)| real.clone()).collect();
    let inside = |path: &PathBuf| all.iter().any(|other| other != path && path.starts_with(other));
    found.into_iter().filter(|(real, _)| !inside(real)).map(|(_, path)| path).collect()
}

fn log_state(path: &Path, state: &RootState, folders: usize) {
    let root = name(path);
    match state {
        RootState::Watched => {
            info!(event = "root", root, watch_state = "watched", folders, "{root}: watched");
        }
        RootState::Polled(why) => {
            warn!(
                event = "root",
                root,
                watch_state = "polled",
                reason = why,
                "{root}: walked periodically: {why}"
            );
        }
        RootState::Missing => {
            warn!(
                event = "root",
                root,
                watch_state = "missing",
                "{root}: does not exist yet; waiting for it"
            );
        }
        RootState::Unreadable(why) => {
            error!(
                event = "root",
                root,
                watch_state = "unreadable",
                reason = why,
                "{root}: could not read the root: {why}"
            );
        }
    }
}
