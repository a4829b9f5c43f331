//! Metrics for a collector that reads files, such as the textfile collector of `node_exporter`.
//!
//! Readable by all: another user collects them, and there is nothing in them but numbers of a few kinds; neither paths
//! nor ids nor anything of a transcript. Written beside its place and renamed, so that nobody reads a half. The folder
//! is the collector's: it is never made here.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What a collector reads must end in this; what is being written does not.
const ENDING: &str = "prom";
const MODE: u32 = 0o644;

/// Puts a text at a path, whole or not at all.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    if path.extension().is_none_or(|ending| ending != ENDING) {
        return Err(io::Error::other("its name does not end in .prom, so that no collector would read it"));
    }
    let temporary = path.with_extension(format!("{ENDING}.{}", std::process::id()));
    // Not through a link, and not into somebody else's file.
    let options = OpenOptions::new().write(true).create_new(true).mode(MODE).clone();
    let open = || match options.open(&temporary) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(&temporary)?;
            options.open(&temporary)
        }
        other => other,
    };
    let put = |mut file: File| {
        // Whatever the mask of the process takes away.
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(MODE))?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&temporary, path)
    };
    open().and_then(put).inspect_err(|_| drop(std::fs::remove_file(&temporary)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn all_may_read_it_and_nobody_reads_a_half() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tailor.prom");
        write(&path, "one\n").unwrap();
        let first = File::open(&path).unwrap();
        write(&path, "two\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two\n");
        assert_eq!(io::read_to_string(first).unwrap(), "one\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write(&dir.path().join("tailor.txt"), "").is_err());
        assert!(write(&dir.path().join("missing/tailor.prom"), "").is_err());
    }
}
