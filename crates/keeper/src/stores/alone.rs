//! Makes sure that no other process has a database open, and that its owner cannot start, while rows are added, removed or linked.
//!
//! Three checks: the list of processes, the owner's own lock if it has one, and SQLite's exclusive mode, which fails while any
//! other process has the database open, visible or not. All three end with this process.

use super::database::connect_plainly;
use super::kind::Mend;
use super::rows::hex;
use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::running::AgentLife;
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::disk::folder::Place;
use crate::places::store::Store;
use crate::platform::identity::FileId;
use crate::platform::metadata::{self, MetadataExt};
use crate::platform::owner::{self, number};
use crate::platform::{System, This};
use hmac_sha256::Hash;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::io;
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
            _ => Error::new(&path, "take the owner's lock", io::Error::other(error)).into(),
        };
        if !prepare(&path).map_err(|cause| Error::new(&path, "take the owner's lock", cause))? {
            return Err(Refusal::StoreStays(foreign_lock(&path, mend)).into());
        }
        let lock = connect_plainly(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fail)?;
        lock.busy_timeout(LOCK_MAX).map_err(fail)?;
        lock.execute_batch("BEGIN EXCLUSIVE").map_err(fail)?;
        Ok(Self { _lock: Some(lock) })
    }
}

/// Sees to it that there is a lock, which nobody but the owner of the database can have made. `false` if somebody else may have: anybody
/// can make a folder of this name in `/tmp`, and what lies in it may lead anywhere.
fn prepare(lock: &Path) -> io::Result<bool> {
    let (Some(folder), Some(name)) = (lock.parent(), lock.file_name()) else { return Ok(false) };
    let place = Place::hold(folder)?;
    let folder = match place.make_child(place.name()) {
        Err(cause) if metadata::is_link(&cause) || cause.kind() == io::ErrorKind::NotADirectory => {
            return Ok(false);
        }
        folder => folder?,
    };
    if !owner::is_private(folder.file(), &metadata::of_file(folder.file())?) {
        return Ok(false);
    }
    let made = match folder.create(name) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => folder.metadata_of(name)?,
        made => Some(metadata::of_file(&made?)?),
    };
    Ok(made.is_some_and(|made| made.is_file() && made.nlink() == 1))
}

/// Why a lock of somebody else's cannot be taken.
fn foreign_lock(lock: &Path, mend: &Mend) -> String {
    let folder = lock.parent().unwrap_or(lock).display();
    format!(
        "{folder} is where {} keeps its lock, and somebody else may write there (remove it, if it is not yours)",
        mend.owner
    )
}

/// Defers if another visible process has the database open.
pub(super) fn nobody_seen(file: &Path) -> Result<(), Stop> {
    let fail = |cause| Error::new(file, Error::OPEN, cause);
    let id = FileId::from_metadata(&metadata::at(file).map_err(fail)?);
    let own = std::process::id();
    // Do not open the file here: closing it would release SQLite's locks.
    if !This::shows_files() {
        let owner = Store::for_path(file).map(|store| AgentLife::of_agent(store.agent));
        return owner.and_then(AgentLife::deferral).map_or(Ok(()), |runs| Err(runs.into()));
    }
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
