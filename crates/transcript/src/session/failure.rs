//! How the last turn of a session failed, as the session records it.

use super::Session;
use crate::format::{Broken, Format};
use crate::model::entry::{Entry, Kind, Role, Service, StopReason};
use crate::model::overflow::{Cause, classify};
use crate::model::policy::{Depth, Policy};
use crate::read::scan::Reading;
use crate::refusal;
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
    /// Whether the provider refused the request itself, and would again: no limit, no account, no overload.
    pub is_refusal: bool,
}

/// How the last turn of a transcript failed; `None` if it did not, or the format keeps no errors, or is unknown. A user
/// message after the failure is a new attempt that has no answer yet, so the failure still counts.
///
/// ```
/// let text = br#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}
/// {"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"go"}}
/// {"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"prompt is too long"}}
/// "#;
/// let failure = transcript::overflow::last_failure(&transcript::Reading::new(&&text[..]).unwrap()).unwrap().unwrap();
/// assert_eq!((failure.line, failure.cause.name()), (3, "context-overflow"));
/// ```
pub fn last_failure(reading: &Reading<'_>) -> Result<Option<Failure>, Fault> {
    let policy = Policy::default();
    let session = Session::of(reading, &policy, Depth::Sizes);
    session.map_or(Ok(None), |session| failure_of(&session))
}

/// The error text with which the last turn of a transcript failed; `None` if it did not, or there is no text.
///
/// ```
/// let text = br#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}
/// {"type":"message","id":"b","parentId":null,"message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"prompt is too long"}}
/// "#;
/// let error = transcript::overflow::last_error(&transcript::Reading::new(&&text[..]).unwrap()).unwrap();
/// assert_eq!(error.as_deref(), Some("prompt is too long"));
/// ```
pub fn last_error(reading: &Reading<'_>) -> Result<Option<String>, Fault> {
    let policy = Policy::default();
    let Some(session) = Session::of(reading, &policy, Depth::Sizes) else { return Ok(None) };
    last_words(&session)
}

/// How the last turn of a session failed.
pub(crate) fn failure_of(session: &Session<'_>) -> Result<Option<Failure>, Fault> {
    last_answer(session)?
        .map_or(Ok(None), |last| failure_in(session.source, session.format, session.entry(last)))
}

/// What the API said when the last turn of a session failed.
pub(crate) fn last_words(session: &Session<'_>) -> Result<Option<String>, Fault> {
    last_answer(session)?
        .map_or(Ok(None), |last| error_in(session.source, session.format, session.entry(last)))
}

/// What the last request ended with: a message of the model, or a record of an error, which may stand before the parts of the
/// message that it is about (OpenCode).
fn last_answer(session: &Session<'_>) -> Result<Option<u32>, Fault> {
    let mut spoken = None;
    for &entry in session.live.iter().rev() {
        if session.kind(entry) == Kind::Message(Role::Assistant) && says_something(session, entry)? {
            spoken = Some(entry);
            break;
        }
    }
    let noted = session.transcript.unusual().filter(|(_, entry)| entry.service == Service::Failure);
    let noted = noted.filter(|(_, entry)| entry.ends_request()).map(|(noted, _)| noted).last();
    let is_of = |noted: u32, spoken: u32| {
        let group = session.entry(noted).group;
        noted > spoken || group.is_some() && group == session.entry(spoken).group
    };
    Ok(noted.filter(|&noted| spoken.is_none_or(|spoken| is_of(noted, spoken))).or(spoken))
}

/// Whether a message of the model is an answer or an error. One that was interrupted before its first word is neither.
fn says_something(session: &Session<'_>, entry: u32) -> Result<bool, Fault> {
    let (found, transcript) = (session.entry(entry), session.transcript);
    let is_hollow = found.text_chars == 0
        && transcript.calls_of(entry).is_empty()
        && transcript.thinking_of(entry).is_empty();
    if found.stop != StopReason::Aborted || !is_hollow {
        return Ok(true);
    }
    let doc = json::parse(session.source, found.span)?;
    Ok(doc.is_some_and(|doc| (session.format.broken)(&doc).is_some()))
}

/// The error text in what a request ended with.
pub(crate) fn error_in(source: &dyn Source, format: &Format, found: &Entry) -> Result<Option<String>, Fault> {
    let doc = json::parse(source, found.span)?;
    Ok(match doc.as_ref().and_then(|doc| (format.broken)(doc)) {
        Some(Broken::Error(Some(said)) | Broken::TooLong(Some(said))) => Some(text_of(said)),
        _ => None,
    })
}

/// A text, as far as it is kept.
fn text_of(said: json::Value<'_>) -> String {
    String::from_utf8_lossy(&literal::decode(said.prefix())).into_owned()
}

/// How the request failed that ended with this.
pub(crate) fn failure_in(
    source: &dyn Source,
    format: &Format,
    found: &Entry,
) -> Result<Option<Failure>, Fault> {
    let Some(doc) = json::parse(source, found.span)? else { return Ok(None) };
    let (cause, is_refusal) = match (format.broken)(&doc) {
        None => return Ok(None),
        Some(Broken::CutOff) => (Cause::OutputCutOff, false),
        Some(Broken::TooLong(_)) => (Cause::ContextOverflow, true),
        Some(Broken::Error(None)) => (Cause::Other, false),
        Some(Broken::Error(Some(said))) => {
            let said = text_of(said);
            (classify(&said), refusal::is_of_request(&said))
        }
    };
    Ok(Some(Failure { line: found.line, at: found.span.start, cause, is_refusal }))
}

/// Whether the model has answered, without failing, in an entry that begins at byte `from` or later.
pub fn answered_since(reading: &Reading<'_>, from: u64) -> Result<bool, Fault> {
    let policy = Policy::default();
    let Some(session) = Session::of(reading, &policy, Depth::Sizes) else { return Ok(false) };
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
    use super::{Cause, Reading, answered_since, last_failure};
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
        let found = last_failure(&Reading::new(&text.as_bytes()).unwrap()).unwrap();
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
    fn only_what_would_be_refused_again_is_a_refusal() {
        for (said, expected) in [
            ("400 messages.3.content.0: Input should be a valid dictionary", true),
            ("400 something that nobody has seen yet", true),
            ("422 Unprocessable Entity", true),
            ("prompt is too long", true),
            ("429 Too Many Requests", false),
            ("529 overloaded", false),
            ("500 Internal server error", false),
            ("400 Your credit balance is too low to access the Anthropic API", false),
            ("Connection error.", false),
        ] {
            let text = pi(&[ASKED, &FAILED.replace("prompt is too long", said)]);
            let found = last_failure(&Reading::new(&text.as_bytes()).unwrap()).unwrap();
            assert_eq!(found.map(|failure| failure.is_refusal), Some(expected), "{said}");
        }
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
    fn other_agents_say_it_beside_the_conversation() {
        let line = |kind: &str, payload: &str| {
            format!(
                "{{\"timestamp\":\"2026-11-27T19:37:46.607Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n"
            )
        };
        let said = |role: &str| {
            line(
                "response_item",
                &format!(r#"{{"type":"message","role":"{role}","content":[{{"type":"text","text":"x"}}]}}"#),
            )
        };
        let ended = |error: &str| {
            line("event_msg", &format!(r#"{{"type":"task_complete","turn_id":"t","error":{error}}}"#))
        };
        let header = line(
            "session_meta",
            r#"{"id":"0190f5fe-0000-7000-8000-000000000001","timestamp":"2026-11-27T19:37:46.607Z","cwd":"/w","originator":"codex_exec","cli_version":"0.171.0"}"#,
        );
        let codex = |lines: &[&str]| header.clone() + &lines.concat();
        let full =
            ended(r#"{"message":"Codex ran out of room.","codex_error_info":"context_window_exceeded"}"#);
        let other = ended(r#"{"message":"no quota","codex_error_info":"usage_limit_exceeded"}"#);
        failure(&codex(&[&said("user"), &full]), Some((3, Cause::ContextOverflow)));
        failure(&codex(&[&said("user"), &full, &said("user")]), Some((3, Cause::ContextOverflow)));
        failure(&codex(&[&said("user"), &said("assistant"), &other]), Some((4, Cause::Other)));
        failure(&codex(&[&said("user"), &full, &said("user"), &said("assistant")]), None);
        failure(&codex(&[&said("user"), &said("assistant"), &ended("null")]), None);

        let row = |table: &str, id: &str, more: &str, data: &str| {
            format!(
                r#"{{"store":"opencode","table":"{table}","id":"{id}","session_id":"s",{more}"timestamp":1,"data":{data}}}"#
            ) + "\n"
        };
        let part = |id: &str, message: &str, role: &str| {
            let more = format!(r#""message_id":"{message}","role":"{role}","model":"m","#);
            row("part", id, &more, r#"{"type":"text","text":"x"}"#)
        };
        let head = "{\"store\":\"opencode\",\"table\":\"session\",\"id\":\"s\"}\n".to_string();
        let error = r#"{"name":"ContextOverflowError","data":{"message":"too much"}}"#;
        let failed = row("message", "m2", "", &format!(r#"{{"role":"assistant","error":{error}}}"#));
        let asked = row("message", "m1", "", r#"{"role":"user"}"#) + &part("p1", "m1", "user");
        let dead = head + &asked + &failed;
        failure(&dead, Some((4, Cause::ContextOverflow)));
        failure(&(dead.clone() + &part("p2", "m2", "assistant")), Some((4, Cause::ContextOverflow)));
        let answered = row("message", "m3", "", r#"{"role":"assistant"}"#) + &part("p3", "m3", "assistant");
        failure(&(dead + &answered), None);
    }

    #[test]
    fn others_say_it_in_a_record_for_the_screen() {
        let copilot = |kind: &str, data: &str| {
            format!(
                r#"{{"type":"{kind}","data":{data},"id":"i","timestamp":"2026-07-01T10:00:00.000Z","parentId":null}}"#
            ) + "\n"
        };
        let start = copilot(
            "session.start",
            r#"{"sessionId":"s","version":1,"producer":"copilot-agent","copilotVersion":"1.0.102","startTime":"2026-07-01T10:00:00.000Z"}"#,
        );
        let asked = copilot("user.message", r#"{"content":"go","parentAgentTaskId":"t"}"#);
        let refused = copilot(
            "session.error",
            r#"{"errorType":"query","message":"400 This model's maximum context length is 40000 tokens."}"#,
        );
        failure(&(start + &asked + &refused), Some((3, Cause::ContextOverflow)));

        let kimi = r#"{"type":"metadata","protocol_version":"1","created_at":1}
{"type":"turn.ended","turnId":0,"reason":"failed","error":{"code":"context.overflow","message":"x"}}
"#;
        failure(kimi, Some((2, Cause::ContextOverflow)));
        let qwen = r#"{"uuid":"a","parentUuid":null,"sessionId":"s","timestamp":"t","type":"user","message":{"role":"user","parts":[{"text":"go"}]}}
{"uuid":"b","parentUuid":"a","sessionId":"s","timestamp":"t","type":"system","subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_error","error_message":"400 maximum context length is 9 tokens","status_code":400}}}
"#;
        failure(qwen, Some((2, Cause::ContextOverflow)));
        failure(&qwen.replace("\"status_code\"", "\"subagent_name\":\"x\",\"status_code\""), None);
        let gemini = r#"{"sessionId":"s","projectHash":"h","startTime":"t","lastUpdated":"t","kind":"main"}
{"id":"a","timestamp":"t","type":"gemini","content":"x"}
{"id":"b","timestamp":"t","type":"error","content":"[API Error: The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).]"}
"#;
        failure(gemini, Some((3, Cause::ContextOverflow)));
    }

    #[test]
    fn what_was_interrupted_before_its_first_word_is_no_answer() {
        let aborted =
            r#"{"role":"assistant","content":[],"stopReason":"aborted","errorMessage":"Request aborted"}"#;
        failure(&pi(&[ASKED, FAILED, ASKED, aborted]), Some((3, Cause::ContextOverflow)));
        let begun = aborted.replace("[]", r#"[{"type":"text","text":"Wel"}]"#);
        failure(&pi(&[ASKED, FAILED, ASKED, &begun]), None);
    }

    #[test]
    fn an_answer_counts_from_where_it_stands() {
        let text = pi(&[ASKED, ANSWERED, ASKED, FAILED]);
        let answer = text.find("\"e1\"").unwrap() as u64;
        assert_eq!(answered_since(&Reading::new(&text.as_bytes()).unwrap(), 0), Ok(true));
        assert_eq!(answered_since(&Reading::new(&text.as_bytes()).unwrap(), answer), Ok(false));
    }
}
