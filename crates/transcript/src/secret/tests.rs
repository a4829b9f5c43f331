//! Secrets are put together when the tests run, so that no scanner takes this file for a leak.

use super::detectors::{DETECTORS, Shape};
use super::*;
use crate::secret::check::Alphabet;
use alloc::string::ToString;

/// A token of a code host.
pub(crate) fn token() -> String {
    ["gh", "p_"].concat() + &drawn(Alphabet::Alnum, 36, 4)
}

/// Letters and digits that look random.
pub(crate) fn noise(length: usize, seed: u64) -> String {
    drawn(Alphabet::Alnum, length, seed)
}

/// Characters that look random, the same in each run.
fn drawn(of: Alphabet, length: usize, seed: u64) -> String {
    let allowed: Vec<u8> = (b'!'..=b'~').filter(|byte| of.has(*byte) && !b"=/.-_".contains(byte)).collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(allowed[(state >> 33) as usize % allowed.len()])
    };
    (0..length).map(|_| next()).collect()
}

/// A private key in PEM, with these line breaks.
pub(crate) fn pem(line_break: &str, seed: u64) -> String {
    let lines: Vec<String> = (0..9).map(|n| drawn(Alphabet::Alnum, 64, seed + n)).collect();
    let label = ["PRI", "VATE KEY"].concat();
    format!(
        "-----BEGIN RSA {label}-----{line_break}{}{line_break}-----END RSA {label}-----",
        lines.join(line_break)
    )
}

fn found(text: &str) -> Vec<(String, String)> {
    let finder = SecretFinder::new(&[]);
    let all = finder.find(text.as_bytes());
    all.iter()
        .map(|found| (finder.mark(found, text.as_bytes()).kind, text[found.at.clone()].to_string()))
        .collect()
}

#[test]
fn each_row_finds_its_own_and_nothing_of_a_row_that_is_too_short() {
    for (n, row) in (0..).zip(DETECTORS) {
        let Shape::Token { of, min, max } = row.shape else { continue };
        let digits = if row.anchor.starts_with(':') {
            drawn(Alphabet::Hex, 0, n) + "1234567890"
        } else {
            String::new()
        };
        for length in [min, max.min(min + 9)] {
            let secret = digits.clone() + row.anchor + &drawn(of, length, n);
            for text in [
                secret.clone(),
                format!("it is {secret}."),
                format!("A='{secret}'\n"),
                format!("x\\n{secret}\\n"),
            ] {
                let all = found(&text);
                assert!(all.iter().any(|(_, own)| *own == secret), "{} {text}: {all:?}", row.kind);
            }
        }
        let short = row.anchor.to_string() + &drawn(of, min / 2, n);
        let kinds: Vec<String> = found(&short).into_iter().map(|(kind, _)| kind).collect();
        assert!(!kinds.contains(&row.kind.to_string()), "{short}: {kinds:?}");
        let inside = format!("z{digits}{}{}", row.anchor, drawn(of, min, n));
        if digits.is_empty() && row.anchor.starts_with(|first: char| first.is_ascii_alphanumeric()) {
            assert!(!found(&inside).iter().any(|(kind, _)| kind == row.kind), "{inside}");
        }
    }
}

#[test]
fn each_kind_has_an_anchor_that_json_does_not_escape_and_a_source() {
    for row in DETECTORS {
        let plain = row.anchor.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !b"\"\\".contains(&byte));
        assert!(row.anchor.len() >= 3 && plain && !row.source.is_empty(), "{row:?}");
    }
}

#[test]
fn a_private_key_is_found_whole_however_its_lines_are_broken() {
    for line_break in ["\n", "\r\n", "\\n", "\\\\n", "\n    12\u{2192}"] {
        let key = pem(line_break, 7);
        assert_eq!(found(&format!("before {key} after")), [("private-key".to_string(), key.clone())]);
        // What is left of one that was cut.
        let (head, tail) = (&key[..key.len() - 60], &key[300..]);
        assert_eq!(found(&format!("{head} [cut]"))[0].1, head, "{line_break:?}");
        assert!(found(&format!("[cut] {tail} after"))[0].1.ends_with("KEY-----"), "{line_break:?}");
    }
    let label = ["PRI", "VATE KEY"].concat();
    assert_eq!(found(&format!("if text.starts_with(\"-----BEGIN {label}-----\") {{")), []);
    assert_eq!(found("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"), []);
}

#[test]
fn a_key_has_one_hash_however_its_lines_are_broken() {
    let finder = SecretFinder::new(&[]);
    let hash = |text: &str| finder.mark(&finder.find(text.as_bytes())[0], text.as_bytes()).hash;
    let expected = hash(&pem("\n", 7));
    assert!(["\r\n", "\\n", "\\\\n"].iter().all(|line_break| hash(&pem(line_break, 7)) == expected));
    assert_ne!(hash(&pem("\n", 8)), expected);
}

#[test]
fn values_are_secrets_by_their_names_and_only_if_nobody_would_type_them() {
    let (value, password) = (drawn(Alphabet::Alnum, 32, 3) + "7a", drawn(Alphabet::Alnum, 11, 5) + "4b");
    for text in [
        format!("ACME_API_KEY={value}"),
        format!("export ACME_TOKEN=\"{value}\""),
        format!("{{\"ACME_SECRET\": \"{value}\"}}"),
        format!("{{\\\"client_secret\\\": \\\"{value}\\\"}}"),
        format!("AWS_SECRET_ACCESS_KEY={value}\\nNEXT=1"),
        format!("DB_PASSWORD={password}\nNEXT=1"),
        format!("postgres://app:{password}@db.corp.test:5432/x"),
    ] {
        let all = found(&text);
        assert!(all.len() == 1 && (all[0].1 == value || all[0].1 == password), "{text}: {all:?}");
    }
    for text in [
        "API_KEY=your-api-key-goes-here",
        "API_KEY=$OTHER_KEY1234567890abcd",
        "api_key = settings.api_key_2024_value",
        "SECRET_KEY=/run/secrets/key1/of/2024/abc",
        "PASSWORD_HASH_ROUNDS=12345",
        "DB_PASSWORD=changeme",
        "postgres://postgres:postgres@localhost/db",
        "http://user:password@example.com",
        "https://user:$PASSWORD@host.test",
        "git@github.com:owner/repository.git",
        "ssh://git@host.test:22/x",
        "max_tokens: 4096, input_token_count=1234567890123456",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn a_token_of_the_web_is_found_by_its_parts() {
    let part = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, text);
    let signature = drawn(Alphabet::Alnum, 43, 9);
    let token = [part("{\"alg\":\"HS256\"}"), part("{\"sub\":\"1\"}"), signature].join(".");
    assert_eq!(found(&format!("Bearer {token}, ok")), [("jwt".to_string(), token.clone())]);
    assert_eq!(found(&token.replacen("eyJ", "eyK", 1)), []);
}

#[test]
fn own_patterns_are_found_beside_the_table() {
    let own = [OwnSecret { name: "acme-token".into(), begins: "acme_".into() }];
    let finder = SecretFinder::new(&own);
    let text = "acme_".to_string() + &drawn(Alphabet::Alnum, 20, 2);
    let all = finder.find(text.as_bytes());
    assert_eq!(finder.mark(&all[0], text.as_bytes()).kind, "acme-token");
}

/// What is told of a secret is not enough to find it.
#[test]
fn a_mark_says_at_most_four_characters() {
    let finder = SecretFinder::new(&[]);
    let text = ["gh", "p_"].concat() + &drawn(Alphabet::Alnum, 36, 4);
    let mark = finder.mark(&finder.find(text.as_bytes())[0], text.as_bytes());
    assert_eq!((mark.ends.chars().count(), mark.chars), (5, 40));
    assert!(!mark.to_string().contains(&text[..5]) && replacement(&mark).contains("github-token, 40 chars"));
    assert!(finder.find(replacement(&mark).as_bytes()).is_empty());
}

/// A place where a secret is must be among the candidates, also as JSON writes it.
#[test]
fn no_secret_is_found_where_there_is_no_candidate() {
    let finder = SecretFinder::new(&[]);
    let texts = (0..).zip(DETECTORS).filter_map(|(n, row)| match row.shape {
        Shape::Token { of, min, .. } => Some(format!("12345678{} \n", row.anchor) + &drawn(of, min, n)),
        Shape::Value { .. } => Some(format!("X{}: \"{}9a\"", row.anchor, drawn(Alphabet::Alnum, 30, n))),
        Shape::UrlPassword => Some(format!("db://u:{}9a@h.test", drawn(Alphabet::Alnum, 14, n))),
        _ => None,
    });
    for text in texts.chain([pem("\n", 1), pem("\\n", 1)]) {
        let mut written = Vec::new();
        spans::literal::quote(text.as_bytes(), &mut written);
        let mut places = 0;
        finder.candidates(&written, 0..written.len(), &mut |_| places += 1);
        assert!(places > 0 || finder.find(text.as_bytes()).is_empty(), "{text}");
    }
}
