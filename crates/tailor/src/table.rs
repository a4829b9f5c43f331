//! Tables with bars that fit the terminal's width and characters. They have no colours.

use crate::amount::percent;
use crate::terminal::{Screen, is_ascii, plain, spelled_out, wrap};
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Default, minimum and maximum width.
const COLUMNS: usize = 80;
const COLUMNS_MIN: usize = 40;
const COLUMNS_MAX: usize = 140;
/// The width of the end of a path with an id: `…-0d0f7b2c-5e1f-4c0a-9d3e-2b1a6c7d8e9f.jsonl`.
const ID_COLUMNS: usize = 46;
/// Length limit of the longest bar.
const BAR_MAX: usize = 50;

/// Formats tables for an output.
#[derive(Clone, Copy)]
pub(crate) struct TableWriter {
    columns: usize,
    /// The output shows only ASCII.
    ascii: bool,
}

/// A row of a table: a name, text columns, and an amount for the bar.
pub(crate) struct TableRow {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) part: u64,
}

impl TableWriter {
    /// For standard output. If it is not a terminal, the width is `COLUMNS`; the locale always counts, because most
    /// pipes end in a pager.
    pub(crate) fn of_stdout() -> Self {
        let asked = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let columns = Screen::of_stdout().columns().or_else(asked).unwrap_or(COLUMNS);
        Self { columns: columns.clamp(COLUMNS_MIN, COLUMNS_MAX), ascii: is_ascii() }
    }

    /// A screen that is redrawn when its size changes.
    #[cfg(feature = "interactive")]
    pub(crate) fn with_columns(columns: usize, ascii: bool) -> Self {
        Self { columns, ascii }
    }

    /// A table: names, columns, how much of `whole` each row is, and a bar for that.
    pub(crate) fn table(&self, rows: &[TableRow], whole: u64) -> String {
        let widths: Vec<usize> = (0..rows.first().map_or(0, |row| row.columns.len()))
            .map(|n| rows.iter().map(|row| row.columns[n].width()).max().unwrap_or(0))
            .collect();
        // Two spaces before each column, a percentage, and a bar of useful length.
        let fixed: usize = 2 + widths.iter().map(|width| width + 2).sum::<usize>() + 6;
        let names = rows.iter().map(|row| self.spell(&row.name).width()).max().unwrap_or(0);
        let bar_min = if self.columns < 60 { 6 } else { 12 };
        let names = names.min(self.columns.saturating_sub(fixed + bar_min + 2).max(8));
        let bar = self.columns.saturating_sub(fixed + names + 2).min(BAR_MAX);
        let most = rows.iter().map(|row| row.part).max().unwrap_or(0);
        let mut out = String::new();
        for row in rows {
            let _ = write!(out, "  {}", left(&self.fit(&row.name, names), names));
            for (text, width) in row.columns.iter().zip(&widths) {
                let _ = write!(out, "  {}", right(text, *width));
            }
            let _ = write!(out, "  {:>4}", percent(row.part, whole));
            let bar = self.bar(row.part, most, bar);
            out.push_str(if bar.is_empty() { "" } else { "  " });
            out.push_str(&bar);
            out.push('\n');
        }
        out
    }

    /// Rows of columns, each with as much of the end of a path as fits.
    pub(crate) fn paths(&self, rows: &[(Vec<String>, String)]) -> String {
        let count = rows.first().map_or(0, |(columns, _)| columns.len());
        let widest = |n: usize| rows.iter().map(|(columns, _)| columns[n].width()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..count).map(widest).collect();
        let room = self.columns.saturating_sub(2 + widths.iter().map(|width| width + 2).sum::<usize>());
        let mut out = String::new();
        for (columns, path) in rows {
            for (text, width) in columns.iter().zip(&widths) {
                let _ = write!(out, "  {}", right(text, *width));
            }
            let _ = writeln!(out, "  {}", self.end(path, room));
        }
        out
    }

    /// The end of a path, beginning at a folder. An id at the end stays complete, however narrow the line is.
    fn end(&self, path: &str, columns: usize) -> String {
        let (path, columns) = (self.spell(path), columns.max(ID_COLUMNS));
        if path.width() <= columns {
            return path;
        }
        let dots = if self.ascii { "..." } else { "…" };
        let room = columns - dots.width();
        let fits = |(at, _): &(usize, &str)| path[*at..].width() <= room;
        if let Some((at, _)) = path.match_indices('/').find(fits) {
            return format!("{dots}{}", &path[at..]);
        }
        let tail: String = take(path.chars().rev(), room).chars().rev().collect();
        format!("{dots}{tail}")
    }

    /// A bar whose width is the share of `most`, in eighths if the terminal shows them.
    fn bar(&self, part: u64, most: u64, width: usize) -> String {
        const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        let eighths = (u128::from(part) * width as u128 * 8).checked_div(u128::from(most)).unwrap_or(0);
        let eighths = usize::try_from(eighths).unwrap_or(0).max(usize::from(part > 0));
        if self.ascii {
            "#".repeat(eighths.div_ceil(8))
        } else {
            format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
        }
    }

    /// An untrusted text, shortened in the middle to so many columns: both ends of a path matter.
    pub(crate) fn fit(&self, text: &str, columns: usize) -> String {
        let text = self.spell(text);
        if text.width() <= columns {
            return text;
        }
        let dots = if self.ascii { "..." } else { "…" };
        let room = columns.saturating_sub(dots.width());
        let head = take(text.chars(), room / 3);
        let tail: String = take(text.chars().rev(), room - head.width()).chars().rev().collect();
        format!("{head}{dots}{tail}")
    }

    /// The text, shortened at its end.
    pub(crate) fn begin(&self, text: &str, columns: usize) -> String {
        let text = self.spell(text);
        if text.width() <= columns {
            return text;
        }
        let dots = if self.ascii { "..." } else { "…" };
        take(text.chars(), columns.saturating_sub(dots.width())).trim_end().to_string() + dots
    }

    /// The width of an untrusted text in columns.
    pub(crate) fn width(&self, text: &str) -> usize {
        self.spell(text).width()
    }

    /// The width of a line.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Whether it shows ASCII only.
    #[cfg(feature = "interactive")]
    pub(crate) fn ascii(&self) -> bool {
        self.ascii
    }

    /// A sentence, broken into lines.
    pub(crate) fn wrap(&self, text: &str) -> String {
        wrap(&self.spell(text), self.columns, "")
    }

    /// An untrusted text in characters that the terminal shows.
    pub(crate) fn spell(&self, text: &str) -> String {
        let text = plain(text);
        if self.ascii { spelled_out(&text) } else { text }
    }
}

fn take(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    chars
        .take_while(|c| {
            let fits = c.width().unwrap_or(0) <= left;
            left = left.saturating_sub(c.width().unwrap_or(0));
            fits
        })
        .collect()
}

/// A left-aligned cell.
pub(crate) fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// A right-aligned cell.
pub(crate) fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canvas(columns: usize, ascii: bool) -> TableWriter {
        TableWriter { columns, ascii }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let row = |name: &str, part| TableRow {
            name: name.to_string(),
            columns: vec!["1.23 MB".to_string(), "84,300".to_string()],
            part,
        };
        let rows =
            [row("a rather long path/日本語/with/a/name.jsonl", 7), row("\x1b[31mred", 1), row("x", 0)];
        for columns in COLUMNS_MIN..=COLUMNS_MAX {
            for ascii in [true, false] {
                let table = canvas(columns, ascii).table(&rows, 8);
                assert!(table.lines().all(|line| line.width() <= columns), "{columns}\n{table}");
                assert!(!ascii || table.is_ascii(), "{table}");
                assert!(!table.contains('\x1b'));
            }
        }
    }

    #[test]
    fn a_path_loses_its_first_folders_and_never_its_id() {
        const ID: &str = "0d0f7b2c-5e1f-4c0a-9d3e-2b1a6c7d8e9f";
        let path = format!("~/.codex/sessions/2026/11/23/rollout-2026-11-23T10-00-00-{ID}.jsonl");
        let end = |columns, ascii| canvas(80, ascii).end(&path, columns);
        assert_eq!(end(200, false), path);
        assert_eq!(end(80, false), format!("…/11/23/rollout-2026-11-23T10-00-00-{ID}.jsonl"));
        assert_eq!(end(73, false), format!("…/rollout-2026-11-23T10-00-00-{ID}.jsonl"));
        for columns in 0..70 {
            let whole = format!("{ID}.jsonl");
            assert!([true, false].iter().all(|ascii| end(columns, *ascii).ends_with(&whole)), "{columns}");
        }
    }

    #[test]
    fn bars_are_as_long_as_what_they_show() {
        assert_eq!(canvas(80, false).bar(4, 8, 10), "█████");
        assert_eq!(canvas(80, false).bar(1, 8, 10), "█▎");
        assert_eq!(canvas(80, false).bar(1, 1_000_000, 10), "▏");
        assert_eq!(canvas(80, true).bar(1, 8, 10), "##");
        assert_eq!(canvas(80, false).bar(0, 0, 10), "");
    }
}
