//! Numbers as people read them.

use humansize::{DECIMAL, SizeFormatter};

/// A number of things: `2 files`.
pub(crate) fn plural(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// A number of bytes: `1.23 MB`.
pub(crate) fn size(bytes: u64) -> String {
    sized(bytes).to_string()
}

/// A number of bytes for a longer text, without a text of its own.
pub(crate) fn sized(bytes: u64) -> impl std::fmt::Display {
    SizeFormatter::new(bytes, DECIMAL)
}

/// A part of a whole: `<1%` is not nothing.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let percent =
        (u128::from(part) * 200 + u128::from(whole)).checked_div(u128::from(whole) * 2).unwrap_or(0);
    match percent {
        0 if part > 0 => "<1%".to_string(),
        percent => format!("{percent}%"),
    }
}

/// A number with its thousands apart: `84,300`.
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
        assert_eq!([grouped(0), grouped(999), grouped(84_300)], ["0", "999", "84,300"]);
        assert_eq!(
            [percent(0, 0), percent(1, 1000), percent(1, 3), percent(3, 3)],
            ["0%", "<1%", "33%", "100%"]
        );
    }
}
