//! Whether anybody has a file open for writing, and how they are kept out.

use crate::deferral::Deferral;
use crate::error::Error;
use crate::identity::FileId;
use crate::lease::{Lease, Refused};
use crate::platform::{network, process};
use crate::step::{Step, before};
use crate::stop::Stop;
use std::fs::{File, Metadata};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long to try for a lease: most programs open a file only for as long as an append takes. Nobody waits for us
/// meanwhile. Tests have less patience.
pub(crate) const PATIENCE: Duration =
    if cfg!(test) { Duration::from_millis(2) } else { Duration::from_millis(250) };

/// A read lease on a file that was opened for reading. As long as it is held, nobody has the file open for writing,
/// whoever they are and whatever `/proc` shows of them. `None` where there are no leases and no process is seen that
/// has it open for writing; a deferral if somebody has.
pub(crate) fn keep_out<'f>(
    path: &Path,
    file: &'f File,
    metadata: &Metadata,
    patience: Duration,
) -> Result<Option<Lease<'f>>, Stop> {
    let writer = || {
        let holders = process::holders(FileId::of(metadata));
        let writer = holders.into_iter().find(|holder| holder.writes);
        writer.map(|holder| Deferral::Open { pid: holder.pid, name: holder.name })
    };
    match lease(file, patience) {
        Ok(lease) => Ok(Some(lease)),
        Err(Refused::Busy) => Err(writer().unwrap_or(Deferral::HeldOpen).into()),
        Err(Refused::Unavailable) => writer().map_or(Ok(None), |writer| Err(writer.into())),
        Err(Refused::Failed(cause)) => Err(Error::new(path, "ask for a lease on", cause).into()),
    }
}

fn lease(file: &File, patience: Duration) -> Result<Lease<'_>, Refused> {
    before(Step::LeaseOld)?;
    // One that is given there keeps out nobody but the programs of this machine.
    if network::holds(file) {
        return Err(Refused::Unavailable);
    }
    let until = Instant::now() + patience;
    loop {
        match Lease::read(file) {
            Err(Refused::Busy) if Instant::now() < until => sleep(Duration::from_micros(50)),
            other => return other,
        }
    }
}
