//! Programs that append to a session as agents do. Each keeps a log of what it has written, as far as it knows.
//!
//! The log has a line per entry: its id, a tab, and the line as it was appended, or nothing if a fix may shorten it.

use crate::rng::Rng;
use crate::support::skipped;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

/// The limit for results, so low that the file stays small while there is always something to cut.
pub(super) const RESULT_CHARS_MAX: usize = 200;

/// Node writes longer data in several calls.
const CHUNK_BYTES: usize = 512 << 10;

/// The longest pause between two turns of [`AppendKind::Seldom`].
const THINKING_MICROS: u64 = 1_500_000;

/// Escapes and characters of all widths, for cuts to hit.
const ROW: &str = "row of \"naïve\" output → 🚀\tdone\n";

/// The session before any appends.
pub(super) const OPENING: &str = concat!(
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#,
    "\n",
    r#"{"type":"message","id":"root","parentId":null,"timestamp":"2026-07-01T10:00:00.000Z","message":{"role":"user","content":"go"}}"#,
    "\n",
);

/// The place of a scenario.
pub(super) struct Site {
    /// The session.
    pub(super) path: PathBuf,
    /// The folder of the logs.
    pub(super) logs: PathBuf,
    /// Whether writers should end.
    pub(super) stop: AtomicBool,
    /// When programs held the session open.
    pub(super) holds: Mutex<Vec<(Instant, Instant)>>,
    /// The longest time that an append took.
    pub(super) longest: Mutex<Duration>,
    /// A line written in pieces is only whole if no other writer comes in between, which is not our concern here.
    /// Writers of single pieces share this lock, and writers of several hold it alone.
    turn: RwLock<()>,
}

impl Site {
    pub(super) fn new(path: PathBuf, logs: PathBuf) -> Self {
        let (stop, holds, longest) = (AtomicBool::new(false), Mutex::default(), Mutex::default());
        Self { path, logs, stop, holds, longest, turn: RwLock::new(()) }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }

    fn timed(&self, append: impl FnOnce()) {
        let began = Instant::now();
        append();
        let mut longest = self.longest.lock().unwrap();
        *longest = began.elapsed().max(*longest);
    }
}

/// How a program appends.
#[derive(Clone, Copy)]
pub(super) enum AppendKind {
    /// pi: Node's `appendFileSync` for each entry.
    Node,
    /// Opens, writes once and closes, for each entry.
    ByPath,
    /// The same, with seconds between turns, as where a person has to answer.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "leases are refused on Linux only"))]
    Seldom,
    /// Codex: opens once and writes many entries.
    Held,
    /// Opens, writes a long line in several calls and closes.
    InPieces,
}

impl AppendKind {
    /// Writes until told to stop. The last turn is always complete.
    pub(super) fn write(self, site: &Site, seed: u64) {
        match self {
            Self::Node => node(site, seed),
            Self::ByPath => by_path(site, &mut Voice::new(site, &format!("path{seed}"), seed), None),
            Self::Seldom => {
                by_path(site, &mut Voice::new(site, &format!("seldom{seed}"), seed), Some(THINKING_MICROS));
            }
            Self::Held => held(site, &mut Voice::new(site, &format!("held{seed}"), seed)),
            Self::InPieces => in_pieces(site, &mut Voice::new(site, &format!("long{seed}"), seed)),
        }
    }
}

fn open(path: &Path) -> File {
    OpenOptions::new().append(true).create(true).open(path).unwrap()
}

fn by_path(site: &Site, voice: &mut Voice, thinking_micros: Option<u64>) {
    while !site.stopped() || voice.is_amid_a_turn() {
        let line = voice.next(&SHORT);
        let turn = site.turn.read().unwrap();
        site.timed(|| open(&site.path).write_all(&line.bytes).unwrap());
        drop(turn);
        voice.log(&line);
        voice.breathe();
        if let (Some(micros), false) = (thinking_micros, voice.is_amid_a_turn()) {
            voice.pause(micros);
        }
    }
}

fn held(site: &Site, voice: &mut Voice) {
    while !site.stopped() || voice.is_amid_a_turn() {
        let mut file = open(&site.path);
        let since = Instant::now();
        for _ in 0..4 * (1 + voice.rng.below(12)) {
            let line = voice.next(&SHORT);
            let turn = site.turn.read().unwrap();
            file.write_all(&line.bytes).unwrap();
            drop(turn);
            voice.log(&line);
            voice.breathe();
        }
        site.holds.lock().unwrap().push((since, Instant::now()));
        drop(file);
        voice.pause(150_000);
    }
}

fn in_pieces(site: &Site, voice: &mut Voice) {
    while !site.stopped() || voice.is_amid_a_turn() {
        let line = voice.next(&LONG);
        let turn = site.turn.write().unwrap();
        let mut file = open(&site.path);
        for chunk in line.bytes.chunks(CHUNK_BYTES) {
            file.write_all(chunk).unwrap();
            voice.pause(1_000);
        }
        drop((file, turn));
        voice.log(&line);
        voice.pause(30_000);
    }
}

/// Runs the script and sends it turns.
fn node(site: &Site, seed: u64) {
    let name = format!("node{seed}");
    let mut command = Command::new("node");
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/writers/append.mjs"))
        .arg(&site.path)
        .arg(site.log(&name));
    let spawned =
        command.args([&name, &seed.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = spawned else {
        skipped("node is not installed; the other writers went on without it");
        return;
    };
    let (mut rng, mut tempo, mut turns) = (Rng::new(seed), 1, 0);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    while !site.stopped() && says(&mut output, "?\n") {
        let turn = site.turn.read().unwrap();
        site.timed(|| {
            input.write_all(b"go\n").unwrap();
            assert!(says(&mut output, ".\n"), "node ended while it appended");
        });
        drop(turn);
        tempo = if turns % 4 == 0 { rng.tempo() } else { tempo };
        thread::sleep(Duration::from_micros(rng.below(tempo)));
        turns += 1;
    }
    // The script finishes its turn of the conversation, so it may still append lines.
    let _turn = site.turn.read().unwrap();
    drop(input);
    while !says(&mut output, "") {}
    assert!(child.wait().unwrap().success());
}

fn says(output: &mut impl BufRead, expected: &str) -> bool {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line == expected
}

/// How long results are that a fix shortens, and how frequent they are.
struct Size {
    rows: Range<u64>,
    long_result_one_in: u64,
}

const SHORT: Size = Size { rows: 20..120, long_result_one_in: 3 };
/// From less than one chunk to more than two, because each quote and line break takes two bytes.
const LONG: Size = Size { rows: 1000..(2 * CHUNK_BYTES / ROW.len()) as u64, long_result_one_in: 1 };

impl Rng {
    /// Without a pause, at the speed of a machine, or with pauses long enough for a run of `fix`.
    fn tempo(&mut self) -> u64 {
        match self.below(16) {
            0..8 => 1,
            8..15 => 2_000,
            _ => 80_000,
        }
    }
}

/// A line and its id.
struct WrittenLine {
    id: String,
    bytes: Vec<u8>,
    /// Whether a fix may make it shorter.
    is_cut: bool,
}

/// What one writer appends: turns of a question, a call, its result, and an answer, all on a branch of its own.
struct Voice {
    name: String,
    number: u64,
    parent: String,
    rng: Rng,
    /// The longest pause after a line of this turn, in microseconds.
    tempo: u64,
    log: File,
}

impl Voice {
    fn new(site: &Site, name: &str, seed: u64) -> Self {
        let log = open(&site.log(name));
        let (name, parent, rng) = (name.to_string(), "root".to_string(), Rng::new(seed));
        Self { name, number: 0, parent, rng, tempo: 1, log }
    }

    /// Whether a call waits for its result, or a result for an answer.
    fn is_amid_a_turn(&self) -> bool {
        !self.number.is_multiple_of(4)
    }

    /// The next entry.
    fn next(&mut self, size: &Size) -> WrittenLine {
        let id = format!("{}-{:06}", self.name, self.number);
        let call = format!("call-{}-{}", self.name, self.number / 4);
        let text = |rows| json!({"type": "text", "text": format!("{id} {}", ROW.repeat(rows as usize))});
        let is_cut = self.number % 4 == 2 && self.rng.below(size.long_result_one_in) == 0;
        let (few, some) = (self.rng.below(5), self.rng.below(10));
        let many = size.rows.start + self.rng.below(size.rows.end - size.rows.start);
        let message = match self.number % 4 {
            0 => json!({"role": "user", "content": [text(some)]}),
            1 => json!({"role": "assistant", "model": "m", "stopReason": "toolUse", "content": [
                text(few), {"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": "make"}},
            ]}),
            2 => json!({"role": "toolResult", "toolCallId": call, "toolName": "bash", "isError": false,
                "content": [text(if is_cut { many } else { few })]}),
            _ => {
                json!({"role": "assistant", "model": "m", "stopReason": "stop", "content": [text(some)]})
            }
        };
        let entry: Value = json!({"type": "message", "id": id, "parentId": self.parent,
            "timestamp": "2026-07-01T10:00:00.000Z", "message": message});
        self.parent.clone_from(&id);
        self.number += 1;
        WrittenLine { id, bytes: format!("{entry}\n").into_bytes(), is_cut }
    }

    /// Must be called once the append has returned.
    fn log(&mut self, line: &WrittenLine) {
        let kept: &[u8] = if line.is_cut { b"\n" } else { &line.bytes };
        self.log.write_all(&[line.id.as_bytes(), b"\t", kept].concat()).unwrap();
    }

    /// Waits after a line, for the tempo of this turn.
    fn breathe(&mut self) {
        if !self.is_amid_a_turn() {
            self.tempo = self.rng.tempo();
        }
        self.pause(self.tempo);
    }

    fn pause(&mut self, micros_max: u64) {
        thread::sleep(Duration::from_micros(self.rng.below(micros_max)));
    }
}
