//! What happens in a session, independent of its format: user messages, turns of the model with calls and results,
//! compactions, branches. The same story can be spelled in every dialect.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// The agent or API whose format is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    /// pi, header version 3: a tree by `id` and `parentId`.
    Pi,
    /// pi, header version 1: only the order of lines counts.
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

/// A text as written between the quotes of a JSON string.
pub(crate) type StoryText = String;

/// An append.
#[derive(Clone, Debug)]
pub(crate) enum StoryStep {
    /// A user message.
    Says(StoryText),
    /// An assistant message, and results of its calls.
    Turn(StoryTurn),
    /// A compaction that keeps this many of the entries before.
    Compaction(u8),
    /// A record that is not part of the conversation.
    Quiet,
    /// A text that a program added.
    Note(StoryText),
    /// A turn on a branch that begins so many entries back, and is abandoned.
    Aside(u8, StoryTurn),
}

/// An assistant message.
#[derive(Clone, Debug)]
pub(crate) struct StoryTurn {
    pub thinking: StoryThinking,
    pub text: Option<StoryText>,
    pub calls: Vec<StoryCall>,
    /// It ends by being interrupted.
    pub aborted: bool,
    /// Results are in one entry, if the dialect allows it.
    pub grouped: bool,
    /// A user text in the message with the results, if the dialect allows it.
    pub trailing: Option<StoryText>,
}

/// Signed thinking at the beginning of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoryThinking {
    None,
    /// By a model that binds its signatures to all earlier messages.
    Bound,
    /// By a model that does not.
    Loose,
}

/// A tool call with its results.
#[derive(Clone, Debug)]
pub(crate) struct StoryCall {
    pub tool: usize,
    pub id: CallId,
    /// The arguments are incomplete.
    pub partial: bool,
    /// One result, if all is well.
    pub answers: Vec<StoryResult>,
}

/// The id of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallId {
    Fresh,
    /// The id of the call before it.
    Again,
    /// Its number within the turn, as in Kimi.
    Numbered,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(crate) struct StoryResult {
    pub texts: Vec<StoryText>,
    pub error: bool,
    /// A repair invented it.
    pub synthetic: bool,
    /// A copy for the screen.
    pub side: Option<StoryText>,
    /// It comes after the next message.
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

pub(crate) fn text() -> impl Strategy<Value = StoryText> {
    let times = prop_oneof![8 => Just(1usize), 2 => Just(7), 1 => Just(40)];
    (vec(fragment(), 0..5), times).prop_map(|(fragments, times)| fragments.concat().repeat(times))
}

/// Long enough for a side copy to be cut.
fn side() -> impl Strategy<Value = StoryText> {
    (vec(fragment(), 1..4), 900usize..2600).prop_map(|(fragments, bytes)| {
        let one = fragments.concat();
        one.repeat(bytes.div_ceil(one.len()))
    })
}

fn answer() -> impl Strategy<Value = StoryResult> {
    (
        vec(text(), 1..3),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
        option::weighted(0.15, side()),
        prop::bool::weighted(0.06),
    )
        .prop_map(|(texts, error, synthetic, side, late)| StoryResult {
            texts,
            error,
            synthetic,
            side,
            late,
        })
}

fn call() -> impl Strategy<Value = StoryCall> {
    let id = prop_oneof![18 => Just(CallId::Fresh), 1 => Just(CallId::Again), 2 => Just(CallId::Numbered)];
    let count = prop_oneof![16 => 1usize..2, 2 => 0usize..1, 1 => 2usize..4];
    (0..TOOLS.len(), id, prop::bool::weighted(0.4), count.prop_flat_map(|count| vec(answer(), count)))
        .prop_map(|(tool, id, partial, answers)| StoryCall { tool, id, partial, answers })
}

pub(crate) fn turn() -> impl Strategy<Value = StoryTurn> {
    let thinking = prop_oneof![6 => Just(StoryThinking::None), 1 => Just(StoryThinking::Bound), 1 => Just(StoryThinking::Loose)];
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
            StoryTurn { thinking, text, calls, aborted, grouped, trailing }
        })
}

fn step() -> impl Strategy<Value = StoryStep> {
    prop_oneof![
        6 => text().prop_map(StoryStep::Says),
        9 => turn().prop_map(StoryStep::Turn),
        1 => (0u8..8).prop_map(StoryStep::Compaction),
        1 => Just(StoryStep::Quiet),
        1 => text().prop_map(StoryStep::Note),
        1 => (0u8..6, turn()).prop_map(|(back, turn)| StoryStep::Aside(back, turn)),
    ]
}

pub(crate) fn story() -> impl Strategy<Value = Vec<StoryStep>> {
    vec(step(), 0..12)
}
