//! How memory is had from the system, and how much of it.

use rustix::process::{Resource, getrlimit};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Where control groups are, and with version 1 those for memory.
const GROUPS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"];

/// The limits of a control group (`Documentation/admin-guide/cgroup-v2.rst`, and `cgroup-v1/memory.rst`).
const LIMITS: [&str; 3] = ["memory.max", "memory.high", "memory.limit_in_bytes"];

/// From how many bytes on a list has pages of its own.
#[cfg(target_env = "gnu")]
const OWN_PAGES_BYTES: i32 = 1 << 20;

/// Gives the memory of long lists back at once. The C library would raise its limit whenever such a list ends, and the next
/// ones would leave holes as they grow: a third of all memory for a long session. Up to twice
/// that much stays at the end of the heap: long rows of a database would otherwise grow and shrink it all the time.
pub fn give_back() {
    // SAFETY: the calls take two numbers each. If one fails, all stays as it was.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * OWN_PAGES_BYTES);
    }
}

/// How much memory this process may use: what the machine has, its own limits, and those of its control groups.
pub(crate) fn limit() -> Option<u64> {
    let own = [Resource::As, Resource::Data].map(|what| getrlimit(what).current);
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let system = rustix::system::sysinfo();
    let machine = (system.totalram as u64).saturating_mul(system.mem_unit.into());
    own.into_iter().flatten().chain(of_groups(&groups, Path::new("/"))).chain([machine]).min()
}

/// The limits of the control groups in this text, and of those around them.
fn of_groups(groups: &str, root: &Path) -> Vec<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let top = match controllers {
            "" => GROUPS[0],
            several if several.split(',').any(|one| one == "memory") => GROUPS[1],
            _ => continue,
        };
        // In a container, the path may be one of the host's, which is not there; the container's own group is at the top.
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let folder: PathBuf = root.join(top.trim_start_matches('/')).join(group);
            let read = |name: &&str| read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
            limits.extend(LIMITS.iter().filter_map(read));
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn the_limits_of_all_groups_around_a_process_count() {
        let dir = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = dir.path().join(file);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, text).unwrap();
        };
        put("sys/fs/cgroup/a/memory.max", "536870912\n");
        put("sys/fs/cgroup/a/b/memory.max", "max\n");
        put("sys/fs/cgroup/a/b/memory.high", "900000000\n");
        put("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "7000\n");
        put("sys/fs/cgroup/other/memory.max", "1\n");
        let limits = |groups: &str| of_groups(groups, dir.path());
        assert_eq!(limits("0::/a/b\n"), [900_000_000, 536_870_912]);
        assert_eq!(limits("4:cpu,memory:/c\n3:pids:/other\n"), [7_000]);
        assert!(limits("0::/gone/b\nnonsense").is_empty());
        assert!(limit().is_some_and(|bytes| bytes > 1 << 20));
    }
}
