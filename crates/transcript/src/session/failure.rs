//! How the last turn of a session failed, as the session records it.

use super::Session;
use crate::format::{Broken, Format};
use crate::model::entry::{Entry, Kind, Role};
use crate::model::overflow::{Cause, classify};
use crate::model::policy::{Depth, Policy};
use crate::read::scan;
use alloc::string::String;
use serde::{Deserialize, Serialize};
use spans::json;
use spans::literal;
use spans::source::{Fault, Source};

/// How the last turn of a transcript failed, as the transcript records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Line of the entry that says so, from 1.
    pub line: u64,
    /// Offset of that entry.
    pub at: u64,
    /// Why.
    pub cause: Cause,
}

/// How the last turn of a transcript failed; `None` if it did not, or the format keeps no errors, or is unknown. A user
/// message after the failure is a new attempt that has no answer yet, so the failure still counts.
///
/// ```
/// let text = br#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}
/// {"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"go"}}
/// {"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"prompt is too long"}}
/// "#;
/// let failure = transcript::overflow::last_failure(&&text[..]).unwrap().unwrap();
/// assert_eq!((failure.line, failure.cause.name()), (3, "context-overflow"));
/// ```
pub fn last_failure(source: &dyn Source) -> Result<Option<Failure>, Fault> {
    let read = scan::scan(source)?;
    let policy = Policy::default();
    let session = Session::new(&read, source, &policy, Depth::Sizes);
    session.map_or(Ok(None), |session| failure_of(&session))
}

/// The error text with which the last turn of a transcript failed; `None` if it did not, or there is no text.
///
/// ```
/// let text = br#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}
/// {"type":"message","id":"b","parentId":null,"message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"prompt is too long"}}
/// "#;
/// let error = transcript::overflow::last_error(&&text[..]).unwrap();
/// assert_eq!(error.as_deref(), Some("prompt is too long"));
/// ```
pub fn last_error(source: &dyn Source) -> Result<Option<String>, Fault> {
    let read = scan::scan(source)?;
    let policy = Policy::default();
    let Some(session) = Session::new(&read, source, &policy, Depth::Sizes) else { return Ok(None) };
    last_words(&session)
}

/// How the last turn of a session failed.
pub(crate) fn failure_of(session: &Session<'_>) -> Result<Option<Failure>, Fault> {
    let last = last_answer(session);
    last.map_or(Ok(None), |last| failure_in(session.source, session.format, session.entry(last)))
}

/// What the API said when the last turn of a session failed.
pub(crate) fn last_words(session: &Session<'_>) -> Result<Option<String>, Fault> {
    last_answer(session)
        .map_or(Ok(None), |last| error_in(session.source, session.format, session.entry(last)))
}

fn last_answer(session: &Session<'_>) -> Option<u32> {
    let spoke = |&entry: &u32| session.kind(entry) == Kind::Message(Role::Assistant);
    session.live.iter().rev().copied().find(spoke)
}

/// The error text in an assistant message.
pub(crate) fn error_in(source: &dyn Source, format: &Format, found: &Entry) -> Result<Option<String>, Fault> {
    let doc = json::parse(source, found.span)?;
    Ok(match doc.as_ref().and_then(|doc| (format.broken)(doc)) {
        Some(Broken::Error(Some(said))) => Some(text_of(said)),
        _ => None,
    })
}

/// A text, as far as it is kept.
fn text_of(said: json::Value<'_>) -> String {
    String::from_utf8_lossy(&literal::decode(said.prefix())).into_owned()
}

/// How the turn of an assistant message failed, as the message records it.
pub(crate) fn failure_in(
    source: &dyn Source,
    format: &Format,
    found: &Entry,
) -> Result<Option<Failure>, Fault> {
    let Some(doc) = json::parse(source, found.span)? else { return Ok(None) };
    let cause = match (format.broken)(&doc) {
        None => return Ok(None),
        Some(Broken::CutOff) => Cause::OutputCutOff,
        Some(Broken::Error(said)) => said.map_or(Cause::Other, |said| classify(&text_of(said))),
    };
    Ok(Some(Failure { line: found.line, at: found.span.start, cause }))
}

/// Whether the model has answered, without failing, in an entry that begins at byte `from` or later.
pub fn answered_since(source: &dyn Source, from: u64) -> Result<bool, Fault> {
    let read = scan::scan(source)?;
    let policy = Policy::default();
    let Some(session) = Session::new(&read, source, &policy, Depth::Sizes) else { return Ok(false) };
    for &entry in session.live.iter().rev() {
        let found = session.entry(entry);
        if found.span.start >= from && found.kind == Kind::Message(Role::Assistant) {
            let doc = json::parse(session.source, found.span)?;
            if doc.is_some_and(|doc| (session.format.broken)(&doc).is_none()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::{Cause, answered_since, last_failure};
    use alloc::format;
    use alloc::string::{String, ToString};

    fn pi(messages: &[&str]) -> String {
        let mut text = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/w\"}\n".to_string();
        for (n, message) in messages.iter().enumerate() {
            let parent = if n == 0 { "null".to_string() } else { format!("\"e{}\"", n - 1) };
            let line = format!(r#"{{"type":"message","id":"e{n}","parentId":{parent},"message":{message}}}"#);
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    const ASKED: &str = r#"{"role":"user","content":"go"}"#;
    const ANSWERED: &str = r#"{"role":"assistant","content":"done","stopReason":"stop"}"#;
    const LENGTH: &str = r#"{"role":"assistant","content":"and then","stopReason":"length"}"#;
    const FAILED: &str =
        r#"{"role":"assistant","content":[],"stopReason":"error","errorMessage":"prompt is too long"}"#;

    #[track_caller]
    fn failure(text: &str, expected: Option<(u64, Cause)>) {
        let found = last_failure(&text.as_bytes()).unwrap();
        assert_eq!(found.map(|failure| (failure.line, failure.cause)), expected, "{text}");
    }

    #[test]
    fn a_transcript_says_how_its_last_turn_failed() {
        failure(&pi(&[ASKED, ANSWERED]), None);
        failure(&pi(&[ASKED, FAILED]), Some((3, Cause::ContextOverflow)));
        failure(&pi(&[ASKED, FAILED, ASKED]), Some((3, Cause::ContextOverflow)));
        failure(&pi(&[ASKED, FAILED, ASKED, ANSWERED]), None);
        failure(&pi(&[ASKED, LENGTH]), Some((3, Cause::OutputCutOff)));
        failure(&pi(&[ASKED, &FAILED.replace("prompt is too long", "overloaded")]), Some((3, Cause::Other)));
        failure(
            &pi(&[ASKED, r#"{"role":"assistant","content":[],"stopReason":"error"}"#]),
            Some((3, Cause::Other)),
        );
        failure("not a transcript\n", None);
        failure("", None);
    }

    #[test]
    fn other_agents_say_it_in_their_own_ways() {
        let claude = |fields: &str| {
            let user =
                r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"go"}}"#;
            format!("{user}\n{{\"type\":\"assistant\",\"uuid\":\"b\",\"parentUuid\":\"a\",{fields}}}\n")
        };
        let said = r#""isApiErrorMessage":true,"message":{"role":"assistant","content":[{"type":"text","text":"Prompt is too long"}]}"#;
        failure(&claude(said), Some((2, Cause::ContextOverflow)));
        let cut = r#""message":{"role":"assistant","stop_reason":"max_tokens","content":[{"type":"text","text":"and"}]}"#;
        failure(&claude(cut), Some((2, Cause::OutputCutOff)));
        failure(&claude(&cut.replace("max_tokens", "end_turn")), None);
        let anthropic = r#"{"role":"user","content":"go"}
{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"x"}],"stop_reason":"model_context_window_exceeded"}
"#;
        failure(anthropic, Some((2, Cause::ContextOverflow)));
    }

    #[test]
    fn an_answer_counts_from_where_it_stands() {
        let text = pi(&[ASKED, ANSWERED, ASKED, FAILED]);
        let answer = text.find("\"e1\"").unwrap() as u64;
        assert_eq!(answered_since(&text.as_bytes(), 0), Ok(true));
        assert_eq!(answered_since(&text.as_bytes(), answer), Ok(false));
    }
}
