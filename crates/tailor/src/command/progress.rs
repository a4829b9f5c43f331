//! How far it is, on a terminal, once it takes long enough to wonder.

use crate::terminal::Screen;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use keeper::{Error, Found};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long it takes to wonder.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the bar is drawn.
const DRAWINGS_PER_SECOND: u8 = 5;

pub(super) struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// How far it is goes by bytes: files differ too much in size to count them.
    pub(super) fn new(files: &[Result<Found, Error>]) -> Self {
        Self::of(files.iter().flatten().map(|found| found.path.as_path()))
    }

    /// The same for files that are known to be there.
    pub(super) fn of<'p>(files: impl Iterator<Item = &'p Path>) -> Self {
        let bytes = files.map(bytes_at).sum();
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        let template = "{wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let characters = if Screen::of_stderr().ascii() { "#>-" } else { "█▉▊▋▌▍▎▏ " };
        bar.set_style(style.progress_chars(characters));
        Self { bar, started: Instant::now() }
    }

    /// A file is done.
    pub(super) fn done(&self, found: &Result<Found, Error>) {
        self.show();
        self.bar.inc(found.as_ref().map_or(0, |found| bytes_at(&found.path)));
    }

    /// The same of one that is known to be there.
    pub(super) fn passed(&self, path: &Path) {
        self.show();
        self.bar.inc(bytes_at(path));
    }

    /// Shows the bar if it takes long enough.
    fn show(&self) {
        if self.bar.is_hidden() && self.started.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWINGS_PER_SECOND));
        }
    }

    /// Prints without the bar in the way.
    pub(super) fn behind<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// All is done.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn bytes_at(path: &Path) -> u64 {
    path.metadata().map_or(0, |there| there.len())
}
