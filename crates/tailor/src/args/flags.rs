//! The flags from the table of settings.

use crate::settings::{Flag, SETTINGS, Setting, SettingEdit, SettingKind};
use clap::builder::{PossibleValuesParser, StringValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// Flags of the daemon that few need.
const SELDOM: [&str; 2] = ["metrics-textfile", "vault"];

/// What the value of such a flag is parsed into.
pub(crate) trait FlagValue: Clone + Send + Sync + 'static {
    /// The parser for a flag's value; `None` if the flag is not of this type.
    fn parser(setting: &Setting, flag: &Flag) -> Option<ValueParser>;
}

/// Flags of limits.
impl FlagValue for SettingEdit {
    fn parser(setting: &Setting, flag: &Flag) -> Option<ValueParser> {
        flag.heading.and_then(|_| setting.kind.parser())
    }
}

/// Flags of the daemon, which are read as lines of its configuration.
impl FlagValue for String {
    fn parser(setting: &Setting, flag: &Flag) -> Option<ValueParser> {
        let modes = [watch::WatchMode::Observe, watch::WatchMode::Enforce].map(watch::WatchMode::name);
        flag.heading.is_none().then(|| match setting.kind {
            SettingKind::Mode(_) => PossibleValuesParser::new(modes).into(),
            SettingKind::Switch(_) => PossibleValuesParser::new(["on", "off"]).into(),
            _ => StringValueParser::new().into(),
        })
    }
}

/// The given values, by key, in the order of the settings.
pub(crate) struct GivenValues<V>(pub(super) Vec<(&'static str, V)>);

impl<V: FlagValue> GivenValues<V> {
    /// The last value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&V> {
        self.0.iter().rfind(|(given, _)| *given == key).map(|(_, value)| value)
    }

    fn settings() -> impl Iterator<Item = (&'static Setting, &'static Flag, ValueParser)> {
        SETTINGS.iter().filter_map(|setting| {
            let flag = setting.flag.as_ref()?;
            Some((setting, flag, V::parser(setting, flag)?))
        })
    }
}

impl<V: FlagValue> Args for GivenValues<V> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::settings().map(|(setting, flag, parser)| {
            let action = if setting.kind.is_list() { ArgAction::Append } else { ArgAction::Set };
            let arg = Arg::new(flag.name).long(flag.name).value_name(flag.unit).help(setting.flag_help());
            // Without a value it is on.
            let arg = match setting.kind {
                SettingKind::Switch(_) => {
                    arg.num_args(0..=1).require_equals(true).default_missing_value("on")
                }
                _ => arg,
            };
            // Limits are many, and seldom wanted.
            arg.help_heading(flag.heading)
                .hide_short_help(flag.heading.is_some() || SELDOM.contains(&flag.name))
                .hide_possible_values(["profile", "mode", "keep.mode"].contains(&setting.key))
                .action(action)
                .value_parser(parser)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<V: FlagValue> FromArgMatches for GivenValues<V> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Self::settings().flat_map(|(setting, flag, _)| {
            let values = matches.get_many::<V>(flag.name).into_iter().flatten();
            values.map(|value| (setting.key, value.clone()))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
