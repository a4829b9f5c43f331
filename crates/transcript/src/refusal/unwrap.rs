//! Takes an error out of what stands around it: colours and frames of a terminal, JSON in JSON, prefixes of gateways
//! (`LiteLLM`, `OpenRouter`, Copilot, Goose), stack traces, and ends that were cut off.

use alloc::string::String;

/// How much of a text is read: its beginning and its end. What a provider says is shorter; what surrounds it may not be.
const END_BYTES_MAX: usize = 2048;

/// How lines of stack traces begin, and how long they are.
const FRAME: &str = "File \"";
const FRAMES: &[&str] = &["at ", FRAME];
const FRAME_BYTES_MAX: usize = 300;

/// Keys under which the innermost of nested errors says what is wrong.
const KEYS: &[&str] = &["message", "msg", "detail", "error_message", "errorMessage"];

/// Words before a number that is an HTTP status.
const BEFORE_STATUS: &[&str] =
    &["http", "status", "code", "error", "statuscode", "failed", "capierror", "http_code", "httpcode"];

/// What stands after a number that is an HTTP status.
const REASONS: &[&str] = &[
    " status code",
    " Bad Request",
    " Unauthorized",
    " Payment Required",
    " Forbidden",
    " Not Found",
    " Request Entity Too Large",
    " Payload Too Large",
    " Unprocessable",
    " Too Many Requests",
    " Internal Server Error",
    " Bad Gateway",
    " Service Unavailable",
    " Gateway Time",
];

/// The text without wrappers, and the sentence that is its innermost message, if there are several.
pub(super) fn unwrapped(text: &str) -> (String, Option<String>) {
    let text = without_addresses(&without_escapes(&without_frames(ends(text).as_str())));
    let inner = innermost(&text);
    (text, inner)
}

/// The beginning and the end of a long text.
fn ends(text: &str) -> String {
    if text.len() <= 2 * END_BYTES_MAX {
        return text.into();
    }
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (head, tail) = (boundary(END_BYTES_MAX), boundary(text.len() - END_BYTES_MAX));
    [&text[..head], &text[tail..]].join(" ")
}

/// Without colours of a terminal, lines of boxes, and frames of stack traces.
fn without_frames(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            // `ESC [ 3 1 m`: it ends with a letter.
            '\u{1b}' => _ = chars.find(char::is_ascii_alphabetic),
            '\u{2500}'..='\u{257f}' => plain.push(' '),
            c => plain.push(c),
        }
    }
    // A line of a trace is short; a long one is a text whose line breaks are gone.
    let is_frame = |line: &str| {
        let line = line.trim_start();
        line.len() < FRAME_BYTES_MAX
            && FRAMES.iter().any(|begin| line.starts_with(begin))
            && !line.contains("Error")
    };
    let kept = plain.split_inclusive('\n').filter(|line| !is_frame(line));
    kept.collect()
}

/// Takes the backslashes of strings in strings away: `\\\"` is a quote, `\\n` white space.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        while chars.next_if_eq(&'\\').is_some() {}
        match chars.peek() {
            Some('n' | 'r' | 't') => {
                chars.next();
                plain.push(' ');
            }
            Some('"' | '\'') | None => {}
            Some(_) => plain.push('\\'),
        }
    }
    plain
}

/// With the last part of an address only: what stands before it, such as `chat` and `docs`, is no word of the error.
fn without_addresses(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // A frame of a trace whose line breaks are gone names a file too.
    let text = text.split(FRAME).enumerate().map(|(n, part)| match part.split_once('"') {
        Some((file, after)) if n > 0 && !file.contains(' ') => after,
        _ => part,
    });
    let text: String = text.collect();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("://") {
        let start = rest[..at].trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len();
        plain.push_str(&rest[..start]);
        let mut address = rest[at + 3..].split(|c: char| c.is_whitespace() || "\"'`<>()[]{},;".contains(c));
        let address = address.next().unwrap_or_default().trim_end_matches([':', '.']);
        let path = address.split(['?', '#']).next().unwrap_or_default();
        plain.push_str(path.rsplit_once('/').map_or("", |(_, last)| last));
        rest = &rest[at + 3 + address.len()..];
    }
    plain + rest
}

/// The value of the last of [`KEYS`], up to what looks like its end.
fn innermost(text: &str) -> Option<String> {
    const ENDS: [&str; 10] = ["\",", "\"}", "\" }", "',", "'}", "\",\n", "`,", "\"  }", "\" \n", "',\n"];
    let mut found: Option<(usize, &str)> = None;
    for key in KEYS {
        for (at, _) in text.match_indices(key) {
            let after = text[at + key.len()..].trim_start_matches(['"', '\'']).trim_start();
            let Some(value) = after.strip_prefix([':', '=']) else { continue };
            let value = value.trim_start();
            let Some(value) = value.strip_prefix(['"', '\'', '`']) else { continue };
            if !value.is_empty() && found.is_none_or(|(before, _)| at > before) {
                found = Some((at, value));
            }
        }
    }
    let (_, value) = found?;
    let end = ENDS.iter().filter_map(|end| value.find(end)).min().unwrap_or(value.len());
    Some(value[..end].into()).filter(|value: &String| !value.trim().is_empty())
}

/// Keys of the objects in which errors are sent, which are no words of what they say.
const ENVELOPE: &[&str] = &[
    "message", "msg", "detail", "details", "param", "code", "type", "status", "error", "errors", "metadata",
    "object",
];

/// Kinds of errors that only say that a request is refused.
const KINDS: &[&str] = &[
    "invalid_request_error",
    "invalid_parameter_error",
    "invalid_request_body",
    "invalid_argument",
    "INVALID_ARGUMENT",
    "invalid_params",
];

/// The text without such keys and kinds.
pub(super) fn without_keys(text: &str) -> String {
    let text = KINDS.iter().fold(String::from(text), |text, kind| text.replace(kind, ""));
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['"', '\'']) {
        let quote = &rest[at..=at];
        let after = &rest[at + 1..];
        let key =
            ENVELOPE.iter().find_map(|key| after.strip_prefix(key)?.strip_prefix(quote)?.strip_prefix(':'));
        plain.push_str(&rest[..at]);
        plain.push_str(if key.is_some() { ";" } else { quote });
        rest = key.unwrap_or(after);
    }
    plain + rest
}

/// The HTTP status that the text tells; the last one, as a gateway repeats what the provider said.
pub(super) fn status(text: &str) -> Option<u16> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = None;
    let (mut before, mut at) = ("", 0);
    while let Some(start) = text[at..].find(is_word).map(|start| at + start) {
        let word: &str = text[start..].split(|c| !is_word(c)).next().unwrap_or_default();
        let joint = &text[at..start];
        at = start + word.len();
        let number = Some(word).filter(|word| word.len() == 3).and_then(|word| word.parse::<u16>().ok());
        if let Some(number) = number.filter(|number| (400..600).contains(number)) {
            let opens =
                joint.trim_end().ends_with(['[', '<', '(']) && text[at..].starts_with([']', '>', ')']);
            let is_told = BEFORE_STATUS.iter().any(|word| before.eq_ignore_ascii_case(word));
            let is_whole = joint.chars().all(|c| " :\"'=#-\n".contains(c));
            let is_named = REASONS.iter().any(|reason| text[at..].starts_with(reason));
            if before.is_empty() || opens || is_named || is_told && is_whole {
                found = Some(number);
            }
        }
        before = word;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{status, unwrapped};

    #[test]
    fn the_innermost_message_is_found() {
        for (text, inner) in [
            (
                r#"API Error: 400 {"type":"error","error":{"type":"invalid_request_error","message":"a b: c"}}"#,
                "a b: c",
            ),
            (
                r#"{"error":{"code":400,"message":"{\"type\":\"error\",\"error\":{\"message\":\"inner one\"},\"id\":1}","status":"X"}}"#,
                "inner one",
            ),
            ("Error code: 400 - {'object': 'error', 'message': 'told', 'param': None}", "told"),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"Param Incorrect\",\"x\":1}}"}}}"#,
                "Param Incorrect",
            ),
            (r#"{"error":{"message":"cut off in the mid"#, "cut off in the mid"),
        ] {
            assert_eq!(unwrapped(text).1.as_deref(), Some(inner), "{text}");
        }
        assert_eq!(unwrapped("\u{1b}[31mred\u{1b}[0m\n    at f (x.js:1:2)\n").0.trim(), "red");
    }

    #[test]
    fn a_status_is_a_number_that_is_told_as_one() {
        for (text, found) in [
            ("429", Some(429)),
            ("API Error: 400 {}", Some(400)),
            ("Request failed with status code 401", Some(401)),
            ("{\"error\":{\"code\":503,\"message\":\"x\"}}", Some(503)),
            ("[openai/x] [429]: y", Some(429)),
            ("HTTP 500 Internal: Invalid status code: 400", Some(400)),
            ("messages.413: user messages", None),
            ("request id req_413", None),
            ("413 tokens", Some(413)),
            ("you sent 413 tokens", None),
        ] {
            assert_eq!(status(text), found, "{text}");
        }
    }
}
