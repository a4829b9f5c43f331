//! What others do to a file, but to its text, while it is replaced.
#![cfg(target_os = "linux")]

use super::replace;
use crate::Ending;
use crate::Error;
use crate::Mode;
use crate::Options;
use crate::Outcome;
use crate::Vault;
use crate::ask::gate::Pass;
use crate::base::step::{Step, fault};
use crate::disk::lease::Lease;
use crate::disk::new_text::NewText;
use crate::maintain;
use crate::spawned::NO_FORKS;
use crate::swap::snapshot::Snapshot;
use crate::vault::{Pending, Swap};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use transcript::Span;

const BROKEN: &str = concat!(
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#,
    "\n",
    r#"{"type":"message","id":"a","parentId":null,"timestamp":"2026-07-01T10:00:00.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"t","name":"x","arguments":{}}],"stopReason":"toolUse"}}"#,
    "\n",
    r#"{"type":"message","id":"b","parentId":"a","timestamp":"2026-07-01T10:00:00.000Z","message":{"role":"user","content":"go on"}}"#,
    "\n",
);

/// A fix during which somebody does something with the file before the step of this number. Returns how many steps there were.
fn meanwhile(
    at: usize,
    act: impl Fn(&Path) + 'static,
    look: impl FnOnce(&Path, Result<Outcome, Error>),
) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, BROKEN).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let vault = Some(Vault::new(dir.path().join("vault")));
    let options = Options { mode: Mode::Fix, vault, ..Options::default() };
    let other: PathBuf = path.clone();
    let hook = move |number, _| {
        if number == at {
            act(&other);
        }
    };
    let (outcome, steps) = fault::meanwhile(None, hook, || maintain(&path, None, &options));
    if at < steps.len() {
        look(&path, outcome);
    }
    steps.len()
}

/// Does it before each step in turn.
fn at_each(act: impl Fn(&Path) + Clone + 'static, look: impl Fn(&Path, Result<Outcome, Error>)) {
    let _alone = NO_FORKS.read();
    let mut at = 0;
    while at < meanwhile(at, act.clone(), &look) {
        at += 1;
    }
    assert!(at > 20, "{at} steps");
}

#[test]
fn what_others_change_stays_at_whatever_step() {
    let change = |path: &Path| {
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        let _ = rustix::fs::setxattr(path, "user.mark", b"1", rustix::fs::XattrFlags::empty());
    };
    let has_marks =
        |path: &Path| rustix::fs::setxattr(path, "user.test", b"1", rustix::fs::XattrFlags::empty()).is_ok();
    at_each(change, |path, outcome| {
        outcome.unwrap();
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
        assert!(!has_marks(path) || rustix::fs::getxattr(path, "user.mark", &mut [0; 8]).is_ok());
    });
}

#[test]
fn a_second_name_is_never_parted_at_whatever_step() {
    let link = |path: &Path| fs::hard_link(path, path.with_extension("other")).unwrap();
    at_each(link, |path, outcome| {
        outcome.unwrap();
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        assert_eq!(inode(path), inode(&path.with_extension("other")));
    });
}

#[test]
fn what_is_no_file_any_more_is_left_for_later_at_whatever_step() {
    let others: [fn(&Path); 3] = [
        |path| symlink("t.jsonl", path).unwrap(),
        |path| fs::create_dir(path).unwrap(),
        |path| {
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        },
    ];
    for put in others {
        let replace = move |path: &Path| {
            fs::rename(path, path.with_file_name("t.jsonl")).unwrap();
            put(path);
        };
        at_each(replace, |path, outcome| {
            let ending = outcome.unwrap().ending;
            let is_left = matches!(ending, Ending::Deferred(_) | Ending::Refused(_));
            let is_whole = fs::read_to_string(path.with_file_name("t.jsonl")).unwrap() == BROKEN;
            assert!(is_left && is_whole || ending == Ending::Fixed, "{ending:?}");
            assert!(!fs::symlink_metadata(path).unwrap().is_file());
        });
    }
}

/// A text that says that it is as long as the one before it.
struct ShortText(u64);

impl NewText for ShortText {
    fn parts(&self) -> Vec<(u64, Option<Span>)> {
        vec![(self.0, None)]
    }

    fn write(&self, _: &File, mut out: &File) -> io::Result<()> {
        out.write_all(b"{}\n")
    }
}

#[test]
fn a_text_that_is_not_as_long_as_planned_is_not_put_in_place() {
    let _alone = NO_FORKS.read();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, BROKEN).unwrap();
    let snapshot = Snapshot::open(&path, None).unwrap();
    let keep = |pending: Pending, swap: Swap| {
        let edits = Vec::new();
        snapshot.read(|source| pending.keep_merge(source, source.len(), edits, Some(swap), Vec::new()))
    };
    for (length, is_right) in [(BROKEN.len() as u64, false), (3, true)] {
        let vault = Vault::new(dir.path().join("vault"));
        let done = replace(&snapshot, &ShortText(length), &vault, keep, || Ok(Pass::default()));
        assert_eq!(done.is_ok(), is_right);
        assert_eq!(fs::read_to_string(&path).unwrap(), if is_right { "{}\n" } else { BROKEN });
    }
}

/// While something is copied to the new text, which has no name yet, somebody else writes to it as well.
#[test]
fn a_text_that_somebody_else_has_written_to_is_not_put_in_place() {
    let _alone = NO_FORKS.read();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, BROKEN).unwrap();
    let vault = Some(Vault::new(dir.path().join("vault")));
    let options = Options { mode: Mode::Fix, vault, ..Options::default() };
    let (other, folder) = (path.clone(), dir.path().to_path_buf());
    let append = |path: &Path| File::options().append(true).open(path).unwrap().write_all(b"{}\n").unwrap();
    let hook = move |_, step| {
        // Under the lease, which comes next, the append would wait.
        if step == Step::LeaseOld {
            append(&other);
            let mut open = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
            let is_new = |fd: &PathBuf| {
                fs::read_link(fd)
                    .is_ok_and(|to| to.starts_with(&folder) && to.to_string_lossy().contains('#'))
            };
            append(&open.find(is_new).unwrap());
        }
    };
    let (outcome, _) = fault::meanwhile(None, hook, || maintain(&path, None, &options));
    assert!(outcome.is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN.to_string() + "{}\n");
}

#[test]
fn a_file_that_another_tailor_has_just_put_there_is_waited_for() {
    let _alone = NO_FORKS.read();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, BROKEN).unwrap();
    let file = File::open(&path).unwrap();
    let lease = Lease::write(&file).ok().unwrap();
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| Snapshot::open(&path, None).map(drop));
        sleep(Duration::from_millis(20));
        assert!(!opened.is_finished());
        drop(lease);
        opened.join().unwrap().unwrap();
    });
}
