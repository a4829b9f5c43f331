//! S24: what a file held when it was read, and a later read shows again.

use super::base::{Cover, Feature, FindingSink, Help, Rule, RuleInfo, about_result};
use super::bound_thinking::holds_marker;
use super::oversized_result;
use super::trim::{Measured, Notes, exceeded, length_max, may_cut};
use crate::format::{EntryPart, Format, ReadEnd, ReadTool};
use crate::model::finding::{Finding, Fix, Guard, Severity};
use crate::model::policy::{CutShape, Kept};
use crate::model::transcript::Transcript;
use crate::session::{Answers, Session};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashMap;
use spans::cut::{CutLines, line_breaks};
use spans::json::{self, Doc, Value, ValueKind};
use spans::literal::decode;
use spans::source::{Fault, Source, Span, read_span};

/// A shorter result stays: a marker has about a hundred characters.
const CHARS_MIN: u64 = 500;
/// So much a tool shows where nobody has measured what its agent cuts: Claude Code 2.1.332 shows at most 25,000 tokens, which
/// are more characters in nearly any file.
const SHOWN_CHARS_MAX: u64 = 50_000;
const NOTE: &str = "read again later";

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S24",
        name: "superseded-read",
        help: Help {
            what: "The model read a file, and later read all of those lines again.",
            why: "Both texts are sent with every request, and only the later one shows the file as it is.",
            fix: "With --allow S24, and in --profile chatcli, one line takes the place of the earlier text, and the later one \
                  stays. Lost to the model is what the file held before an edit in between; the vault keeps it. Results of \
                  fewer than 500 characters and failures stay, and so does what a later read shows only in part, shows \
                  shortened, or answers with a notice that nothing has changed. Rewriting history costs a prompt cache: do it \
                  when the session is idle.",
            source: "ChatCLI !1445 (DedupRepeatedReads, from its tracker); Cline's duplicate file reads; measured on real sessions",
        },
        rewrites_history: true,
        wakes: &[Feature::Reread],
        ..RuleInfo::BASE
    },
    cover: |format| if format.reads.is_empty() { Cover::Never } else { Cover::Fixed },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let mut by_path: HashMap<Vec<u8>, Vec<(usize, Asked)>> = HashMap::new();
    let calls = reads(session.source, session.format, session.transcript)?;
    let calls: HashMap<u32, ReadCall> = calls.into_iter().map(|read| (read.call, read)).collect();
    for entry in session.sent().filter(|&entry| session.edit_of(entry).is_none()) {
        for result in session.transcript.results_of(entry) {
            if let Some(read) = call_of(session, result).and_then(|call| calls.get(&call)) {
                by_path.entry(read.path.clone()).or_default().push((result, read.asked));
            }
        }
    }
    let mut found = Vec::new();
    for all in by_path.into_values().filter(|all| all.len() > 1) {
        covered(session, &all, &mut found)?;
    }
    found.sort_unstable();
    for (result, by) in found {
        if let Some((chars, fix)) = shortened(session, result)? {
            let line = session.entry(session.result(by).entry).line;
            let message = format!("read of {chars} characters, read again in line {line}");
            let about = about_result(&RULE, session, result, Severity::Note, message);
            out.push(Finding { chars: Some(chars), fix, ..about });
        }
    }
    Ok(())
}

/// The call that a result answers.
fn call_of(session: &Session<'_>, result: usize) -> Option<u32> {
    match session.answers[result] {
        Answers::Call(call) | Answers::Again(call) => Some(call),
        Answers::Nothing | Answers::Unseen => None,
    }
}

/// Of all reads of one file, in order, those that a later one covers, each with that one. It is one that stays.
fn covered(
    session: &Session<'_>,
    all: &[(usize, Asked)],
    found: &mut Vec<(usize, usize)>,
) -> Result<(), Fault> {
    let mut staying: Vec<Shown> = Vec::new();
    for &(result, asked) in all.iter().rev() {
        let Some(shown) = Shown::new(session, result, asked)? else { continue };
        match staying.iter().find(|later| later.covers(session, &shown)) {
            Some(later) => found.push((result, later.result)),
            None => staying.push(shown),
        }
    }
    Ok(())
}

/// The steps that leave one line of a result, and how many characters it had.
fn shortened(session: &Session<'_>, result: usize) -> Result<Option<(u64, Fix)>, Fault> {
    let texts = session.transcript.bodies_of(result);
    if !may_cut(session, result) || length_max(session, texts) < CHARS_MIN {
        return Ok(None);
    }
    let text = Measured::all(session, texts, CHARS_MIN)?;
    if text.kept() < CHARS_MIN {
        return Ok(None);
    }
    let shape = CutShape { kept: Kept::Sizes { head: 0, tail: 0 }, lines: CutLines::Anywhere };
    let notes = vec![String::from(NOTE); texts.len()];
    let fix = text.trim(session, shape, u64::MAX, Notes::Each(&notes))?;
    Ok((!fix.ops.is_empty()).then(|| (text.kept(), Fix::guarded(Guard::ReadAgain, fix.ops))))
}

/// The lines that a call asks for: those from `from` up to `end`, or to the end of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Asked {
    from: u64,
    end: Option<u64>,
    /// The tool shows no more lines than this.
    lines_max: u64,
}

/// A result that shows lines of a file.
struct Shown {
    result: usize,
    asked: Asked,
    lines: u64,
    chars: u64,
    /// It may end before the last line that was asked for.
    is_partial: bool,
    /// Tailor has cut it, or is about to.
    is_cut: bool,
}

impl Shown {
    fn new(session: &Session<'_>, result: usize, asked: Asked) -> Result<Option<Self>, Fault> {
        let (found, texts) = (session.result(result), session.transcript.bodies_of(result));
        let [text] = texts else { return Ok(None) };
        if found.error || found.synthetic || found.images > 0 {
            return Ok(None);
        }
        let (lines, chars) = (line_breaks(session.source, text.inner)? + 1, text.chars);
        // The next line could have been too long for what was left of the limit.
        let limit = session.format.agent_cuts_results.unwrap_or(SHOWN_CHARS_MAX);
        let is_partial = chars > limit / 2 || (asked.lines_max > 0 && lines >= asked.lines_max);
        let cuts = session.policy.selection.includes(oversized_result::RULE.code());
        let is_cut = holds_marker(session.source, session.transcript, result..result + 1)?
            || cuts && exceeded(session, result)?.is_some();
        Ok(Some(Self { result, asked, lines, chars, is_partial, is_cut }))
    }

    /// Whether all that an earlier result shows is in this one, as it is now.
    fn covers(&self, session: &Session<'_>, earlier: &Self) -> bool {
        let shows_all = if self.is_partial || self.is_cut {
            let is_as_short = earlier.is_cut || !self.is_cut;
            is_as_short && self.asked == earlier.asked && self.lines >= earlier.lines
        } else {
            self.shows(earlier)
        };
        // A notice that the file has not changed is a short result.
        let is_notice = self.chars < earlier.chars / 2;
        shows_all && !is_notice && call_of(session, self.result) != call_of(session, earlier.result)
    }

    /// Whether the lines of an earlier result are among those of this one, of which nothing is missing.
    fn shows(&self, earlier: &Self) -> bool {
        let (asked, before) = (self.asked, earlier.asked);
        // What a tool puts around the lines makes results seem longer than they are.
        let most = before.from.saturating_add(earlier.lines);
        let most = before.end.map_or(most, |end| end.min(most));
        let holds_the_end = |end| end >= most || asked.from.saturating_add(self.lines) < end;
        asked.from <= before.from && asked.end.is_none_or(holds_the_end)
    }
}

/// A call that reads lines of a file.
pub(crate) struct ReadCall {
    /// Index of the call.
    pub(crate) call: u32,
    /// The file, as the model names it.
    pub(crate) path: Vec<u8>,
    asked: Asked,
}

/// All calls that read a file.
pub(crate) fn reads(
    source: &dyn Source,
    format: &Format,
    transcript: &Transcript,
) -> Result<Vec<ReadCall>, Fault> {
    let mut all = Vec::new();
    if format.reads.is_empty() {
        return Ok(all);
    }
    for entry in 0..transcript.entries.len() as u32 {
        let mut calls =
            transcript.calls_of(entry).filter_map(|call| Some((call, tool(format, transcript, call)?)));
        let Some(first) = calls.next() else { continue };
        let Some(doc) = json::parse(source, transcript.entries[entry as usize].span)? else { continue };
        let arguments = arguments(format, &doc);
        for (call, tool) in core::iter::once(first).chain(calls) {
            let block = transcript.calls[call].block;
            let inside = |at: &&Span| block.start <= at.start && at.end <= block.end;
            let Some(at) = arguments.iter().find(inside) else { continue };
            let Some(arguments) = object(source, *at)? else { continue };
            let read = arguments.root().and_then(|arguments| asked(arguments, tool));
            all.extend(read.map(|(path, asked)| ReadCall { call: call as u32, path, asked }));
        }
    }
    Ok(all)
}

/// The tool of a call, if it reads files.
fn tool(format: &Format, transcript: &Transcript, call: usize) -> Option<&'static ReadTool> {
    let name = transcript.id_text(transcript.calls[call].name);
    format.reads.iter().find(|tool| tool.name.as_bytes() == name)
}

/// The arguments of all calls in an entry.
fn arguments(format: &Format, doc: &Doc) -> Vec<Span> {
    let mut all = Vec::new();
    (format.parts)(doc, &mut |part| {
        if let EntryPart::Call { arguments: Some(arguments), .. } = part {
            all.push(arguments.span());
        }
    });
    all
}

/// An object, or one that is written in a string.
fn object(source: &dyn Source, at: Span) -> Result<Option<Doc>, Fault> {
    let raw = read_span(source, at)?;
    match raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\"")) {
        Some(inner) => {
            let text = decode(inner);
            json::parse(&&text[..], Span::new(0, text.len() as u64))
        }
        None => json::parse(source, at),
    }
}

/// The file and the lines that arguments ask for; `None` if they ask for anything else.
fn asked(arguments: Value<'_>, tool: &ReadTool) -> Option<(Vec<u8>, Asked)> {
    let (mut path, mut from, mut end) = (None, None, None);
    let (ReadEnd::Count(name) | ReadEnd::Line(name)) = tool.to;
    for (key, value) in arguments.fields().filter(|(_, value)| value.kind() != ValueKind::Null) {
        if tool.path.iter().any(|name| key.is(name)) {
            path = Some(value.text()?);
        } else if key.is(tool.from) {
            from = Some(value.whole()?);
        } else if key.is(name) {
            end = Some(value.whole()?);
        } else {
            return None;
        }
    }
    let from = from.unwrap_or(0).max(tool.first_line);
    let end = end.map(|end| match tool.to {
        ReadEnd::Count(_) => from.saturating_add(end),
        ReadEnd::Line(_) => end.saturating_add(1),
    });
    Some((path?.into_owned(), Asked { from, end, lines_max: tool.lines_max }))
}

#[cfg(test)]
mod tests {
    use crate::examine::mend::examine;
    use crate::judge::{Judge, Judgement};
    use crate::model::policy::Policy;
    use crate::model::rule::Feature;
    use alloc::format;
    use alloc::string::String;
    use alloc::sync::Arc;

    const BEGIN: &str = r#"{"type":"session","version":3,"id":"s","cwd":"/w"}
{"type":"message","id":"u","parentId":null,"message":{"role":"user","content":"go"}}
"#;

    /// A call with these arguments, and its result of so many lines.
    fn read(n: u32, arguments: &str, lines: usize) -> [String; 2] {
        let parent = if n == 0 { "\"u\"".into() } else { format!("\"r{}\"", n - 1) };
        let text = "a row of twenty char\\n".repeat(lines - 1);
        let line = |id: &str, parent: &str, message: &str| {
            format!(
                "{{\"type\":\"message\",\"id\":\"{id}{n}\",\"parentId\":{parent},\"message\":{message}}}\n"
            )
        };
        let call = format!(
            r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"t{n}","name":"read","arguments":{{"path":"a"{arguments}}}}}],"stopReason":"toolUse"}}"#
        );
        let result = format!(
            r#"{{"role":"toolResult","toolCallId":"t{n}","toolName":"read","content":[{{"type":"text","text":"{text}"}}]}}"#
        );
        [line("c", &parent, &call), line("r", &format!("\"c{n}\""), &result)]
    }

    fn is_superseded(earlier: (&str, usize), later: (&str, usize)) -> bool {
        let text =
            [BEGIN, &read(0, earlier.0, earlier.1).concat(), &read(1, later.0, later.1).concat()].concat();
        let found = examine(&text.as_bytes(), &Policy::default()).unwrap().findings;
        found.iter().any(|finding| finding.rule.code() == "S24")
    }

    #[test]
    fn a_later_read_covers_an_earlier_one_if_it_shows_all_its_lines() {
        let whole = ("", 100);
        for (earlier, later, expected) in [
            (whole, whole, true),
            (whole, ("", 60), true),
            (whole, ("", 40), false),
            (("", 60), (r#","offset":1,"limit":100"#, 60), true),
            (("", 100), (r#","limit":100"#, 100), true),
            (("", 101), (r#","limit":100"#, 100), false),
            ((r#","offset":20"#, 81), whole, true),
            (whole, (r#","offset":20"#, 81), false),
            (whole, (r#","offset":0"#, 100), true),
            ((r#","offset":20,"limit":41"#, 41), (r#","offset":10,"limit":51"#, 51), true),
            ((r#","offset":20,"limit":41"#, 41), (r#","offset":10,"limit":50"#, 50), false),
            // The file has become shorter.
            ((r#","offset":20,"limit":41"#, 41), (r#","offset":10,"limit":51"#, 30), true),
            (whole, (r#","tail":5"#, 100), false),
            (whole, (r#","offset":"1""#, 100), false),
            (whole, (r#","offset":null"#, 100), true),
            // What pi may have cut shows only what was asked for in the same way.
            (("", 1_400), ("", 1_400), true),
            (("", 1_401), ("", 1_400), false),
            ((r#","offset":2"#, 1_400), ("", 1_401), false),
            // Tailor cuts the later one, and not the earlier one.
            (("", 1_500), ("", 1_600), false),
            (("", 1_600), ("", 1_600), true),
        ] {
            assert_eq!(is_superseded(earlier, later), expected, "{earlier:?} {later:?}");
        }
    }

    /// A marker stands for lines that it does not show.
    #[test]
    fn a_later_read_of_which_tailor_has_cut_a_part_covers_nothing_whole() {
        let marker = "[tailor: 4000 of 5218 chars omitted (read); full text: tailor show 7dcb89ec06ed]\\n";
        let read = |n, is_cut| {
            let lines = read(n, "", 60).concat();
            if is_cut { lines.replacen("a row of twenty char\\n", marker, 1) } else { lines }
        };
        for (earlier, later, expected) in [(false, true, false), (true, true, true), (true, false, true)] {
            let text = [BEGIN, &read(0, earlier), &read(1, later)].concat();
            let found = examine(&text.as_bytes(), &Policy::default()).unwrap().findings;
            let is_there = found.iter().any(|finding| finding.rule.code() == "S24");
            assert_eq!(is_there, expected, "{earlier} {later}");
        }
    }

    #[test]
    fn an_append_is_looked_at_if_it_shows_a_file_again() {
        let (first, [call, result]) = (read(0, "", 60).concat(), read(1, "", 60));
        let other = read(1, "", 60).concat().replace(r#""path":"a""#, r#""path":"b""#);
        let policy = Arc::new(Policy::default());
        let judged = |known: &str, more: &str| {
            let (mut judge, _) =
                Judge::new(&known.as_bytes(), &policy, &crate::Situation::default()).unwrap();
            judge.append(&[known, more].concat().as_bytes()).unwrap()
        };
        let known = [BEGIN, &first].concat();
        assert_eq!(judged(&known, &other), Judgement::Same);
        assert_eq!(judged(&known, &call), Judgement::Same);
        assert_eq!(judged(&known, &[&call[..], &result].concat()), Judgement::Look(Feature::Reread));
        assert_eq!(judged(&[&known[..], &call].concat(), &result), Judgement::Look(Feature::Reread));
        let none = [BEGIN, ""].concat();
        let both = [first, call, result].concat();
        assert_eq!(judged(&none, &both), Judgement::Look(Feature::Reread));
    }
}
