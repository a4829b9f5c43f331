//! A list of which as much is shown as fits, the line in it that is chosen, and the keys that choose another.

use std::ops::Range;

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    Back,
    Escape,
    Erase,
    Type(char),
    /// Ctrl-C.
    End,
}

/// By what a list is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// What is broken, then what is too long, then what is largest.
    Worst,
    Size,
    Tokens,
    Newest,
    /// As in the file.
    Place,
}

impl Sort {
    pub(super) const OF_SESSIONS: &[Self] = &[Self::Worst, Self::Size, Self::Tokens, Self::Newest];
    pub(super) const OF_A_FILE: &[Self] = &[Self::Size, Self::Tokens, Self::Place];

    /// The next one of these.
    pub(super) fn next(self, all: &[Self]) -> Self {
        let at = all.iter().position(|sort| *sort == self).unwrap_or(0);
        all[(at + 1) % all.len()]
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Worst => "worst first",
            Self::Size => "largest first",
            Self::Tokens => "fullest first",
            Self::Newest => "newest first",
            Self::Place => "in order",
        }
    }
}

/// A list: what is in it, in its order, and where the user is.
pub(super) struct Level {
    pub(super) sort: Sort,
    /// What is listed, as indices of what there is.
    pub(super) order: Vec<usize>,
    /// A line for each. Empty if they have to be written anew.
    pub(super) lines: Vec<String>,
    /// The chosen one, as an index of `order`.
    pub(super) at: usize,
    /// The first that is shown.
    top: usize,
    /// How many are shown.
    page: usize,
}

impl Level {
    pub(super) fn new(sort: Sort) -> Self {
        Self { sort, order: Vec::new(), lines: Vec::new(), at: 0, top: 0, page: 1 }
    }

    /// The chosen one.
    pub(super) fn chosen(&self) -> Option<usize> {
        self.order.get(self.at).copied()
    }

    /// Takes another order. The chosen one stays chosen, except the first, which stays the first.
    pub(super) fn reorder(&mut self, order: Vec<usize>) {
        let chosen = self.chosen().filter(|_| self.at > 0);
        self.order = order;
        let at = chosen.and_then(|chosen| self.order.iter().position(|one| *one == chosen));
        self.at = at.unwrap_or(0);
        self.lines.clear();
    }

    /// Moves, if the key is for that.
    pub(super) fn moved(&mut self, key: Key) {
        let last = self.order.len().saturating_sub(1);
        self.at = match key {
            Key::Up => self.at.saturating_sub(1),
            Key::Down => self.at + 1,
            Key::PageUp => self.at.saturating_sub(self.page),
            Key::PageDown => self.at + self.page,
            Key::First => 0,
            Key::Last => last,
            _ => self.at,
        }
        .min(last);
    }

    /// What of it is shown on so many lines.
    pub(super) fn shown(&mut self, lines: usize) -> Range<usize> {
        self.page = lines.max(1);
        let furthest = self.order.len().saturating_sub(self.page);
        self.top = self.top.clamp((self.at + 1).saturating_sub(self.page), self.at).min(furthest);
        self.top..(self.top + lines).min(self.order.len())
    }
}
