//! Parses strace's output.

use crate::support::skipped;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether strace is there and may trace.
pub(crate) fn can_trace() -> bool {
    let mut strace = Command::new("strace");
    strace.args(["-o", "/dev/null", "true"]).stdin(Stdio::null());
    let can = strace.output().is_ok_and(|output| output.status.success());
    if !can {
        skipped("strace is not installed or may not trace; system calls were not looked at");
    }
    can
}

/// A call that succeeded.
#[derive(Debug)]
pub(crate) struct SystemCall {
    pub(crate) thread: u32,
    pub(crate) name: String,
    /// The text between its parentheses.
    pub(crate) arguments: String,
    /// What it returned, with strace's remarks.
    pub(crate) result: String,
    /// The line of the trace where it began.
    pub(crate) begun: usize,
    /// The line where it came back: the same, unless another thread was seen in between.
    pub(crate) ended: usize,
}

impl SystemCall {
    /// Whether it is about a path: as a quoted name, perhaps relative to an open folder, or as a descriptor's path.
    pub(crate) fn is_on(&self, path: &Path) -> bool {
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name())
            && self.arguments.contains(&format!("<{}>, \"{}\"", folder.display(), name.display()))
        {
            return true;
        }
        let path = path.display();
        self.arguments.contains(&format!("\"{path}\"")) || self.arguments.contains(&format!("<{path}>"))
    }

    pub(crate) fn is_below(&self, folder: &Path) -> bool {
        let on_itself = self.is_on(folder);
        let folder = folder.display();
        on_itself
            || self.arguments.contains(&format!("\"{folder}/"))
            || self.arguments.contains(&format!("<{folder}/"))
    }

    pub(crate) fn is_sync(&self) -> bool {
        ["fsync", "fdatasync"].contains(&self.name.as_str())
    }

    /// Whether it writes bytes to a file.
    pub(crate) fn is_write(&self) -> bool {
        let writes = [
            "write",
            "pwrite64",
            "writev",
            "copy_file_range",
            "sendfile",
            "splice",
            "ftruncate",
            "fallocate",
        ];
        writes.contains(&self.name.as_str())
    }

    /// The path of the descriptor that is written to; for calls that copy, the target.
    pub(crate) fn written(&self) -> &str {
        let paths: Vec<&str> =
            self.arguments.split('<').skip(1).filter_map(|rest| rest.split('>').next()).collect();
        let place = usize::from(["copy_file_range", "splice"].contains(&self.name.as_str()));
        paths.get(place).copied().unwrap_or_default()
    }

    /// Whether strace faked the call's success.
    pub(crate) fn is_faked(&self) -> bool {
        self.result.contains("(INJECTED)")
    }

    /// The number that it returned: a count or a descriptor.
    pub(crate) fn number(&self) -> usize {
        let digits = self.result.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        digits.parse().unwrap_or_default()
    }

    /// The arguments, separated.
    pub(crate) fn list(&self) -> Vec<&str> {
        let (mut list, mut start, mut depth) = (Vec::new(), 0, 0);
        let (mut quoted, mut escaped) = (false, false);
        for (at, byte) in self.arguments.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ if quoted => {}
                b',' if depth == 0 => {
                    list.push(self.arguments[start..at].trim());
                    start = at + 1;
                }
                b')' if depth == 0 => {
                    list.push(self.arguments[start..at].trim());
                    return list;
                }
                b'[' | b'{' | b'(' => depth += 1,
                b']' | b'}' | b')' => depth -= 1,
                _ => {}
            }
        }
        list
    }
}

/// The path of a descriptor (`3</w/s>`; `3</w/#7>(deleted)` has none).
pub(crate) fn path_of(descriptor: &str) -> Option<PathBuf> {
    let (_, path) = descriptor.split_once('<')?;
    Some(PathBuf::from(path.strip_suffix("(deleted)").unwrap_or(path).strip_suffix('>')?))
}

/// All bytes in quotes, with strace's escapes decoded. Panics if strace left some out.
pub(crate) fn unquoted(text: &str) -> Vec<u8> {
    let (mut bytes, mut quoted) = (Vec::new(), false);
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => {
                quoted = !quoted;
                assert!(quoted || rest.peek() != Some(&b'.'), "strace left out what comes after {text}");
            }
            b'\\' if quoted => match rest.next().unwrap() {
                b'n' => bytes.push(b'\n'),
                b't' => bytes.push(b'\t'),
                b'r' => bytes.push(b'\r'),
                b'v' => bytes.push(0x0b),
                b'f' => bytes.push(0x0c),
                digit @ b'0'..=b'7' => {
                    let mut value = u32::from(digit - b'0');
                    for _ in 0..2 {
                        if let Some(digit) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) {
                            value = value * 8 + u32::from(digit - b'0');
                        }
                    }
                    bytes.push(u8::try_from(value).unwrap());
                }
                other => bytes.push(other),
            },
            _ if quoted => bytes.push(byte),
            _ => {}
        }
    }
    bytes
}

/// The calls of a trace, in the order in which they returned.
pub(crate) fn calls(trace: &str) -> Vec<SystemCall> {
    let mut begun = HashMap::new();
    let mut calls = Vec::new();
    for (ended, line) in trace.lines().enumerate() {
        let (thread, rest) = line.split_once(' ').unwrap();
        let (mut text, mut start) = (rest.trim_start().to_string(), ended);
        if let Some(beginning) = text.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, (beginning.to_string(), ended));
            continue;
        }
        if let Some((_, end)) = text.split_once(" resumed>").filter(|_| text.starts_with("<... ")) {
            let (beginning, line) = begun.remove(thread).unwrap_or_default();
            (text, start) = (beginning + end, line);
        }
        let Some((call, result)) = text.rsplit_once(" = ") else { continue };
        let Some((name, arguments)) = call.split_once('(') else { continue };
        if !result.starts_with(['-', '?']) {
            let (name, arguments) = (name.to_string(), arguments.to_string());
            let (thread, result) = (thread.parse().unwrap(), result.to_string());
            calls.push(SystemCall { thread, name, arguments, result, begun: start, ended });
        }
    }
    calls
}

#[test]
fn a_trace_is_read_call_by_call() {
    let trace = "1 openat(AT_FDCWD</w>, \"/w/s\", O_RDONLY) = 3</w/s>\n\
        1 fsync(4</w/t> <unfinished ...>\n\
        2 unlink(\"/w/u\") = -1 ENOENT (No such file or directory)\n\
        1 <... fsync resumed>)   = 0\n\
        1 copy_file_range(3</w/s>, [0], 4</w/t>, NULL, 9, 0) = 9\n\
        2 unlink(\"/w/v\") = 0 (INJECTED)\n\
        2 write(5</w/t>, \"a, \\\"b\\\" = \\1\\0012\\n\", 12) = 12\n\
        2 fsync(5</w/t>) = ?\n\
        1 +++ exited with 0 +++\n";
    let calls = calls(trace);
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["openat", "fsync", "copy_file_range", "unlink", "write"]);
    assert!(calls[1].is_sync() && calls[1].is_on(Path::new("/w/t")) && calls[1].is_below(Path::new("/w")));
    assert_eq!((calls[1].begun, calls[1].ended, calls[1].thread), (1, 3, 1));
    assert!(calls[2].is_write() && calls[2].written() == "/w/t" && calls[2].number() == 9);
    assert_eq!(calls[2].list(), ["3</w/s>", "[0]", "4</w/t>", "NULL", "9", "0"]);
    assert_eq!(path_of(calls[2].list()[2]), Some(PathBuf::from("/w/t")));
    assert!(calls[3].is_faked() && !calls[4].is_faked());
    assert_eq!(unquoted(calls[4].list()[1]), b"a, \"b\" = \x01\x012\n");
}
