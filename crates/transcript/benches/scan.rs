//! How fast transcripts are examined, literals cut and plans rendered.
//!
//! The sessions are made up, always the same, and of the mix that real ones have: results of 500 characters in the
//! median and 200,000 in one of fifty, side copies, signed thinking, one in two hundred calls each without a result,
//! with a stranger's, and with two.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "what is remembered is a figure as well")]

#[path = "../../../tests/stories/mod.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod stories;

use criterion::{BatchSize, Criterion, SamplingMode, Throughput};
use spans::cut::CutLines;
use spans::cut::{Keep, cut, measure};
use spans::literal::Unit;
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use transcript::format::FORMATS;
use transcript::judge::{Judge, Judgement};
use transcript::{Policy, Rendered, Situation, Source, Span, examine, mend};

const SESSION_BYTES: usize = 16 << 20;
const FORMAT_BYTES: usize = 4 << 20;
const LITERAL_BYTES: usize = 1 << 20;
/// More ids in the story that is told in each format.
const IDS: [&str; 7] = ["e02", "e03", "e04", "e05", "u02", "g_1", "g05"];

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(5))
        .configure_from_args();
    for (name, session) in [("pi", Pi::session as fn(&mut Material) -> String), ("claude-code", claude_code)]
    {
        let text = session(&mut Material::new());
        examining(&mut criterion, name, text.as_bytes());
        rendering(&mut criterion, name, text.as_bytes());
    }
    for format in FORMATS {
        by_format(&mut criterion, format.name);
    }
    cutting(&mut criterion);
    for bytes in [SESSION_BYTES, 16 * SESSION_BYTES] {
        appending(&mut criterion, bytes);
    }
    criterion.final_summary();
}

fn examining(criterion: &mut Criterion, name: &str, text: &[u8]) {
    let policy = Policy::default();
    let mut group = criterion.benchmark_group("examine");
    group.throughput(Throughput::Bytes(text.len() as u64)).sampling_mode(SamplingMode::Flat);
    group.bench_function(name, |bencher| {
        bencher.iter(|| examine(black_box(&text), &policy).unwrap().bytes_after);
    });
}

/// What a byte costs in each format, the same story told in all: none is to cost more than one and a half times what
/// one of pi's does.
fn by_format(criterion: &mut Criterion, name: &str) {
    let told = stories::all().into_iter().find(|told| told.format == name && told.story == "s1-long-result");
    let Some(story) = told.and_then(|told| String::from_utf8(told.bytes).ok()) else {
        return;
    };
    let said = Material::new().text(500);
    let mut text = String::new();
    for n in 0.. {
        if text.len() >= FORMAT_BYTES {
            break;
        }
        // Ids of calls and of lines are new each time: what stands again costs a look of its own.
        let own = story.replace("call_A", &format!("call_{n}"));
        let own = own.replace("-8000-0000000000", &format!("-8000-{n:010}"));
        let new = |own: String, id: &&str| own.replace(&format!("\"{id}\""), &format!("\"{id}-{n}\""));
        text += &IDS.iter().fold(own, new).replace("row 020 done", &said);
    }
    let policy = Policy::default();
    let mut group = criterion.benchmark_group("examine the same story");
    group.throughput(Throughput::Bytes(text.len() as u64)).sampling_mode(SamplingMode::Flat);
    group.bench_function(name, |bencher| {
        bencher.iter(|| examine(black_box(&text.as_bytes()), &policy).unwrap().bytes_after);
    });
}

fn rendering(criterion: &mut Criterion, name: &str, text: &[u8]) {
    let plan = mend(&text, &Policy::default()).unwrap().repair.unwrap().plan;
    assert!(!plan.is_empty(), "a session with nothing to mend tells nothing");
    let mut group = criterion.benchmark_group("render");
    group.throughput(Throughput::Bytes(plan.length_after()));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let rendered = Rendered::new(&text, black_box(&plan));
            let mut bytes = 0;
            let mut count = |piece: &[u8]| {
                bytes += black_box(piece).len();
                true
            };
            rendered.pieces(Span::new(0, rendered.len()), &mut count).unwrap();
            bytes
        });
    });
}

/// What a look at one more line costs must not depend on how many there are before.
fn appending(criterion: &mut Criterion, bytes: usize) {
    let mut material = Material::new();
    let mut pi = Pi::of_bytes(&mut material, bytes);
    let policy = Arc::new(Policy::default());
    let known = pi.out.len();
    let (judge, _) = Judge::new(&pi.out.as_bytes(), &policy, &Situation::default()).unwrap();
    let said = material.text(2000);
    pi.message(&mut material, &format!(r#""role":"user","content":[{{"type":"text","text":"{said}"}}]"#));
    println!("{} bytes remembered of {known}", judge.weight());
    let mut group = criterion.benchmark_group("append");
    group.throughput(Throughput::Bytes((pi.out.len() - known) as u64));
    group.bench_function(format!("{} MB", known >> 20), |bencher| {
        let append = |mut judge: Judge| {
            assert_eq!(judge.append(&black_box(pi.out.as_bytes())), Ok(Judgement::Same));
            judge
        };
        bencher.iter_batched(|| judge.clone(), append, BatchSize::LargeInput);
    });
}

fn cutting(criterion: &mut Criterion) {
    let literal = Material::new().text(LITERAL_BYTES);
    let source = literal.as_bytes();
    let whole = Span::new(0, source.len() as u64);
    let mut group = criterion.benchmark_group("measure and cut");
    group.throughput(Throughput::Bytes(whole.len()));
    for (name, unit) in [("chars", Unit::Chars), ("utf-16", Unit::Utf16), ("bytes", Unit::Bytes)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let measured = measure(black_box(&source), whole, None, unit, true).unwrap();
                cut(&source, &measured, Keep { head: 24_000, tail: 8_000 }, CutLines::Half).unwrap()
            });
        });
    }
}

/// Where all that is random comes from: a generator that is always the same, and text to take slices of.
struct Material {
    state: u64,
    pool: String,
    /// Where lines of the pool begin.
    lines: Vec<usize>,
}

const WORDS: [&str; 12] = [
    "session", "config", "parser", "buffer", "handler", "request", "index", "cache", "token", "stream",
    "result", "value",
];
const RESULT_CHARS: [usize; 9] = [15, 60, 200, 380, 500, 700, 1_000, 2_600, 9_000];
const RESULT_CHARS_HUGE: usize = 200_000;

impl Material {
    fn new() -> Self {
        let mut material = Self { state: 0x9e37_79b9_7f4a_7c15, pool: String::new(), lines: Vec::new() };
        while material.pool.len() < 2 * LITERAL_BYTES {
            material.lines.push(material.pool.len());
            let line = material.line();
            material.pool.push_str(&line);
        }
        material
    }

    /// The next number below `n` (xorshift).
    fn below(&mut self, n: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % n
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }

    /// A line of code or of a log, escaped as it stands in a JSON string.
    fn line(&mut self) -> String {
        let (a, b, c, n) = (self.word(), self.word(), self.word(), self.below(100_000));
        match self.below(10) {
            0..4 => format!(r#"2026-01-02T10:00:07Z INFO {a}: {b}={n} {c}=\"{a}-{n}\"\n"#),
            4..6 => format!(r#"\t\tif {a}.{b}({n}) != nil {{ return fmt.Errorf(\"{c} %q\", err) }}\n"#),
            6..8 => format!(r#"    let {a}_{b} = self.{c}.get(\"{a}/{b}.rs\"); // {b} of the {c}\n"#),
            8 => format!(r"src\\{a}\\{b}.ts:{n}: [{n}, {c}]\n"),
            _ => format!(r"# größer als {a}: 日本語 🚀 {b} {c}\n"),
        }
    }

    /// Whole lines, about so many bytes together.
    fn text(&mut self, bytes: usize) -> String {
        let last = self.lines.partition_point(|&start| start + bytes < self.pool.len());
        let first = self.below(last);
        let start = self.lines[first];
        let end = self.lines.partition_point(|&line| line < start + bytes);
        self.pool[start..self.lines.get(end).copied().unwrap_or(self.pool.len())].to_string()
    }

    fn result(&mut self) -> String {
        let chars =
            if self.percent(2) { RESULT_CHARS_HUGE } else { RESULT_CHARS[self.below(RESULT_CHARS.len())] };
        self.text(chars)
    }

    fn hex(&mut self, digits: usize) -> String {
        (0..digits).map(|_| char::from_digit(self.below(16) as u32, 16).unwrap_or('0')).collect()
    }

    fn signature(&mut self) -> String {
        let bytes = 300 + self.below(600);
        self.hex(bytes)
    }

    /// The ids that the results of one call name: the call's, but for the three kinds of damage.
    fn answers(&mut self, call: &str) -> Vec<String> {
        match self.below(200) {
            0 => Vec::new(),
            1 => vec![call.to_string(), call.to_string()],
            2 => vec![call.to_string(), format!("toolu_{}", self.hex(24))],
            _ => vec![call.to_string()],
        }
    }
}

/// A pi session in the making.
struct Pi {
    out: String,
    parent: String,
}

impl Pi {
    fn session(material: &mut Material) -> String {
        Self::of_bytes(material, SESSION_BYTES).out
    }

    fn of_bytes(material: &mut Material, bytes: usize) -> Self {
        let header =
            r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T10:00:00.000Z","cwd":"/work"}"#;
        let mut pi = Self { out: format!("{header}\n"), parent: "null".to_string() };
        while pi.out.len() < bytes {
            let said = material.text(150);
            pi.message(material, &format!(r#""role":"user","content":[{{"type":"text","text":"{said}"}}]"#));
            for _ in 0..=material.below(12) {
                pi.step(material);
            }
            let said = material.text(400);
            pi.assistant(material, &format!(r#"{{"type":"text","text":"{said}"}}"#), "stop");
        }
        pi
    }

    fn step(&mut self, material: &mut Material) {
        let call = format!("toolu_{}", material.hex(24));
        let (thought, signature, argument) = (material.text(300), material.signature(), material.text(150));
        let blocks = format!(
            r#"{{"type":"thinking","thinking":"{thought}","thinkingSignature":"{signature}"}},{{"type":"toolCall","id":"{call}","name":"bash","arguments":{{"command":"{argument}"}}}}"#
        );
        self.assistant(material, &blocks, "toolUse");
        for id in material.answers(&call) {
            let text = material.result();
            let mut rest = format!(
                r#""role":"toolResult","toolCallId":"{id}","toolName":"bash","content":[{{"type":"text","text":"{text}"}}]"#
            );
            if material.percent(20) {
                let _ = write!(rest, r#","details":{{"exitCode":0,"text":"{text}"}}"#);
            }
            self.message(material, &(rest + r#","isError":false"#));
        }
    }

    fn assistant(&mut self, material: &mut Material, blocks: &str, stop: &str) {
        let usage = r#""usage":{"input":12,"output":345,"cacheRead":67890,"cost":{"input":0.000012,"total":0.030042}}"#;
        let rest = format!(
            r#""role":"assistant","content":[{blocks}],"provider":"anthropic","model":"claude-sonnet-4-5",{usage},"stopReason":"{stop}""#
        );
        self.message(material, &rest);
    }

    fn message(&mut self, material: &mut Material, rest: &str) {
        let (id, parent) = (format!("\"{}\"", material.hex(8)), &self.parent);
        let _ = writeln!(
            self.out,
            r#"{{"type":"message","id":{id},"parentId":{parent},"timestamp":"2026-01-02T10:00:00.000Z","message":{{{rest}}}}}"#
        );
        self.parent = id;
    }
}

/// A Claude Code session: one block a line, envelopes around it.
fn claude_code(material: &mut Material) -> String {
    let (mut out, mut parent) = (String::new(), "null".to_string());
    while out.len() < SESSION_BYTES {
        let said = material.text(150);
        row(
            material,
            &mut out,
            &mut parent,
            "user",
            &format!(r#""message":{{"role":"user","content":"{said}"}}"#),
        );
        for _ in 0..=material.below(12) {
            let call = format!("toolu_{}", material.hex(24));
            let (thought, signature, argument) =
                (material.text(300), material.signature(), material.text(150));
            let message = material.hex(24);
            for block in [
                format!(r#"{{"type":"thinking","thinking":"{thought}","signature":"{signature}"}}"#),
                format!(
                    r#"{{"type":"tool_use","id":"{call}","name":"Bash","input":{{"command":"{argument}"}}}}"#
                ),
            ] {
                let rest = assistant(&message, &block, "tool_use");
                row(material, &mut out, &mut parent, "assistant", &rest);
            }
            for id in material.answers(&call) {
                let text = material.result();
                let mut rest = format!(
                    r#""message":{{"role":"user","content":[{{"tool_use_id":"{id}","type":"tool_result","content":"{text}"}}]}}"#
                );
                if material.percent(40) {
                    let _ =
                        write!(rest, r#","toolUseResult":{{"stdout":"{text}","stderr":"","isImage":false}}"#);
                }
                row(material, &mut out, &mut parent, "user", &rest);
            }
        }
        let (message, said) = (material.hex(24), material.text(400));
        let rest = assistant(&message, &format!(r#"{{"type":"text","text":"{said}"}}"#), "end_turn");
        row(material, &mut out, &mut parent, "assistant", &rest);
    }
    out
}

fn assistant(message: &str, block: &str, stop: &str) -> String {
    format!(
        r#""message":{{"model":"claude-sonnet-4-5","id":"msg_{message}","type":"message","role":"assistant","content":[{block}],"stop_reason":"{stop}","usage":{{"input_tokens":3,"output_tokens":345}}}},"requestId":"req_{message}""#
    )
}

fn row(material: &mut Material, out: &mut String, parent: &mut String, kind: &str, rest: &str) {
    let uuid = format!("\"{}-{}-4000-a000-{}\"", material.hex(8), material.hex(4), material.hex(12));
    let _ = writeln!(
        out,
        r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/work","sessionId":"s","version":"2.1.200","gitBranch":"main","type":"{kind}",{rest},"uuid":{uuid},"timestamp":"2026-01-02T10:00:00.000Z"}}"#
    );
    *parent = uuid;
}
