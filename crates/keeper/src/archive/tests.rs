//! What is kept of files that grow, change and go, and what is left of it after damage.

use super::*;
use crate::base::interruption::IS_TOLD_HERE;
use std::fs;
use std::time::Duration;
use tempfile::TempDir;

struct Home {
    dir: TempDir,
    archive: Archive,
}

fn never(_: &Path, _: i64) -> bool {
    false
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let archive = Archive::new(dir.path().join("kept"));
        Self { dir, archive }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("s.jsonl")
    }

    fn look(&mut self) -> Change {
        // Later than the times of the file can tell.
        std::thread::sleep(Duration::from_millis(25));
        let path = self.path();
        let mut writing = self.archive.write().unwrap();
        let look = writing.look(&path, &never).unwrap();
        writing.sync().unwrap();
        let Look::Seen(change) = look else { panic!("{look:?}") };
        change
    }

    /// Each generation's text, and how it ended, as another process reads them.
    fn texts(&self) -> Vec<(Vec<u8>, Option<End>)> {
        let mut kept = self.archive.read().unwrap().unwrap();
        let all: Vec<Generation> = kept.generations().into_iter().cloned().collect();
        let mut text = |one: &Generation| {
            let mut text = Vec::new();
            assert_eq!(kept.copy(one, one.bytes, &mut text).unwrap(), 0);
            text
        };
        all.iter().map(|one| (text(one), one.ended.map(|(_, end)| end))).collect()
    }

    fn files(&self, rack: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.archive.root().join(rack)) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// Root reads it as its owner.
#[cfg(target_os = "linux")]
#[test]
fn a_session_that_its_owner_cannot_reach_is_not_read() {
    if !crate::platform::acting::are_root() {
        return;
    }
    let mut home = Home::new();
    let path = home.path();
    fs::write(&path, b"{}\n").unwrap();
    fs::set_permissions(home.dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&path, Some(5001), Some(5001)).unwrap();
    let look = home.archive.write().unwrap().look(&path, &never).unwrap();
    assert!(matches!(look, Look::Unreadable(_)), "{look:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_with_long_holes_is_named_and_not_read() {
    let mut home = Home::new();
    let path = home.path();
    append(&path, b"{}\n");
    for (bytes, is_kept) in [(60 << 10, true), (66 << 20, false)] {
        fs::File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
        append(&path, b"{}\n");
        let look = home.archive.write().unwrap().look(&path, &never).unwrap();
        assert_eq!(matches!(look, Look::Seen(Change::Grown(_))), is_kept, "{bytes}: {look:?}");
    }
}

#[test]
fn a_long_session_does_not_hold_the_end_and_a_short_one_is_kept() {
    let mut home = Home::new();
    let path = home.path();
    let before = lines(0, 100);
    fs::write(&path, &before).unwrap();
    IS_TOLD_HERE.set(true);
    assert!(matches!(home.look(), Change::Grown(_)));
    append(&path, &lines(100, 40_000));
    let stopped = home.archive.write().unwrap().look(&path, &never).unwrap();
    assert!(matches!(stopped, Look::Unreadable(_)), "{stopped:?}");
    assert_eq!(home.texts(), [(before, None)]);
    IS_TOLD_HERE.set(false);
    assert!(matches!(home.look(), Change::Grown(_)));
    assert_eq!(home.texts(), [(lines(0, 40_100), None)]);
}

/// Lines that compress as those of sessions do.
fn lines(from: usize, count: usize) -> Vec<u8> {
    let line = |n: usize| format!("{{\"n\":{n},\"hash\":\"{}\"}}\n", blake3::hash(&n.to_le_bytes()));
    (from..from + count).map(line).collect::<String>().into_bytes()
}

fn append(path: &Path, text: &[u8]) {
    fs::File::options().append(true).create(true).open(path).unwrap().write_all(text).unwrap();
}

#[test]
fn what_grows_is_one_generation_and_what_is_changed_is_another() {
    let mut home = Home::new();
    let path = home.path();
    let mut whole = Vec::new();
    for n in 0..40 {
        let more = lines(n * 200, 200);
        append(&path, &more);
        whole.extend(more);
        assert!(matches!(home.look(), Change::Grown(_)));
        assert_eq!(home.look(), Change::None);
    }
    assert_eq!(home.texts(), [(whole.clone(), None)]);
    let mut other = whole.clone();
    other[1000] = b'#';
    fs::write(&path, &other).unwrap();
    assert_eq!(home.look(), Change::Ended(End::Rewritten));
    fs::write(&path, &other[..5_000]).unwrap();
    assert_eq!(home.look(), Change::Ended(End::Truncated));
    fs::write(&path, b"").unwrap();
    assert_eq!(home.look(), Change::Ended(End::Emptied));
    append(&path, b"again\n");
    assert!(matches!(home.look(), Change::Grown(6)));
    fs::remove_file(&path).unwrap();
    assert_eq!(home.look(), Change::Ended(End::Deleted));
    let expected = [
        (whole, Some(End::Rewritten)),
        (other.clone(), Some(End::Truncated)),
        (other[..5_000].to_vec(), Some(End::Emptied)),
        (b"again\n".to_vec(), Some(End::Deleted)),
    ];
    assert_eq!(home.texts(), expected);
}

#[cfg(unix)]
#[test]
fn a_session_has_the_rights_that_it_had_last() {
    use std::os::unix::fs::PermissionsExt;
    let mut home = Home::new();
    let (path, put_back) = (home.path(), home.dir.path().join("put-back"));
    fs::write(&path, b"{}\n").unwrap();
    for mode in [0o644, 0o600] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        home.look();
        let kept = home.archive.read().unwrap().unwrap();
        let new = fs::File::create(&put_back).unwrap();
        kept.generations()[0].attributes.give(&new).unwrap();
        assert_eq!(new.metadata().unwrap().permissions().mode() & 0o777, mode);
    }
}

#[test]
fn a_file_that_is_replaced_by_a_longer_one_goes_on() {
    let mut home = Home::new();
    let path = home.path();
    fs::write(&path, lines(0, 3_000)).unwrap();
    home.look();
    fs::write(path.with_extension("new"), lines(0, 3_100)).unwrap();
    fs::rename(path.with_extension("new"), &path).unwrap();
    assert!(matches!(home.look(), Change::Grown(_)));
    assert_eq!(home.texts(), [(lines(0, 3_100), None)]);
}

/// A change in the middle of a file that keeps its length shows in its times alone.
#[test]
fn a_change_that_keeps_the_length_is_seen() {
    let mut home = Home::new();
    let path = home.path();
    fs::write(&path, lines(0, 100)).unwrap();
    home.look();
    let mut other = lines(0, 100);
    other[10] = b'#';
    fs::File::options().write(true).open(&path).unwrap().write_all(&other).unwrap();
    assert_eq!(home.look(), Change::Ended(End::Rewritten));
    assert_eq!(home.texts().len(), 2);
}

#[test]
fn pieces_become_chunks_and_nothing_is_lost_with_them() {
    let mut home = Home::new();
    let path = home.path();
    for n in 0..20 {
        append(&path, &lines(n * 10, 10));
        home.look();
    }
    assert_eq!(home.files("recent").len(), 1);
    home.archive.write().unwrap().settle_all().unwrap();
    assert_eq!((home.files("recent").len(), home.texts()), (0, vec![(lines(0, 200), None)]));
    append(&path, &lines(200, 10));
    home.look();
    assert_eq!(home.texts(), [(lines(0, 210), None)]);
}

/// A damaged piece stays lost, and neither goes with it what is around it nor is the archive never tidied again.
#[test]
fn a_damaged_piece_hinders_nothing() {
    let mut home = Home::new();
    let path = home.path();
    for n in 0..3 {
        append(&path, &lines(n * 10, 10));
        home.look();
    }
    let recent = home.files("recent").remove(0);
    let mut text = fs::read(&recent).unwrap();
    let first = memchr::memmem::find_iter(&text, b"tailor1c").next().unwrap();
    text[first + 60..first + 70].fill(0);
    fs::write(&recent, text).unwrap();
    home.archive.write().unwrap().settle_all().unwrap();
    assert_eq!(home.files("recent").len(), 0);
    let mut kept = home.archive.read().unwrap().unwrap();
    let (one, mut left) = (kept.generations()[0].clone(), Vec::new());
    let lost = kept.copy(&one, one.bytes, &mut left).unwrap();
    assert_eq!((left, lost), ([lines(0, 10), lines(20, 10)].concat(), lines(10, 10).len() as u64));
}

/// Another process that writes to the archive is noticed.
#[test]
fn two_processes_keep_the_same_generation() {
    let mut home = Home::new();
    let path = home.path();
    append(&path, &lines(0, 10));
    home.look();
    let mut other = Archive::new(home.archive.root().to_path_buf());
    append(&path, &lines(10, 10));
    std::thread::sleep(Duration::from_millis(25));
    let mut writing = other.write().unwrap();
    writing.look(&path, &never).unwrap();
    writing.bound(KeepLimits::default()).unwrap();
    drop(writing);
    append(&path, &lines(20, 10));
    home.look();
    assert_eq!(home.texts(), [(lines(0, 30), None)]);
}

#[test]
fn what_was_cut_off_or_damaged_costs_what_it_touches() {
    let mut home = Home::new();
    let path = home.path();
    let other = path.with_file_name("t.jsonl");
    fs::write(&other, lines(50_000, 20_000)).unwrap();
    home.archive.write().unwrap().look(&other, &never).unwrap();
    for n in 0..4 {
        append(&path, &lines(n * 10, 10));
        home.look();
    }
    let recent = home.files("recent").remove(0);
    let text = fs::read(&recent).unwrap();
    fs::write(&recent, &text[..text.len() - 7]).unwrap();
    let texts = home.texts();
    assert_eq!(texts[0], (lines(0, 30), None));
    assert_eq!(texts[1].0, lines(50_000, 20_000));
    let pack = home.files("packs").remove(0);
    let mut text = fs::read(&pack).unwrap();
    text[500..600].fill(0);
    fs::write(&pack, text).unwrap();
    let damage = home.archive.read().unwrap().unwrap().check();
    assert_eq!((damage.chunks, damage.generations.len()), (1, 1));
    let mut kept = home.archive.read().unwrap().unwrap();
    let damaged = &damage.generations[0];
    let mut left = Vec::new();
    let lost = kept.copy(damaged, damaged.bytes, &mut left).unwrap();
    assert!(lost > 0 && left.len() as u64 + lost == damaged.bytes && !left.is_empty());
}

#[test]
fn copies_and_changes_share_what_they_have_in_common() {
    let mut home = Home::new();
    let path = home.path();
    let text = lines(0, 40_000);
    fs::write(&path, &text).unwrap();
    home.look();
    let once = home.archive.read().unwrap().unwrap().bytes();
    fs::write(path.with_file_name("fork.jsonl"), &text).unwrap();
    let fork = path.with_file_name("fork.jsonl");
    home.archive.write().unwrap().look(&fork, &never).unwrap();
    fs::write(&path, [&lines(7, 3), &text[2_000..]].concat()).unwrap();
    home.look();
    let thrice = home.archive.read().unwrap().unwrap().bytes();
    assert!(thrice < once * 13 / 10, "{once} {thrice}");
}

#[test]
fn the_last_generation_of_a_session_that_is_gone_goes_last() {
    let mut home = Home::new();
    let path = home.path();
    let gone = path.with_file_name("gone.jsonl");
    for n in 0..4 {
        fs::write(&path, lines(n * 9_000, 9_000)).unwrap();
        home.look();
    }
    fs::write(&gone, lines(90_000, 9_000)).unwrap();
    home.archive.write().unwrap().look(&gone, &never).unwrap();
    fs::remove_file(&gone).unwrap();
    home.archive.write().unwrap().look_for_gone().unwrap();
    let bytes = home.archive.read().unwrap().unwrap().bytes();
    let limits = |bytes| KeepLimits { bytes, ..KeepLimits::default() };
    let dropped = home.archive.write().unwrap().bound(limits(bytes * 50 / 100)).unwrap();
    assert_eq!(dropped.generations.len(), 3);
    assert!(dropped.bytes_kept < bytes * 6 / 10, "{bytes} {dropped:?}");
    let texts = home.texts();
    assert_eq!(texts, [(lines(90_000, 9_000), Some(End::Deleted)), (lines(27_000, 9_000), None)]);
    let dropped = home.archive.write().unwrap().bound(limits(1)).unwrap();
    assert_eq!((dropped.generations.len(), home.texts().len()), (1, 1));
    let days = KeepLimits { age: Duration::ZERO, ..KeepLimits::default() };
    fs::remove_file(&path).unwrap();
    home.look();
    std::thread::sleep(Duration::from_millis(5));
    home.archive.write().unwrap().bound(days).unwrap();
    assert_eq!((home.texts().len(), home.files("packs").len()), (0, 0));
}

#[test]
fn a_text_that_is_forgotten_is_in_no_file() {
    let mut home = Home::new();
    let path = home.path();
    fs::write(&path, [lines(0, 10), b"the secret 1234\n".to_vec(), lines(10, 10)].concat()).unwrap();
    home.look();
    fs::write(&path, lines(0, 20)).unwrap();
    home.look();
    append(&path, &lines(20, 20));
    home.look();
    let texts = |_: &[u8]| vec![b"secret 1234".to_vec()];
    let read = |file: PathBuf| (fs::read(&file).unwrap(), file);
    let files = |home: &Home| {
        ["packs", "sessions"].map(|rack| home.files(rack).into_iter().map(read).collect::<Vec<_>>())
    };
    let before = files(&home);
    assert_eq!(home.archive.write().unwrap().forget(&texts, true).unwrap(), 1);
    assert_eq!(files(&home), before, "a dry run");
    assert_eq!(home.archive.write().unwrap().forget(&texts, false).unwrap(), 1);
    let expected = [lines(0, 10), b"the ***********\n".to_vec(), lines(10, 10)].concat();
    assert_eq!(home.texts()[0], (expected, Some(End::Rewritten)));
    for file in home.files("packs") {
        let text = zstd::decode_all(fs::File::open(file).unwrap()).unwrap();
        assert!(memchr::memmem::find(&text, b"1234").is_none());
    }
}

/// A stranger needs zstd and nothing else.
#[test]
fn zstd_alone_reads_the_files() {
    let mut home = Home::new();
    fs::write(home.path(), lines(0, 100)).unwrap();
    home.look();
    let text = |rack: &str| {
        let file = fs::File::open(home.files(rack).remove(0)).unwrap();
        zstd::decode_all(file).unwrap()
    };
    assert_eq!(text("packs"), lines(0, 100));
    let state: serde_json::Value = serde_json::from_slice(&text("sessions")).unwrap();
    assert_eq!(state["bytes"], lines(0, 100).len());
}

#[test]
fn a_time_finds_the_generation_and_how_long_it_was() {
    let mut home = Home::new();
    let path = home.path();
    append(&path, &lines(0, 10));
    home.look();
    let kept = home.archive.read().unwrap().unwrap();
    let one = kept.generations()[0].clone();
    assert_eq!(one.bytes_at(one.began - 1), None);
    assert_eq!(one.bytes_at(one.at), Some(one.bytes));
    let later = Generation { at: one.at + 5_000, bytes: 9_999, ..one.clone() };
    assert_eq!(later.bytes_at(one.at + 10), Some(one.bytes));
    let ended = Generation { ended: Some((one.at + 6_000, End::Deleted)), ..later };
    assert_eq!((ended.bytes_at(one.at + 5_500), ended.bytes_at(one.at + 6_000)), (Some(9_999), None));
}
