//! What may stand in a configuration file: shapes only.

use crate::value::{Oversized, code, millis, nearest, override_each, profile, size};
use keeper::Worth;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use toml::Value;
use transcript::Policy;
use transcript::format::FORMATS;
use transcript::policy::SignedThinking;
use transcript::profile::Profile;

pub(super) const DAY_SECONDS: u64 = 24 * 60 * 60;

/// How a variable is read.
pub(super) enum Scalar {
    Text,
    Number,
    /// `true` or `false`.
    Truth,
    List,
}

/// The keys that variables can give.
pub(super) const SCALARS: &[(&str, Scalar)] = &[
    ("mode", Scalar::Text),
    ("roots", Scalar::List),
    ("vault", Scalar::Text),
    ("listen", Scalar::Text),
    ("metrics_textfile", Scalar::Text),
    ("socket", Scalar::Text),
    ("settle", Scalar::Number),
    ("settle_stale", Scalar::Number),
    ("memory_settle", Scalar::Number),
    ("rescan", Scalar::Number),
    ("recover", Scalar::Truth),
    ("profile", Scalar::Text),
    ("result_chars_max", Scalar::Number),
    ("turn_chars_max", Scalar::Number),
    ("summary_chars_max", Scalar::Number),
    ("side_chars_max", Scalar::Number),
    ("reply_chars_max", Scalar::Number),
    ("image_bytes_max", Scalar::Number),
    ("image_pixels_max", Scalar::Number),
    ("images_max", Scalar::Number),
    ("images", Scalar::Text),
    ("window_tokens", Scalar::Number),
    ("thinking", Scalar::Text),
];

/// All keys, side by side, so that an unknown one is found among all of them. The table of an agent is one more of
/// these, an [`Agent`]; which keys have no meaning there is told by [`File::not_for_agents`].
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) mode: Option<Mode>,
    pub(super) roots: Option<Vec<PathBuf>>,
    pub(super) vault: Option<PathBuf>,
    pub(super) listen: Option<Listen>,
    pub(super) metrics_textfile: Option<PathBuf>,
    pub(super) socket: Option<PathBuf>,
    pub(super) settle: Option<Span>,
    pub(super) settle_stale: Option<Span>,
    pub(super) memory_settle: Option<Span>,
    pub(super) rescan: Option<Span>,
    pub(super) recover: Option<bool>,
    #[serde(default)]
    pub(super) watch: Watch,
    #[serde(default)]
    pub(super) originals: Originals,
    #[serde(default)]
    pub(super) agents: BTreeMap<AgentName, Agent>,
    /// Only in the table of an agent.
    pub(super) reloads: Option<bool>,
    profile: Option<ProfileName>,
    result_chars_max: Option<u64>,
    turn_chars_max: Option<u64>,
    summary_chars_max: Option<u64>,
    side_chars_max: Option<u64>,
    reply_chars_max: Option<u64>,
    image_bytes_max: Option<u64>,
    image_pixels_max: Option<u64>,
    images_max: Option<u64>,
    #[serde(default, deserialize_with = "built_in")]
    images: Option<Oversized>,
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

impl File {
    /// A key that is here and can be given only once, for all agents.
    fn not_for_agents(&self) -> Option<&'static str> {
        let keep = &self.originals.keep;
        let given = [
            ("mode", self.mode.is_some()),
            ("roots", self.roots.is_some()),
            ("vault", self.vault.is_some()),
            ("listen", self.listen.is_some()),
            ("metrics_textfile", self.metrics_textfile.is_some()),
            ("socket", self.socket.is_some()),
            ("settle", self.settle.is_some()),
            ("settle_stale", self.settle_stale.is_some()),
            ("memory_settle", self.memory_settle.is_some()),
            ("rescan", self.rescan.is_some()),
            ("recover", self.recover.is_some()),
            ("watch", self.watch.is_given()),
            ("originals", keep.days.is_some() || keep.bytes.is_some()),
            ("agents", !self.agents.is_empty()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(key, _)| key)
    }

    /// What is asked for, over a policy. A profile takes the place of all limits that it has.
    pub(super) fn policy_over(&self, base: &Policy) -> Policy {
        let mut policy = match self.profile {
            Some(ProfileName(profile)) => {
                let (thinking, selection) = (base.thinking, base.selection.clone());
                Policy { thinking, selection, downscale: base.downscale, ..profile.policy() }
            }
            None => base.clone(),
        };
        override_each([
            (&mut policy.result_chars_max, self.result_chars_max),
            (&mut policy.turn_chars_max, self.turn_chars_max),
            (&mut policy.summary_chars_max, self.summary_chars_max),
            (&mut policy.side_chars_max, self.side_chars_max),
            (&mut policy.reply_chars_max, self.reply_chars_max),
            (&mut policy.images.bytes_max, self.image_bytes_max),
            (&mut policy.images.pixels_max, self.image_pixels_max),
            (&mut policy.images.count_max, self.images_max),
            (&mut policy.window_tokens, self.window_tokens),
        ]);
        let codes = |codes: &Option<Vec<Code>>| {
            codes.as_ref().map(|codes| codes.iter().map(|code| code.0.clone()).collect::<Vec<String>>())
        };
        override_each([(&mut policy.thinking, self.thinking.map(Into::into))]);
        override_each([(&mut policy.downscale, self.images.map(Oversized::how))]);
        override_each([
            (&mut policy.selection.select, codes(&self.select)),
            (&mut policy.selection.ignore, codes(&self.ignore)),
            (&mut policy.selection.allow, codes(&self.allow)),
            (&mut policy.tools_keep, self.tools.keep.clone()),
            (&mut policy.tools_only, self.tools.only.clone()),
            (&mut policy.stale.tools_keep, self.stale.keep.clone()),
        ]);
        // The last one of a name counts.
        policy.tool_chars_max.extend(self.tools.limits.iter().cloned());
        self.ages_over(&mut policy);
        policy
    }

    fn ages_over(&self, policy: &mut Policy) {
        let (stale, crowded) = (&mut policy.stale, &mut policy.crowded);
        override_each([
            (&mut stale.shorten_at, self.stale.shorten_turns),
            (&mut stale.clear_at, self.stale.clear_turns),
            (&mut stale.head_chars, self.stale.head_chars),
            (&mut stale.tail_chars, self.stale.tail_chars),
            (&mut stale.chars_min, self.stale.chars_min),
            (&mut crowded.trim_percent, self.crowded.trim_percent),
            (&mut crowded.trim_chars_max, self.crowded.chars_max),
            (&mut crowded.head_chars, self.crowded.end_chars),
            (&mut crowded.tail_chars, self.crowded.end_chars),
            (&mut crowded.clear_percent, self.crowded.clear_percent),
            (&mut crowded.clear_chars_min, self.crowded.clear_chars_min),
            (&mut crowded.keep_assistants, self.crowded.keep_assistants),
            (&mut crowded.cache_ttl_ms, self.crowded.cache_ttl.map(|span| millis(span.0))),
        ]);
    }
}

/// What becomes of images, if this build can do it.
fn built_in<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Oversized>, D::Error> {
    Oversized::deserialize(from)?.built_in().map(Some).map_err(D::Error::custom)
}

/// What becomes of old results (S14); the keys are called as the flags are.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stale {
    shorten_turns: Option<u64>,
    clear_turns: Option<u64>,
    head_chars: Option<u64>,
    tail_chars: Option<u64>,
    chars_min: Option<u64>,
    keep: Option<Vec<String>>,
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

/// The limits of another system.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct ProfileName(&'static Profile);

impl TryFrom<String> for ProfileName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        profile(&text).map(Self).map_err(|error| format!("`{text}`: {error}"))
    }
}

/// The name of an agent's format.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct AgentName(pub(super) String);

impl TryFrom<String> for AgentName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let names = || FORMATS.iter().map(|format| format.name());
        if names().any(|known| known == name) {
            return Ok(Self(name));
        }
        let hint = nearest(&name, names()).map_or("", |(name, _)| name);
        Err(format!("there is no agent `{name}` (did you mean `{hint}`?)"))
    }
}

/// What is different for one agent.
#[derive(Debug, Deserialize)]
#[serde(try_from = "File")]
pub(super) struct Agent(pub(super) File);

impl TryFrom<File> for Agent {
    type Error = String;

    fn try_from(own: File) -> Result<Self, String> {
        match own.not_for_agents() {
            None => Ok(Self(own)),
            Some(key) => Err(format!(
                "`{key}` in the table of an agent has no meaning: it is for all agents alike (put it in front of the \
                 first table)"
            )),
        }
    }
}

/// `keep` and `only` are lists of names; each other key is a tool.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, ToolValue>")]
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

/// What stands behind a key of [`Tools`]. Read by hand, because what serde derives forgets the line that is wrong.
enum ToolValue {
    Names(Vec<String>),
    Tool(Tool),
}

impl<'de> Deserialize<'de> for ToolValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;
        impl<'de> Visitor<'de> for Shape {
            type Value = ToolValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of names, or a table with `result_chars_max`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<ToolValue, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(names)).map(ToolValue::Names)
            }

            fn visit_map<A: MapAccess<'de>>(self, tool: A) -> Result<ToolValue, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(tool)).map(ToolValue::Tool)
            }
        }
        deserializer.deserialize_any(Shape)
    }
}

impl TryFrom<BTreeMap<String, ToolValue>> for Tools {
    type Error = String;

    fn try_from(table: BTreeMap<String, ToolValue>) -> Result<Self, String> {
        let mut tools = Self::default();
        for (name, value) in table {
            match (name.as_str(), value) {
                ("keep", ToolValue::Names(names)) => tools.keep = Some(names),
                ("only", ToolValue::Names(names)) => tools.only = Some(names),
                (_, ToolValue::Tool(tool)) => tools.limits.push((name, tool.result_chars_max)),
                (_, ToolValue::Names(_)) => {
                    return Err(format!(
                        "tools.{name}: a list, where a table with `result_chars_max` is wanted"
                    ));
                }
            }
        }
        Ok(tools)
    }
}

/// When the daemon writes a file anew.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the keys as people write them")]
pub(super) struct Watch {
    rewrite_saved_bytes_min: Option<Size>,
    rewrite_saved_percent_min: Option<u64>,
    rewrite_context_percent_min: Option<u64>,
}

impl Watch {
    fn is_given(&self) -> bool {
        self.rewrite_saved_bytes_min.is_some()
            || self.rewrite_saved_percent_min.is_some()
            || self.rewrite_context_percent_min.is_some()
    }

    pub(super) fn worth(&self) -> Worth {
        let default = Worth::default();
        Worth {
            saved_bytes_min: self.rewrite_saved_bytes_min.map_or(default.saved_bytes_min, |size| size.0),
            saved_percent_min: self.rewrite_saved_percent_min.unwrap_or(default.saved_percent_min),
            context_percent_min: self.rewrite_context_percent_min.unwrap_or(default.context_percent_min),
        }
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
        code(&text).map(Self).map_err(|error| format!("`{text}`: {error}"))
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
            Value::String(text) => size(text).map(Self).map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }
}
