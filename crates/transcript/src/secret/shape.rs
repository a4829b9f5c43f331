//! Whether what follows an anchor is a secret, and where it begins and ends.

use super::check::{Alphabet, centibits, is_placeholder};
use super::detectors::Shape;
use super::{BYTES_BEFORE, BYTES_MAX};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::ops::Range;
use memchr::memmem;

/// Fewer bits for each character, times 100, have words and what counts up.
const TOKEN_CENTIBITS_MIN: u32 = 300;
const HEX_CENTIBITS_MIN: u32 = 280;
/// Values that only their name tells must look more random than tokens, and passwords less.
const VALUE_CENTIBITS_MIN: u32 = 330;
const PASSWORD_CENTIBITS_MIN: u32 = 220;
const VALUE_CHARS_MIN: usize = 16;
const VALUE_CHARS_MAX: usize = 512;
const PASSWORD_CHARS_MIN: usize = 6;

/// The longest first part of an address with a password.
const USERINFO_BYTES_MAX: usize = 256;

/// So many characters of base64 in one line are a key's.
const PEM_RUN_MIN: usize = 40;

/// Passwords that are in everybody's examples.
const WELL_KNOWN: &[&[u8]] = &[
    b"password",
    b"passwd",
    b"pass",
    b"secret",
    b"postgres",
    b"root",
    b"admin",
    b"test",
    b"user",
    b"guest",
    b"token",
    b"pwd",
    b"pw",
    b"mysql",
    b"redis",
    b"hunter2",
    b"p4ssw0rd",
    b"pass123",
    b"password123",
    b"secret123",
];

impl Shape {
    /// Whether the secret says by itself what it is.
    pub(super) fn is_self_evident(self) -> bool {
        !matches!(self, Self::Value { .. } | Self::UrlPassword)
    }

    /// Whether it has several lines, which are written in more than one way.
    pub(super) fn is_block(self) -> bool {
        matches!(self, Self::PemBegin | Self::PemEnd)
    }

    /// Whether there is a long word in it, so that it need not be looked for elsewhere. Signs may divide short base64.
    pub(super) fn has_long_word(self) -> bool {
        match self {
            Self::Token { of, min, .. } => of != Alphabet::Base64 || min > 60,
            other => other == Self::Jwt,
        }
    }

    /// Whether a secret stands at an anchor, as far as bytes tell that are written in JSON: base64 may be escaped there.
    pub(super) fn may_stand(self, bytes: &[u8], anchor: &Range<usize>) -> bool {
        let is_escaped = |of: Alphabet, min: usize| {
            let after = &bytes[anchor.end..bytes.len().min(anchor.end + min)];
            matches!(of, Alphabet::Base64 | Alphabet::Path) && after.get(of.run(after)) == Some(&b'\\')
        };
        match self {
            Self::PemBegin | Self::PemEnd => true,
            Self::Token { of, min, .. } => is_escaped(of, min) || self.secret(bytes, anchor).is_some(),
            _ => self.secret(bytes, anchor).is_some(),
        }
    }

    /// The secret at an anchor of a decoded text.
    pub(super) fn secret(self, text: &[u8], anchor: &Range<usize>) -> Option<Range<usize>> {
        match self {
            Self::Token { of, min, max } => token(text, anchor, of, (min, max)),
            Self::PemBegin => pem(text, anchor),
            Self::PemEnd => pem_end(text, anchor),
            Self::Jwt => jwt(text, anchor),
            Self::UrlPassword => url_password(text, anchor.end),
            Self::Value { strict } => value(text, anchor, strict),
        }
    }
}

/// Whether a word may begin at a place: what stands before it is no part of one, or the letter of an escape, as in JSON that
/// is written in a string.
fn begins(text: &[u8], at: usize) -> bool {
    match text[..at] {
        [] | [.., b'\\', b'n' | b't' | b'r'] => true,
        [.., before] => !(before.is_ascii_alphanumeric() || before == b'_'),
    }
}

fn token(
    text: &[u8],
    anchor: &Range<usize>,
    of: Alphabet,
    (min, max): (usize, usize),
) -> Option<Range<usize>> {
    let rest = &text[anchor.end..text.len().min(anchor.end + max + 1)];
    let run = of.run(rest);
    // A sentence may end after a token.
    let run = run - rest[..run].iter().rev().take_while(|byte| matches!(byte, b'.' | b'-')).count();
    let body = &rest[..run];
    // Digits come before the colon of Telegram's tokens.
    let digits = text[..anchor.start].iter().rev().take(12).take_while(|byte| byte.is_ascii_digit()).count();
    let start = if text[anchor.start] == b':' { anchor.start - digits } else { anchor.start };
    let has_digits = text[anchor.start] != b':' || (8..=11).contains(&digits);
    let enough = if of == Alphabet::Hex { HEX_CENTIBITS_MIN } else { TOKEN_CENTIBITS_MIN };
    // Few characters cannot be as varied as many.
    let enough = if body.len() < 20 { enough - 40 } else { enough };
    let is_token = (min..=max).contains(&run)
        && begins(text, start)
        && has_digits
        && (of == Alphabet::Upper || is_mixed(body))
        && centibits(body) >= enough
        && !is_placeholder(body);
    is_token.then(|| start..anchor.end + run)
}

/// Whether a text has what words do not: digits, or capital letters among small ones.
fn is_mixed(text: &[u8]) -> bool {
    let count = |is_one: fn(&u8) -> bool| text.iter().filter(|byte| is_one(byte)).count();
    count(u8::is_ascii_digit) > 0 || count(u8::is_ascii_uppercase).min(count(u8::is_ascii_lowercase)) > 2
}

/// A private key, from the hyphens of its first line to those of its last.
fn pem(text: &[u8], anchor: &Range<usize>) -> Option<Range<usize>> {
    let window = &text[..text.len().min(anchor.end + BYTES_MAX)];
    let label = label_end(window, anchor.end)?;
    let rest = &window[label..];
    let next = memmem::find(rest, b"-----BEGIN ").unwrap_or(rest.len());
    let end = memmem::find(&rest[..next], b"-----END ")
        .and_then(|end| Some((end, label_end(window, label + end + 9)?)));
    let (body, end) = if let Some((body, end)) = end {
        (&rest[..body], end)
    } else {
        let run = rest[..next].iter().take_while(|byte| is_of_key(**byte)).count();
        let run = rest[..run].trim_ascii_end().len();
        (&rest[..run], label + run)
    };
    longest_run(body).ge(&PEM_RUN_MIN).then_some(anchor.start..end)
}

/// What is left of a private key before its last line.
fn pem_end(text: &[u8], anchor: &Range<usize>) -> Option<Range<usize>> {
    let end = label_end(text, anchor.end)?;
    let before = &text[anchor.start.saturating_sub(BYTES_MAX)..anchor.start];
    if memmem::rfind(before, b"-----BEGIN ").is_some() {
        return None;
    }
    let run = before.iter().rev().take_while(|byte| is_of_key(**byte)).count();
    let body = &before[before.len() - run..];
    // It begins with its first whole line of base64.
    let skipped = body.iter().take_while(|byte| !byte.is_ascii_alphanumeric()).count();
    (longest_run(body) >= PEM_RUN_MIN).then_some(anchor.start - run + skipped..end)
}

/// Where the label of a line of PEM ends that begins at a place, hyphens included.
fn label_end(text: &[u8], at: usize) -> Option<usize> {
    let label = &text[at..text.len().min(at + 60)];
    let hyphens = memmem::find(label, b"-----")?;
    memmem::find(&label[..hyphens], b"PRIVATE KEY").map(|_| at + hyphens + 5)
}

/// Whether a byte may stand in a key: base64, white space, also as it is written in strings, and numbers of lines.
fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"+/=\\:,|".contains(&byte) || byte >= 0x80
}

/// The most characters of base64 one after the other.
fn longest_run(body: &[u8]) -> usize {
    body.split(|byte| !(byte.is_ascii_alphanumeric() || b"+/=".contains(byte)))
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0)
}

fn jwt(text: &[u8], anchor: &Range<usize>) -> Option<Range<usize>> {
    let window = &text[anchor.start..text.len().min(anchor.start + BYTES_MAX)];
    let run = Alphabet::Dotted.run(window);
    let mut parts = window[..run].split(|byte| *byte == b'.');
    let (head, body, signature) = (parts.next()?, parts.next()?, parts.next()?);
    let decoded = URL_SAFE_NO_PAD.decode(head).ok()?;
    let is_jwt =
        memmem::find(&decoded, b"\"alg\"").is_some() && body.starts_with(b"eyJ") && signature.len() >= 20;
    let length = head.len() + body.len() + signature.len() + 2;
    (is_jwt && begins(text, anchor.start)).then(|| anchor.start..anchor.start + length)
}

/// The password of `user:password@host`.
fn url_password(text: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = &text[at..text.len().min(at + USERINFO_BYTES_MAX)];
    let end =
        rest.iter().position(|byte| *byte <= b' ' || b"/\"'`<>\\@{}".contains(byte) || *byte >= 0x7f)?;
    let after = rest.get(end + 1)?;
    let colon = memchr::memchr(b':', &rest[..end])?;
    let (user, password) = (&rest[..colon], &rest[colon + 1..end]);
    let is_host = rest[end] == b'@' && (after.is_ascii_alphanumeric() || *after == b'[');
    let is_variable =
        password.iter().any(|byte| b"$%*[(".contains(byte)) && !password.iter().any(u8::is_ascii_digit);
    let is_secret =
        is_host && is_password(password) && password != user && !is_variable && !password.starts_with(b"$");
    is_secret.then(|| at + user.len() + 1..at + end)
}

/// Whether a text may be a password rather than a word that stands for one.
fn is_password(text: &[u8]) -> bool {
    text.len() >= PASSWORD_CHARS_MIN
        && centibits(text) >= PASSWORD_CENTIBITS_MIN
        && !is_placeholder(text)
        && !WELL_KNOWN.iter().any(|known| text.eq_ignore_ascii_case(known))
}

/// The value after a name. A `strict` one stands in quotes, because such names are also those of variables.
fn value(text: &[u8], anchor: &Range<usize>, strict: bool) -> Option<Range<usize>> {
    let name = &text[..anchor.end];
    let mut at = anchor.end + quotes(&text[anchor.end..]);
    let is_quoted_name = at > anchor.end;
    at += spaces(&text[at..]);
    let separator = *text.get(at)?;
    if !matches!(separator, b'=' | b':') || matches!(text.get(at + 1), Some(b'=' | b':')) {
        return None;
    }
    at += 1;
    let is_close = separator == b'=' && !is_quoted_name;
    at += spaces(&text[at..]);
    let quoted = quotes(&text[at..]);
    at += quoted;
    if quoted == 0 && (strict || !is_close) {
        return None;
    }
    let rest = &text[at..text.len().min(at + VALUE_CHARS_MAX)];
    let stops = |byte: &u8| *byte <= b' ' || b"\"'`\\<>(){};,|&$".contains(byte) || *byte >= 0x7f;
    let length = rest.iter().position(stops).unwrap_or(rest.len());
    // A call, a name of a variable, or a part of an expression.
    let goes_on = quoted == 0 && matches!(rest.get(length), Some(b'(' | b'{' | b'$' | b'<' | b')' | b'}'));
    if length == 0 || goes_on {
        return None;
    }
    let value = &rest[..length];
    let is_named_password = name.to_ascii_uppercase().ends_with(b"PASSWORD")
        || name.ends_with(b"PASSWD")
        || name.ends_with(b"_PASS");
    let is_secret = if is_named_password { is_password_value(value) } else { is_random_value(value) };
    (is_secret && (!strict || is_whole_name(name))).then(|| at..at + length)
}

/// How many quotes, and backslashes before them, stand at the beginning.
fn quotes(bytes: &[u8]) -> usize {
    let slashes = bytes.iter().take_while(|byte| **byte == b'\\').count();
    if matches!(bytes.get(slashes), Some(b'"' | b'\'' | b'`')) { slashes + 1 } else { 0 }
}

fn spaces(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| **byte == b' ').count()
}

/// Whether the name that ends here has no characters but those of names, as far back as one looks.
fn is_whole_name(name: &[u8]) -> bool {
    let tail = &name[name.len().saturating_sub(BYTES_BEFORE)..];
    tail.iter().rev().take_while(|byte| Alphabet::UrlSafe.has(**byte)).count() < BYTES_BEFORE
}

/// A password has a digit or a sign among its letters; names of variables and of types do not.
fn is_password_value(value: &[u8]) -> bool {
    let is_varied = value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    is_varied && value.len() >= 8 && is_password(value) && !is_path_or_name(value)
}

fn is_random_value(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    value.len() >= VALUE_CHARS_MIN
        && digits >= 2
        && letters >= 2
        && centibits(value) >= VALUE_CENTIBITS_MIN
        && !is_placeholder(value)
        && !is_path_or_name(value)
}

/// Whether a value is a path, an address, or words that are joined.
fn is_path_or_name(value: &[u8]) -> bool {
    let has = |part: &[u8]| memmem::find(value, part).is_some();
    let words = value.split(|byte| !byte.is_ascii_alphanumeric());
    let is_word =
        |word: &[u8]| word.iter().all(u8::is_ascii_alphabetic) || word.iter().all(u8::is_ascii_digit);
    let (all, plain) = words.filter(|word| !word.is_empty()).fold((0, 0), |(all, plain), word| {
        (all + word.len(), plain + if is_word(word) { word.len() } else { 0 })
    });
    value.starts_with(b"/") || value.starts_with(b"./") || has(b"://") || plain * 4 > all * 3
}
