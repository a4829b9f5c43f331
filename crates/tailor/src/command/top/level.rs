//! A scrolling list: the part of it that fits the screen, its selected line, and the keys that move the selection.

use std::ops::Range;

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyPress {
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

/// How a list is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Broken first, then too long, then the largest.
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

/// A list: its items in order, and the user's position.
pub(super) struct ListView {
    pub(super) sort: Sort,
    /// Indices of the listed items.
    pub(super) order: Vec<usize>,
    /// A line for each. Empty if they have to be formatted again.
    pub(super) lines: Vec<String>,
    /// The selected item, as an index into `order`.
    pub(super) at: usize,
    /// The first visible item.
    top: usize,
    /// How many items are visible.
    page: usize,
}

impl ListView {
    pub(super) fn new(sort: Sort) -> Self {
        Self { sort, order: Vec::new(), lines: Vec::new(), at: 0, top: 0, page: 1 }
    }

    /// The selected item.
    pub(super) fn chosen(&self) -> Option<usize> {
        self.order.get(self.at).copied()
    }

    /// Takes another order. The selected item stays selected, but a selected first line stays on the first line.
    pub(super) fn reorder(&mut self, order: Vec<usize>) {
        let chosen = self.chosen().filter(|_| self.at > 0);
        self.order = order;
        let at = chosen.and_then(|chosen| self.order.iter().position(|one| *one == chosen));
        self.at = at.unwrap_or(0);
        self.lines.clear();
    }

    /// Moves the selection, if the key does that.
    pub(super) fn moved(&mut self, key: KeyPress) {
        let last = self.order.len().saturating_sub(1);
        self.at = match key {
            KeyPress::Up => self.at.saturating_sub(1),
            KeyPress::Down => self.at + 1,
            KeyPress::PageUp => self.at.saturating_sub(self.page),
            KeyPress::PageDown => self.at + self.page,
            KeyPress::First => 0,
            KeyPress::Last => last,
            _ => self.at,
        }
        .min(last);
    }

    /// The part that is visible on this many lines.
    pub(super) fn shown(&mut self, lines: usize) -> Range<usize> {
        self.page = lines.max(1);
        let furthest = self.order.len().saturating_sub(self.page);
        self.top = self.top.clamp((self.at + 1).saturating_sub(self.page), self.at).min(furthest);
        self.top..(self.top + lines).min(self.order.len())
    }
}
