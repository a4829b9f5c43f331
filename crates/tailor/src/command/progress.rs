//! A progress bar, on terminals, once a run takes noticeable time.

use crate::say::is_quiet;
use crate::terminal::Screen;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use keeper::{Error, FoundFile};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time before the bar appears.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the bar is drawn.
const DRAWINGS_PER_SECOND: u8 = 5;

pub(super) struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// Progress is measured in bytes, because files differ too much in size.
    pub(super) fn new(files: &[Result<FoundFile, Error>]) -> Self {
        Self::for_files(files.iter().flatten().map(|found| found.path.as_path()))
    }

    /// Progress over files that are known to exist.
    pub(super) fn for_files<'p>(files: impl Iterator<Item = &'p Path>) -> Self {
        let bytes = files.map(bytes_at).sum();
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        let template = "{wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let characters = if Screen::of_stderr().ascii() { "#>-" } else { "█▉▊▋▌▍▎▏ " };
        bar.set_style(style.progress_chars(characters));
        Self { bar, started: Instant::now() }
    }

    /// A file is done.
    pub(super) fn done(&self, found: &Result<FoundFile, Error>) {
        self.show();
        self.bar.inc(found.as_ref().map_or(0, |found| bytes_at(&found.path)));
    }

    /// A file that is known to exist is done.
    pub(super) fn passed(&self, path: &Path) {
        self.show();
        self.bar.inc(bytes_at(path));
    }

    /// Shows the bar once the run has taken long enough.
    fn show(&self) {
        if self.bar.is_hidden() && !is_quiet() && self.started.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWINGS_PER_SECOND));
        }
    }

    /// Prints while the bar is hidden.
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
