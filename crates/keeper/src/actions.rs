//! A state machine: writers, crashes, full disks and Tailor take turns, and get in between each other's steps, on real
//! files. What is in the file at the end is held against what each writer believes it wrote.
#![cfg(target_os = "linux")] // Its writers find files by descriptors without rights (`O_PATH`) and open them through /proc.

use crate::Deferral;
use crate::Ending;
use crate::Extent;
use crate::Guarantee;
use crate::Mode;
use crate::Options;
use crate::Outcome;
use crate::Vault;
use crate::base::step::Step;
use crate::base::step::fault::{self, FaultySystem, HERE, Leases, NameCalls, StepFault};
use crate::finish_all;
use crate::maintain;
use crate::spawned::NO_FORKS;
use crate::undo;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;
use transcript::policy::{Policy, Selection};

const WRITERS: usize = 4;
const RESULT_CHARS_MAX: u64 = 150;
const BIG_CHARS: usize = 400;
const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"cwd\":\"/w\"}\n";

/// Something that happens.
#[derive(Clone, Debug)]
enum Action {
    /// A writer opens the file, appends a line and closes it.
    Append(usize),
    /// A writer appends a call and an oversized result.
    AppendBig(usize),
    /// A writer opens the file and appends the first half of a line.
    AppendPart(usize),
    /// It appends the rest and closes the file.
    FinishLine(usize),
    /// A writer opens the file and keeps it open for all its lines.
    OpenAndHold(usize),
    LetGo(usize),
    /// A writer reads the file, writes all of it and a line more to another one and renames that over it.
    WriterRenames(usize),
    /// A writer takes the last line back.
    WriterTruncates,
    /// Tailor, while a disk fails, it dies, or others do something in the middle.
    Maintain(Option<StepFault>, Vec<Meanwhile>),
    /// The newest run is taken back, in the same ways.
    Undo(Option<StepFault>, Vec<Meanwhile>),
    /// The next start.
    Restart,
}

/// What a writer does before a step of Tailor's.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    /// It begins to open the file by its name; if it must wait, Tailor goes on.
    Append { writer: usize, at: usize },
    /// It finds the file at one step, and opens what it found at a later one.
    FindThenAppend { writer: usize, at: usize, then: usize },
    /// It finds the file at one step, opens what it found at a later one, appends a line and keeps it open.
    FindThenHold { writer: usize, at: usize, then: usize },
    /// It appends a line, closes the file, and appends another one.
    AppendTwice { writer: usize, at: usize },
    /// It finds the file at one step, and at a later one takes its last line back and appends another, in place.
    EditInPlace { writer: usize, at: usize, then: usize },
    /// It puts another file at the path, with the same lines and one more.
    Rename { writer: usize, at: usize },
}

/// One who writes, and what it believes.
#[derive(Default)]
struct Writer {
    lines: usize,
    held: Option<File>,
    /// The second half of a line, and the file that its first half went to.
    part: Option<(File, Vec<u8>, String)>,
}

/// What should be in the file.
#[derive(Default)]
struct Model {
    /// Ids of lines, in the order of each writer.
    expected: BTreeMap<usize, Vec<String>>,
    /// Ids of lines that may be there or not: taken back while an interrupted run was not settled, or written to an old file that
    /// the vault keeps whole, from which the next run brings them over.
    optional: BTreeSet<String>,
}

impl Model {
    /// A line was taken back by its program. An interrupted run may have kept it elsewhere, and the next start may
    /// bring it over.
    fn take_back(&mut self, id: &str, interrupted: bool) {
        for lines in self.expected.values_mut() {
            lines.retain(|line| line != id);
        }
        if interrupted {
            self.optional.insert(id.to_string());
        }
    }
}

struct World {
    folder: tempfile::TempDir,
    path: PathBuf,
    writers: Vec<Writer>,
    model: Rc<RefCell<Model>>,
}

/// A line of a writer, with its number.
fn line(writer: usize, number: usize) -> (String, Vec<u8>) {
    let id = format!("w{writer}-{number:04}");
    let text = format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{},\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"{id}\"}}}}\n",
        parent(writer, number)
    );
    (id, text.into_bytes())
}

fn parent(writer: usize, number: usize) -> String {
    number.checked_sub(1).map_or("null".to_string(), |before| format!("\"w{writer}-{before:04}\""))
}

/// A call, and a result that is too long.
fn big(writer: usize, number: usize) -> ([String; 2], Vec<u8>) {
    let ids = [format!("w{writer}-{number:04}"), format!("w{writer}-{:04}", number + 1)];
    let time = "\"timestamp\":\"2026-07-01T10:00:00.000Z\"";
    let text = format!(
        "{{\"type\":\"message\",\"id\":\"{0}\",\"parentId\":{2},{time},\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"toolCall\",\"id\":\"t{0}\",\"name\":\"x\",\"arguments\":{{}}}}],\"stopReason\":\"toolUse\"}}}}\n\
         {{\"type\":\"message\",\"id\":\"{1}\",\"parentId\":\"{0}\",{time},\"message\":{{\"role\":\"toolResult\",\"toolCallId\":\"t{0}\",\"toolName\":\"x\",\"content\":[{{\"type\":\"text\",\"text\":\"{3}\"}}],\"isError\":false}}}}\n",
        ids[0],
        ids[1],
        parent(writer, number),
        "x".repeat(BIG_CHARS)
    );
    (ids, text.into_bytes())
}

fn appender(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

impl World {
    fn new() -> Self {
        // Memory, where there is a file system in it: thousands of runs would wear a disk out.
        let shm = Path::new("/dev/shm");
        let folder = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap();
        std::fs::create_dir(folder.path().join("sessions")).unwrap();
        let path = folder.path().join("sessions/s.jsonl");
        std::fs::write(&path, HEADER).unwrap();
        let writers = (0..WRITERS).map(|_| Writer::default()).collect();
        let mut world = Self { folder, path, writers, model: Rc::default() };
        world.act(&Action::AppendBig(0));
        world
    }

    /// Whether a writer has begun a line; others wait with theirs.
    fn mid_line(&self) -> bool {
        self.writers.iter().any(|writer| writer.part.is_some())
    }

    fn is_at_path(&self, file: &File) -> bool {
        let found = std::fs::metadata(&self.path);
        found.is_ok_and(|found| found.ino() == file.metadata().unwrap().ino())
    }

    /// Whether it is a file that Tailor left beside the transcript, and looks after.
    fn is_leftover(&self, file: &File) -> bool {
        let inode = file.metadata().unwrap().ino();
        let mut names = self.path.parent().unwrap().read_dir().unwrap().map(Result::unwrap);
        names.any(|name| name.file_name() != "s.jsonl" && name.metadata().unwrap().ino() == inode)
    }

    /// Whether a writer has the file open.
    fn is_held(&self) -> bool {
        let held = self.writers.iter().flat_map(|writer| &writer.held);
        let parts = self.writers.iter().flat_map(|writer| &writer.part).map(|(file, _, _)| file);
        held.chain(parts).any(|file| self.is_at_path(file))
    }

    fn next(&mut self, writer: usize) -> (String, Vec<u8>) {
        let number = self.writers[writer].lines;
        self.writers[writer].lines += 1;
        line(writer, number)
    }

    fn expect(&self, writer: usize, ids: impl IntoIterator<Item = String>) {
        self.model.borrow_mut().expected.entry(writer).or_default().extend(ids);
    }

    /// Appends with the descriptor that the writer holds, or by path. A descriptor of a file that is not at the path
    /// any more leads nowhere, or into the vault, and that is not Tailor's doing.
    fn append(&mut self, writer: usize, ids: Vec<String>, bytes: &[u8]) {
        let lands = if let Some(held) = &self.writers[writer].held {
            let mut file = held;
            file.write_all(bytes).unwrap();
            self.is_at_path(held) || self.is_leftover(held)
        } else {
            appender(&self.path).unwrap().write_all(bytes).unwrap();
            true
        };
        if lands {
            self.expect(writer, ids);
        } else {
            self.model.borrow_mut().optional.extend(ids);
        }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Append(writer) if !self.mid_line() => {
                let (id, bytes) = self.next(*writer);
                self.append(*writer, vec![id], &bytes);
            }
            Action::AppendBig(writer) if !self.mid_line() => {
                let number = self.writers[*writer].lines;
                self.writers[*writer].lines += 2;
                let (ids, bytes) = big(*writer, number);
                self.append(*writer, ids.to_vec(), &bytes);
            }
            Action::AppendPart(writer) if !self.mid_line() => {
                let (id, mut bytes) = self.next(*writer);
                let rest = bytes.split_off(bytes.len() / 2);
                let mut file = appender(&self.path).unwrap();
                file.write_all(&bytes).unwrap();
                self.writers[*writer].part = Some((file, rest, id));
            }
            Action::FinishLine(writer) => {
                if let Some((mut file, rest, id)) = self.writers[*writer].part.take() {
                    file.write_all(&rest).unwrap();
                    assert!(self.is_at_path(&file), "a file that is held open was replaced");
                    self.expect(*writer, [id]);
                }
            }
            Action::OpenAndHold(writer) => {
                self.writers[*writer].held = Some(appender(&self.path).unwrap());
            }
            Action::LetGo(writer) => self.writers[*writer].held = None,
            Action::WriterRenames(writer) if !self.mid_line() => self.writer_renames(*writer),
            Action::WriterTruncates if !self.mid_line() => self.writer_truncates(),
            Action::Maintain(fault, meanwhile) => self.run(*fault, meanwhile, World::fix),
            Action::Undo(fault, meanwhile) => self.run(*fault, meanwhile, World::undo),
            Action::Restart => {
                let errors = finish_all(self.path.parent().unwrap(), &self.vault());
                let held = self.is_held() || self.writers.iter().any(|writer| writer.held.is_some());
                assert!(errors.is_empty() || held, "{errors:?}");
            }
            _ => {}
        }
    }

    fn writer_renames(&mut self, writer: usize) {
        // Who finds nothing has nothing to write anew.
        if !self.path.exists() {
            return;
        }
        let (id, bytes) = self.next(writer);
        rename_over(&self.path, &bytes);
        self.expect(writer, [id]);
    }

    fn writer_truncates(&mut self) {
        let Ok(bytes) = std::fs::read(&self.path) else { return };
        let Some(start) = last_line(&bytes) else { return };
        let Some(id) = ids_of(&bytes[start..]).pop() else { return };
        // A result without its call would be taken out, and a call without its result be given one.
        if !is_user(&bytes[start..]) {
            return;
        }
        OpenOptions::new().write(true).open(&self.path).unwrap().set_len(start as u64).unwrap();
        let interrupted = self.leftovers() > 0;
        self.model.borrow_mut().take_back(&id, interrupted);
    }

    fn leftovers(&self) -> usize {
        leftovers(&self.path)
    }

    fn run(
        &mut self,
        fault: Option<StepFault>,
        meanwhile: &[Meanwhile],
        work: impl FnOnce(&Self) -> Result<Outcome, crate::Error>,
    ) {
        let held = self.is_held();
        let (hook, others) = Others::new(self, meanwhile);
        let (outcome, steps) = fault::meanwhile(fault, hook, || work(self));
        others.borrow_mut().finish(&steps);
        for (writer, file) in others.borrow_mut().held.drain(..) {
            self.writers[writer].held = Some(file);
        }
        match outcome {
            Ok(outcome) if held => {
                assert!(!matches!(outcome.ending, Ending::Fixed | Ending::Undone), "held open");
            }
            Ok(outcome) => {
                let deferred = matches!(outcome.ending, Ending::Deferred(_));
                let why = !meanwhile.is_empty() || fault.is_some() || self.leftovers() > 0;
                assert!(!deferred || why, "{:?}", outcome.ending);
            }
            Err(error) => assert!(fault.is_some(), "{error}"),
        }
    }

    fn fix(&self) -> Result<Outcome, crate::Error> {
        maintain(&self.path, None, &self.options())
    }

    fn undo(&self) -> Result<Outcome, crate::Error> {
        undo(&self.path, None, &self.options(), None, Extent::Whole)
    }

    fn vault(&self) -> Vault {
        Vault::new(self.folder.path().join("vault"))
    }

    fn options(&self) -> Options {
        // The writers do not write a conversation: there are no requests or answers, and each writer has its own
        // branch.
        let ignore = ["M7", "M8", "S18"].map(str::to_string).to_vec();
        let selection = Selection { ignore, ..Selection::default() };
        let policy = Policy { result_chars_max: RESULT_CHARS_MAX, selection, ..Policy::default() };
        let vault = Some(self.vault());
        Options { policy: policy.into(), mode: Mode::Fix, vault, ..Options::default() }
    }

    /// All let go, the next start settles everything, and the file holds what it should.
    fn end(mut self) {
        for writer in 0..WRITERS {
            self.act(&Action::FinishLine(writer));
            self.act(&Action::LetGo(writer));
        }
        self.act(&Action::Restart);
        let outcome = self.fix().unwrap();
        assert!(matches!(outcome.ending, Ending::Clean | Ending::Fixed), "{:?}", outcome.ending);
        assert_eq!(self.fix().unwrap().ending, Ending::Clean);
        assert_eq!(self.leftovers(), 0);
        self.check();
    }

    fn check(&self) {
        let bytes = std::fs::read(&self.path).unwrap();
        assert!(bytes.starts_with(HEADER.as_bytes()) && bytes.ends_with(b"\n"));
        let found = ids_of(&bytes[HEADER.len()..]);
        let model = self.model.borrow();
        for (writer, expected) in &model.expected {
            let own = format!("w{writer}-");
            let mine = found.iter().filter(|id| id.starts_with(&own) && !model.optional.contains(*id));
            let mine: Vec<&String> = mine.collect();
            assert_eq!(mine, expected.iter().collect::<Vec<_>>(), "writer {writer}");
        }
    }
}

/// Puts a file at a path that holds what is there, and more.
fn rename_over(path: &Path, more: &[u8]) {
    let other = path.with_extension("agent");
    std::fs::write(&other, [&std::fs::read(path).unwrap(), more].concat()).unwrap();
    std::fs::rename(&other, path).unwrap();
}

/// Where the last complete line begins.
fn last_line(bytes: &[u8]) -> Option<usize> {
    let end = bytes.strip_suffix(b"\n")?;
    Some(memchr::memrchr(b'\n', end)? + 1)
}

/// A result without its call would be taken out, and a call without its result be given one, so writers take back
/// neither.
fn is_user(line: &[u8]) -> bool {
    String::from_utf8_lossy(line).contains("\"role\":\"user\"")
}

/// How many files lie beside the transcript.
fn leftovers(path: &Path) -> usize {
    let names = path.parent().unwrap().read_dir().unwrap();
    names.filter(|name| Some(&*name.as_ref().unwrap().file_name()) != path.file_name()).count()
}

/// The ids of lines, each of which must be whole.
fn ids_of(bytes: &[u8]) -> Vec<String> {
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let value: serde_json::Value = serde_json::from_slice(line).expect("a whole line");
            value["id"].as_str().expect("an id").to_string()
        })
        .collect()
}

/// A line with its id.
type IdLine = (String, Vec<u8>);

/// What a writer in a thread did.
#[derive(Default)]
struct Landed {
    /// How many of its lines went in.
    lines: usize,
    /// The line that it took back.
    taken: Option<String>,
    /// What it keeps open.
    held: Option<File>,
}

/// Writers that do something in the middle of a run of Tailor's.
struct Others {
    path: PathBuf,
    /// What is to be done, and the lines for it.
    todo: Vec<(Meanwhile, Vec<IdLine>)>,
    /// What writers have found, and how many old files had lost their last name by then.
    found: BTreeMap<usize, (File, usize)>,
    unlinked: usize,
    waiting: Vec<(usize, Vec<String>, std::thread::JoinHandle<Landed>)>,
    drains: usize,
    /// What writers keep open.
    held: Vec<(usize, File)>,
    model: Rc<RefCell<Model>>,
}

impl Others {
    fn new(
        world: &mut World,
        meanwhile: &[Meanwhile],
    ) -> (impl FnMut(usize, Step) + 'static, Rc<RefCell<Self>>) {
        let mut todo = Vec::new();
        let mut busy = BTreeSet::new();
        let edits =
            |what: &&Meanwhile| matches!(what, Meanwhile::EditInPlace { .. } | Meanwhile::Rename { .. });
        let edits_file = meanwhile.iter().any(|what| edits(&what));
        for &what in if world.mid_line() { &[] } else { meanwhile } {
            // Who edits in place or renames loses what others append at the same time; that is between them.
            if edits_file && !edits(&&what) {
                continue;
            }
            let writer = what.writer();
            // One thing at a time: a program does not append while it waits for its own append.
            if world.writers[writer].held.is_none() && busy.insert(if edits_file { 0 } else { writer }) {
                let lines = 1 + usize::from(matches!(what, Meanwhile::AppendTwice { .. }));
                todo.push((what, (0..lines).map(|_| world.next(writer)).collect()));
            }
        }
        let others = Self {
            path: world.path.clone(),
            todo,
            found: BTreeMap::new(),
            unlinked: 0,
            waiting: Vec::new(),
            drains: 0,
            held: Vec::new(),
            model: Rc::clone(&world.model),
        };
        let others = Rc::new(RefCell::new(others));
        let shared = Rc::clone(&others);
        (move |number, step| shared.borrow_mut().reached(number, step), others)
    }

    fn reached(&mut self, number: usize, step: Step) {
        match step {
            Step::CreateTemporary => self.drains = 0,
            Step::Drain => self.drains += 1,
            Step::Unlink => self.unlinked += 1,
            _ => {}
        }
        // Later than this a program would have slept through the whole grace period.
        let in_time = self.drains < 2 || (self.drains == 2 && step == Step::Drain);
        for (what, lines) in std::mem::take(&mut self.todo) {
            match what {
                Meanwhile::Append { at, .. } | Meanwhile::AppendTwice { at, .. } if at == number => {
                    self.append(what.writer(), lines, self.path.clone());
                }
                Meanwhile::Rename { writer, at } if at == number => self.rename(writer, lines),
                Meanwhile::FindThenAppend { writer, at, then }
                | Meanwhile::FindThenHold { writer, at, then }
                | Meanwhile::EditInPlace { writer, at, then } => {
                    if at <= number && !self.found.contains_key(&writer) {
                        // Nothing is there for an instant while the old file steps aside.
                        let found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&self.path);
                        self.found.extend(found.ok().map(|found| (writer, (found, self.unlinked))));
                    }
                    let there =
                        self.found.get(&writer).is_some_and(|(_, unlinked)| *unlinked == self.unlinked);
                    let Some(path) = self.found(writer).filter(|_| number >= then && in_time && there) else {
                        self.todo.push((what, lines));
                        continue;
                    };
                    match what {
                        Meanwhile::EditInPlace { .. } => self.edit(writer, lines, path),
                        Meanwhile::FindThenHold { .. } => self.hold(writer, lines, path),
                        _ => self.append(writer, lines, path),
                    }
                }
                _ => self.todo.push((what, lines)),
            }
        }
        if self.drains == 2 && step == Step::Drain {
            // The grace period is for programs that are slow to open; in tests the scheduler decides which are, so
            // wait for all of them here, where no lease holds anybody up.
            while self.waiting.iter().any(|(_, _, thread)| !thread.is_finished()) {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }

    /// Leads to the very file that a writer found, whatever its name is now.
    fn found(&self, writer: usize) -> Option<PathBuf> {
        self.found
            .get(&writer)
            .map(|(found, _)| PathBuf::from(format!("/proc/self/fd/{}", found.as_raw_fd())))
    }

    /// Appends line after line, each with an open and a close of its own.
    fn append(&mut self, writer: usize, lines: Vec<IdLine>, path: PathBuf) {
        let (ids, texts): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        self.start(writer, ids, move || {
            let put = |text: &Vec<u8>| appender(&path).and_then(|mut file| file.write_all(text)).is_ok();
            Landed { lines: texts.iter().take_while(|text| put(text)).count(), ..Landed::default() }
        });
    }

    /// Appends a line and keeps the file open.
    fn hold(&mut self, writer: usize, lines: Vec<IdLine>, path: PathBuf) {
        let (ids, texts): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        self.start(writer, ids, move || {
            let held =
                appender(&path).and_then(|mut file| file.write_all(&texts.concat()).map(|()| file)).ok();
            Landed { lines: usize::from(held.is_some()), taken: None, held }
        });
    }

    /// Claude Code takes a message back like this: cuts the file off where it began and writes what follows anew.
    fn edit(&mut self, writer: usize, lines: Vec<IdLine>, path: PathBuf) {
        let (ids, texts): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        self.start(writer, ids, move || {
            let edit = || -> std::io::Result<Option<String>> {
                let mut file = OpenOptions::new().read(true).append(true).open(&path)?;
                let mut all = vec![0; file.metadata()?.len() as usize];
                file.read_exact_at(&mut all, 0)?;
                let last = last_line(&all).filter(|&at| is_user(&all[at..]));
                let taken = last.map(|at| ids_of(&all[at..]).remove(0));
                file.set_len(last.unwrap_or(all.len()) as u64)?;
                file.write_all(&texts.concat())?;
                Ok(taken)
            };
            edit().map_or(Landed::default(), |taken| Landed { lines: 1, taken, held: None })
        });
    }

    fn rename(&mut self, writer: usize, lines: Vec<IdLine>) {
        if !self.path.exists() {
            return;
        }
        let (ids, texts): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        rename_over(&self.path, &texts.concat());
        self.model.borrow_mut().expected.entry(writer).or_default().extend(ids);
    }

    /// Does something in a thread, for it may have to wait; goes on as soon as it is done or seems to wait.
    fn start(&mut self, writer: usize, ids: Vec<String>, work: impl FnOnce() -> Landed + Send + 'static) {
        let (done, wait) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let landed = work();
            let _ = done.send(());
            landed
        });
        let _ = wait.recv_timeout(Duration::from_millis(2));
        self.waiting.push((writer, ids, thread));
    }

    /// Waits for all of them. Who had found the file before a run that died has all the time in the world.
    fn finish(&mut self, steps: &[Step]) {
        if !steps.contains(&Step::Unlink) {
            for (what, lines) in std::mem::take(&mut self.todo) {
                let path = self.found(what.writer());
                match (what, path) {
                    (Meanwhile::FindThenAppend { writer, .. }, Some(path)) => {
                        self.append(writer, lines, path);
                    }
                    (Meanwhile::FindThenHold { writer, .. }, Some(path)) => self.hold(writer, lines, path),
                    _ => {}
                }
            }
        }
        let mut model = self.model.borrow_mut();
        for (writer, ids, thread) in self.waiting.drain(..) {
            let Landed { lines, taken, held } = thread.join().unwrap();
            model.expected.entry(writer).or_default().extend(ids.into_iter().take(lines));
            self.held.extend(held.map(|file| (writer, file)));
            if let Some(taken) = taken {
                model.take_back(&taken, leftovers(&self.path) > 0);
            }
        }
    }
}

impl Meanwhile {
    fn writer(self) -> usize {
        match self {
            Self::Append { writer, .. }
            | Self::AppendTwice { writer, .. }
            | Self::FindThenAppend { writer, .. }
            | Self::FindThenHold { writer, .. }
            | Self::EditInPlace { writer, .. }
            | Self::Rename { writer, .. } => writer,
        }
    }
}

const STEPS: usize = 34;

fn meanwhile() -> impl Strategy<Value = Meanwhile> {
    prop_oneof![
        4 => (0..WRITERS, 0..STEPS).prop_map(|(writer, at)| Meanwhile::Append { writer, at }),
        4 => (0..WRITERS, 0..STEPS, 0..STEPS)
            .prop_map(|(writer, at, after)| Meanwhile::FindThenAppend { writer, at, then: at + after }),
        2 => (0..WRITERS, 0..STEPS, 0..STEPS)
            .prop_map(|(writer, at, after)| Meanwhile::FindThenHold { writer, at, then: at + after }),
        2 => (0..WRITERS, 0..STEPS).prop_map(|(writer, at)| Meanwhile::AppendTwice { writer, at }),
        2 => (0..WRITERS, 0..STEPS, 0..STEPS)
            .prop_map(|(writer, at, after)| Meanwhile::EditInPlace { writer, at, then: at + after }),
        1 => (0..WRITERS, 0..STEPS).prop_map(|(writer, at)| Meanwhile::Rename { writer, at }),
    ]
}

fn errno() -> impl Strategy<Value = i32> {
    prop::sample::select(vec![libc::ENOSPC, libc::EDQUOT, libc::EIO, libc::EACCES])
}

fn fault() -> impl Strategy<Value = Option<StepFault>> {
    prop_oneof![
        3 => Just(None),
        2 => (0..STEPS).prop_map(|at| Some(StepFault::Death { at })),
        1 => (0..STEPS, errno()).prop_map(|(at, errno)| Some(StepFault::Error { at, errno })),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let writer = 0..WRITERS;
    prop_oneof![
        4 => writer.clone().prop_map(Action::Append),
        3 => writer.clone().prop_map(Action::AppendBig),
        2 => writer.clone().prop_map(Action::AppendPart),
        3 => writer.clone().prop_map(Action::FinishLine),
        1 => writer.clone().prop_map(Action::OpenAndHold),
        2 => writer.clone().prop_map(Action::LetGo),
        1 => writer.prop_map(Action::WriterRenames),
        1 => Just(Action::WriterTruncates),
        6 => (fault(), vec(meanwhile(), 0..3)).prop_map(|(fault, others)| Action::Maintain(fault, others)),
        2 => (fault(), vec(meanwhile(), 0..3)).prop_map(|(fault, others)| Action::Undo(fault, others)),
        1 => Just(Action::Restart),
    ]
}

/// `.ci/run` asks for more.
const CASES: u32 = 100;

/// One set of cases every time, so that a failure is a failure for everybody; `PROPTEST_CASES` and
/// `PROPTEST_RNG_SEED` ask for more and for others.
fn config() -> Config {
    let default = Config::default();
    let seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(7),
        fixed @ RngSeed::Fixed(_) => fixed,
    };
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { CASES };
    Config { cases, rng_seed: seed, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_line_is_lost_whoever_does_what(actions in vec(action(), 1..14)) {
        let _alone = NO_FORKS.read();
        take_turns(&actions);
    }

    /// On a system that has no leases but says who has a file open: macOS.
    #[test]
    fn no_line_is_lost_without_leases_either(actions in vec(action(), 1..14)) {
        let _alone = NO_FORKS.read();
        fault::on(SEEN, || take_turns(&actions));
    }

    /// Where not even that can be asked: `quiet`.
    #[test]
    fn no_line_is_lost_where_nobody_is_seen(actions in vec(action(), 1..14)) {
        let _alone = NO_FORKS.read();
        fault::on(UNSEEN, || take_turns(&actions));
    }

    /// Where names are exchanged in two steps, with leases and without.
    #[test]
    fn no_line_is_lost_where_names_are_exchanged_in_steps(actions in vec(action(), 1..14), leases in leases()) {
        let _alone = NO_FORKS.read();
        fault::on(FaultySystem { leases, names: NameCalls::Linked }, || take_turns(&actions));
    }

    /// Where the old file has to step aside for the new one: exFAT, Windows.
    #[test]
    fn no_line_is_lost_where_the_old_file_steps_aside(actions in vec(action(), 1..14), leases in leases()) {
        let _alone = NO_FORKS.read();
        fault::on(FaultySystem { leases, names: NameCalls::Single }, || take_turns(&actions));
    }
}

const SEEN: FaultySystem = FaultySystem { leases: Leases::Seen, ..HERE };
const UNSEEN: FaultySystem = FaultySystem { leases: Leases::Unseen, ..HERE };

fn leases() -> impl Strategy<Value = Leases> {
    prop::sample::select(vec![Leases::Given, Leases::Seen, Leases::Unseen])
}

fn take_turns(actions: &[Action]) {
    let mut world = World::new();
    for action in actions {
        world.act(action);
    }
    world.end();
}

/// Each step fails in turn, in each way, until a run gets through. The file then holds the old bytes or the new ones,
/// and the next run settles the rest.
#[test]
fn each_step_may_fail() {
    let _alone = NO_FORKS.read();
    each_step_fails();
}

/// Each step fails in turn where names are exchanged in two steps.
#[test]
fn each_step_may_fail_where_names_are_exchanged_in_steps() {
    let _alone = NO_FORKS.read();
    for names in [NameCalls::Linked, NameCalls::Single] {
        fault::on(FaultySystem { names, ..HERE }, each_step_fails);
    }
}

fn each_step_fails() {
    let faults = |at| {
        let errors = [libc::ENOSPC, libc::EDQUOT, libc::EIO, libc::EACCES, libc::EBUSY]
            .map(|errno| StepFault::Error { at, errno });
        errors.into_iter().chain([StepFault::Death { at }])
    };
    let (old, new) = before_and_after();
    let mut at = 0;
    loop {
        let mut most = 0;
        for fault in faults(at) {
            let world = World::new();
            let (outcome, steps) = fault::with(Some(fault), || world.fix());
            if !world.path.exists() {
                assert!(steps.contains(&Step::Aside), "{fault:?} after {steps:?}");
                assert!(finish_all(&world.path, &world.vault()).is_empty());
            }
            let now = std::fs::read(&world.path).unwrap();
            assert!(now == old || now == new, "{fault:?} after {steps:?}");
            let fixed = outcome.is_ok_and(|outcome| outcome.ending == Ending::Fixed);
            assert!(!fixed || now == new, "{fault:?}");
            if matches!(fault, StepFault::Error { .. }) && now == old {
                assert_eq!(world.leftovers(), 0, "{fault:?} after {steps:?}");
            }
            most = most.max(steps.len());
            world.end();
        }
        if most <= at {
            assert!(at > 12, "{at} steps are too few");
            return;
        }
        at += 1;
    }
}

fn before_and_after() -> (Vec<u8>, Vec<u8>) {
    let world = World::new();
    let old = std::fs::read(&world.path).unwrap();
    assert_eq!(world.fix().unwrap().ending, Ending::Fixed);
    (old, std::fs::read(&world.path).unwrap())
}

/// Who holds the file open is waited for, and the outcome says so.
#[test]
fn a_held_file_is_deferred() {
    let _alone = NO_FORKS.read();
    let mut world = World::new();
    world.act(&Action::OpenAndHold(1));
    let Ending::Deferred(Deferral::Open { pid, .. }) = world.fix().unwrap().ending else { panic!() };
    assert_eq!(pid, std::process::id());
    world.end();
}

/// Where there are no leases the outcome says so, and lines that come late are brought over all the same.
#[test]
fn without_leases_the_outcome_says_what_held() {
    let _alone = NO_FORKS.read();
    for (leases, guarantee) in [
        (Leases::Given, Guarantee::Lease),
        (Leases::Seen, Guarantee::Drained),
        (Leases::Unseen, Guarantee::Quiet),
    ] {
        fault::on(FaultySystem { leases, ..HERE }, || {
            let steps = fault::with(None, || World::new().fix().unwrap()).1;
            let mut world = World::new();
            let drain = steps.iter().rposition(|step| *step == Step::Drain).unwrap();
            // One step earlier, because a run in which the file counts as just written has one step more.
            let late = [Meanwhile::FindThenAppend { writer: 1, at: 0, then: drain - 1 }];
            let (hook, others) = Others::new(&mut world, &late);
            let (outcome, steps) = fault::meanwhile(None, hook, || world.fix());
            others.borrow_mut().finish(&steps);
            let outcome = outcome.unwrap();
            assert_eq!((outcome.ending, outcome.guarantee), (Ending::Fixed, Some(guarantee)));
            assert_eq!(world.model.borrow().expected[&1].len(), 1, "the late line was appended");
            world.end();
        });
    }
}

/// A file system that does not exchange names is named in the outcome, also where there are leases.
#[test]
fn names_that_are_exchanged_in_steps_are_a_weaker_guarantee() {
    let _alone = NO_FORKS.read();
    for leases in [Leases::Given, Leases::Seen, Leases::Unseen] {
        for names in [NameCalls::Linked, NameCalls::Single] {
            fault::on(FaultySystem { leases, names }, || {
                let world = World::new();
                let outcome = world.fix().unwrap();
                assert_eq!((outcome.ending, outcome.guarantee), (Ending::Fixed, Some(Guarantee::Quiet)));
                world.end();
            });
        }
    }
}

/// Another program renames a file of its own over the session, before any step of an exchange: its file stays.
#[test]
fn a_file_that_is_put_there_meanwhile_stays() {
    let _alone = NO_FORKS.read();
    for names in [NameCalls::Exchanged, NameCalls::Linked, NameCalls::Single] {
        fault::on(FaultySystem { names, ..HERE }, || {
            for moment in [Step::Exchange, Step::Link, Step::Aside, Step::Rename] {
                let mut world = World::new();
                let ((id, text), path) = (world.next(1), world.path.clone());
                let mut text = Some(text);
                let hook = move |_, step| {
                    if let Some(text) = text.take_if(|_| step == moment && path.exists()) {
                        rename_over(&path, &text);
                    }
                };
                let (outcome, steps) = fault::meanwhile(None, hook, || world.fix());
                if steps.contains(&moment) && (names, moment) != (NameCalls::Single, Step::Rename) {
                    world.expect(1, [id]);
                }
                let ending = outcome.unwrap().ending;
                assert!(matches!(ending, Ending::Fixed | Ending::Deferred(Deferral::Changed)), "{ending:?}");
                world.check();
                world.end();
            }
        });
    }
}

/// Where names are exchanged in steps, the vault has the whole old file; what a program that nobody saw appends to that later is
/// brought over by the next run, also after other runs.
#[test]
fn the_old_file_is_kept_whole_and_heard() {
    let _alone = NO_FORKS.read();
    for names in [NameCalls::Linked, NameCalls::Single] {
        fault::on(FaultySystem { names, ..UNSEEN }, || {
            let mut world = World::new();
            let old = std::fs::read(&world.path).unwrap();
            let held = appender(&world.path).unwrap();
            // A program that another user runs is not seen; here it is this one, which is.
            let hidden = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
            let found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&hidden).unwrap();
            drop(held);
            assert_eq!(world.fix().unwrap().ending, Ending::Fixed);
            let (record, mut whole) = world.vault().wholes(&world.path).unwrap().pop().unwrap();
            let mut kept = Vec::new();
            std::io::Read::read_to_end(&mut whole, &mut kept).unwrap();
            assert_eq!(kept, old);
            let late = || appender(&PathBuf::from(format!("/proc/self/fd/{}", found.as_raw_fd()))).unwrap();
            for again in [false, true] {
                if again {
                    world.act(&Action::AppendBig(2));
                    assert_eq!(world.fix().unwrap().ending, Ending::Fixed);
                }
                let (id, text) = world.next(1);
                late().write_all(&text).unwrap();
                world.expect(1, [id]);
                world.act(&Action::Restart);
                world.check();
            }
            let age = Duration::ZERO;
            world.vault().gc(crate::RunsToKeep { age, bytes: 0 }, false).unwrap();
            let left: Vec<_> = world.vault().wholes(&world.path).unwrap();
            assert!(left.iter().all(|(left, _)| left.run != record.run), "it goes with its run");
            world.end();
        });
    }
}

/// The agent comes back in the instant in which the old file has stepped aside, or after we died in it: its line is there.
#[test]
fn who_comes_while_the_old_file_is_aside_is_heard() {
    let _alone = NO_FORKS.read();
    fault::on(FaultySystem { names: NameCalls::Single, ..UNSEEN }, || {
        for dies in [false, true] {
            let mut world = World::new();
            let ((id, text), path) = (world.next(1), world.path.clone());
            let steps = fault::with(None, || World::new().fix().unwrap()).1;
            let at = steps.iter().position(|step| *step == Step::Rename).unwrap();
            let mut text = Some(text);
            let hook = move |_, step| {
                if let Some(text) = text.take_if(|_| step == Step::Rename) {
                    assert!(!path.exists());
                    appender(&path).unwrap().write_all(&text).unwrap();
                }
            };
            let fault = dies.then_some(StepFault::Death { at });
            let (outcome, _) = fault::meanwhile(fault, hook, || world.fix());
            world.expect(1, [id]);
            if !dies {
                assert_eq!(outcome.unwrap().ending, Ending::Deferred(Deferral::Changed));
                world.check();
            }
            world.act(&Action::Append(1));
            world.act(&Action::Restart);
            assert_eq!(world.fix().unwrap().ending, Ending::Fixed);
            world.end();
        }
    });
}

/// A virus scanner has the file: that passes, and is no error. What fails once the new text is there is one.
#[test]
fn a_file_that_is_withheld_is_deferred() {
    let _alone = NO_FORKS.read();
    for names in [NameCalls::Exchanged, NameCalls::Linked, NameCalls::Single] {
        fault::on(FaultySystem { names, ..HERE }, || {
            let steps = fault::with(None, || World::new().fix().unwrap()).1;
            for step in [
                Step::CreateTemporary,
                Step::WriteText,
                Step::Exchange,
                Step::Link,
                Step::Aside,
                Step::Rename,
                Step::Drain,
            ] {
                let Some(at) = steps.iter().position(|taken| *taken == step) else { continue };
                let (world, fault) = (World::new(), StepFault::Error { at, errno: libc::EBUSY });
                let (done, taken) = fault::with(Some(fault), || world.fix());
                // A file that was just written is compared, so that a run may have more steps than another.
                if taken[..=at].contains(&Step::Drain) {
                    assert!(done.is_err());
                } else {
                    assert_eq!(done.unwrap().ending, Ending::Deferred(Deferral::Withheld), "{step:?}");
                }
                world.end();
            }
        });
    }
}

/// Who opened the old file in time and keeps it open is heard for as long as that lasts.
#[test]
fn who_holds_the_old_file_is_waited_for() {
    let _alone = NO_FORKS.read();
    for leases in [Leases::Given, Leases::Seen] {
        fault::on(FaultySystem { leases, ..HERE }, || {
            let mut world = World::new();
            let found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&world.path).unwrap();
            let held = Rc::new(RefCell::new(None));
            let (shared, mut drains) = (Rc::clone(&held), 0);
            let hook = move |_, step| {
                drains += usize::from(step == Step::Drain);
                if drains == 1 && step == Step::Drain {
                    let found = PathBuf::from(format!("/proc/self/fd/{}", found.as_raw_fd()));
                    *shared.borrow_mut() = Some(appender(&found).unwrap());
                }
            };
            let (outcome, _) = fault::meanwhile(None, hook, || world.fix());
            assert_eq!(outcome.unwrap().ending, Ending::Fixed);
            world.writers[1].held = held.borrow_mut().take();
            assert_eq!(world.leftovers(), 1, "{leases:?}");
            let (id, text) = world.next(1);
            world.append(1, vec![id.clone()], &text);
            world.act(&Action::Restart);
            assert_eq!(world.leftovers(), 1, "{leases:?}: it may append more");
            world.act(&Action::LetGo(1));
            world.act(&Action::Restart);
            assert!(ids_of(&std::fs::read(&world.path).unwrap()).contains(&id), "{leases:?}");
            world.end();
        });
    }
}

/// What `drained` does not cover: a program that found the old file before the names were exchanged and opens it only
/// after it lost its last name. A lease does not cover that either, but there the program's time is what it takes between
/// two of its own steps.
#[test]
fn who_opens_the_old_file_after_its_end_is_not_heard() {
    let _alone = NO_FORKS.read();
    fault::on(SEEN, || {
        let mut world = World::new();
        let found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&world.path).unwrap();
        assert_eq!(world.fix().unwrap().guarantee, Some(Guarantee::Drained));
        let (id, text) = world.next(1);
        let late = PathBuf::from(format!("/proc/self/fd/{}", found.as_raw_fd()));
        appender(&late).unwrap().write_all(&text).unwrap();
        assert!(!ids_of(&std::fs::read(&world.path).unwrap()).contains(&id));
        world.end();
    });
}

/// A line came late, and by then another program had appended to the new file and held it open: the fix has landed,
/// the line waits beside the file, and the outcome says both.
#[test]
fn late_lines_wait_for_who_holds_the_new_file() {
    let _alone = NO_FORKS.read();
    let mut world = World::new();
    let (path, [early, late]) = (world.path.clone(), [0, 1].map(|writer| world.next(writer)));
    let (shared, hook) = holder(path, early.1, late.1);
    let (outcome, _) = fault::meanwhile(None, hook, || world.fix());
    world.expect(0, [early.0]);
    world.expect(1, [late.0]);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.ending, Ending::Fixed);
    let Some(Deferral::LateLines(why)) = outcome.late else { panic!("{:?}", outcome.late) };
    assert!(why.contains(&format!("process {}", std::process::id())), "{why}");
    assert_eq!(world.leftovers(), 1);
    let waits = crate::insert_late_lines(&world.path, &world.vault()).unwrap();
    assert!(matches!(waits, Some(Deferral::LateLines(_))), "still held");
    drop(shared.take());
    assert_eq!(crate::insert_late_lines(&world.path, &world.vault()).unwrap(), None);
    assert_eq!(world.leftovers(), 0);
    world.end();
}

/// Finds the old file before the exchange; in the grace after it appends one line to the new file, which it then holds
/// open, and the other to the old one.
fn holder(
    path: PathBuf,
    early: Vec<u8>,
    late: Vec<u8>,
) -> (Rc<RefCell<Option<File>>>, impl FnMut(usize, Step)) {
    let held = Rc::new(RefCell::new(None));
    let (shared, mut found, mut drains) = (Rc::clone(&held), None, 0);
    let hook = move |_, step| match step {
        Step::LeaseOld if found.is_none() => {
            found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).ok();
        }
        Step::Drain => {
            drains += 1;
            if let (2, Some(old)) = (drains, &found) {
                let mut new = appender(&path).unwrap();
                new.write_all(&early).unwrap();
                *shared.borrow_mut() = Some(new);
                let old = PathBuf::from(format!("/proc/self/fd/{}", old.as_raw_fd()));
                appender(&old).unwrap().write_all(&late).unwrap();
            }
        }
        _ => {}
    };
    (held, hook)
}
