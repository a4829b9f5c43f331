//! The kinds of values that settings have: how each is read from a file, a flag and a variable, and how it is printed.

use super::values::Settings;
use super::written::{
    Code, Glob, Tools, age, bytes, own_secrets, profile_name, secret_mode, span, switch, text, value, whole,
};
use crate::names::profiles;
use crate::value::{Oversized, ThinkingChoice, count, duration, millis, size, tool_limit};
use clap::builder::{EnumValueParser, StringValueParser, TypedValueParser, ValueParser};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use toml::Value;
use transcript::Policy;
use transcript::policy::{OwnSecret, Selection};
use transcript::profile::Profile;
use transcript::rule::Group;

/// Accesses a setting.
type At<T> = fn(&mut Settings) -> &mut T;

/// A change to the settings, made from a given value.
#[derive(Clone)]
pub(crate) struct SettingEdit(Arc<dyn Fn(&mut Settings) + Send + Sync>);

impl SettingEdit {
    fn new(edit: impl Fn(&mut Settings) + Send + Sync + 'static) -> Self {
        Self(Arc::new(edit))
    }

    /// Sets a value.
    fn set<T: Clone + Send + Sync + 'static>(at: At<T>, value: T) -> Self {
        Self::new(move |settings| at(settings).clone_from(&value))
    }

    pub(crate) fn apply(&self, settings: &mut Settings) {
        (self.0)(settings);
    }
}

/// What kind of value a setting has, and where it is stored.
#[derive(Clone, Copy)]
pub(crate) enum SettingKind {
    /// A whole number, stored in each of these places.
    Number(&'static [At<u64>]),
    /// A whole number without a default.
    Asked(At<Option<u64>>),
    /// Bytes.
    Size(At<u64>),
    /// A length of time.
    Time(At<Duration>),
    /// A length of time, stored in milliseconds.
    Millis(At<u64>),
    /// A length of time, written in days.
    Days(At<Duration>),
    Truth(At<bool>),
    /// `on` or `off`.
    Switch(At<bool>),
    Path(At<Option<PathBuf>>),
    Paths(At<Option<Vec<PathBuf>>>),
    Listen(At<Option<watch::Listen>>),
    Mode(At<watch::WatchMode>),
    /// A mode where it differs from the one above.
    OtherMode(At<Option<watch::WatchMode>>),
    /// Rules.
    Codes(At<Vec<String>>),
    /// Names of tools: a key replaces all, a flag adds one.
    Names(At<Vec<String>>),
    /// Globs of files and folders.
    Globs(At<Vec<String>>),
    /// Globs, each with rules.
    GlobCodes(At<Vec<(String, Vec<String>)>>),
    /// What to do about secrets: `off` or `mask`.
    SecretMode,
    /// What a person's own secrets begin with, by name.
    OwnSecrets,
    /// The limits of another system. They replace all earlier limits.
    Profile,
    Images,
    Thinking,
    /// The limit of one tool.
    ToolLimit,
    /// The `[tools]` table.
    Tools,
    /// Settings of single agents, stored apart from those for all.
    Agents,
}

/// How a variable is parsed.
pub(crate) enum Scalar {
    Text,
    Number,
    /// `true` or `false`.
    Truth,
    List,
}

/// Applies the limits of a profile. Settings that it does not mention stay.
fn profile_edit(profile: &'static Profile) -> SettingEdit {
    SettingEdit::new(move |settings| {
        let policy = &mut settings.policy;
        let (thinking, chosen) = (policy.thinking, std::mem::take(&mut policy.selection));
        let limits = profile.policy();
        let allowed_by_profile = limits.selection.allowed_by_profile.clone();
        let selection = Selection { allowed_by_profile, ..chosen };
        *policy = Policy { thinking, selection, downscale: policy.downscale, ..limits };
    })
}

fn tools_edit(tools: Tools) -> SettingEdit {
    SettingEdit::new(move |settings| {
        let policy = &mut settings.policy;
        policy.tools_keep = tools.keep.clone().unwrap_or_else(|| std::mem::take(&mut policy.tools_keep));
        policy.tools_only = tools.only.clone().unwrap_or_else(|| std::mem::take(&mut policy.tools_only));
        // The last limit with a name counts.
        policy.tool_chars_max.extend(tools.limits.iter().cloned());
    })
}

fn numbers_edit(places: &'static [At<u64>], number: u64) -> SettingEdit {
    SettingEdit::new(move |settings| places.iter().for_each(|at| *at(settings) = number))
}

/// Masking is the guarded fix of a rule that runs only if it is named.
fn secret_mode_edit(masks: bool) -> SettingEdit {
    SettingEdit::new(move |settings| {
        let masked = Group::Secrets.codes().filter(|_| masks).map(str::to_string);
        settings.policy.selection.allow.extend(masked);
    })
}

fn own_secrets_edit(patterns: BTreeMap<String, String>) -> SettingEdit {
    let own = |(name, begins)| OwnSecret { name, begins };
    let own: Arc<[OwnSecret]> = patterns.into_iter().map(own).collect();
    SettingEdit::set(|settings| &mut settings.policy.secrets, own)
}

fn images_edit(images: Oversized) -> SettingEdit {
    SettingEdit::set(|settings| &mut settings.policy.downscale, images.how())
}

fn thinking_edit(thinking: ThinkingChoice) -> SettingEdit {
    SettingEdit::set(|settings| &mut settings.policy.thinking, thinking.signed())
}

/// Parses a value of a configuration file.
impl<'de> DeserializeSeed<'de> for SettingKind {
    type Value = SettingEdit;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<SettingEdit, D::Error> {
        Ok(match self {
            Self::Number(places) => numbers_edit(places, value(from, whole)?),
            Self::Asked(at) => SettingEdit::set(at, Some(value(from, whole)?)),
            Self::Size(at) => SettingEdit::set(at, value(from, bytes)?),
            Self::Time(at) => SettingEdit::set(at, value(from, span)?),
            Self::Millis(at) => SettingEdit::set(at, millis(value(from, span)?)),
            Self::Days(at) => SettingEdit::set(at, value(from, age)?),
            Self::Truth(at) => SettingEdit::set(at, bool::deserialize(from)?),
            Self::Switch(at) => SettingEdit::set(at, text(from, switch)?),
            Self::Path(at) => SettingEdit::set(at, Some(PathBuf::deserialize(from)?)),
            Self::Paths(at) => SettingEdit::set(at, Some(Vec::deserialize(from)?)),
            Self::Listen(at) => SettingEdit::set(at, Some(text(from, str::parse)?)),
            Self::Mode(at) => SettingEdit::set(at, watch::WatchMode::deserialize(from)?),
            Self::OtherMode(at) => SettingEdit::set(at, Some(watch::WatchMode::deserialize(from)?)),
            Self::Codes(at) => {
                let codes = Vec::<Code>::deserialize(from)?;
                SettingEdit::set(at, codes.into_iter().map(|code| code.0).collect())
            }
            Self::Names(at) => SettingEdit::set(at, Vec::deserialize(from)?),
            Self::Globs(at) => {
                let globs = Vec::<Glob>::deserialize(from)?;
                SettingEdit::set(at, globs.into_iter().map(|glob| glob.0).collect())
            }
            Self::GlobCodes(at) => {
                let all = BTreeMap::<Glob, Vec<Code>>::deserialize(from)?.into_iter();
                let plain = |codes: Vec<Code>| codes.into_iter().map(|code| code.0).collect();
                SettingEdit::set(at, all.map(|(glob, codes)| (glob.0, plain(codes))).collect())
            }
            Self::SecretMode => secret_mode_edit(text(from, secret_mode)?),
            Self::OwnSecrets => {
                let patterns = BTreeMap::<String, String>::deserialize(from)?;
                own_secrets_edit(own_secrets(patterns).map_err(D::Error::custom)?)
            }
            Self::Profile => profile_edit(text(from, profile_name)?),
            Self::Images => images_edit(Oversized::deserialize(from)?.built_in().map_err(D::Error::custom)?),
            Self::Thinking => thinking_edit(ThinkingChoice::deserialize(from)?),
            Self::Tools => tools_edit(Tools::deserialize(from)?),
            Self::ToolLimit | Self::Agents => return Err(D::Error::custom("not a value of its own")),
        })
    }
}

impl SettingKind {
    /// The parser of a flag's value; `None` if this kind has no flag.
    pub(crate) fn parser(self) -> Option<ValueParser> {
        Some(match self {
            Self::Number(places) => {
                ValueParser::new(move |text: &str| count(text).map(|number| numbers_edit(places, number)))
            }
            Self::Asked(at) => ValueParser::new(move |text: &str| {
                count(text).map(|number| SettingEdit::set(at, Some(number)))
            }),
            Self::Size(at) => {
                ValueParser::new(move |text: &str| size(text).map(|bytes| SettingEdit::set(at, bytes)))
            }
            Self::Millis(at) => ValueParser::new(move |text: &str| {
                duration(text).map(|time| SettingEdit::set(at, millis(time)))
            }),
            Self::Names(at) => {
                let push =
                    move |name: String| SettingEdit::new(move |settings| at(settings).push(name.clone()));
                StringValueParser::new().map(push).into()
            }
            Self::ToolLimit => ValueParser::new(|text: &str| {
                let limit = tool_limit(text)?;
                let push = move |settings: &mut Settings| settings.policy.tool_chars_max.push(limit.clone());
                Ok::<_, String>(SettingEdit::new(push))
            }),
            Self::Profile => profiles().map(profile_edit).into(),
            Self::Images => {
                EnumValueParser::<Oversized>::new().try_map(Oversized::built_in).map(images_edit).into()
            }
            Self::Thinking => EnumValueParser::<ThinkingChoice>::new().map(thinking_edit).into(),
            _ => return None,
        })
    }

    /// Whether a flag can be given more than once.
    pub(crate) fn is_list(self) -> bool {
        matches!(self, Self::Names(_) | Self::ToolLimit)
    }

    pub(super) fn scalar(self) -> Option<Scalar> {
        match self {
            Self::Number(_)
            | Self::Asked(_)
            | Self::Size(_)
            | Self::Time(_)
            | Self::Millis(_)
            | Self::Days(_) => Some(Scalar::Number),
            Self::Truth(_) => Some(Scalar::Truth),
            Self::Paths(_) => Some(Scalar::List),
            Self::Path(_)
            | Self::Listen(_)
            | Self::Mode(_)
            | Self::OtherMode(_)
            | Self::Switch(_)
            | Self::SecretMode
            | Self::Profile
            | Self::Images
            | Self::Thinking => Some(Scalar::Text),
            Self::Codes(_)
            | Self::Names(_)
            | Self::Globs(_)
            | Self::GlobCodes(_)
            | Self::OwnSecrets
            | Self::ToolLimit
            | Self::Tools
            | Self::Agents => None,
        }
    }

    /// The value as written in a configuration file; `None` if it is absent by default.
    pub(crate) fn print(self, settings: &mut Settings) -> Option<Value> {
        let number = |number| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        Some(match self {
            Self::Number(places) => number(*places.first()?(settings)),
            Self::Asked(at) => number((*at(settings))?),
            Self::Size(at) => number(*at(settings)),
            Self::Millis(at) => number(*at(settings) / 1_000),
            Self::Time(at) => number(at(settings).as_secs()),
            Self::Days(at) => number(at(settings).as_secs() / (24 * 60 * 60)),
            Self::Truth(at) => Value::Boolean(*at(settings)),
            Self::Switch(at) => Value::String(if *at(settings) { "on" } else { "off" }.to_string()),
            Self::Path(at) => Value::String(at(settings).as_ref()?.to_string_lossy().into_owned()),
            Self::Mode(at) => Value::String(at(settings).name().to_string()),
            Self::OtherMode(at) => Value::String((*at(settings))?.name().to_string()),
            Self::SecretMode => Value::String("off".to_string()),
            Self::Profile => Value::String("default".to_string()),
            Self::Images => Value::String("stub".to_string()),
            Self::Thinking => Value::String("keep".to_string()),
            _ => return None,
        })
    }
}
