//! `--lines` of `scan` and `fix`: a data set as it flows by, each line a session of its own. Memory holds a few megabytes of
//! lines, however many there are, and no line waits for one that has not come yet.

use super::{CommandError, CommandResult};
use crate::amount::{grouped, plural};
use crate::args::{CheckArgs, DataSet, ReportFormat};
use crate::baseline::fingerprints;
use crate::output::Output;
use crate::packing::{PackedStream, Packing};
use crate::report::{FailPolicy, FindingReport};
use crate::say::hint;
use crate::status::ExitStatus;
use crate::terminal::json;
use rayon::prelude::*;
use serde::Serialize;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError, sync_channel};
use std::thread;
use transcript::row::{self, RepairedRow, RowOutcome};
use transcript::{Case, Policy, scan};

/// How many bytes of lines are worked on at a time, at most; as many wait behind them. A longer line is held whole.
const BLOCK_BYTES: usize = 8 << 20;

/// How many bytes are read at a time, which is what a pipe holds.
const PIECE_BYTES: usize = 1 << 16;

/// One finding. Its columns are those of the Python module, and more.
#[derive(Serialize)]
struct FindingLine<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    row: u64,
    #[serde(flatten)]
    finding: &'a FindingReport,
}

/// A line that is no session.
#[derive(Serialize)]
struct NoSession<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    row: u64,
    code: Option<&'a str>,
    severity: &'a str,
    message: &'a str,
    fix: &'a str,
}

/// The `type` of both.
const ROW: &str = "row";

/// Standard input, read ahead in a thread.
struct Feed {
    pieces: Receiver<io::Result<Vec<u8>>>,
}

/// What came of standard input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InputState {
    /// More is there already.
    More,
    /// For now, nothing else.
    Paused,
    Ended,
}

/// Where everything goes.
struct Outlets {
    /// The lines; `scan` passes none on.
    lines: Option<PackedStream<Output>>,
    quarantine: Option<PackedStream<Output>>,
    findings: Option<PackedStream<Output>>,
}

/// What went through.
#[derive(Default)]
struct Counts {
    rows: u64,
    fixed: u64,
    unreadable: u64,
    failing: u64,
    quarantined: u64,
}

/// Works on standard input until it ends.
pub(super) fn run(
    asked: &DataSet,
    shared: &CheckArgs,
    judge: &FailPolicy<'_>,
    repairs: bool,
) -> CommandResult {
    if shared.paths != [Path::new("-")] {
        return Err("--lines reads standard input: pass `-` as the only PATH".into());
    }
    if !matches!(shared.results.format(), ReportFormat::Human | ReportFormat::Json) {
        return Err(
            "--lines prints findings as lines of JSON and in no other format: leave out --format".into()
        );
    }
    let done = Feed::open().and_then(|(packing, feed)| {
        let outlets = Outlets::open(asked, packing, repairs)?;
        let end = if asked.null { 0 } else { b'\n' };
        LineFlow { judge, repairs, end, outlets, counts: Counts::default() }.run(&feed)
    });
    match done {
        Ok(counts) => Ok(counts.tell(repairs, shared.results.exit_zero)),
        // Nobody reads what comes out.
        Err(error) if error.is_empty() => Err(CommandError::Told(ExitStatus::Error)),
        Err(error) => Err(error.into()),
    }
}

impl Outlets {
    fn open(asked: &DataSet, packing: Packing, repairs: bool) -> Result<Self, String> {
        let told = |path: &Path, error: io::Error| format!("{}: could not write: {error}", path.display());
        let file = |path: &Path| {
            let out = Output::to_file(path).map_err(|error| told(path, error))?;
            Packing::of_name(path).pack(out).map_err(|error| told(path, error))
        };
        let stdout = |packing: Packing| packing.pack(Output::stdout()).map_err(|error| error.to_string());
        let findings = match &asked.findings {
            None if !repairs => Some(stdout(Packing::Plain)?),
            path => path.as_deref().map(file).transpose()?,
        };
        let lines = repairs.then(|| stdout(packing)).transpose()?;
        Ok(Self { lines, quarantine: asked.quarantine.as_deref().map(file).transpose()?, findings })
    }

    /// Lets whoever reads have what was written.
    fn flush(&mut self) -> io::Result<()> {
        let all = [&mut self.findings, &mut self.quarantine, &mut self.lines];
        all.into_iter().flatten().try_for_each(Write::flush)
    }

    fn finish(self) -> io::Result<()> {
        let all = [self.findings, self.quarantine, self.lines];
        all.into_iter().flatten().try_for_each(|out| out.finish()?.finish())
    }
}

impl Feed {
    /// Begins to read. How the input is packed is known once its first bytes are there.
    fn open() -> Result<(Packing, Self), String> {
        let (send_packing, packing) = sync_channel(1);
        let (send, pieces) = sync_channel(BLOCK_BYTES / PIECE_BYTES);
        let read = move || {
            let stream = match Packing::unpack(io::stdin().lock()) {
                Ok((packing, stream)) => send_packing.send(Ok(packing)).map(|()| stream),
                Err(error) => return drop(send_packing.send(Err(error))),
            };
            if let Ok(stream) = stream {
                read_pieces(stream, &send);
            }
        };
        let started = thread::Builder::new().name("input".to_string()).spawn(read);
        started.map_err(|error| format!("could not start a thread: {error}"))?;
        let packing = packing.recv().map_err(|RecvError| "standard input: could not read it".to_string())?;
        let packing = packing.map_err(|error| format!("standard input: {error}"))?;
        Ok((packing, Self { pieces }))
    }

    /// Waits for more, and takes what is there, up to a block.
    fn take(&self, held: &mut Vec<u8>) -> io::Result<InputState> {
        match self.pieces.recv() {
            Ok(piece) => held.append(&mut piece?),
            Err(RecvError) => return Ok(InputState::Ended),
        }
        let enough = held.len() + BLOCK_BYTES;
        while held.len() < enough {
            match self.pieces.try_recv() {
                Ok(piece) => held.append(&mut piece?),
                Err(TryRecvError::Empty) => return Ok(InputState::Paused),
                Err(TryRecvError::Disconnected) => return Ok(InputState::Ended),
            }
        }
        Ok(InputState::More)
    }
}

/// Passes on what is read, as it comes, until it ends or nobody takes it.
fn read_pieces(mut stream: impl Read, send: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let read = match stream.read(&mut piece) {
            Ok(0) => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read,
        };
        let is_last = read.is_err();
        let read = read.map(|bytes| {
            piece.truncate(bytes);
            piece
        });
        if send.send(read).is_err() || is_last {
            return;
        }
    }
}

struct LineFlow<'a> {
    judge: &'a FailPolicy<'a>,
    repairs: bool,
    /// What a session ends with.
    end: u8,
    outlets: Outlets,
    counts: Counts,
}

impl LineFlow<'_> {
    /// An error is what is to be said; empty if nobody reads on.
    fn run(mut self, feed: &Feed) -> Result<Counts, String> {
        let mut policy = None;
        // Sessions that are whole, and one that is not.
        let (mut held, mut whole) = (Vec::new(), 0);
        loop {
            let searched = held.len();
            let came = feed.take(&mut held);
            let came = came.map_err(|error| format!("standard input: could not read it: {error}"))?;
            match memchr::memrchr(self.end, &held[searched..]) {
                _ if came == InputState::Ended => whole = held.len(),
                Some(at) => whole = searched + at + 1,
                None => {}
            }
            if policy.is_none() {
                policy = self.policy(&held[..whole], came);
            }
            let Some(policy) = &policy else { continue };
            let done = self.block(&held[..whole], policy);
            let done =
                done.and_then(|()| if came == InputState::Paused { self.outlets.flush() } else { Ok(()) });
            done.map_err(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => String::new(),
                _ => format!("could not write: {error}"),
            })?;
            held.drain(..whole);
            whole = 0;
            if came == InputState::Ended {
                break;
            }
        }
        self.outlets.finish().map_err(|error| format!("could not write: {error}"))?;
        Ok(self.counts)
    }

    /// What is asked for. All lines have the format of the first one that shows any, because a damaged one does not; those
    /// before it wait, for a block of lines at most. A session of several lines shows its own.
    fn policy(&self, text: &[u8], came: InputState) -> Option<Policy> {
        let asked = self.judge.options.policy.all();
        if self.end != b'\n' {
            return Some(Policy::clone(asked));
        }
        let mut start = 0;
        for line in pieces_of(text, self.end) {
            if start >= BLOCK_BYTES {
                break;
            }
            if let Some(format) = scan::detect(&line).ok().flatten() {
                return Some(Policy { format: Some(format.name), ..Policy::clone(asked) });
            }
            start += line.len();
        }
        (came == InputState::Ended || text.len() >= BLOCK_BYTES).then(|| Policy::clone(asked))
    }

    fn block(&mut self, text: &[u8], policy: &Policy) -> io::Result<()> {
        let (repairs, end) = (self.repairs, self.end);
        let case = Case { policy, situation: &self.judge.options.situation };
        let lines = pieces_of(text, end);
        let one = |line: &&[u8]| {
            let text = line.strip_suffix(&[end]).unwrap_or(line);
            match text.trim_ascii().is_empty() {
                true => RepairedRow::left(RowOutcome::Clean, None, Vec::new()),
                false if repairs => row::repair(text, case),
                false => row::check(text, case),
            }
        };
        let rows: Vec<RepairedRow> = lines.par_iter().map(one).collect();
        lines.into_iter().zip(rows).try_for_each(|(line, row)| self.pass_on(line, row))
    }

    fn pass_on(&mut self, line: &[u8], row: RepairedRow) -> io::Result<()> {
        let Self { judge, outlets, counts, end, .. } = self;
        let number = counts.rows;
        let is_unreadable = row.outcome == RowOutcome::Unreadable;
        let fails = |finding| judge.shared.fails(finding, judge.fails_by_default);
        let is_bad = is_unreadable || row.remaining().iter().any(fails);
        let out = match &mut outlets.quarantine {
            Some(quarantine) if is_bad => {
                counts.quarantined += 1;
                quarantine.write_all(line)?;
                None
            }
            _ => outlets.lines.as_mut(),
        };
        if let Some(out) = out {
            match &row.text {
                Some(text) => {
                    out.write_all(text)?;
                    out.write_all(if line.ends_with(&[*end]) { std::slice::from_ref(end) } else { b"" })?;
                }
                None => out.write_all(line)?,
            }
        }
        counts.rows += 1;
        counts.fixed += u64::from(row.outcome == RowOutcome::Fixed);
        counts.unreadable += u64::from(is_unreadable);
        counts.failing += u64::from(is_bad);
        let Some(out) = &mut outlets.findings else { return Ok(()) };
        if let Some(message) = row.reason.as_deref().filter(|_| is_unreadable && row.findings.is_empty()) {
            let told =
                NoSession { kind: ROW, row: number, code: None, severity: "error", message, fix: "none" };
            writeln!(out, "{}", json(&serde_json::to_string(&told)?))?;
        }
        let place = format!("-:{number}");
        let prints = fingerprints(Path::new(&place), &row.findings);
        for (finding, fingerprint) in row.findings.into_iter().zip(prints) {
            let mut finding = FindingReport::new(Path::new("-"), finding);
            finding.fingerprint = fingerprint;
            let told = FindingLine { kind: ROW, row: number, finding: &finding };
            writeln!(out, "{}", json(&serde_json::to_string(&told)?))?;
        }
        Ok(())
    }
}

/// The lines of a text, or what else ends with this byte, each with its end.
fn pieces_of(text: &[u8], end: u8) -> Vec<&[u8]> {
    let (mut lines, mut start) = (Vec::new(), 0);
    for end in memchr::memchr_iter(end, text).map(|at| at + 1) {
        lines.push(&text[start..end]);
        start = end;
    }
    lines.extend(Some(&text[start..]).filter(|rest| !rest.is_empty()));
    lines
}

impl Counts {
    /// Says it on standard error, and makes the exit code: by what was passed on, or else by what was found.
    fn tell(&self, repairs: bool, exit_zero: bool) -> ExitStatus {
        let Self { rows, fixed, unreadable, failing, quarantined } = *self;
        let mut told = vec![plural(rows, "row")];
        let remain = "with problems that remain";
        let numbers =
            [(fixed, "fixed"), (unreadable, "unreadable"), (failing, remain), (quarantined, "quarantined")];
        told.extend(
            numbers
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{} {what}", grouped(*count))),
        );
        hint(&told.join(", "));
        let left = if repairs { failing - quarantined } else { failing };
        if left > 0 && !exit_zero { ExitStatus::Findings } else { ExitStatus::Clean }
    }
}
