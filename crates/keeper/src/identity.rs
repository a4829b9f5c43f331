//! Which file it is, and whether it has changed.

use crate::platform::facts::{Metadata, MetadataExt};
use serde::{Deserialize, Serialize};

/// Which file, on which device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    /// The device.
    pub device: u64,
    /// The inode on it.
    pub inode: u64,
}

impl FileId {
    /// The id of a file.
    pub fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// What stays the same as long as nobody writes. Times are in seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which file it is.
    pub file: FileId,
    /// How long it is.
    pub bytes: u64,
    /// When it was last written to, as anyone may set it.
    pub modified: (i64, i64),
    /// When anything about it last changed, which only the kernel sets.
    pub changed: (i64, i64),
}

impl Stamp {
    /// The stamp of a file.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            file: FileId::of(metadata),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
