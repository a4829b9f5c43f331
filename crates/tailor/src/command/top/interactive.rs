//! `top` on a terminal: reads keys, examines sessions meanwhile, and draws. Whatever happens, the terminal is restored
//! at the end.

use super::level::KeyPress;
use super::measure::one;
use super::view::{AfterKey, ScreenLine, SessionNews, View};
use crate::args::TopArgs;
use crate::command::{BATCH_FILES, CommandResult, databases, nothing_found};
use crate::config::Loaded;
use crate::sessions::{Candidate, ListedSession, Looks, SessionState, with_sidechains};
use crate::status::ExitStatus;
use crate::terminal::{Screen, is_ascii};
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use keeper::Policies;
use keeper::program::ENDS;
use rayon::prelude::*;
use signal_hook::flag::register_usize;
use signal_hook::low_level::emulate_default_handler;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};
use terminal_size::{Height, Width, terminal_size_of};

/// How many of a session's largest entries are listed.
const ENTRIES_MAX: usize = 20_000;
/// Timeouts of waiting for a key: while results may arrive, and when none are expected.
const WAIT: Duration = Duration::from_millis(50);
const WAIT_LONG: Duration = Duration::from_millis(250);
/// How often arriving results redraw the screen.
const FRAME: Duration = Duration::from_millis(200);
/// The assumed size of a terminal that does not report one.
const SIZE: (usize, usize) = (80, 24);

pub(super) fn run(top: &TopArgs, config: &Loaded) -> CommandResult {
    let candidates = with_sidechains(&top.paths);
    if candidates.is_empty() {
        return Err(nothing_found(&top.paths));
    }
    let view = View::new(candidates.iter().map(ListedSession::unknown).collect(), top.window_tokens);
    let (tell, news) = channel();
    let work = BackgroundWork {
        looks: Looks::new(config, &top.paths),
        policies: config.policies(),
        show_content: top.show_content,
        asked: top.paths.clone(),
        candidates,
        tell,
    };
    let done = RawTerminal::take().and_then(|held| {
        end_with_terminal()?;
        walk(view, &Arc::new(work), &news).map(|()| drop(held))
    });
    done.map_err(|error| {
        format!("top: could not use the terminal: {error}; for tables, run: tailor top --plain")
    })?;
    Ok(ExitStatus::Clean)
}

/// Ends the program at a signal, or when its terminal has gone. Only a thread of its own can: on a terminal that hung up,
/// `event::poll` reads the end of the file again and again and never returns.
fn end_with_terminal() -> io::Result<()> {
    let ended = Arc::new(AtomicUsize::new(0));
    for &signal in ENDS {
        // Where that is impossible, a signal ends the program as ever.
        let _ = register_usize(signal, ended.clone(), usize::try_from(signal).unwrap_or_default());
    }
    let wait_for_end = move || {
        while ended.load(Ordering::SeqCst) == 0 && io::stdout().is_terminal() {
            sleep(WAIT);
        }
        // Nothing is drawn any more once the terminal has been restored.
        let _drawing = io::stdout().lock();
        give_back();
        let signal = i32::try_from(ended.load(Ordering::SeqCst)).ok().filter(|&signal| signal > 0);
        // A terminal that has gone ends it like the first of these.
        if let Some(signal) = signal.or(ENDS.first().copied()) {
            let _ = emulate_default_handler(signal);
        }
    };
    Builder::new().name("end".to_string()).spawn(wait_for_end).map(drop)
}

/// Draws and handles keys until the user quits.
fn walk(mut view: View, work: &Arc<BackgroundWork>, news: &Receiver<SessionNews>) -> io::Result<()> {
    work.begin(BackgroundWork::send_all)?;
    let (mut size, mut is_stale, mut drawn) = (None, true, Instant::now());
    if work.candidates.len() == 1 {
        obey(&view.press(KeyPress::Open), work);
    }
    loop {
        let now = terminal_size_of(io::stdout()).map_or(SIZE, |(Width(w), Height(h))| (w.into(), h.into()));
        if size.replace(now) != Some(now) {
            view.resize(now.0, now.1, is_ascii());
            show(&view.draw())?;
        }
        is_stale |= take_results(&mut view, news);
        if is_stale && drawn.elapsed() > FRAME {
            view.sort();
            show(&view.draw())?;
            (is_stale, drawn) = (false, Instant::now());
        }
        if !event::poll(if view.is_complete() && !is_stale { WAIT_LONG } else { WAIT })? {
            continue;
        }
        // Handle all keys that were typed meanwhile before drawing again.
        while event::poll(Duration::ZERO)? {
            let key = meaning(&event::read()?);
            if key.is_some_and(|key| obey(&view.press(key), work)) {
                return Ok(());
            }
        }
        show(&view.draw())?;
    }
}

/// Takes in the results that have arrived. Returns whether there were any.
fn take_results(view: &mut View, news: &Receiver<SessionNews>) -> bool {
    let mut count = 0;
    for one in news.try_iter() {
        view.hear(one);
        count += 1;
    }
    count > 0
}

/// Whether the user wants to quit.
fn obey(request: &AfterKey, work: &Arc<BackgroundWork>) -> bool {
    if let &AfterKey::Weigh(session) = request
        && work.begin(move |work| work.weigh(session)).is_err()
    {
        // No thread could be started.
        work.weigh(session);
    }
    *request == AfterKey::Quit
}

/// The key of an event, if it is one that counts.
fn meaning(event: &Event) -> Option<KeyPress> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press | KeyEventKind::Repeat, .. }) =
        event
    else {
        return None;
    };
    let is_control = modifiers.contains(KeyModifiers::CONTROL);
    Some(match code {
        KeyCode::Up => KeyPress::Up,
        KeyCode::Down => KeyPress::Down,
        KeyCode::PageUp => KeyPress::PageUp,
        KeyCode::PageDown => KeyPress::PageDown,
        KeyCode::Home => KeyPress::First,
        KeyCode::End => KeyPress::Last,
        KeyCode::Enter | KeyCode::Right => KeyPress::Open,
        KeyCode::Left => KeyPress::Back,
        KeyCode::Backspace => KeyPress::Erase,
        KeyCode::Esc => KeyPress::Escape,
        KeyCode::Char('c') if is_control => KeyPress::End,
        KeyCode::Char(c) if !is_control => KeyPress::Type(*c),
        _ => return None,
    })
}

/// Work in the background.
struct BackgroundWork {
    candidates: Vec<Candidate>,
    looks: Looks,
    policies: Policies,
    show_content: bool,
    /// The paths that the user named.
    asked: Vec<PathBuf>,
    tell: Sender<SessionNews>,
}

impl BackgroundWork {
    /// Runs something in the background. Quitting does not wait for it, because it only reads.
    fn begin(self: &Arc<Self>, what: impl FnOnce(&Self) + Send + 'static) -> io::Result<()> {
        let work = self.clone();
        Builder::new().name("top".to_string()).spawn(move || what(&work)).map(drop)
    }

    /// First the sessions that the index knows, then the others, newest first.
    fn send_all(&self) {
        let mut unknown = Vec::new();
        for n in 0..self.candidates.len() {
            match self.session_news(n, false) {
                SessionNews::Session(n, Some(session)) if session.state == SessionState::Unknown => {
                    unknown.push(n);
                }
                known => _ = self.tell.send(known),
            }
        }
        for batch in unknown.chunks(BATCH_FILES) {
            batch
                .par_iter()
                .for_each_with(self.tell.clone(), |tell, &n| _ = tell.send(self.session_news(n, true)));
        }
        let paths = self.candidates.iter().map(|candidate| candidate.found().path.as_path());
        _ = self.tell.send(SessionNews::Databases(databases::measured(paths, &self.asked)));
    }

    fn session_news(&self, n: usize, may_read: bool) -> SessionNews {
        match self.looks.session(&self.candidates[n], may_read) {
            Ok(session) => SessionNews::Session(n, session.map(Box::new)),
            Err(_) => SessionNews::Unread(n),
        }
    }

    fn weigh(&self, n: usize) {
        let found = self.candidates[n].found();
        let weighed = one(found, ENTRIES_MAX, self.show_content, &self.policies);
        _ = self.tell.send(SessionNews::Size(n, Box::new(weighed)));
    }
}

// --- the terminal ---

/// Whether the terminal is in raw mode with our screen.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// The terminal in raw mode, with a screen of its own.
struct RawTerminal;

impl RawTerminal {
    fn take() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        enable_raw_mode()?;
        IS_HELD.store(true, Ordering::SeqCst);
        let held = Self;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(held)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal. Errors are ignored: the terminal may be gone.
fn give_back() {
    if IS_HELD.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// Replaces the whole screen by these lines in one write.
fn show(lines: &[ScreenLine]) -> io::Result<()> {
    let screen = Screen::of_stdout();
    let mut out = Vec::new();
    queue!(out, BeginSynchronizedUpdate)?;
    for (n, ScreenLine { text, style }) in (0..).zip(lines) {
        let mut painted = String::new();
        screen.paint(*style, &mut painted, |out| out.push_str(text));
        queue!(out, MoveTo(0, n), Clear(ClearType::CurrentLine))?;
        out.extend_from_slice(painted.as_bytes());
    }
    queue!(out, EndSynchronizedUpdate)?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(&out)?;
    stdout.flush()
}
