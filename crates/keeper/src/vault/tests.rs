//! The format, damage to it, and what only the vault itself can be asked.

use super::*;
use crate::platform::identity::FileId;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use transcript::Span;
use transcript::plan::Piece;

/// The file of a run as version 1 wrote it.
const GOLDEN: &[u8] = include_bytes!("testdata/20261121T160102.123Z-3f9a1c20.undo");

const RUN: &str = "20261121T160102.123Z-3f9a1c20";

/// The old text of the run: a text that was cut, and 15 bytes that were removed.
const OLD: &str = "a line of the transcript, \"0123456789\", removed bytes, the end\n";

const LEDGERS: [Ledger; 2] =
    [Ledger { known: 63, upto: 63, at: 54, current: 7 }, Ledger { known: 63, upto: 80, at: 71, current: 7 }];

fn swap() -> Swap {
    let end = blake3::hash(OLD.as_bytes());
    let file = |inode| FileId { device: 2050, inode };
    Swap { old: file(6), new: file(7), before: OLD.len() as u64, end, after: 54 }
}

fn edits() -> Vec<RecordedChange> {
    let text = blake3::hash(b"0123456789");
    let change = |at, length, check: &str, old| RecordedChange {
        at,
        length,
        check: check.into(),
        line: None,
        old: vec![old],
    };
    vec![
        change(27, 3, "00c0ffee00c0ffee", RemovedBytes::Text { text, from: 0, to: 10 }),
        change(33, 0, "0123456789abcdef", RemovedBytes::Inline { inline: (0, 15) }),
    ]
}

/// Writes the run that is in [`GOLDEN`].
fn write(vault: &Vault) -> Run {
    let mut pending = vault.begin(Path::new("/sessions/s.jsonl")).unwrap();
    (pending.record.run, pending.record.time) = (RUN.into(), "2026-11-21T16:01:02.123Z".into());
    let record = &mut pending.record;
    (record.bytes_before, record.bytes_after) = (OLD.len() as u64, OLD.len() as u64 - 22);
    (record.purpose, record.swap, record.edits) = (Some(Purpose::Recover(2)), Some(swap()), edits());
    record.accounts = vec![Account { run: "20261121T160000.000Z-00000001".into(), ledger: LEDGERS[0] }];
    let mut out = RunWriter::begin(&pending.unfinished.file).unwrap();
    let texts = [vec![Piece::Kept(Span::new(27, 37))]];
    texts::write(&mut out, &OLD.as_bytes(), &texts, &PackedTexts::default()).unwrap();
    let inline = out.stream(None, |out| Ok(out.write_all(&OLD.as_bytes()[40..55])?));
    pending.record.inline = Some(inline.unwrap());
    let run = pending.finish(out).unwrap();
    for ledger in &LEDGERS {
        run.note(ledger).unwrap();
    }
    run.sync().unwrap();
    run
}

/// What is in the file of a run: index, text, inline bytes, and the ledger if one is whole.
type RunContent = (Record, Vec<u8>, Vec<u8>, Option<Ledger>);

fn read(bytes: &[u8]) -> io::Result<RunContent> {
    let file = tempfile::tempfile()?;
    file.write_all_at(bytes, 0)?;
    let file = Arc::new(file);
    let index = file::read_index(&file, RUN)?;
    let ledger = ledger::newest(&file, RUN)?.map(|(_, ledger)| ledger);
    let all = |stored: &StoredFrame| {
        let mut all = Vec::new();
        OriginalText::open(&file, stored)?.read_to_end(&mut all).map(|_| all)
    };
    let text = index.texts.first().map(all).transpose()?.unwrap_or_default();
    let inline = index.inline.as_ref().map(all).transpose()?.unwrap_or_default();
    Ok((index, text, inline, ledger))
}

/// The JSON of the index, without the places of frames: these depend on how well zstd compresses.
fn json(bytes: &[u8]) -> String {
    let at = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let json = zstd::decode_all(&bytes[at(8)..at(16)]).unwrap();
    let json = String::from_utf8(json).unwrap();
    let mut parts = json.split("\"frame\":[");
    let first = parts.next().unwrap().to_string();
    parts.fold(first, |json, part| json + part.split_once(']').unwrap().1)
}

#[test]
fn the_format_is_what_version_1_wrote() {
    let (index, text, inline, ledger) = read(GOLDEN).unwrap();
    assert_eq!((&*index.path, &*index.run), (Path::new("/sessions/s.jsonl"), RUN));
    assert_eq!((&*index.time, index.bytes_before, index.bytes_after), ("2026-11-21T16:01:02.123Z", 63, 41));
    assert_eq!((index.purpose, index.swap), (Some(Purpose::Recover(2)), Some(swap())));
    assert_eq!(format!("{:?}", index.edits), format!("{:?}", edits()));
    assert_eq!((index.accounts[0].ledger, ledger), (LEDGERS[0], Some(LEDGERS[1])));
    assert_eq!((&*text, &*inline), (&b"0123456789"[..], &b"removed bytes, "[..]));

    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::new(folder.path().join("vault"));
    write(&vault);
    let written = folder.path().join("vault/runs").join(folder_of(Path::new("/sessions/s.jsonl")));
    let written = fs::read(written.join(format!("{RUN}.kept"))).unwrap();
    assert_eq!(json(&written), json(GOLDEN));
    assert_eq!((&written[..8], &written[64..1536]), (&GOLDEN[..8], &GOLDEN[64..1536]));
}

/// Whatever happens to the bytes of a file, what is read from it is right or an error. A damaged ledger is an older one
/// or none.
#[test]
fn a_damaged_file_gives_what_was_written_or_an_error() {
    let right = read(GOLDEN).unwrap();
    let mut whole = 0;
    let mut try_it = |bytes: &[u8], what: &str| {
        let Ok(found) = read(bytes) else { return };
        whole += 1;
        assert_eq!(format!("{:?}", found.0), format!("{:?}", right.0), "{what}");
        assert_eq!((&found.1, &found.2), (&right.1, &right.2), "{what}");
        assert!([Some(LEDGERS[1]), Some(LEDGERS[0]), None].contains(&found.3), "{what}: {:?}", found.3);
    };
    for at in 0..GOLDEN.len() {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] ^= 1 << (at % 8);
        try_it(&bytes, &format!("a bit of byte {at} flipped"));
        let mut bytes = GOLDEN.to_vec();
        bytes[at..].iter_mut().take(64).for_each(|byte| *byte = 0);
        try_it(&bytes, &format!("64 bytes from {at} zeroed"));
        try_it(&GOLDEN[..at], &format!("cut to {at} bytes"));
        let mut bytes = GOLDEN.to_vec();
        bytes.rotate_left(at);
        try_it(&bytes, &format!("the first {at} bytes moved to the end"));
    }
    // What lies between the header, the slots and the frames means nothing.
    assert!(whole > 1_000, "{whole}");
    for at in [0, 8, 24, 1_536, 1_560, GOLDEN.len() - 1] {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] ^= 1;
        assert!(read(&bytes).is_err(), "{at}");
    }
    let mut newer = GOLDEN.to_vec();
    newer[7] = b'2';
    assert_eq!(read(&newer).unwrap_err().kind(), ErrorKind::Unsupported);
}

/// What belongs to no text is checked once all of it was written.
#[test]
fn removed_bytes_that_are_others_are_noticed_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::new(folder.path().join("vault"));
    write(&vault);
    let mut record = vault.runs(Path::new("/sessions/s.jsonl")).unwrap().pop().unwrap().unwrap();
    for is_right in [true, false] {
        let (mut originals, mut back) = (vault.originals(&record).unwrap(), Vec::new());
        record.edits[1].old.iter().for_each(|old| originals.write(old, &mut back).unwrap());
        assert_eq!((&*back, originals.finish().is_ok()), (&OLD.as_bytes()[40..55], is_right));
        record.inline.as_mut().unwrap().hash = blake3::hash(b"others");
    }
}

#[test]
fn a_run_under_the_name_of_another_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::new(folder.path().join("vault"));
    let run = write(&vault);
    let path = Path::new("/sessions/s.jsonl");
    run.folder.rename(format!("{RUN}.kept"), "20261121T160102.124Z-3f9a1c20.kept").unwrap();
    let error = vault.runs(path).unwrap().pop().unwrap().unwrap_err().to_string();
    assert!(error.contains("it is about another run"), "{error}");
}

#[test]
fn a_path_that_is_no_text_is_kept_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::new(folder.path().join("vault"));
    let path = Path::new(std::ffi::OsStr::from_bytes(b"/sessions/\xff.jsonl"));
    let pending = vault.begin(path).unwrap();
    let run = pending.keep(&b"".as_slice(), &Plan::unchanged(0), &PackedTexts::default(), None, None, None);
    let name = run.ok().unwrap().name().to_string();
    let records = vault.runs(path).unwrap();
    assert_eq!(records[0].as_ref().unwrap().path, path);
    assert_eq!(vault.run(&name).unwrap().unwrap().path, path);
}

#[test]
fn the_newest_whole_ledger_counts_and_notes_go_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::new(folder.path().join("vault"));
    let run = write(&vault);
    let path = Path::new("/sessions/s.jsonl");
    let record = || vault.runs(path).unwrap().pop().unwrap().unwrap();
    assert_eq!(record().ledger, Some(LEDGERS[1]));
    run.landed();
    let (third, fourth) = (Ledger { known: 80, ..LEDGERS[1] }, Ledger { known: 90, upto: 90, ..LEDGERS[1] });
    run.note(&third).unwrap();
    assert_eq!((record().state, record().ledger), (RunState::Landed, Some(third)));
    // The newest one, torn.
    let file = run.folder.open_file(format!("{RUN}.undo"), OFlags::RDWR).unwrap().unwrap();
    file.write_all_at(&[0xff; 20], 1_024).unwrap();
    assert_eq!(record().ledger, Some(LEDGERS[1]));
    drop(run);
    let run = vault.run_for_notes(&record()).unwrap();
    run.note(&third).unwrap();
    run.note(&fourth).unwrap();
    run.sync().unwrap();
    assert_eq!(record().ledger, Some(fourth));
    file.write_all_at(&[0xff; 20], 512).unwrap();
    assert_eq!(record().ledger, Some(third));
    assert_eq!(record().swap, Some(swap()));
    assert_eq!(record().accounts[0].ledger, LEDGERS[0]);
}

#[test]
fn a_run_that_may_have_late_lines_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::new(folder.path().join("vault"));
    let none = RunsToKeep { age: std::time::Duration::ZERO, bytes: 0 };
    let path = folder.path().join("s.jsonl");
    let keep = |swap| {
        let source = b"old".as_slice();
        let pending = vault.begin(&path).unwrap();
        let plan = Plan::unchanged(3);
        pending.keep(&source, &plan, &PackedTexts::default(), None, None, swap).ok().unwrap()
    };
    let states = || {
        let records = vault.runs(&path).unwrap();
        records.into_iter().map(|record| record.unwrap().state).collect::<Vec<_>>()
    };
    keep(Some(swap()));
    keep(None).landed();
    keep(None).landed();
    let pending = vault.begin(&path).unwrap();
    drop(pending);
    let freed = vault.gc(none, false).unwrap();
    assert_eq!((freed.runs, freed.runs_kept, freed.leftovers), (1, 2, 0));
    assert_eq!(states(), [RunState::Kept, RunState::Landed]);
}

/// What happened to the newest record over a file long ago, and what `gc` does about it: it stays, or it is moved aside.
#[test]
fn a_record_that_cannot_be_read_is_not_removed() {
    // As root, no permission is missing. A link is refused by the system in the same way.
    const LINK: &str = "not readable now";
    let table = [("in a newer format", true), (LINK, true), ("damaged", false), ("cut", false)];
    for (what, stays) in table {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::new(dir.path().join("vault"));
        write(&vault).landed();
        let folder = dir.path().join("vault/runs").join(folder_of(Path::new("/sessions/s.jsonl")));
        let record = folder.join(format!("{RUN}.undo"));
        let old = folder.join(format!("20200101{}.undo", &RUN[8..]));
        let mut bytes = fs::read(&record).unwrap();
        fs::remove_file(&record).unwrap();
        match what {
            "in a newer format" => bytes[7] = b'2',
            "damaged" => bytes[20] ^= 1,
            _ => bytes.truncate(40),
        }
        if what == LINK {
            std::os::unix::fs::symlink(&record, &old).unwrap();
        } else {
            fs::write(&old, &bytes).unwrap();
        }
        let none = RunsToKeep { age: std::time::Duration::ZERO, bytes: 0 };
        for dry_run in [true, false] {
            let freed = vault.gc(none, dry_run).unwrap();
            assert_eq!(
                (freed.runs, freed.damaged, freed.errors.len()),
                (0, (!stays).into(), stays.into()),
                "{what}"
            );
        }
        let aside = folder.join(format!("20200101{}.undo.damaged", &RUN[8..]));
        assert_eq!((old.symlink_metadata().is_ok(), aside.exists()), (stays, !stays), "{what}");
        if !stays {
            assert_eq!(fs::read(&aside).unwrap(), bytes, "{what}");
            let id = blake3::hash(b"0123456789").to_string();
            let unknown = vault.forget(&id).map(drop);
            write(&vault).landed();
            let secret = vault.forget_secret("0123456789abcdef", &[], true).map(drop);
            for forgotten in [unknown, vault.forget(&id).map(drop), secret] {
                let error = forgotten.unwrap_err().to_string();
                assert!(error.contains(".damaged"), "{what}: {error}");
            }
        }
    }
    // A disk that fails says nothing about the bytes.
    let dir = tempfile::tempdir().unwrap();
    let unreadable = File::create(dir.path().join("run")).unwrap();
    assert!(file::read_index(&Arc::new(unreadable), RUN).unwrap_err().raw_os_error().is_some());
}

#[test]
fn an_id_that_fits_two_texts_is_not_enough() {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::new(folder.path().join("vault"));
    let pending = vault.begin(Path::new("/sessions/s.jsonl")).unwrap();
    let mut out = RunWriter::begin(&pending.unfinished.file).unwrap();
    let frame = file::Packer::new().unwrap().pack(b"text").unwrap().to_vec();
    let (hash, mut twin) = (blake3::hash(b"text"), [0; 32]);
    twin[..4].copy_from_slice(&hash.as_bytes()[..4]);
    out.put(hash, &frame).unwrap();
    out.put(Hash::from_bytes(twin), &frame).unwrap();
    pending.finish(out).unwrap();
    let id = hash.to_hex();
    let show = |id: &str| vault.text(id).map_err(|error| error.to_string());
    assert!(show(&id[..8]).err().unwrap().contains("matches 2 texts"));
    let mut text = String::new();
    show(&id[..64]).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
    // What is not what its hash says is not passed off for it.
    let wrong = show(&Hash::from_bytes(twin).to_hex()).unwrap().read_to_string(&mut text);
    assert!(wrong.unwrap_err().to_string().contains("not what was put there"));
}

/// A run that cannot be read keeps no other from being cleared, and what a dead run left goes too.
#[test]
fn a_text_is_forgotten_wherever_that_can_be_done() {
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::new(dir.path().join("vault"));
    drop(write(&vault));
    let folder = dir.path().join("vault/runs").join(folder_of(Path::new("/sessions/s.jsonl")));
    let kept = folder.join(format!("{RUN}.kept"));
    let pending = vault.begin(Path::new("/sessions/s.jsonl")).unwrap();
    let names = pending.unfinished.folder.names().unwrap();
    let unfinished = names.into_iter().find(|name| Folder::is_unfinished(name)).unwrap();
    drop(pending);
    fs::write(folder.join(&unfinished), "0123456789").unwrap();
    let whole = folder.join(format!("{RUN}.whole"));
    fs::write(&whole, "whole 0123456789").unwrap();
    let older = folder.join(format!("20261120{}.kept", &RUN[8..]));
    let newer = folder.join(format!("20261122{}.kept", &RUN[8..]));
    for path in [&older, &newer] {
        fs::write(path, "damaged").unwrap();
    }
    let id = blake3::hash(b"0123456789").to_string();
    let error = vault.forget(&id[..12]).unwrap_err();
    assert!(error.to_string().contains("20261120"), "{error}");
    assert!(vault.text(&id).is_err_and(|error| error.to_string().contains("tailor forget removed it")));
    assert!(!folder.join(unfinished).exists() && !whole.exists());
    let file = File::open(&kept).unwrap();
    let (start, end) = file::read_index(&Arc::new(file.try_clone().unwrap()), RUN).unwrap().texts[0].frame;
    let mut frame = vec![1; (end - start) as usize];
    file.read_exact_at(&mut frame, start).unwrap();
    assert!(frame.iter().all(|byte| *byte == 0), "{frame:?}");
    for path in [&older, &newer] {
        fs::remove_file(path).unwrap();
    }
    assert_eq!(vault.forget(&id).unwrap().runs, 0, "it is gone already");
}
