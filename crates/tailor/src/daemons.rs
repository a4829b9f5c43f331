//! Where daemons on this machine answer: the sockets in the service manager's folders, and those that enabled units
//! will create. And which sessions they repair.

use keeper::store_file;
use std::fs::read_dir;
use std::path::{Path, PathBuf, absolute};
use std::sync::OnceLock;

/// The service manager creates folders for sockets here, and lists enabled units.
const RUN: &str = "/run";
const UNITS: &str = "/etc/systemd/system";

/// The sockets of all daemons that are known to the service manager.
pub(crate) fn all_sockets() -> Vec<PathBuf> {
    sockets(RUN.as_ref(), UNITS.as_ref())
}

/// The running daemons, which are asked when somebody wants to know.
pub(crate) struct Daemons {
    /// The user's own socket.
    own: PathBuf,
    statuses: OnceLock<Vec<watch::Status>>,
}

impl Daemons {
    pub(crate) fn new(own: PathBuf) -> Self {
        Self { own, statuses: OnceLock::new() }
    }

    /// Whether one of them watches this session in a database, and repairs it.
    pub(crate) fn repair_stored(&self, path: &Path) -> bool {
        let Ok(path) = absolute(path) else { return false };
        self.statuses.get_or_init(|| self.ask()).iter().any(|daemon| repairs_stored(daemon, &path))
    }

    fn ask(&self) -> Vec<watch::Status> {
        let mut sockets = all_sockets();
        sockets.push(self.own.clone());
        sockets.retain(|socket| socket.exists());
        sockets.dedup();
        watch::ask(&sockets).into_iter().flatten().collect()
    }
}

fn repairs_stored(daemon: &watch::Status, path: &Path) -> bool {
    let Some(file) = store_file(path) else { return false };
    let watches = |root: &watch::RootStatus| {
        ["watched", "polled"].contains(&root.state.as_str()) && file.starts_with(&root.path)
    };
    let is_left =
        |trouble: &watch::FileTrouble| trouble.outcome != "deferred" && Path::new(&trouble.path) == path;
    daemon.stores_mode == "enforce"
        && daemon.roots.iter().any(watches)
        && !daemon.troubles.iter().any(is_left)
}

/// The sockets of `tailor@USER` units, of users' own daemons, and of a system-wide one. `run` holds the folders of
/// sockets, and `units` the enabled units.
fn sockets(run: &Path, units: &Path) -> Vec<PathBuf> {
    let of_system = run.join("tailor");
    // Such a folder exists as long as its daemon. We may have no permission to see the socket in it.
    let systems = entries(&of_system).filter(|path| path.is_dir()).map(|folder| folder.join("status.sock"));
    let users = entries(&run.join("user")).map(|folder| folder.join("tailor/status.sock"));
    let found = users.chain([of_system.join("status.sock")]).filter(|socket| socket.exists());
    let enabled = enabled(units).map(|name| of_system.join(name).join("status.sock"));
    let mut sockets: Vec<PathBuf> = systems.chain(found).chain(enabled).collect();
    sockets.sort();
    sockets.dedup();
    sockets
}

/// The enabled instances of `tailor@.service`.
fn enabled(units: &Path) -> impl Iterator<Item = String> {
    let targets = entries(units).filter(|path| path.extension().is_some_and(|ending| ending == "wants"));
    targets.flat_map(|target| entries(&target)).filter_map(|unit| {
        let name = unit.file_name()?.to_str()?.strip_prefix("tailor@")?.strip_suffix(".service")?;
        Some(name.to_string())
    })
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[cfg(feature = "stores")]
    #[test]
    fn a_session_is_repaired_if_its_database_is_watched_and_the_daemon_may() {
        let root = |path: &str, state: &str| watch::RootStatus {
            path: path.into(),
            state: state.into(),
            ..watch::RootStatus::default()
        };
        let daemon = |mode: &str, root: watch::RootStatus| watch::Status {
            stores_mode: mode.into(),
            roots: vec![root],
            ..watch::Status::default()
        };
        let repairs = |daemon: &watch::Status| repairs_stored(daemon, "/h/a.sqlite#s".as_ref());
        let mut enforcing = daemon("enforce", root("/h/a.sqlite", "watched"));
        assert!(repairs(&enforcing) && repairs(&daemon("enforce", root("/h", "polled"))));
        assert!(!repairs(&daemon("observe", root("/h/a.sqlite", "watched"))));
        assert!(!repairs(&daemon("enforce", root("/h/b.sqlite", "watched"))));
        assert!(!repairs(&daemon("enforce", root("/h/a.sqlite", "taken"))));
        let trouble = |path: &str, outcome: &str| watch::FileTrouble {
            path: path.into(),
            outcome: outcome.into(),
            ..watch::FileTrouble::default()
        };
        enforcing.troubles = vec![trouble("/h/a.sqlite#s", "deferred"), trouble("/h/a.sqlite#t", "tripped")];
        assert!(repairs(&enforcing));
        enforcing.troubles.push(trouble("/h/a.sqlite#s", "tripped"));
        assert!(!repairs(&enforcing));
    }

    #[test]
    fn instances_are_found_by_their_folders_and_units() {
        let dir = tempfile::tempdir().unwrap();
        let (run, units) = (dir.path().join("run"), dir.path().join("units"));
        assert!(sockets(&run, &units).is_empty());
        for socket in ["tailor/bot/status.sock", "tailor/status.sock", "user/7/tailor/status.sock"] {
            create_dir_all(run.join(socket).parent().unwrap()).unwrap();
            write(run.join(socket), "").unwrap();
        }
        for unit in ["tailor@bot.service", "tailor@idle.service", "tailored.service"] {
            create_dir_all(units.join("multi-user.target.wants")).unwrap();
            write(units.join("multi-user.target.wants").join(unit), "").unwrap();
        }
        create_dir_all(run.join("user/8")).unwrap();
        let wanted = [
            "tailor/bot/status.sock",
            "tailor/idle/status.sock",
            "tailor/status.sock",
            "user/7/tailor/status.sock",
        ];
        assert_eq!(sockets(&run, &units), wanted.map(|socket| run.join(socket)));
    }
}
