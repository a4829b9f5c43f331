//! Holes in files: where nothing was written, and the disk has nothing.

use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::File;
use std::io;

/// The first offset from `at` on where a file has data, or its end; `None` if the system does not tell. Moves the file's own
/// position.
pub(crate) fn data_from(file: &File, at: u64) -> Option<u64> {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => Some(data),
        Err(Errno::NXIO) => file.metadata().ok().map(|found| found.len().max(at)),
        Err(_) => None,
    }
}

/// The first offset from `at` on that is in a hole, or the end; `None` if the system does not tell. Moves the file's own position.
pub(crate) fn hole_from(file: &File, at: u64) -> Option<u64> {
    rustix::fs::seek(file, SeekFrom::Hole(at)).ok()
}

/// Copies bytes from an offset of one file to the current position of another, inside the kernel. They may be fewer.
pub(crate) fn copy_range(from: &File, at: u64, out: &File, bytes: u64) -> io::Result<u64> {
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok(rustix::fs::copy_file_range(from, Some(&mut { at }), out, None, wanted)? as u64)
}
