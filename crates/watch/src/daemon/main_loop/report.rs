//! Logs the result of a look: one line per action, with numbers, names and reasons, but no content of transcripts.

use super::Daemon;
use crate::daemon::look::{Findings, LookReport, ReadFile};
use crate::daemon::metrics::whole;
use crate::daemon::queue::{AfterLook, Cure, Done, Job, Tick};
use keeper::{Tokens, plain};
use std::path::Path;
use std::time::Duration;
use tracing::{debug, info, warn};
use transcript::Severity;

/// The last log entry about a file that is not clean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LastReport {
    pub(super) outcome: &'static str,
    /// The reason's kind. Unlike the text, it has no times in it.
    cause: &'static str,
    pub(super) reason: String,
    /// When the file was looked at.
    pub(super) at: Tick,
    findings: Findings,
    saves_bytes: u64,
}

impl Daemon {
    /// Handles a worker's report on a file.
    pub(super) fn looked(&mut self, report: &LookReport, now: Tick) {
        if matches!(report.done, Done::Listed { .. } | Done::Gone) {
            self.listed(report, now);
        }
        let after = self.queue.done(&report.job, &report.done, now);
        if let Done::Deferred { cure: Cure::Exit(pid), .. } = report.done {
            self.exits.wait_for(pid, &report.job.path);
        }
        self.metrics.look_seconds.observe(report.took.as_secs_f64());
        self.metrics.read_bytes.inc_by(report.read_bytes);
        let Some(seen) = &report.seen else {
            let word = match report.done {
                Done::Gone => "gone",
                Done::Listed { .. } => "listed",
                _ => "unchanged",
            };
            self.metrics.looks.get_or_create(&[("outcome", word)]).inc();
            // A store that can be listed again has no problem any more.
            if matches!(report.done, Done::Gone | Done::Listed { .. }) {
                self.forget(&report.job.path);
            }
            return;
        };
        self.metrics.lag.observe(now.since(report.job.due).as_secs_f64());
        self.metrics.looks.get_or_create(&[("outcome", seen.outcome)]).inc();
        if seen.outcome != "error" {
            self.metrics.succeeded();
        }
        if seen.outcome == "deferred" {
            self.metrics.deferrals.get_or_create(&[("reason", seen.cause)]).inc();
        }
        self.report_too_long(&report.job, seen);
        // The last report still holds.
        if seen.outcome == "same" {
            return;
        }
        let file = name(&report.job.path);
        if seen.outcome == "fixed" {
            self.metrics.bytes_written.inc_by(seen.after);
            self.metrics.saved_bytes.inc_by(seen.saved_bytes);
            fixed(&file, seen);
        }
        let tripped = matches!(after, AfterLook::Tripped(_));
        let before = self.last_reports.get(&report.job.path);
        let (findings, saves_bytes) = match before {
            _ if seen.counted => (seen.findings.clone(), seen.saves_bytes),
            Some(last) => (last.findings.clone(), last.saves_bytes),
            None => (Findings::new(), 0),
        };
        let news = LastReport {
            outcome: if tripped { "tripped" } else { seen.outcome },
            cause: seen.cause,
            reason: if tripped { why_left_alone(seen) } else { said_of(seen) },
            at: now,
            findings,
            saves_bytes,
        };
        let is_refused = news.is_refused() && !before.is_some_and(LastReport::is_refused);
        let is_news = is_refused || before.is_none_or(|before| !before.says_the_same(&news));
        if let AfterLook::Tripped(rest) = after {
            self.metrics.trips.inc();
            left_alone(&file, seen, rest);
        } else if is_news {
            log_look(&file, seen, is_refused);
        }
        let quiet = matches!(news.outcome, "clean" | "fixed" | "unsupported") && news.findings.is_empty();
        self.remember(&report.job.path, (!quiet).then_some(news));
    }

    /// Takes note of the sessions in a store, and of those that are gone; all of them if the store is.
    fn listed(&mut self, report: &LookReport, now: Tick) {
        let (gone, has_room) = self.queue.listed(&report.job.path, &report.sessions, now);
        for path in &gone {
            self.forget(path);
        }
        self.is_full(!has_room);
    }

    fn forget(&mut self, path: &std::sync::Arc<Path>) {
        self.too_long.remove(path);
        self.remember(path, None);
    }

    /// Logs it, once, if an agent says that its session is too long.
    fn report_too_long(&mut self, job: &Job, seen: &ReadFile) {
        let path = &job.path;
        // A look that did not read the file cannot tell.
        if seen.too_long.is_none() && !seen.counted && seen.outcome != "same" {
            return;
        }
        let Some(failure) = seen.too_long else {
            self.too_long.remove(path);
            return;
        };
        let before = self.too_long.insert(path.clone(), failure);
        // Our own change may have moved the line.
        if before == Some(failure) || (before.is_some() && seen.outcome == "fixed") {
            return;
        }
        let (file, cause, line) = (name(path), failure.cause.name(), failure.line);
        self.metrics.too_long_said.inc();
        let way_out = match job.store {
            Some(_) => "tailor export prints a copy, which tailor recover can shorten",
            None => "to shorten it, run: tailor recover",
        };
        warn!(
            event = "too-long",
            path = file,
            line,
            agent = seen.agent,
            cause,
            "{file}: line {line} records that the API refused it as too long ({cause}); {way_out}"
        );
    }

    /// Forgets files that are no longer watched, and takes their findings out of the metrics.
    pub(super) fn forget_gone(&mut self) {
        let is_gone = |path: &&std::sync::Arc<Path>| !self.queue.knows(path);
        let gone: Vec<_> = self.last_reports.keys().filter(is_gone).cloned().collect();
        for path in &gone {
            self.remember(path, None);
        }
        self.too_long.retain(|path, _| self.queue.knows(path));
    }

    /// Remembers the log entry, and adds it to the metrics.
    fn remember(&mut self, path: &std::sync::Arc<Path>, news: Option<LastReport>) {
        let before = match &news {
            Some(news) => self.last_reports.insert(path.clone(), news.clone()),
            None => self.last_reports.remove(path),
        };
        let (news, before) = (news.unwrap_or_default(), before.unwrap_or_default());
        for (report, sign) in [(&news, 1), (&before, -1)] {
            for (kind, count) in &report.findings {
                self.metrics.findings.get_or_create(kind).inc_by(sign * whole(*count));
            }
        }
        self.metrics.saves_bytes.inc_by(whole(news.saves_bytes) - whole(before.saves_bytes));
    }
}

impl LastReport {
    /// How many findings there are.
    pub(super) fn count(&self) -> u64 {
        self.findings.values().sum()
    }

    /// Whether the API will refuse the session.
    fn is_refused(&self) -> bool {
        let error = ("severity", Severity::Error.name());
        self.findings.keys().any(|labels| labels.contains(&error))
    }

    fn says_the_same(&self, other: &Self) -> bool {
        let key = |report: &Self| (report.outcome, report.cause, report.count(), report.saves_bytes);
        key(self) == key(other) && (self.outcome == "deferred" || self.reason == other.reason)
    }
}

/// A path, escaped for the log.
pub(super) fn name(path: &Path) -> String {
    plain(&path.to_string_lossy())
}

fn fixed(file: &str, seen: &ReadFile) {
    let (codes, late, sentence) = (seen.codes.join(","), late(seen), done(seen));
    if let Some(tokens) = seen.recovered {
        info!(
            event = "recovered",
            path = file,
            agent = seen.agent,
            run = seen.run,
            bytes = seen.before,
            bytes_after = seen.after,
            tokens = tokens.before.tokens,
            tokens_after = tokens.after,
            window_tokens = tokens.before.window,
            late,
            "{file}: {sentence}"
        );
        return;
    }
    let left = (!seen.left.is_empty()).then(|| seen.left.join(","));
    info!(
        event = "fixed",
        path = file,
        entry_ids = plain(&seen.entries.join(",")),
        agent = seen.agent,
        run = seen.run,
        bytes = seen.before,
        bytes_after = seen.after,
        remaining = seen.findings.values().sum::<u64>(),
        found_codes = codes,
        left_codes = left,
        late,
        "{file}: {sentence}"
    );
}

/// Why late lines still wait, if there are any. Nothing else needs to be said about a finished fix.
fn late(seen: &ReadFile) -> Option<String> {
    seen.reason.as_deref().map(plain)
}

/// A sentence about what was done to a file.
fn done(seen: &ReadFile) -> String {
    let what = seen.recovered.map_or_else(|| format!("fixed {}", seen.codes.join(",")), shortened);
    let run = seen.run.as_deref().unwrap_or("unknown");
    let late = late(seen).map(|late| format!("; {late}")).unwrap_or_default();
    let codes = seen.left.join(",");
    let left =
        if seen.recovered.is_none() && !codes.is_empty() { format!("; left {codes}") } else { String::new() };
    format!("{what}: {} -> {} bytes, run {run}{left}{late}", seen.before, seen.after)
}

/// A sentence about how a session that was too long was shortened.
fn shortened(tokens: Tokens) -> String {
    let (before, window) = (tokens.before.tokens, tokens.before.window);
    let (word, over) = if tokens.is_over() { ("shortened", ", still too long") } else { ("recovered", "") };
    format!("{word}, {before} -> {} of {window} tokens{over}", tokens.after.unwrap_or(before))
}

/// Logs one line, as a warning if the condition holds.
macro_rules! log {
    ($warns:expr, $($line:tt)*) => {
        if $warns { warn!($($line)*) } else { info!($($line)*) }
    };
}

/// `is_refused`: it is news that the API will refuse the session.
fn log_look(file: &str, seen: &ReadFile, is_refused: bool) {
    let reason = said_of(seen);
    let (event, codes) = (seen.outcome, seen.codes.join(","));
    let findings: u64 = seen.findings.values().sum();
    let refused = if is_refused { "the API will refuse this session: " } else { "" };
    match event {
        "findings" => log!(
            is_refused,
            event,
            path = file,
            entry_ids = plain(&seen.entries.join(",")),
            agent = seen.agent,
            findings_total = findings,
            bytes = seen.before,
            saves_bytes = seen.saves_bytes,
            found_codes = codes,
            "{file}: {refused}{findings} finding{} ({codes}), {} bytes to save",
            if findings == 1 { "" } else { "s" },
            seen.saves_bytes
        ),
        "deferred" => {
            log!(
                is_refused,
                event,
                path = file,
                agent = seen.agent,
                reason,
                "{file}: {refused}deferred: {reason}"
            );
        }
        "refused" | "error" => {
            warn!(event, path = file, agent = seen.agent, reason, "{file}: {event}: {reason}");
        }
        _ => debug!(event, path = file, reason, "{file}: {event}"),
    }
}

/// The reason for the outcome; empty if there is none.
fn said_of(seen: &ReadFile) -> String {
    plain(seen.reason.as_deref().unwrap_or_default())
}

fn why_left_alone(seen: &ReadFile) -> String {
    let again = "the same repair was made again and again";
    plain(seen.reason.as_deref().unwrap_or(again))
}

fn left_alone(file: &str, seen: &ReadFile, rest: Duration) {
    let why = why_left_alone(seen);
    let rest_seconds = rest.as_secs();
    warn!(
        event = "tripped",
        path = file,
        agent = seen.agent,
        retry_seconds = rest_seconds,
        reason = why,
        "{file}: left alone for {rest_seconds} s: {why}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use transcript::shorten::Length;

    #[test]
    fn lines_that_still_wait_are_logged_with_what_was_done() {
        let fixed = ReadFile {
            codes: vec!["P1", "S1"],
            before: 20,
            after: 10,
            run: Some("r".into()),
            ..ReadFile::default()
        };
        assert_eq!(done(&fixed), "fixed P1,S1: 20 -> 10 bytes, run r");
        let some = ReadFile { left: vec!["S6", "S18"], ..fixed };
        assert_eq!(done(&some), "fixed P1,S1: 20 -> 10 bytes, run r; left S6,S18");
        let fixed = ReadFile { left: Vec::new(), ..some };
        let late = ReadFile { reason: Some("lines wait\n".into()), ..fixed };
        assert_eq!(done(&late), "fixed P1,S1: 20 -> 10 bytes, run r; lines wait\\u{a}");
        let before = Length { tokens: 220_000, estimated: 9, window: 200_000, foreign: None };
        let (after, target) = (Some(110_000), Some(120_000));
        let tokens = Tokens { before, after, target, thinking_removed: 0, unable: None };
        let recovered = ReadFile { recovered: Some(tokens), ..late };
        let said = "recovered, 220000 -> 110000 of 200000 tokens: 20 -> 10 bytes, run r; lines wait\\u{a}";
        assert_eq!(done(&recovered), said);
    }
}
