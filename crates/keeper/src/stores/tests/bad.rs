//! Stores where something around them is in the way: links, media that nobody may write, full disks, other versions.

use super::{OPENCODE, database, entries, exported, found, openclaw};
use crate::Vault;
use crate::ask::outcome::Ending;
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::export;
use crate::maintain;
use crate::options::{Mode, Options};
use crate::places::store::{beside, session_path};
use crate::prune;
#[cfg(target_os = "linux")]
use crate::stores::Database;
use crate::vacuum;
use std::fs;
#[cfg(target_os = "linux")]
use std::io::Write;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::Command;

fn fix(path: &Path, vault: &Path) -> Result<Ending, String> {
    let options =
        Options { mode: Mode::Fix, vault: Some(Vault::new(vault.to_path_buf())), ..Options::default() };
    maintain(path, None, &options).map(|outcome| outcome.ending).map_err(|error| error.to_string())
}

#[test]
fn schemas_before_and_after_the_one_that_was_tried_are_only_read() {
    for version in [22, 24] {
        let dir = tempfile::tempdir().unwrap();
        let (file, store) = openclaw(dir.path(), "WAL", "s1", &entries());
        store.execute(&format!("UPDATE schema_meta SET schema_version = {version}"), []).unwrap();
        let path = session_path(&file, "s1");
        let (text, done) = exported(&path);
        assert_eq!(text.lines().count(), entries().len());
        let remark = done.remark.unwrap();
        assert!(
            remark.contains(&format!("version {version}")) && remark.contains("tried with 23"),
            "{remark}"
        );
        let ending = fix(&path, &dir.path().join("vault")).unwrap();
        assert!(matches!(ending, Ending::Refused(Refusal::StoreStays(_))), "{ending:?}");
        assert_eq!(exported(&path).0, text);
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_a_store_is_followed_within_its_folder_only() {
    let dir = tempfile::tempdir().unwrap();
    let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    let (file, _store) = openclaw(&inside, "WAL", "s1", &entries());
    let (near, far) = (inside.join("near.db"), outside.join("far.db"));
    std::os::unix::fs::symlink(&file, &near).unwrap();
    std::os::unix::fs::symlink(&file, &far).unwrap();
    assert_eq!(exported(&session_path(&near, "s1")).0, exported(&session_path(&file, "s1")).0);
    let refused = export(&session_path(&far, "s1")).err().unwrap();
    assert!(matches!(refused, Stop::Refused(Refusal::LinkOutOfRoot)), "{refused}");
    let ending = fix(&session_path(&far, "s1"), &dir.path().join("vault")).unwrap();
    assert_eq!(ending, Ending::Refused(Refusal::LinkOutOfRoot));
    let (file, _store) = database(&inside, "opencode.db", OPENCODE, "WAL");
    let (near, far) = (inside.join("near.db"), outside.join("far.db"));
    fs::remove_file(&near).unwrap();
    fs::remove_file(&far).unwrap();
    std::os::unix::fs::symlink(&file, &near).unwrap();
    std::os::unix::fs::symlink(&file, &far).unwrap();
    let vault = Vault::new(dir.path().join("vault"));
    for refused in [prune(&far, None), prune(&far, Some(&vault)), vacuum(&far)] {
        assert!(matches!(refused, Err(Stop::Refused(Refusal::LinkOutOfRoot))), "{refused:?}");
    }
    assert!(!matches!(prune(&near, None), Err(Stop::Refused(Refusal::LinkOutOfRoot))));
}

/// Rows can be read, but nobody knows what a write would do to pages that are damaged.
#[test]
fn a_database_that_is_damaged_elsewhere_is_named_and_left() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = openclaw(dir.path(), "DELETE", "s1", &entries());
    let other = "CREATE TABLE other (data TEXT); WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 99) \
                 INSERT INTO other SELECT hex(zeroblob(500)) FROM n";
    store.execute_batch(other).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'other'";
    let page: i64 = store.query_row(root, [], |row| row.get(0)).unwrap();
    drop(store);
    let (path, vault) = (session_path(&file, "s1"), dir.path().join("vault"));
    let remarks = |file: &Path| crate::measure_store(file).unwrap().unwrap().remarks;
    assert_eq!(remarks(&file), Vec::<String>::new());
    let whole = fs::read(&file).unwrap();
    let damaged = dir.path().join("damaged.sqlite");
    let mut bytes = whole.clone();
    let at = usize::try_from(page - 1).unwrap() * 4096;
    bytes[at..at + 4096].fill(0x5a);
    fs::write(&damaged, &bytes).unwrap();
    assert_eq!(exported(&session_path(&damaged, "s1")).0, exported(&path).0);
    let said = remarks(&damaged);
    assert!(said.len() == 1 && said[0].contains("is damaged") && said[0].contains("other: "), "{said:?}");
    match fix(&session_path(&damaged, "s1"), &vault).unwrap() {
        Ending::Refused(Refusal::StoreStays(why)) => assert!(why.contains("is damaged"), "{why}"),
        ending => panic!("{ending:?}"),
    }
    assert_eq!(fs::read(&damaged).unwrap(), bytes);
    assert_eq!(fix(&path, &vault), Ok(Ending::Fixed));
}

/// A program that dies while it writes leaves pages of an unfinished transaction, and a journal that takes them back.
#[test]
fn an_unfinished_transaction_is_named_and_its_rows_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = openclaw(dir.path(), "DELETE", "s1", &entries());
    let path = session_path(&file, "s1");
    let old = exported(&path).0;
    let (dead, dead_path) =
        (dir.path().join("dead.sqlite"), session_path(&dir.path().join("dead.sqlite"), "s1"));
    // What does not fit is written before the end of the transaction.
    let half = "PRAGMA cache_size = 1; BEGIN; CREATE TABLE filler (data BLOB); \
                UPDATE transcript_events SET event_json = '{\"type\":\"custom\",\"id\":\"half\"}' WHERE event_zstd IS NULL; \
                WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 99) INSERT INTO filler SELECT zeroblob(9000) FROM n";
    store.execute_batch(half).unwrap();
    for end in ["", "-journal"] {
        fs::copy(beside(&file, end), beside(&dead, end)).unwrap();
    }
    let before = ["", "-journal"].map(|end| fs::read(beside(&dead, end)).unwrap());
    assert!(before[0].windows(6).any(|bytes| bytes == b"\"half\""), "nothing was written yet");
    let errors = [
        export(&dead_path).err().unwrap().to_string(),
        maintain(&dead_path, None, &Options::default()).err().unwrap().to_string(),
        fix(&dead_path, &dir.path().join("vault")).unwrap_err(),
        crate::find(&[&dead]).remove(0).err().unwrap().to_string(),
    ];
    assert!(errors.iter().all(|error| error.contains("died in the middle of a transaction")), "{errors:?}");
    assert!(["", "-journal"].map(|end| fs::read(beside(&dead, end)).unwrap()) == before);
    // Once SQLite has taken it back, all is as it was.
    let other = rusqlite::Connection::open(&dead).unwrap();
    other.query_row("SELECT count(*) FROM transcript_events", [], |_| Ok(())).unwrap();
    drop(other);
    assert_eq!(exported(&dead_path).0, old);
    assert_eq!(fix(&dead_path, &dir.path().join("vault")), Ok(Ending::Fixed));
}

/// A file system that is mounted for a test.
#[cfg(target_os = "linux")]
pub(super) struct TestMount<'p>(&'p Path);

#[cfg(target_os = "linux")]
impl<'p> TestMount<'p> {
    /// `None` if nothing may be mounted here.
    pub(super) fn tmpfs(at: &'p Path, size: &str) -> Option<Self> {
        let arguments = ["-t", "tmpfs", "-o", size, "none"];
        let done = Command::new("mount").args(arguments).arg(at).output();
        if done.is_ok_and(|done| done.status.success()) {
            return Some(Self(at));
        }
        // Not captured by the harness, which hides the output of tests that pass.
        let _ = std::io::stderr()
            .write_all(b"SKIPPED: a store on a file system of its own: nothing can be mounted here\n");
        None
    }

    /// `ro`, or `rw` again.
    fn remount(&self, how: &str) {
        let how = format!("remount,{how}");
        assert!(Command::new("mount").args(["-o", &how]).arg(self.0).status().unwrap().success());
    }
}

#[cfg(target_os = "linux")]
impl Drop for TestMount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_that_nobody_may_write_is_read_and_left() {
    for mode in ["DELETE", "WAL"] {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("media");
        fs::create_dir(&at).unwrap();
        let Some(mount) = TestMount::tmpfs(&at, "size=8m") else { return };
        let (file, store) = openclaw(&at, mode, "s1", &entries());
        drop(store);
        assert!(!beside(&file, "-wal").exists());
        mount.remount("ro");
        let path = session_path(&file, "s1");
        assert_eq!(exported(&path).0, entries().join("\n") + "\n");
        assert_eq!(found(&path)[0].0, "S1");
        let before = fs::read(&file).unwrap();
        let done = fix(&path, &dir.path().join("vault"));
        assert!(!matches!(done, Ok(Ending::Fixed)), "{done:?}");
        assert_eq!(fs::read(&file).unwrap(), before);
        assert_eq!(fs::read_dir(&at).unwrap().count(), 1);
        // Without locks, it can change while it is read.
        let database = Database::open(&file).unwrap();
        mount.remount("rw");
        assert!(database.is_unchanged());
        fs::write(&file, before).unwrap();
        assert_eq!(database.is_unchanged(), mode == "DELETE", "{mode}");
    }
}

/// The log finds no room for the new rows.
#[cfg(target_os = "linux")]
#[test]
fn on_a_full_disk_the_rows_stay_and_are_written_once_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("media");
    fs::create_dir(&at).unwrap();
    let Some(_mount) = TestMount::tmpfs(&at, "size=1m") else { return };
    let (file, store) = openclaw(&at, "WAL", "s1", &entries());
    store.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let path = session_path(&file, "s1");
    let text = exported(&path).0;
    let ballast = at.join("ballast");
    // As long as there is room.
    fs::write(&ballast, vec![0; 2 << 20]).unwrap_err();
    let vault = dir.path().join("vault");
    let done = fix(&path, &vault);
    let full = match &done {
        Err(error) => error.contains("full"),
        Ok(ending) => matches!(ending, Ending::Deferred(_)),
    };
    assert!(full, "{done:?}");
    assert_eq!(exported(&path).0, text);
    fs::remove_file(&ballast).unwrap();
    assert_eq!(exported(&path).0, text);
    assert_eq!(fix(&path, &vault), Ok(Ending::Fixed));
    drop(store);
    fs::write(&ballast, vec![0; 2 << 20]).unwrap_err();
    let error = export(&path).err().unwrap().to_string();
    assert!(error.contains("beside it for a -shm file"), "{error}");
}
