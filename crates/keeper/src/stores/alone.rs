//! Makes sure that no other process has a database open, and that its owner cannot start, while rows are added, removed or linked.
//!
//! Three checks: the list of processes, the owner's own lock if it has one, and SQLite's exclusive mode, which fails while any
//! other process has the database open, visible or not. All three end with this process.

use super::kind::Mend;
use super::rows::hex;
use crate::deferral::Deferral;
use crate::error::Error;
use crate::folder::Folder;
use crate::identity::FileId;
use crate::platform::metadata;
use crate::platform::owner::number;
use crate::platform::{System, This};
use crate::stop::Stop;
use hmac_sha256::Hash;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// How long to wait for the owner's lock.
const LOCK_MAX: Duration = Duration::from_millis(200);

/// How long a child process takes to run its own program.
const START_MAX: Duration = Duration::from_millis(50);

/// The owner's lock, which we hold.
pub(super) struct Alone {
    _lock: Option<Connection>,
}

impl Alone {
    /// Takes the owner's lock, if there is one, after checking that no visible process has the database open.
    pub(super) fn enter(file: &Path, mend: &Mend) -> Result<Self, Stop> {
        nobody_seen(file)?;
        let Some(path) = (mend.lock)(file) else { return Ok(Self { _lock: None }) };
        let busy = || Stop::from(Deferral::Busy { agent: mend.owner, lock: "lock" });
        let fail = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => busy(),
            _ => Error::new(&path, "take the owner's lock", std::io::Error::other(error)).into(),
        };
        path.parent()
            .map_or(Ok(()), |folder| Folder::make(folder).map(drop))
            .map_err(|cause| Error::new(&path, "take the owner's lock", cause))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let lock =
            Connection::open_with_flags(&path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(fail)?;
        lock.busy_timeout(LOCK_MAX).map_err(fail)?;
        lock.execute_batch("BEGIN EXCLUSIVE").map_err(fail)?;
        Ok(Self { _lock: Some(lock) })
    }
}

/// Defers if another visible process has the database open.
pub(super) fn nobody_seen(file: &Path) -> Result<(), Stop> {
    let fail = |cause| Error::new(file, Error::OPEN, cause);
    let id = FileId::from_metadata(&metadata::at(file).map_err(fail)?);
    let own = std::process::id();
    // Do not open the file here: closing it would release SQLite's locks.
    let other = || This::holders_at(file, id).into_iter().find(|holder| holder.pid != own);
    if other().is_none() {
        return Ok(());
    }
    // A child process of ours shares our open files until it runs its own program.
    sleep(START_MAX);
    other().map_or(Ok(()), |holder| Err(Deferral::Open { pid: holder.pid, name: holder.name }.into()))
}

/// OpenClaw's lock for a state directory: a database in a per-user folder, named after the hash of the path of the state's
/// database. `None` if the file is not in a state directory.
pub(super) fn openclaws_lock(file: &Path) -> Option<PathBuf> {
    let folder = file.parent().filter(|folder| folder.ends_with("agent"))?;
    let state = folder.parent()?.parent().filter(|agents| agents.ends_with("agents"))?.parent()?;
    let state = metadata::real_path(&state.join("state/openclaw.sqlite")).ok()?;
    let (locks, user) = (metadata::real_path(Path::new(LOCKS)).ok()?, number(&metadata::at(file).ok()?)?);
    let hash = Hash::hash(state.as_os_str().as_encoded_bytes());
    let key = hex(&hash[..4]);
    Some(
        locks
            .join(format!("openclaw-state-locks-{user}"))
            .join(format!("gateway-lifecycle.{key}.lock.sqlite")),
    )
}

/// Where OpenClaw creates these folders.
const LOCKS: &str = "/tmp";

#[cfg(test)]
mod tests {
    use super::*;

    /// The key in the name of the lock of a real OpenClaw.
    #[test]
    fn the_key_is_openclaws() {
        let state = ["", "home", "u", ".openclaw/state/openclaw.sqlite"].join("/");
        assert_eq!(&hex(&Hash::hash(state.as_bytes()))[..8], "1454932d");
    }
}
