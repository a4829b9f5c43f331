//! What `top` shows on a terminal: keys and results in, lines out. It uses no terminal, no file and no clock.

use super::level::{KeyPress, ListView, Sort};
use super::words::{entry_name, in_short, lines_of, part, standing_word};
use crate::amount::{age, grouped, percent, plural, size, tokens};
use crate::command::databases;
use crate::command::doctor::DoctorTotals;
use crate::place::shown;
use crate::sessions::{ListedSession, SessionState, row};
use crate::size_report::{LargeEntry, SizeReport, TurnShare};
use crate::table::{TableRow, TableWriter};
use anstyle::Style;
use keeper::{Error, Fill};
use std::cmp::Reverse;
use std::io::Write;

/// On fewer lines than this, only the list is shown.
const LINES_MIN: usize = 8;

/// What the caller has to do after a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterKey {
    Nothing,
    /// Weigh this session.
    Weigh(usize),
    Quit,
}

/// A result about a session, by its number.
pub(super) enum SessionNews {
    /// What it is; `None` if it is not a session.
    Session(usize, Option<Box<ListedSession>>),
    /// It could not be read.
    Unread(usize),
    /// What fills it.
    Size(usize, Box<SizeReport>),
    /// What fills the databases that sessions are in.
    Databases(Vec<Result<Fill, Error>>),
}

/// A line of the screen. Its text holds nothing that moves a cursor.
#[derive(Debug)]
pub(super) struct ScreenLine {
    pub(super) text: String,
    pub(super) style: Style,
}

/// An open session.
struct OpenSession {
    session: usize,
    /// What fills it, once it has been weighed.
    weighed: Option<SizeReport>,
    turns: ListView,
    /// The entries of an open turn.
    entries: Option<ListView>,
    /// Whether the selected entry is open.
    entry: bool,
}

/// The user's position, and everything known about the sessions.
pub(super) struct View {
    canvas: TableWriter,
    lines: usize,
    /// The window that the options ask for.
    window_tokens: Option<u64>,
    sessions: Vec<Option<ListedSession>>,
    /// How many have been looked at, and how many of them could not be read.
    looked: usize,
    unread: usize,
    list: ListView,
    /// The widths of the columns.
    widths: [usize; 7],
    find: String,
    is_typing: bool,
    /// A page that is shown instead of a list.
    page: Option<Page>,
    databases: Vec<Result<Fill, Error>>,
    opened: Option<OpenSession>,
}

#[derive(Clone, Copy)]
enum Page {
    Help,
    Databases,
}

impl View {
    pub(super) fn new(sessions: Vec<ListedSession>, window_tokens: Option<u64>) -> Self {
        let mut view = Self {
            canvas: TableWriter::with_columns(80, false),
            lines: 24,
            window_tokens,
            sessions: sessions.into_iter().map(Some).collect(),
            looked: 0,
            unread: 0,
            list: ListView::new(Sort::OF_SESSIONS[0]),
            widths: [0; 7],
            find: String::new(),
            is_typing: false,
            page: None,
            databases: Vec::new(),
            opened: None,
        };
        view.sort();
        view
    }

    /// The terminal was resized.
    pub(super) fn resize(&mut self, columns: usize, lines: usize, ascii: bool) {
        (self.canvas, self.lines) = (TableWriter::with_columns(columns, ascii), lines);
        self.widths = [0; 7];
        if let Some(opened) = &mut self.opened {
            opened.turns.lines.clear();
            opened.entries.iter_mut().for_each(|entries| entries.lines.clear());
        }
    }

    /// Whether all sessions have been looked at.
    pub(super) fn is_complete(&self) -> bool {
        self.looked >= self.sessions.len()
    }

    /// Takes in a result. `sort` has to follow.
    pub(super) fn hear(&mut self, news: SessionNews) {
        match news {
            SessionNews::Session(n, session) => {
                self.sessions[n] = session.map(|session| *session);
                self.looked += 1;
            }
            SessionNews::Unread(n) => {
                self.sessions[n] = None;
                (self.looked, self.unread) = (self.looked + 1, self.unread + 1);
            }
            SessionNews::Databases(databases) => self.databases = databases,
            SessionNews::Size(n, weighed) => {
                if let Some(opened) = self.opened.as_mut().filter(|opened| opened.session == n) {
                    opened.turns.reorder(turn_order(&weighed.turns, opened.turns.sort));
                    opened.weighed = Some(*weighed);
                }
            }
        }
    }

    /// Sorts the sessions again.
    pub(super) fn sort(&mut self) {
        let wanted = self.find.to_lowercase();
        let fits = |session: &ListedSession| {
            let names = [Some(session.agent_name()), session.project(), session.headline.title.as_deref()];
            let path = session.path.to_string_lossy();
            let mut texts = names.into_iter().flatten().chain([path.as_ref(), session.state.name()]);
            wanted.is_empty() || texts.any(|text| text.to_lowercase().contains(&wanted))
        };
        let all = self.sessions.iter().enumerate();
        let mut order: Vec<(usize, &ListedSession)> = all
            .filter_map(|(n, session)| Some((n, session.as_ref()?)))
            .filter(|(_, session)| fits(session))
            .collect();
        let rank = |session: &ListedSession| match session.state {
            SessionState::Dead(_) | SessionState::Broken(_) | SessionState::Forgets(_) => 0,
            SessionState::TooLong | SessionState::Dying(_) => 1,
            _ => 2,
        };
        // Numbers go from the newest to the oldest.
        match self.list.sort {
            Sort::Worst => order.sort_by_key(|(n, session)| (rank(session), Reverse(session.bytes), *n)),
            Sort::Size => order.sort_by_key(|(n, session)| (Reverse(session.bytes), *n)),
            Sort::Tokens => order
                .sort_by_key(|(n, session)| (Reverse((session.percent(), session.tokens.unwrap_or(0))), *n)),
            Sort::Newest | Sort::Place => {}
        }
        self.list.reorder(order.into_iter().map(|(n, _)| n).collect());
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: KeyPress) -> AfterKey {
        if key == KeyPress::End {
            return AfterKey::Quit;
        }
        if self.is_typing {
            self.typed(key);
            return AfterKey::Nothing;
        }
        if self.page.take().is_some() {
            return AfterKey::Nothing;
        }
        match letter(key) {
            KeyPress::Type('q') => return AfterKey::Quit,
            KeyPress::Type('?') => self.page = Some(Page::Help),
            KeyPress::Type('d') if !self.databases.is_empty() => self.page = Some(Page::Databases),
            KeyPress::Type('s') => self.sort_next(),
            KeyPress::Type('/') if self.opened.is_none() => self.is_typing = true,
            KeyPress::Open => return self.open(),
            KeyPress::Back | KeyPress::Erase => self.back(),
            KeyPress::Escape => return self.escape(),
            key => {
                if let Some(level) = self.level() {
                    level.moved(key);
                }
            }
        }
        AfterKey::Nothing
    }

    /// Goes back one level; from the list of all sessions it quits.
    fn escape(&mut self) -> AfterKey {
        if self.is_at_its_end() || (self.opened.is_none() && self.find.is_empty()) {
            return AfterKey::Quit;
        }
        if self.opened.is_some() {
            self.back();
        } else {
            self.find.clear();
            self.sort();
        }
        AfterKey::Nothing
    }

    /// A key while a search text is being typed.
    fn typed(&mut self, key: KeyPress) {
        match key {
            KeyPress::Type(c) if !c.is_control() => self.find.push(c),
            KeyPress::Erase if !self.find.is_empty() => _ = self.find.pop(),
            KeyPress::Open => return self.is_typing = false,
            KeyPress::Escape | KeyPress::Erase => {
                self.find.clear();
                self.is_typing = false;
            }
            key => return self.list.moved(key),
        }
        self.list.at = 0;
        self.sort();
    }

    /// The visible list; `None` if an entry is shown instead.
    fn level(&mut self) -> Option<&mut ListView> {
        match &mut self.opened {
            None => Some(&mut self.list),
            Some(OpenSession { entry: true, .. }) => None,
            Some(OpenSession { entries: Some(entries), .. }) => Some(entries),
            Some(opened) => Some(&mut opened.turns),
        }
    }

    fn sort_next(&mut self) {
        let Some(opened) = &mut self.opened else {
            self.list.sort = self.list.sort.next(Sort::OF_SESSIONS);
            self.list.at = 0;
            return self.sort();
        };
        let Some(weighed) = opened.weighed.as_ref().filter(|_| !opened.entry) else { return };
        let level = opened.entries.as_mut().unwrap_or(&mut opened.turns);
        (level.sort, level.at) = (level.sort.next(Sort::OF_A_FILE), 0);
        match &mut opened.entries {
            Some(entries) => {
                let turn = opened.turns.chosen().unwrap_or_default();
                entries.reorder(entry_order(&weighed.largest, turn, entries.sort));
            }
            None => opened.turns.reorder(turn_order(&weighed.turns, opened.turns.sort)),
        }
    }

    fn open(&mut self) -> AfterKey {
        let Some(opened) = &mut self.opened else {
            let Some(session) = self.list.chosen() else { return AfterKey::Nothing };
            let turns = ListView::new(Sort::Size);
            self.opened = Some(OpenSession { session, weighed: None, turns, entries: None, entry: false });
            return AfterKey::Weigh(session);
        };
        let Some(weighed) = &opened.weighed else { return AfterKey::Nothing };
        if let Some(entries) = &opened.entries {
            opened.entry = entries.chosen().is_some();
        } else if let Some(turn) = opened.turns.chosen() {
            let mut entries = ListView::new(Sort::Size);
            entries.reorder(entry_order(&weighed.largest, turn, entries.sort));
            opened.entries = Some(entries);
        }
        AfterKey::Nothing
    }

    /// Only one session was named, and none of its turns is open.
    fn is_at_its_end(&self) -> bool {
        self.sessions.len() == 1 && self.opened.as_ref().is_some_and(|opened| opened.entries.is_none())
    }

    fn back(&mut self) {
        let Some(opened) = &mut self.opened else { return };
        if opened.entry {
            opened.entry = false;
        } else if opened.entries.take().is_none() {
            self.opened = None;
        }
    }
}

/// The actions of a list's letter keys.
fn letter(key: KeyPress) -> KeyPress {
    match key {
        KeyPress::Type('k') => KeyPress::Up,
        KeyPress::Type('j') => KeyPress::Down,
        KeyPress::Type('h') => KeyPress::Back,
        KeyPress::Type('l') => KeyPress::Open,
        KeyPress::Type('g') => KeyPress::First,
        KeyPress::Type('G') => KeyPress::Last,
        KeyPress::Type(' ') => KeyPress::PageDown,
        other => other,
    }
}

fn turn_order(turns: &[TurnShare], sort: Sort) -> Vec<usize> {
    let mut order: Vec<usize> = (0..turns.len()).collect();
    match sort {
        Sort::Size => order.sort_by_key(|&n| Reverse(turns[n].bytes)),
        Sort::Tokens => order.sort_by_key(|&n| Reverse(turns[n].tokens)),
        _ => {}
    }
    order
}

/// The entries of a turn among the largest of the file.
fn entry_order(entries: &[LargeEntry], turn: usize, sort: Sort) -> Vec<usize> {
    let mut order: Vec<usize> = (0..entries.len()).filter(|&n| entries[n].turn == turn).collect();
    match sort {
        Sort::Size => order.sort_by_key(|&n| Reverse(entries[n].bytes)),
        Sort::Tokens => order.sort_by_key(|&n| Reverse(entries[n].tokens)),
        _ => order.sort_by_key(|&n| entries[n].line),
    }
    order
}

// --- lines ---

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().bold();
const SOFT: Style = Style::new().dimmed();
const HEADS: Style = Style::new().underline();
const CHOSEN: Style = Style::new().invert();

impl View {
    /// The screen, line by line.
    pub(super) fn draw(&mut self) -> Vec<ScreenLine> {
        match self.page {
            Some(Page::Help) => return self.fitted(help().map(|line| (line.to_string(), PLAIN)).to_vec()),
            Some(Page::Databases) => return self.fitted(self.databases_in_full()),
            None => {}
        }
        let (mut head, foot) = (self.head(), self.foot());
        // At least half of the screen is for the list.
        head.truncate(if self.lines < LINES_MIN { 0 } else { self.lines / 2 });
        let room = self.lines.saturating_sub(head.len() + 1);
        head.extend(self.body(room));
        head.resize_with(self.lines.saturating_sub(1), || (String::new(), PLAIN));
        head.push((foot, SOFT));
        self.fitted(head)
    }

    /// Cuts lines to the width of the screen, and escapes what must not reach a terminal.
    fn fitted(&self, mut lines: Vec<(String, Style)>) -> Vec<ScreenLine> {
        lines.resize_with(self.lines, || (String::new(), PLAIN));
        let fit = |(text, style): (String, Style)| ScreenLine {
            text: self.canvas.begin(&text, self.canvas.columns()),
            style,
        };
        lines.into_iter().map(fit).collect()
    }

    /// The lines above the list.
    fn head(&self) -> Vec<(String, Style)> {
        let Some(opened) = &self.opened else { return self.head_of_all() };
        let Some(session) = &self.sessions[opened.session] else { return Vec::new() };
        let title = session.headline.title.as_deref().unwrap_or("(no title)");
        let mut head = vec![(title.to_string(), BOLD), (shown(&session.path), SOFT)];
        match (&opened.weighed, &opened.entries) {
            (None, _) => {}
            (Some(weighed), None) => head.extend(self.head_of_session(session, weighed)),
            (Some(weighed), Some(_)) => {
                head.extend(self.wrapped(&turn_in_full(weighed, opened.turns.chosen()), PLAIN));
            }
        }
        head.push((String::new(), PLAIN));
        head
    }

    fn head_of_all(&self) -> Vec<(String, Style)> {
        let there = || self.sessions.iter().flatten();
        let bytes = there().map(|session| session.bytes).sum();
        let mut sum = format!("{}; {}", DoctorTotals::from_sessions(there()).sentence(), size(bytes));
        if self.unread > 0 {
            sum = format!("{sum}; {} could not be read (tailor doctor)", grouped(self.unread as u64));
        }
        if !self.is_complete() {
            let (looked, all) = (grouped(self.looked as u64), grouped(self.sessions.len() as u64));
            sum = format!("looking: {looked} of {all}. {sum}");
        }
        vec![(sum, BOLD)]
    }

    fn head_of_session(&self, session: &ListedSession, weighed: &SizeReport) -> Vec<(String, Style)> {
        let compactions: u32 = weighed.turns.iter().map(|turn| turn.compactions).sum();
        let about = [
            session.agent_name().to_string(),
            session.project().map_or_else(|| "no project".to_string(), |name| format!("project {name}")),
            format!("written {} ago", age(session.age)),
            size(weighed.bytes),
            lines_of(weighed.lines),
            plural(weighed.turns.len() as u64, "turn"),
            plural(u64::from(compactions), "compaction"),
        ];
        let context = weighed.context;
        let estimated = if context.exact { "" } else { "about " };
        let full = match self.window_tokens.or(context.window_tokens).unwrap_or(session.window) {
            0 => String::new(),
            window => format!(" of {} ({})", grouped(window), percent(context.tokens, window)),
        };
        let context = format!("Context: {estimated}{} tokens{full}", grouped(context.tokens));
        let mut head = self.wrapped(&about.join(", "), PLAIN);
        head.extend(self.wrapped(&format!("{context}. {}", in_short(weighed)), PLAIN));
        let (state, codes) = (&session.state, session.state.codes());
        let errors = match session.forgotten() {
            Some(told) if matches!(state, SessionState::Forgets(_)) => told,
            _ if codes.is_empty() => state.name().to_string(),
            _ => format!("{}: {}", state.name(), codes.join(", ")),
        };
        let style = row::colour(&session.state).unwrap_or_default();
        match &session.command {
            Some(command) => {
                let explains = command.starts_with("tailor explain ");
                let what = if explains { "see what to do" } else { "repair it" };
                head.push((format!("{errors}. To {what}, run:"), style));
                head.extend(self.folded(command));
            }
            None if session.state.is_stuck() => head.push((errors, style)),
            None => {}
        }
        head
    }

    /// A sentence, wrapped.
    fn wrapped(&self, text: &str, style: Style) -> Vec<(String, Style)> {
        self.canvas.wrap(text).lines().map(|line| (line.to_string(), style)).collect()
    }

    /// A command, wrapped without adding or dropping a character, so that it can be copied.
    fn folded(&self, text: &str) -> Vec<(String, Style)> {
        let mut lines = vec![String::new()];
        for c in self.canvas.spell(text).chars() {
            let last = lines.last_mut().map(|line| (self.canvas.width(line), line));
            match last {
                Some((width, line)) if width + 2 <= self.canvas.columns() => line.push(c),
                _ => lines.push(c.to_string()),
            }
        }
        lines.into_iter().map(|line| (line, BOLD)).collect()
    }

    /// The list, or the message shown instead of an empty one, on this many lines.
    fn body(&mut self, room: usize) -> Vec<(String, Style)> {
        let canvas = self.canvas;
        match &mut self.opened {
            None => self.session_lines(room),
            Some(OpenSession { weighed: None, .. }) => vec![("reading…".to_string(), SOFT)],
            Some(OpenSession { weighed: Some(weighed), .. }) if weighed.reason.is_some() => {
                let reason = weighed.reason.clone().unwrap_or_default();
                canvas.wrap(&reason).lines().map(|line| (line.to_string(), PLAIN)).collect()
            }
            Some(OpenSession { weighed: Some(weighed), entries: Some(entries), entry: true, .. }) => {
                let entry = entries.chosen().map(|n| &weighed.largest[n]);
                entry.map_or_else(Vec::new, |entry| entry_lines(canvas, entry, weighed))
            }
            Some(OpenSession { weighed: Some(weighed), turns, entries: Some(entries), .. }) => {
                let turn = turns.chosen().map(|n| weighed.turns[n].clone()).unwrap_or_default();
                entry_table(canvas, entries, weighed, &turn);
                let mut lines = visible(entries, room);
                let listed = entries.order.len() as u64;
                if listed < turn.entries && lines.len() < room {
                    let more = entries_of(turn.entries - listed, "smaller ");
                    lines.push((format!("  and {more}"), SOFT));
                }
                lines
            }
            Some(OpenSession { weighed: Some(weighed), turns, .. }) => {
                turn_table(canvas, turns, weighed);
                visible(turns, room)
            }
        }
    }

    /// Formats only the visible items, because there may be thousands. Columns never get narrower, so that they do not jump.
    fn session_lines(&mut self, room: usize) -> Vec<(String, Style)> {
        let canvas = TableWriter::with_columns(self.canvas.columns().saturating_sub(2), self.canvas.ascii());
        let shown = self.list.shown(room.saturating_sub(1));
        let chosen = self.list.at.checked_sub(shown.start);
        let sessions = self.list.order[shown].iter().filter_map(|&n| self.sessions[n].as_ref());
        let sessions: Vec<&ListedSession> = sessions.collect();
        let cells: Vec<_> =
            [row::heads()].into_iter().chain(sessions.iter().map(|s| row::cells(s))).collect();
        self.widths = row::widths(&canvas, &cells, self.widths);
        let line = |cells| row::line(&canvas, cells, self.widths, |state| state);
        let mut lines = vec![(format!("  {}", line(&cells[0])), HEADS)];
        lines.extend(cells[1..].iter().zip(sessions).enumerate().map(|(n, (cells, session))| {
            let colour = row::colour(&session.state).unwrap_or_default();
            if chosen == Some(n) {
                (format!("> {}", line(cells)), CHOSEN)
            } else {
                (format!("  {}", line(cells)), colour)
            }
        }));
        lines
    }

    /// What fills the databases.
    fn databases_in_full(&self) -> Vec<(String, Style)> {
        let mut text = Vec::new();
        for measured in &self.databases {
            // Nothing can fail: it is written to memory.
            let _ = match measured {
                Ok(fill) => databases::draw(std::slice::from_ref(fill), self.canvas, &mut text),
                Err(error) => writeln!(text, "\n{}", self.canvas.wrap(&error.to_string())),
            };
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        text.trim_start().lines().map(|line| (line.to_string(), PLAIN)).collect()
    }

    /// The user's position, and the available keys.
    fn foot(&mut self) -> String {
        if self.is_typing {
            return format!("Find: {}_  (Enter keeps it, Esc shows all)", self.find);
        }
        let (is_list, is_narrow) = (self.opened.is_none(), self.canvas.columns() < 60);
        let found =
            if is_list && !self.find.is_empty() { format!(" with {:?}", self.find) } else { String::new() };
        let Some(level) = self.level() else { return "Esc back  ? help  q quit".to_string() };
        let at = if level.order.is_empty() { 0 } else { level.at + 1 };
        let place = format!(
            "{} of {}{found}, {}",
            grouped(at as u64),
            grouped(level.order.len() as u64),
            level.sort.name()
        );
        match (is_narrow, is_list) {
            (true, _) => format!("{place}  ? help"),
            (false, true) => {
                let databases = if self.databases.is_empty() { "" } else { "  d databases" };
                format!("{place}  Enter open  s sort  / find{databases}  ? help  q quit")
            }
            (false, false) => format!("{place}  Enter open  Esc back  s sort  ? help  q quit"),
        }
    }
}

/// The visible lines, with the selected one marked.
fn visible(level: &mut ListView, room: usize) -> Vec<(String, Style)> {
    let shown = level.shown(room);
    let mark = |n: usize| {
        let line = &level.lines[n];
        if n == level.at {
            (format!(">{}", line.get(1..).unwrap_or_default()), CHOSEN)
        } else {
            (line.clone(), PLAIN)
        }
    };
    shown.map(mark).collect()
}

/// `31 entries`.
fn entries_of(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "entry" } else { "entries" })
}

fn turn_in_full(weighed: &SizeReport, turn: Option<usize>) -> String {
    let Some((n, turn)) = turn.and_then(|n| Some((n, weighed.turns.get(n)?))) else { return String::new() };
    let mut parts = vec![
        format!(
            "turn {} of {} at line {}",
            grouped(n as u64 + 1),
            grouped(weighed.turns.len() as u64),
            grouped(turn.line)
        ),
        entries_of(turn.entries, ""),
        format!("{} ({} of the file)", size(turn.bytes), percent(turn.bytes, weighed.bytes)),
        format!(
            "{} of its tokens in the context, which was {} after it",
            grouped(turn.tokens),
            grouped(turn.context_tokens)
        ),
    ];
    parts.extend((turn.compactions > 0).then(|| plural(u64::from(turn.compactions), "compaction")));
    parts.extend((turn.cuts > 0).then(|| plural(u64::from(turn.cuts), "cut")));
    parts.join(", ")
}

/// Formats the lines of a list again if they were dropped.
fn tabulate(canvas: TableWriter, level: &mut ListView, whole: u64, line: impl Fn(usize) -> TableRow) {
    if level.lines.is_empty() {
        let rows: Vec<TableRow> = level.order.iter().map(|&n| line(n)).collect();
        level.lines = canvas.table(&rows, whole).lines().map(str::to_string).collect();
    }
}

fn turn_table(canvas: TableWriter, turns: &mut ListView, weighed: &SizeReport) {
    tabulate(canvas, turns, weighed.bytes, |n| {
        let turn = &weighed.turns[n];
        TableRow {
            name: format!("turn {}, line {}", grouped(n as u64 + 1), grouped(turn.line)),
            columns: vec![
                entries_of(turn.entries, ""),
                format!("{} tok", tokens(turn.tokens)),
                size(turn.bytes),
            ],
            part: turn.bytes,
        }
    });
}

fn entry_table(canvas: TableWriter, entries: &mut ListView, weighed: &SizeReport, turn: &TurnShare) {
    tabulate(canvas, entries, turn.bytes, |n| {
        let entry = &weighed.largest[n];
        TableRow {
            name: format!("line {}: {}", grouped(entry.line), entry_name(entry)),
            columns: vec![
                standing_word(entry.standing).to_string(),
                format!("{} tok", tokens(entry.tokens)),
                size(entry.bytes),
            ],
            part: entry.bytes,
        }
    });
}

/// Everything about one entry.
fn entry_lines(canvas: TableWriter, entry: &LargeEntry, weighed: &SizeReport) -> Vec<(String, Style)> {
    let mut lines = vec![
        (format!("line {}: {}", grouped(entry.line), entry_name(entry)), BOLD),
        (format!("  kind     {}", entry.kind), PLAIN),
        (format!("  where    {}", standing_word(entry.standing)), PLAIN),
        (
            format!("  size     {}, {} of the file", size(entry.bytes), percent(entry.bytes, weighed.bytes)),
            PLAIN,
        ),
        (
            format!(
                "  tokens   {}, {} of the context",
                grouped(entry.tokens),
                percent(entry.tokens, weighed.context_tokens_max())
            ),
            PLAIN,
        ),
    ];
    for (name, text) in [("id", &entry.entry), ("tool", &entry.tool)] {
        if !text.is_empty() {
            lines.insert(1, (format!("  {name:<8} {text}"), PLAIN));
        }
    }
    let mut parts = entry.parts.clone();
    parts.sort_by_key(|(_, bytes)| Reverse(*bytes));
    let row = |(name, bytes): &(&str, u64)| TableRow {
        name: part(name),
        columns: vec![size(*bytes)],
        part: *bytes,
    };
    let rows: Vec<TableRow> = parts.iter().map(row).collect();
    lines.push((String::new(), PLAIN));
    lines.extend(canvas.table(&rows, entry.bytes).lines().map(|line| (line.to_string(), PLAIN)));
    if let Some(content) = &entry.content {
        lines.push((String::new(), PLAIN));
        lines.extend(canvas.wrap(content).lines().map(|line| (line.to_string(), SOFT)));
    }
    lines
}

fn help() -> [&'static str; 17] {
    [
        "What fills your sessions. Nothing is changed here.",
        "",
        "  Up, Down, k, j        move",
        "  Page Up, Page Down    move by a screen (Space, too)",
        "  Home, End, g, G       first, last",
        "  Enter, Right, l       open: sessions, turns, entries, one entry",
        "  Backspace, Left, h    back; Esc, too, and it quits from the list of sessions",
        "  s                     sort: worst, largest, fullest, newest first;",
        "                        in a session by size, by tokens, in order",
        "  /                     find sessions by title, project, agent, path or state",
        "  d                     what fills the databases that sessions are in",
        "  ?                     this help",
        "  q, Ctrl-C             quit",
        "",
        "Tables for a pipe or a file: tailor top --plain",
        "",
        "Any key goes back.",
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::with_sidechains;
    use std::fmt::Write as _;
    use std::path::Path;
    use transcript::weight::weigh;

    /// A pi session of this many turns, each with a question and an answer that is longer each time.
    fn text(turns: usize) -> String {
        let mut text = String::from("{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/w\"}\n");
        let mut parent = "null".to_string();
        for turn in 0..turns {
            for (role, id, said) in
                [("user", "u", "go on".to_string()), ("assistant", "a", "word ".repeat(9 + turn))]
            {
                let _ = writeln!(
                    text,
                    r#"{{"type":"message","id":"{id}{turn}","parentId":{parent},"message":{{"role":"{role}","content":"{said}"}}}}"#
                );
                parent = format!("\"{id}{turn}\"");
            }
        }
        text
    }

    /// A view of this many sessions of which only the paths are known.
    fn view(count: usize) -> View {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..count {
            std::fs::write(dir.path().join(format!("{n:03}.jsonl")), "x".repeat(count - n)).unwrap();
        }
        let candidates = with_sidechains(&[dir.path().to_path_buf()]);
        View::new(candidates.iter().map(ListedSession::unknown).collect(), None)
    }

    fn weighed(turns: usize) -> SessionNews {
        let text = text(turns);
        let weight = weigh(&text.as_bytes(), 1000, &mut |_| None).unwrap();
        SessionNews::Size(0, Box::new(SizeReport::new(Path::new("s.jsonl"), &weight, Vec::new())))
    }

    fn screen(view: &mut View) -> Vec<String> {
        view.draw().into_iter().map(|line| line.text).collect()
    }

    fn chosen(view: &mut View) -> String {
        let lines = screen(view);
        let marked: Vec<_> = lines.iter().filter(|line| line.starts_with('>')).collect();
        assert_eq!(marked.len(), 1, "{lines:#?}");
        marked[0].clone()
    }

    #[test]
    fn the_chosen_line_is_always_on_the_screen() {
        let mut view = view(100);
        for (columns, lines) in [(80, 24), (200, 50), (40, 10), (20, 3)] {
            view.resize(columns, lines, false);
            for key in [
                KeyPress::Last,
                KeyPress::PageUp,
                KeyPress::Up,
                KeyPress::First,
                KeyPress::PageDown,
                KeyPress::Down,
            ] {
                assert_eq!(view.press(key), AfterKey::Nothing);
                let chosen = chosen(&mut view);
                let at = view.list.at;
                assert!(columns < 80 || chosen.contains(&format!("{} B", 100 - at)), "{at}: {chosen}");
            }
            assert_eq!(view.list.at, lines.saturating_sub(if lines < LINES_MIN { 2 } else { 3 }) + 1);
        }
    }

    #[test]
    fn no_line_is_too_wide_and_none_holds_an_escape() {
        let mut view = view(2);
        let evil = "\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{202e}日本語".repeat(9);
        view.sessions[0].as_mut().unwrap().headline.title = Some(evil);
        view.hear(weighed(3));
        for (columns, lines) in (20..=200).step_by(9).zip((2..=60).step_by(3)) {
            view.resize(columns, lines, columns % 2 == 0);
            let keys = [
                KeyPress::Down,
                KeyPress::Open,
                KeyPress::Type('s'),
                KeyPress::Open,
                KeyPress::Open,
                KeyPress::Type('?'),
                KeyPress::Back,
                KeyPress::Back,
                KeyPress::Back,
                KeyPress::Back,
            ];
            for key in keys {
                view.press(key);
                view.hear(weighed(3));
                let drawn = screen(&mut view);
                assert_eq!(drawn.len(), lines);
                let fits =
                    |line: &String| view.canvas.width(line) <= columns && !line.chars().any(char::is_control);
                assert!(drawn.iter().all(fits), "{columns}: {drawn:#?}");
            }
        }
    }

    #[test]
    fn a_session_opens_turn_by_turn_and_entry_by_entry() {
        let mut view = view(1);
        view.resize(100, 24, false);
        assert_eq!(view.press(KeyPress::Open), AfterKey::Weigh(0));
        assert!(screen(&mut view).join("\n").contains("reading"));
        assert_eq!(view.press(KeyPress::Open), AfterKey::Nothing, "there is nothing to open yet");
        view.hear(weighed(4));
        assert!(
            chosen(&mut view).contains("turn 5, line 8"),
            "the largest is first, what stands before the first is a turn"
        );
        view.press(KeyPress::Type('s'));
        view.press(KeyPress::Type('s'));
        assert!(chosen(&mut view).contains("turn 1, line 1"), "in order");
        view.press(KeyPress::Last);
        view.press(KeyPress::Type('l'));
        assert!(chosen(&mut view).contains("line 9: message/assistant"));
        assert!(screen(&mut view).join("\n").contains("turn 5 of 5 at line 8, 2 entries"));
        view.press(KeyPress::Open);
        let entry = screen(&mut view).join("\n");
        assert!(entry.contains("where    in context") && entry.contains("id       a3"), "{entry}");
        for list in ["line 9: message", "turn 5, line 8"] {
            view.press(KeyPress::Escape);
            assert!(chosen(&mut view).contains(list));
        }
        assert_eq!(view.press(KeyPress::Escape), AfterKey::Quit, "only one session was named");
    }

    #[test]
    fn what_is_learnt_moves_the_worst_up_and_the_chosen_stays() {
        let mut view = view(3);
        view.press(KeyPress::Down);
        assert!(chosen(&mut view).contains(" 2 B "));
        for n in 0..3 {
            let mut session = view.sessions[n].take().unwrap();
            if session.path.ends_with("002.jsonl") {
                session.state = SessionState::Broken(vec!["P1"]);
            }
            assert!(!view.is_complete());
            view.hear(SessionNews::Session(n, Some(Box::new(session))));
        }
        view.sort();
        assert!(view.is_complete());
        assert!(chosen(&mut view).contains(" 2 B ") && view.list.at == 2);
        view.press(KeyPress::First);
        assert!(chosen(&mut view).contains("broken: P1"));
        assert!(screen(&mut view)[0].starts_with("3 sessions: 1 broken, 2 not looked at yet (?)"));
        view.hear(SessionNews::Unread(0));
        view.hear(SessionNews::Session(1, None));
        view.sort();
        assert!(screen(&mut view)[0].contains("1 could not be read"));
        assert_eq!(view.list.order.len(), 1);
    }

    #[test]
    fn what_fills_databases_is_a_page_of_its_own() {
        let mut view = view(2);
        view.press(KeyPress::Type('d'));
        assert!(!screen(&mut view).join("\n").contains("Database"), "there is none");
        let fill = Fill {
            file: "opencode.db".into(),
            agent: "OpenCode",
            bytes: 11_200_000_000,
            tables: vec![("event".into(), 10_100_000_000), ("part".into(), 1_000_000_000)],
            remarks: vec!["event: a copy".into()],
            ..Fill::default()
        };
        view.hear(SessionNews::Databases(vec![Ok(fill)]));
        assert!(screen(&mut view).last().unwrap().contains("d databases"));
        view.press(KeyPress::Type('d'));
        let page = screen(&mut view).join("\n");
        for text in ["Database opencode.db: 11.20 GB", "event", "10.10 GB   90%", "event: a copy."] {
            assert!(page.contains(text), "{page}");
        }
        view.press(KeyPress::Escape);
        assert!(chosen(&mut view).contains(" B "));
    }

    #[test]
    fn what_is_typed_finds_sessions() {
        let mut view = view(30);
        for key in "//02q".chars().map(KeyPress::Type).chain([KeyPress::Erase]) {
            assert_eq!(view.press(key), AfterKey::Nothing, "q is a letter here");
        }
        assert_eq!(view.list.order.len(), 10, "020 to 029");
        view.press(KeyPress::Open);
        assert!(screen(&mut view).last().unwrap().starts_with("1 of 10 with \"/02\""));
        view.press(KeyPress::Escape);
        assert_eq!(view.list.order.len(), 30);
        assert_eq!(view.press(KeyPress::Escape), AfterKey::Quit);
        assert_eq!(view.press(KeyPress::End), AfterKey::Quit);
    }
}
