//! Metrics for Prometheus: few, and present from the start. Single files are in the log and in `tailor status`.
//!
//! All names are in [`Metrics::new`]; alert rules and dashboards are tested against what is served.

use crate::config::Build;
use crate::daemon::look::CAUSES;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

type By = Family<[(&'static str, &'static str); 1], Counter>;
/// Severity, rule and agent of findings. All are names of our own, so there is a limited number of them.
pub(crate) type FindingLabels = [(&'static str, &'static str); 3];

const OUTCOMES: &[&str] = &[
    "unchanged",
    "same",
    "clean",
    "findings",
    "fixed",
    "deferred",
    "refused",
    "unsupported",
    "error",
    "gone",
];
const WALKS: &[&str] = &["begin", "time", "overflow"];

/// The user that the daemon runs as: the name from the environment, or else the number.
fn user() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| rustix::process::getuid().as_raw().to_string())
}

/// All metrics.
pub(crate) struct Metrics {
    pub(crate) enforce: Gauge,
    pub(crate) enforce_stores: Gauge,
    pub(crate) roots: Gauge,
    pub(crate) roots_watched: Gauge,
    pub(crate) folders: Gauge,
    pub(crate) files: Gauge,
    pub(crate) waiting: Gauge,
    pub(crate) at_work: Gauge,
    pub(crate) tripped: Gauge,
    pub(crate) hindered: Gauge,
    pub(crate) too_long: Gauge,
    pub(crate) findings: Family<FindingLabels, Gauge>,
    pub(crate) saves_bytes: Gauge,
    pub(crate) vault_bytes: Gauge,
    pub(crate) archive_bytes: Gauge,
    pub(crate) remembered: Gauge,
    pub(crate) remembered_bytes: Gauge,
    pub(crate) config_ok: Gauge,
    pub(crate) last_success: Gauge,
    pub(crate) events: Counter,
    pub(crate) ignored: Counter,
    pub(crate) trips: Counter,
    pub(crate) too_long_said: Counter,
    pub(crate) read_bytes: Counter,
    pub(crate) bytes_written: Counter,
    pub(crate) saved_bytes: Counter,
    pub(crate) freed_bytes: Counter,
    pub(crate) reloads: Counter,
    pub(crate) kept_bytes: Counter,
    pub(crate) generations_ended: Counter,
    pub(crate) generations_dropped: Counter,
    pub(crate) looks: By,
    pub(crate) deferrals: By,
    pub(crate) walks: By,
    pub(crate) lag: Histogram,
    pub(crate) look_seconds: Histogram,
    registry: Registry,
}

impl Metrics {
    pub(crate) fn new(build: &Build) -> Self {
        // More than one daemon may write a file for the same collector.
        let labels = [("user".into(), user().into())];
        let mut make = Maker { registry: Registry::with_prefix_and_labels("tailor", labels.into_iter()) };
        make.build_info(build);
        Self {
            enforce: make.gauge("enforce", "1 if transcripts are repaired, 0 if problems are only reported"),
            enforce_stores: make.gauge("enforce_stores", "1 if sessions in databases are repaired"),
            roots: make.gauge("roots", "Watched roots"),
            roots_watched: make.gauge("roots_watched", "Roots whose changes the kernel reports"),
            folders: make.gauge("watches", "Folders that the kernel watches"),
            files: make.gauge("files", "Known transcripts, each session in a database among them"),
            waiting: make.gauge("files_waiting", "Transcripts waiting to be checked"),
            at_work: make.gauge("files_at_work", "Transcripts being checked"),
            tripped: make
                .gauge("files_tripped", "Transcripts left alone for a while after repeated failures"),
            hindered: make
                .gauge("files_hindered", "Transcripts waiting for disk space, permissions or the like"),
            too_long: make.gauge("files_too_long", "Transcripts whose last request was too long"),
            findings: make
                .findings("findings", "Findings in transcripts now, of each kind that was ever seen"),
            last_success: make.gauge(
                "last_success_timestamp_seconds",
                "When a root was last walked or a transcript last checked without an error",
            ),
            saves_bytes: make.gauge("saves_bytes", "Bytes that repairing them would save"),
            vault_bytes: make.gauge("vault_bytes", "Size of the originals after the last cleanup"),
            archive_bytes: make.gauge("archive_bytes", "Size of what is kept of sessions"),
            config_ok: make
                .gauge("config_ok", "1 if the configuration files are in use, 0 if they have errors"),
            events: make.counter("events", "File events seen"),
            ignored: make.counter("ignored_events", "Events about files beyond the limit of known files"),
            trips: make.counter("trips", "How often a transcript was left alone after repeated failures"),
            remembered: make.gauge("remembered_files", "Transcripts of which only appended bytes are read"),
            remembered_bytes: make.gauge("remembered_bytes", "Memory used to remember them"),
            read_bytes: make.counter("read_bytes", "Bytes read from transcripts"),
            too_long_said: make
                .counter("too_long_said", "How often an agent recorded that a request was too long"),
            bytes_written: make
                .counter("bytes_written", "Bytes written to replace transcripts, without the vault"),
            saved_bytes: make.counter("saved_bytes", "Bytes by which transcripts were shortened"),
            freed_bytes: make.counter("vault_freed_bytes", "Originals deleted because of their age"),
            kept_bytes: make.counter("kept_bytes", "Bytes by which sessions have grown, and which were kept"),
            generations_ended: make.counter(
                "generations_ended",
                "How often a session was deleted, emptied, truncated or rewritten, and what it was before was kept",
            ),
            generations_dropped: make
                .counter("generations_dropped", "Kept generations that were dropped because of their age or size"),
            reloads: make.counter("reloads", "How often the configuration was reloaded"),
            looks: make.by("looks", "Looks at transcripts", "outcome", OUTCOMES),
            deferrals: make.by("deferrals", "Deferrals by reason", "reason", CAUSES),
            walks: make.by("walks", "Walks through roots", "why", WALKS),
            lag: make.histogram("lag_seconds", "Time from when a transcript was due to when it was done"),
            look_seconds: make.histogram("look_seconds", "How long a look took"),
            registry: make.registry,
        }
    }

    /// Remembers that a look just succeeded.
    pub(crate) fn succeeded(&self) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_success.set(whole(since.as_secs()));
    }

    /// All metrics in Prometheus's text format, which collectors that read files understand as well.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        plain_text(&text)
    }
}

/// Converts from `OpenMetrics` to the older text format, the only one that collectors of files read. It describes a
/// counter by the name of its samples.
fn plain_text(text: &str) -> String {
    let is_counter = |name: &str| text.contains(&format!("\n# TYPE {name} counter\n"));
    let mut plain = String::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(what), Some(name), Some(rest)) if is_counter(name) => {
                // Writing to a string cannot fail.
                let _ = writeln!(plain, "# {what} {name}_total {rest}");
            }
            _ => {
                plain.push_str(line);
                plain.push('\n');
            }
        }
    }
    plain
}

/// Registers metrics as it makes them.
struct Maker {
    registry: Registry,
}

impl Maker {
    fn build_info(&mut self, build: &Build) {
        let family = Family::<[(&'static str, String); 3], Gauge>::default();
        let labels = [
            ("version", env!("CARGO_PKG_VERSION").to_string()),
            ("target", build.target.clone()),
            ("commit", build.commit.clone()),
        ];
        family.get_or_create(&labels).set(1);
        self.registry.register("build_info", "The program that is running", family);
    }

    fn findings(&mut self, name: &str, help: &str) -> Family<FindingLabels, Gauge> {
        let family = Family::default();
        self.registry.register(name, help, family.clone());
        family
    }

    fn gauge(&mut self, name: &str, help: &str) -> Gauge {
        let gauge = Gauge::default();
        self.registry.register(name, help, gauge.clone());
        gauge
    }

    fn counter(&mut self, name: &str, help: &str) -> Counter {
        let counter = Counter::default();
        self.registry.register(name, help, counter.clone());
        counter
    }

    fn by(&mut self, name: &str, help: &str, label: &'static str, values: &[&'static str]) -> By {
        let family = By::default();
        self.registry.register(name, help, family.clone());
        for value in values {
            drop(family.get_or_create(&[(label, value)]));
        }
        family
    }

    fn histogram(&mut self, name: &str, help: &str) -> Histogram {
        let bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];
        let histogram = Histogram::new(bounds);
        self.registry.register(name, help, histogram.clone());
        histogram
    }
}

/// Converts a number for a gauge.
pub(crate) fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_there_from_the_start() {
        let text = Metrics::new(&Build { target: "t".to_string(), commit: "c".to_string() }).text();
        let user = format!("user=\"{}\"", user());
        let version = env!("CARGO_PKG_VERSION");
        for line in [
            "# TYPE tailor_events_total counter",
            &format!("tailor_files{{{user}}} 0"),
            &format!("tailor_last_success_timestamp_seconds{{{user}}} 0"),
            &format!("tailor_build_info{{{user},version=\"{version}\",target=\"t\",commit=\"c\"}} 1"),
            &format!("tailor_bytes_written_total{{{user}}} 0"),
            &format!("tailor_saved_bytes_total{{{user}}} 0"),
            &format!("tailor_looks_total{{{user},outcome=\"fixed\"}} 0"),
            &format!("tailor_deferrals_total{{{user},reason=\"in-use\"}} 0"),
            &format!("tailor_lag_seconds_count{{{user}}} 0"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
