//! Runs over made-up sessions, taken back in any order, with lines appended and disks that fail in between.

use super::{Extent, undo};
use crate::Mode;
use crate::Options;
use crate::ask::outcome::Ending;
use crate::base::refusal::Refusal;
use crate::base::step::fault::{StepFault, with};
use crate::compact;
use crate::maintain;
use crate::vault::{MergeEdit, RunState, RunsToKeep, Vault};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use transcript::compact::Stay;
use transcript::policy::{Selection, SignedThinking};
use transcript::{Policy, Span};

/// A file and a vault.
struct FileAndVault {
    folder: tempfile::TempDir,
    appended: u32,
}

impl FileAndVault {
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
        Options { policy: policy.into(), mode: Mode::Fix, vault: Some(self.vault()), ..Options::default() }
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
    let mut place = FileAndVault::new(&text);
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
    let mut place = FileAndVault::new(&text);
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
    let place = FileAndVault::new(&text);
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
    let mut place = FileAndVault::new(&text);
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
    let place = FileAndVault::new(&session(&[900]));
    place.fix(200).unwrap();
    let other = place.text().replace("omitted", "OMITTED");
    fs::write(place.path(), &other).unwrap();
    let Ending::Refused(Refusal::ChangedSince { line: 3, edits: 1, back: 0, texts }) = place.undo(None)
    else {
        panic!("undone")
    };
    assert!(texts.len() == 1 && place.text().contains(&texts[0]), "{texts:?}");
    fs::write(place.path(), HELLO).unwrap();
    assert!(matches!(place.undo(None), Ending::Refused(Refusal::ChangedSince { .. })));
    assert_eq!(place.text(), HELLO);
}

impl FileAndVault {
    fn undo_partly(&self, run: Option<&str>) -> (Ending, usize, usize) {
        let outcome = undo(&self.path(), None, &self.options(0), run, Extent::Possible).unwrap();
        (outcome.ending, outcome.places_restored, outcome.places_left)
    }
}

/// An agent that drops the oldest entries and writes the rest anew, as OpenClaw does after a compaction.
#[test]
fn texts_that_moved_come_back_and_those_that_are_gone_are_named() {
    let (text, later) = (session(&[900, 700, 800]), session(&[30, 600]));
    let mut place = FileAndVault::new(&text);
    place.fix(200).unwrap();
    place.append(&later);
    place.fix(200).unwrap();
    let summary = "{\"role\":\"user\",\"content\":\"so far: much\"}\n";
    let from_line = |text: &str, line| text.split_inclusive('\n').skip(line).collect::<String>();
    let rewritten = summary.to_string() + &from_line(&place.text(), 3);
    fs::write(place.path(), &rewritten).unwrap();
    assert_eq!(place.undo_partly(None), (Ending::Undone, 1, 0), "the newer run is still there as a whole");
    let Ending::Refused(Refusal::ChangedSince { edits: 3, back: 2, texts, .. }) = place.undo(None) else {
        panic!("undone")
    };
    assert!(texts.len() == 1 && !rewritten.contains(&texts[0]), "{texts:?}");
    assert_eq!(place.undo_partly(None), (Ending::Undone, 2, 1));
    assert_eq!(place.text(), summary.to_string() + &from_line(&(text + &later), 3));
    assert_eq!(place.undo_partly(None).0, Ending::Refused(Refusal::NothingToUndo));
}

/// An agent that writes the file anew with what was first at the end, while the rest is where it was.
#[test]
fn places_that_have_another_order_do_not_both_come_back() {
    let text = session(&[900, 700]);
    let place = FileAndVault::new(&text);
    place.fix(200).unwrap();
    let fixed = place.text();
    let lines: Vec<&str> = fixed.split_inclusive('\n').collect();
    let [hello, call, cut, .., last] = lines[..] else { panic!("{fixed}") };
    let room = call.len() + cut.len() - HELLO.replace("hello", "").len();
    let summary = HELLO.replace("hello", &"x".repeat(room));
    let new = |cut: &str| [hello, &summary, lines[3], lines[4], last, call, cut, lines[3]].concat();
    fs::write(place.path(), new(cut)).unwrap();
    assert_eq!(place.undo_partly(None), (Ending::Undone, 1, 1));
    assert_eq!(place.text(), new(text.split_inclusive('\n').nth(2).unwrap()));
}

/// An agent that writes the file anew, with a result that quotes what is around a marker, in a place before it or after it. The
/// line that the quotation is in begins otherwise, or as that of the cut but elsewhere.
#[test]
fn a_text_that_quotes_a_cut_is_no_place_for_what_was_cut() {
    let text = session(&[900, 700]);
    for before in [true, false] {
        for quoted in [pair("quoting", 12), String::new()] {
            let place = FileAndVault::new(&text);
            place.fix(200).unwrap();
            let fixed = place.text();
            let cut = fixed.lines().nth(2).unwrap();
            let (_, shown) = cut.split_once("\"content\":\"").unwrap();
            let quotation = quoted.replace("row 0", &format!("quote: {}", shown.trim_end_matches("\"}")))
                + &cut.replace("c0", "c7").replace("row 0", "row 00")
                + "\n";
            // The header is another one, so no place is where it was.
            let new = |fixed: &str| {
                let fixed = fixed.replace(HELLO, "{\"role\":\"user\",\"content\":\"hello again\"}\n");
                let (first, rest) = fixed.split_once('\n').unwrap();
                if before { format!("{first}\n{quotation}{rest}") } else { format!("{fixed}{quotation}") }
            };
            fs::write(place.path(), new(&fixed)).unwrap();
            assert_eq!(place.undo(None), Ending::Undone, "{before}");
            assert_eq!(place.text(), new(&text), "{before}");
        }
    }
}

/// A call without a result.
fn open_call(id: &str) -> String {
    pair(id, 40).lines().next().unwrap().to_string() + "\n" + HELLO
}

impl FileAndVault {
    /// Puts in missing results, and cuts what is too long.
    fn repair(&self, chars_max: u64) -> String {
        let selection = Selection { allow: vec!["P1".into()], ..Selection::default() };
        let policy = Policy { selection, result_chars_max: chars_max, ..Policy::default() };
        let options = Options { policy: policy.into(), ..self.options(chars_max) };
        maintain(&self.path(), None, &options).unwrap().run.unwrap()
    }
}

/// What a repair put in belongs together: if somebody has changed a part of it, the rest stays as well, whatever may be undone.
#[test]
fn half_of_a_repair_is_not_undone() {
    let text = HELLO.to_string() + &open_call("a") + &open_call("b");
    let place = FileAndVault::new(&text);
    let run = place.repair(200);
    let fixed = place.text();
    let added: Vec<&str> = fixed.lines().filter(|line| line.contains("tool_call_id")).collect();
    assert_eq!(added.len(), 2, "{fixed}");
    let changed = fixed.replace(added[1], &pair("b", 40).lines().nth(1).unwrap().replace("row", "own"));
    fs::write(place.path(), &changed).unwrap();
    for extent in [Extent::Whole, Extent::Possible] {
        let ending = undo(&place.path(), None, &place.options(200), Some(&run), extent).unwrap().ending;
        assert!(matches!(ending, Ending::Refused(Refusal::ChangedSince { .. })), "{ending:?}");
        assert_eq!(place.text(), changed);
    }
    fs::write(place.path(), fixed).unwrap();
    assert_eq!((place.undo(Some(&run)), place.text()), (Ending::Undone, text));
}

/// A repair is whole although a cut of the same run is not.
#[test]
fn a_repair_is_undone_beside_a_cut_that_somebody_changed() {
    let (text, end) = (session(&[900]), open_call("a"));
    let place = FileAndVault::new(&(text.clone() + &end));
    place.repair(200);
    let changed = place.text().replace("omitted", "OMITTED");
    fs::write(place.path(), &changed).unwrap();
    assert_eq!(place.undo_partly(None), (Ending::Undone, 1, 1));
    let cut = changed.lines().nth(2).unwrap();
    assert_eq!(place.text(), text.replace(text.lines().nth(2).unwrap(), cut) + &end);
}

/// What a repair put in has no marker by which it could be found: only the records of later runs say where it is, whether those
/// cut what comes before it, cut it again, or put it back.
#[test]
fn a_repair_is_found_behind_what_later_runs_did() {
    let text = session(&[900, 700]) + &open_call("a");
    for (limits, undone) in [(&[600, 200][..], 0), (&[200], 1), (&[600, 200], 1), (&[600, 200], 2)] {
        let mut place = FileAndVault::new(&text);
        let repair = place.repair(5_000);
        for &chars_max in limits {
            place.fix(chars_max).unwrap();
        }
        for _ in 0..undone {
            assert_eq!(place.undo(None), Ending::Undone);
        }
        let more = place.append_pair(30);
        assert_eq!(place.undo(Some(&repair)), Ending::Undone, "{limits:?}, {undone} undone");
        while place.undo(None) == Ending::Undone {}
        assert_eq!(place.text(), text.clone() + &more, "{limits:?}, {undone} undone");
    }
}

/// What an earlier run took out, and what a later one cuts in it once it is back, is text that the repair has never seen.
#[test]
fn a_repair_is_found_behind_what_came_back_since() {
    let text = session(&[900, 700]) + &open_call("a");
    for is_cut_again in [false, true] {
        let place = FileAndVault::new(&text);
        let first = place.fix(200).unwrap();
        let repair = place.repair(5_000);
        assert_eq!(place.undo(Some(&first)), Ending::Undone);
        if is_cut_again {
            place.fix(400).unwrap();
        }
        assert_eq!(place.undo(Some(&repair)), Ending::Undone, "{is_cut_again}");
        assert_eq!(place.undo(None) == Ending::Undone, is_cut_again);
        assert_eq!(place.text(), text, "{is_cut_again}");
    }
}

/// A copy has runs of its own, which are later than the one that it took along.
#[test]
fn a_run_of_the_original_is_found_behind_those_of_a_copy() {
    let text = session(&[900, 700]) + &open_call("a");
    let place = FileAndVault::new(&text);
    let repair = place.repair(5_000);
    let copy = place.folder.path().join("copy.jsonl");
    fs::copy(place.path(), &copy).unwrap();
    assert_eq!(maintain(&copy, None, &place.options(200)).unwrap().ending, Ending::Fixed);
    for run in [Some(repair.as_str()), None] {
        let ending = undo(&copy, None, &place.options(0), run, Extent::Whole).unwrap().ending;
        assert_eq!(ending, Ending::Undone, "{run:?}");
    }
    assert_eq!(fs::read_to_string(&copy).unwrap(), text);
}

/// A session of pi's, and an entry of it.
fn of_pi(id: &str, parent: &str, role: &str) -> String {
    format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":\"{parent}\",\"timestamp\":\"2026-07-01T10:00:00.000Z\",\
         \"message\":{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"of {id}\"}}]}}}}\n"
    )
}

/// What follows a compaction would lose its parent, and what goes on from elsewhere would not.
#[test]
fn a_compaction_that_was_built_upon_is_not_undone() {
    let text = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"cwd\":\"/w\"}\n"
        .to_string()
        + &of_pi("a", "", "user").replace("\"\"", "null")
        + &of_pi("b", "a", "assistant")
        + &of_pi("c", "b", "user")
        + &of_pi("d", "c", "assistant");
    let mut place = FileAndVault::new(&text);
    let compacting =
        compact(&place.path(), None, &place.options(200), Stay::Last(2), "So far: much.").unwrap();
    assert_eq!(compacting.outcome.ending, Ending::Fixed);
    let compacted = place.text();
    let (_, id) = compacted.rsplit_once("\"id\":\"").unwrap();
    let id = id.split('"').next().unwrap();
    place.append(&of_pi("e", id, "user"));
    for extent in [Extent::Whole, Extent::Possible] {
        let ending = undo(&place.path(), None, &place.options(200), None, extent).unwrap().ending;
        assert_eq!(ending, Ending::Refused(Refusal::BuiltUpon { line: 7, alone: true }));
    }
    fs::write(place.path(), compacted).unwrap();
    let more = of_pi("e", "d", "user");
    place.append(&more);
    assert_eq!((place.undo(None), place.text()), (Ending::Undone, text + &more));
}

/// A call in a chat of the provider whose models bind their thinking, and a long result if there is one.
fn build(id: &str, rows: usize) -> String {
    let call = format!(
        "{{\"role\":\"user\",\"content\":\"build {id}\"}}\n\
         {{\"role\":\"assistant\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"toolu_{id}\",\"name\":\"ls\",\"input\":{{}}}}]}}\n"
    );
    let rows = format!("a row of {id}\\n").repeat(rows);
    let result = format!(
        "{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_{id}\",\"content\":\"{rows}\"}}]}}\n\
         {{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"Built.\"}}]}}\n"
    );
    if rows.is_empty() { call } else { call + &result }
}

/// Thinking that was signed since covers what the run wrote, wherever later runs have moved it. The run may be undone only where
/// signatures are none of our business.
#[test]
fn what_thinking_was_signed_over_since_stays() {
    let thinking = "{\"role\":\"user\",\"content\":\"and?\"}\n\
         {\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"c2lnbmVkLTEA\"},\
         {\"type\":\"text\",\"text\":\"Fine.\"}]}\n";
    let others = build("c", 2);
    for (more, is_cut_later, ignores) in
        [(thinking, false, false), (thinking, true, false), (thinking, true, true), (&others, true, false)]
    {
        let mut place = FileAndVault::new(&(build("a", 0) + &build("b", 400)));
        let ignoring = |chars_max| {
            let thinking = SignedThinking::Ignore;
            let policy = Policy { thinking, result_chars_max: chars_max, ..Policy::default() };
            Options { policy: policy.into(), ..place.options(chars_max) }
        };
        let (cutting, undoing) = (ignoring(1_000), if ignores { ignoring(0) } else { place.options(0) });
        let run = place.repair(10_000);
        place.append(more);
        if is_cut_later {
            assert_eq!(maintain(&place.path(), None, &cutting).unwrap().ending, Ending::Fixed);
        }
        let stays = more == thinking && !ignores;
        let expected =
            if stays { Ending::Refused(Refusal::SignedSince(run.clone())) } else { Ending::Undone };
        let ending = undo(&place.path(), None, &undoing, Some(&run), Extent::Whole).unwrap().ending;
        assert_eq!(ending, expected, "{more} {is_cut_later} {ignores}");
    }
}

/// The run stays one of the original, whatever becomes of the copy.
#[test]
fn undoing_a_copy_leaves_the_run_of_the_original_as_it_is() {
    let text = session(&[900]);
    let place = FileAndVault::new(&text);
    let run = place.fix(200).unwrap();
    let copy = place.folder.path().join("copy.jsonl");
    fs::copy(place.path(), &copy).unwrap();
    let undone = undo(&copy, None, &place.options(0), Some(&run), Extent::Whole).unwrap();
    assert_eq!((undone.ending, fs::read_to_string(&copy).unwrap()), (Ending::Undone, text.clone()));
    assert_eq!((place.undo(None), place.text()), (Ending::Undone, text.clone()));
    // Moved away, it has the run to itself.
    let run = place.fix(200).unwrap();
    let moved = place.folder.path().join("moved.jsonl");
    fs::rename(place.path(), &moved).unwrap();
    let undone = || undo(&moved, None, &place.options(0), Some(&run), Extent::Whole).unwrap().ending;
    assert_eq!((undone(), fs::read_to_string(&moved).unwrap()), (Ending::Undone, text));
    assert_eq!(undone(), Ending::Refused(Refusal::AlreadyUndone(run.clone())));
}

/// Turns a bit of the first text in the file of a run, or cuts the file there.
fn damage(path: &Path, cut: bool) {
    let mut bytes = fs::read(path).unwrap();
    if cut {
        bytes.truncate(1_600);
    } else {
        bytes[1_600] ^= 1;
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_vault_is_an_error_and_the_file_stays() {
    for cut in [false, true] {
        let place = FileAndVault::new(&session(&[900]));
        place.fix(200).unwrap();
        let fixed = place.text();
        damage(&place.kept_named(".undo")[0], cut);
        let error = undo(&place.path(), None, &place.options(0), None, Extent::Whole).err();
        let Some(error) = error else { panic!("{cut}: no error") };
        assert!(error.to_string().contains(": could not "), "{error}");
        assert_eq!(place.text(), fixed, "{cut}");
        let names = fs::read_dir(place.folder.path()).unwrap().count();
        assert_eq!(names, 2, "nothing is left beside the file");
    }
}

/// An older record that is broken is in nobody's way; a later one tells where the places of older ones are.
#[test]
fn a_broken_record_stops_only_what_needs_it() {
    for broken in 0..2 {
        let text = session(&[900]);
        let place = FileAndVault::new(&text);
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

/// Each run keeps its own copy of a text, so that a damaged one is passed over while there is another.
#[test]
fn a_text_is_found_as_long_as_a_copy_is_whole() {
    let text = session(&[900]);
    let place = FileAndVault::new(&text);
    for _ in 0..2 {
        fs::write(place.path(), &text).unwrap();
        place.fix(200).unwrap();
    }
    let fixed = place.text();
    let (_, id) = fixed.split_once("tailor show ").unwrap();
    let show = || {
        let mut text = place.vault().text(&id[..8]).ok()?;
        text.read_to_end(&mut Vec::new()).ok()
    };
    let copies = place.kept_named(".undo");
    let whole: Vec<_> = copies.iter().map(|copy| fs::read(copy).unwrap()).collect();
    for order in [[0, 1], [1, 0]] {
        for (number, still_there) in order.into_iter().zip([true, false]) {
            assert!(show().is_some(), "{order:?}");
            damage(&copies[number], false);
            assert_eq!(show().is_some(), still_there, "{order:?}");
        }
        copies.iter().zip(&whole).for_each(|(copy, bytes)| fs::write(copy, bytes).unwrap());
    }
}

/// A run that died before the file was replaced does not stand in the way.
#[test]
fn a_run_that_never_landed_does_not_count() {
    let text = session(&[900]);
    let place = FileAndVault::new(&text);
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

    let place = FileAndVault::new(&text);
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
        let place = FileAndVault::new(&text);
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
        let place = FileAndVault::new(&text);
        let steps = with(None, || place.fix(200)).1.len();
        (place.text(), steps)
    };
    assert!(steps >= 16, "{steps}");
    for at in 0..steps {
        for fault in [StepFault::Error { at, errno: 28 }, StepFault::Death { at }] {
            let place = FileAndVault::new(&text);
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
        let place = FileAndVault::new(&text);
        place.fix(200);
        (place.text(), with(None, || place.undo(None)).1.len())
    };
    for at in 0..steps {
        for fault in [StepFault::Error { at, errno: 28 }, StepFault::Death { at }] {
            let place = FileAndVault::new(&text);
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

/// Finishing an interrupted run drops half a line and brings over whole ones: only the half comes back, and only when
/// asked for.
#[test]
fn what_a_merge_dropped_comes_back_and_what_it_brought_stays() {
    for at_end in [false, true] {
        let text = session(&[900]);
        let mut place = FileAndVault::new(&text);
        let first = place.fix(200).unwrap();
        let fixed = place.text();
        let (half, late, more) = ("{\"role\":\"us", pair("late", 20), HELLO);
        let rest = if at_end { "" } else { more };
        let before = format!("{fixed}{half}{rest}");
        let after = format!("{fixed}{late}{rest}");
        let pending = place.vault().begin(&place.path().canonicalize().unwrap()).unwrap();
        let merge = pending.run().to_string();
        let mut dropped = tempfile::tempfile().unwrap();
        dropped.write_all(half.as_bytes()).unwrap();
        let edit = MergeEdit {
            at: fixed.len() as u64,
            length: late.len() as u64,
            removed: vec![(&dropped, Span::new(0, half.len() as u64))],
        };
        let run = pending.keep_merge(&after.as_bytes(), before.len() as u64, vec![edit], None, Vec::new());
        let run = run.ok().unwrap();
        fs::write(place.path(), &after).unwrap();
        // It landed, even if nobody lived to write that down.
        if at_end {
            run.landed();
        }
        place.append(HELLO);
        let glued = if at_end { "\n" } else { "" };
        assert_eq!(place.undo(Some(&merge)), Ending::Undone);
        assert_eq!(place.text(), format!("{fixed}{late}{half}{glued}{rest}{HELLO}"));
        assert_eq!(place.undo(Some(&merge)), Ending::Refused(Refusal::AlreadyUndone(merge)));
        // The run before it is the newest that can be undone, and its places are found.
        assert_eq!(place.undo(None), Ending::Undone);
        assert_eq!(place.text(), format!("{text}{late}{half}{glued}{rest}{HELLO}"));
        assert_eq!(place.undo(Some(&first)), Ending::Refused(Refusal::AlreadyUndone(first)));
    }
}

#[test]
fn a_fix_without_a_vault_is_an_error_that_says_so() {
    let place = FileAndVault::new(&session(&[900]));
    let options = Options { vault: None, ..place.options(200) };
    let before = place.text();
    let errors = [
        maintain(&place.path(), None, &options).err(),
        undo(&place.path(), None, &options, None, Extent::Whole).err(),
    ];
    assert!(errors.into_iter().all(|error| error.unwrap().to_string().contains("--vault DIR")));
    assert_eq!(place.text(), before);
}

#[test]
fn gc_keeps_the_newest_run_over_each_file() {
    let text = session(&[900, 700]);
    let mut place = FileAndVault::new(&text);
    place.fix(200).unwrap();
    place.append_pair(900);
    place.append(HELLO);
    let whole = place.text();
    place.fix(200).unwrap();
    let vault = place.vault();
    let all = RunsToKeep { age: Duration::MAX, bytes: u64::MAX };
    let freed = vault.gc(all, false).unwrap();
    assert_eq!((freed.runs, freed.runs_kept), (0, 2));
    let before = place.kept();
    let none = RunsToKeep { age: Duration::ZERO, bytes: 0 };
    let would = vault.gc(none, true).unwrap();
    assert_eq!(place.kept(), before, "a dry run removes nothing");
    let freed = vault.gc(none, false).unwrap();
    assert_eq!((freed.runs, freed.runs_kept), (1, 1));
    assert_eq!((would.runs, would.bytes), (freed.runs, freed.bytes));
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
    let mut place = FileAndVault::new(&session(&[900, 700]));
    for _ in 0..4 {
        place.fix(200).unwrap();
        place.append_pair(900);
        place.append(HELLO);
    }
    let runs = |place: &FileAndVault| -> Vec<String> {
        let path = place.path().canonicalize().unwrap();
        place.vault().runs(&path).unwrap().into_iter().map(|record| record.unwrap().run.clone()).collect()
    };
    let all = runs(&place);
    let bytes: u64 = place.kept().iter().map(|(_, bytes)| bytes).sum();
    place.vault().gc(RunsToKeep { age: Duration::MAX, bytes: bytes - 1 }, false).unwrap();
    assert_eq!(runs(&place), all[1..]);
}

/// A damaged run stays until it is too old, and stops nothing.
#[test]
fn gc_reports_what_it_cannot_read_and_goes_on() {
    let place = FileAndVault::new(&session(&[900]));
    place.fix(200).unwrap();
    assert_eq!(place.undo(None), Ending::Undone);
    place.fix(150).unwrap();
    let broken = place.kept_named(".undone").pop().unwrap();
    let newer = broken.with_file_name("20200101T000000.000Z-00000000.undone");
    let mut bytes = fs::read(&broken).unwrap();
    bytes[7] = b'2';
    fs::write(&newer, bytes).unwrap();
    damage(&broken, true);
    let leftover = broken.with_file_name(".tmp-20200101T000000.000Z-00000000");
    fs::write(&leftover, "half").unwrap();
    let freed = place.vault().gc(RunsToKeep::default(), false).unwrap();
    let errors: Vec<String> = freed.errors.iter().map(ToString::to_string).collect();
    assert!(errors.iter().all(|error| error.contains("could not read the record")), "{errors:?}");
    assert_eq!((errors.len(), freed.leftovers, freed.runs), (2, 1, 0));
    assert!(errors[0].contains("its format is not known"), "{errors:?}");
    assert!(broken.exists() && newer.exists() && !leftover.exists());
    let freed = place.vault().gc(RunsToKeep { age: Duration::ZERO, bytes: 0 }, false).unwrap();
    assert_eq!(freed.errors.len(), 1);
    assert!(!broken.exists() && newer.exists(), "a newer version may still need it");
    assert_eq!(place.undo(None), Ending::Undone);
}

#[test]
fn nothing_in_the_vault_is_reached_through_a_link() {
    let place = FileAndVault::new(&session(&[900]));
    fs::create_dir(place.root()).unwrap();
    let elsewhere = place.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, place.root().join("runs")).unwrap();
    let before = place.text();
    assert!(maintain(&place.path(), None, &place.options(200)).is_err());
    assert_eq!(place.text(), before);
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
}

#[test]
fn runs_sort_by_time_also_when_the_clock_goes_back() {
    let text = session(&[900]);
    let place = FileAndVault::new(&text);
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
    let mut place = FileAndVault::new(&whole);
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
                let freed =
                    place.vault().gc(RunsToKeep { age: Duration::MAX, bytes: u64::MAX }, false).unwrap();
                assert!(freed.errors.is_empty() && freed.runs == 0);
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
    assert!(records.into_iter().all(|record| record.unwrap().state != RunState::Kept));
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
    let mut place = FileAndVault::new(&text);
    place.fix(200).unwrap();
    place.append_pair(900);
    place.fix(200).unwrap();
    let vault = place.vault();
    let none = RunsToKeep { age: Duration::ZERO, bytes: 0 };
    assert!(vault.gc_if_due(none).unwrap().is_none(), "the vault is new");
    let lock = fs::File::options().write(true).open(vault.root().join("lock")).unwrap();
    lock.set_modified(SystemTime::now() - Vault::GC_EVERY).unwrap();
    lock.lock_shared().unwrap();
    assert!(vault.gc_if_due(none).unwrap().is_none(), "somebody writes");
    drop(lock);
    assert_eq!(vault.gc_if_due(none).unwrap().unwrap().runs, 1);
    assert!(vault.gc_if_due(none).unwrap().is_none(), "it was cleared just now");
}
