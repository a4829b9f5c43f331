//! Which programs have a file open for writing, and how to keep them out.

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::stop::Stop;
#[cfg(test)]
use crate::base::step::fault;
use crate::base::step::{Step, before};
use crate::disk::lease::{Lease, Refused};
use crate::platform::identity::FileId;
use crate::platform::metadata::{self, Metadata};
use crate::platform::{System, This, network, owner, process};
use std::fs::File;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long to try to get a lease. Most programs open a file only for as long as an append takes, and none waits for us
/// meanwhile. Shorter in tests.
pub(crate) const PATIENCE: Duration =
    if cfg!(test) { Duration::from_millis(2) } else { Duration::from_millis(250) };

/// Pause between two looks at the open files of all processes, where there are no leases.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Takes a read lease on a file that was opened for reading. As long as it is held, no process has the file open for writing,
/// not even one that `/proc` does not show. `None` if there are no leases here and we see no process that has it open for
/// writing. A deferral if a process has.
pub(crate) fn keep_out<'f>(
    path: &Path,
    file: &'f File,
    metadata: &Metadata,
    patience: Duration,
) -> Result<Option<Lease<'f>>, Stop> {
    let until = Instant::now() + patience;
    match lease(file, until) {
        Ok(lease) => Ok(Some(lease)),
        Err(Refused::Busy) => Err(writer(file, metadata).unwrap_or(Deferral::HeldOpen).into()),
        Err(Refused::Unavailable) => loop {
            match writer(file, metadata) {
                None => return Ok(None),
                Some(_) if Instant::now() < until => sleep(LOOK_EVERY),
                Some(writer) => return Err(writer.into()),
            }
        },
        Err(Refused::Failed(cause)) => Err(Error::new(path, "ask for a lease on", cause).into()),
    }
}

/// A process that we see has a file open for writing.
fn writer(file: &File, metadata: &Metadata) -> Option<Deferral> {
    let mut holders = This::holders(file, FileId::from_metadata(metadata)).into_iter();
    let writer = holders.find(|holder| holder.writes);
    writer.map(|holder| Deferral::Open { pid: holder.pid, name: holder.name })
}

/// Whether a process has a file open for writing: the lease says so, or where there is none, we see such a process.
pub(crate) fn holds(lease: &Result<Lease<'_>, Refused>, file: &File) -> bool {
    match lease {
        Ok(_) => false,
        Err(Refused::Busy) => true,
        Err(Refused::Unavailable | Refused::Failed(_)) => {
            metadata::of_file(file).is_ok_and(|of| writer(file, &of).is_some())
        }
    }
}

/// Whether we can see every process that may have a file open: it is not on a network file system, only its owner may write
/// to it, and no process of the owner hides what it has open. This matters only where there are no leases.
pub(crate) fn are_seen(file: &File, metadata: &Metadata) -> bool {
    #[cfg(test)]
    match fault::system().leases {
        fault::Leases::Given => {}
        seen => return seen == fault::Leases::Seen,
    }
    This::shows_files()
        && !owner::others_may_write(metadata)
        && !network::holds(file)
        && process::sees_all()
        && process::unseen(owner::user(metadata)) == 0
}

fn lease(file: &File, until: Instant) -> Result<Lease<'_>, Refused> {
    before(Step::LeaseOld)?;
    // A lease on a network file keeps out only the programs of this machine.
    if network::holds(file) {
        return Err(Refused::Unavailable);
    }
    loop {
        match Lease::read(file) {
            Err(Refused::Busy) if Instant::now() < until => sleep(Duration::from_micros(50)),
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    /// Processes of other users do not show what they have open.
    #[test]
    fn who_else_may_write_is_not_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let file = File::create(&path).unwrap();
        for (mode, is_own) in [(0o600, true), (0o644, true), (0o660, false), (0o602, false)] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let metadata = file.metadata().unwrap();
            let seen = process::sees_all() && process::unseen(owner::user(&metadata)) == 0;
            assert_eq!(are_seen(&file, &metadata), is_own && seen, "{mode:o}");
        }
    }
}
