//! `tailor doctor`, and `tailor` alone: the sessions on this machine, newest first, and the command that repairs each that
//! is broken. It changes no session.

use super::interrupt::Interrupt;
use super::progress::Progress;
use super::strays::{self, Strays};
use super::{BATCH_FILES, failed};
use crate::amount::{age, grouped, percent, plural, short_size, tokens};
use crate::args::Doctor;
use crate::output::Output;
use crate::say::eprint_message;
use crate::sessions::{
    Candidate, Looks, Session, State, candidates, check_agent, is_called, no_such_session,
};
use crate::status::Status;
use crate::table::{TableWriter, left, right};
use crate::terminal::{self, Screen};
use anstyle::{AnsiColor, Style};
use keeper::Stray;
use rayon::prelude::*;
use serde::Serialize;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How many sessions `tailor` alone lists besides those that are broken.
const SHORT: usize = 10;
/// For how long `tailor` alone reads sessions that have changed.
const SHORT_TIME: Duration = Duration::from_secs(2);
/// The widest cells of agents, projects and states.
const CELLS_MAX: [usize; 3] = [12, 16, 16];
/// The widest name of a project on a narrow terminal.
const NARROW_PROJECT_MAX: usize = 11;
const NARROW: usize = 100;
const TITLE_COLUMNS_MIN: usize = 10;

pub(crate) fn run(doctor: &Doctor) -> Status {
    examine(doctor, false)
}

/// `tailor` alone.
pub(crate) fn in_short() -> Status {
    examine(&Doctor::default(), true)
}

fn examine(doctor: &Doctor, short: bool) -> Status {
    let config = match doctor.config.load() {
        Ok(config) => config,
        Err(error) => return failed(&error),
    };
    if let Some(Err(error)) = doctor.agent.as_deref().map(check_agent) {
        return failed(&error);
    }
    if let Some(path) = doctor.paths.iter().find(|path| path.symlink_metadata().is_err()) {
        return failed(&no_such_session(path));
    }
    let all = candidates(&doctor.paths);
    let looks = Looks::new(&config, &doctor.paths);
    let until = short.then(|| Instant::now() + SHORT_TIME);
    let interrupt = Interrupt::watch();
    let progress = Progress::of(all.iter().map(Candidate::path));
    let look = |candidate: &Candidate| {
        let may_read = !interrupt.came() && until.is_none_or(|until| Instant::now() < until);
        let session = looks.session(candidate, may_read);
        progress.passed(candidate.path());
        session
    };
    let (mut sessions, mut all_sessions, mut lost) = (Vec::new(), 0, Strays::default());
    // Batch by batch, so that the newest are read first where there is no time for all.
    for batch in all.chunks(BATCH_FILES) {
        let looked: Vec<_> = batch.par_iter().map(look).collect();
        for (candidate, looked) in batch.iter().zip(looked) {
            match looked {
                Ok(session) => {
                    lost.see(candidate, session.as_ref());
                    all_sessions += u64::from(session.is_some());
                    sessions.extend(session.filter(|session| is_asked(doctor, session)));
                }
                Err(error) => eprint_message(&error.to_string()),
            }
        }
    }
    progress.end();
    let lost = lost.end(doctor);
    let fitting = sessions.len() as u64;
    if doctor.broken {
        sessions.retain(|session| session.state.is_stuck());
    }
    let mut out = Output::stdout();
    let printed = if doctor.json {
        json(doctor, &sessions, &lost, &mut out)
    } else if sessions.is_empty() {
        writeln!(out, "{}", nothing(all_sessions, fitting))
    } else {
        List::new(&sessions, short).print(&mut out)
    };
    let told = if doctor.json { Ok(()) } else { strays::print(&lost, &mut out) };
    let status = match printed.and(told).and_then(|()| out.finish()) {
        Ok(()) => Status::Clean,
        Err(error) => super::output_closed("standard output", &error),
    };
    interrupt.obey();
    status
}

/// What to say where nothing is listed, of so many sessions, of which so many match `--agent` and `--project`.
fn nothing(all: u64, fitting: u64) -> String {
    match (all, fitting) {
        (0, _) => "No agent sessions found. Pass a file or folder: tailor doctor PATH".to_string(),
        (_, 0) => format!("None of {} matches --agent and --project.", plural(all, "session")),
        _ => format!("Nothing is broken among {}.", plural(fitting, "session")),
    }
}

fn is_asked(doctor: &Doctor, session: &Session) -> bool {
    let of_agent = |name: &String| is_called(session.agent, session.format, name);
    let of_project =
        |text: &String| session.headline.folder.as_ref().is_some_and(|folder| folder.contains(text.as_str()));
    doctor.agent.as_ref().is_none_or(of_agent) && doctor.project.as_ref().is_none_or(of_project)
}

/// One line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    path: String,
    agent: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<u64>,
    state: &'static str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    codes: &'a [&'static str],
    in_use: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<String>,
}

/// The last line of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename = "summary")]
#[derive(Default)]
struct Totals {
    sessions: u64,
    broken: u64,
    too_long: u64,
    bloated: u64,
    in_use: u64,
    ok: u64,
    unknown: u64,
}

impl Totals {
    fn of(sessions: &[Session]) -> Self {
        let mut totals = Self::default();
        for session in sessions {
            totals.sessions += 1;
            *match session.state {
                State::Broken(_) => &mut totals.broken,
                State::TooLong => &mut totals.too_long,
                State::Bloated => &mut totals.bloated,
                State::InUse => &mut totals.in_use,
                State::Ok => &mut totals.ok,
                State::Unknown => &mut totals.unknown,
            } += 1;
        }
        totals
    }

    fn sentence(&self) -> String {
        let states = [
            (self.broken, "broken"),
            (self.too_long, "too long"),
            (self.bloated, "bloated"),
            (self.in_use, "in use"),
            (self.ok, "ok"),
            (self.unknown, "not looked at yet (?)"),
        ];
        let there = states.iter().filter(|(count, _)| *count > 0);
        let states: Vec<String> = there.map(|(count, name)| format!("{} {name}", grouped(*count))).collect();
        format!("{}: {}", plural(self.sessions, "session"), states.join(", "))
    }
}

fn json(doctor: &Doctor, sessions: &[Session], lost: &[Stray], out: &mut impl Write) -> io::Result<()> {
    for session in sessions {
        let known = session.tokens.is_some();
        let line = Line {
            kind: "session",
            path: session.path.to_string_lossy().into_owned(),
            agent: session.agent_name(),
            format: session.format.map(|format| format.name),
            id: session.id(),
            title: session.headline.title.as_deref().filter(|_| doctor.titles),
            project: session.headline.folder.as_deref(),
            modified: jiff::Timestamp::try_from(session.modified).ok().map(|time| format!("{time:.3}")),
            bytes: session.bytes,
            tokens: session.tokens,
            window: (known && session.window > 0).then_some(session.window),
            state: session.state.name(),
            codes: if let State::Broken(codes) = &session.state { codes } else { &[] },
            in_use: session.is_used,
            command: session.command.as_deref(),
            resume: session.resume().map(|(words, _)| words.join(" ")),
        };
        writeln!(out, "{}", terminal::json(&serde_json::to_string(&line)?))?;
    }
    strays::json(lost, out)?;
    writeln!(out, "{}", serde_json::to_string(&Totals::of(sessions))?)
}

/// The list for people.
struct List<'a> {
    sessions: &'a [Session],
    short: bool,
    canvas: TableWriter,
    screen: Screen,
}

impl<'a> List<'a> {
    fn new(sessions: &'a [Session], short: bool) -> Self {
        Self { sessions, short, canvas: TableWriter::of_stdout(), screen: Screen::of_stdout() }
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let shown: Vec<&Session> = self
            .sessions
            .iter()
            .enumerate()
            .filter(|(n, session)| !self.short || *n < SHORT || session.state.is_stuck())
            .map(|(_, session)| session)
            .collect();
        let heads = ["AGE", "AGENT", "PROJECT", "SIZE", "CONTEXT", "STATE", "TITLE"].map(str::to_string);
        let rows: Vec<[String; 7]> =
            [heads].into_iter().chain(shown.iter().map(|session| Self::cells(session))).collect();
        let widths = self.widths(&rows);
        for (n, cells) in rows.iter().enumerate() {
            let session = n.checked_sub(1).map(|n| shown[n]);
            writeln!(out, "{}", self.line(cells, widths, session))?;
            let command = session.filter(|session| session.state.is_stuck()).and_then(|s| s.command.as_ref());
            if let Some(command) = command {
                writeln!(out, "      {}", self.screen.whole(command))?;
            }
        }
        writeln!(out, "\n{}", self.end(shown.len()))
    }

    /// What to do next.
    fn end(&self, shown: usize) -> String {
        let totals = Totals::of(self.sessions);
        let mut lines = vec![format!("{}.", totals.sentence())];
        if totals.broken + totals.too_long > 0 {
            lines.push("Each command changes only that session, and tailor undo takes it back.".to_string());
        }
        if shown < self.sessions.len() || totals.unknown > 0 {
            lines.push("All sessions: tailor doctor".to_string());
        }
        if self.short {
            lines.push("An agent shows an error: tailor explain 'ERROR TEXT'".to_string());
            lines.push("All commands: tailor help".to_string());
        }
        lines.iter().map(|line| self.canvas.wrap(line)).collect::<Vec<_>>().join("\n")
    }

    fn cells(session: &Session) -> [String; 7] {
        let context = match (session.tokens, session.window) {
            (None, _) => "?".to_string(),
            (Some(count), 0) => tokens(count),
            (Some(count), window) => format!("{} {}", tokens(count), percent(count, window)),
        };
        let state = match &session.state {
            State::Broken(codes) if codes.len() > 2 => format!("broken: {} +{}", codes[0], codes.len() - 1),
            State::Broken(codes) => format!("broken: {}", codes.join(", ")),
            other => other.name().to_string(),
        };
        [
            age(session.age),
            session.agent_name().to_string(),
            session.project().unwrap_or("-").to_string(),
            short_size(session.bytes),
            context,
            state,
            session.headline.title.clone().unwrap_or_else(|| "-".to_string()),
        ]
    }

    /// How wide each column is. Titles get the rest of the line.
    fn widths(&self, rows: &[[String; 7]]) -> [usize; 7] {
        let mut widths = [0; 7];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(self.canvas.width(cell));
            }
        }
        for (n, most) in [1, 2, 5].into_iter().zip(CELLS_MAX) {
            widths[n] = widths[n].min(most);
        }
        if self.canvas.columns() < NARROW {
            widths[2] = widths[2].min(NARROW_PROJECT_MAX);
        }
        let fixed: usize = widths[..6].iter().map(|width| width + 2).sum();
        widths[6] = self.canvas.columns().saturating_sub(fixed).max(TITLE_COLUMNS_MIN);
        widths
    }

    fn line(&self, cells: &[String; 7], widths: [usize; 7], session: Option<&Session>) -> String {
        let mut out = String::new();
        for (n, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let cell = self.canvas.begin(cell, width);
            let cell = match n {
                0 | 3 | 4 => right(&cell, width),
                6 => cell,
                _ => left(&cell, width),
            };
            let colour = session.filter(|_| n == 5).and_then(|session| colour(&session.state));
            match colour {
                Some(colour) => self.screen.paint(colour, &mut out, |out| out.push_str(&cell)),
                None => out.push_str(&cell),
            }
            out.push_str(if n < 6 { "  " } else { "" });
        }
        out.truncate(out.trim_end().len());
        out
    }
}

fn colour(state: &State) -> Option<Style> {
    let colour = match state {
        State::Broken(_) | State::TooLong => AnsiColor::Red,
        State::Bloated => AnsiColor::Yellow,
        State::InUse => AnsiColor::Cyan,
        State::Ok | State::Unknown => return None,
    };
    Some(colour.on_default())
}
