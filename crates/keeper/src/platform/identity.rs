//! Which file it is, and whether it has changed.

use crate::platform::metadata::{Metadata, MetadataExt};
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
    pub fn from_metadata(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// What stays the same until the file is written to. Times are in seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The file.
    pub file: FileId,
    /// Its length.
    pub bytes: u64,
    /// When it was last written to, as anyone may set it.
    pub modified: (i64, i64),
    /// When anything about it last changed, which only the kernel sets.
    pub changed: (i64, i64),
}

impl Stamp {
    /// The stamp of a file.
    pub fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            file: FileId::from_metadata(metadata),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
