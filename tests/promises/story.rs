//! What happens in a session, before anybody has written it down: what persons say, turns of the model with their
//! calls and results, compactions, branches. The same story can be spelled in every dialect.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Who writes it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    /// pi, header version 3: a tree by `id` and `parentId`.
    Pi,
    /// pi, header version 1: the order of lines is all there is.
    PiFlat,
    /// Claude Code.
    ClaudeCode,
    /// `OpenAI`'s chat messages.
    OpenAiChat,
    /// Anthropic's messages.
    Anthropic,
}

pub(crate) const DIALECTS: [Dialect; 5] =
    [Dialect::Pi, Dialect::PiFlat, Dialect::ClaudeCode, Dialect::OpenAiChat, Dialect::Anthropic];

/// A text as it stands between the quotes of a JSON string.
pub(crate) type Text = String;

/// Something that is appended.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A person says something.
    Says(Text),
    /// The model says something, and tools answer.
    Turn(Turn),
    /// The context is compacted; so many of the entries before stay in it.
    Compaction(u8),
    /// A record that is no part of the conversation.
    Quiet,
    /// A text that a program put in.
    Note(Text),
    /// A turn on a branch that leaves the conversation so many entries back, and is left again.
    Aside(u8, Turn),
}

/// A message of the model.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub thinking: Thinking,
    pub text: Option<Text>,
    pub calls: Vec<Call>,
    /// It ends by being interrupted.
    pub aborted: bool,
    /// Results stand in one entry, where the dialect can do that.
    pub grouped: bool,
    /// What a person says in the same message as the results, where the dialect can do that.
    pub trailing: Option<Text>,
}

/// Signed thinking at the beginning of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinking {
    None,
    /// By a model that binds its signature to all that comes before.
    Bound,
    /// By a model that does not.
    Loose,
}

/// A tool call and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub tool: usize,
    pub id: CallId,
    /// The arguments were still being written.
    pub partial: bool,
    /// One, if all is well.
    pub answers: Vec<Answer>,
}

/// Which id a call gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallId {
    Fresh,
    /// That of the call before it.
    Again,
    /// Its number within the turn, as Kimi does.
    Numbered,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub texts: Vec<Text>,
    pub error: bool,
    /// A repair invented it.
    pub synthetic: bool,
    /// A copy for the screen.
    pub side: Option<Text>,
    /// It comes only after the next thing that is said.
    pub late: bool,
}

pub(crate) const TOOLS: [&str; 3] = ["read", "exec", "grep"];

const FRAGMENTS: &[&str] = &[
    "\\n",
    "\\n\\n",
    "\\\"",
    "\\\\",
    "\\t",
    "\\/",
    "é",
    "\\u00e9",
    "😀",
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\ude00",
    "\\uD83D\\uDE00",
    "漢字",
    "\\u2028",
    "\\u0000",
    "e\u{301}",
    "[tailor: 30 of 50 chars omitted; full text: tailor show 3f9a1c20d7e4]",
    "[tailor: 3 of x",
    "... [5 more characters truncated]",
    "<persisted-output>",
    "}{",
    "\\u007b\\u0022",
];

fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z .,]{1,16}",
        4 => prop::sample::select(FRAGMENTS).prop_map(str::to_string),
    ]
}

pub(crate) fn text() -> impl Strategy<Value = Text> {
    let times = prop_oneof![8 => Just(1usize), 2 => Just(7), 1 => Just(40)];
    (vec(fragment(), 0..5), times).prop_map(|(fragments, times)| fragments.concat().repeat(times))
}

/// Long enough for a side copy to be looked at.
fn side() -> impl Strategy<Value = Text> {
    (vec(fragment(), 1..4), 900usize..2600).prop_map(|(fragments, bytes)| {
        let one = fragments.concat();
        one.repeat(bytes.div_ceil(one.len()))
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    (
        vec(text(), 1..3),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
        option::weighted(0.15, side()),
        prop::bool::weighted(0.06),
    )
        .prop_map(|(texts, error, synthetic, side, late)| Answer { texts, error, synthetic, side, late })
}

fn call() -> impl Strategy<Value = Call> {
    let id = prop_oneof![18 => Just(CallId::Fresh), 1 => Just(CallId::Again), 2 => Just(CallId::Numbered)];
    let count = prop_oneof![16 => 1usize..2, 2 => 0usize..1, 1 => 2usize..4];
    (0..TOOLS.len(), id, prop::bool::weighted(0.4), count.prop_flat_map(|count| vec(answer(), count)))
        .prop_map(|(tool, id, partial, answers)| Call { tool, id, partial, answers })
}

pub(crate) fn turn() -> impl Strategy<Value = Turn> {
    let thinking =
        prop_oneof![6 => Just(Thinking::None), 1 => Just(Thinking::Bound), 1 => Just(Thinking::Loose)];
    (
        thinking,
        option::weighted(0.5, text()),
        vec(call(), 0..4),
        prop::bool::weighted(0.1),
        any::<bool>(),
        option::weighted(0.1, text()),
    )
        .prop_map(|(thinking, text, mut calls, aborted, grouped, trailing)| {
            calls.iter_mut().for_each(|call| call.partial &= aborted);
            Turn { thinking, text, calls, aborted, grouped, trailing }
        })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => text().prop_map(Step::Says),
        9 => turn().prop_map(Step::Turn),
        1 => (0u8..8).prop_map(Step::Compaction),
        1 => Just(Step::Quiet),
        1 => text().prop_map(Step::Note),
        1 => (0u8..6, turn()).prop_map(|(back, turn)| Step::Aside(back, turn)),
    ]
}

pub(crate) fn story() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 0..12)
}
