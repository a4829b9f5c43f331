//! What happens in sessions of every agent, written once: each story is spelled in each format when the tests run.
//!
//! A story says what happens (`tells`), which `damage` its file gets, which findings there must be, on the lines of
//! which event, and what `fix` does about them (`shows`). Formats that differ have a row with the reason. The program
//! under test generates none of this.

pub(crate) mod spell;
mod table;

use spell::{FileForm, FormatSpelling, ROWS, StoryEvent, StoryLine};
use std::mem::take;

/// One story.
pub(crate) struct Story {
    /// The codes that it shows and a few words; with `ok-` it shows nothing.
    pub(crate) name: &'static str,
    /// Arguments for `scan` and `fix`; `~` stands for a space in one.
    pub(crate) arguments: &'static str,
    tells: Vec<StoryEvent>,
    damage: StoryDamage,
    /// What every format shows that has no row in `but`: `CODE@PLACE=OUTCOME`, separated by spaces. A place is the
    /// number of an event; or two of them (`1+2`) if the repair touches both; or a line of the file: `first`, `last`,
    /// `junk`, `nul`.
    shows: &'static str,
    /// Formats that differ, what they show instead (`-`: the story is not spelled in them), and why.
    but: &'static [(&'static str, &'static str, &'static str)],
}

/// Damage to a file.
#[derive(Clone, Copy)]
pub(crate) enum StoryDamage {
    None,
    /// CRLF line ends.
    Crlf,
    /// The last line has no end.
    Open,
    /// The last line is incomplete.
    Torn,
    /// The line break after the last line of this event is missing.
    Glued(usize),
    /// A line that is not a record after the first of these events, and NUL bytes after the second.
    Junk(usize, usize),
    /// A byte order mark at the beginning.
    Bom,
    /// An empty line after this event.
    Blank(usize),
    /// NUL bytes behind the last line, as a file system leaves them after a crash.
    Tail,
    /// The calls of this event have no arguments.
    Bare(usize),
}

/// What happens to a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FindingOutcome {
    /// `fix` repairs it.
    Mended,
    /// `fix` repairs it if allowed.
    Asks,
    /// `fix` repairs such findings elsewhere, but not here.
    Held,
    /// It is only reported.
    Reported,
}

/// A finding that the spelled file has.
#[derive(Clone, Debug)]
pub(crate) struct StoryFinding {
    pub(crate) code: String,
    /// On one of these lines.
    pub(crate) lines: Vec<u64>,
    pub(crate) outcome: FindingOutcome,
}

/// A story spelled in a format.
pub(crate) struct SpelledStory {
    pub(crate) format: &'static str,
    pub(crate) story: &'static str,
    pub(crate) arguments: Vec<String>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) shown: Vec<StoryFinding>,
    /// Lines without findings: a repair must keep them.
    pub(crate) texts: Vec<String>,
}

/// In texts, stands for bytes that are not UTF-8.
const NOT_UTF8: &str = "\u{f8ff}";

/// How formats spell the arguments of a call, with the comma that goes with them.
const ARGUMENTS: [&str; 9] = [
    r#","tool_kwargs":{}"#,
    r#","arguments":"{}""#,
    r#","arguments":{}"#,
    r#","arguments":{"command":"ls"}"#,
    r#","input":{"command":"ls"}"#,
    r#","input":{}"#,
    r#","args":{}"#,
    r#""input":{"command":"ls"},"#,
    r#""arguments":"{}","#,
];

const JUNK: usize = 90;
const NULS: usize = 91;

/// All stories in all formats.
pub(crate) fn all() -> Vec<SpelledStory> {
    let stories = table::stories();
    let told = stories.iter().flat_map(|story| ROWS.iter().filter_map(|row| story.told(row)));
    told.collect()
}

impl Story {
    /// The story spelled in a format, if that is possible.
    fn told(&self, row: &FormatSpelling) -> Option<SpelledStory> {
        let of_format = |(formats, ..): &&(&str, &str, &str)| formats.split(' ').any(|name| name == row.name);
        let shows = self.but.iter().find(of_format).map_or(self.shows, |(_, shows, _)| shows);
        if shows == "-" || !self.tells.iter().all(|event| row.has(event)) {
            return None;
        }
        let mut lines = row.spell(&self.tells);
        let bytes = self.damage.befall(&mut lines);
        let shows = shows.split_whitespace().filter(|one| !row.is_opaque || is_of_bytes(one));
        let mut found: Vec<StoryFinding> = shows.map(|one| StoryFinding::read(one, &lines)).collect();
        if row.is_opaque {
            if found.is_empty() && !self.name.starts_with("ok-") {
                return None;
            }
            for shown in found.iter_mut().filter(|shown| shown.outcome != FindingOutcome::Reported) {
                shown.outcome = FindingOutcome::Held;
            }
        }
        if row.kind == FileForm::Upserts && !self.arguments.contains("--only") {
            found.extend(superseded(&lines));
        }
        let wrong: Vec<u64> = found.iter().flat_map(|shown| shown.lines.clone()).collect();
        let sound = (1..).zip(&lines).filter(|(number, _)| !wrong.contains(number));
        Some(SpelledStory {
            format: row.name,
            story: self.name,
            arguments: self.arguments.split_whitespace().map(|word| word.replace('~', " ")).collect(),
            texts: sound.map(|(_, line)| line.text.clone()).collect(),
            bytes,
            shown: found,
        })
    }
}

impl StoryFinding {
    /// Reads `CODE@PLACE=OUTCOME`.
    fn read(text: &str, lines: &[StoryLine]) -> Self {
        let (code, rest) = text.split_once('@').unwrap();
        let (place, outcome) = rest.split_once('=').unwrap();
        let tells = |event: usize| -> Vec<u64> {
            let numbered = (1..).zip(lines).filter(|(_, line)| line.events.contains(&event));
            numbered.map(|(number, _)| number).collect()
        };
        let before =
            |event: usize| (0..=event).rev().map(tells).find(|lines| !lines.is_empty()).unwrap_or_default();
        let lines = match place {
            "first" => vec![1],
            "last" => vec![lines.len() as u64],
            "junk" => tells(JUNK),
            "nul" => tells(NULS),
            // If a format has no line for an event, the event before counts.
            events => events.split('+').flat_map(|event| before(event.parse().unwrap())).collect(),
        };
        let outcome = match outcome {
            "mended" => FindingOutcome::Mended,
            "asks" => FindingOutcome::Asks,
            "held" => FindingOutcome::Held,
            "reported" => FindingOutcome::Reported,
            other => panic!("{other} is no outcome"),
        };
        assert!(!lines.is_empty(), "{text}: there is no such line");
        Self { code: code.to_string(), lines, outcome }
    }
}

/// Whether a finding is about bytes and not about their meaning.
fn is_of_bytes(shown: &str) -> bool {
    ["B", "L1", "L2"].iter().any(|code| shown.starts_with(code))
}

/// Of a format that writes a record again with each result, the records that a later one replaces.
fn superseded(lines: &[StoryLine]) -> impl Iterator<Item = StoryFinding> {
    let is_replaced = |at: usize| {
        let first = lines[at].events.first();
        first.is_some_and(|first| lines[at + 1..].iter().any(|line| line.events.contains(first)))
    };
    let replaced = (0..lines.len()).filter(move |at| is_replaced(*at));
    replaced.map(|at| StoryFinding {
        code: "S17".into(),
        lines: vec![at as u64 + 1],
        outcome: FindingOutcome::Mended,
    })
}

impl StoryDamage {
    /// Damages the lines and joins them.
    fn befall(self, lines: &mut Vec<StoryLine>) -> Vec<u8> {
        let last_of = |lines: &[StoryLine], event| {
            let until = |line: &StoryLine| line.events.iter().any(|own| *own <= event);
            lines.iter().rposition(until).unwrap()
        };
        let (mut end, mut begin, mut tail) = ("\n", "", "\n");
        match self {
            Self::None => {}
            Self::Crlf => (end, tail) = ("\r\n", "\r\n"),
            Self::Open => tail = "",
            Self::Torn => {
                let last = lines.last_mut().unwrap();
                last.text.truncate(last.text.len() - 6);
                tail = "";
            }
            Self::Glued(event) => {
                let at = last_of(lines, event);
                let next = lines.remove(at + 1);
                lines[at].text += &next.text;
                lines[at].events.extend(next.events);
            }
            Self::Junk(junk, nuls) => {
                for (event, of, text) in [(nuls, NULS, "\0\0\0\0"), (junk, JUNK, "undefined")] {
                    let at = last_of(lines, event);
                    lines.insert(at + 1, StoryLine { events: vec![of], text: text.into() });
                }
            }
            Self::Bom => begin = "\u{feff}",
            Self::Blank(event) => {
                let at = last_of(lines, event);
                lines.insert(at + 1, StoryLine { events: Vec::new(), text: String::new() });
            }
            Self::Tail => {
                lines.push(StoryLine { events: vec![NULS], text: "\0\0\0\0".into() });
                tail = "";
            }
            Self::Bare(event) => {
                for line in lines.iter_mut().filter(|line| line.events.contains(&event)) {
                    line.text =
                        ARGUMENTS.iter().fold(take(&mut line.text), |text, gone| text.replace(gone, ""));
                }
            }
        }
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        let text = format!("{begin}{}{tail}", texts.join(end));
        let pieces: Vec<&[u8]> = text.split(NOT_UTF8).map(str::as_bytes).collect();
        pieces.join(&b"\xff\xfe"[..])
    }
}
