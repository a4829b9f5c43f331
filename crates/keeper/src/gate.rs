//! May we touch it now?

use crate::outcome::Deferral;
use crate::snapshot::Snapshot;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The reason to wait, if there is one.
pub(crate) fn check(snapshot: &Snapshot, settle: Duration) -> Option<Deferral> {
    let quiet = quiet_for(snapshot, SystemTime::now());
    (quiet < settle).then_some(Deferral::Growing { quiet, settle })
}

/// How long nobody has written.
fn quiet_for(snapshot: &Snapshot, now: SystemTime) -> Duration {
    let metadata = &snapshot.metadata;
    let time = |secs: i64, nanos: i64| {
        let secs = u64::try_from(secs).unwrap_or(0);
        UNIX_EPOCH + Duration::new(secs, u32::try_from(nanos).unwrap_or(0))
    };
    let modified = time(metadata.mtime(), metadata.mtime_nsec());
    // A time in the future was set by hand; the kernel's own says when that was.
    let last = if modified > now { time(metadata.ctime(), metadata.ctime_nsec()) } else { modified };
    now.duration_since(last).unwrap_or_default()
}
