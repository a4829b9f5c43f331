//! Where daemons on this machine answer: the sockets in the service manager's folders, and those that enabled units
//! will create.

use std::fs::read_dir;
use std::path::{Path, PathBuf};

/// The sockets of `tailor@USER` units, of users' own daemons, and of a system-wide one. `run` holds the folders of
/// sockets, and `units` the enabled units.
pub(super) fn sockets(run: &Path, units: &Path) -> Vec<PathBuf> {
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
