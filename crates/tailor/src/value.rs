//! Parses values as people write them, on the command line and in configuration files, and suggests corrections.

use clap::ValueEnum;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use keeper::FolderGlobs;
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;
use transcript::Severity;
use transcript::policy::{Downscale, SignedThinking};
use transcript::profile::{self, PROFILES, Profile};
use transcript::rule::{self, RULES};

/// What happens to an image that is too large.
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
            // `built_in` has refused this.
            #[cfg(not(feature = "images"))]
            Self::Downscale => None,
        }
    }
}

/// What to do with a change before signed thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ThinkingChoice {
    Keep,
    Strip,
    Ignore,
}

impl ThinkingChoice {
    pub(crate) fn signed(self) -> SignedThinking {
        match self {
            Self::Keep => SignedThinking::Keep,
            Self::Strip => SignedThinking::Strip,
            Self::Ignore => SignedThinking::Ignore,
        }
    }
}

/// How tokens are counted.
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
pub(crate) fn not_built_in(feature: &str) -> String {
    let all = "cargo install --profile dist --features stores --path crates/tailor";
    format!("this tailor was built without the feature `{feature}`; to build it complete: {all}")
}

/// The profile with this name.
pub(crate) fn profile(text: &str) -> Result<&'static Profile, String> {
    profile::find(text).ok_or_else(|| {
        let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        or_meant(format!("no such profile; there are {}", names.join(", ")), text, &names)
    })
}

/// The code of a rule, given its code or name.
pub(crate) fn code(text: &str) -> Result<String, String> {
    if let Some(rule) = rule::find(text) {
        return Ok(rule.code().to_string());
    }
    Err(or_meant("no such rule (tailor explain lists them)".to_string(), text, &rules()))
}

/// A glob in the notation of `.gitignore`.
pub(crate) fn glob(text: &str) -> Result<String, String> {
    FolderGlobs::new(Path::new(""), &[text.to_string()]).map(|_| text.to_string())
}

/// The digits of a number, and its unit: `1.5GiB`, `90 s`, `200,000`.
fn number_and_unit(text: &str) -> (String, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || ".,_".contains(c))).unwrap_or(text.len());
    (text[..end].replace([',', '_'], ""), text[end..].trim())
}

/// A whole number of what the unit stands for; `None` if it is none, or too large.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u64 = format!("{whole}{fraction}").parse().ok()?;
    let divisor = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let product = u128::from(digits) * u128::from(unit);
    if product.is_multiple_of(divisor) { u64::try_from(product / divisor).ok() } else { None }
}

/// All severities.
pub(crate) const SEVERITIES: [Severity; 3] = [Severity::Note, Severity::Warning, Severity::Error];

/// A severity by its name.
pub(crate) fn severity(text: &str) -> Result<Severity, String> {
    let named = SEVERITIES.into_iter().find(|severity| severity.name() == text);
    named.ok_or_else(|| {
        or_meant("none of note, warning and error".to_string(), text, &SEVERITIES.map(Severity::name))
    })
}

/// A number of bytes, with a unit or without. As with GNU's tools, `M` and `MiB` are powers of 1,024, and `MB` of 1,000.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const PREFIXES: [&str; 5] = ["", "k", "m", "g", "t"];
    let read = || {
        let (number, unit) = number_and_unit(text);
        let unit = unit.to_ascii_lowercase();
        let (prefix, base) = match unit.strip_suffix("ib") {
            Some(prefix) if !prefix.is_empty() => (prefix, 1_024_u64),
            _ => unit.strip_suffix('b').map_or((unit.as_str(), 1_024), |prefix| (prefix, 1_000)),
        };
        let power = PREFIXES.iter().position(|name| *name == prefix)?;
        scaled(&number, base.pow(u32::try_from(power).ok()?))
    };
    read().ok_or_else(|| "not a size, such as 500kB, 2M or 5GiB".to_string())
}

/// A number of characters, tokens or other things: `200000`, `200k`, `1.5M`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let read = || {
        let (number, unit) = number_and_unit(text);
        let unit = match unit {
            "" => 1,
            "k" | "K" => 1_000,
            "m" | "M" => 1_000_000,
            _ => return None,
        };
        scaled(&number, unit)
    };
    read().ok_or_else(|| "not a whole number, such as 200000, 200k or 1.5M".to_string())
}

/// Seconds of each unit of time.
const UNITS: &[(&str, f64)] = &[
    ("", 1.0),
    ("ms", 0.001),
    ("s", 1.0),
    ("sec", 1.0),
    ("second", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("minute", 60.0),
    ("h", 3_600.0),
    ("hour", 3_600.0),
    ("d", 86_400.0),
    ("day", 86_400.0),
    ("w", 604_800.0),
    ("week", 604_800.0),
];

/// A length of time; without a unit in seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    length_of_time(text).ok_or_else(|| "not a length of time, such as 5, 90s or 1h".to_string())
}

/// A length of time that needs its unit: seconds taken for days would delete too much.
pub(crate) fn long_duration(text: &str) -> Result<Duration, String> {
    let has_unit = !number_and_unit(text).1.is_empty();
    let time = length_of_time(text).filter(|time| has_unit || time.is_zero());
    time.ok_or_else(|| "not a length of time with its unit, such as 12h, 7d or 4w".to_string())
}

/// A moment, as it is written or by the clock here, in milliseconds since 1970.
pub(crate) fn moment(text: &str) -> Result<i64, String> {
    let zoned = |time: DateTime| time.to_zoned(TimeZone::system()).map(|time| time.timestamp());
    let time = text.parse::<Timestamp>().or_else(|_| text.parse::<DateTime>().and_then(zoned));
    time.map(Timestamp::as_millisecond)
        .map_err(|_| "not a time such as 2026-11-20, 2026-11-20T18:00 or 2026-11-20T18:00:00Z".to_string())
}

fn length_of_time(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text);
    // `1 hour` and `2 hours`, but not `2 hs`.
    let is_named = |name: &str| name == unit || (name.len() > 2 && unit.strip_suffix('s') == Some(name));
    let (_, seconds) = UNITS.iter().find(|(name, _)| is_named(name))?;
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

/// This many days.
pub(crate) fn days(days: f64) -> Result<Duration, String> {
    const DAY_SECONDS: f64 = 24.0 * 60.0 * 60.0;
    Duration::try_from_secs_f64(days * DAY_SECONDS).map_err(|_| format!("{days} is not a number of days"))
}

/// A tool and its limit.
pub(crate) fn tool_limit(text: &str) -> Result<(String, u64), String> {
    let (tool, chars) = text.split_once('=').ok_or("not of the form TOOL=CHARS")?;
    Ok((tool.to_string(), count(chars).map_err(|why| format!("`{chars}` is {why}"))?))
}

/// A time in milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// How similar two names must be for a suggestion, from 0 to 1.
const LIKENESS_MIN: f64 = 0.7;

/// The message, with a suggestion.
pub(crate) fn or_meant(message: String, text: &str, names: &[&'static str]) -> String {
    match nearest(text, names.iter().copied()) {
        Some((name, likeness)) if likeness >= LIKENESS_MIN => format!("{message}; did you mean {name}?"),
        _ => message,
    }
}

/// The codes and names of all rules.
pub(crate) fn rules() -> Vec<&'static str> {
    RULES.iter().flat_map(|rule| [rule.code(), rule.name()]).collect()
}

/// The name most similar to a text, and their similarity from 0 to 1.
pub(crate) fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<(&'a str, f64)> {
    let text = text.to_lowercase();
    let likeness = |name: &'a str| (name, strsim::jaro_winkler(&text, &name.to_lowercase()));
    names.map(likeness).max_by(|(_, one), (_, other)| one.total_cmp(other))
}

#[cfg(test)]
mod tests {
    use super::{count, duration, long_duration, or_meant, rules, size};
    use std::time::Duration;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("12B", 12),
            ("5GiB", 5 << 30),
            ("2 MB", 2_000_000),
            ("2M", 2 << 20),
            ("2m", 2 << 20),
            ("1.5k", 1_536),
            ("500kB", 500_000),
            ("1,500,000", 1_500_000),
            ("16TiB", 16 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "x", "-1", "1.5", "1.0001k", "99999999999TiB", "2 Mo", "2iB", "2PB", "1e3", "inf"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_and_times_have_units() {
        assert_eq!(
            ["200k", "1.5M", "7", "1_000", "0"].map(count),
            [Ok(200_000), Ok(1_500_000), Ok(7), Ok(1_000), Ok(0)]
        );
        assert!(["", "k", "1.5", "-1", "2x", "1ki"].iter().all(|text| count(text).is_err()));
        for (text, seconds) in [
            ("5", 5.0),
            ("0.5", 0.5),
            ("90s", 90.0),
            ("250ms", 0.25),
            ("10m", 600.0),
            ("10min", 600.0),
            ("1h", 3_600.0),
            ("7d", 604_800.0),
            ("1w", 604_800.0),
            ("1 hour", 3_600.0),
            ("2 hours", 7_200.0),
            ("90 seconds", 90.0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        assert!(
            ["", "h", "-1s", "5 lightyears", "2 hs", "1e400d", "NaN"]
                .iter()
                .all(|text| duration(text).is_err())
        );
        assert_eq!(long_duration("7d"), duration("7d"));
        assert_eq!(long_duration("0"), Ok(Duration::ZERO));
        assert!(long_duration("7").is_err());
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
