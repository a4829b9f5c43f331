//! Formats numbers for people.

use humansize::{DECIMAL, SizeFormatter};
use std::time::Duration;

/// A number of things: `2 files`.
pub(crate) fn plural(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// A number of bytes: `1.23 MB`.
pub(crate) fn size(bytes: u64) -> String {
    sized(bytes).to_string()
}

/// A number of bytes, to be written into a longer text without an allocation.
pub(crate) fn sized(bytes: u64) -> impl std::fmt::Display {
    SizeFormatter::new(bytes, DECIMAL)
}

/// A number of bytes, abbreviated: `1.2 MB`.
pub(crate) fn short_size(bytes: u64) -> String {
    SizeFormatter::new(bytes, DECIMAL.decimal_places(1)).to_string()
}

/// A part of a whole, in percent; `<1%` if it is small but not zero.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let percent =
        (u128::from(part) * 200 + u128::from(whole)).checked_div(u128::from(whole) * 2).unwrap_or(0);
    match percent {
        0 if part > 0 => "<1%".to_string(),
        percent => format!("{percent}%"),
    }
}

/// A number of tokens, abbreviated: `950`, `84k`, `1.2M`.
pub(crate) fn tokens(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..999_500 => format!("{}k", (tokens + 500) / 1_000),
        _ => format!("{}.{}M", (tokens + 50_000) / 1_000_000, (tokens + 50_000) / 100_000 % 10),
    }
}

/// How long ago something was, in its largest unit: `5 min`, `3 d`.
pub(crate) fn age(age: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(365 * 86_400, "y"), (86_400, "d"), (3_600, "h"), (60, "min")];
    let seconds = age.as_secs();
    let unit = UNITS.iter().find(|(unit, _)| seconds >= *unit);
    unit.map_or_else(|| format!("{seconds} s"), |(unit, name)| format!("{} {name}", seconds / unit))
}

/// A number with grouped thousands: `84,300`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!(
            [tokens(999), tokens(84_300), tokens(999_499), tokens(999_500), tokens(1_249_999)],
            ["999", "84k", "999k", "1.0M", "1.2M"]
        );
        let ages =
            [0, 59, 60, 7_199, 86_400, 13 * 86_400, 364 * 86_400, 800 * 86_400].map(Duration::from_secs);
        assert_eq!(ages.map(age), ["0 s", "59 s", "1 min", "1 h", "1 d", "13 d", "364 d", "2 y"]);
        assert_eq!([grouped(0), grouped(999), grouped(84_300)], ["0", "999", "84,300"]);
        assert_eq!(
            [percent(0, 0), percent(1, 1000), percent(1, 3), percent(3, 3)],
            ["0%", "<1%", "33%", "100%"]
        );
    }
}
