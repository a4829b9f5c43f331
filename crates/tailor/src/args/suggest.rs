//! Which name was meant by one that does not exist.

use transcript::rule::RULES;

/// How alike two names must be, from 0 to 1.
const LIKENESS_MIN: f64 = 0.7;

/// The message, and what was probably meant.
pub(crate) fn or_meant(message: String, text: &str, names: &[&'static str]) -> String {
    match nearest(text, names) {
        Some(name) => format!("{message}; did you mean {name}?"),
        None => message,
    }
}

/// Codes and names of all rules.
pub(crate) fn rules() -> Vec<&'static str> {
    RULES.iter().flat_map(|rule| [rule.code(), rule.name()]).collect()
}

fn nearest(text: &str, names: &[&'static str]) -> Option<&'static str> {
    let text = text.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&text, &name.to_lowercase());
    let best = names.iter().max_by(|one, two| likeness(one).total_cmp(&likeness(two)))?;
    (likeness(best) >= LIKENESS_MIN).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::{nearest, rules};

    #[test]
    fn what_is_nearly_a_name_is_recognised() {
        for (text, meant) in [
            ("oversize-result", Some("oversized-result")),
            ("call-witout-result", Some("call-without-result")),
            ("tornline", Some("torn-line")),
            ("zzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(text, &rules()), meant, "{text}");
        }
    }
}
