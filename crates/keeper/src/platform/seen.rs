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

/// A process in the system's list.
#[derive(Clone, Debug)]
pub(crate) struct ListedProcess {
    /// The process.
    pub(crate) pid: u32,
    /// The one that started it.
    pub(crate) parent: u32,
    /// Its command line, or only its program.
    command: String,
}

impl ListedProcess {
    pub(crate) fn new(pid: u32, parent: u32, command: &str) -> Self {
        Self { pid, parent, command: command.to_string() }
    }

    /// The name of its program, and the first word after that which is no option, which may be a script.
    pub(crate) fn program(&self) -> (String, String) {
        // Only on Windows a program may be a path with blanks here, and that list has no arguments.
        if let Some((_, program)) = self.command.rsplit_once('\\') {
            return (Self::stem(program), String::new());
        }
        let mut words = self.command.split(' ').filter(|word| !word.starts_with('-') && !word.is_empty());
        let program = Self::stem(words.next().unwrap_or_default());
        (program, words.next().unwrap_or_default().to_string())
    }

    /// The last part of a path, in small letters and without its ending.
    pub(crate) fn stem(path: &str) -> String {
        let name = path.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
        let endings = [".exe", ".js", ".mjs", ".cjs", ".py", ".cmd"];
        endings.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name).to_string()
    }

    /// The name of the program of a process, safe to print.
    #[cfg_attr(target_os = "linux", allow(dead_code, reason = "Linux tells it by itself"))]
    pub(crate) fn name(listed: &[Self], pid: u32) -> String {
        let process = listed.iter().find(|process| process.pid == pid);
        printable(process.map(|process| process.program().0).unwrap_or_default().as_bytes())
    }

    /// A process and its ancestors. The id of a parent that has ended may belong to another process by now.
    pub(crate) fn ancestors(listed: &[Self], pid: u32) -> Vec<u32> {
        let mut line = vec![pid];
        while let Some(parent) = listed
            .iter()
            .find(|process| line.last() == Some(&process.pid))
            .map(|process| process.parent)
            .filter(|parent| *parent != 0 && !line.contains(parent))
        {
            line.push(parent);
        }
        line
    }
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
