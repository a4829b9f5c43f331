//! The answers to `tailor status` and to metrics collectors.

use super::Daemon;
use super::report::{LastReport, name};
use crate::config::WatchMode;
use crate::daemon::event::{RootState, StatusAnswer};
use crate::daemon::metrics::whole;
use crate::daemon::queue::Tick;
use crate::daemon::systemd;
use crate::daemon::textfile;
use crate::status::{FileTrouble, RootStatus, Status};
use std::fmt::Write as _;
use std::path::PathBuf;
use tracing::error;

/// How many files are named in a list.
const LISTED_MAX: usize = 20;

impl Daemon {
    pub(super) fn answer(&mut self, now: Tick) -> StatusAnswer {
        let metrics = &self.metrics;
        metrics.enforce.set(i64::from(self.looker.enforces()));
        metrics.enforce_stores.set(i64::from(self.config.stores == WatchMode::Enforce));
        metrics.files.set(whole(self.queue.files() as u64));
        metrics.waiting.set(whole(self.queue.waiting() as u64));
        metrics.at_work.set(whole(self.at_work as u64));
        let (remembered, weight) = self.looker.remembers();
        metrics.remembered.set(whole(remembered as u64));
        metrics.remembered_bytes.set(whole(weight as u64));
        metrics.too_long.set(whole(self.too_long.len() as u64));
        metrics.tripped.set(whole(self.queue.tripped() as u64));
        metrics.hindered.set(whole(self.queue.hindered() as u64));
        StatusAnswer { status: self.status(now), metrics: self.metrics.text() }
    }

    /// Writes metrics to a file. An error is reported once.
    pub(super) fn write_textfile(&mut self, now: Tick) {
        let Some(path) = self.config.metrics_textfile.clone() else { return };
        let error = textfile::write(&path, &self.answer(now).metrics).err().map(|cause| cause.to_string());
        if let Some(cause) = error.as_ref().filter(|_| error != self.textfile_error) {
            let path = name(&path);
            error!(event = "textfile", path, reason = cause, "{path}: could not write metrics: {cause}");
        }
        self.textfile_error = error;
    }

    fn status(&self, now: Tick) -> Status {
        let looks = |outcome| self.metrics.looks.get_or_create(&[("outcome", outcome)]).get();
        let read = ["same", "clean", "findings", "fixed", "deferred", "refused", "unsupported", "error"];
        let mut troubles: Vec<FileTrouble> = self
            .last_reports
            .iter()
            // Files with findings, or with some left after a fix, are only counted. Listed are those with a reason that
            // still holds.
            .filter(|(_, last)| last.outcome != "findings" && !last.reason.is_empty())
            .filter(|(path, last)| last.outcome != "deferred" || !self.queue.wait_is_over(path))
            .take(LISTED_MAX)
            .map(|(path, last)| FileTrouble {
                path: name(path),
                outcome: last.outcome.to_string(),
                reason: last.reason.clone(),
                looked_seconds_ago: now.since(last.at).as_secs(),
            })
            .collect();
        troubles.sort_by(|one, other| one.path.cmp(&other.path));
        let count =
            |gauge: &prometheus_client::metrics::gauge::Gauge| u64::try_from(gauge.get()).unwrap_or(0);
        Status {
            version: env!("CARGO_PKG_VERSION").to_string(),
            pid: std::process::id(),
            mode: self.config.mode.name().to_string(),
            stores_mode: self.config.stores.name().to_string(),
            uptime_seconds: now.since(Tick::from_millis(0)).as_secs(),
            roots: self.roots(),
            files: self.queue.files() as u64,
            waiting: self.queue.waiting() as u64,
            at_work: self.at_work as u64,
            tripped: self.queue.tripped() as u64,
            hindered: self.queue.hindered() as u64,
            too_long: self.too_long.keys().take(LISTED_MAX).map(|path| name(path)).collect(),
            looks: read.into_iter().map(looks).sum(),
            same: looks("same"),
            read_bytes: self.metrics.read_bytes.get(),
            fixed: looks("fixed"),
            saved_bytes: self.metrics.saved_bytes.get(),
            findings: self.last_reports.values().map(LastReport::count).sum(),
            saves_bytes: count(&self.metrics.saves_bytes),
            keep_mode: if self.keep.is_some() { "on" } else { "off" }.to_string(),
            archive_bytes: count(&self.metrics.archive_bytes),
            keep_error: self.keep_error.clone(),
            troubles,
            config_error: self.config_error.clone(),
        }
    }

    fn roots(&self) -> Vec<RootStatus> {
        let status = |root: &super::Watched| {
            let (state, reason) = match &root.state {
                None => ("new", None),
                Some(RootState::Watched) => ("watched", None),
                Some(RootState::Polled(why)) => ("polled", Some(why.clone())),
                Some(RootState::Missing) => ("missing", None),
                Some(RootState::Unreadable(why)) => ("unreadable", Some(why.clone())),
            };
            RootStatus {
                path: name(&root.path),
                state: state.to_string(),
                reason,
                folders: root.folders as u64,
                files: self.queue.files_of(root.id) as u64,
            }
        };
        let taken = |(path, why): (&PathBuf, &String)| RootStatus {
            path: name(path),
            state: "taken".to_string(),
            reason: Some(why.clone()),
            ..RootStatus::default()
        };
        self.roots.iter().map(status).chain(self.taken.iter().map(taken)).collect()
    }

    /// Updates the service manager's status line, if it has changed.
    pub(super) fn say_how_it_is(&mut self) {
        let (mode, files) = (self.config.mode.name(), self.queue.files());
        let (waiting, tripped, hindered) =
            (self.queue.waiting(), self.queue.tripped(), self.queue.hindered());
        let fixed = self.metrics.looks.get_or_create(&[("outcome", "fixed")]).get();
        let mut text =
            format!("{mode}: {files} files, {waiting} waiting, {fixed} fixed, {tripped} left alone");
        if hindered > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, ", {hindered} hindered");
        }
        if text != self.status_text {
            systemd::status(&text);
            self.status_text = text;
        }
    }
}
