//! File systems that other machines can write to without our kernel's knowledge. It does not report such changes, and a
//! lease does not stop them, even where one is granted (FUSE).

use rustix::fs::StatFs;
use std::fs::File;
use std::path::Path;

/// By the magic number from `statfs` (`linux/magic.h`, or the driver).
const KINDS: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x5346_414f, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd3, "Lustre"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x786f_4256, "VirtualBox shared folders"),
    (0xbacb_acbc, "VMware shared folders"),
    (0x2003_0528, "OrangeFS"),
    (0x1983_0326, "BeeGFS"),
    (0x4750_4653, "GPFS"),
];

/// The kind of network file system of a file or folder; `None` if it is local, or that is unknown.
pub fn network(path: &Path) -> Option<&'static str> {
    rustix::fs::statfs(path).ok().as_ref().and_then(kind_of)
}

/// Whether an open file is on a network file system.
pub(crate) fn holds(file: &File) -> bool {
    rustix::fs::fstatfs(file).ok().as_ref().and_then(kind_of).is_some()
}

fn kind_of(found: &StatFs) -> Option<&'static str> {
    // On some systems the number is signed.
    kind(u32::try_from(i128::from(found.f_type) & i128::from(u32::MAX)).ok()?)
}

fn kind(number: u32) -> Option<&'static str> {
    KINDS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_a_network_is_told_by_a_number() {
        for (number, expected) in [
            (0x6969, Some("NFS")),
            (0xff53_4d42, Some("CIFS")),
            (0xfe53_4d42, Some("SMB2")),
            (0x0102_1997, Some("9P")),
            (0x6573_5546, Some("FUSE")),
            // ext4, XFS, Btrfs, tmpfs, overlayfs, ZFS, F2FS, bcachefs.
            (0xef53, None),
            (0x5846_5342, None),
            (0x9123_683e, None),
            (0x0102_1994, None),
            (0x794c_7630, None),
            (0x2fc1_2fc1, None),
            (0xf2f5_2010, None),
            (0xca45_1a4e, None),
        ] {
            assert_eq!(kind(number), expected, "{number:#x}");
        }
        let mut numbers: Vec<u32> = KINDS.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), KINDS.len());
    }

    #[test]
    fn a_folder_here_is_on_no_network() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(network(dir.path()), None);
        assert!(!holds(&File::open(dir.path()).unwrap()));
        assert_eq!(network(&dir.path().join("missing")), None);
    }
}
