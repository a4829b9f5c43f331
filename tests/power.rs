//! Power cuts during and after `tailor fix`, in a model of the page cache.
//!
//! Agents never sync what they append. Each case starts with a session that is only partly on disk, traces a fix beside
//! a program that appends, perhaps kills the fix, and cuts the power: whatever was not synced may be lost ([`disk`]).
//! Then the next fix must keep every line that the cut left.
//!
//! `TAILOR_POWER_CASES` sets the number of cases, `TAILOR_POWER_SEED` the first one. A seed decides what strace does and
//! what the disk loses, but the timing is up to the machine. `TAILOR_POWER_KEEP` keeps the folders. Skipped with a
//! message where strace is missing.

mod disk;
mod tally;

use crate::rng::Rng;
use crate::support::{Dir, FinishedRun, make_old, run};
use crate::trace::{SystemCall, calls, can_trace};
use disk::{Disk, Left};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};
use tally::{CutTally, CutVerdict, Ended};

/// `.ci/run` asks for more.
const CASES: u64 = 30;

/// Cases that run at a time. A run sleeps more than it works.
const WORKERS: usize = 4;

/// One case in this many may be unclear: the trace does not tell in which order calls took effect, or a program found a
/// file that it believed it had removed.
const UNCLEAR_SHARE: u64 = 8;

/// Weight of a death after the exchange of names.
const AFTER_EXCHANGE_TIMES: usize = 12;

/// Calls of `write` in one process of the agent.
const AGENT_WRITES: u64 = 1;

/// How long the agent waits for the moment before the exchange.
const EXCHANGE_WITHIN: Duration = Duration::from_millis(300);

/// Every call that changes a disk. The model panics on one that it does not know.
const TRACED: &str = "open,openat,openat2,creat,write,writev,pwrite64,pwritev,pwritev2,copy_file_range,sendfile,\
splice,truncate,ftruncate,fallocate,fsync,fdatasync,sync,syncfs,rename,renameat,renameat2,link,linkat,symlink,\
symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,fcntl";

/// The program may be killed right before these calls.
const DEADLY: &[&str] = &[
    "write",
    "pwrite64",
    "copy_file_range",
    "ftruncate",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "fcntl",
];

/// Starts the program next to an agent, which reads what to append from standard input. Each append is a process of
/// its own, because strace counts calls per process.
const BESIDE: &str = r#"
exec 3<&0
agent() {
    while IFS= read -r line; do
        case $line in
        open) exec 4>>s.jsonl ;;
        close) exec 4>&- ;;
        held*) (printf '%s\n' "${line#held}" >&4) ;;
        *) (printf '%s\n' "$line" >>s.jsonl) ;;
        esac
    done
}
agent <&3 &
exec "$@" 3<&- </dev/null
"#;

/// Delays the exchange of names while the program holds its leases.
const PAUSE_BEFORE_EXCHANGE: &str = "renameat2:delay_enter";

/// Ids of entries, in file order.
type EntryIds = Vec<String>;

#[test]
fn a_power_cut_costs_nothing_but_what_the_disk_lost() {
    if !can_trace() {
        return;
    }
    let number = |key, default| std::env::var(key).map_or(default, |text| text.parse().unwrap());
    let (cases, first) = (number("TAILOR_POWER_CASES", CASES), number("TAILOR_POWER_SEED", 1));
    let deaths = deaths();
    let (next, tally) = (AtomicU64::new(first), Mutex::new(CutTally::default()));
    scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + cases {
                        return;
                    }
                    let ended = Case::new(seed).go(&deaths);
                    tally.lock().unwrap().add(seed, ended);
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap();
    eprintln!("{cases} power cuts, {}", tally.counts());
    assert!(tally.wrong.is_empty(), "{}", tally.text());
    assert!(tally.unclear * UNCLEAR_SHARE <= cases, "unclear: {}", tally.example);
}

/// The calls at which to kill the program: the name, and the count within the thread. Calls after the exchange of names
/// are listed several times, because most can go wrong there.
fn deaths() -> Vec<(String, u64)> {
    let mut case = Case::new(0);
    case.begin();
    let pause = ["-e".to_string(), format!("inject={PAUSE_BEFORE_EXCHANGE}=20000")];
    let (_, calls) = case.fix_traced(&pause);
    let mut counts: HashMap<(u32, &str), u64> = HashMap::new();
    let (mut found, mut times) = (Vec::new(), 1);
    for call in calls.iter().filter(|call| DEADLY.contains(&call.name.as_str())) {
        let count = counts.entry((call.thread, &call.name)).or_default();
        *count += 1;
        // The first few would kill the agent as well. Later `fcntl` calls only poll for the last writer.
        let range = if call.name == "fcntl" { 4..30 } else { AGENT_WRITES + 1..u64::MAX };
        if !["fcntl", "write"].contains(&call.name.as_str()) || range.contains(count) {
            found.extend((0..times).map(|_| (call.name.clone(), *count)));
        }
        if call.arguments.contains("RENAME_EXCHANGE") {
            times = AFTER_EXCHANGE_TIMES;
        }
    }
    assert!(times > 1, "no exchange of names among {calls:?}");
    found
}

/// Where the cut left a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineFate {
    Path,
    /// Only in the old file next to it. A program had appended the line there.
    Old,
    /// Only in the new file next to it. A program had appended the line at the path, then the cut undid the exchange.
    Undone,
}

struct Case {
    dir: Dir,
    rng: Rng,
    ended: Ended,
    /// The number of lines that each program has appended.
    appended: HashMap<char, u64>,
    /// The last entry of the session.
    parent: String,
    /// What happened, for failure messages.
    story: Vec<String>,
    /// The lines that must be in the file at the end, and where a cut left them.
    owed: BTreeMap<String, LineFate>,
}

impl Case {
    fn new(seed: u64) -> Self {
        let ended =
            Ended { killed: false, left: false, late: false, lost_by_disk: 0, verdict: CutVerdict::Well };
        let (dir, rng) = (Dir::in_memory(), Rng::new(seed));
        Self {
            dir,
            rng,
            ended,
            appended: HashMap::new(),
            parent: String::new(),
            owed: BTreeMap::new(),
            story: Vec::new(),
        }
    }

    fn go(mut self, deaths: &[(String, u64)]) -> Ended {
        for _ in 0..16 {
            self.rng.below(2);
        }
        match self.all(deaths) {
            Ok(()) => {}
            Err(CutVerdict::Wrong(what, why)) => {
                self.ended.verdict = CutVerdict::Wrong(what, format!("{why}; {}", self.story.join("; ")));
            }
            Err(verdict) => self.ended.verdict = verdict,
        }
        if std::env::var_os("TAILOR_POWER_KEEP").is_some() {
            eprintln!("kept: {}", self.dir.keep().display());
        }
        self.ended
    }

    fn all(&mut self, deaths: &[(String, u64)]) -> Result<(), CutVerdict> {
        let synced = self.begin();
        for round in 0..=u64::from(self.rng.below(4) == 0) {
            let (mut disk, before) = (self.disk(), self.inode());
            if round == 0 {
                disk.appended(&self.path(), synced.iter().copied());
            }
            let options = self.options(deaths);
            self.story.push(options.join(" "));
            let (fixed, calls) = self.fix_traced(&options);
            self.ended.killed |= fixed.is_none();
            disk.replay(&calls);
            disk.check().map_err(CutVerdict::Unclear)?;
            let was = self.inode();
            let left = disk.cut(&mut self.rng);
            self.look(&left, before, was)?;
        }
        self.judge()
    }

    fn path(&self) -> PathBuf {
        self.dir.files().canonicalize().unwrap().join("s.jsonl")
    }

    fn inode(&self) -> u64 {
        fs::metadata(self.path()).unwrap().ino()
    }

    fn vault(&self) -> PathBuf {
        self.dir.home().canonicalize().unwrap().join("vault")
    }

    fn disk(&self) -> Disk {
        let roots = [self.dir.files(), self.dir.home()].map(|root| root.canonicalize().unwrap());
        Disk::read(&roots, &roots[0])
    }

    fn arguments(path: &Path, vault: &Path) -> Vec<String> {
        let text = |path: &Path| path.to_str().unwrap().to_string();
        let options = ["--settle", "0", "--result-chars-max", "200", "--format", "json", "--vault"];
        ["fix".to_string(), text(path)]
            .into_iter()
            .chain(options.map(String::from))
            .chain([text(vault)])
            .collect()
    }

    /// Writes a session. Returns its length at the last sync and after each append since.
    fn begin(&mut self) -> Vec<usize> {
        let mut lines = vec![
            json!({"type": "session", "version": 3, "id": "s", "timestamp": TIME, "cwd": "/w"}).to_string(),
        ];
        for turn in 0..2 + self.rng.below(8) {
            lines.extend(self.turn(turn));
        }
        let synced = 1 + self.rng.below(lines.len() as u64) as usize;
        let (mut text, mut ends) = (String::new(), Vec::new());
        for (n, line) in lines.iter().enumerate() {
            text += line;
            text.push('\n');
            if n + 1 >= synced {
                ends.push(text.len());
            }
        }
        let path = self.dir.path("s.jsonl");
        fs::write(&path, text).unwrap();
        if self.rng.below(2) == 0 {
            make_old(&path);
        }
        ends
    }

    /// A question, a tool call, its result and an answer.
    fn turn(&mut self, turn: u64) -> [String; 4] {
        let rows = [1, 3, 20, 60, 300][self.rng.below(5) as usize];
        let output = "row of \"output\" → done\n".repeat(rows);
        let call =
            json!({"type": "toolCall", "id": format!("toolu_{turn}"), "name": "bash", "arguments": {}});
        [
            json!({"role": "user", "content": format!("question {turn}")}),
            json!({"role": "assistant", "content": [call], "stopReason": "toolUse"}),
            json!({"role": "toolResult", "toolCallId": format!("toolu_{turn}"), "toolName": "bash",
                "content": [{"type": "text", "text": output}], "isError": false}),
            json!({"role": "assistant", "content": [{"type": "text", "text": format!("answer {turn}")}],
                "stopReason": "stop"}),
        ]
        .map(|message| {
            let parent = Some(&self.parent).filter(|parent| !parent.is_empty()).cloned();
            self.parent = self.id('m');
            json!({"type": "message", "id": self.parent, "parentId": parent, "timestamp": TIME,
                "message": message})
            .to_string()
        })
    }

    /// The next id of a program.
    fn id(&mut self, program: char) -> String {
        let count = self.appended.entry(program).or_default();
        *count += 1;
        format!("{program}{count}")
    }

    /// A line that a program appends during the fix or later.
    fn late(&mut self, program: char) -> String {
        let data = "late → ".repeat([1, 30, 700][self.rng.below(3) as usize]);
        let id = self.id(program);
        json!({"type": "custom", "id": id, "parentId": self.parent, "timestamp": TIME, "customType": "x",
            "data": data})
        .to_string()
    }

    /// What strace injects: a kill, a delay in which others get in, and calls of `unlink` that only pretend, so that
    /// the cut can undo them.
    fn options(&mut self, deaths: &[(String, u64)]) -> Vec<String> {
        let mut injected = Vec::new();
        let mut deadly = String::new();
        if self.rng.below(2) == 0 {
            let (call, n) = &deaths[self.rng.below(deaths.len() as u64) as usize];
            injected.push(format!("{call}:signal=KILL:when={n}"));
            deadly.clone_from(call);
        }
        if self.rng.below(3) == 0 && !deadly.starts_with("unlink") {
            injected.push("unlink,unlinkat:retval=0".to_string());
        }
        let pause = 1000 * (1 + self.rng.below(40));
        match self.rng.below(5) {
            0..=2 if deadly != "renameat2" => injected.push(format!("{PAUSE_BEFORE_EXCHANGE}={pause}")),
            3 if deadly != "fsync" => {
                injected.push(format!("fsync:delay_enter={pause}:when={}", 1 + self.rng.below(12)));
            }
            _ => {}
        }
        injected.into_iter().flat_map(|what| ["-e".to_string(), format!("inject={what}")]).collect()
    }

    /// Runs `fix` and an agent under strace. The exit code is `None` if the program was killed.
    fn fix_traced(&mut self, options: &[String]) -> (Option<i32>, Vec<SystemCall>) {
        let (path, vault) = (self.path(), self.vault());
        let trace = self.dir.home().with_file_name("tmp").join("trace");
        let mut command = self.dir.command_of("strace");
        command.env("PATH", "/usr/bin:/bin:/usr/local/bin");
        command.args(["-f", "-y", "-qq", "-s", "1000000", "-o"]).arg(&trace);
        // Faster, but strace then drops injected signals.
        if !options.iter().any(|option| option.contains("signal")) {
            command.arg("--seccomp-bpf");
        }
        command.args(["-e", &format!("trace={TRACED}")]).args(options);
        command.args(["sh", "-c", BESIDE, "sh", env!("CARGO_BIN_EXE_tailor")]);
        command.args(Self::arguments(&path, &vault));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let said = self.said();
        let delayed = options.iter().any(|option| option.contains(PAUSE_BEFORE_EXCHANGE));
        let mut child = command.spawn().unwrap();
        let mut agent = child.stdin.take().unwrap();
        for (n, (pause, line)) in said.iter().enumerate() {
            // The second line arrives around the exchange.
            let until = Instant::now() + EXCHANGE_WITHIN;
            while n == 1 && !self.is_time() && Instant::now() < until {
                sleep(Duration::from_micros(200));
            }
            if !delayed || n != 1 {
                sleep(*pause);
            }
            let _ = writeln!(agent, "{line}");
        }
        drop(agent);
        let status = child.wait().unwrap().code();
        (status, calls(&fs::read_to_string(trace).unwrap()))
    }

    /// Whether the exchange is near: the program holds the lease. Whoever opens the file then gets the old one.
    fn is_time(&self) -> bool {
        let inode = self.inode();
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        locks.lines().any(|lock| lock.contains("LEASE") && lock.contains(&format!(":{inode} ")))
    }

    /// What the agent does, and the pauses before.
    fn said(&mut self) -> Vec<(Duration, String)> {
        let mut said = Vec::new();
        if self.rng.below(4) == 0 {
            return said;
        }
        let holds = self.rng.below(2) == 0;
        for n in 0..=self.rng.below(6) {
            let pause = Duration::from_millis(if n == 0 { 40 } else { self.rng.below(20) });
            if holds && n == 1 {
                said.push((pause, "open".to_string()));
            }
            let held = holds && n > 0 && self.rng.below(2) == 0;
            let line = self.late(if held { 'h' } else { 'p' });
            said.push((pause, if held { format!("held{line}") } else { line }));
        }
        if holds {
            said.push((Duration::ZERO, "close".to_string()));
        }
        said
    }

    /// Notes what the cut left. `before` was the inode at the path before the fix, `was` before the cut.
    fn look(&mut self, left: &[Left], before: u64, was: u64) -> Result<(), CutVerdict> {
        let path = self.path();
        let text = fs::read(&path).unwrap();
        let mended = Self::mended(&text);
        for id in ids(&mended) {
            self.owed.insert(id, LineFate::Path);
        }
        let now = self.inode();
        let place = if now == before && was != before { LineFate::Undone } else { LineFate::Old };
        let age = if now == before { "old" } else { "new" };
        self.story.push(format!("the cut left the {age} file: {}", size(&text)));
        for file in left.iter().filter(|file| file.path.parent() == path.parent() && file.path != path) {
            self.ended.left = true;
            let theirs: BTreeSet<String> = ids(&file.theirs).into_iter().collect();
            let beside = fs::read(&file.path).unwrap();
            self.story.push(format!("beside it {}", size(&beside)));
            for id in ids(&beside) {
                if theirs.contains(&id) {
                    self.ended.late |= *self.owed.entry(id).or_insert(place) != LineFate::Path;
                } else if !self.owed.contains_key(&id) {
                    self.ended.lost_by_disk += 1;
                }
            }
        }
        doubled(&ids(&text))
            .map_or(Ok(()), |id| Err(CutVerdict::Wrong("the fix itself, or the cut, doubled a line", id)))
    }

    /// The result of a fix of the same text without any leftover. Whatever this keeps, the recovery must keep.
    fn mended(text: &[u8]) -> Vec<u8> {
        let dir = Dir::in_memory();
        let path = dir.path("s.jsonl");
        fs::write(&path, text).unwrap();
        run(dir.command().args(Self::arguments(&path, &dir.home().join("vault"))), b"");
        fs::read(path).unwrap()
    }

    fn fix(&self) -> FinishedRun {
        run(self.dir.command().args(Self::arguments(&self.path(), &self.vault())), b"")
    }

    /// Runs the recovery and checks the invariants.
    fn judge(&mut self) -> Result<(), CutVerdict> {
        let path = self.path();
        let mut before = fs::read(&path).unwrap();
        if self.rng.below(2) == 0 && before.ends_with(b"\n") {
            let line = self.late('t') + "\n";
            OpenOptions::new().append(true).open(&path).unwrap().write_all(line.as_bytes()).unwrap();
            before.extend(line.as_bytes());
            self.owed.insert("t1".to_string(), LineFate::Path);
        }
        let first = self.fix();
        let text = fs::read(&path).unwrap();
        let wrong = |what, why| Err(CutVerdict::Wrong(what, why));
        let there = ids(&text);
        if let Some(verdict) = self.gone(&there) {
            return Err(verdict);
        }
        if let Some(id) = doubled(&there) {
            return wrong("lines are doubled", id);
        }
        if let Some(pair) = out_of_order(&there) {
            return wrong("lines are out of order", format!("{pair}: {there:?}"));
        }
        let zeros = |text: &[u8]| text.split(|byte| *byte == 0).count() - 1;
        if zeros(&text) > zeros(&before) {
            return wrong("zeros came into the text", zeros(&text).to_string());
        }
        let said = |run: &FinishedRun| format!("exit code {}: {}{}", run.status, run.text(), run.stderr);
        if first.status == 2 || said(&first).contains("interrupted") {
            return wrong("the next fix fails", said(&first));
        }
        let names = self.dir.names();
        if names != ["s.jsonl"] {
            return wrong("a leftover remains", format!("{names:?}: {}", said(&first)));
        }
        let second = self.fix();
        if fs::read(&path).unwrap() != text || second.text().contains(r#""outcome":"fixed""#) {
            return wrong("a second fix changes something", said(&second));
        }
        Ok(())
    }

    /// Says which of the owed lines are gone, if any.
    fn gone(&self, there: &[String]) -> Option<CutVerdict> {
        let owed = self.owed.iter().filter(|(id, _)| !there.contains(id));
        let gone: Vec<(&String, LineFate)> = owed.map(|(id, place)| (id, *place)).collect();
        let (_, place) = gone.iter().find(|(_, place)| *place == LineFate::Path).or(gone.first())?;
        let what = match place {
            LineFate::Path => "lines are gone that the path held after a cut",
            _ if self.comes_back(&gone) => return Some(CutVerdict::InVault),
            LineFate::Old => "lines are gone that programs appended to the old file",
            LineFate::Undone => {
                "lines are gone that programs appended to the new file before the cut undid the exchange"
            }
        };
        Some(CutVerdict::Wrong(what, format!("{} of {} lines: {gone:?}", gone.len(), self.owed.len())))
    }

    /// Whether undo brings these lines back.
    fn comes_back(&self, gone: &[(&String, LineFate)]) -> bool {
        let path = self.path();
        for _ in 0..4 {
            let vault = self.vault();
            let undo = ["undo", path.to_str().unwrap(), "--vault", vault.to_str().unwrap()];
            self.dir.tailor(&undo);
            let there = ids(&fs::read(&path).unwrap());
            if gone.iter().all(|(id, _)| there.contains(id)) {
                return true;
            }
        }
        false
    }
}

/// First letters of our ids: the session itself, appends by path, appends through a held descriptor, and an append after
/// the cut. None is a hex digit, as in the ids of inserted entries.
const PROGRAMS: [char; 4] = ['m', 'p', 'h', 't'];

const TIME: &str = "2026-07-01T10:00:00.000Z";

/// The ids of our own lines, if they are whole.
fn ids(text: &[u8]) -> EntryIds {
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let ids = lines.filter_map(|line| {
        let value: Value = serde_json::from_slice(line).ok()?;
        let id = value["id"].as_str()?;
        let number = id.strip_prefix(PROGRAMS)?;
        number.parse::<u64>().is_ok().then(|| id.to_string())
    });
    ids.collect()
}

fn size(text: &[u8]) -> String {
    format!("{} bytes, {} lines", text.len(), ids(text).len())
}

fn doubled(ids: &[String]) -> Option<String> {
    let mut seen = BTreeSet::new();
    ids.iter().find(|id| !seen.insert(*id)).cloned()
}

/// Two lines of one program in the wrong order.
fn out_of_order(ids: &[String]) -> Option<String> {
    let mut last: HashMap<char, u64> = HashMap::new();
    for id in ids {
        let number = id[1..].parse().unwrap();
        let last = last.entry(id.chars().next().unwrap()).or_default();
        if *last > number {
            return Some(format!("{id} after {last}"));
        }
        *last = number;
    }
    None
}
