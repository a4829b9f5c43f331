//! Metrics for a collector that reads files, such as the textfile collector of `node_exporter`.
//!
//! The file is readable by all, because another user collects it; it holds nothing but numbers of a few kinds, no
//! paths, ids or content. It is written under another name and renamed, so that no program reads half of it. The folder
//! belongs to the collector and is never created here.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Collectors read only files with this ending; the temporary file has another one.
const ENDING: &str = "prom";
const MODE: u32 = 0o644;

/// Replaces the file at a path as a whole, or not at all.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    if path.extension().is_none_or(|ending| ending != ENDING) {
        return Err(io::Error::other("its name does not end in .prom, so no collector would read it"));
    }
    // A bare name is in the current folder.
    let folder = keeper::folder_of(path);
    let mut file = tempfile::Builder::new().prefix(".tailor-").suffix(".tmp").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    // Set after creation, so that the umask does not apply.
    file.as_file().set_permissions(Permissions::from_mode(MODE))?;
    file.persist(path).map_err(|failed| failed.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

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
