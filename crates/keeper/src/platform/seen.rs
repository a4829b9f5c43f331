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
