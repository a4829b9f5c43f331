//! A session as one line of a list. Its title gets what the other cells leave.

use super::{ListedSession, SessionState};
use crate::amount::{age, percent, plural, short_size, tokens};
use crate::table::{TableWriter, left, right};
use anstyle::{AnsiColor, Style};

/// The cells of a line.
pub(crate) type ListCells = [String; 7];

/// The widest cells of agents, projects and states.
const CELLS_MAX: [usize; 3] = [12, 16, 16];
/// The widest name of a project on a narrow terminal.
const NARROW_PROJECT_MAX: usize = 11;
const NARROW: usize = 100;
const TITLE_COLUMNS_MIN: usize = 10;

/// What stands above the cells.
pub(crate) fn heads() -> ListCells {
    ["AGE", "AGENT", "PROJECT", "SIZE", "CONTEXT", "STATE", "TITLE"].map(str::to_string)
}

pub(crate) fn cells(session: &ListedSession) -> ListCells {
    let context = match (session.tokens, session.window) {
        (None, _) => "?".to_string(),
        (Some(count), 0) => tokens(count),
        (Some(count), window) => format!("{} {}", tokens(count), percent(count, window)),
    };
    let state = match &session.state {
        SessionState::Broken(codes) if codes.len() > 2 => {
            format!("broken: {} +{}", codes[0], codes.len() - 1)
        }
        SessionState::Broken(codes) => format!("broken: {}", codes.join(", ")),
        SessionState::Forgets(_) if session.messages.brought_back > 0 => {
            format!("forgets {}", session.messages.brought_back)
        }
        SessionState::Dying(turns) => format!("dies in ~{}", plural(*turns, "turn")),
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

/// How wide each cell is, and at least so wide, so that all of these lines fit.
pub(crate) fn widths(canvas: &TableWriter, rows: &[ListCells], at_least: [usize; 7]) -> [usize; 7] {
    let mut widths = at_least;
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(canvas.width(cell));
        }
    }
    for (n, most) in [1, 2, 5].into_iter().zip(CELLS_MAX) {
        widths[n] = widths[n].min(most);
    }
    if canvas.columns() < NARROW {
        widths[2] = widths[2].min(NARROW_PROJECT_MAX);
    }
    let fixed: usize = widths[..6].iter().map(|width| width + 2).sum();
    widths[6] = canvas.columns().saturating_sub(fixed).max(TITLE_COLUMNS_MIN);
    widths
}

/// The line; `state` may paint the cell of the state.
pub(crate) fn line(
    canvas: &TableWriter,
    cells: &ListCells,
    widths: [usize; 7],
    state: impl FnOnce(String) -> String,
) -> String {
    let fit = |n: usize| {
        let cell = canvas.begin(&cells[n], widths[n]);
        match n {
            0 | 3 | 4 => right(&cell, widths[n]),
            6 => cell,
            _ => left(&cell, widths[n]),
        }
    };
    let mut line: Vec<String> = (0..cells.len()).map(fit).collect();
    line[5] = state(std::mem::take(&mut line[5]));
    line.join("  ").trim_end().to_string()
}

/// How the state of a session is painted.
pub(crate) fn colour(state: &SessionState) -> Option<Style> {
    let colour = match state {
        stuck if stuck.is_stuck() => AnsiColor::Red,
        SessionState::Dying(_) | SessionState::Bloated | SessionState::NearlyFull => AnsiColor::Yellow,
        SessionState::InUse => AnsiColor::Cyan,
        _ => return None,
    };
    Some(colour.on_default())
}
