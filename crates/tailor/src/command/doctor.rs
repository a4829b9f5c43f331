//! `tailor doctor`, and `tailor` alone: lists the sessions on this machine, newest first, each broken one with the
//! command that repairs it. Changes no session.

use super::gone::GoneSessions;
use super::interrupt::Interrupt;
use super::progress::Progress;
use super::strays::{self, Strays};
use super::{BATCH_FILES, CommandResult, databases, ended, output_closed, unread};
use crate::amount::{grouped, plural, short_size};
use crate::args::DoctorArgs;
use crate::config::Loaded;
use crate::output::Output;
use crate::place::{self, portable_text};
use crate::remedy;
use crate::say::{is_quiet, is_verbose};
use crate::sessions::row::{self, ListCells};
use crate::sessions::{
    Candidate, ListedSession, Looks, SessionState, candidates_and_errors, check_agent, is_called,
    no_such_session,
};
use crate::status::ExitStatus;
use crate::table::TableWriter;
use crate::terminal::{self, Screen};
use keeper::{Fill, Stray, is_stored};
use rayon::prelude::*;
use serde::Serialize;
use std::cmp::Reverse;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How many sessions `tailor` alone lists besides those that are broken.
const SHORT: usize = 10;
/// How long `tailor` alone, which is to answer at once, spends on reading changed sessions.
const SHORT_TIME: Duration = Duration::from_secs(2);

pub(crate) fn run(doctor: &DoctorArgs) -> CommandResult {
    examine(doctor, false, doctor.json.is_json())
}

/// `tailor` alone.
pub(crate) fn in_short(as_json: bool) -> CommandResult {
    examine(&DoctorArgs::default(), true, as_json)
}

fn examine(doctor: &DoctorArgs, short: bool, as_json: bool) -> CommandResult {
    let config = doctor.config.load()?;
    doctor.agent.as_deref().map(check_agent).transpose()?;
    let is_missing = |path: &&PathBuf| path.symlink_metadata().is_err() && !is_stored(path);
    if let Some(path) = doctor.paths.iter().find(is_missing) {
        return Err(no_such_session(path).into());
    }
    let (all, mut errors) = candidates_and_errors(&doctor.paths);
    let looks = Looks::new(&config, &doctor.paths);
    let until = short.then(|| Instant::now() + SHORT_TIME);
    let interrupt = Interrupt::watch();
    let progress = Progress::for_files(all.iter().map(Candidate::path));
    let look = |candidate: &Candidate| {
        let may_read = !interrupt.came() && until.is_none_or(|until| Instant::now() < until);
        let session = looks.session(candidate, may_read);
        progress.passed(candidate.path());
        session
    };
    let (mut sessions, mut all_sessions, mut lost) = (Vec::new(), 0, Strays::default());
    // In batches, so that the newest sessions are read first if time runs out.
    for batch in all.chunks(BATCH_FILES) {
        let looked: Vec<_> = batch.par_iter().map(look).collect();
        for (candidate, looked) in batch.iter().zip(looked) {
            match looked {
                Ok(session) => {
                    let session = unread::see(candidate, session, &all);
                    lost.see(candidate, session.as_ref());
                    all_sessions += u64::from(session.is_some());
                    sessions.extend(session.filter(|session| is_asked(doctor, session)));
                }
                Err(error) => errors.push(error),
            }
        }
    }
    progress.end();
    let unread = errors.iter().filter_map(ListedSession::unreadable);
    sessions.extend(unread.filter(|session| is_asked(doctor, session)));
    sessions.sort_by_key(|session| Reverse(session.modified));
    let is_read = !sessions.iter().any(|session| session.state.is_unread());
    let lost = lost.end(doctor);
    let gone = if short { GoneSessions::default() } else { GoneSessions::find(doctor, &config, &all, &lost) };
    let fitting = sessions.len() as u64;
    if doctor.broken {
        sessions.retain(|session| session.state.is_stuck());
    }
    let paths = all.iter().filter(|_| !short).map(Candidate::path);
    let fills = databases::measure(paths, &doctor.paths);
    let mut out = Output::stdout();
    let printed = if as_json {
        gone.json(&mut out).and_then(|()| json(doctor, &sessions, &lost, &fills, &mut out))
    } else if sessions.is_empty() {
        writeln!(out, "{}", nothing(all_sessions, fitting))
    } else {
        DoctorList::new(&sessions, short, words(doctor)).print(&mut out)
    };
    let told = if as_json {
        Ok(())
    } else {
        strays::print(&lost, &mut out)
            .and_then(|()| gone.print(&mut out))
            .and_then(|()| databases::print_remarks(&fills, &mut out))
    };
    let printed = printed
        .and(told)
        .and_then(|()| out.finish())
        .map(|()| if is_read { ExitStatus::Clean } else { ExitStatus::Error });
    let status = ended(printed.map_err(|error| output_closed("standard output", &error)));
    interrupt.obey();
    Ok(status)
}

/// Prints which sessions on this machine are stuck, for a user whose error nobody knows.
pub(super) fn print_stuck(config: &Loaded) -> io::Result<()> {
    let (all, errors) = candidates_and_errors(&[]);
    let looks = Looks::new(config, &[]);
    let look = |candidate: &Candidate| match looks.session(candidate, true) {
        Ok(session) => unread::see(candidate, session, &all),
        Err(error) => ListedSession::unreadable(&error),
    };
    let mut sessions: Vec<ListedSession> = all.par_iter().filter_map(look).collect();
    sessions.extend(errors.iter().filter_map(ListedSession::unreadable));
    let all = sessions.len() as u64;
    let count = plural(all, "session");
    sessions.retain(|session| session.state.is_stuck());
    let mut out = Output::stdout();
    if sessions.is_empty() && all > 0 {
        writeln!(out, "None of {count} here is stuck.")?;
    } else if all > 0 {
        writeln!(out, "Of {count} here, these are stuck:")?;
        DoctorList::new(&sessions, false, None).print(&mut out)?;
    }
    out.finish()
}

/// The paths as words after a command; `None` if only some of the sessions below them are asked for.
fn words(doctor: &DoctorArgs) -> Option<String> {
    let is_all = !doctor.broken && doctor.agent.is_none() && doctor.project.is_none();
    let paths = doctor.paths.iter().map(|path| place::shown_word(path));
    is_all.then(|| [String::new()].into_iter().chain(paths).collect::<Vec<_>>().join(" "))
}

/// What to print if nothing is listed, given the number of sessions and how many of them match `--agent` and
/// `--project`.
fn nothing(all: u64, fitting: u64) -> String {
    match (all, fitting) {
        (0, _) => format!(
            "No agent sessions found{}. Pass a file or folder: tailor doctor PATH",
            unread::searched()
        ),
        (_, 0) => format!("None of {} matches --agent and --project.", plural(all, "session")),
        _ => format!("Nothing is broken among {}.", plural(fitting, "session")),
    }
}

fn is_asked(doctor: &DoctorArgs, session: &ListedSession) -> bool {
    let of_agent = |name: &String| is_called(session.agent, session.format, name);
    let of_project =
        |text: &String| session.headline.folder.as_ref().is_some_and(|folder| folder.contains(text.as_str()));
    doctor.agent.as_ref().is_none_or(of_agent) && doctor.project.as_ref().is_none_or(of_project)
}

/// One line of `--json`.
#[derive(Serialize)]
struct DoctorLine<'a> {
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
    window_tokens: Option<u64>,
    state: &'static str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    codes: &'a [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_total: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_in_context: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_in_context_after: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns_left: Option<u64>,
    in_use: bool,
    dead_weight_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<String>,
}

/// The last line of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename = "doctor-summary")]
#[derive(Default)]
pub(super) struct DoctorTotals {
    sessions: u64,
    bytes: u64,
    dead_weight_bytes: u64,
    states: States,
}

/// How many sessions are in each state.
#[derive(Default, Serialize)]
struct States {
    dead: u64,
    broken: u64,
    forgets: u64,
    #[serde(rename = "too long")]
    too_long: u64,
    dying: u64,
    bloated: u64,
    refused: u64,
    empty: u64,
    unreadable: u64,
    #[serde(rename = "nearly full")]
    nearly_full: u64,
    #[serde(rename = "in use")]
    in_use: u64,
    ok: u64,
    #[serde(rename = "?")]
    unknown: u64,
}

impl DoctorTotals {
    pub(super) fn from_sessions<'s>(sessions: impl IntoIterator<Item = &'s ListedSession>) -> Self {
        let mut totals = Self::default();
        for session in sessions {
            totals.sessions += 1;
            totals.bytes += session.bytes;
            totals.dead_weight_bytes += session.dead_weight;
            *match session.state {
                SessionState::Dead(_) => &mut totals.states.dead,
                SessionState::Broken(_) => &mut totals.states.broken,
                SessionState::Forgets(_) => &mut totals.states.forgets,
                SessionState::Dying(_) => &mut totals.states.dying,
                SessionState::TooLong => &mut totals.states.too_long,
                SessionState::Bloated => &mut totals.states.bloated,
                SessionState::Refused => &mut totals.states.refused,
                SessionState::Empty => &mut totals.states.empty,
                SessionState::Unreadable => &mut totals.states.unreadable,
                SessionState::NearlyFull => &mut totals.states.nearly_full,
                SessionState::InUse => &mut totals.states.in_use,
                SessionState::Ok => &mut totals.states.ok,
                SessionState::Unknown => &mut totals.states.unknown,
            } += 1;
        }
        totals
    }

    pub(super) fn sentence(&self) -> String {
        let States { dead, broken, forgets, too_long, refused, empty, unreadable, .. } = self.states;
        let States { dying, bloated, nearly_full, in_use, ok, unknown, .. } = self.states;
        let states = [
            (unreadable, "unreadable"),
            (empty, "empty"),
            (refused, "refused"),
            (dead, "dead"),
            (broken, "broken"),
            (forgets, "forgets"),
            (too_long, "too long"),
            (dying, "dying"),
            (bloated, "bloated"),
            (nearly_full, "nearly full"),
            (in_use, "in use"),
            (ok, "ok"),
            (unknown, "not looked at yet (?)"),
        ];
        let there = states.iter().filter(|(count, _)| *count > 0);
        let states: Vec<String> = there.map(|(count, name)| format!("{} {name}", grouped(*count))).collect();
        format!("{}: {}", plural(self.sessions, "session"), states.join(", "))
    }
}

fn json(
    doctor: &DoctorArgs,
    sessions: &[ListedSession],
    lost: &[Stray],
    fills: &[Fill],
    out: &mut impl Write,
) -> io::Result<()> {
    for session in sessions {
        let known = session.tokens.is_some();
        let line = DoctorLine {
            kind: "session",
            path: portable_text(&session.path),
            agent: session.agent_name(),
            format: session.format.map(|format| format.name),
            id: session.id(),
            title: session.headline.title.as_deref().filter(|_| doctor.titles),
            project: session.headline.folder.as_deref(),
            modified: jiff::Timestamp::try_from(session.modified).ok().map(|time| format!("{time:.3}")),
            bytes: session.bytes,
            tokens: session.tokens,
            window_tokens: (known && session.window > 0).then_some(session.window),
            state: session.state.name(),
            codes: session.state.codes(),
            messages_total: known.then_some(session.messages.all),
            messages_in_context: known.then_some(session.messages.seen),
            messages_in_context_after: known.then_some(session.messages.seen + session.messages.brought_back),
            turns_left: session.turns_left,
            in_use: session.is_used,
            dead_weight_bytes: session.dead_weight,
            command: session.command.as_deref(),
            reason: session.trouble.as_deref(),
            resume: session.resume().map(|(words, _)| words.join(" ")),
        };
        writeln!(out, "{}", terminal::json(&serde_json::to_string(&line)?))?;
    }
    strays::json(lost, out)?;
    databases::json(fills, out)?;
    writeln!(out, "{}", serde_json::to_string(&DoctorTotals::from_sessions(sessions))?)
}

/// The list for people.
struct DoctorList<'a> {
    sessions: &'a [ListedSession],
    short: bool,
    /// What is asked for, as words after a command; `None` if that is not all below some paths.
    paths: Option<String>,
    canvas: TableWriter,
    screen: Screen,
}

impl<'a> DoctorList<'a> {
    fn new(sessions: &'a [ListedSession], short: bool, paths: Option<String>) -> Self {
        Self { sessions, short, paths, canvas: TableWriter::of_stdout(), screen: Screen::of_stdout() }
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let shown: Vec<&ListedSession> = self
            .sessions
            .iter()
            .enumerate()
            .filter(|(n, session)| !self.short || *n < SHORT || session.state.is_stuck())
            .map(|(_, session)| session)
            .collect();
        let rows: Vec<ListCells> =
            [row::heads()].into_iter().chain(shown.iter().map(|session| row::cells(session))).collect();
        let widths = row::widths(&self.canvas, &rows, [0; 7]);
        for (n, cells) in rows.iter().enumerate() {
            let session = n.checked_sub(1).map(|n| shown[n]);
            let paint = |cell| self.paint(cell, session);
            writeln!(out, "{}", row::line(&self.canvas, cells, widths, paint))?;
            if let Some(session) = session.filter(|_| is_verbose()) {
                writeln!(out, "      {}", self.screen.whole(&terminal::plain(&place::shown(&session.path))))?;
            }
            let command =
                session.filter(|session| session.state.needs_help()).and_then(|s| s.command.as_ref());
            if let Some(text) = session.and_then(ListedSession::forgotten) {
                writeln!(out, "      {}", self.screen.whole(&format!("{text}:")))?;
            }
            if let Some(trouble) = session.and_then(|session| session.trouble.as_ref()) {
                writeln!(out, "      {}", self.screen.whole(&terminal::plain(trouble)))?;
            }
            if let Some(command) = command {
                writeln!(out, "      {}", self.screen.whole(command))?;
            }
        }
        if is_quiet() { Ok(()) } else { writeln!(out, "\n{}", self.end(shown.len())) }
    }

    fn paint(&self, cell: String, session: Option<&ListedSession>) -> String {
        let Some(colour) = session.and_then(|session| row::colour(&session.state)) else { return cell };
        let mut out = String::new();
        self.screen.paint(colour, &mut out, |out| out.push_str(&cell));
        out
    }

    /// What can go, if that is worth it.
    fn dead_weight(&self, totals: &DoctorTotals) -> Option<String> {
        let paths = self.paths.as_ref().filter(|_| totals.dead_weight_bytes >= remedy::DEAD_WEIGHT_MIN)?;
        let [dead, all] = [totals.dead_weight_bytes, totals.bytes].map(short_size);
        let said = self.canvas.wrap(&format!("{dead} of {all} is history that no agent loads any more:"));
        let command = format!("tailor fix --only dead-weight{paths}");
        Some(format!("{said}\n      {}", self.screen.whole(&command)))
    }

    /// The advice at the end.
    fn end(&self, shown: usize) -> String {
        let totals = DoctorTotals::from_sessions(self.sessions);
        let mut lines = vec![format!("{}.", totals.sentence())];
        if totals.states.dead
            + totals.states.broken
            + totals.states.forgets
            + totals.states.too_long
            + totals.states.dying
            > 0
        {
            lines.push("Each command changes only that session, and tailor undo takes it back.".to_string());
        }
        if shown < self.sessions.len() || totals.states.unknown > 0 {
            lines.push("All sessions: tailor doctor".to_string());
        }
        if self.short {
            lines.push("An agent shows an error: tailor explain 'ERROR TEXT'".to_string());
            lines.push("All commands: tailor help".to_string());
        }
        let lines = lines.iter().map(|line| self.canvas.wrap(line)).chain(self.dead_weight(&totals));
        lines.collect::<Vec<_>>().join("\n")
    }
}
