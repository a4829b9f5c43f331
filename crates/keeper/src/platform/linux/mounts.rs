//! Files that other programs reach by another name than the one that we would replace: those that are mount points
//! (`docker run -v FILE:FILE`) and those in the upper layer of an overlay (a container's own files, seen from the
//! host). Such a program keeps the old file, whatever is at our path, and each line that it appends after that would be
//! lost.
//!
//! Only the mounts of visible processes are known. From inside a container that is not all of them.

use super::acting::Acting;
use super::process;
use crate::base::refusal::Refusal;
use crate::platform::identity::FileId;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Why a file must not be replaced because of mounts. Reads the mounts of every namespace once, so call it late.
///
/// Without `/proc` nothing is known, and nothing refused.
pub(crate) fn refusal(path: &Path, file: &File) -> Option<Refusal> {
    let _own = Acting::ourselves();
    let own: Vec<Mount> = mounts(OWN)?.collect();
    let place = MountedFile::find(path, file, &own)?;
    if let Some(refusal) = own.iter().find_map(|mount| place.refusal(mount, None)) {
        return Some(refusal);
    }
    let mut seen: HashSet<Vec<u8>> = own.into_iter().take(1).map(|mount| mount.id).collect();
    let mut named: HashSet<PathBuf> = namespace("self").into_iter().collect();
    process::all().find_map(|pid| {
        // The kernel gives the name of a namespace for a fraction of what its mounts cost, but only of processes of
        // the same user.
        namespace(&pid.to_string()).is_none_or(|name| named.insert(name)).then_some(())?;
        let mut mounts = mounts(&format!("/proc/{pid}/mountinfo"))?.peekable();
        // No two namespaces share a mount, so the first one names the namespace.
        seen.insert(mounts.peek()?.id.clone()).then_some(())?;
        mounts.find_map(|mount| place.refusal(&mount, Some(pid)))
    })
}

/// The mount namespace of a process.
fn namespace(pid: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/mnt")).ok()
}

const OWN: &str = "/proc/self/mountinfo";

/// A mount, as a line of `mountinfo` describes it (`proc_pid_mountinfo(5)`).
struct Mount {
    id: Vec<u8>,
    /// `major:minor` of the file system.
    device: Vec<u8>,
    /// The part of the file system that is mounted.
    root: PathBuf,
    /// The mount point, as the process sees it.
    point: PathBuf,
    /// The upper layer, if it is an overlay that has one, as named when it was mounted.
    upper: Option<PathBuf>,
}

impl Mount {
    fn read(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|&byte| byte == b' ');
        let mut word = || words.next();
        let (id, _parent, device) = (word()?.to_vec(), word()?, word()?.to_vec());
        let (root, point) = (unescape(word()?), unescape(word()?));
        let mut kind = words.skip_while(|&word| word != b"-").skip(1);
        let is_overlay = kind.next()? == b"overlay";
        let mut options = kind.nth(1).unwrap_or_default().split(|&byte| byte == b',');
        let upper = options.find_map(|option| option.strip_prefix(b"upperdir=")).filter(|_| is_overlay);
        Some(Self { id, device, root, point, upper: upper.map(unescape) })
    }
}

fn mounts(list: &str) -> Option<impl Iterator<Item = Mount> + use<>> {
    let lines = BufReader::new(File::open(list).ok()?).split(b'\n');
    Some(lines.map_while(Result::ok).filter_map(|line| Mount::read(&line)))
}

/// Undoes the kernel's `\040` for bytes that would end a word.
fn unescape(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, behind)) = rest.split_first() {
        let octal = behind.get(..3).filter(|_| first == b'\\');
        let octal = octal.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &behind[3..] } else { behind };
    }
    OsString::from_vec(bytes).into()
}

/// Where a file is, independent of the name by which it was reached.
struct MountedFile<'a> {
    path: &'a Path,
    device: Vec<u8>,
    /// Its path within its file system.
    within: PathBuf,
    /// The folders above it.
    folders: Vec<FileId>,
}

impl<'a> MountedFile<'a> {
    fn find(path: &'a Path, file: &File, own: &[Mount]) -> Option<Self> {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
        let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
        let mount = own.iter().find(|mount| mount.id == id.as_bytes())?;
        let within = mount.root.join(path.strip_prefix(&mount.point).ok()?);
        let folders = path.ancestors().skip(1).filter_map(identity).collect();
        Some(Self { path, device: mount.device.clone(), within, folders })
    }

    fn refusal(&self, mount: &Mount, pid: Option<u32>) -> Option<Refusal> {
        if mount.device == self.device && mount.root == self.within {
            return Some(Refusal::MountedAlone { at: mount.point.clone(), pid });
        }
        let upper = mount.upper.as_ref().filter(|upper| self.is_below(upper))?;
        Some(Refusal::ContainerLayer(upper.clone()))
    }

    fn is_below(&self, upper: &Path) -> bool {
        if upper.is_relative() {
            // Relative to an unknown folder: Docker does that if there are many layers.
            let (path, upper) = (self.path.as_os_str().as_bytes(), upper.as_os_str().as_bytes());
            return !upper.is_empty() && memchr::memmem::find(path, &[b"/", upper, b"/"].concat()).is_some();
        }
        self.path.starts_with(upper) || identity(upper).is_some_and(|upper| self.folders.contains(&upper))
    }
}

fn identity(folder: &Path) -> Option<FileId> {
    Some(FileId::from_metadata(&fs::metadata(folder).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The refusal of a file at this path, on a file system `8:1` that is mounted at `/`, given another mount.
    fn refused(path: &str, line: &str) -> Option<String> {
        let path = Path::new(path);
        let place =
            MountedFile { path, device: b"8:1".to_vec(), within: path.to_path_buf(), folders: Vec::new() };
        place.refusal(&Mount::read(line.as_bytes())?, Some(7)).map(|refusal| refusal.to_string())
    }

    #[test]
    fn a_mount_of_the_very_file_is_seen() {
        let line = |device: &str, root: &str| {
            format!("36 35 {device} {root} /in\\040side rw,noatime master:1 - ext4 /dev/sda1 rw")
        };
        let reason = refused("/a b\\/s.jsonl", &line("8:1", "/a\\040b\\134/s.jsonl")).unwrap();
        assert!(reason.contains("/in side for process 7"), "{reason}");
        for (device, root) in
            [("8:1", "/a/s.jsonl//deleted"), ("8:1", "/a"), ("8:1", "/"), ("8:2", "/a/s.jsonl")]
        {
            assert_eq!(refused("/a/s.jsonl", &line(device, root)), None, "{device} {root}");
        }
    }

    #[test]
    fn an_upper_layer_is_seen_wherever_its_overlay_is_mounted() {
        let line = |kind: &str, upper: &str| {
            format!(
                "41 35 0:50 / /merged rw shared:2 master:1 - {kind} overlay rw,lowerdir=/l\\054x,upperdir={upper},workdir=/w"
            )
        };
        for (upper, is_above) in
            [("/up", true), ("/up/er", true), ("/u", false), ("/up/er/s.jsonl/x", false), ("up/er", true)]
        {
            assert_eq!(refused("/up/er/s.jsonl", &line("overlay", upper)).is_some(), is_above, "{upper}");
        }
        assert_eq!(refused("/up/er/s.jsonl", &line("overlay", "p/e")), None);
        assert_eq!(refused("/up/er/s.jsonl", &line("bindfs", "/up")), None);
        assert_eq!(refused("/up/s.jsonl", "41 35 0:50 / /merged rw - overlay overlay ro,lowerdir=/up"), None);
    }

    #[test]
    fn what_is_no_mount_is_passed_over() {
        for line in ["", "1", "1 2 8:1 / /", "1 2 8:1 / / rw master:1", "1 2 8:1 / / rw -"] {
            assert!(Mount::read(line.as_bytes()).is_none(), "{line}");
        }
        let odd = [("\\04", "\\04"), ("\\999", "\\999"), ("\\\\040", "\\ "), ("a\\011", "a\t")];
        for (word, path) in odd {
            assert_eq!(unescape(word.as_bytes()), Path::new(path), "{word}");
        }
    }

    #[test]
    fn a_file_here_is_found_in_our_own_mounts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("s.jsonl");
        let file = File::create(&path).unwrap();
        let own: Vec<Mount> = mounts(OWN).unwrap().collect();
        assert!(MountedFile::find(&path, &file, &own).unwrap().within.ends_with("s.jsonl"));
        assert_eq!(refusal(&path, &file), None);
    }
}
