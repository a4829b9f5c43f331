//! The system calls of one `tailor fix`: the order in which the disk is changed, and what is left if the program dies
//! or a call fails.
//!
//! Uses strace's output, and not what the program prints. Skipped with a message where there is no strace.

use crate::support::{Dir, FinishedRun, is_thorough, run};
use crate::trace::{SystemCall, calls, can_trace};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

/// All calls that change a disk or take a lease.
const TRACED: &str = "openat,write,pwrite64,writev,copy_file_range,sendfile,splice,ftruncate,fallocate,fsync,\
fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,fchmod,fchown,utimensat,fsetxattr,fcntl,flock";

/// The calls before which the program is killed.
const DEADLY: &str = "write,pwrite64,copy_file_range,sendfile,ftruncate,fsync,fdatasync,rename,renameat,renameat2,\
link,linkat,unlink,unlinkat,fchmod,fchown,utimensat,fcntl,openat,close";

/// No run makes more calls of a kind.
const CALLS_MAX: usize = 400;

/// Which calls of a kind are tried, counted from 1: all of them, or every tenth, with another start for each kind.
fn numbers(kind: usize) -> impl Iterator<Item = usize> {
    let step = if is_thorough() { 1 } else { 10 };
    (1 + kind % step..CALLS_MAX).step_by(step)
}

/// Which calls fail, and how: in the first run the first call of each kind in the group, in the second run the second,
/// and so on.
const FAILING: &[(&str, &str)] = &[
    ("write", "ENOSPC"),
    ("pwrite64,copy_file_range,sendfile", "ENOSPC"),
    ("fsync", "EIO"),
    ("fdatasync", "EIO"),
    ("renameat2", "EINVAL"),
    ("renameat2", "EACCES"),
    ("renameat2,rename", "EINVAL"),
    ("renameat2,link,linkat", "EINVAL"),
    ("rename", "EACCES"),
    ("unlink,unlinkat", "EACCES"),
    ("fchmod,fchown,utimensat", "EPERM"),
    ("fcntl", "EAGAIN"),
    ("fcntl", "EINVAL"),
];

/// A session with one result that is too long.
fn session() -> String {
    fs::read_to_string(crate::support::root().join("fixtures/pi/s1-head-and-tail/in.jsonl")).unwrap()
}

const FIX: &[&str] = &["fix", "s.jsonl", "--settle", "0", "--result-chars-max", "200", "--format", "json"];

/// The folder of originals, below the home folder.
fn vault(dir: &Dir) -> String {
    dir.home().join("vault").to_str().unwrap().to_string()
}

fn arguments(dir: &Dir) -> Vec<String> {
    FIX.iter().map(ToString::to_string).chain(["--vault".to_string(), vault(dir)]).collect()
}

/// Runs `fix` under strace with additional options. `None` if a signal ended it.
fn traced<S: AsRef<OsStr>>(dir: &Dir, options: &[S]) -> Option<FinishedRun> {
    let mut command = dir.command_of("strace");
    command.env("PATH", "/usr/bin:/bin:/usr/local/bin").args(["-f", "-y", "-qq", "-s", "256"]);
    command.arg("-o").arg(dir.home().join("trace")).args(options);
    command.arg(env!("CARGO_BIN_EXE_tailor")).args(arguments(dir)).stdin(Stdio::null());
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!stderr.contains("panicked"), "{stderr}");
    // Strace ends by the same signal as the program.
    if output.status.signal().is_some() {
        return None;
    }
    Some(FinishedRun { status: output.status.code().unwrap(), stdout: output.stdout, stderr })
}

/// The index of the last call before `end` that satisfies a condition.
#[track_caller]
fn last(calls: &[SystemCall], end: usize, what: &str, holds: impl Fn(&SystemCall) -> bool) -> usize {
    let found = calls[..end].iter().rposition(holds);
    found.unwrap_or_else(|| panic!("no {what} among\n{:#?}", &calls[..end]))
}

#[test]
fn originals_then_text_then_name_then_folder_are_made_to_last() {
    if !can_trace() {
        return;
    }
    let dir = Dir::new();
    let path = dir.write("s.jsonl", session()).canonicalize().unwrap();
    let folder = path.parent().unwrap();
    let run = traced(&dir, &["-e", &format!("trace={TRACED}")]).unwrap();
    assert_eq!(run.file()["outcome"], "fixed", "{}", run.stderr);
    let calls = calls(&fs::read_to_string(dir.home().join("trace")).unwrap());

    let is_rename = |call: &SystemCall| call.name.starts_with("rename") && call.is_on(&path);
    let renamed = last(&calls, calls.len(), "rename to the path", is_rename);
    let names: Vec<&str> = calls[renamed].arguments.split('"').skip(1).step_by(2).collect();
    let new = folder.join(names.iter().find(|name| folder.join(name) != path).unwrap());
    assert_eq!(new.parent(), Some(folder), "the new text is made in the folder it goes to");

    // Until then it has no name, so strace shows its inode.
    let unnamed = format!("<{}/#", folder.display());
    let is_new = |call: &SystemCall| call.arguments.contains(&unnamed);
    let written = last(&calls, renamed, "write of the new text", |call| call.is_write() && is_new(call));
    let synced = last(&calls, renamed, "sync of the new text", |call| call.is_sync() && is_new(call));
    assert!(written < synced, "written after it was synced: {:?}", calls[written]);
    let leased = |call: &SystemCall| call.arguments.contains("F_SETLEASE, F_RDLCK") && call.is_on(&path);
    let leased = calls.iter().position(leased).expect("a lease on the old file");
    last(&calls, leased, "sync of the old file before the lease", |call| call.is_sync() && call.is_on(&path));
    let lasts = |from: usize| calls[from..].iter().any(|call| call.is_sync() && call.is_on(folder));
    assert!(lasts(renamed), "the folder is not synced after the rename:\n{:#?}", &calls[renamed..]);
    let is_unlink = |call: &SystemCall| call.name.starts_with("unlink") && call.is_on(&new);
    let unlinked = last(&calls, calls.len(), "unlink of the old file", is_unlink);
    assert!(lasts(unlinked), "the folder is not synced after the unlink:\n{:#?}", &calls[unlinked..]);

    originals_come_first(&calls, Path::new(&vault(&dir)), synced);
}

/// Everything that goes to the vault is synced before the new text is, and so is the vault's folder.
fn originals_come_first(calls: &[SystemCall], vault: &Path, synced: usize) {
    let vault = vault.canonicalize().unwrap();
    let first = last(calls, synced, "sync in the vault", |call| call.is_sync() && call.is_below(&vault));
    let mut files: Vec<&str> = calls[..synced]
        .iter()
        .filter(|call| call.is_write() && Path::new(call.written()).starts_with(&vault))
        .map(SystemCall::written)
        .collect();
    files.dedup();
    assert!(!files.is_empty(), "nothing was written to the vault before the new text was synced");
    for file in files {
        let file = Path::new(file);
        let is_here = |call: &SystemCall| call.is_write() && Path::new(call.written()) == file;
        let written = last(calls, synced, "write in the vault", is_here);
        let lasts =
            last(calls, synced, "sync of a file in the vault", |call| call.is_sync() && call.is_on(file));
        assert!(written < lasts, "{} was written after it was synced", file.display());
    }
    let is_folder = |call: &SystemCall| {
        let open = call.arguments.split(['<', '>']).nth(1).unwrap_or_default();
        call.is_sync() && call.is_below(&vault) && Path::new(open).is_dir()
    };
    last(calls, synced, "sync of a folder of the vault", is_folder);
    assert!(first < synced);
}

/// A line that a program appends between the death and the next run.
fn late(n: usize) -> String {
    format!("{{\"type\":\"custom\",\"id\":\"late{n}\",\"parentId\":\"a3\",\"customType\":\"x\"}}\n")
}

/// The path has the old text or the new one, and the next run finishes the work.
#[test]
fn death_at_any_call_leaves_the_old_text_or_the_new_one() {
    if !can_trace() {
        return;
    }
    let (old, new) = (session(), mended());
    let (mut deaths, mut wrong) = (0, Vec::new());
    for (kind, call) in DEADLY.split(',').enumerate() {
        for number in numbers(kind) {
            let dir = Dir::new();
            // Only reading, which does not block a lease.
            let witness = File::open(dir.write("s.jsonl", &old)).unwrap();
            let inject = format!("inject={call}:signal=KILL:when={number}");
            if traced(&dir, &["-e", &format!("trace={call}"), "-e", &inject]).is_some() {
                break;
            }
            deaths += 1;
            wrong.extend(
                after_death(&dir, &witness, &old, &new).err().map(|why| format!("at {call} {number}: {why}")),
            );
        }
    }
    assert!(deaths > 0, "nothing could be killed");
    assert!(wrong.is_empty(), "{} of {deaths} deaths:\n{}", wrong.len(), wrong.join("\n"));
    eprintln!("{deaths} deaths");
}

/// `witness` is a descriptor of the old file.
fn after_death(dir: &Dir, witness: &File, old: &str, new: &str) -> Result<(), String> {
    let path = dir.path("s.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    if text != old && text != new {
        return Err(format!("neither the old text nor the new one:\n{text}"));
    }
    let append = |path: &Path, n| {
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(late(n).as_bytes()).unwrap();
    };
    let mut appended = Vec::new();
    // A program may have found the old file before it was put aside. Once it is unlinked, nothing can reach it.
    if witness.metadata().unwrap().nlink() > 0 {
        append(Path::new(&format!("/proc/self/fd/{}", witness.as_raw_fd())), 1);
        appended.push(late(1));
    }
    append(&path, 2);
    appended.push(late(2));
    ends(dir, new, &appended)
}

/// After the next run, the path has the new text, then these lines, and there is no leftover.
fn ends(dir: &Dir, new: &str, appended: &[String]) -> Result<(), String> {
    let again = run(dir.command().args(arguments(dir)), b"");
    let text = fs::read_to_string(dir.path("s.jsonl")).unwrap();
    let Some(rest) = text.strip_prefix(new) else {
        return Err(format!("not mended by the next run: {}", again.text()));
    };
    let mut lines: Vec<&str> = rest.split_inclusive('\n').collect();
    lines.sort_unstable();
    if lines != appended {
        return Err(format!(
            "{} lines were appended, and after the next run there are {lines:?}",
            appended.len()
        ));
    }
    nothing_is_left(dir)
}

/// If a call fails, the run ends with an error, or the failure makes no difference.
#[test]
fn failure_of_any_call_leaves_the_old_text_or_the_new_one() {
    if !can_trace() {
        return;
    }
    let (old, new) = (session(), mended());
    let (mut failures, mut wrong) = (0, Vec::new());
    for (kind, (calls, error)) in FAILING.iter().enumerate() {
        for number in numbers(kind) {
            let dir = Dir::new();
            dir.write("s.jsonl", &old);
            let inject = format!("inject={calls}:error={error}:when={number}");
            let ended = traced(&dir, &["-e", &format!("trace={calls}"), "-e", &inject]).unwrap();
            if !fs::read_to_string(dir.home().join("trace")).unwrap().contains("(INJECTED)") {
                break;
            }
            failures += 1;
            let after = after_failure(&dir, &ended, &old, &new);
            wrong.extend(after.err().map(|why| format!("{error} from {calls} {number}: {why}")));
        }
    }
    assert!(failures > 0, "nothing could be made to fail");
    assert!(wrong.is_empty(), "{} of {failures} failures:\n{}", wrong.len(), wrong.join("\n"));
    eprintln!("{failures} failures");
}

fn after_failure(dir: &Dir, ended: &FinishedRun, old: &str, new: &str) -> Result<(), String> {
    let text = fs::read_to_string(dir.path("s.jsonl")).unwrap();
    if text != old && text != new {
        return Err(format!("neither the old text nor the new one:\n{text}"));
    }
    // The failing call may have been the one that writes to standard output.
    if ended.text().contains(r#""outcome":"fixed""#) && text != new {
        return Err("the program says that it is fixed".to_string());
    }
    // Once the new text is in place, the old file must stay: late lines may go there.
    if text == old {
        nothing_is_left(dir).map_err(|why| format!("{why}, exit code {}", ended.status))?;
    }
    ends(dir, new, &[])
}

fn mended() -> String {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", session());
    assert_eq!(dir.tailor(FIX).status, 0);
    fs::read_to_string(path).unwrap()
}

fn nothing_is_left(dir: &Dir) -> Result<(), String> {
    let mut names = dir.names();
    names.retain(|name| name != "s.jsonl");
    if names.is_empty() { Ok(()) } else { Err(format!("{names:?} left over")) }
}
