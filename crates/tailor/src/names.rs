//! Values that are names which are known beforehand: completions list them, and help does not.

use crate::value::{SEVERITIES, code, or_meant, profile, severity};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use transcript::Severity;
use transcript::format::{Agent, FORMATS, Format};
use transcript::profile::{PROFILES, Profile};
use transcript::rule::{Group, RULES, Rule};

/// Reads a value, and knows what it may be.
#[derive(Clone)]
pub(crate) struct NameParser<T> {
    read: fn(&str) -> Result<T, String>,
    names: fn() -> Vec<PossibleValue>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for NameParser<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        self.read.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter()))
    }
}

/// Codes and names of rules.
pub(crate) fn rules() -> NameParser<String> {
    NameParser { read: code, names: || RULES.iter().flat_map(|rule| names_of(rule)).collect() }
}

/// Groups of rules.
pub(crate) fn groups(read: fn(&str) -> Result<Group, String>) -> NameParser<Group> {
    NameParser { read, names: || Group::NAMES.iter().map(|name| PossibleValue::new(*name)).collect() }
}

pub(crate) fn severities() -> NameParser<Severity> {
    NameParser { read: severity, names: severity_names }
}

/// Severities, and codes and names of rules.
pub(crate) fn severities_and_rules<T>(read: fn(&str) -> Result<T, String>) -> NameParser<T> {
    NameParser { read, names: || [severity_names(), (rules().names)()].concat() }
}

/// Profiles.
pub(crate) fn profiles() -> NameParser<&'static Profile> {
    NameParser { read: profile, names: profile_names }
}

/// Agents. What is none is told of later.
pub(crate) fn agents() -> NameParser<String> {
    let names = || {
        let command = |agent: &Agent| agent.resume.and_then(|resume| resume.command.first().copied());
        let of_format = |format: &&'static Format| {
            let commands = format.agents.iter().filter_map(command);
            commands.chain([format.name]).next().unwrap_or(format.name)
        };
        let names: BTreeSet<&str> = FORMATS.iter().map(of_format).collect();
        names.into_iter().map(PossibleValue::new).collect()
    };
    NameParser { read: |text| Ok(text.to_string()), names }
}

/// Formats, by name.
pub(crate) fn formats() -> NameParser<&'static str> {
    let read = |text: &str| {
        let names: Vec<&'static str> = FORMATS.iter().map(|format| format.name).collect();
        let found = names.iter().find(|name| **name == text).copied();
        found.ok_or_else(|| or_meant("no such format (docs/formats.md lists them)".to_string(), text, &names))
    };
    NameParser { read, names: || FORMATS.iter().map(|format| PossibleValue::new(format.name)).collect() }
}

/// What `explain` explains, besides the texts of errors.
pub(crate) fn topics() -> NameParser<String> {
    let names = || [(rules().names)(), profile_names()].concat();
    NameParser { read: |text| Ok(text.to_string()), names }
}

fn names_of(rule: &Rule) -> [PossibleValue; 2] {
    [
        PossibleValue::new(rule.code()).help(rule.name()),
        PossibleValue::new(rule.name()).help(rule.help().what),
    ]
}

fn severity_names() -> Vec<PossibleValue> {
    SEVERITIES.map(|severity| PossibleValue::new(severity.name())).to_vec()
}

fn profile_names() -> Vec<PossibleValue> {
    PROFILES.iter().map(|profile| PossibleValue::new(profile.name)).collect()
}
