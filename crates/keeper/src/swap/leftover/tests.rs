//! Old files that a program holds, copies of them, and files that others planted beside a transcript.
#![cfg(target_os = "linux")] // Its writers find files by descriptors without rights (`O_PATH`) and open them through /proc.

use crate::Deferral;
use crate::Ending;
use crate::Extent;
use crate::Mode;
use crate::Options;
use crate::Outcome;
use crate::Vault;
use crate::base::step::Step;
use crate::base::step::fault::{self, StepFault};
use crate::finish_all;
use crate::maintain;
use crate::undo;
use crate::vault::Ledger;
use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use transcript::policy::{Policy, Selection};

struct World {
    dir: TempDir,
    path: PathBuf,
}

/// A question, a call, a result of so many characters and an answer.
fn turn(name: &str, chars: usize) -> String {
    format!(
        "{{\"role\":\"user\",\"content\":\"question {name}\"}}\n\
         {{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{\"id\":\"call_{name}\",\"type\":\"function\",\
         \"function\":{{\"name\":\"x\",\"arguments\":\"{{}}\"}}}}]}}\n\
         {{\"role\":\"tool\",\"tool_call_id\":\"call_{name}\",\"content\":\"{}\"}}\n\
         {{\"role\":\"assistant\",\"content\":\"answer {name}\"}}\n",
        "x".repeat(chars)
    )
}

const BIG_CHARS: usize = 400;

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sessions")).unwrap();
        let path = dir.path().join("sessions/s.jsonl");
        fs::write(&path, turn("a", BIG_CHARS)).unwrap();
        Self { dir, path }
    }

    fn vault(&self) -> Vault {
        Vault::new(self.dir.path().join("vault"))
    }

    fn options(&self) -> Options {
        let ignore = ["M7", "M8", "S18"].map(str::to_string).to_vec();
        let policy = Policy {
            result_chars_max: 150,
            selection: Selection { ignore, ..Selection::default() },
            ..Policy::default()
        };
        Options { policy: policy.into(), mode: Mode::Fix, vault: Some(self.vault()), ..Options::default() }
    }

    /// As the command does it: what is left comes first.
    fn fix(&self) -> Outcome {
        finish_all(self.folder(), &self.vault());
        maintain(&self.path, None, &self.options()).unwrap()
    }

    /// Until nothing is left to do. A process that another test is about to start has our files open for a moment.
    fn fix_all(&self) {
        let until = Instant::now() + Duration::from_secs(30);
        while self.fix().ending != Ending::Clean {
            assert!(Instant::now() < until, "{:?}", self.fix().ending);
        }
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap()
    }

    fn beside(&self) -> Vec<String> {
        let names =
            self.folder().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "s.jsonl").collect()
    }

    /// What users and models said, and which calls have results, in order.
    fn told(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.path).unwrap();
        let told = |line: &str| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            let role = value["role"].as_str().unwrap();
            match role {
                "tool" => format!("result {}", value["tool_call_id"].as_str().unwrap()),
                _ => value["content"].as_str().map_or_else(|| "call".to_string(), str::to_string),
            }
        };
        text.lines().map(told).collect()
    }

    /// A fix while a program finds the file before the exchange, opens what it found after it, and keeps it open.
    fn fix_while_held(&self, fault: Option<StepFault>) -> File {
        let (found, held) = (Rc::new(RefCell::new(None)), Rc::new(RefCell::new(None)));
        let (path, shared, mut drained) = (self.path.clone(), Rc::clone(&held), false);
        let hook = move |_, step| match step {
            Step::LeaseOld => {
                let flags = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path);
                *found.borrow_mut() = flags.ok();
            }
            Step::Drain if !drained => {
                drained = true;
                let found = found.borrow();
                let old = format!("/proc/self/fd/{}", found.as_ref().unwrap().as_raw_fd());
                *shared.borrow_mut() = OpenOptions::new().append(true).open(old).ok();
            }
            _ => {}
        };
        let _ = fault::meanwhile(fault, hook, || maintain(&self.path, None, &self.options()));
        held.take().expect("the program got in")
    }
}

fn names(turns: &[&str]) -> Vec<String> {
    let of = |name: &&str| {
        [
            format!("question {name}"),
            "call".to_string(),
            format!("result call_{name}"),
            format!("answer {name}"),
        ]
    };
    turns.iter().flat_map(of).collect()
}

/// Lines are told by their place in the old file: however often we look, and whatever was mended since, each comes over
/// once and in order, and nothing else changes while more may come.
#[test]
fn what_a_program_writes_into_the_old_file_comes_over_once_and_in_order() {
    let world = World::new();
    let mut held = world.fix_while_held(None);
    assert_eq!(world.beside().len(), 1);
    for (number, name) in ["b", "c", "d"].into_iter().enumerate() {
        held.write_all(turn(name, BIG_CHARS).as_bytes()).unwrap();
        // Somebody else appends to the file at the path.
        let other = ["e", "f", "g"][number];
        OpenOptions::new()
            .append(true)
            .open(&world.path)
            .unwrap()
            .write_all(turn(other, 10).as_bytes())
            .unwrap();
        for _ in 0..2 {
            assert_eq!(world.fix().ending, Ending::Deferred(Deferral::OldFileOpen));
            let waits = undo(&world.path, None, &world.options(), None, Extent::Whole).unwrap();
            assert_eq!(waits.ending, Ending::Deferred(Deferral::OldFileOpen));
        }
    }
    assert_eq!(world.told(), names(&["a", "b", "c", "d", "e", "f", "g"]));
    drop(held);
    assert_eq!(world.fix().ending, Ending::Fixed);
    assert_eq!(world.fix().ending, Ending::Clean);
    assert_eq!((world.told(), world.beside()), (names(&["a", "b", "c", "d", "e", "f", "g"]), Vec::new()));
}

/// Somebody looks into the new file, as a search index does, so that it cannot be leased: lines that come to the old file
/// after others went on in the new one come over once all the same.
#[test]
fn lines_come_over_once_where_the_new_file_cannot_be_leased() {
    let world = World::new();
    let (path, folder) = (world.path.clone(), world.folder().canonicalize().unwrap());
    let (mut found, mut readers, mut drains) = (None, Vec::new(), 0);
    let append = |path: &Path, name: &str| {
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(turn(name, 10).as_bytes()).unwrap();
    };
    let hook = move |_, step| match step {
        Step::LeaseOld => found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).ok(),
        Step::LeaseNew => {
            let own = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
            let unnamed = |path: &PathBuf| {
                let target = fs::read_link(path).unwrap_or_default();
                target.parent() == Some(&folder) && target.to_string_lossy().ends_with("(deleted)")
            };
            let reader = own.filter(unnamed).find_map(|path| File::open(path).ok());
            readers.push(reader.expect("the new file has no name yet"));
        }
        Step::Drain if drains < 2 => {
            let old = found.as_ref().unwrap().as_raw_fd();
            append(Path::new(&format!("/proc/self/fd/{old}")), ["b", "c"][drains]);
            append(&path, ["d", "e"][drains]);
            drains += 1;
        }
        _ => {}
    };
    let _ = fault::meanwhile(None, hook, || maintain(&world.path, None, &world.options()));
    world.fix_all();
    assert_eq!((world.told(), world.beside()), (names(&["a", "b", "c", "d", "e"]), Vec::new()));
}

/// The same when the run died in the middle, and each run after it.
#[test]
fn late_lines_come_over_once_whenever_a_run_dies() {
    for at in 0..=30 {
        let world = World::new();
        let mut held = world.fix_while_held(None);
        held.write_all(turn("b", BIG_CHARS).as_bytes()).unwrap();
        OpenOptions::new()
            .append(true)
            .open(&world.path)
            .unwrap()
            .write_all(turn("c", 10).as_bytes())
            .unwrap();
        let die =
            |at| fault::with(Some(StepFault::Death { at }), || finish_all(world.folder(), &world.vault()));
        let _ = die(at);
        held.write_all(turn("d", 10).as_bytes()).unwrap();
        let _ = die(30 - at);
        drop(held);
        assert!(finish_all(world.folder(), &world.vault()).is_empty());
        world.fix();
        assert_eq!(world.fix().ending, Ending::Clean, "{at}");
        assert_eq!((world.told(), world.beside()), (names(&["a", "b", "d", "c"]), Vec::new()), "{at}");
    }
}

/// A run that dies while it brings lines over leaves two old files: the one that the lines came to, and the one that it
/// replaced. That has all lines of the transcript but these, in other places.
#[test]
fn nothing_comes_over_twice_when_a_run_dies_that_brings_lines_over() {
    for at in 0..40 {
        let world = World::new();
        let mut held = world.fix_while_held(None);
        held.write_all(turn("b", 10).as_bytes()).unwrap();
        let mut other = OpenOptions::new().append(true).open(&world.path).unwrap();
        other.write_all(turn("c", 10).as_bytes()).unwrap();
        drop((held, other));
        let _ = fault::with(Some(StepFault::Death { at }), || finish_all(world.folder(), &world.vault()));
        world.fix_all();
        assert_eq!((world.told(), world.beside()), (names(&["a", "b", "c"]), Vec::new()), "{at}");
    }
}

/// The same where others have gone on in both old files, and one of them has lines that the disk lost. Everything can be had back.
#[test]
fn lines_of_two_old_files_come_over_and_the_runs_before_are_undone() {
    let mut seen = 0;
    for at in 0..40 {
        let world = World::new();
        let mut held = world.fix_while_held(None);
        held.write_all(turn("b", 10).as_bytes()).unwrap();
        append(&world.path, &turn("c", 10));
        drop(held);
        let _ = fault::with(Some(StepFault::Death { at }), || finish_all(world.folder(), &world.vault()));
        if world.beside().len() < 2 {
            continue;
        }
        seen += 1;
        let lost = "\0".repeat(50) + "the end of a line\"}\n";
        for (name, turns) in world.beside().iter().zip(["d", "e"]) {
            append(&world.folder().join(name), &(lost.clone() + &turn(turns, 10)));
        }
        world.fix_all();
        let mut told = world.told();
        told.sort();
        let mut expected = names(&["a", "b", "c", "d", "e"]);
        expected.sort();
        assert_eq!((told, world.beside()), (expected, Vec::new()), "{at}");
        let undone =
            |run: Option<&str>| undo(&world.path, None, &world.options(), run, Extent::Whole).unwrap().ending;
        let records = world.vault().runs(&world.path.canonicalize().unwrap()).unwrap();
        for merge in records.into_iter().map(Result::unwrap).filter(|record| record.purpose.is_some()) {
            let ending = undone(Some(&merge.run));
            assert!(ending == Ending::Undone || !merge.removes(), "{at} {ending:?}");
        }
        while undone(None) == Ending::Undone {}
        let text = String::from_utf8(fs::read(&world.path).unwrap()).unwrap();
        assert!(text.starts_with(&turn("a", BIG_CHARS)), "{at} {text}");
        assert_eq!(text.matches(&lost).count(), 2, "{at} {text}");
    }
    assert!(seen > 0);
}

/// What the disk has lost of the old file is no text, and what cannot be brought over can be had from the vault.
#[test]
fn zeros_are_not_brought_over_and_undo_has_them() {
    let world = World::new();
    let mut held = world.fix_while_held(None);
    let lost = [&[0; 50][..], b"the end of a line\"}\n"].concat();
    held.write_all(&lost).unwrap();
    held.write_all(turn("b", 10).as_bytes()).unwrap();
    drop(held);
    world.fix();
    assert_eq!((world.told(), world.beside()), (names(&["a", "b"]), Vec::new()));
    let records: Vec<_> =
        world.vault().runs(&world.path.canonicalize().unwrap()).unwrap().into_iter().flatten().collect();
    let merge = records.iter().find(|record| record.purpose.is_some()).unwrap();
    let undone = undo(&world.path, None, &world.options(), Some(&merge.run), Extent::Whole).unwrap();
    assert_eq!(undone.ending, Ending::Undone);
    assert!(memchr::memmem::find(&fs::read(&world.path).unwrap(), &lost).is_some());
}

/// A world in which a run died while it brought lines over: so much of them stands in the old file, and so much at the path.
fn died_while_bringing_over(late: &str, old: &[u8], path: &[u8]) -> World {
    let world = World::new();
    let held = world.fix_while_held(None);
    let mut file = OpenOptions::new().append(true).open(&world.path).unwrap();
    let (known, now) = (held.metadata().unwrap().len(), file.metadata().unwrap());
    let record = world.vault().runs(&world.path.canonicalize().unwrap()).unwrap().remove(0).unwrap();
    let ledger = Ledger { known, upto: known + late.len() as u64, at: now.len(), current: now.ino() };
    world.vault().run_for_notes(&record).unwrap().note(&ledger).unwrap();
    (&held).write_all(old).unwrap();
    file.write_all(path).unwrap();
    world
}

/// The text as it may be after a power cut: with zeros before the end of each line, or in all of them, or cut short.
fn losses(text: &str, zeros_before_end: usize) -> Vec<Vec<u8>> {
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1).collect();
    let spans = ends.iter().map(|end| end - zeros_before_end - 9..end - zeros_before_end);
    let spans = spans.chain(std::iter::once(0..text.len() - 1));
    let zeroed = spans.map(|span| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[span].fill(0);
        bytes
    });
    let cut = ends.iter().flat_map(|end| [end - 4, *end]).chain([0]);
    zeroed.chain(cut.map(|end| text.as_bytes()[..end].to_vec())).collect()
}

/// Lines had been brought over when the power failed, and neither file had reached the disk: whatever one of the two
/// copies still has is there afterwards, whichever part each has lost, or how much of its end.
#[test]
fn what_one_of_two_copies_still_has_is_not_lost() {
    let late = turn("b", 30);
    let beside = losses(&late, 9);
    for (path, old) in losses(&late, 0).iter().flat_map(|path| beside.iter().map(move |old| (path, old))) {
        let has = |copy: &[u8], at: usize| copy.get(at).is_some_and(|byte| *byte != 0);
        if (0..late.len()).any(|at| !has(path, at) && !has(old, at)) {
            continue;
        }
        let damage = [path, old].map(|copy| String::from_utf8_lossy(copy).replace('\0', "0"));
        let world = died_while_bringing_over(&late, old, path);
        world.fix_all();
        assert_eq!((world.told(), world.beside()), (names(&["a", "b"]), Vec::new()), "{damage:#?}");
        // The same where programs have gone on in both files since.
        if path.last().is_some_and(|byte| *byte != b'\n') && path.len() < late.len() {
            continue;
        }
        let mut told = vec!["a", "b"];
        let mut old = old.clone();
        if old.len() == late.len() {
            old.extend(turn("d", 10).as_bytes());
            told.push("d");
        }
        told.push("c");
        let path = [&path[..], turn("c", 100).as_bytes()].concat();
        let world = died_while_bringing_over(&late, &old, &path);
        world.fix_all();
        assert_eq!((world.told(), world.beside()), (names(&told), Vec::new()), "{damage:#?}");
    }
}

/// The same with so much text that it is read in pieces.
#[test]
fn what_one_of_two_copies_still_has_is_not_lost_however_long_it_is() {
    let late = turn("b", 100_000);
    let (mut old, path) = (late.clone().into_bytes(), &late.as_bytes()[..late.len() - 4]);
    let lost = late.len() - 40;
    old[lost..lost + 9].fill(0);
    let world = died_while_bringing_over(&late, &old, path);
    world.fix_all();
    assert_eq!((world.told(), world.beside()), (names(&["a", "b"]), Vec::new()));
}

/// The old file ends where the copy was to begin, so there is nothing that could make a torn copy whole, and no run is made.
#[test]
fn a_torn_copy_stays_as_it_is_where_the_old_file_has_nothing_of_it() {
    let late = turn("b", 30);
    let world = died_while_bringing_over(&late, b"", &late.as_bytes()[..late.len() - 4]);
    let torn = fs::read(&world.path).unwrap();
    assert!(finish_all(world.folder(), &world.vault()).is_empty());
    assert_eq!((fs::read(&world.path).unwrap(), world.beside()), (torn, Vec::new()));
    let runs = world.vault().runs(&world.path.canonicalize().unwrap()).unwrap();
    assert_eq!(runs.len(), 1, "none but the fix");
}

/// The run died while it copied appended lines to a new text that never was at the path, and a program has put a file of its own
/// there, with all lines. Only what others appended to the new text is missing in it.
#[test]
fn what_was_copied_is_not_doubled_in_a_file_that_somebody_else_put_there() {
    let late = turn("b", 10);
    let world = died_before_the_exchange().next().unwrap();
    let new = world.folder().join(&world.beside()[0]);
    let record = world.vault().runs(&world.path.canonicalize().unwrap()).unwrap().pop().unwrap().unwrap();
    let (known, now) = (fs::metadata(&world.path).unwrap().len(), fs::metadata(&new).unwrap());
    let ledger = Ledger { known, upto: known + late.len() as u64, at: now.len(), current: now.ino() };
    world.vault().run_for_notes(&record).unwrap().note(&ledger).unwrap();
    append(&new, &(late.clone() + &turn("d", 10)));
    let text = fs::read_to_string(&world.path).unwrap() + &late + &turn("c", 10);
    fs::write(world.dir.path().join("own"), text).unwrap();
    fs::rename(world.dir.path().join("own"), &world.path).unwrap();
    world.fix_all();
    assert_eq!((world.told(), world.beside()), (names(&["a", "b", "c", "d"]), Vec::new()));
}

/// The run died after some of the lines, and somebody has appended since.
#[test]
fn lines_that_came_over_before_others_went_on_are_not_doubled() {
    let late = turn("b", 30);
    for end in memchr::memchr_iter(b'\n', late.as_bytes()) {
        let path = [&late.as_bytes()[..=end], turn("c", 10).as_bytes()].concat();
        let world = died_while_bringing_over(&late, late.as_bytes(), &path);
        world.fix_all();
        assert_eq!((world.told(), world.beside()), (names(&["a", "b", "c"]), Vec::new()), "{end}");
    }
}

/// Worlds in which a run died with its new text ready and the old one at the path, in each way there is.
fn died_before_the_exchange() -> impl Iterator<Item = World> {
    (0..40).filter_map(|at| {
        let world = World::new();
        let inode = fs::metadata(&world.path).unwrap().ino();
        let _ = fault::with(Some(StepFault::Death { at }), || maintain(&world.path, None, &world.options()));
        let record = world.vault().runs(&world.path.canonicalize().unwrap()).unwrap().pop();
        let ready = record.is_some_and(|record| record.unwrap().swap.is_some());
        let is_old = fs::metadata(&world.path).unwrap().ino() == inode;
        (ready && is_old && !world.beside().is_empty()).then_some(world)
    })
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// The exchange of names had not reached the disk when the power failed, so what was appended to the new text is beside the
/// old one. It was said before what came to the old one since.
#[test]
fn lines_that_lost_their_place_at_the_path_come_before_later_ones() {
    let mut seen = 0;
    for world in died_before_the_exchange() {
        seen += 1;
        append(&world.folder().join(&world.beside()[0]), &turn("b", 10));
        append(&world.path, &turn("c", 10));
        world.fix_all();
        assert_eq!((world.told(), world.beside()), (names(&["a", "b", "c"]), Vec::new()));
    }
    assert!(seen > 0);
}

/// A program has cut the old file off and gone on from there; its last line has no line break yet.
#[test]
fn an_old_file_that_was_cut_off_is_brought_over_to_its_last_byte() {
    let world = World::new();
    let mut held = world.fix_while_held(None);
    held.set_len(0).unwrap();
    held.write_all(turn("b", 10).trim_end().as_bytes()).unwrap();
    drop(held);
    world.fix_all();
    assert_eq!((world.told(), world.beside()), (names(&["a", "b"]), Vec::new()));
}

/// The disk has lost all of the old file's copy, and another program has a longer line where it was to go.
#[test]
fn lines_of_others_are_not_split_where_the_disk_lost_ours() {
    for length in [30, 100] {
        let late = "x".repeat(length - 1) + "\n";
        let path = turn("c", 100);
        let world = died_while_bringing_over(
            &late,
            &[&vec![0; length][..], b"\n", turn("d", 10).as_bytes()].concat(),
            path.as_bytes(),
        );
        world.fix_all();
        assert_eq!((world.told(), world.beside()), (names(&["a", "d", "c"]), Vec::new()), "{length}");
    }
}

/// The run died between its two notes of what it copied, and the old file is at the path again. What of the lines the disk
/// lost there, the copy has; others may have appended to either file.
#[test]
fn what_was_being_copied_is_neither_doubled_nor_behind_later_lines() {
    let late = turn("b", 10);
    for (copied, lost) in [(0, false), (late.len() / 2, false), (late.len(), false), (late.len(), true)] {
        let world = died_before_the_exchange().next().unwrap();
        let new = world.folder().join(&world.beside()[0]);
        let record = world.vault().runs(&world.path.canonicalize().unwrap()).unwrap().pop().unwrap().unwrap();
        let (known, at) = (fs::metadata(&world.path).unwrap().len(), fs::metadata(&new).unwrap().len());
        let current = fs::metadata(&new).unwrap().ino();
        let ledger = Ledger { known, upto: known + late.len() as u64, at, current };
        world.vault().run_for_notes(&record).unwrap().note(&ledger).unwrap();
        append(&new, &late[..copied]);
        if !lost {
            append(&world.path, &late);
        }
        let mut told = vec!["a", "b", "c"];
        if copied == late.len() {
            append(&new, &turn("d", 10));
            told.insert(2, "d");
        }
        append(&world.path, &turn("c", 10));
        world.fix_all();
        assert_eq!((world.told(), world.beside()), (names(&told), Vec::new()), "{copied} {lost}");
    }
}

/// A leftover that is shorter than what was read, or has lost a part of it, never takes the place of the text at the path.
#[test]
fn what_the_disk_lost_of_the_old_file_does_not_win() {
    for damage in 0..4 {
        let world = World::new();
        let held = world.fix_while_held(Some(StepFault::Death { at: 17 }));
        let left = world.folder().join(&world.beside()[0]);
        let file = OpenOptions::new().write(true).open(&left).unwrap();
        let length = file.metadata().unwrap().len();
        match damage {
            0 => file.set_len(0).unwrap(),
            1 => file.set_len(length / 2).unwrap(),
            2 => file.write_all_at(&[0; 60], length / 2).unwrap(),
            _ => file.write_all_at(&[0; 60], length - 60).unwrap(),
        }
        drop((file, held));
        world.fix();
        assert_eq!((world.told(), world.beside()), (names(&["a"]), Vec::new()), "{damage}");
        assert!(!fs::read(&world.path).unwrap().contains(&0));
        assert_eq!(world.fix().ending, Ending::Clean);
    }
}

/// An agent changes an early line in place and then appends: the change is in the file afterwards.
#[test]
fn an_edit_in_place_before_an_append_is_not_lost() {
    for step in [Step::WriteText, Step::CatchUp, Step::LeaseOld] {
        let world = World::new();
        let (path, mut done) = (world.path.clone(), false);
        let hook = move |_, now| {
            if now == step && !done {
                done = true;
                OpenOptions::new().write(true).open(&path).unwrap().write_all_at(b"QUESTION", 26).unwrap();
                let mut file = OpenOptions::new().append(true).open(&path).unwrap();
                file.write_all(turn("b", 10).as_bytes()).unwrap();
            }
        };
        let outcome = fault::meanwhile(None, hook, || world.fix()).0;
        world.fix();
        let expected: Vec<String> =
            names(&["a", "b"]).into_iter().map(|name| name.replace("question a", "QUESTION a")).collect();
        assert_eq!(world.told(), expected, "{step:?} {:?}", outcome.ending);
        assert!(fs::metadata(&world.path).unwrap().len() < 1000, "shortened");
    }
}

/// The same, where others come so often that the comparison is put off until the new text is in place.
#[test]
fn an_edit_in_place_is_not_lost_where_many_append() {
    let world = World::new();
    // So much that the end of the file, which is looked at each time, says nothing of the edit.
    fs::write(&world.path, turn("a", BIG_CHARS) + &turn("z", 5000)).unwrap();
    let (path, mut compared) = (world.path.clone(), 0);
    let threads = Rc::new(RefCell::new(Vec::new()));
    let waiting = Rc::clone(&threads);
    let hook = move |_, now| {
        let append = |path: &Path, name: &str| {
            let mut file = OpenOptions::new().append(true).open(path).unwrap();
            file.write_all(turn(name, 10).as_bytes()).unwrap();
        };
        if now == Step::LeaseOld {
            // Who waited has gone first.
            waiting.take().into_iter().for_each(|thread: JoinHandle<()>| thread.join().unwrap());
        }
        if now == Step::LeaseOld && compared == 0 {
            OpenOptions::new().write(true).open(&path).unwrap().write_all_at(b"QUESTION", 26).unwrap();
            append(&path, "b");
        }
        if now == Step::Compare {
            compared += 1;
            // The last of these waits for the lease that is held during the exchange.
            if let Some(name) = ["c", "d", "e"].get(compared - 1) {
                let opened = path.clone();
                waiting.borrow_mut().push(std::thread::spawn(move || append(&opened, name)));
                wait_until_somebody_waits(&path);
            }
        }
    };
    let (outcome, steps) = fault::meanwhile(None, hook, || world.fix());
    threads.take().into_iter().for_each(|thread| thread.join().unwrap());
    assert!(
        steps.contains(&Step::Exchange) && steps.iter().filter(|step| **step == Step::Compare).count() == 4
    );
    assert!(matches!(outcome.ending, Ending::Deferred(Deferral::Changed)), "{:?}", outcome.ending);
    assert_eq!(world.fix().ending, Ending::Fixed);
    let expected = names(&["a", "z", "b", "c", "d", "e"]).into_iter();
    let expected: Vec<String> = expected.map(|name| name.replace("question a", "QUESTION a")).collect();
    assert_eq!((world.told(), world.beside()), (expected, Vec::new()));
}

/// Waits until a lease on the file is to be given back because a program wants to write to it.
fn wait_until_somebody_waits(path: &Path) {
    let inode = format!(":{} ", fs::metadata(path).unwrap().ino());
    let is_awaited = || {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|lock| lock.contains("BREAKING") && lock.contains(&inode))
    };
    let until = Instant::now() + Duration::from_secs(10);
    while !is_awaited() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Files with names like ours are left alone, and keep nobody from a fix.
#[test]
fn a_file_that_no_run_has_left_is_not_believed() {
    let world = World::new();
    let evil = |name: &str| {
        let path = world.folder().join(name);
        fs::write(&path, turn("evil", 10)).unwrap();
        path
    };
    let planted = evil(".tailor-20260101T000000.000Z-00000000.tmp");
    symlink("/etc/passwd", world.folder().join(".tailor-link.tmp")).unwrap();
    assert_eq!(world.fix().ending, Ending::Fixed);
    // Now in the name of a run of ours.
    let records = world.vault().runs(&world.path.canonicalize().unwrap()).unwrap();
    let run = records[0].as_ref().unwrap().run.clone();
    let named = evil(&format!(".tailor-{run}.tmp"));
    let errors: Vec<String> =
        finish_all(world.folder(), &world.vault()).iter().map(ToString::to_string).collect();
    assert!(errors.len() == 3 && errors.iter().all(|error| error.contains("left alone")), "{errors:?}");
    assert_eq!(world.fix().ending, Ending::Clean);
    let undone = undo(&world.path, None, &world.options(), None, Extent::Whole).unwrap();
    assert_eq!(undone.ending, Ending::Undone);
    assert_eq!(fs::read_to_string(&world.path).unwrap(), turn("a", BIG_CHARS));
    assert!(planted.exists() && named.exists());
}

/// The copy of a folder with an old file in it, and a folder that was moved.
#[test]
fn late_lines_stay_in_a_copied_folder_and_come_over_in_a_moved_one() {
    let world = World::new();
    let mut held = world.fix_while_held(None);
    held.write_all(turn("b", 10).as_bytes()).unwrap();
    drop(held);
    let left = world.beside().remove(0);
    let copy = world.dir.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for name in ["s.jsonl", &left] {
        fs::copy(world.folder().join(name), copy.join(name)).unwrap();
    }
    let errors = finish_all(&copy, &world.vault());
    assert!(errors.len() == 1 && errors[0].to_string().contains("left alone"), "{errors:?}");
    assert_eq!(maintain(&copy.join("s.jsonl"), None, &world.options()).unwrap().ending, Ending::Clean);
    assert!(fs::read_to_string(copy.join(&left)).unwrap().contains("question b"));

    let moved = world.dir.path().join("moved");
    fs::rename(world.folder(), &moved).unwrap();
    assert!(finish_all(&moved, &world.vault()).is_empty());
    let world = World { path: moved.join("s.jsonl"), dir: world.dir };
    assert_eq!((world.told(), world.beside()), (names(&["a", "b"]), Vec::new()));
}

/// A transcript that its agent has removed does not come back.
#[test]
fn an_old_file_whose_transcript_is_gone_is_kept_only_for_late_lines() {
    let world = World::new();
    let mut held = world.fix_while_held(None);
    held.write_all(turn("b", 10).as_bytes()).unwrap();
    fs::remove_file(&world.path).unwrap();
    let errors = finish_all(world.folder(), &world.vault());
    assert!(errors.len() == 1 && errors[0].to_string().contains("its transcript is gone"), "{errors:?}");
    assert_eq!(world.beside().len(), 1);
    held.set_len(turn("a", BIG_CHARS).len() as u64).unwrap();
    drop(held);
    assert!(finish_all(world.folder(), &world.vault()).is_empty());
    assert!(world.beside().is_empty());
}

#[test]
fn the_inode_of_the_transcript_changes_and_its_name_does_not() {
    let world = World::new();
    let inode = || fs::metadata(&world.path).unwrap().ino();
    let before = inode();
    assert_eq!(world.fix().ending, Ending::Fixed);
    assert_ne!(before, inode());
    assert!(world.beside().is_empty());
}

/// In place of what a fix takes out, a program writes something else at the moment when that is in the vault already, and it
/// appends, so that the file shows only that it has grown.
#[test]
fn an_edit_of_what_goes_is_not_lost_behind_an_append() {
    let world = World::new();
    let path = world.path.clone();
    // The last bytes are compared in any case.
    let after: String = (0..30).map(|n| turn(&format!("a{n}"), 10)).collect();
    fs::write(&path, turn("a", BIG_CHARS) + &after).unwrap();
    let mut is_done = false;
    let hook = move |_, step| {
        if step == Step::CatchUp && !std::mem::replace(&mut is_done, true) {
            let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let middle = text.find("xxxx").unwrap() + BIG_CHARS / 2;
            file.write_all_at(b"EDITED", middle as u64).unwrap();
            file.write_all_at(turn("b", 10).as_bytes(), text.len() as u64).unwrap();
        }
    };
    let _ = fault::meanwhile(None, hook, || maintain(&world.path, None, &world.options()));
    world.fix_all();
    assert!(!fs::read_to_string(&world.path).unwrap().contains("EDITED"), "it is cut");
    while undo(&world.path, None, &world.options(), None, Extent::Whole).unwrap().ending == Ending::Undone {}
    let text = fs::read_to_string(&world.path).unwrap();
    assert_eq!(text.replace("EDITED", "xxxxxx"), turn("a", BIG_CHARS) + &after + &turn("b", 10));
    assert!(text.contains("EDITED"), "{text}");
}

/// The last line is completed while it is being repaired as a torn one.
#[test]
fn a_line_that_was_torn_and_is_completed_stays_whole() {
    let world = World::new();
    let path = world.path.clone();
    let (torn, rest) = ("{\"role\":\"user\",\"content\":\"ques", "tion b\"}\n");
    fs::write(&path, turn("a", BIG_CHARS) + torn).unwrap();
    let mut is_done = false;
    let hook = move |_, step| {
        if step == Step::CatchUp && !std::mem::replace(&mut is_done, true) {
            OpenOptions::new().append(true).open(&path).unwrap().write_all(rest.as_bytes()).unwrap();
        }
    };
    let (done, steps) = fault::meanwhile(None, hook, || maintain(&world.path, None, &world.options()));
    assert!(done.is_ok() && steps.contains(&Step::CatchUp), "{steps:?}");
    let text = fs::read_to_string(&world.path).unwrap();
    assert!(text.ends_with(&format!("\n{torn}{rest}")), "{text}");
}

/// A change right after the file was opened may carry the time that it had then, so all bytes are compared.
#[test]
fn a_file_that_was_just_written_is_compared() {
    // On a machine that is busy, it may have taken too long.
    let is_compared = || {
        let world = World::new();
        fault::with(None, || maintain(&world.path, None, &world.options())).1.contains(&Step::Compare)
    };
    assert!((0..200).any(|_| is_compared()));
}

/// After the exchange, one program appends to the old file and another to the new one.
#[test]
fn a_late_line_comes_before_those_that_followed_it() {
    let world = World::new();
    let (path, mut found, mut drains) = (world.path.clone(), None, 0);
    let append = |path: &Path, name: &str| {
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(turn(name, 10).as_bytes()).unwrap();
    };
    let hook = move |_, step| match step {
        Step::LeaseOld => found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).ok(),
        Step::Drain => {
            drains += 1;
            // By now the new file is not leased any more.
            if drains == 2 {
                let old = found.as_ref().unwrap().as_raw_fd();
                append(Path::new(&format!("/proc/self/fd/{old}")), "b");
                append(&path, "c");
            }
        }
        _ => {}
    };
    let _ = fault::meanwhile(None, hook, || maintain(&world.path, None, &world.options()));
    world.fix_all();
    assert_eq!((world.told(), world.beside()), (names(&["a", "b", "c"]), Vec::new()));
}

/// Where there are no leases, a program dies in the middle of a line that it writes to the old file.
#[test]
fn half_a_line_of_a_dead_program_is_not_lost() {
    let world = World::new();
    let (path, mut found, mut drains) = (world.path.clone(), None, 0);
    let hook = move |_, step| match step {
        Step::LeaseOld | Step::CatchUpLast => {
            found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).ok();
        }
        Step::Drain => {
            drains += 1;
            if drains == 2 {
                let old = format!("/proc/self/fd/{}", found.as_ref().unwrap().as_raw_fd());
                OpenOptions::new().append(true).open(old).unwrap().write_all(b"{\"half a line").unwrap();
            }
        }
        _ => {}
    };
    let system = fault::FaultySystem { leases: fault::Leases::Seen, ..fault::HERE };
    let fix = || maintain(&world.path, None, &world.options());
    let (done, steps) = fault::on(system, || fault::meanwhile(None, hook, fix));
    assert!(done.is_ok() && steps.contains(&Step::Exchange), "{steps:?}");
    let text = fs::read_to_string(&world.path).unwrap();
    assert!(text.ends_with("{\"half a line"), "{text} {:?}", world.beside());
}

/// A program that had opened the old file rewrites it, and its text is back at the path: with what another one appended to the new
/// text meanwhile, although that run says that the file has changed.
#[test]
fn what_came_to_the_new_text_is_handed_over_where_the_old_one_is_rewritten() {
    let world = World::new();
    let (path, mut found, mut drains) = (world.path.clone(), None, 0);
    let hook = move |_, step| match step {
        Step::LeaseOld => found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).ok(),
        Step::Drain => {
            drains += 1;
            // By now the new file is not leased any more.
            if drains == 2 {
                append(&path, &turn("c", 10));
                let old = format!("/proc/self/fd/{}", found.as_ref().unwrap().as_raw_fd());
                fs::write(old, turn("b", 10)).unwrap();
            }
        }
        _ => {}
    };
    let done = fault::meanwhile(None, hook, || maintain(&world.path, None, &world.options())).0;
    assert_eq!(done.unwrap().ending, Ending::Deferred(Deferral::Changed));
    assert_eq!(world.told(), names(&["b", "c"]));
    world.fix_all();
    assert_eq!((world.told(), world.beside()), (names(&["b", "c"]), Vec::new()));
}
