//! A report: one page that draws itself from the data in it, and asks nothing of any network.
//!
//! What comes from transcripts reaches the page as JSON in which no character could end its element, and the page
//! makes text nodes of it. Its own script is let in by a number that no transcript can know.

use crate::place::shown_word;
use crate::remedy;
use crate::report::{FindingReport, count};
use crate::sessions::{SessionState, judged_apart, project};
use crate::size_report::{Share, SizeReport, SizeTotals, ToolShare};
use crate::terminal::shell_word;
use keeper::Refusal;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use transcript::weight::{Category, Standing};
use transcript::{Finding, Headline, Mended, Messages, Severity};

const HTML: &str = include_str!("page/page.html");
const CSS: &str = include_str!("page/page.css");
const JS: &str = include_str!("page/page.js");

/// How much all sessions together may tell: points of curves, rows of tables. A page with ten thousand sessions stays
/// below two megabytes.
const POINTS: usize = 9_000;
const ROWS: usize = 2_500;
/// How many sessions are drawn one by one: those with most errors, and the largest. Of the others a row is told.
const DRAWN: usize = 400;
/// How many bytes all titles may take together in the page, and one of them.
const TITLE_BYTES: usize = 500_000;
const TITLE_BYTES_MAX: usize = 400;
/// How many rows tables over all sessions have.
const ROWS_OVERALL: usize = 24;

/// Bytes and tokens by part.
#[derive(Clone, Default)]
struct PartShares {
    bytes: Vec<u64>,
    tokens: Vec<u64>,
}

impl PartShares {
    fn from_shares(shares: &[Share]) -> Self {
        Self {
            bytes: shares.iter().map(|share| share.bytes).collect(),
            tokens: shares.iter().map(|share| share.tokens).collect(),
        }
    }

    fn add(&mut self, other: &Self) {
        for (all, own) in [(&mut self.bytes, &other.bytes), (&mut self.tokens, &other.tokens)] {
            all.resize(own.len().max(all.len()), 0);
            all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
        }
    }
}

/// One transcript that was looked at.
pub(crate) struct ScanResult {
    pub(crate) weighed: SizeReport,
    after: PartShares,
    bytes_after: u64,
    findings: Vec<FindingReport>,
    /// How many findings of each rule a fix mends.
    mended: BTreeMap<&'static str, u64>,
    /// Why nothing can be mended.
    unmended: Option<String>,
    headline: Headline,
    state: SessionState,
    /// What repairs it, up to its path.
    command: Option<String>,
    modified: Option<u64>,
    errors: u64,
    messages: Messages,
    dead_weight: u64,
}

/// What of the text of transcripts the page shows.
#[derive(Clone, Copy)]
pub(crate) struct PageContent {
    /// How the largest entries begin.
    pub(crate) content: bool,
    /// Titles, and what sessions without one begin with.
    pub(crate) titles: bool,
}

impl ScanResult {
    /// What was found, and what it weighs before and after a fix.
    pub(crate) fn new(weighed: SizeReport, after: Option<&SizeReport>, mended: &Mended, window: u64) -> Self {
        let before = &mended.before.findings;
        let path = Path::new(&weighed.path);
        let (state, command) = judged_apart(&mended.before, path, window);
        let word = shown_word(path);
        let command = command.and_then(|command| Some(command.strip_suffix(&word)?.to_string()));
        let modified = path.metadata().and_then(|there| there.modified()).ok();
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let is_error = |finding: &&Finding| finding.severity == Severity::Error;
        let (left, unmended) = match &mended.repair {
            Ok(repair) => (repair.after.as_ref().map_or(before, |after| &after.findings), None),
            Err(worse) => (before, Some(Refusal::Worse(*worse).to_string())),
        };
        let mut gone: BTreeMap<&'static str, u64> = BTreeMap::new();
        for finding in before {
            *gone.entry(finding.rule.code()).or_default() += finding.count();
        }
        for finding in left {
            gone.entry(finding.rule.code())
                .and_modify(|count| *count = count.saturating_sub(finding.count()));
        }
        let after = after.unwrap_or(&weighed);
        Self {
            headline: mended.before.headline.clone(),
            state,
            command,
            modified: since.map(|since| since.as_secs()),
            errors: before.iter().filter(is_error).map(Finding::count).sum(),
            messages: mended.before.messages,
            dead_weight: remedy::dead_weight(before),
            after: PartShares::from_shares(&after.parts),
            bytes_after: after.bytes,
            findings: before
                .iter()
                .map(|finding| FindingReport::new(Path::new(&weighed.path), finding.clone()))
                .collect(),
            mended: gone,
            unmended,
            weighed,
        }
    }
}

/// Whether a fix would shorten something.
fn cuts(found: &FindingReport) -> bool {
    found.fix == "safe" && found.code.starts_with('S')
}

/// One session, as `report --json` tells of it.
#[derive(Serialize)]
#[serde(tag = "type", rename = "report-session")]
struct Line<'a> {
    path: &'a str,
    format: &'static str,
    state: &'static str,
    entries: usize,
    tokens: u64,
    bytes: u64,
    bytes_after: u64,
    findings_total: u64,
    errors_total: u64,
    messages_total: usize,
    messages_in_context: usize,
    messages_in_context_after: usize,
}

/// The last line of `report --json`.
#[derive(Serialize)]
#[serde(tag = "type", rename = "report")]
struct SumsLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<String>,
    sessions: u64,
    tokens: u64,
    bytes: u64,
    bytes_after: u64,
    findings_total: u64,
    errors_total: u64,
    unsupported: u64,
    refused: u64,
    errors: u64,
}

/// All that the page is drawn from.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    version: &'static str,
    made: String,
    content: bool,
    titles: bool,
    /// The folder that relative paths begin at.
    here: String,
    parts: Vec<&'static str>,
    standings: Vec<&'static str>,
    tools: Vec<String>,
    /// Folders, projects and commands of sessions, by which their rows name them.
    names: Vec<String>,
    /// Name, the worst severity, and what the rule is about: what it finds, why that matters, what a fix does.
    rules: BTreeMap<&'static str, (&'static str, &'static str, [&'static str; 3])>,
    totals: Sums,
    standing_bytes: Vec<u64>,
    part_bytes: Vec<u64>,
    part_bytes_after: Vec<u64>,
    part_tokens: Vec<u64>,
    part_tokens_after: Vec<u64>,
    tool_rows: Vec<ToolData>,
    fields: Vec<(String, u64)>,
    kinds: Vec<(String, u64)>,
    /// Code, how many, in how many sessions, how many a fix mends.
    findings: Vec<(&'static str, u64, u64, u64)>,
    troubles: Vec<(String, String)>,
    sessions: Vec<SessionRow>,
    /// More about the first of them.
    drawn: Vec<SessionData>,
}

/// What is told of every session. Names are indices, or -1 where there is none.
#[derive(Serialize)]
struct SessionRow(
    /// Its folder, and the name of its file.
    i64,
    String,
    &'static str,
    /// Its title, or nothing.
    String,
    /// Its project.
    i64,
    /// When it was written, in seconds.
    u64,
    /// How it is, how many messages the repair brings back, and the command that repairs it, without the path.
    &'static str,
    usize,
    i64,
    /// Its whole path as a word of a shell, unless it is that already.
    Option<String>,
    /// Errors, and findings.
    u64,
    u64,
    /// Bytes, now and after a fix.
    u64,
    u64,
    /// Entries, turns, tokens, and whether these are exact.
    usize,
    usize,
    u64,
    u8,
);

/// Index of the tool's name, calls, bytes, tokens of results.
type ToolData = (i64, u64, u64, u64);

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sums {
    sessions: u64,
    bytes: u64,
    after: u64,
    dead_weight: u64,
    entries: u64,
    tokens: u64,
    exact: bool,
    findings: u64,
    ailing: u64,
    unsupported: u64,
    refused: u64,
    errors: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionData {
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unmended: Option<String>,
    standings: Vec<u64>,
    parts: Vec<u64>,
    /// Empty if they stay the same.
    parts_after: Vec<u64>,
    part_tokens: Vec<u64>,
    part_tokens_after: Vec<u64>,
    tools: Vec<ToolData>,
    /// Turn, bytes so far, tokens in the context, compactions, cuts made, cuts that a fix would make.
    points: Vec<(usize, u64, u64, u32, u32, u32)>,
    /// Line, bytes, part, standing, tool, how it begins.
    largest: Vec<(u64, u64, usize, usize, i64, Option<String>)>,
    findings: Vec<(&'static str, u64, &'static str)>,
}

/// Names, each once.
#[derive(Default)]
struct NameList {
    names: Vec<String>,
    known: HashMap<String, i64>,
}

impl NameList {
    fn id(&mut self, name: &str) -> i64 {
        let next = i64::try_from(self.names.len()).unwrap_or(i64::MAX);
        let id = *self.known.entry(name.to_string()).or_insert(next);
        if id == next {
            self.names.push(name.to_string());
        }
        id
    }

    fn rows(&mut self, tools: &[ToolShare], max: usize) -> Vec<ToolData> {
        let mut tools: Vec<&ToolShare> = tools.iter().collect();
        tools.sort_by_key(|tool| Reverse((tool.result_tokens, tool.bytes)));
        let rows = tools.into_iter().take(max);
        rows.map(|tool| (self.id(&tool.name), tool.calls, tool.bytes, tool.result_tokens)).collect()
    }
}

/// What the whole page is about.
#[derive(Default)]
pub(crate) struct Page {
    totals: SizeTotals,
    looked: Vec<ScanResult>,
    after: PartShares,
    sums: Sums,
    troubles: Vec<(String, String)>,
}

impl Page {
    /// Adds a transcript.
    pub(crate) fn add(&mut self, looked: ScanResult) {
        let weighed = &looked.weighed;
        self.totals.add(weighed);
        self.after.add(&looked.after);
        let sums = &mut self.sums;
        sums.exact = weighed.context.exact && (sums.exact || sums.sessions == 0);
        sums.sessions += 1;
        sums.bytes += weighed.bytes;
        sums.after += looked.bytes_after;
        sums.dead_weight += looked.dead_weight;
        sums.entries += weighed.entries as u64;
        sums.tokens += weighed.context.tokens;
        sums.findings += count(&looked.findings);
        sums.ailing += u64::from(!looked.findings.is_empty());
        self.looked.push(looked);
    }

    /// Adds a file that could not be looked at. `told` says whether the page names it.
    pub(crate) fn add_trouble(&mut self, weighed: SizeReport, told: bool) {
        match weighed.outcome {
            "unsupported" => self.sums.unsupported += 1,
            "refused" => self.sums.refused += 1,
            _ => self.sums.errors += 1,
        }
        if told {
            self.troubles.push((weighed.path, weighed.reason.unwrap_or_default()));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.looked.is_empty()
    }

    /// How many transcripts it is about.
    pub(crate) fn sessions(&self) -> u64 {
        self.sums.sessions
    }

    /// What it is about, as `--json` prints it: a line for each session, and one for all; `page` is the file that it is
    /// written to.
    pub(crate) fn json_lines(&self, page: Option<String>) -> serde_json::Result<Vec<String>> {
        let line = |looked: &ScanResult| {
            let weighed = &looked.weighed;
            serde_json::to_string(&Line {
                path: &weighed.path,
                format: weighed.format.unwrap_or_default(),
                state: looked.state.name(),
                entries: weighed.entries,
                tokens: weighed.context.tokens,
                bytes: weighed.bytes,
                bytes_after: looked.bytes_after,
                findings_total: count(&looked.findings),
                errors_total: looked.errors,
                messages_total: looked.messages.all,
                messages_in_context: looked.messages.seen,
                messages_in_context_after: looked.messages.seen + looked.messages.brought_back,
            })
        };
        let lines = self.looked.iter().map(line);
        let Sums { sessions, bytes, after, tokens, findings, unsupported, refused, errors, .. } = self.sums;
        let errors_total = self.looked.iter().map(|looked| looked.errors).sum();
        let (findings_total, bytes_after) = (findings, after);
        let of_all = SumsLine {
            page,
            sessions,
            tokens,
            bytes,
            bytes_after,
            findings_total,
            errors_total,
            unsupported,
            refused,
            errors,
        };
        lines.chain([serde_json::to_string(&of_all)]).collect()
    }

    /// The worst first.
    fn findings(&self) -> Vec<(&'static str, u64, u64, u64)> {
        let mut all: BTreeMap<&'static str, (Severity, u64, u64, u64)> = BTreeMap::new();
        for looked in &self.looked {
            let mut own: BTreeMap<&'static str, (Severity, u64)> = BTreeMap::new();
            for finding in &looked.findings {
                let (worst, count) = own.entry(finding.code).or_insert((finding.severity, 0));
                (*worst, *count) = ((*worst).max(finding.severity), *count + 1 + finding.more);
            }
            for (code, (worst, count)) in own {
                let sums = all.entry(code).or_insert((worst, 0, 0, 0));
                let mended = looked.mended.get(code).copied().unwrap_or(0);
                *sums = (sums.0.max(worst), sums.1 + count, sums.2 + 1, sums.3 + mended);
            }
        }
        let mut rows: Vec<_> = all.into_iter().collect();
        rows.sort_by_key(|&(code, (worst, count, ..))| (Reverse(worst), Reverse(count), code));
        rows.into_iter().map(|(code, (_, count, files, gone))| (code, count, files, gone)).collect()
    }

    fn rules(&self) -> BTreeMap<&'static str, (&'static str, &'static str, [&'static str; 3])> {
        let mut rules: BTreeMap<&'static str, (&'static str, Severity)> = BTreeMap::new();
        for found in self.looked.iter().flat_map(|looked| &looked.findings) {
            let known = rules.entry(found.code).or_insert((found.rule, found.severity));
            known.1 = known.1.max(found.severity);
        }
        let about = |code| transcript::rule::find(code).map(|rule| rule.help());
        let about = |code| about(code).map_or([""; 3], |help| [help.what, help.why, help.fix]);
        let rules = rules.into_iter();
        rules.map(|(code, (rule, severity))| (code, (rule, severity.name(), about(code)))).collect()
    }

    fn data(mut self, made: String, shown: PageContent) -> Data {
        let summary = self.totals.summary(Duration::ZERO, ROWS_OVERALL);
        let findings = self.findings();
        let rules = self.rules();
        let key = |looked: &ScanResult| (Reverse(looked.errors), Reverse(looked.weighed.bytes));
        self.looked.sort_by(|a, b| (key(a), &a.weighed.path).cmp(&(key(b), &b.weighed.path)));
        let (mut tools, mut names) = (NameList::default(), NameList::default());
        let tool_rows = tools.rows(&summary.tools, ROWS_OVERALL);
        let bytes = if shown.titles { TITLE_BYTES / self.looked.len().max(1) } else { 0 };
        let bytes = bytes.min(TITLE_BYTES_MAX);
        let sessions = self.looked.iter().map(|looked| session_row(looked, bytes, &mut names)).collect();
        self.looked.truncate(DRAWN);
        let count = self.looked.len().max(1);
        let (points, rows) = ((POINTS / count).clamp(8, 240), (ROWS / count).clamp(2, 12));
        let session = |looked| session_data(looked, points, rows, &mut tools);
        let drawn = self.looked.into_iter().map(session).collect();
        let before = PartShares::from_shares(&summary.parts);
        let amounts =
            |shares: Vec<Share>| shares.into_iter().map(|s| (s.name.into_owned(), s.bytes)).collect();
        Data {
            version: env!("CARGO_PKG_VERSION"),
            made,
            content: shown.content,
            titles: shown.titles,
            here: absolute(Path::new("")),
            parts: Category::ALL.map(Category::name).to_vec(),
            standings: Standing::ALL.map(Standing::name).to_vec(),
            tools: tools.names,
            names: names.names,
            rules,
            totals: self.sums,
            standing_bytes: summary.standings.iter().map(|share| share.bytes).collect(),
            part_bytes: before.bytes,
            part_bytes_after: self.after.bytes,
            part_tokens: before.tokens,
            part_tokens_after: self.after.tokens,
            tool_rows,
            fields: amounts(summary.fields),
            kinds: amounts(summary.kinds),
            findings,
            troubles: self.troubles,
            sessions,
            drawn,
        }
    }

    /// Writes the page.
    pub(crate) fn write(self, out: &mut impl Write, made: String, shown: PageContent) -> io::Result<()> {
        let data = escape(&serde_json::to_string(&self.data(made, shown))?);
        // Nobody who wrote a transcript can know what else is on the page, and when it was made.
        let nonce = blake3::hash(data.as_bytes()).to_hex();
        for (n, text) in HTML.split('@').enumerate() {
            out.write_all(match (n % 2, text) {
                (1, "NONCE") => nonce.as_bytes(),
                (1, "CSS") => CSS.as_bytes(),
                (1, "JS") => JS.as_bytes(),
                (1, "DATA") => data.as_bytes(),
                _ => text.as_bytes(),
            })?;
        }
        Ok(())
    }
}

/// What is told of every session, with so many characters of its title.
/// As much of a title as fits, as the page spells it.
fn begin(title: &str, bytes: usize) -> String {
    let mut left = bytes;
    let fits = |c: &char| {
        let is_escaped = c.is_control() || "<>&\"\\".contains(*c);
        let fitting = left.checked_sub(if is_escaped { 6 } else { c.len_utf8() });
        left = fitting.unwrap_or(0);
        fitting.is_some()
    };
    title.chars().take_while(fits).collect()
}

/// The path from the root on; of a folder with a separator at its end.
fn absolute(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    here.join(path).to_string_lossy().into_owned()
}

fn session_row(looked: &ScanResult, title_bytes: usize, names: &mut NameList) -> SessionRow {
    let weighed = &looked.weighed;
    let path = Path::new(&weighed.path);
    let name = path.file_name().map_or(weighed.path.as_str(), |name| name.to_str().unwrap_or_default());
    let folder = weighed.path.strip_suffix(name).unwrap_or_default();
    let title = looked.headline.title.as_deref().unwrap_or_default();
    let whole = absolute(path);
    let word = shell_word(&whole);
    SessionRow(
        names.id(folder),
        name.to_string(),
        weighed.format.unwrap_or_default(),
        begin(title, title_bytes),
        project(&looked.headline).map_or(-1, |name| names.id(name)),
        looked.modified.unwrap_or(0),
        looked.state.name(),
        looked.messages.brought_back,
        looked.command.as_deref().map_or(-1, |command| names.id(command)),
        (word != whole).then_some(word),
        looked.errors,
        count(&looked.findings),
        weighed.bytes,
        looked.bytes_after,
        weighed.entries,
        weighed.turns.len(),
        weighed.context.tokens,
        weighed.context.exact.into(),
    )
}

fn session_data(looked: ScanResult, points: usize, rows: usize, tools: &mut NameList) -> SessionData {
    let points = curve(&looked, points);
    let ScanResult { weighed, after, mut findings, unmended, .. } = looked;
    findings.sort_by_key(|finding| Reverse(finding.severity));
    let parts = PartShares::from_shares(&weighed.parts);
    let unless_same = |after: Vec<u64>, before: &[u64]| if after == before { Vec::new() } else { after };
    let part = |name| Category::ALL.iter().position(|part| part.name() == name).unwrap_or(0);
    let standing = |name| Standing::ALL.iter().position(|standing| standing.name() == name).unwrap_or(0);
    let largest = weighed.largest.into_iter().take(rows).map(|entry| {
        let tool = if entry.tool.is_empty() { -1 } else { tools.id(&entry.tool) };
        (entry.line, entry.bytes, part(entry.part), standing(entry.standing), tool, entry.content)
    });
    let largest = largest.collect();
    SessionData {
        counted: weighed.context.counted_tokens,
        unmended,
        standings: weighed.standings.iter().map(|share| share.bytes).collect(),
        parts_after: unless_same(after.bytes, &parts.bytes),
        part_tokens_after: unless_same(after.tokens, &parts.tokens),
        parts: parts.bytes,
        part_tokens: parts.tokens,
        tools: tools.rows(&weighed.tools, rows),
        points,
        largest,
        findings: findings.iter().take(rows * 4).map(|found| (found.code, found.line, found.fix)).collect(),
    }
}

/// The size over turns, with at most so many points: each stands for some turns, and is as high as the highest.
fn curve(looked: &ScanResult, max: usize) -> Vec<(usize, u64, u64, u32, u32, u32)> {
    let turns = &looked.weighed.turns;
    let mut cutting = vec![0; turns.len()];
    for found in looked.findings.iter().filter(|found| cuts(found)) {
        let turn = turns.partition_point(|turn| turn.line <= found.line).saturating_sub(1);
        if let Some(count) = cutting.get_mut(turn) {
            *count += 1;
        }
    }
    let (mut points, mut bytes) = (Vec::new(), 0);
    for (n, stretch) in turns.chunks(turns.len().div_ceil(max).max(1)).enumerate() {
        let from = n * turns.len().div_ceil(max).max(1);
        bytes += stretch.iter().map(|turn| turn.bytes).sum::<u64>();
        let last = from + stretch.len() == turns.len();
        let highest = stretch.iter().map(|turn| turn.context_tokens).max();
        let context = if last { stretch.last().map(|turn| turn.context_tokens) } else { highest };
        points.push((
            from + stretch.len(),
            bytes,
            context.unwrap_or(0),
            stretch.iter().map(|turn| turn.compactions).sum(),
            stretch.iter().map(|turn| turn.cuts).sum(),
            cutting[from..from + stretch.len()].iter().sum(),
        ));
    }
    points
}

/// JSON in which nothing could end the element that it stands in, or hide.
fn escape(json: &str) -> String {
    let plain = crate::terminal::json(json);
    plain.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Whether there is no file at a path that is not a report. What is no file, and would wait for a writer, is not for
/// this.
pub(crate) fn may_replace(path: &Path) -> io::Result<bool> {
    match std::fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
        Ok(file) => {
            let mut begin = Vec::new();
            io::Read::read_to_end(&mut io::Read::take(file, 1024), &mut begin)?;
            let title = b"<title>Tailor report</title>";
            Ok(begin.is_empty() || begin.windows(title.len()).any(|window| window == title))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn no_data_ends_its_element() {
        let data = serde_json::to_string("</script><!--<b>&amp;\u{2028}\u{1b}").unwrap();
        let escaped = escape(&data);
        assert!(!escaped.contains(['<', '>', '&', '\u{2028}', '\u{1b}']), "{escaped}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), "</script><!--<b>&amp;\u{2028}\u{1b}");
    }
}
