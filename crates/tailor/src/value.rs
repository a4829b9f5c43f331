//! Values as people write them, on the command line and in configuration files, and what was meant by one that is wrong.

use clap::ValueEnum;
use serde::Deserialize;
use std::time::Duration;
use transcript::policy::{Downscale, SignedThinking};
use transcript::profile::{self, PROFILES, Profile};
use transcript::rule::{self, RULES};

/// What becomes of an image that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Oversized {
    Stub,
    Downscale,
}

impl Oversized {
    /// An error if this build cannot do it.
    pub(crate) fn built_in(self) -> Result<Self, String> {
        let has = self == Self::Stub || cfg!(feature = "images");
        has.then_some(self).ok_or_else(|| not_built_in("images"))
    }

    pub(crate) fn how(self) -> Option<Downscale> {
        match self {
            Self::Stub => None,
            #[cfg(feature = "images")]
            Self::Downscale => Some(Downscale(crate::downscale::downscale)),
            // Refused where it is asked for.
            #[cfg(not(feature = "images"))]
            Self::Downscale => None,
        }
    }
}

/// What to do where a change would come before signed thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Thinking {
    Keep,
    Strip,
    Ignore,
}

impl Thinking {
    pub(crate) fn signed(self) -> SignedThinking {
        match self {
            Self::Keep => SignedThinking::Keep,
            Self::Strip => SignedThinking::Strip,
            Self::Ignore => SignedThinking::Ignore,
        }
    }
}

/// How text is counted in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tokenizer {
    /// Four characters each: an estimate.
    Chars4,
    /// The vocabulary of gpt-4o, o1 and later, exactly.
    O200k,
}

impl Tokenizer {
    /// An error if this build cannot do it.
    pub(crate) fn built_in(self) -> Result<Self, String> {
        let has = self == Self::Chars4 || cfg!(feature = "tokens");
        has.then_some(self).ok_or_else(|| not_built_in("tokens"))
    }
}

/// What to say where somebody asks for what a smaller build leaves out.
fn not_built_in(feature: &str) -> String {
    let all = "cargo install --profile dist --path crates/tailor";
    format!("this tailor was built without the feature `{feature}`; to build it complete: {all}")
}

/// The profile of that name.
pub(crate) fn profile(text: &str) -> Result<&'static Profile, String> {
    profile::find(text).ok_or_else(|| {
        let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        or_meant(format!("no such profile; there are {}", names.join(", ")), text, &names)
    })
}

/// The code of a rule that is named by it or by its name.
pub(crate) fn code(text: &str) -> Result<String, String> {
    if let Some(rule) = rule::find(text) {
        return Ok(rule.code().to_string());
    }
    Err(or_meant("no such rule (tailor explain lists them)".to_string(), text, &rules()))
}

/// A number of bytes, with a unit or without.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("B", 1),
    ];
    let unit = UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (number, bytes) = unit.unwrap_or((text, 1));
    let wrong = || "not a size, such as 500MiB or 5GiB".to_string();
    number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(bytes)).ok_or_else(wrong)
}

/// A number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Seconds of each unit.
const UNITS: &[(&str, f64)] =
    &[("ms", 0.001), ("min", 60.0), ("s", 1.0), ("m", 60.0), ("h", 3_600.0), ("d", 86_400.0)];

/// Seconds, or a number with a unit of time.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "not a length of time, such as 5, 90s or 1h".to_string();
    let unit = UNITS.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (number, unit) = unit.unwrap_or((text, 1.0));
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| wrong())
}

/// So many days.
pub(crate) fn days(days: f64) -> Result<Duration, String> {
    const DAY_SECONDS: f64 = 24.0 * 60.0 * 60.0;
    Duration::try_from_secs_f64(days * DAY_SECONDS).map_err(|_| format!("{days} is not a number of days"))
}

/// A tool and its limit.
pub(crate) fn tool_limit(text: &str) -> Result<(String, u64), String> {
    let (tool, chars) = text.split_once('=').ok_or("not of the form TOOL=CHARS")?;
    Ok((tool.to_string(), chars.parse().map_err(|_| format!("`{chars}` is not a number of characters"))?))
}

/// A time in milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// How alike two names must be for one to be named instead of the other, from 0 to 1.
const LIKENESS_MIN: f64 = 0.7;

/// The message, and what was probably meant.
pub(crate) fn or_meant(message: String, text: &str, names: &[&'static str]) -> String {
    match nearest(text, names.iter().copied()) {
        Some((name, likeness)) if likeness >= LIKENESS_MIN => format!("{message}; did you mean {name}?"),
        _ => message,
    }
}

/// Codes and names of all rules.
pub(crate) fn rules() -> Vec<&'static str> {
    RULES.iter().flat_map(|rule| [rule.code(), rule.name()]).collect()
}

/// The name most like a text, and how alike they are, from 0 to 1.
pub(crate) fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<(&'a str, f64)> {
    let text = text.to_lowercase();
    let likeness = |name: &'a str| (name, strsim::jaro_winkler(&text, &name.to_lowercase()));
    names.map(likeness).max_by(|(_, one), (_, other)| one.total_cmp(other))
}

#[cfg(test)]
mod tests {
    use super::{or_meant, rules, size};

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(
            [size("0"), size("12B"), size("5GiB"), size("2 MB")],
            [Ok(0), Ok(12), Ok(5 << 30), Ok(2_000_000)]
        );
        assert!(["", "x", "-1", "1.5GiB", "99999999999TiB"].iter().all(|text| size(text).is_err()));
    }

    #[test]
    fn what_is_nearly_a_name_is_recognised() {
        for (text, meant) in [
            ("oversize-result", Some("oversized-result")),
            ("call-witout-result", Some("call-without-result")),
            ("tornline", Some("torn-line")),
            ("zzz", None),
            ("", None),
        ] {
            let said = or_meant("no".to_string(), text, &rules());
            let meant = meant.map_or("no".to_string(), |meant| format!("no; did you mean {meant}?"));
            assert_eq!(said, meant, "{text}");
        }
    }
}
