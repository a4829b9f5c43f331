//! Compares rows with what a trainer accepts: which of them it would refuse or drop, and where in the row the reason is.

use super::super::base::{Clause, Sure};
use super::super::judge::Reaction;
use super::super::outline::{Arguments, written};
use super::base::{Content, RowTerm, Trainer, alternatives};
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use memchr::memchr_iter;
use spans::json::{self, Doc, Value, ValueKind as Json};
use spans::literal::decode;
use spans::source::{Fault, Source, Span, WINDOW_BYTES, read_span};

/// Something in a row that a trainer would not take.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowObjection {
    /// How the trainer reacts.
    pub reaction: Reaction,
    /// What it is about; see [`RowTerm::about`].
    pub about: &'static str,
    /// Where in the row: the column, and the way from there.
    pub place: String,
    /// What is wrong, in a few words.
    pub what: String,
    /// Where that is known from.
    pub source: &'static str,
}

/// What a trainer makes of a file of rows.
#[derive(Debug, Default)]
pub struct RowsVerdict {
    /// How many rows there are.
    pub rows: u64,
    /// How many of them it would refuse or drop for certain.
    pub refused: u64,
    /// Rows from 1, and what is wrong with them. Of rows in lines, a blank line counts.
    pub objections: Vec<(u64, RowObjection)>,
}

impl RowsVerdict {
    fn add(&mut self, number: u64, found: Vec<RowObjection>) {
        self.rows += 1;
        self.refused += u64::from(found.iter().any(|own| own.reaction == Reaction::Refuses));
        self.objections.extend(found.into_iter().map(|own| (number, own)));
    }
}

/// Says what a trainer makes of the rows of a file: its lines, or the elements of the array that it is. `None` if it begins like an
/// array and is not a whole one, or one of too many values.
pub fn judge(source: &dyn Source, trainer: &'static Trainer) -> Result<Option<RowsVerdict>, Fault> {
    let mut verdict = RowsVerdict::default();
    let clauses = trainer.all_clauses();
    let mut add = |number: u64, row: &[u8]| verdict.add(number, of_row(row, &clauses));
    if is_array(source)? {
        let Some(document) = json::document(source)? else { return Ok(None) };
        for (number, row) in (1..).zip(document.root().into_iter().flat_map(Value::items)) {
            add(number, &read_span(source, row.span())?);
        }
    } else {
        lines(source, &mut add)?;
    }
    Ok(Some(verdict))
}

/// Says what a trainer objects to in a row.
pub fn judge_row(row: &[u8], trainer: &'static Trainer) -> Vec<RowObjection> {
    of_row(row, &trainer.all_clauses())
}

/// Whether a text is an array rather than lines.
fn is_array(source: &dyn Source) -> Result<bool, Fault> {
    let mut first = None;
    source.pieces(Span::new(0, source.len()), &mut |bytes| {
        first = bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace());
        first.is_none()
    })?;
    Ok(first == Some(b'['))
}

/// Lines that are not blank, with their numbers.
fn lines(source: &dyn Source, add: &mut dyn FnMut(u64, &[u8])) -> Result<(), Fault> {
    let (mut held, mut number) = (Vec::new(), 1);
    let mut end_line = |held: &mut Vec<u8>| {
        if !held.trim_ascii().is_empty() {
            add(number, held);
        }
        held.clear();
        number += 1;
    };
    let mut at = 0;
    while at < source.len() {
        let window = read_span(source, Span::new(at, source.len().min(at + WINDOW_BYTES as u64)))?;
        let mut start = 0;
        for end in memchr_iter(b'\n', &window) {
            held.extend_from_slice(&window[start..end]);
            end_line(&mut held);
            start = end + 1;
        }
        held.extend_from_slice(&window[start..]);
        at += window.len() as u64;
    }
    end_line(&mut held);
    Ok(())
}

fn of_row(row: &[u8], clauses: &[&'static Clause<RowTerm>]) -> Vec<RowObjection> {
    let row = row.trim_ascii();
    let Some(doc) = parsed(row) else {
        let what = "not a JSON object".to_string();
        let source = "JSON Lines: one object a line";
        let (about, place) = ("row", String::new());
        return [RowObjection { reaction: Reaction::Refuses, about, place, what, source }].into();
    };
    let mut judge = RowJudge { row: &doc, clauses, found: Vec::new() };
    judge.columns();
    judge.other_answer(row);
    for (way, part) in CONVERSATIONS {
        let found = doc.root().and_then(|root| way.iter().try_fold(root, |value, name| value.get(name)));
        if let Some(value) = found.filter(|value| !value.is_null() && judge.reads(way[0])) {
            judge.column(&Conversation { column: &way.join("."), part: *part, value, bytes: row });
        }
    }
    judge.found.sort_by_key(|own| own.reaction);
    judge.found
}

fn parsed(text: &[u8]) -> Option<Doc> {
    json::parse(&text, Span::new(0, text.len() as u64)).ok().flatten()
}

/// What the conversation of a column is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    /// What a pair of answers is to.
    Prompt,
    /// One of a pair, or what follows a prompt. It may hold the prompt as well.
    Answer,
}

/// Where conversations stand in rows.
const CONVERSATIONS: &[(&[&str], Part)] = &[
    (&["messages"], Part::Whole),
    (&["conversations"], Part::Whole),
    (&["conversation"], Part::Whole),
    (&["input", "messages"], Part::Prompt),
    (&["prompt"], Part::Prompt),
    (&["preferred_output"], Part::Answer),
    (&["non_preferred_output"], Part::Answer),
    (&["chosen"], Part::Answer),
    (&["rejected"], Part::Answer),
    (&["completion"], Part::Answer),
];

/// Who speaks, whatever a trainer calls them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    System,
    User,
    Model,
    /// The model, of calls alone.
    Caller,
    Tool,
}

fn speaker(name: &[u8]) -> Option<Speaker> {
    Some(match name {
        b"system" | b"developer" => Speaker::System,
        b"user" | b"human" => Speaker::User,
        b"assistant" | b"gpt" | b"bot" | b"model" => Speaker::Model,
        b"function_call" | b"function-call" | b"tool_call" => Speaker::Caller,
        b"tool" | b"function" | b"tool_response" | b"observation" | b"observations"
        | b"function_response" | b"function-response" => Speaker::Tool,
        _ => return None,
    })
}

impl Speaker {
    fn is_model(self) -> bool {
        matches!(self, Self::Model | Self::Caller)
    }
}

/// What a column holds of a conversation.
struct Conversation<'d> {
    column: &'d str,
    part: Part,
    value: Value<'d>,
    /// The text that it was read from.
    bytes: &'d [u8],
}

/// A message of a row.
struct Turn<'d> {
    value: Value<'d>,
    bytes: &'d [u8],
    /// Its column, and its place there.
    place: String,
    /// The field that says who speaks, and what is in it.
    role: Option<(&'static str, Cow<'d, [u8]>)>,
    speaker: Option<Speaker>,
}

impl<'d> Turn<'d> {
    fn new(value: Value<'d>, bytes: &'d [u8], place: String) -> Self {
        let role = ["role", "from"].into_iter().find_map(|field| Some((field, value.get(field)?.text()?)));
        let speaker = role.as_ref().and_then(|(_, name)| speaker(name));
        Self { value, bytes, place, role, speaker }
    }

    fn is(&self, of: Speaker) -> bool {
        self.speaker == Some(of)
    }

    fn is_model(&self) -> bool {
        self.speaker.is_some_and(Speaker::is_model)
    }

    fn calls(&self) -> impl Iterator<Item = Value<'d>> {
        self.value.get("tool_calls").into_iter().flat_map(Value::items)
    }

    /// Whether calls are listed beside what it says.
    fn has_calls(&self) -> bool {
        let old = self.value.get("function_call").filter(|call| !call.is_null());
        self.calls().next().is_some() || old.is_some()
    }

    /// The name of who speaks, as it is written.
    fn name(&self) -> String {
        let name = self.role.as_ref().map_or(&b""[..], |(_, name)| name);
        String::from_utf8_lossy(name).into_owned()
    }
}

struct RowJudge<'j> {
    row: &'j Doc,
    clauses: &'j [&'static Clause<RowTerm>],
    found: Vec<RowObjection>,
}

impl RowJudge<'_> {
    fn object(&mut self, clause: &'static Clause<RowTerm>, place: &str, what: String) {
        let reaction = match clause.sure {
            Sure::Source => Reaction::Refuses,
            Sure::Tracker | Sure::Belief => Reaction::MayRefuse,
        };
        let (about, place) = (clause.term.about(), place.to_string());
        self.found.push(RowObjection { reaction, about, place, what, source: clause.source });
    }

    fn sets(&self) -> &'static [&'static [&'static str]] {
        let sets = self.clauses.iter().find_map(|clause| match clause.term {
            RowTerm::Columns(sets) => Some(sets),
            _ => None,
        });
        sets.unwrap_or_default()
    }

    /// Whether the trainer reads this column.
    fn reads(&self, column: &str) -> bool {
        self.sets().iter().copied().flatten().any(|own| first_name(own) == column)
    }

    fn has(&self, column: &str) -> bool {
        let found = self.row.root().and_then(|root| column.split('.').try_fold(root, Value::get));
        found.is_some_and(|value| !value.is_null())
    }

    fn has_all(&self, columns: &[&str]) -> bool {
        columns.iter().all(|column| self.has(column))
    }

    /// Whether the row is a pair of answers.
    fn is_pair(&self) -> bool {
        self.has_all(&["chosen", "rejected"])
    }

    /// Which columns there are.
    fn columns(&mut self) {
        let sets = self.sets();
        let whole: Vec<&&[&str]> = sets.iter().filter(|set| self.has_all(set)).collect();
        for clause in self.clauses.iter().copied() {
            match clause.term {
                RowTerm::Texts(columns) => {
                    let is_other = |value: Value<'_>| {
                        value.kind() != Json::String && !value.items().all(|part| part.get("type").is_some())
                    };
                    for column in columns.iter().filter(|own| self.row.get(own).is_some_and(is_other)) {
                        self.object(clause, column, "no text".to_string());
                    }
                }
                RowTerm::Columns(_) if whole.is_empty() => {
                    self.object(clause, "", format!("no column {}", alternatives(sets)));
                }
                RowTerm::NoOtherColumns(others) if !whole.is_empty() => {
                    let own = whole.iter().flat_map(|set| set.iter()).map(|own| first_name(own));
                    let known: Vec<&str> = own.chain(others.iter().copied()).collect();
                    let names = self.row.root().into_iter().flat_map(Value::fields);
                    let names: Vec<String> = names.filter_map(|(name, _)| in_words(name)).collect();
                    for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
                        self.object(clause, name, "a column that is not known".to_string());
                    }
                }
                _ => {}
            }
        }
    }

    /// Where a rejected answer is a text, it has to be there and another one.
    fn other_answer(&mut self, row: &[u8]) {
        let clause = self.clauses.iter().copied().find(|clause| clause.term == RowTerm::OtherAnswer);
        let (Some(clause), Some(rejected)) = (clause, self.row.get("rejected_response")) else { return };
        let last = self.row.get("messages").and_then(|messages| messages.items().last());
        let is_same = last
            .and_then(|last| last.get("content"))
            .is_some_and(|last| raw(last, row) == raw(rejected, row));
        if rejected.is_null() || is_same {
            let what = if is_same { "the same as the answer" } else { "null" };
            self.object(clause, "rejected_response", what.to_string());
        }
    }

    /// The conversation of a column.
    fn column(&mut self, own: &Conversation<'_>) {
        let list = self.clauses.iter().copied().find_map(|clause| match clause.term {
            RowTerm::List { or_text } => Some((clause, or_text)),
            _ => None,
        });
        let Some((clause, or_text)) = list else { return };
        let Conversation { column, part, value, bytes } = *own;
        match value.kind() {
            Json::Array => self.list(clause, own),
            // A message by itself.
            Json::Object if part == Part::Answer => {
                self.turns(part, column, &[Turn::new(value, bytes, column.to_string())]);
            }
            Json::String if part != Part::Whole => self.turns(part, column, &[]),
            Json::String if or_text => {
                let text = [b"{\"list\":", decoded(value, bytes).trim_ascii(), b"}"].concat();
                let held = parsed(&text);
                match held
                    .as_ref()
                    .and_then(|held| held.get("list"))
                    .filter(|list| list.kind() == Json::Array)
                {
                    Some(value) => self.list(clause, &Conversation { value, bytes: &text, ..*own }),
                    None => self.object(clause, column, "a text that holds no JSON list".to_string()),
                }
            }
            Json::String => self.object(clause, column, "a text in place of a list of messages".to_string()),
            _ => self.object(clause, column, "no list of messages".to_string()),
        }
    }

    fn list(&mut self, clause: &'static Clause<RowTerm>, own: &Conversation<'_>) {
        let Conversation { column, part, value: list, bytes } = *own;
        let mut turns = Vec::new();
        for (n, value) in list.items().enumerate() {
            let place = format!("{column}[{n}]");
            if value.kind() == Json::Object {
                turns.push(Turn::new(value, bytes, place));
            } else {
                self.object(clause, &place, "no object".to_string());
            }
        }
        if list.items().next().is_none() {
            self.object(clause, column, "an empty list".to_string());
        } else {
            self.turns(part, column, &turns);
        }
    }

    fn turns(&mut self, part: Part, column: &str, turns: &[Turn<'_>]) {
        let (first, last) = (turns.iter().find(|turn| !turn.is(Speaker::System)), turns.last());
        let is_whole = part == Part::Whole;
        for clause in self.clauses.iter().copied() {
            match clause.term {
                RowTerm::Roles(fields) => self.roles(clause, turns, fields),
                RowTerm::Fields(names) => self.fields(clause, turns, names),
                RowTerm::Said(fields, content) => self.said(clause, turns, fields, content),
                RowTerm::SystemFirst => {
                    let inside = turns.iter().skip(1).filter(|turn| turn.is(Speaker::System));
                    inside.for_each(|turn| {
                        self.of_role(clause, turn, "a system message that is not the first");
                    });
                }
                RowTerm::BeginsWithUser if part != Part::Answer => {
                    if let Some(first) = first.filter(|first| !first.is(Speaker::User)) {
                        self.of_role(clause, first, "the user does not begin");
                    }
                }
                RowTerm::NeedsModel if is_whole && !self.is_pair() && !turns.iter().any(Turn::is_model) => {
                    self.object(clause, column, "no assistant message".to_string());
                }
                RowTerm::EndsWithModel if is_whole => {
                    if let Some(last) = last.filter(|last| !last.is_model()) {
                        self.of_role(clause, last, "the last message is not the assistant's");
                    }
                }
                RowTerm::TakesTurns if is_whole => self.take_turns(clause, turns),
                RowTerm::Weights if part != Part::Answer => self.weights(clause, turns, |turn| {
                    turn.value.get("weight").is_some_and(|weight| !matches!(weight.whole(), Some(0 | 1)))
                }),
                RowTerm::WeightsOfModel if part != Part::Answer => {
                    self.weights(clause, turns, |turn| {
                        turn.value.get("weight").is_some() && !turn.is_model()
                    });
                }
                RowTerm::Arguments => turns.iter().for_each(|turn| self.arguments(clause, turn)),
                RowTerm::CallTexts => turns.iter().for_each(|turn| self.call_texts(clause, turn)),
                RowTerm::ToolsListed => {
                    let mut callers =
                        turns.iter().filter(|turn| turn.has_calls() || turn.is(Speaker::Caller));
                    if let Some(turn) = callers.next().filter(|_| !self.lists_tools()) {
                        let what = "calls, and no `tools` beside the conversation";
                        self.object(clause, &turn.place, what.to_string());
                    }
                }
                RowTerm::OneAnswer { in_list } if part == Part::Answer && column != "completion" => {
                    self.one_answer(clause, column, in_list, turns);
                }
                RowTerm::OpenPrompt if part == Part::Prompt => {
                    if let Some(last) = last.filter(|last| last.is_model()) {
                        self.of_role(clause, last, "the prompt of a pair ends with the assistant");
                    }
                }
                _ => {}
            }
        }
    }

    fn one_answer(
        &mut self,
        clause: &'static Clause<RowTerm>,
        column: &str,
        in_list: bool,
        turns: &[Turn<'_>],
    ) {
        let is_said = |said: Value<'_>| matches!(said.kind(), Json::String | Json::Array);
        let is_one = match turns {
            [only] => only.is_model() && (only.place != column) == in_list,
            _ => false,
        };
        if !is_one {
            let what =
                if in_list { "not a list of one assistant message" } else { "not one assistant message" };
            self.object(clause, column, what.to_string());
        } else if turns.iter().any(|turn| turn.value.get("content").is_some_and(|said| !is_said(said))) {
            self.object(clause, &format!("{column}[0].content"), "no text".to_string());
        }
    }

    /// Objects to who speaks.
    fn of_role(&mut self, clause: &'static Clause<RowTerm>, turn: &Turn<'_>, what: &str) {
        let field = turn.role.as_ref().map_or("role", |(field, _)| *field);
        self.object(clause, &format!("{}.{field}", turn.place), format!("{what}: {:?}", turn.name()));
    }

    fn roles(&mut self, clause: &'static Clause<RowTerm>, turns: &[Turn<'_>], fields: &[(&str, &[&str])]) {
        for turn in turns {
            let field = turn.role.as_ref().map_or("", |(field, _)| *field);
            let names = fields.iter().find(|own| own.0 == field);
            match names {
                None => {
                    let known: Vec<String> = fields.iter().map(|(field, _)| format!("`{field}`")).collect();
                    self.object(clause, &turn.place, format!("no text in {}", known.join(" or ")));
                }
                Some((_, names)) if !names.is_empty() && !names.contains(&turn.name().as_str()) => {
                    self.of_role(clause, turn, "a role that is not known");
                }
                Some(_) => {}
            }
        }
    }

    fn fields(&mut self, clause: &'static Clause<RowTerm>, turns: &[Turn<'_>], names: &[&str]) {
        for turn in turns {
            let all = turn.value.fields().filter_map(|(name, _)| in_words(name));
            for name in all.filter(|name| !names.contains(&name.as_str())) {
                let place = format!("{}.{name}", turn.place);
                self.object(clause, &place, "a field that is not known".to_string());
            }
        }
    }

    fn said(
        &mut self,
        clause: &'static Clause<RowTerm>,
        turns: &[Turn<'_>],
        fields: &[&str],
        content: Content,
    ) {
        for turn in turns {
            let said = fields.iter().find_map(|field| turn.value.get(field));
            let lacks = match (content, said) {
                (_, None) => Some("is missing"),
                (Content::ValueOrCalls | Content::TextOrCalls, Some(said)) if said.is_null() => {
                    Some("is null")
                }
                (Content::FieldOrCalls | Content::TextOrCalls, Some(said))
                    if matches!(said.kind(), Json::Number | Json::Bool) =>
                {
                    Some("is no text")
                }
                (Content::TextOrCalls, Some(said)) if is_empty(said) => Some("is empty"),
                _ => None,
            };
            let is_there = lacks == Some("is no text");
            let excused = content != Content::Field && turn.is_model() && turn.has_calls() && !is_there;
            if let Some(lacks) = lacks.filter(|_| !excused) {
                let field = fields.iter().find(|field| turn.value.get(field).is_some()).unwrap_or(&fields[0]);
                self.object(clause, &format!("{}.{field}", turn.place), format!("`{field}` {lacks}"));
            }
        }
    }

    fn take_turns(&mut self, clause: &'static Clause<RowTerm>, turns: &[Turn<'_>]) {
        let system = usize::from(turns.first().is_some_and(|turn| turn.is(Speaker::System)));
        let mut of_model = false;
        // Results of calls that were made together count as one where each has a message, and there the last ones are left out.
        let is_result =
            |turn: &Turn<'_>| turn.is(Speaker::Tool) && turn.role.as_ref().is_some_and(|own| own.0 == "role");
        let kept = turns.iter().rposition(|turn| !is_result(turn)).map_or(0, |last| last + 1);
        let turns = &turns[..kept];
        for (at, turn) in turns.iter().enumerate().skip(system) {
            if at > system && is_result(turn) && is_result(&turns[at - 1]) {
                continue;
            }
            let Some(own) = turn.speaker else { return };
            if own == Speaker::System || own.is_model() != of_model {
                let wanted = if of_model {
                    "the model's turn is next"
                } else {
                    "the turn of the user or a tool is next"
                };
                return self.of_role(clause, turn, wanted);
            }
            of_model = !of_model;
        }
        let last = turns.last().filter(|_| of_model != self.is_pair());
        if let Some(last) = last {
            let wanted = if of_model {
                "the last turn is not the model's"
            } else {
                "the prompt of a pair ends with the model's turn"
            };
            self.of_role(clause, last, wanted);
        }
    }

    fn weights(
        &mut self,
        clause: &'static Clause<RowTerm>,
        turns: &[Turn<'_>],
        is_wrong: fn(&Turn<'_>) -> bool,
    ) {
        for turn in turns.iter().filter(|turn| is_wrong(turn)) {
            let what = match clause.term {
                RowTerm::Weights => "a weight that is not 0 or 1".to_string(),
                _ => format!("a weight on a message of {:?}", turn.name()),
            };
            self.object(clause, &format!("{}.weight", turn.place), what);
        }
    }

    /// Calls that stand in a message of their own, and are all of what it says.
    fn call_texts(&mut self, clause: &'static Clause<RowTerm>, turn: &Turn<'_>) {
        let said = turn.value.get("value").or_else(|| turn.value.get("content"));
        let said = said.filter(|said| turn.is(Speaker::Caller) && said.kind() == Json::String);
        if said.is_some_and(|said| !is_json(said, turn.bytes)) {
            self.object(clause, &turn.place, "a call that is no JSON".to_string());
        }
    }

    /// Arguments of calls that are no JSON.
    fn arguments(&mut self, clause: &'static Clause<RowTerm>, turn: &Turn<'_>) {
        for (n, call) in turn.calls().enumerate() {
            let arguments = call.get("function").unwrap_or(call).get("arguments");
            if arguments.is_some_and(|found| found.kind() == Json::String && !is_json(found, turn.bytes)) {
                let place = format!("{}.tool_calls[{n}].function.arguments", turn.place);
                self.object(clause, &place, "arguments that are no JSON".to_string());
            }
        }
    }

    /// Whether tools are listed beside the conversation, or described in a text there.
    fn lists_tools(&self) -> bool {
        let holders = [self.row.root(), self.row.get("input")];
        let tools = holders.into_iter().flatten().flat_map(|holder| holder.pick(["tools", "functions"]));
        tools.flatten().any(|tools| match tools.kind() {
            Json::Array => tools.items().next().is_some(),
            Json::String => !tools.is("") && !tools.is("[]"),
            _ => false,
        })
    }
}

/// The column of a way into a row.
fn first_name(way: &str) -> &str {
    way.split('.').next().unwrap_or_default()
}

fn in_words(name: Value<'_>) -> Option<String> {
    name.text().map(|name| String::from_utf8_lossy(&name).into_owned())
}

/// Whether a text, a list or an object has nothing in it.
fn is_empty(value: Value<'_>) -> bool {
    value.is("") || (value.kind() != Json::String && value.descendants().nth(1).is_none())
}

/// A value as it is written in a text.
fn raw<'t>(value: Value<'_>, bytes: &'t [u8]) -> &'t [u8] {
    let span = value.span();
    bytes.get(span.start as usize..span.end as usize).unwrap_or_default()
}

/// A string, however long.
fn decoded(value: Value<'_>, bytes: &[u8]) -> Vec<u8> {
    let raw = raw(value, bytes);
    decode(raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default())
}

/// Whether a string holds JSON.
fn is_json(value: Value<'_>, bytes: &[u8]) -> bool {
    matches!(written(&decoded(value, bytes)), Ok(Arguments::Object | Arguments::Json))
}
