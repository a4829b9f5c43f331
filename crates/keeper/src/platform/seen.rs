//! What the systems report about processes, in types that all of them share.

/// What has become of a process that a lock names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    /// It is alive, or nothing proves that it is not.
    Alive,
    /// There is no such process, or only its exit code is left.
    Dead,
    /// Another process has its id now.
    Recycled,
    /// There is no such process here, but we are in a pid namespace (a container) and cannot see processes outside.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has such namespaces"))]
    Unseen,
}

/// The name of a process, made safe to print.
pub(crate) fn printable(name: &[u8]) -> String {
    let shown = |&byte: &u8| if byte.is_ascii_graphic() || byte == b' ' { byte as char } else { '?' };
    name.trim_ascii_end().iter().map(shown).collect()
}

/// Adds the processes that have a file mapped, and may write, to those that have it open.
#[cfg(any(test, target_os = "macos"))]
pub(crate) fn with_mapped(
    mut holders: Vec<Holder>,
    mapped: impl IntoIterator<Item = u32>,
    name: impl Fn(u32) -> String,
) -> Vec<Holder> {
    for pid in mapped {
        if holders.iter().all(|holder| holder.pid != pid) {
            holders.push(Holder { pid, name: name(pid), writes: true });
        }
    }
    holders
}

/// A process that has a file open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The process.
    pub(crate) pid: u32,
    /// Its name, safe to print.
    pub(crate) name: String,
    /// Whether it may write to the file.
    pub(crate) writes: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_a_file_open_and_mapped_counts_as_it_opened_it() {
        let name = |pid: u32| format!("p{pid}");
        let holder = |pid, writes| Holder { pid, name: name(pid), writes };
        let open = vec![holder(1, false), holder(2, true)];
        let found = with_mapped(open, [2, 3, 1, 3], name);
        assert_eq!(found, [holder(1, false), holder(2, true), holder(3, true)]);
    }
}
