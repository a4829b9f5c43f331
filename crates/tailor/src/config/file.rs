//! What may stand in a configuration file: shapes only.

use crate::args::{millis, profile, rule_code, size_in_bytes};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use toml::{Table, Value};
use transcript::Policy;
use transcript::policy::{self, SignedThinking};
use transcript::profile::Profile;

pub(super) const DAY_SECONDS: u64 = 24 * 60 * 60;

/// How a variable is read.
pub(super) enum Scalar {
    Text,
    Number,
    List,
}

/// The keys that variables can give.
pub(super) const SCALARS: &[(&str, Scalar)] = &[
    ("mode", Scalar::Text),
    ("roots", Scalar::List),
    ("vault", Scalar::Text),
    ("listen", Scalar::Text),
    ("socket", Scalar::Text),
    ("settle", Scalar::Number),
    ("settle_stale", Scalar::Number),
    ("rescan", Scalar::Number),
    ("result_chars_max", Scalar::Number),
    ("turn_chars_max", Scalar::Number),
    ("summary_chars_max", Scalar::Number),
    ("side_chars_max", Scalar::Number),
    ("window_tokens", Scalar::Number),
    ("thinking", Scalar::Text),
    ("profile", Scalar::Text),
];

/// A file. The keys of [`Rules`] stand among the others.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Whole")]
pub(super) struct File {
    pub(super) mode: Option<Mode>,
    pub(super) roots: Option<Vec<PathBuf>>,
    pub(super) vault: Option<PathBuf>,
    pub(super) listen: Option<Listen>,
    pub(super) socket: Option<PathBuf>,
    pub(super) settle: Option<Span>,
    pub(super) settle_stale: Option<Span>,
    pub(super) rescan: Option<Span>,
    pub(super) rules: Rules,
    pub(super) agents: BTreeMap<String, Rules>,
    pub(super) originals: Originals,
}

/// All keys of a file side by side, so that an unknown one is found among all of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    mode: Option<Mode>,
    roots: Option<Vec<PathBuf>>,
    vault: Option<PathBuf>,
    listen: Option<Listen>,
    socket: Option<PathBuf>,
    settle: Option<Span>,
    settle_stale: Option<Span>,
    rescan: Option<Span>,
    profile: Option<Name>,
    result_chars_max: Option<u64>,
    turn_chars_max: Option<u64>,
    summary_chars_max: Option<u64>,
    side_chars_max: Option<u64>,
    window_tokens: Option<u64>,
    thinking: Option<Thinking>,
    select: Option<Vec<Code>>,
    ignore: Option<Vec<Code>>,
    allow: Option<Vec<Code>>,
    #[serde(default)]
    stale: Stale,
    #[serde(default)]
    crowded: Crowded,
    #[serde(default)]
    tools: Tools,
    #[serde(default)]
    agents: BTreeMap<String, Rules>,
    #[serde(default)]
    originals: Originals,
}

impl From<Whole> for File {
    fn from(whole: Whole) -> Self {
        Self {
            mode: whole.mode,
            roots: whole.roots,
            vault: whole.vault,
            listen: whole.listen,
            socket: whole.socket,
            settle: whole.settle,
            settle_stale: whole.settle_stale,
            rescan: whole.rescan,
            rules: Rules {
                profile: whole.profile,
                result_chars_max: whole.result_chars_max,
                turn_chars_max: whole.turn_chars_max,
                summary_chars_max: whole.summary_chars_max,
                side_chars_max: whole.side_chars_max,
                window_tokens: whole.window_tokens,
                thinking: whole.thinking,
                select: whole.select,
                ignore: whole.ignore,
                allow: whole.allow,
                stale: whole.stale,
                crowded: whole.crowded,
                tools: whole.tools,
            },
            agents: whole.agents,
            originals: whole.originals,
        }
    }
}

/// What is asked for, of all transcripts or of those of one agent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rules {
    profile: Option<Name>,
    result_chars_max: Option<u64>,
    turn_chars_max: Option<u64>,
    summary_chars_max: Option<u64>,
    side_chars_max: Option<u64>,
    window_tokens: Option<u64>,
    thinking: Option<Thinking>,
    select: Option<Vec<Code>>,
    ignore: Option<Vec<Code>>,
    allow: Option<Vec<Code>>,
    #[serde(default)]
    stale: Stale,
    #[serde(default)]
    crowded: Crowded,
    #[serde(default)]
    tools: Tools,
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

impl Rules {
    /// A policy with these rules over it, or over that of the profile that they name.
    pub(super) fn over(self, policy: Policy) -> Policy {
        let mut policy = self.profile.map_or(policy, |name| name.0.policy());
        let codes = |codes: Option<Vec<Code>>| {
            codes.map(|codes| codes.into_iter().map(|code| code.0).collect::<Vec<String>>())
        };
        set(&mut policy.result_chars_max, self.result_chars_max);
        set(&mut policy.turn_chars_max, self.turn_chars_max);
        set(&mut policy.summary_chars_max, self.summary_chars_max);
        set(&mut policy.side_chars_max, self.side_chars_max);
        set(&mut policy.window_tokens, self.window_tokens);
        set(&mut policy.thinking, self.thinking.map(Into::into));
        set(&mut policy.selection.select, codes(self.select));
        set(&mut policy.selection.ignore, codes(self.ignore));
        set(&mut policy.selection.allow, codes(self.allow));
        set(&mut policy.tools_keep, self.tools.keep);
        set(&mut policy.tools_only, self.tools.only);
        self.stale.apply(&mut policy.stale);
        self.crowded.apply(&mut policy.crowded);
        // The last one of a name counts.
        policy.tool_chars_max.extend(self.tools.limits);
        policy
    }
}

/// What becomes of results as the conversation goes on (S14).
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stale {
    shorten_turns: Option<u64>,
    head_chars: Option<u64>,
    tail_chars: Option<u64>,
    clear_turns: Option<u64>,
    chars_min: Option<u64>,
    keep: Option<Vec<String>>,
}

impl Stale {
    fn apply(self, policy: &mut policy::Stale) {
        set(&mut policy.shorten_at, self.shorten_turns);
        set(&mut policy.head_chars, self.head_chars);
        set(&mut policy.tail_chars, self.tail_chars);
        set(&mut policy.clear_at, self.clear_turns);
        set(&mut policy.chars_min, self.chars_min);
        set(&mut policy.tools_keep, self.keep);
    }
}

/// What becomes of results when the window fills up (S15).
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Crowded {
    trim_percent: Option<u64>,
    chars_max: Option<u64>,
    end_chars: Option<u64>,
    clear_percent: Option<u64>,
    clear_chars_min: Option<u64>,
    keep_assistants: Option<u64>,
    cache_ttl: Option<Span>,
}

impl Crowded {
    fn apply(self, policy: &mut policy::Crowded) {
        set(&mut policy.trim_percent, self.trim_percent);
        set(&mut policy.trim_chars_max, self.chars_max);
        set(&mut policy.head_chars, self.end_chars);
        set(&mut policy.tail_chars, self.end_chars);
        set(&mut policy.clear_percent, self.clear_percent);
        set(&mut policy.clear_chars_min, self.clear_chars_min);
        set(&mut policy.keep_assistants, self.keep_assistants);
        set(&mut policy.cache_ttl_ms, self.cache_ttl.map(|span| millis(span.0)));
    }
}

/// Name of a profile.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Name(pub(super) &'static Profile);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        profile(&text).map(Self).map_err(|error| format!("`{text}`: {error}"))
    }
}

/// `keep` and `only` are lists of names; each other key is a tool.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "Table")]
struct Tools {
    keep: Option<Vec<String>>,
    only: Option<Vec<String>>,
    limits: Vec<(String, u64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    result_chars_max: u64,
}

impl TryFrom<Table> for Tools {
    type Error = String;

    fn try_from(table: Table) -> Result<Self, String> {
        let mut tools = Self::default();
        for (name, value) in table {
            let wrong = |error: toml::de::Error| format!("tools.{name}: {}", error.message());
            match (name.as_str(), value) {
                ("keep", value @ Value::Array(_)) => tools.keep = Some(value.try_into().map_err(wrong)?),
                ("only", value @ Value::Array(_)) => tools.only = Some(value.try_into().map_err(wrong)?),
                (_, value) => {
                    let tool: Tool = value.try_into().map_err(wrong)?;
                    tools.limits.push((name, tool.result_chars_max));
                }
            }
        }
        Ok(tools)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Originals {
    #[serde(default)]
    pub(super) keep: Keep,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keep {
    pub(super) days: Option<Days>,
    pub(super) bytes: Option<Size>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    Observe,
    Enforce,
}

impl From<Mode> for watch::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Observe => Self::Observe,
            Mode::Enforce => Self::Enforce,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Thinking {
    Keep,
    Strip,
    Ignore,
}

impl From<Thinking> for SignedThinking {
    fn from(thinking: Thinking) -> Self {
        match thinking {
            Thinking::Keep => Self::Keep,
            Thinking::Strip => Self::Strip,
            Thinking::Ignore => Self::Ignore,
        }
    }
}

/// Code or name of a rule.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Code(String);

impl TryFrom<String> for Code {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        rule_code(&text).map(Self).map_err(|error| format!("`{text}`: {error}"))
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Listen(pub(super) watch::Listen);

impl TryFrom<String> for Listen {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

/// Seconds, or a number with a unit of time.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Span(pub(super) Duration);

/// Seconds of each unit.
const UNITS: &[(&str, f64)] =
    &[("ms", 0.001), ("min", 60.0), ("s", 1.0), ("m", 60.0), ("h", 3_600.0), ("d", 86_400.0)];

impl TryFrom<Value> for Span {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let wrong = || format!("{value} is not a length of time, such as 5, \"90s\" or \"1h\"");
        let (number, unit) = match &value {
            Value::Integer(number) => (number.to_string(), 1.0),
            Value::Float(number) => (number.to_string(), 1.0),
            Value::String(text) => {
                let unit =
                    UNITS.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
                let (number, unit) = unit.unwrap_or((text, 1.0));
                (number.trim().to_string(), unit)
            }
            _ => return Err(wrong()),
        };
        let seconds: f64 = number.parse().map_err(|_| wrong())?;
        Duration::try_from_secs_f64(seconds * unit).map(Self).map_err(|_| wrong())
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(super) struct Days(pub(super) Duration);

impl TryFrom<f64> for Days {
    type Error = String;

    fn try_from(days: f64) -> Result<Self, String> {
        let seconds = days * 86_400.0;
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| format!("{days} is not a number of days"))
    }
}

/// Bytes, or a number with a unit.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Size(pub(super) u64);

impl TryFrom<Value> for Size {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let wrong = || format!("{value} is not a size, such as 500000 or \"5GiB\"");
        match &value {
            Value::Integer(bytes) => u64::try_from(*bytes).map(Self).map_err(|_| wrong()),
            Value::String(text) => size_in_bytes(text).map(Self).map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }
}
