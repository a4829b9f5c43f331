//! Runs over made-up sessions, taken back in any order, with lines appended and disks that fail in between.

use super::{Extent, undo};
use crate::outcome::{Ending, Refusal};
use crate::step::fault::{Fault, with};
use crate::vault::{Keep, State, Vault};
use crate::{Mode, Options, maintain};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use transcript::Policy;

/// A file and a vault.
struct Place {
    folder: tempfile::TempDir,
    appended: u32,
}

impl Place {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("s.jsonl"), text).unwrap();
        Self { folder, appended: 0 }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("s.jsonl")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("vault")
    }

    fn vault(&self) -> Vault {
        Vault::new(self.root())
    }

    fn options(&self, chars_max: u64) -> Options {
        let policy = Policy { result_chars_max: chars_max, side_chars_max: 40, ..Policy::default() };
        Options {
            policy: policy.into(),
            mode: Mode::Fix,
            settle: Duration::ZERO,
            settle_stale: Duration::ZERO,
            vault: Some(self.vault()),
            worth: None,
        }
    }

    fn fix(&self, chars_max: u64) -> Option<String> {
        let outcome = maintain(&self.path(), None, &self.options(chars_max)).unwrap();
        (outcome.ending == Ending::Fixed).then(|| outcome.run.unwrap())
    }

    fn undo(&self, run: Option<&str>) -> Ending {
        undo(&self.path(), None, &self.options(0), run, Extent::Whole).unwrap().ending
    }

    fn append(&mut self, text: &str) {
        File::options().append(true).open(self.path()).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn append_pair(&mut self, chars: usize) -> String {
        self.appended += 1;
        let text = pair(&format!("n{}", self.appended), chars);
        self.append(&text);
        text
    }

    /// Everything in the vault, with its length.
    fn kept(&self) -> Vec<(PathBuf, u64)> {
        let all = walkdir::WalkDir::new(self.root()).sort_by_file_name().into_iter().flatten();
        let files = all.filter(|entry| entry.file_type().is_file());
        files.map(|entry| (entry.path().to_path_buf(), entry.metadata().unwrap().len())).collect()
    }

    fn kept_named(&self, ending: &str) -> Vec<PathBuf> {
        let named = |path: &PathBuf| path.to_string_lossy().ends_with(ending);
        self.kept().into_iter().map(|(path, _)| path).filter(named).collect()
    }
}

/// A call and its result, in bare messages of the API for chats.
fn pair(id: &str, chars: usize) -> String {
    let text: String = (0..).map(|n| format!("row {n} of {id} \\u00e9\\n")).take(chars / 12 + 1).collect();
    format!(
        "{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{\"id\":\"{id}\",\"type\":\"function\",\
         \"function\":{{\"name\":\"ls\",\"arguments\":\"{{}}\"}}}}]}}\n\
         {{\"role\":\"tool\",\"tool_call_id\":\"{id}\",\"content\":\"{text}\"}}\n"
    )
}

const HELLO: &str = "{\"role\":\"user\",\"content\":\"hello\"}\n";

fn session(lengths: &[usize]) -> String {
    let pairs = lengths.iter().enumerate().map(|(n, &chars)| pair(&format!("c{n}"), chars));
    HELLO.to_string() + &pairs.collect::<String>() + "{\"role\":\"user\",\"content\":\"well?\"}\n"
}

#[test]
fn what_was_appended_stays() {
    let text = session(&[900, 40, 700]);
    let mut place = Place::new(&text);
    place.fix(200).unwrap();
    let fixed = place.text();
    assert!(fixed.len() < text.len() && fixed.contains("[tailor: "), "{fixed}");
    let more = place.append_pair(30);
    assert_eq!(place.undo(None), Ending::Undone);
    assert_eq!(place.text(), text + &more);
    assert_eq!(place.undo(None), Ending::Refused(Refusal::NothingToUndo));
}

#[test]
fn an_older_run_goes_and_the_newer_one_stays() {
    let text = session(&[900, 700]);
    let mut place = Place::new(&text);
    let first = place.fix(200).unwrap();
    let fixed = place.text();
    let more = place.append_pair(900)
        + &{
            place.append(HELLO);
            HELLO.to_string()
        };
    let second = place.fix(200).unwrap();
    let later = place.text()[fixed.len()..].to_string();
    assert!(later.contains("[tailor: "));
    assert_eq!(place.undo(Some(&first)), Ending::Undone);
    assert_eq!(place.text(), text.clone() + &later);
    assert_eq!(place.undo(Some(&first)), Ending::Refused(Refusal::AlreadyUndone(first)));
    assert_eq!(place.undo(Some(&second)), Ending::Undone);
    assert_eq!(place.text(), text + &more);
}

/// The marker of the first cut falls into the second.
#[test]
fn a_place_that_was_cut_again_waits_for_the_later_run() {
    let text = session(&[900, 700]);
    let place = Place::new(&text);
    let first = place.fix(300).unwrap();
    let fixed = place.text();
    let second = place.fix(150).unwrap();
    let again = place.text();
    assert_eq!(place.undo(Some(&first)), Ending::Refused(Refusal::LaterRun(second)));
    assert_eq!(place.text(), again);
    assert_eq!(place.undo(None), Ending::Undone);
    assert_eq!(place.text(), fixed);
    assert_eq!(place.undo(None), Ending::Undone);
    assert_eq!(place.text(), text);
}

#[test]
fn a_torn_line_comes_back_without_harm_to_what_came_after() {
    let torn = "{\"role\":\"user\",\"cont";
    let text = session(&[10]) + torn;
    let mut place = Place::new(&text);
    place.fix(200).unwrap();
    assert_eq!(place.undo(None), Ending::Undone);
    assert_eq!(place.text(), text);
    place.fix(200).unwrap();
    place.append(HELLO);
    assert_eq!(place.undo(None), Ending::Undone);
    assert_eq!(place.text(), text + "\n" + HELLO);
}

#[test]
fn bytes_that_somebody_else_changed_are_left_alone() {
    let place = Place::new(&session(&[900]));
    place.fix(200).unwrap();
    let other = place.text().replace("omitted", "OMITTED");
    fs::write(place.path(), &other).unwrap();
    assert_eq!(place.undo(None), Ending::Refused(Refusal::ChangedSince { line: 3 }));
    fs::write(place.path(), HELLO).unwrap();
    assert!(matches!(place.undo(None), Ending::Refused(Refusal::ChangedSince { .. })));
    assert_eq!(place.text(), HELLO);
}

/// Turns a bit in the middle of a file, or cuts it there.
fn damage(path: &Path, cut: bool) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    if cut {
        bytes.truncate(middle);
    } else {
        bytes[middle] ^= 1;
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_vault_is_an_error_and_the_file_stays() {
    for (ending, cut) in [(".pack", false), (".pack", true), (".undo", false), (".undo", true)] {
        let place = Place::new(&session(&[900]));
        place.fix(200).unwrap();
        let fixed = place.text();
        damage(&place.kept_named(ending)[0], cut);
        let error = undo(&place.path(), None, &place.options(0), None, Extent::Whole).err();
        let Some(error) = error else { panic!("{ending} {cut}: no error") };
        assert!(error.to_string().contains(": could not "), "{error}");
        assert_eq!(place.text(), fixed, "{ending} {cut}");
        let names = fs::read_dir(place.folder.path()).unwrap().count();
        assert_eq!(names, 2, "nothing is left beside the file");
    }
}

/// An older record that is broken is in nobody's way; a later one tells where the places of older ones are.
#[test]
fn a_broken_record_stops_only_what_needs_it() {
    for broken in 0..2 {
        let text = session(&[900]);
        let place = Place::new(&text);
        place.fix(300).unwrap();
        let once = place.text();
        place.fix(150).unwrap();
        let twice = place.text();
        fs::write(&place.kept_named(".undo")[broken], "{}").unwrap();
        let error =
            || undo(&place.path(), None, &place.options(0), None, Extent::Whole).err().unwrap().to_string();
        if broken == 0 {
            assert_eq!(place.undo(None), Ending::Undone);
            assert_eq!(place.text(), once);
        }
        let error = error();
        assert!(error.contains("could not read the record") && error.contains("cannot be undone"), "{error}");
        assert_eq!(place.text(), if broken == 0 { once } else { twice });
    }
}

/// A text that is there but damaged is written again when it is cut out once more.
#[test]
fn a_damaged_text_is_replaced_by_a_whole_one() {
    let text = session(&[900]);
    let place = Place::new(&text);
    place.fix(200).unwrap();
    damage(&place.kept_named(".pack")[0], true);
    fs::write(place.path(), &text).unwrap();
    place.fix(200).unwrap();
    assert_eq!(place.undo(None), Ending::Undone);
    assert_eq!(place.text(), text);
}

#[test]
fn a_text_is_kept_once() {
    let text = session(&[900]);
    let place = Place::new(&text);
    for _ in 0..3 {
        place.fix(200).unwrap();
        assert_eq!(place.undo(None), Ending::Undone);
    }
    assert_eq!(place.kept_named(".pack").len(), 1);
    assert_eq!(place.text(), text);
}

/// A run that died before the file was replaced does not stand in the way.
#[test]
fn a_run_that_never_landed_does_not_count() {
    let text = session(&[900]);
    let place = Place::new(&text);
    place.fix(200).unwrap();
    let fixed = place.text();
    // The same run again, dead before it wrote a word.
    fs::write(place.path(), &text).unwrap();
    place.fix(200).unwrap();
    let record = place.kept_named(".undo").pop().unwrap();
    fs::rename(&record, record.with_extension("kept")).unwrap();
    // It has landed all the same: the file says so.
    assert_eq!(place.text(), fixed);
    assert_eq!(place.undo(None), Ending::Undone);
    assert_eq!(place.text(), text);

    let place = Place::new(&text);
    place.fix(300).unwrap();
    let fixed = place.text();
    place.fix(150).unwrap();
    let record = place.kept_named(".undo").pop().unwrap();
    fs::rename(&record, record.with_extension("kept")).unwrap();
    fs::write(place.path(), &fixed).unwrap();
    assert_eq!(place.undo(None), Ending::Undone);
    assert_eq!(place.text(), text);
}

/// A run that took another back and died in the middle: the file tells whether it did.
#[test]
fn an_undo_that_died_is_done_or_not() {
    for landed in [false, true] {
        let text = session(&[900]);
        let place = Place::new(&text);
        place.fix(200).unwrap();
        let fixed = place.text();
        assert_eq!(place.undo(None), Ending::Undone);
        for (from, to) in [(".undone", "undo"), (".undo", "kept")] {
            let newest = place.kept_named(from).pop().unwrap();
            if to == "kept" {
                fs::rename(&newest, newest.with_extension("kept")).unwrap();
            } else {
                fs::rename(&newest, newest.with_extension("moved")).unwrap();
            }
        }
        let moved = place.kept_named(".moved").pop().unwrap();
        fs::rename(&moved, moved.with_extension("undo")).unwrap();
        if landed {
            assert_eq!(place.undo(None), Ending::Refused(Refusal::NothingToUndo));
        } else {
            fs::write(place.path(), &fixed).unwrap();
            assert_eq!(place.undo(None), Ending::Undone);
        }
        assert_eq!(place.text(), text);
    }
}

/// Wherever the disk fails: the old bytes or the new ones, and always a way back.
#[test]
fn a_disk_that_fails_at_any_step() {
    let text = session(&[900, 700]);
    let (fixed, steps) = {
        let place = Place::new(&text);
        let steps = with(None, || place.fix(200)).1.len();
        (place.text(), steps)
    };
    assert!(steps >= 16, "{steps}");
    for at in 0..steps {
        for fault in [Fault::Error { at, errno: 28 }, Fault::Death { at }] {
            let place = Place::new(&text);
            let failed = with(Some(fault), || maintain(&place.path(), None, &place.options(200)).is_err()).0;
            let now = place.text();
            assert!(now == fixed || (failed && now == text), "{fault:?}");
            place.fix(200);
            assert_eq!(place.text(), fixed, "{fault:?}");
            assert_eq!(place.undo(None), Ending::Undone, "{fault:?}");
            assert_eq!(place.text(), text, "{fault:?}");
        }
    }
}

#[test]
fn an_undo_on_a_disk_that_fails() {
    let text = session(&[900, 700]);
    let (fixed, steps) = {
        let place = Place::new(&text);
        place.fix(200);
        (place.text(), with(None, || place.undo(None)).1.len())
    };
    for at in 0..steps {
        for fault in [Fault::Error { at, errno: 28 }, Fault::Death { at }] {
            let place = Place::new(&text);
            place.fix(200);
            let failed = with(Some(fault), || {
                undo(&place.path(), None, &place.options(0), None, Extent::Whole).is_err()
            })
            .0;
            let now = place.text();
            assert!(now == text || (failed && now == fixed), "{fault:?}");
            let ending = place.undo(None);
            let expected = if now == text { Ending::Refused(Refusal::NothingToUndo) } else { Ending::Undone };
            assert_eq!(ending, expected, "{fault:?}");
            assert_eq!(place.text(), text, "{fault:?}");
        }
    }
}

#[test]
fn gc_keeps_the_newest_run_over_each_file() {
    let text = session(&[900, 700]);
    let mut place = Place::new(&text);
    place.fix(200).unwrap();
    place.append_pair(900);
    place.append(HELLO);
    let whole = place.text();
    place.fix(200).unwrap();
    let vault = place.vault();
    let all = Keep { age: Duration::MAX, bytes: u64::MAX };
    let freed = vault.gc(all, false).unwrap();
    assert_eq!((freed.runs, freed.texts, freed.runs_kept, freed.texts_kept), (0, 0, 2, 3));
    let before = place.kept();
    let none = Keep { age: Duration::ZERO, bytes: 0 };
    let would = vault.gc(none, true).unwrap();
    assert_eq!(place.kept(), before, "a dry run removes nothing");
    let freed = vault.gc(none, false).unwrap();
    assert_eq!((freed.runs, freed.texts, freed.runs_kept, freed.texts_kept), (1, 2, 1, 1));
    assert_eq!((would.runs, would.texts, would.bytes), (freed.runs, freed.texts, freed.bytes));
    assert!(freed.errors.is_empty());
    assert_eq!(place.undo(None), Ending::Undone);
    assert_eq!(place.text(), whole);
    assert_eq!(place.undo(None), Ending::Refused(Refusal::NothingToUndo));
    // What is undone need not be kept.
    vault.gc(none, false).unwrap();
    assert_eq!(place.kept().len(), 1, "the lock alone: {:?}", place.kept());
}

#[test]
fn gc_frees_the_oldest_first_until_the_rest_fits() {
    let mut place = Place::new(&session(&[900, 700]));
    for _ in 0..4 {
        place.fix(200).unwrap();
        place.append_pair(900);
        place.append(HELLO);
    }
    let runs = |place: &Place| -> Vec<String> {
        let path = place.path().canonicalize().unwrap();
        place
            .vault()
            .runs(&path)
            .unwrap()
            .into_iter()
            .map(|record| record.unwrap().run().to_string())
            .collect()
    };
    let all = runs(&place);
    let bytes: u64 = place.kept().iter().map(|(_, bytes)| bytes).sum();
    place.vault().gc(Keep { age: Duration::MAX, bytes: bytes - 1 }, false).unwrap();
    assert_eq!(runs(&place), all[1..]);
}

/// Two files had the same text cut, and only one of them still needs it.
fn shared_text() -> (Place, PathBuf, String) {
    let place = Place::new(&session(&[900, 700]));
    place.fix(200).unwrap();
    let other = place.folder.path().join("t.jsonl");
    let text = session(&[900]);
    fs::write(&other, &text).unwrap();
    maintain(&other, None, &place.options(200)).unwrap();
    assert_eq!(place.kept_named(".pack").len(), 1, "both texts were there");
    assert_eq!(place.undo(None), Ending::Undone);
    (place, other, text)
}

#[test]
fn gc_writes_a_pack_anew_of_which_a_part_stays() {
    let none = Keep { age: Duration::ZERO, bytes: 0 };
    let gc = |place: &Place| place.vault().gc(none, false).unwrap();
    let (place, other, text) = shared_text();
    let bytes = |place: &Place| fs::metadata(&place.kept_named(".pack")[0]).unwrap().len();
    let before = bytes(&place);
    let steps = with(None, || gc(&place)).1.len();
    assert!(bytes(&place) < before && place.kept_named(".pack").len() == 1);
    assert_eq!(undo(&other, None, &place.options(0), None, Extent::Whole).unwrap().ending, Ending::Undone);
    assert_eq!(fs::read_to_string(&other).unwrap(), text);
    for at in 0..steps {
        for fault in [Fault::Error { at, errno: 28 }, Fault::Death { at }] {
            let (place, other, text) = shared_text();
            drop(with(Some(fault), || place.vault().gc(none, false)).0);
            let freed = gc(&place);
            assert!(freed.errors.is_empty() && freed.texts_kept == 1, "{fault:?}");
            assert_eq!(place.kept_named(".pack").len(), 1, "{fault:?}");
            assert_eq!(
                undo(&other, None, &place.options(0), None, Extent::Whole).unwrap().ending,
                Ending::Undone
            );
            assert_eq!(fs::read_to_string(&other).unwrap(), text, "{fault:?}");
        }
    }
}

#[test]
fn gc_makes_few_packs_out_of_many() {
    let mut whole = session(&[]);
    let mut place = Place::new(&whole);
    let all = Keep { age: Duration::MAX, bytes: u64::MAX };
    for runs in 1..40 {
        whole += &place.append_pair(500);
        place.append(HELLO);
        whole += HELLO;
        place.fix(200).unwrap();
        assert_eq!(place.kept_named(".pack").len(), runs);
    }
    let would = place.vault().gc(all, true).unwrap();
    assert_eq!(place.kept_named(".pack").len(), 39);
    let freed = place.vault().gc(all, false).unwrap();
    assert_eq!((freed.texts, freed.texts_kept, freed.bytes), (0, 39, 0));
    assert_eq!((would.texts_kept, would.bytes_kept), (freed.texts_kept, freed.bytes_kept));
    assert_eq!(place.kept_named(".pack").len(), 1);
    while place.undo(None) == Ending::Undone {}
    assert_eq!(place.text(), whole);
}

/// One that is too old goes, since nobody will ever read it.
#[test]
fn a_pack_that_cannot_be_read_is_told_until_it_is_too_old() {
    let place = Place::new(&session(&[900]));
    place.fix(200).unwrap();
    let pack = place.kept_named(".pack").pop().unwrap();
    damage(&pack, true);
    let freed = place.vault().gc(Keep::default(), false).unwrap();
    assert!(freed.errors[0].to_string().contains("could not read the texts"), "{}", freed.errors[0]);
    assert!(pack.exists());
    let freed = place.vault().gc(Keep { age: Duration::ZERO, bytes: 0 }, false).unwrap();
    assert!(freed.errors.is_empty() && freed.leftovers == 1 && !pack.exists());
}

#[test]
fn gc_reports_what_it_cannot_read_and_goes_on() {
    let place = Place::new(&session(&[900]));
    place.fix(200).unwrap();
    assert_eq!(place.undo(None), Ending::Undone);
    place.fix(150).unwrap();
    let broken = place.kept_named(".undone").pop().unwrap();
    fs::write(&broken, "not a record").unwrap();
    let leftover = broken.with_file_name(".tmp-20200101T000000.000Z-0000");
    fs::write(&leftover, "half").unwrap();
    let freed = place.vault().gc(Keep { age: Duration::ZERO, bytes: 0 }, false).unwrap();
    assert!(freed.errors[0].to_string().contains("could not read the record"), "{}", freed.errors[0]);
    assert!(broken.exists() && !leftover.exists());
    assert_eq!(freed.leftovers, 1);
    // A text that only the broken record may name stays for as long as a run does.
    let place = Place::new(&session(&[900]));
    place.fix(200).unwrap();
    fs::write(&place.kept_named(".undo")[0], "not a record").unwrap();
    assert_eq!(place.vault().gc(Keep::default(), false).unwrap().texts_kept, 1);
    assert_eq!(place.vault().gc(Keep { age: Duration::ZERO, bytes: 0 }, false).unwrap().texts, 1);
}

#[test]
fn nothing_in_the_vault_is_reached_through_a_link() {
    let place = Place::new(&session(&[900]));
    fs::create_dir(place.root()).unwrap();
    let elsewhere = place.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for name in ["texts", "runs"] {
        let link = place.root().join(name);
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        let before = place.text();
        assert!(maintain(&place.path(), None, &place.options(200)).is_err(), "{name}");
        assert_eq!(place.text(), before);
        fs::remove_file(link).unwrap();
    }
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
}

#[test]
fn runs_sort_by_time_also_when_the_clock_goes_back() {
    let text = session(&[900]);
    let place = Place::new(&text);
    let first = place.fix(300).unwrap();
    let record = place.kept_named(".undo").pop().unwrap();
    let future = first.replacen("20", "21", 1);
    fs::rename(&record, record.with_file_name(format!("{future}.undo"))).unwrap();
    let second = place.fix(150).unwrap();
    assert!(second > future, "{second} {future}");
}

/// What may happen to a file.
#[derive(Clone, Debug)]
enum Action {
    Fix(u64),
    Append(usize),
    UndoNewest,
    Undo(prop::sample::Index),
    Gc,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => prop::sample::select(vec![100, 150, 200, 400, 600]).prop_map(Action::Fix),
        3 => (0usize..900).prop_map(Action::Append),
        1 => Just(Action::UndoNewest),
        2 => any::<prop::sample::Index>().prop_map(Action::Undo),
        1 => Just(Action::Gc),
    ]
}

/// Whatever was done, with the newest run taken back until none is left the file is what it was, and what was
/// appended.
fn all_comes_back(lengths: &[usize], actions: &[Action]) {
    let mut whole = session(lengths);
    let mut place = Place::new(&whole);
    let mut runs: Vec<String> = Vec::new();
    for action in actions {
        match action {
            Action::Fix(chars_max) => runs.extend(place.fix(*chars_max)),
            Action::Append(chars) => whole += &place.append_pair(*chars),
            Action::UndoNewest => drop(place.undo(None)),
            Action::Undo(_) if runs.is_empty() => {}
            Action::Undo(index) => {
                let before = place.text();
                if place.undo(Some(&runs[index.index(runs.len())])) != Ending::Undone {
                    assert_eq!(place.text(), before);
                }
            }
            Action::Gc => {
                let freed = place.vault().gc(Keep { age: Duration::MAX, bytes: u64::MAX }, false).unwrap();
                assert!(freed.errors.is_empty() && freed.runs == 0 && freed.texts == 0);
            }
        }
    }
    let mut ending = place.undo(None);
    while ending == Ending::Undone {
        ending = place.undo(None);
    }
    assert_eq!(ending, Ending::Refused(Refusal::NothingToUndo));
    assert_eq!(place.text(), whole);
    let path = place.path().canonicalize().unwrap();
    let records = place.vault().runs(&path).unwrap();
    assert!(records.into_iter().all(|record| record.unwrap().state() != State::Kept));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_done_all_comes_back(
        lengths in vec(0usize..1200, 0..4),
        actions in vec(action(), 0..9),
    ) {
        all_comes_back(&lengths, &actions);
    }
}

#[test]
fn the_vault_is_cleared_once_a_day_by_those_who_use_it() {
    let text = session(&[900, 700]);
    let mut place = Place::new(&text);
    place.fix(200).unwrap();
    place.append_pair(900);
    place.fix(200).unwrap();
    let vault = place.vault();
    let none = Keep { age: Duration::ZERO, bytes: 0 };
    assert!(vault.gc_if_due(none).unwrap().is_none(), "the vault is new");
    let lock = fs::File::options().write(true).open(vault.root().join("lock")).unwrap();
    lock.set_modified(SystemTime::now() - Vault::GC_EVERY).unwrap();
    lock.lock_shared().unwrap();
    assert!(vault.gc_if_due(none).unwrap().is_none(), "somebody writes");
    drop(lock);
    assert_eq!(vault.gc_if_due(none).unwrap().unwrap().runs, 1);
    assert!(vault.gc_if_due(none).unwrap().is_none(), "it was cleared just now");
}
