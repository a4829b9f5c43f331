//! Whether a process is alive, and who has a file open: `/proc` and signal 0. If a question cannot be answered (no
//! `/proc`, a hidden process), a process counts as alive, because a mistake must never lead to a write. Root looks as root.

use super::acting::Acting;
use crate::platform::identity::FileId;
use crate::platform::seen::{Holder, ProcessState, printable};
pub(crate) use crate::platform::unix::ps::listed;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What has a given process id here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Here {
    Nothing,
    /// A process that hides its details.
    Hidden,
    Process {
        start: u64,
        ended: bool,
    },
}

/// Whether the process that had this id is alive. If its start time is known, it must match.
///
/// A lock may come from a container, whose process ids mean nothing here. A visible process with this id in its own
/// container and this very start time is the one. If we are in a container ourselves, the lock may come from outside,
/// so it proves nothing that no process here has the id.
pub(crate) fn life(pid: u32, start: Option<u64>) -> ProcessState {
    let _own = Acting::ourselves();
    let here = judge(here(pid), start, sees_all());
    let elsewhere = || start.is_some_and(|start| lives_in_a_container(pid, start));
    if here != ProcessState::Alive && elsewhere() { ProcessState::Alive } else { here }
}

fn here(pid: u32) -> Here {
    let Some(number) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else {
        return Here::Nothing;
    };
    if rustix::process::test_kill_process(number) == Err(rustix::io::Errno::SRCH) {
        return Here::Nothing;
    }
    Stat::for_pid(pid)
        .map_or(Here::Hidden, |stat| Here::Process { start: stat.start, ended: stat.is_ended() })
}

fn judge(here: Here, start: Option<u64>, sees_all: bool) -> ProcessState {
    match here {
        Here::Process { start: found, ended: true } if sees_all || start == Some(found) => ProcessState::Dead,
        Here::Nothing if sees_all => ProcessState::Dead,
        Here::Nothing | Here::Process { ended: true, .. } => ProcessState::Unseen,
        Here::Process { start: found, .. } if start.is_some_and(|start| start != found) => {
            ProcessState::Recycled
        }
        Here::Process { .. } | Here::Hidden => ProcessState::Alive,
    }
}

/// The id of the process that has locked a file with `flock`, if it can be seen; from `proc_locks(5)`:
/// `1: FLOCK ADVISORY WRITE 4711 fd:01:131 0 EOF`.
pub fn lock_holder(file: &File) -> Option<String> {
    let _own = Acting::ourselves();
    let (inode, locks) = (file.metadata().ok()?.ino(), fs::read_to_string("/proc/locks").ok()?);
    let mut fields = locks.lines().map(|line| line.split_whitespace().skip(1).collect::<Vec<&str>>());
    fields.find_map(|fields| match fields[..] {
        ["FLOCK", _, "WRITE", pid, file, ..] => {
            let same = file.rsplit(':').next()?.parse() == Ok(inode);
            // 0 is a process in a container that we cannot see.
            (same && pid != "0").then(|| pid.to_string())
        }
        _ => None,
    })
}

/// Whether all processes of this machine have an id here, because we are in the kernel's initial namespace.
pub(crate) fn sees_all() -> bool {
    /// `PROC_PID_INIT_INO` of the kernel.
    const INITIAL: u64 = 0xefff_fffc;
    pid_namespace() == Some(INITIAL)
}

fn lives_in_a_container(pid: u32, start: u64) -> bool {
    let named = |host: u32| {
        let numbers = status(host, "NSpid:");
        // The first id is the one that we see.
        numbers.split_whitespace().skip(1).any(|inner| inner.parse() == Ok(pid))
    };
    let began = |host: u32| Stat::for_pid(host).is_some_and(|stat| stat.start == start && !stat.is_ended());
    all().any(|host| began(host) && named(host))
}

/// A process's start time in clock ticks since the boot: field 22 of `/proc/<pid>/stat`. Agents use it to distinguish a
/// process from a later one with the same id.
pub(crate) fn start(pid: u32) -> Option<u64> {
    let _own = Acting::ourselves();
    Stat::for_pid(pid).map(|stat| stat.start)
}

/// The id of this boot.
pub(crate) fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_ascii_lowercase())
}

/// The number of our pid namespace: process ids are only comparable within one.
pub(crate) fn pid_namespace() -> Option<u64> {
    let _own = Acting::ourselves();
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// The fields of `/proc/<pid>/stat` that we need.
struct Stat {
    state: u8,
    flags: u64,
    start: u64,
}

impl Stat {
    fn for_pid(pid: u32) -> Option<Self> {
        Self::read(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name is in parentheses and may hold spaces, parentheses and bytes that are not text. The fields after it are
    /// counted from the last parenthesis.
    fn read(text: &[u8]) -> Option<Self> {
        let after = text.iter().rposition(|&byte| byte == b')')? + 1;
        let rest = std::str::from_utf8(&text[after..]).ok()?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The first of these is field 3.
        let number = |field: usize| fields.get(field - 3)?.parse().ok();
        Some(Self { state: *fields.first()?.as_bytes().first()?, flags: number(9)?, start: number(22)? })
    }

    fn is_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    fn is_kernel_thread(&self) -> bool {
        const PF_KTHREAD: u64 = 0x0020_0000;
        self.flags & PF_KTHREAD != 0
    }
}

/// The ids of all visible processes.
pub(crate) fn all() -> impl Iterator<Item = u32> {
    let inside = fs::read_dir("/proc").into_iter().flatten().flatten();
    inside.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The processes that have a file open, as far as they are visible, including ourselves.
pub(super) fn holders(file: FileId) -> Vec<Holder> {
    let _own = Acting::ourselves();
    all().filter_map(|pid| holder(pid, file)).collect()
}

fn holder(pid: u32, file: FileId) -> Option<Holder> {
    let mut found: Option<Holder> = None;
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten() {
        let number = entry.file_name();
        let info = Path::new("/proc").join(pid.to_string()).join("fdinfo").join(number);
        let Some(writes) = opened(&entry.path(), &info, file) else { continue };
        let holder = found.get_or_insert_with(|| Holder { pid, name: name(pid), writes: false });
        holder.writes |= writes;
    }
    found
}

/// Whether a descriptor may write, if it is of this file.
fn opened(descriptor: &Path, info: &Path, file: FileId) -> Option<bool> {
    // Pipes and sockets lead to no path.
    fs::read_link(descriptor).ok()?.to_str().is_none_or(|target| target.starts_with('/')).then_some(())?;
    let info = fs::read_to_string(info).ok()?;
    let field = |name: &str| Some(info.lines().find_map(|line| line.strip_prefix(name))?.trim());
    // Asking a file for its identity can block for ever on a network file system, so ask the kernel if it knows.
    if field("ino:").is_some_and(|number| number.parse() != Ok(file.inode)) {
        return None;
    }
    let same = FileId::from_metadata(&fs::metadata(descriptor).ok()?) == file;
    let flags = u32::from_str_radix(field("flags:")?, 8).ok()?;
    same.then_some(flags & rustix::fs::OFlags::ACCMODE.bits() != rustix::fs::OFlags::RDONLY.bits())
}

pub(crate) fn name(pid: u32) -> String {
    printable(&fs::read(format!("/proc/{pid}/comm")).unwrap_or_default())
}

/// The current folder of a process.
pub(crate) fn working_folder(pid: u32) -> io::Result<Metadata> {
    let _own = Acting::ourselves();
    fs::metadata(format!("/proc/{pid}/cwd"))
}

/// How many processes of this user hide which files they have open. Kernel threads have none open.
pub(crate) fn unseen(user: u32) -> usize {
    let _own = Acting::ourselves();
    if !Path::new("/proc/self/fd").exists() {
        return 1;
    }
    let hides = |pid: &u32| match fs::read_dir(format!("/proc/{pid}/fd")) {
        Err(cause) => cause.kind() == io::ErrorKind::PermissionDenied,
        // The folder may be readable although its links are not.
        Ok(mut inside) => inside.any(|entry| {
            let seen = entry.and_then(|entry| fs::read_link(entry.path()));
            seen.is_err_and(|cause| cause.kind() == io::ErrorKind::PermissionDenied)
        }),
    };
    let concerned =
        |pid: &u32| Stat::for_pid(*pid).is_some_and(|stat| !stat.is_kernel_thread() && !stat.is_ended());
    all().filter(|pid| is_of(*pid, user) && concerned(pid) && hides(pid)).count()
}

/// Whether a process runs as this user. The owner of its folder in `/proc` does not show it: for a process that hides,
/// it is root.
pub(crate) fn is_of(pid: u32, user: u32) -> bool {
    let _own = Acting::ourselves();
    status(pid, "Uid:").split_whitespace().any(|number| number.parse() == Ok(user))
}

/// A process and its ancestors.
pub(crate) fn ancestors(pid: u32) -> Vec<u32> {
    let _own = Acting::ourselves();
    let parent = |&pid: &u32| status(pid, "PPid:").parse().ok().filter(|&parent| parent > 0);
    std::iter::successors(Some(pid), parent).collect()
}

/// A field of `/proc/<pid>/status`; empty if it cannot be read.
fn status(pid: u32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    value.trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawned::{dead, spawn};
    use std::os::unix::fs::MetadataExt;
    use std::process::{Command, Stdio};

    /// The state of such a process, depending on where the test runs.
    fn gone() -> ProcessState {
        if sees_all() { ProcessState::Dead } else { ProcessState::Unseen }
    }

    #[test]
    fn in_a_container_only_who_is_seen_is_proven_dead() {
        let process = |ended| Here::Process { start: 7, ended };
        for (found, start, outside, inside) in [
            (Here::Nothing, None, ProcessState::Dead, ProcessState::Unseen),
            (Here::Nothing, Some(7), ProcessState::Dead, ProcessState::Unseen),
            (process(true), Some(7), ProcessState::Dead, ProcessState::Dead),
            (process(true), Some(8), ProcessState::Dead, ProcessState::Unseen),
            (process(true), None, ProcessState::Dead, ProcessState::Unseen),
            (process(false), Some(8), ProcessState::Recycled, ProcessState::Recycled),
            (process(false), Some(7), ProcessState::Alive, ProcessState::Alive),
            (process(false), None, ProcessState::Alive, ProcessState::Alive),
            (Here::Hidden, Some(7), ProcessState::Alive, ProcessState::Alive),
        ] {
            assert_eq!(judge(found, start, true), outside, "{found:?} {start:?}");
            assert_eq!(judge(found, start, false), inside, "{found:?} {start:?}");
        }
    }

    #[test]
    fn the_living_and_the_dead() {
        let own = std::process::id();
        assert_eq!(life(own, None), ProcessState::Alive);
        assert_eq!(life(own, start(own)), ProcessState::Alive);
        assert_eq!(life(own, Some(1)), ProcessState::Recycled);
        assert_eq!(life(dead(), None), gone());
        assert_eq!(life(dead(), Some(1)), gone());
        assert_eq!(life(0, None), gone());
        assert_eq!(life(u32::MAX, None), gone());
    }

    #[test]
    fn a_zombie_is_dead() {
        let mut child = spawn(Command::new("true").stdout(Stdio::piped()));
        let ended = || Stat::for_pid(child.id()).is_some_and(|stat| stat.is_ended());
        while !ended() {
            std::thread::yield_now();
        }
        assert_eq!(life(child.id(), start(child.id())), ProcessState::Dead);
        assert_eq!(life(child.id(), None), gone());
        child.wait().unwrap();
    }

    #[test]
    fn a_name_may_hold_anything() {
        let fields = "S 1 2 3 0 -1 2097152 8 9 10 11 12 13 14 15 16 17 18 19 20 21 777 23 24";
        for name in ["sh", "a b) c (d", ") Z 1 (", "\u{fffd}"] {
            // Field 22 is the nineteenth after the state.
            let stat = Stat::read(format!("12 ({name}) {fields}").as_bytes()).unwrap();
            let counted = fields.split(' ').nth(19).unwrap().parse().unwrap();
            assert_eq!((stat.state, stat.start, stat.is_kernel_thread()), (b'S', counted, true), "{name}");
        }
        assert!(Stat::read(b"12 (sh) S 1 2").is_none());
        assert!(Stat::read(b"").is_none());
    }

    #[test]
    fn holders_are_named_with_what_they_may_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        fs::write(&path, "x").unwrap();
        let metadata = fs::metadata(&path).unwrap();
        let find = || holders(FileId::from_metadata(&metadata));
        // Children of other tests may have our descriptors until they execute their program.
        let own = || find().into_iter().find(|holder| holder.pid == std::process::id());
        assert_eq!(own(), None);
        let reader = fs::File::open(&path).unwrap();
        assert!(own().is_some_and(|holder| !holder.writes));
        let writer = fs::File::options().append(true).open(&path).unwrap();
        assert!(own().is_some_and(|holder| holder.writes && !holder.name.is_empty()));
        drop((reader, writer));
        assert_eq!(own(), None);
        let out = fs::File::options().append(true).open(&path).unwrap();
        let mut child = spawn(Command::new("sleep").arg("60").stdout(out));
        let found = find();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.iter().any(|holder| holder.pid == child.id() && holder.writes), "{found:?}");
    }

    #[test]
    fn what_other_users_hide_is_no_concern() {
        const NOBODY_HERE: u32 = 4_000_000_000;
        let own = fs::metadata("/proc/self").unwrap().uid();
        assert!(is_of(std::process::id(), own) && !is_of(std::process::id(), NOBODY_HERE));
        assert_eq!(unseen(NOBODY_HERE), 0);
    }

    #[test]
    fn this_boot_and_this_namespace_have_names() {
        assert_eq!(boot_id().unwrap().len(), 36);
        assert!(pid_namespace().unwrap() > 0);
    }
}
